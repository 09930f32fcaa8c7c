"""What the experiments of this paper share: its data sets, its algorithms, and curves of their own points.

All of them have lam = 1/n, no bias, and the hinge loss in every objective, also where ``asdca`` trains with a
smooth version of it (gamma = 1, as in section 2.5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import generated
from ..lab import Lab, certified
from ..report import Curve
from ..sets import Rows

SIMULATED, SKIN = "simulated", "skin"
GENOMIC, AS_MEASURED = "genomic-like, unit rows (generated)", "genomic-like, as measured (generated)"
WINDOW = 11  # records at least, over which a run has to stay near what it tends to
SETTLED = (
    "Counted is the first iteration within it from which the median of the next hundredth of the run "
    f"({WINDOW} "
    "records at least) is within it too: curves wiggle, and a dip is not counted."
)
TRAINING = 1000  # rows of the simulated set, of which as many again are held out


class Algorithm(NamedTuple):
    """A solver with its options, as the paper calls it."""

    label: str
    solver: str
    options: dict[str, Any]
    batch: int = 1  # rows a step


def algorithms(batch: int) -> list[Algorithm]:
    """The four vanilla versions of section 4.2."""
    return [
        Algorithm("SDCA", "sdca", {"order": "random"}),
        Algorithm("PEGASOS", "pegasos", {}),
        Algorithm("ASDCA", "asdca", {"m": batch, "gamma": "1"}, batch),
        Algorithm("mini-batch PEGASOS", "pegasos", {"k": batch, "sampling": "distinct"}, batch),
    ]


def simulated(lab: Lab) -> tuple[Rows, Rows, Any]:
    """Training rows, held-out rows, and the vector behind their labels."""
    n = 400 if lab.quick else TRAINING
    X, y, beta = generated.simulated(2 * n, seed=0)
    name = f"simulated ({n} x 10)"
    note = "labels by the sign of <beta, x> plus Gaussian noise; as many rows again held out"
    return lab.given(Rows(name, X[:n], y[:n], note)), Rows(name, X[n:], y[n:]), beta


def _genes(lab: Lab) -> tuple[Any, Any, str]:
    """Generated gene expressions and the shape to call them by."""
    n, d = (60, 400) if lab.quick else (184, 4654)
    X, y = generated.genomic_like(n, d)
    return X, y, f"{n} x {d:,}"


def genomic(lab: Lab) -> Rows:
    """A stand-in for the 184 x 4,654 genes, whose labelled part cannot be had whole: rows of length 1.

    At lam = 1/n a row's step is |x|^2 long: as measured, with |x|^2 of some 280,000, no algorithm gets near
    the optimum in the epochs of the figures (`genomic_as_measured`).
    """
    X, y, shape = _genes(lab)
    X = X - X.mean(axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    note = "generated log-expressions in the place of the paper's genes, columns centred, rows of length 1"
    return lab.given(Rows(f"genomic-like ({shape}, unit rows)", X, y, note))


def genomic_as_measured(lab: Lab) -> Rows:
    """The same genes on the scale on which they come."""
    X, y, shape = _genes(lab)
    size = (X * X).sum(axis=1).mean()
    note = f"the same generated log-expressions, neither centred nor scaled (|x|^2 of {size:,.0f})"
    return lab.given(Rows(f"genomic-like ({shape}, as measured)", X, y, note))


def skin(lab: Lab) -> Rows:
    """The Skin Segmentation set, 245,057 x 3, raw values from 0 to 255."""
    return lab.rows("skin", 4000)


class Run(NamedTuple):
    """The objective of an algorithm's own point, step by step."""

    label: str
    iterations: list[float]  # steps, each of one batch
    primal: list[float]  # of the point that the algorithm would return, in mean form
    coef: list[float]  # in the end

    def excess(self, optimum: float) -> list[float]:
        """Relative to the optimum, from below by its certificate."""
        return [max(value / optimum - 1.0, 1e-12) for value in self.primal]

    def reaches(self, optimum: float, accuracy: float) -> float:
        """The first iteration within an accuracy of the optimum; inf if there is none."""
        places = zip(self.iterations, self.excess(optimum), strict=True)
        return next((iteration for iteration, excess in places if excess <= accuracy), math.inf)

    def settles(self, optimum: float, accuracy: float) -> float:
        """The first iteration within an accuracy that is no dip: the median of the records that follow, a
        hundredth of the run, is within it too; inf if there is none.
        """
        excess = np.array(self.excess(optimum))
        window = max(WINDOW, excess.size // 100)
        for place in np.flatnonzero(excess[: excess.size - window + 1] <= accuracy):
            if np.median(excess[place : place + window]) <= accuracy:
                return self.iterations[place]
        return math.inf

    def level(self, optimum: float, at: float = math.inf) -> float:
        """Where it is at an iteration, or in the end: the median excess of the quarter of the run before, as
        the curves wiggle.
        """
        until = [e for t, e in zip(self.iterations, self.excess(optimum), strict=True) if t <= at]
        return float(np.median(until[-max(1, len(until) // 4) :]))


def limit(lab: Lab, rows: Rows, algorithm: Algorithm, lam: float | None = None) -> float:
    """What an algorithm's hinge objective tends to: the optimum, or for ``asdca``, which minimises a smooth
    loss, the hinge objective at the minimum of that.
    """
    strength = 1.0 / rows.n if lam is None else lam
    optimum = lab.optimum(rows, lam=strength)
    if algorithm.solver != "asdca":
        return optimum

    def measure() -> float:
        w = lab.fit(rows, lam=strength, loss="smooth-hinge", tol=1e-6, max_epochs=None).coef
        losses = np.maximum(0.0, 1.0 - rows.y * (rows.X @ w))
        return float(0.5 * strength * (w @ w) + losses.mean())

    return float(lab.once({"smooth limit": rows.name, "rows": rows.n, "lam": strength}, measure))


def run(
    lab: Lab,
    rows: Rows,
    algorithm: Algorithm,
    *,
    epochs: float,
    every: int = 1,
    lam: float | None = None,
    seed: int = 0,
) -> Run:
    """Train and keep the objective of the own point after every so many steps."""
    strength = 1.0 / rows.n if lam is None else lam
    key = {
        "trace": rows.name,
        "rows": rows.n,
        "solver": algorithm.solver,
        **algorithm.options,
        "epochs": epochs,
        "every": every,
        "lam": strength,
        "seed": seed,
    }

    def measure() -> dict[str, list[float]]:
        polish = {"polish": 0} if algorithm.solver == "pegasos" else {}  # nobody looks at its lower bound
        outcome = lab.own(
            rows,
            lam=strength,
            solver=algorithm.solver,
            max_epochs=epochs,
            record_every=every * algorithm.batch,
            seed=seed,
            **polish,
            **algorithm.options,
        )
        records = certified(outcome)
        return {
            "iterations": [record.visits / algorithm.batch for record in records],
            "primal": [record.current.primal for record in records],
            "coef": outcome.coef.tolist() if outcome.coef.size <= 10 else [],
        }

    return Run(algorithm.label, **lab.once(key, measure))


def count(iterations: float) -> int | str:
    """A number of iterations as a table has it."""
    return "not reached" if math.isinf(iterations) else round(iterations)


def curves(runs: Sequence[Run], optimum: float | None = None, per: float = 1.0) -> list[Curve]:
    """The runs as curves of the objective, or of how far it is above the optimum."""
    return [
        Curve(
            one.label,
            [i / per for i in one.iterations],
            one.primal if optimum is None else one.excess(optimum),
        )
        for one in runs
    ]
