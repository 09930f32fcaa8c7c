"""Figure 6: Pegasos with and without projection on genomic data; is the curve less noisy?"""

from __future__ import annotations

import numpy as np

from ..lab import Lab
from ..report import Figure, Panel, Report, Table, sooner, verdict_on
from . import common
from .common import Algorithm, Run


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
        [seed, noise(plain), noise(projected), plain.excess(optimum)[-1], projected.excess(optimum)[-1]]
        for seed, (plain, projected) in enumerate(pairs)
    ]
    smoother = [sooner(projected, plain) for _, plain, projected, *_ in table]
    claim = verdict_on(
        "the projection makes the curve smoother",
        smoother,
        f"the second half of the run is less noisy in {smoother.count(True)} of {len(smoother)} runs, "
        f"and no different in {smoother.count('tie')}",
    )
    alike = [0.5 < (1.0 + a) / (1.0 + b) < 2.0 for *_, a, b in table]
    return Report(
        (
            claim,
            verdict_on(
                "both converge towards the same value at the same speed",
                alike,
                "; ".join(f"{a:.3g} and {b:.3g} above the optimum" for *_, a, b in table),
            ),
        ),
        (
            Table(
                "Noise: the mean absolute change of log P from step to step, second half of the run",
                ("seed", "without", "with projection", "excess without", "excess with"),
                table,
            ),
        ),
        (
            Figure(
                "ouillade-figure-6",
                "Pegasos with and without projection, first seed",
                [
                    Panel(
                        rows.name, "iterations", "P / P* - 1", common.curves(pairs[0], optimum), "log", "log"
                    )
                ],
            ),
        ),
        (),
        lab.data,
    )


def noise(one: Run) -> float:
    """Mean absolute change of log P from step to step, in the second half."""
    values = np.log(np.array(one.primal[len(one.primal) // 2 :]))
    return float(np.mean(np.abs(np.diff(values))))
