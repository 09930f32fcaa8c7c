"""Implicit against explicit updates: the objective by epochs at several constant steps, and at 1/(lam t)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lab import Lab
from ..report import Cell, Curve, Figure, Panel, Report, Table, verdict_on

STEPS = (0.01, 0.1, 1.0, 10.0)
C = 1.0


def run(lab: Lab) -> Report:
    """Both kinds of steps on Adult."""
    rows = lab.rows("a9a", 1500)
    optimum = lab.optimum(rows, C=C)
    epochs = 5 if lab.quick else 30

    def trace(solver: str, **options: Any) -> dict[str, list[float]]:
        key = {"implicit": rows.name, "rows": rows.n, "solver": solver, "epochs": epochs, **options}

        def measure() -> dict[str, list[float]]:
            outcome = lab.fit(
                rows,
                C=C,
                solver=solver,
                tol=0.0,
                stall=None,
                output="last",
                max_epochs=epochs,
                record_every=rows.n,
                duals=False,
                polish=0,
                **options,
            )
            records = [record for record in outcome.trace if record.kind == "certified"]
            return {
                "epochs": [record.epochs for record in records],
                "excess": [record.current.primal / optimum - 1.0 for record in records],
            }

        found: dict[str, list[float]] = lab.once(key, measure)
        return found

    table: list[list[Cell]] = []
    ends: dict[str, list[float]] = {"implicit": [], "explicit": []}
    curves = []
    for eta in STEPS:
        for kind, found in (
            ("implicit", trace("implicit", eta=eta)),
            ("explicit", trace("sgd", eta0=eta, learning_rate="constant")),
        ):
            ends[kind].append(float(np.median(found["excess"][-max(1, epochs // 4) :])))
            curves.append(
                Curve(f"{kind}, eta = {eta:g}", found["epochs"], found["excess"], kind == "explicit")
            )
        table.append([f"constant {eta:g}", ends["implicit"][-1], ends["explicit"][-1]])
    falling = [trace("implicit"), trace("pegasos")]
    table.append(["1/(lam t)", falling[0]["excess"][-1], falling[1]["excess"][-1]])
    spread = {kind: max(values) / min(values) for kind, values in ends.items()}
    claims = (
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
    return Report(
        claims,
        (Table("The objective above the optimum in the end", ("step", "implicit", "explicit"), table),),
        (
            Figure(
                "vishwanathan-implicit-updates",
                "Implicit and explicit steps of constant length",
                [Panel(rows.name, "epochs", "P / P* - 1", curves, yscale="log")],
            ),
        ),
        ("The lecture shows no figures for this; it states the update alone.",),
        lab.data,
    )
