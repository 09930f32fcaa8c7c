"""What the experiments of this paper share: a model a category, and the micro-averaged break-even point."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...api import fit
from ..lab import Lab
from ..report import Curve, Part
from ..sets import Rows
from . import reuters
from .reuters import Collection

ETA = 0.002
NOTHING = 0.5  # points that are no difference: a break-even point over 3,700 labels has an error of 0.6
CONSTANT = "augmented"  # a constant feature 1; without one all categories but the largest lose points


class Method(NamedTuple):
    """A solver with its options, as the figures call it."""

    label: str
    solver: str
    loss: str
    options: dict[str, Any]
    dashed: bool = False
    marker: str = ""


def sgd(label: str, loss: str, eta: float = ETA, *, averaged: bool = False, marker: str = "") -> Method:
    """SGD with a constant learning rate and without a regulariser; the mean is that of Algorithm 5.1."""
    options = {"eta0": eta, "learning_rate": "constant", "average": averaged, "weights": "simple"}
    return Method(label, "sgd", loss, options, averaged, marker)


@cache
def _loaded(quick: bool) -> Collection:
    return reuters.load(quick)


def collection(lab: Lab) -> Collection:
    """The documents, parsed once a process."""
    found = _loaded(lab.quick)
    lab.used[found.name] = found.note
    return found


class Levels(NamedTuple):
    """Break-even points by epoch, with a threshold for each category and with one for all."""

    epochs: list[float]
    each: list[float]
    pooled: list[float]

    def curve(self, method: Method) -> Curve:
        """As a line of a figure, in percent as the paper has it."""
        values = [100.0 * value for value in self.each]
        return Curve(method.label, self.epochs, values, method.dashed, method.marker)

    @property
    def best(self) -> tuple[float, float]:
        """The highest break-even point in percent, and its epoch."""
        place = int(np.argmax(self.each))
        return 100.0 * self.each[place], self.epochs[place]


def break_even(scores: Any, marks: Any) -> tuple[float, float]:
    """Micro-averaged break-even points: as many documents are accepted as there are in truth, by category or
    over all categories, so that precision equals recall.
    """
    right = 0
    for number in range(marks.shape[1]):
        wanted = int(marks[:, number].sum())
        if wanted:
            top = np.argsort(-scores[:, number], kind="stable")[:wanted]
            right += int(marks[top, number].sum())
    total = int(marks.sum())
    ranked = np.argsort(-scores.ravel(), kind="stable")[:total]
    return right / total, float(marks.ravel()[ranked].sum()) / total


def levels(
    lab: Lab, found: Collection, method: Method, epochs: int, *, bias: str = CONSTANT, seed: int = 0
) -> Levels:
    """Train a model for every category and score the test documents after every epoch."""
    key = {"zhang": found.name, "n": found.X.shape[0], "epochs": epochs, "bias": bias, "seed": seed}
    key |= {"solver": method.solver, "loss": method.loss, **method.options}

    def measure() -> dict[str, list[float]]:
        lab.tell(f"{found.name}: {method.label}, {epochs} epochs, bias {bias}")
        scores = np.full((epochs, *found.test_topics.shape), -np.inf)
        for category in range(len(found.categories)):
            if found.topics[:, category].any():  # without any, no document is accepted
                scores[:, :, category] = _scores(lab, found, method, category, epochs, bias, seed)
        pairs = [break_even(scores[epoch], found.test_topics) for epoch in range(epochs)]
        return {
            "epochs": [float(epoch) for epoch in range(1, epochs + 1)],
            "each": [pair[0] for pair in pairs],
            "pooled": [pair[1] for pair in pairs],
        }

    return Levels(**lab.once(key, measure))


def _scores(
    lab: Lab, found: Collection, method: Method, category: int, epochs: int, bias: str, seed: int
) -> Any:
    """Scores of the test documents after every epoch; a run that ends before keeps its last ones."""
    y = np.where(found.topics[:, category], 1.0, -1.0)
    kept: list[Any] = []

    def keep(point: Any) -> dict[str, float]:
        kept.append(found.test @ point.w + point.b)
        return {"kept": len(kept) - 1}

    outcome = fit(
        found.X,
        y,
        lam=0.0,
        loss=method.loss,
        solver=method.solver,
        bias=bias,
        tol=0.0,
        stall=None,
        output="last",
        max_epochs=epochs,
        record_every=y.size,
        measures=[keep],
        seed=seed,
        duals=False,
        polish=0,
        **method.options,
    )
    moments = [(record.epochs, record.measures["kept"]) for record in outcome.trace if record.measures]
    latest = [max(int(place) for when, place in moments if when <= epoch) for epoch in range(1, epochs + 1)]
    return np.stack([kept[place] for place in latest])


def sign(gain: float) -> Part:
    """Whether a gain in points of break-even is one."""
    return "tie" if abs(gain) <= NOTHING else gain > 0.0


def rows_of(found: Collection, category: int) -> Rows:
    """One category against the rest."""
    return Rows(found.name, found.X, np.where(found.topics[:, category], 1.0, -1.0))


def largest(found: Collection) -> Rows:
    """The largest category against the rest, under its name."""
    category = int(np.argmax(found.topics.sum(axis=0)))
    return rows_of(found, category)._replace(name=f"{found.name}, category {found.categories[category]}")


def longest(found: Collection) -> float:
    """The squared length of the longest document, M^2 of the theorems."""
    return float(np.max(found.X.multiply(found.X).sum(axis=1)))


def vacuous(bounds: Sequence[float]) -> str:
    """How many bounds of a mean hinge loss say less than that of w = 0."""
    above = sum(bound > 1.0 for bound in bounds)
    return f" (of their bounds {above} are above 1, the loss of w = 0, and test nothing)" if above else ""
