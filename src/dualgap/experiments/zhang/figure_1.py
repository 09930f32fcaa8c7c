"""Figure 1: unregularised least squares by passes over the data, averaged or not, and a regulariser."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lab import Lab
from ..report import Cell, Curve, Figure, Panel, Report, Table, verdict_on
from . import common
from .reuters import Collection

LAMBDAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


def run(lab: Lab) -> Report:
    """Early stopping beside a regulariser."""
    found = common.collection(lab)
    epochs = 12 if lab.quick else 60
    plain = common.sgd("last", "squared")
    averaged = common.sgd("averaged", "squared", averaged=True)
    runs = {
        (method.label, bias): common.levels(lab, found, method, epochs, bias=bias)
        for method in (plain, averaged)
        for bias in (common.CONSTANT, "none")
    }
    path = regularised(lab, found)
    table: list[list[Cell]] = [
        [label, bias, *levels.best, 100.0 * max(levels.pooled)] for (label, bias), levels in runs.items()
    ]
    table += [
        [f"regularised, lam = {lam:g}", common.CONSTANT, 100.0 * each, None, 100.0 * pooled]
        for lam, each, pooled in path
    ]
    last, mean = runs["last", common.CONSTANT], runs["averaged", common.CONSTANT]
    top = 100.0 * max(each for _, each, _ in path)
    late = 100.0 * (mean.each[-1] - last.each[-1])
    shift = mean.best[1] / last.best[1]
    claims = (
        verdict_on(
            "the best stopping point comes after about ten passes over the data",
            None if lab.quick else [last.best[1] <= 20, last.best[1] >= 7],
            f"{last.best[0]:.1f}% after {last.best[1]:.0f} passes, averaged after "
            f"{mean.best[1]:.0f}; 7 to 20 count as about ten",
        ),
        verdict_on(
            "averaging does not help, it only smooths the curve and shifts it to the right",
            [mean.best[0] - last.best[0] <= common.NOTHING, late <= common.NOTHING, shift > 1.0],
            f"averaged {mean.best[0]:.1f}% at best ({mean.best[0] - last.best[0]:+.1f} points) after "
            f"{mean.best[1]:.0f} passes, {shift:.1f} times as many; in the end {late:+.1f} points",
        ),
        verdict_on(
            "early stopping behaves like explicit regularisation",
            abs(top - last.best[0]) <= 1.5,
            f"{last.best[0]:.1f}% by stopping early, {top:.1f}% by the best lam",
        ),
    )
    panels = [
        Panel(
            "early stopping, no regulariser",
            "passes over the data",
            "break-even point, %",
            [last.curve(plain), mean.curve(averaged)],
            "log",
        ),
        Panel(
            "explicit regularisation, solved to the end",
            "lam",
            "break-even point, %",
            [
                Curve(
                    "regularised",
                    [lam for lam, *_ in path],
                    [100.0 * each for _, each, _ in path],
                    marker="o",
                )
            ],
            "log",
        ),
    ]
    header = ("least squares", "bias", "best BEP, %", "after passes", "best BEP, one threshold, %")
    note = "Thresholds by category unless stated; augmented: with a constant feature 1."
    return Report(
        claims,
        (Table("Micro-averaged break-even points on test documents", header, table, note),),
        (Figure("zhang-figure-1", f"Least squares on {found.name}, eta = {common.ETA}", panels),),
        (
            "Without a constant feature some six points are lost; the paper does not say whether it had one.",
            "Features are chosen by information gain, as in the paper's reference; its list is unknown.",
        ),
        lab.data,
    )


def regularised(lab: Lab, found: Collection) -> list[tuple[float, float, float]]:
    """lam and both break-even points of the solved problem, for every lam."""
    path = []
    for lam in LAMBDAS[::2] if lab.quick else LAMBDAS:
        key = {"zhang-path": found.name, "n": found.X.shape[0], "lam": lam}
        pair = lab.once(key, lambda lam=lam: _solved(lab, found, lam))  # type: ignore[misc]
        path.append((lam, float(pair[0]), float(pair[1])))
    return path


def _solved(lab: Lab, found: Collection, lam: float) -> list[float]:
    lab.tell(f"{found.name}: least squares with lam = {lam:g}")
    scores: Any = np.full(found.test_topics.shape, -np.inf)
    quiet = Lab(quick=lab.quick)
    for category in range(len(found.categories)):
        if found.topics[:, category].any():
            rows = common.rows_of(found, category)
            outcome = quiet.fit(rows, lam=lam, loss="squared", bias=common.CONSTANT, tol=1e-2)
            scores[:, category] = found.test @ outcome.coef + outcome.intercept
    return list(common.break_even(scores, found.test_topics))
