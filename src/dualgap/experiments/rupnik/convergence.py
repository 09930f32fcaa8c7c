"""Section 4.3: iterations of Pegasos to 0.3% and to 0.1% of the optimum (batches of 8,000, lam = 0.0001)."""

from __future__ import annotations

import math
from time import process_time
from typing import Any

from ..lab import Lab
from ..report import Cell, Claim, Figure, Panel, Report, Table, sooner, verdict_on
from ..sets import Rows
from . import common

PAPER = {0.003: 200, 0.001: 560}
SVM_LIGHT = "joachims-1999"
MORE = 1565  # times as long as Pegasos, in the paper


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
    times = {"Pegasos": _seconds(lab, split), "decomposition": _decomposed(lab, split)}
    table.append(["seconds of 200 iterations", f"{times['Pegasos']:.2g}", "9.2"])
    table.append(
        [
            f"seconds of SVM-light's method to a gap of 0.1%, {split.training.n:,} rows",
            f"{times['decomposition']:.3g}",
            "14,400",
        ]
    )
    tight = reached[min(goals)][len(runs) // 2]
    claim = verdict_on(
        "Pegasos converges rapidly towards approximate solutions: some hundred iterations to 0.1%",
        None if lab.quick or math.isinf(tight) else tight <= 3.0 * PAPER[0.001],
        f"{'not reached' if math.isinf(tight) else round(tight)} iterations (median) to {min(goals):.1%}",
    )
    return Report(
        (claim, _quicker(times, split.training.n)),
        (
            Table(
                "Iterations of the own point until it is within an accuracy of the optimum",
                ("accuracy", f"{split.training.name}, {seeds} seeds", common.THEIRS),
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


def _quicker(times: dict[str, float], rows: int) -> Claim:
    pegasos, decomposition = times.values()
    ratio = decomposition / pegasos
    return verdict_on(
        "200 iterations of Pegasos take 9.2 seconds where SVM-light takes four hours, 1,565 times as long "
        "(here: `decomposition`, its method in our implementation, takes longer; and within a factor of ten "
        "of so much)",
        [sooner(pegasos, decomposition), 0.1 * MORE <= ratio <= 10.0 * MORE],
        f"{pegasos:.2g} s against {decomposition:.3g} s to a gap of 0.1% on {rows:,} rows, {ratio:.3g} "
        "times as long, "
        f"{MORE:,} in the paper",
    )


def _first(rows: Rows, count: int) -> Rows:
    return rows._replace(X=rows.X[:count], y=rows.y[:count])


def _decomposed(lab: Lab, split: common.Split) -> float:
    """Seconds of the processor that SVM-light's method takes to a gap of 0.1%, in working sets of 10."""

    def measure() -> float:
        lab.fit(
            _first(split.training, 2000), lam=common.LAM, solver="decomposition", paper=SVM_LIGHT
        )  # compiled
        started = process_time()
        lab.fit(split.training, lam=common.LAM, solver="decomposition", paper=SVM_LIGHT, max_epochs=None)
        return process_time() - started

    return float(lab.once({"rupnik svm-light": split.training.name, "rows": split.training.n}, measure))


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
