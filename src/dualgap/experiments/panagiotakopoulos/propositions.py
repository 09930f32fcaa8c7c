"""Propositions 1 and 2: the norm of SGD's vector, and the lower bound after complete epochs, as they grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..lab import Lab
from ..report import Cell, Claim, Curve, Figure, Panel, Part, Report, Table, sooner, verdict_on
from ..sets import Rows

C = 1.0
EPOCHS = 100


def run(lab: Lab) -> Report:
    """SGD-s and SGD-m on the paper's own sets."""
    epochs = 10 if lab.quick else EPOCHS
    table: list[list[Cell]] = []
    panels = []
    inside: list[bool] = []
    below: list[bool] = []
    shrinking: list[bool] = []
    slower: list[Part] = []
    weaker: list[tuple[str, float, float]] = []  # the largest norm of w, and R / lam
    for name in ("a9a", "w8a"):
        rows = lab.rows(name, 500)
        optimum = lab.optimum(rows, C=C)
        bound = float(np.sqrt(C * rows.n))  # 1 / sqrt(lam)
        curves, sizes = [], []
        for solver in ("sgd-s", "sgd-m"):
            found = _traced(lab, rows, solver, epochs)
            norms, J, L = found["norm"], found["J"], found["L"]
            gaps = [j / lower - 1.0 for j, lower in zip(J, L, strict=True) if lower > 0.0]
            inside.append(norms[0] <= bound)
            weaker.append((f"{rows.name}, {solver}", max(norms), longest(rows) * C * rows.n))
            below.append(max(L) <= optimum * (1.0 + 1e-6))
            shrinking.append(gaps[-1] < gaps[0])
            table.append([rows.name, solver, norms[0], norms[-1], bound, max(L) / optimum, gaps[0], gaps[-1]])
            x = [float(epoch) for epoch in range(1, len(J) + 1)]
            sizes.append(Curve(solver, x, norms))
            curves.append(Curve(f"{solver}: J / J* - 1", x, [max(j / optimum - 1.0, 1e-9) for j in J]))
            curves.append(Curve(f"{solver}: 1 - L / J*", x, [1.0 - lower / optimum for lower in L], True))
        single, multiple = (float(str(row[-1])) for row in table[-2:])
        slower.append(sooner(single, multiple))
        panels.append(Panel(rows.name, "epochs", "distance from the optimum", curves, "log", "log"))
        levels = {"1/sqrt(lam)": bound}
        panels.append(Panel(rows.name, "epochs", "norm of w", sizes, "log", "log", levels))
    claims = _claims(table, inside, below, shrinking, slower, weaker)
    header = ("data", "solver", "norm of w after an epoch", "in the end", "1/sqrt(lam)", "largest L / J*")
    return Report(
        claims,
        (
            Table(
                f"{epochs} epochs, C = {C:g}",
                (*header, "gap after an epoch", "in the end"),
                table,
            ),
        ),
        (
            Figure(
                "panagiotakopoulos-propositions",
                "Both bounds and the norms of SGD-s and SGD-m by epoch",
                panels,
            ),
        ),
        (),
        lab.data,
    )


def longest(rows: Rows) -> float:
    """The length of the longest row, R."""
    X = sp.csr_matrix(rows.X)
    return float(np.sqrt(X.multiply(X).sum(axis=1).max()))


def _traced(lab: Lab, rows: Rows, solver: str, epochs: int) -> dict[str, list[float]]:
    """Norm, J and L of the own point after every epoch."""

    def norm(point: Any) -> dict[str, float]:
        return {"norm": float(np.linalg.norm(point.w))}

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
            measures=[norm],
        )
        records = [r for r in outcome.trace if r.kind == "certified" and r.epochs >= 1.0]
        return {
            "norm": [record.measures["norm"] for record in records],
            "J": [record.current.primal for record in records],
            "L": [record.current.dual for record in records],
        }

    key = {"propositions": rows.name, "rows": rows.n, "solver": solver, "epochs": epochs, "C": C}
    found: dict[str, list[float]] = lab.once(key, measure)
    return found


def _claims(
    table: list[list[Cell]],
    inside: list[bool],
    below: list[bool],
    shrinking: list[bool],
    slower: list[Part],
    weaker: list[tuple[str, float, float]],
) -> tuple[Claim, ...]:
    return (
        verdict_on(
            "|w| <= 1/sqrt(lam) is achieved without a projection, almost always after one pass",
            inside,
            "; ".join(f"{row[0]}, {row[1]}: {row[2]:.3g} of {row[4]:.3g}" for row in table),
        ),
        verdict_on(
            "|w| <= R/lam at all times, R being the length of the longest row (the weaker bound from (8))",
            [largest <= bound for _, largest, bound in weaker],
            "after every epoch; " + "; ".join(f"{name}: at most {a:.3g} of {b:.3g}" for name, a, b in weaker),
        ),
        verdict_on(
            "after complete epochs the dual variables are feasible: L is a lower bound of the optimum",
            below,
            "; ".join(f"{row[0]}, {row[1]}: L is at most {row[5]:.4f} of the optimum" for row in table),
        ),
        verdict_on(
            "the gap between J and L vanishes in the course of the epochs",
            shrinking,
            "; ".join(f"{row[0]}, {row[1]}: {row[6]:.3g} to {row[7]:.3g}" for row in table),
        ),
        verdict_on(
            "multiple updates make L grow more slowly: SGD-m needs more epochs than SGD-s to the same gap",
            slower,
            "; ".join(f"{row[0]}, {row[1]}: a gap of {row[7]:.3g} in the end" for row in table),
        ),
    )
