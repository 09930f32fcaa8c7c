"""Figure 4: batches of k rows against iterations T where k T is fixed, and the variant that holds t."""

from __future__ import annotations

from itertools import pairwise

from ..lab import Lab
from ..report import Cell, Claim, Curve, Figure, Panel, Report, Table, sooner, verdict_on, within
from . import common

SIZES = (1, 4, 16, 64, 256, 1024, 4096, 16384)
WORK = (200_000, 800_000, 3_200_000)  # rows read, k T


def run(lab: Lab) -> Report:
    """The objective in the end for every k, at three amounts of work, as published and with t held."""
    split = common.documents(lab)
    optimum = lab.optimum(split.training, lam=common.LAM)
    sizes, work = ((1, 8, 64), (2000, 8000)) if lab.quick else (SIZES, WORK)
    table: list[list[Cell]] = []
    curves: dict[bool, list[Curve]] = {False: [], True: []}
    found: dict[tuple[bool, int], list[float]] = {}
    for held in (False, True):
        for rows in work:
            ends = []
            for k in sizes:
                T = max(1, rows // k)
                one = common.pegasos(lab, split, k, T, every=T, skip_lossless=held)
                ends.append(one.primal[-1] / optimum - 1.0)
                table.append(["t held" if held else "as published", rows, k, T, ends[-1]])
            found[held, rows] = ends
            curves[held].append(Curve(f"kT = {rows:,}", [float(k) for k in sizes], ends, marker="o"))
    claims = _claims(work, found)
    panels = [
        Panel(title, "k", "P / P* - 1", curves[held], "log", "log")
        for title, held in (("as published", False), ("t held where a batch has no loss", True))
    ]
    return Report(
        claims,
        (Table("The objective in the end, above the optimum", ("variant", "kT", "k", "T", "excess"), table),),
        (Figure("rupnik-figure-4", "Batch size against iterations at equal work", panels),),
        (
            "The paper's amounts of work are not in its text; three are taken. Where t is held, steps stay "
            "long for as long as most rows have no loss, which is why it does harm here.",
            common.PROBLEM,
            "What slows convergence here is too large a k: the number of steps T becomes too small.",
        ),
        lab.data,
    )


def _claims(work: tuple[int, ...], found: dict[tuple[bool, int], list[float]]) -> tuple[Claim, ...]:
    better = [
        more < less
        for before, after in pairwise(work)
        for less, more in zip(found[False, before], found[False, after], strict=True)
    ]
    return (
        verdict_on(
            "more work is better: a curve of larger kT lies below one of smaller kT",
            better,
            f"in {sum(better)} of {len(better)} pairs of equal k",
        ),
        verdict_on(
            "too small a k slows convergence down: k = 1 is worse than the best k at the same kT",
            [sooner(min(found[False, rows]), found[False, rows][0]) for rows in work],
            "; ".join(
                f"kT = {rows:,}: {found[False, rows][0]:.3g} at k = 1, {min(found[False, rows]):.3g} at best"
                for rows in work
            ),
        ),
        verdict_on(
            "experiments imply a k higher than 1",
            [sooner(min(found[False, rows][1:]), found[False, rows][0]) for rows in work],
            "the least excess of a k above 1 against that of k = 1: "
            + "; ".join(
                f"kT = {rows:,}: {min(found[False, rows][1:]):.3g}, {found[False, rows][0]:.3g}"
                for rows in work
            ),
        ),
        verdict_on(
            "(the authors of Pegasos) k does not matter as long as kT is fixed",
            [within(max(found[False, rows]), min(found[False, rows]), 1.5) for rows in work],
            "; ".join(
                f"kT = {rows:,}: from {min(found[False, rows]):.3g} to {max(found[False, rows]):.3g}"
                for rows in work
            ),
        ),
        verdict_on(
            "not to increase t where a batch has no loss improves k = 1",
            [sooner(found[True, rows][0], found[False, rows][0]) for rows in work],
            "; ".join(
                f"kT = {rows:,}: {found[False, rows][0]:.3g}, t held {found[True, rows][0]:.3g}"
                for rows in work
            ),
        ),
    )
