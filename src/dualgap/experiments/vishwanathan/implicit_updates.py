"""Implicit against explicit updates: the objective by epochs at several constant steps, and at 1/(lam t)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...stream import Stream
from .. import generated
from ..lab import Lab, certified
from ..report import Cell, Claim, Curve, Figure, Panel, Report, Table, verdict_on
from ..sets import Rows

STEPS = (0.01, 0.1, 1.0, 10.0)
C = 1.0
CHECKED = 2000  # steps whose case is looked at
CASES = ("gamma = 0, beyond the margin", "0 < gamma < 1, put on the margin", "gamma = 1, still within")
Trace = dict[str, list[float]]
ENDS = (
    "Constant steps: the median of the last quarter of the epochs, as the curves wiggle, so that it is not "
    "where a "
    "curve of the picture happens to end. 1/(lam t): the last epoch."
)


def run(lab: Lab) -> Report:
    """Both kinds of steps on Adult, and the three cases of an implicit one."""
    rows = lab.rows("a9a", 1500)
    epochs = 5 if lab.quick else 30
    table: list[list[Cell]] = []
    ends: dict[str, list[float]] = {"implicit": [], "explicit": []}
    curves = []
    for eta in STEPS:
        for kind, found in (
            ("implicit", _trace(lab, rows, "implicit", epochs, eta=eta)),
            ("explicit", _trace(lab, rows, "sgd", epochs, eta0=eta, learning_rate="constant")),
        ):
            ends[kind].append(float(np.median(found["excess"][-max(1, epochs // 4) :])))
            label = f"{kind}, eta = {eta:g}"
            curves.append(Curve(label, found["epochs"], found["excess"], kind == "explicit"))
        table.append([f"constant {eta:g}", ends["implicit"][-1], ends["explicit"][-1]])
    falling = [_trace(lab, rows, solver, epochs)["excess"][-1] for solver in ("implicit", "pegasos")]
    table.append(["1/(lam t)", *falling])
    cases = _cases(lab)
    panel = Panel(rows.name, "epochs", "P / P* - 1", curves, yscale="log")
    caption = "Implicit and explicit steps of constant length"
    return Report(
        (*_claims(ends), _three_cases(cases)),
        (
            Table(
                "The objective above the optimum in the end", ("step", "implicit", "explicit"), table, ENDS
            ),
            Table(
                f"{CHECKED:,} implicit steps by the lecture's three cases",
                ("case", "steps", "largest deviation from the lecture's formula"),
                cases,
            ),
        ),
        (Figure("vishwanathan-implicit-updates", caption, [panel]),),
        ("The lecture shows no figures for this; it states the update alone.",),
        lab.data,
    )


def _trace(lab: Lab, rows: Rows, solver: str, epochs: int, **options: Any) -> Trace:
    """How far the own point is above the optimum after every epoch."""
    optimum = lab.optimum(rows, C=C)
    key = {"implicit": rows.name, "rows": rows.n, "solver": solver, "epochs": epochs, **options}

    def measure() -> Trace:
        outcome = lab.own(
            rows,
            C=C,
            solver=solver,
            max_epochs=epochs,
            record_every=rows.n,
            duals=False,
            polish=0,
            **options,
        )
        records = certified(outcome)
        return {
            "epochs": [record.epochs for record in records],
            "excess": [record.current.primal / optimum - 1.0 for record in records],
        }

    found: Trace = lab.once(key, measure)
    return found


def _claims(ends: dict[str, list[float]]) -> tuple[Claim, Claim]:
    spread = {kind: max(values) / min(values) for kind, values in ends.items()}
    return (
        verdict_on(
            "(ours) implicit updates are never far worse than explicit ones, and better where steps are "
            "large",
            [ends["implicit"][-1] < ends["explicit"][-1], ends["implicit"][0] <= 1.5 * ends["explicit"][0]],
            f"largest step: {ends['implicit'][-1]:.3g} against {ends['explicit'][-1]:.3g} above the optimum",
        ),
        verdict_on(
            "(ours) implicit updates are less sensitive to the step",
            spread["implicit"] < spread["explicit"],
            f"worst over best: {spread['implicit']:.3g} implicit, {spread['explicit']:.3g} explicit",
        ),
    )


def _cases(lab: Lab) -> list[list[Cell]]:
    """Steps of the solver, row by row, beside the lecture's update; and whether its condition holds then."""
    X, y, _ = generated.simulated(CHECKED, seed=1)
    lab.given(Rows(f"simulated ({CHECKED} x 10)", X, y, "generated, for single steps"))
    lam, eta = 0.05, 0.1
    stream = Stream(lam, solver="implicit", eta=eta, classes=(-1.0, 1.0))
    w, mu = np.zeros(10), 1.0 / (1.0 + eta * lam)
    counts, worst = [0, 0, 0], [0.0, 0.0, 0.0]
    for x, label in zip(X, y, strict=True):
        stream.learn(x[None, :], np.array([label]))
        assert stream.state is not None
        after = stream.solver.model_of(stream.state)[0].copy()
        gamma = min(1.0, max(0.0, (1.0 + eta * lam - label * (w @ x)) / (eta * (x @ x))))
        case = 0 if gamma == 0.0 else 2 if gamma == 1.0 else 1
        margin = label * (after @ x)  # > 1, = 1 or < 1, which is what gamma rests on
        off = (
            max(0.0, 1.0 - margin)
            if case == 0
            else max(0.0, margin - 1.0)
            if case == 2
            else abs(margin - 1.0)
        )
        counts[case] += 1
        worst[case] = max(worst[case], float(np.abs(after - mu * (w + gamma * eta * label * x)).max()), off)
        w = after
    return [list(row) for row in zip(CASES, counts, worst, strict=True)]


def _three_cases(cases: list[list[Cell]]) -> Claim:
    return verdict_on(
        "the three cases of an implicit update for the hinge loss, and that its condition holds in each",
        [isinstance(worst, float) and worst <= 1e-12 for _, _, worst in cases],
        "; ".join(f"{case}: {count:,} steps, off by {worst:.1g} at most" for case, count, worst in cases),
    )
