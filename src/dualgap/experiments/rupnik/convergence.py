"""Section 4.3: iterations of Pegasos to 0.3% and to 0.1% of the optimum (batches of 8,000, lam = 0.0001)."""

from __future__ import annotations

import math
from typing import Any

from ..lab import Lab
from ..report import Cell, Figure, Panel, Report, Table, verdict_on
from . import common

PAPER = {0.003: 200, 0.001: 560}


def run(lab: Lab) -> Report:
    """Run several seeds long enough, and look when each is near."""
    split = common.documents(lab)
    optimum = lab.optimum(split.training, lam=common.LAM)
    iterations, seeds = (60, 2) if lab.quick else (3000, 3)
    runs = [common.pegasos(lab, split, split.k, iterations, seed=seed) for seed in range(seeds)]
    goals = {0.1: None, 0.05: None} if lab.quick else PAPER
    table: list[list[Cell]] = []
    reached = {goal: sorted(one.reaches(optimum, goal) for one in runs) for goal in goals}
    for goal, counts in reached.items():
        shown = ", ".join("not reached" if math.isinf(count) else f"{count:.0f}" for count in counts)
        table.append([f"{goal:.1%}", shown, goals[goal]])
    table.append(["seconds of 200 iterations", f"{_seconds(lab, split):.2g}", "9.2"])
    tight = reached[min(goals)][len(runs) // 2]
    claim = verdict_on(
        "Pegasos converges rapidly towards approximate solutions: some hundred iterations to 0.1%",
        None if lab.quick or math.isinf(tight) else tight <= 3.0 * PAPER[0.001],
        f"{'not reached' if math.isinf(tight) else round(tight)} iterations (median) to {min(goals):.1%}",
    )
    return Report(
        (claim,),
        (
            Table(
                "Iterations of the own point until it is within an accuracy of the optimum",
                ("accuracy", f"{split.training.name}, {seeds} seeds", "RCV1, the paper's"),
                table,
                "The optimum is that of a certificate (1e-7) and no SVM-light run of four hours.",
            ),
        ),
        (
            Figure(
                "rupnik-convergence",
                f"Pegasos, batches of {split.k:,} rows",
                [
                    Panel(
                        split.training.name,
                        "iterations",
                        "P / P* - 1",
                        [one.curve(f"seed {seed}", optimum) for seed, one in enumerate(runs)],
                        "log",
                        "log",
                    )
                ],
            ),
        ),
        (common.PROBLEM,),
        lab.data,
    )


def _seconds(lab: Lab, split: common.Split) -> float:
    """Seconds of training for 200 iterations."""
    key = {"rupnik seconds": split.training.name, "rows": split.training.n, "k": split.k}
    settings: dict[str, Any] = {"k": split.k, "projection": True, "sampling": "distinct"}

    def measure() -> float:
        outcome = lab.fit(
            split.training,
            lam=common.LAM,
            solver="pegasos",
            tol=0.0,
            stall=None,
            max_epochs=None,
            max_visits=200 * split.k,
            duals=False,
            polish=0,
            **settings,
        )
        return outcome.seconds.training

    return float(lab.once(key, measure))
