"""Figure 4: batches of k rows against iterations T where k T is fixed, and the variant that holds t."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from ..lab import Lab
from ..report import Cell, Claim, Curve, Figure, Panel, Report, Table, apart, verdict_on, within
from . import common

SIZES = (1, 4, 16, 64, 256, 1024, 4096, 16384)
WORK = (200_000, 800_000, 3_200_000)  # rows read, k T


SEEDS = 3
LARGE = 1024  # the largest k at which 195 steps at least are made
Found = dict[tuple[bool, int], list[list[float]]]  # t held, work: excesses of every k, by seeds


def run(lab: Lab) -> Report:
    """The objective in the end for every k, at three amounts of work, as published and with t held."""
    split = common.documents(lab)
    optimum = lab.optimum(split.training, lam=common.LAM)
    sizes, work, seeds = ((1, 8, 64), (2000, 8000), 1) if lab.quick else (SIZES, WORK, SEEDS)
    table: list[list[Cell]] = []
    curves: dict[bool, list[Curve]] = {False: [], True: []}
    found: Found = {}
    for held in (False, True):
        for rows in work:
            ends = found[held, rows] = []
            for k in sizes:
                T = max(1, rows // k)
                runs = [
                    common.pegasos(lab, split, k, T, every=T, seed=seed, skip_lossless=held)
                    for seed in range(seeds)
                ]
                values = sorted(one.primal[-1] / optimum - 1.0 for one in runs)
                ends.append(values)
                variant = "t held" if held else "as published"
                table.append([variant, rows, k, T, median(values), values[0], values[-1]])
            middle = [median(values) for values in ends]
            curves[held].append(Curve(f"kT = {rows:,}", [float(k) for k in sizes], middle, marker="o"))
    panels = [
        Panel(title, "k", "P / P* - 1", curves[held], "log", "log")
        for title, held in (("as published", False), ("t held where a batch has no loss", True))
    ]
    return Report(
        _claims(sizes, work, found),
        (Table("The objective in the end, above the optimum", HEADER, table, f"{seeds} seeds."),),
        (Figure("rupnik-figure-4", "Batch size against iterations at equal work, medians of seeds", panels),),
        REMARKS,
        lab.data,
    )


HEADER = ("variant", "kT", "k", "T", "excess, median", "least", "most")
REMARKS = (
    "The paper's amounts of work are not in its text; three are taken. Where t is held, steps stay "
    "long for as long as most rows have no loss, which is why it does harm here.",
    common.PROBLEM,
    "What slows convergence here is too large a k: the number of steps T becomes too small.",
)


def _claims(sizes: Sequence[int], work: Sequence[int], found: Found) -> tuple[Claim, ...]:
    published = {rows: found[False, rows] for rows in work}
    middle = {rows: [median(values) for values in ends] for rows, ends in published.items()}
    better = [
        more < less
        for before, after in pairwise(work)
        for less, more in zip(middle[before], middle[after], strict=True)
    ]
    best = {rows: min(ends, key=median) for rows, ends in published.items()}
    above = {rows: min(ends[1:], key=median) for rows, ends in published.items()}
    return (
        verdict_on(
            "more work is better: a curve of larger kT lies below one of smaller kT",
            better,
            f"in {sum(better)} of {len(better)} pairs of equal k",
        ),
        verdict_on(
            "too small a k slows convergence down: k = 1 is worse than the best k at the same kT",
            [apart(best[rows], published[rows][0]) for rows in work],
            "; ".join(
                f"kT = {rows:,}: {_range(published[rows][0])} at k = 1, {_range(best[rows])} at best"
                for rows in work
            ),
        ),
        verdict_on(
            "experiments imply a k higher than 1",
            [apart(above[rows], published[rows][0]) for rows in work],
            "the least excess of a k above 1 against that of k = 1: "
            + "; ".join(
                f"kT = {rows:,}: {_range(above[rows])}, {_range(published[rows][0])}" for rows in work
            ),
        ),
        *_whatever_k(sizes, middle),
        verdict_on(
            "not to increase t where a batch has no loss improves k = 1",
            [apart(found[True, rows][0], published[rows][0]) for rows in work],
            "; ".join(
                f"kT = {rows:,}: {_range(published[rows][0])}, t held {_range(found[True, rows][0])}"
                for rows in work
            ),
        ),
    )


def _range(values: Sequence[float]) -> str:
    return f"{median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def _whatever_k(sizes: Sequence[int], middle: dict[int, list[float]]) -> tuple[Claim, Claim]:
    """That k does not matter, and that the curves of all amounts of work look alike."""
    ratios = {rows: ends[-1] / ends[0] for rows, ends in middle.items()}
    small = {
        rows: [end for k, end in zip(sizes, ends, strict=True) if k <= LARGE] for rows, ends in middle.items()
    }
    spread = max(max(ends) / min(ends) for ends in small.values())
    steps = sorted(rows // k for rows in middle for k in sizes if k > LARGE)
    beyond = f"; beyond, T is {steps[0]:,} to {steps[-1]:,}" if steps else ""
    return (
        verdict_on(
            "(the authors of Pegasos) k does not matter as long as kT is fixed (here: within a factor of "
            "1.5)",
            [within(max(ends), min(ends), 1.5) for ends in middle.values()],
            "; ".join(
                f"kT = {rows:,}: from {min(ends):.3g} to {max(ends):.3g}" for rows, ends in middle.items()
            )
            + f"; for k up to {LARGE:,} within a factor of {spread:.2g}{beyond}",
        ),
        verdict_on(
            "all three settings of kT yield similar curves (section 4.5; here: the excess at the largest k "
            "over "
            "that at k = 1 within a factor of 2 of each other)",
            within(max(ratios.values()), min(ratios.values()), 2.0),
            "; ".join(f"kT = {rows:,}: {ratio:.3g} times" for rows, ratio in ratios.items()),
        ),
    )
