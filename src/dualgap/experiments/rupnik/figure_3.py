"""Figure 3: the error on held-out documents by iteration, with that of SVM-light's method beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lab import Lab
from ..report import Curve, Figure, Panel, Report, Table, verdict_on
from . import common

PAPER = (0.058, 0.056)  # Pegasos after 50 iterations, SVM-light
MARK = 50


def run(lab: Lab) -> Report:
    """The error of the own point after every iteration, rows in the order of the file."""
    split = common.documents(lab)
    one = common.pegasos(lab, split, split.k, 30 if lab.quick else 200, errors=True)
    exact = float(
        lab.once({"rupnik-exact": split.training.name, "rows": split.training.n}, lambda: _exact(lab, split))
    )
    early = one.error[min(len(one.error), MARK) - 1]
    table = Table(
        "Error on held-out rows",
        ("", "ours", "the paper's"),
        [
            [f"Pegasos, {MARK} iterations", early, PAPER[0]],
            ["the optimum (SVM-light's method)", exact, PAPER[1]],
        ],
        "Another collection of documents: the levels do not compare, their difference does.",
    )
    claim = verdict_on(
        "the error of the optimum is all but reached within 50 iterations (0.2 points above it)",
        early - exact <= 0.005,
        f"{early:.2%} after {MARK} iterations, {exact:.2%} at the optimum",
    )
    figure = Figure(
        "rupnik-figure-3",
        "The error on held-out rows by iteration of the algorithm's own point",
        [
            Panel(
                split.training.name,
                "iterations",
                "error",
                [Curve("Pegasos", one.iterations, one.error)],
                levels={"optimum (decomposition)": exact},
            )
        ],
    )
    return Report((claim,), (table,), (figure,), (), lab.data)


def _exact(lab: Lab, split: common.Split) -> float:
    """The error at the optimum. `decomposition` gets there on small data; where rows are many, any solver
    whose certificate is as tight has the same model.
    """
    solver = "decomposition" if split.training.n <= 5000 else "auto"
    bias = "exact" if solver == "decomposition" else "none"
    outcome: Any = lab.fit(split.training, lam=common.LAM, solver=solver, bias=bias, tol=1e-4)
    scores = split.test.X @ outcome.coef + outcome.intercept
    return float(np.mean((scores > 0) != (split.test.y > 0)))
