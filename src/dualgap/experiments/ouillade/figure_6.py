"""Figure 6: Pegasos with and without projection on genomic data; is the curve less noisy?"""

from __future__ import annotations

import numpy as np

from ..lab import Lab
from ..report import Claim, Figure, Panel, Part, Report, Table, mostly, sooner, verdict_on
from . import common, table_2
from .common import Algorithm, Run

EARLY, LATE = (0.0, 0.5), (0.5, 1.0)  # halves of the logarithmic axis, as powers of the number of steps
HEADER = (
    "seed",
    *(f"{half} half, {how}" for half in ("first", "last") for how in ("without", "projected")),
    "excess in the end, without",
    "projected",
)


def run(lab: Lab) -> Report:
    """Run both, and measure the noise as the mean step of the logarithm of the objective."""
    rows = common.genomic(lab)
    optimum = lab.optimum(rows, lam=1.0 / rows.n)
    epochs = 6.0 if lab.quick else 40.0
    pairs = [
        [
            common.run(
                lab, rows, Algorithm(label, "pegasos", {"projection": projected}), epochs=epochs, seed=seed
            )
            for label, projected in (("without projection", False), ("with projection", True))
        ]
        for seed in range(1 if lab.quick else 5)
    ]
    table = [
        [
            seed,
            *(noise(one, part) for part in (EARLY, LATE) for one in pair),
            *(one.excess(optimum)[-1] for one in pair),
        ]
        for seed, pair in enumerate(pairs)
    ]
    alike = [0.5 < (1.0 + a) / (1.0 + b) < 2.0 for *_, a, b in table]
    panel = Panel(rows.name, "iterations", "P / P* - 1", common.curves(pairs[0], optimum), "log", "log")
    return Report(
        (
            _smoother(table),
            _preferable(lab, table),
            verdict_on(
                "both converge towards the same value at the same speed",
                alike,
                "; ".join(f"{a:.3g} and {b:.3g} above the optimum" for *_, a, b in table),
            ),
        ),
        (
            Table(
                "Noise: the mean absolute change of log P from step to step",
                HEADER,
                table,
                "Halves are those of the logarithmic axis: the first ends at the square root of the steps.",
            ),
        ),
        (Figure("ouillade-figure-6", "Pegasos with and without projection, first seed", [panel]),),
        ("The projection acts in the first steps alone: later all points are inside the ball.",),
        lab.data,
    )


def noise(one: Run, part: tuple[float, float]) -> float:
    """Mean absolute change of log P from step to step, between two powers of the number of steps."""
    first, last = (round(len(one.primal) ** power) for power in part)
    values = np.log(np.array(one.primal[first:last]))
    return float(np.mean(np.abs(np.diff(values))))


def _halves(table: list[list[float]]) -> dict[str, list[Part]]:
    """Whether the projection made each half of a run less noisy."""
    return {
        "first": [sooner(row[2], row[1]) for row in table],
        "last": [sooner(row[4], row[3]) for row in table],
    }


def _preferable(lab: Lab, table: list[list[float]]) -> Claim:
    """The advice, by the two reasons that are given for it; the second is that of Table 2."""
    smoother = {f"the {half}": mostly(parts) for half, parts in _halves(table).items()}
    where = " and ".join(half for half, found in smoother.items() if found is True) or "no"
    more = table_2.projection(lab)
    return verdict_on(
        "hence it should be preferable to use the projection: a smoother curve, and a better accuracy of "
        "the averaged output",
        [*smoother.values(), *more],
        f"a smoother curve in {where} half of the run; a better accuracy in {more.count(True)}, a worse one "
        f"in {more.count(False)} of {len(more)} pairs of Table 2",
    )


def _smoother(table: list[list[float]]) -> Claim:
    smoother = _halves(table)
    return verdict_on(
        "the projection makes the curve smoother",
        [part for parts in smoother.values() for part in parts],
        "; ".join(
            f"{half} half of the run: less noisy in {parts.count(True)} of {len(parts)} runs, "
            f"no different in {parts.count('tie')}"
            for half, parts in smoother.items()
        ),
    )
