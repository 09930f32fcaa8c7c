"""Figure 1: unregularised least squares by passes over the data, averaged or not, and a regulariser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..lab import Lab
from ..report import Cell, Claim, Curve, Figure, Panel, Report, Table, sooner, verdict_on
from . import common
from .common import Levels
from .reuters import Collection

LAMBDAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
PASSES = 300  # at most, of SGD on the regularised problem
Path = list[tuple[float, float, float]]  # lam, and both break-even points


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
    header = ("least squares", "bias", "best BEP, %", "after passes", "best BEP, one threshold, %")
    note = "Thresholds by category unless stated; augmented: with a constant feature 1."
    panels = [_stopping([last.curve(plain), mean.curve(averaged)]), _explicit(path)]
    return Report(
        (*_claims(lab, last, mean, path), _better(lab, found, last, path)),
        (Table("Micro-averaged break-even points on test documents", header, table, note),),
        (Figure("zhang-figure-1", f"Least squares on {found.name}, eta = {common.ETA}", panels),),
        REMARKS,
        lab.data,
    )


REMARKS = (
    "Without a constant feature some six points are lost; the paper does not say whether it had one.",
    "Features are chosen by information gain, as in the paper's reference; its list is unknown.",
)


def _stopping(curves: Sequence[Curve]) -> Panel:
    title = "early stopping, no regulariser"
    return Panel(title, "passes over the data", "break-even point, %", curves, "log")


def _explicit(path: Path) -> Panel:
    lams, values = [lam for lam, *_ in path], [100.0 * each for _, each, _ in path]
    curve = Curve("regularised", lams, values, marker="o")
    return Panel("explicit regularisation, solved to the end", "lam", "break-even point, %", [curve], "log")


def _claims(lab: Lab, last: Levels, mean: Levels, path: Path) -> tuple[Claim, ...]:
    top = 100.0 * max(each for _, each, _ in path)
    late = 100.0 * (mean.each[-1] - last.each[-1])
    shift = mean.best[1] / last.best[1]
    stops = f"{last.best[0]:.1f}% after {last.best[1]:.0f} passes, averaged after {mean.best[1]:.0f}"
    return (
        verdict_on(
            "the best stopping point is reached relatively quickly (here: within 20 passes)",
            None if lab.quick else last.best[1] <= 20,
            stops,
        ),
        verdict_on(
            "the best stopping point comes after about ten passes over the data (here: 7 to 20)",
            None if lab.quick else 7 <= last.best[1] <= 20,
            stops,
        ),
        verdict_on(
            "one pass over the data over-regularises (section 5.2; here: more passes gain more than "
            f"{common.NOTHING:g} points)",
            common.sign(last.best[0] - 100.0 * last.each[0]),
            f"{100.0 * last.each[0]:.1f}% after one pass, {last.best[0]:.1f}% after {last.best[1]:.0f}",
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


def _better(lab: Lab, found: Collection, last: Levels, path: Path) -> Claim:
    """More efficient: fewer passes than the regularised problem takes. More robust: as good over a wider
    range, by factors, of stopping times than of lam.
    """
    lam = max(path, key=lambda item: item[1])[0]
    passes = _passes(lab, found, lam)
    stops = _width(last.epochs, last.each)
    lams = _width([lam for lam, *_ in path], [each for _, each, _ in path])
    solved = f"more than {PASSES}" if math.isinf(passes) else f"{passes:.0f}"
    return verdict_on(
        "early stopping is easier to implement, more efficient and more robust than a regulariser (here: "
        "fewer passes; within a point of the best over a wider range; ease is not measured)",
        [sooner(last.best[1], passes), sooner(lams, stops)],
        f"best after {last.best[1]:.0f} passes, where SGD with lam = {lam:g} and falling rates is within 1% "
        f"of its optimum after {solved} (largest category); within a point of the best over a factor of "
        f"{stops:.3g} in passes and of {lams:.3g} in lam (between the powers of ten: on straight lines)",
    )


def _width(places: Sequence[float], values: Sequence[float]) -> float:
    """The factor between the ends of the range about the best place in which values are within a point of it,
    on straight lines over the logarithm of the places.
    """
    logs, best = np.log(places), int(np.argmax(values))
    fine = np.linspace(logs[0], logs[-1], 10_001)
    low = np.interp(fine, logs, values) < values[best] - 0.01
    below, above = fine[low & (fine < logs[best])], fine[low & (fine > logs[best])]
    return math.exp((above[0] if above.size else logs[-1]) - (below[-1] if below.size else logs[0]))


def _passes(lab: Lab, found: Collection, lam: float) -> float:
    """Passes of SGD at its default, falling learning rates until it is within 1% of the regularised optimum
    of the largest category; inf: not within the limit.
    """
    rows = common.largest(found)
    problem: dict[str, Any] = {"lam": lam, "loss": "squared", "bias": common.CONSTANT}
    optimum = lab.optimum(rows, **problem)

    def measure() -> float:
        outcome = lab.own(
            rows,
            **problem,
            solver="sgd",
            target=1.01 * optimum,
            max_epochs=5 if lab.quick else PASSES,
            record_every=rows.n,
            duals=False,
            polish=0,
        )
        return outcome.epochs if outcome.trace[-1].current.primal <= 1.01 * optimum else math.inf

    return float(lab.once({"zhang-passes": rows.name, "rates": "default", "n": rows.n, "lam": lam}, measure))


def regularised(lab: Lab, found: Collection) -> Path:
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
