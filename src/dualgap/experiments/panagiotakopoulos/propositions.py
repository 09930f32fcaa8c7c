"""Propositions 1 to 3: the norm of SGD's vector, the lower bound after complete epochs, multiple updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ...solvers.primal.growing_margin import margin_errors
from .. import generated
from ..lab import Lab, certified
from ..report import Cell, Claim, Curve, Figure, Panel, Part, Report, Table, sooner, verdict_on
from ..sets import Rows

C = 1.0
EPOCHS = 100
DRAWS = 10_000  # of Proposition 3
COMPARED = 2000  # steps of SGD-r in both of its forms
LIMIT = 10_000  # epochs that stand for infinity


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
    limits = _limits(lab)
    caption = "Both bounds and the norms of SGD-s and SGD-m by epoch"
    return Report(
        (
            *_claims(table, inside, below, shrinking, slower, weaker),
            _presentations(),
            _in_the_limit(limits),
            *_drawn(lab),
        ),
        (Table(f"{epochs} epochs, C = {C:g}", HEADER, table), Table(SHARES, BY_ROW, limits, ROWS)),
        (Figure("panagiotakopoulos-propositions", caption, panels),),
        (),
        lab.data,
    )


HEADER = (
    *("data", "solver", "norm of w after an epoch", "in the end", "1/sqrt(lam)", "largest L / J*"),
    *("gap after an epoch", "in the end"),
)
SHARES = f"SGD-s, C = {C:g}: the share T_k / T of epochs in which a row is a margin error, mean over rows"
BY_ROW = ("data", "T", "rows at C", "rows at 0", "rows at 0 with T_k / T < 0.01")
ROWS = (
    "At C, at 0: rows that are so at the optimum, with a margin that is off 1 by more than 0.01. The last "
    "column is the share of those at 0 that are nearly there."
)


def _presentations() -> Claim:
    """Proposition 3 against presentations one by one, on numbers that floats hold exactly (eighths)."""
    rng = np.random.default_rng(0)
    right = 0
    for _ in range(DRAWS):
        P, lam, q = rng.integers(-80, 81) / 8, rng.integers(1, 17) / 8, rng.integers(0, 41) / 8
        times = int(rng.integers(1, 10))
        value, found = P, 0
        for _ in range(times):
            if value <= 0.0:  # a.y <= lam t: a margin error
                value, found = value + q, found + 1
            value -= lam
        right += found == margin_errors(float(P), times, float(lam), float(q))
    return verdict_on(
        "Proposition 3 (13): how many of l repeated presentations of a row are margin errors",
        right == DRAWS,
        f"the formula counts as presentations one by one do in {right:,} of {DRAWS:,} random cases",
    )


def _limits(lab: Lab) -> list[list[Cell]]:
    """T_k / T by what a row is at the optimum, for more and more epochs."""
    rows = lab.rows("a9a", 500)
    epochs = (2, 8) if lab.quick else (10, 100, 1000, LIMIT)

    def measure() -> list[list[float]]:
        exact = lab.fit(rows, C=C, tol=1e-5, max_epochs=None)
        margins = rows.y * (rows.X @ exact.coef)
        outside, inside = margins > 1.01, margins < 0.99

        def shares(point: Any) -> dict[str, float]:
            share = np.abs(point.beta)  # T_k / T
            near = float(np.mean(share[outside] < 0.01))
            return {"C": float(share[inside].mean()), "0": float(share[outside].mean()), "near": near}

        outcome = lab.own(
            rows,
            C=C,
            solver="sgd-s",
            max_epochs=epochs[-1],
            record_every=epochs[0] * rows.n,
            measures=[shares],
        )
        records = {record.epochs: record.measures for record in certified(outcome)}
        return [[float(T), *records[T].values()] for T in epochs]

    found = lab.once({"T_k": rows.name, "rows": rows.n, "epochs": epochs}, measure)
    return [[rows.name, round(T), *shares] for T, *shares in found]


def _in_the_limit(table: list[list[Cell]]) -> Claim:
    first, last = table[0], table[-1]
    at_C = [1.0 - float(str(row[2])) for row in (first, last)]
    at_0 = [float(str(row[3])) for row in (first, last)]
    return verdict_on(
        "T_k / T tends to 1 or 0 for rows that stay margin errors, or never are again (here: the distance "
        "falls to a third at least)",
        [3.0 * pair[1] <= pair[0] for pair in (at_C, at_0)] if last[1] == LIMIT else None,
        f"from {first[1]:,} to {last[1]:,} epochs: 1 - T_k / T of rows at C from {at_C[0]:.3g} to "
        f"{at_C[1]:.3g}, T_k / T of rows at 0 from {at_0[0]:.3g} to {at_0[1]:.3g} (means)",
    )


def _drawn(lab: Lab) -> tuple[Claim, Claim]:
    """SGD-r in both of its forms on simulated rows: w by (1) to (3), a by (5) to (7); and the counts of
    margin errors, which are the dual variables in units of C / T.
    """
    X, y, _ = generated.simulated(300, seed=2)
    Y, n = X * y[:, None], len(y)
    lam, rng = 1.0 / (C * n), np.random.default_rng(0)
    looks = (10, 100) if lab.quick else (10, 100, 1000)
    w, a, counts = np.zeros(Y.shape[1]), np.zeros(Y.shape[1]), np.zeros(n)
    off, beyond = 0.0, {}
    for t in range(looks[-1] * n):
        k = int(rng.integers(n))
        error = bool(a @ Y[k] <= lam * t)
        if t < COMPARED:
            step = 1.0 / (lam * (t + 1)) if w @ Y[k] <= 1.0 else 0.0
            w = t / (t + 1) * w + step * Y[k]
        if error:
            a, counts[k] = a + Y[k], counts[k] + 1
        if t < COMPARED:
            here = a / (lam * (t + 1))
            off = max(off, float(np.linalg.norm(w - here)) / max(float(np.linalg.norm(here)), 1.0))
        if (t + 1) % n == 0 and (t + 1) // n in looks:
            T = (t + 1) // n
            beyond[T] = max(0.0, float(counts.max()) / T - 1.0)
    first, last = beyond[looks[0]], beyond[looks[-1]]
    return (
        verdict_on(
            "the updates (1) to (3) of w and (5) to (7) of a = lam t w are the same",
            off <= 1e-9,
            f"{COMPARED:,} steps on simulated rows: w and a / (lam t) differ by {off:.1g} of their length "
            "at most",
        ),
        verdict_on(
            "rows drawn at random: the dual variables are expected to satisfy the box constraints in the "
            "limit "
            "(footnote 4; here: what is beyond them falls to a third at least)",
            3.0 * last <= first,
            "the largest dual variable is above C by "
            + ", ".join(f"{share:.2g} of C after {T:,} epochs" for T, share in beyond.items()),
        ),
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
        outcome = lab.own(
            rows,
            C=C,
            solver=solver,
            max_epochs=epochs,
            record_every=rows.n,
            measures=[norm],
        )
        records = [record for record in certified(outcome) if record.epochs >= 1.0]
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
            "; ".join(f"{row[0]}, {row[1]}: {row[2]:.3g} of {row[4]:.3g}" for row in table)
            + "; bound (8), which is larger where R^2 > lam as here, follows",
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
