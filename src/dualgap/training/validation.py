"""Early stopping: how well a model does on rows held out of training.

Stopping after few passes over the data regularises by itself (Zhang, ICML 2004, section 5.2). The number of
passes is chosen by rows that took no part in training: by the loss, the error or the break-even point on
them. Training rows and held-out rows are two
views of the same stored rows, each with weight 0 for the rows of the other: nothing is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.bias import ExactBias
from ..core.losses import JOINT
from ..core.measures import break_even, class_error_rate, error_rate
from ..core.problem import Point, make_problem
from ..data.sources import View
from ..runtime.errors import InputError

# by name: what messages call them. All of them are better the smaller they are.
METRICS = {
    "loss": "the loss",
    "error": "the error",
    "break-even": "1 - the break-even point",
}


@dataclass(frozen=True, eq=False)
class Validation:
    """A measure of models on held-out rows: the smaller, the better.

    ``metric`` is "loss" (the mean loss), "error" (the share of rows predicted wrong) or "break-even" (1 less
    the break-even point, where precision equals recall). The latter two are for classes; a break-even point
    is that of two of them. ``classes`` is K for a joint loss.
    """

    source: View
    loss: Any
    metric: str = "loss"
    classes: int | None = None

    def __post_init__(self) -> None:
        if self.metric == "break-even" and self.loss.task == JOINT:
            raise InputError("metric='break-even' is for a single score a row; stop by 'loss' or 'error'")
        if self.metric == "break-even" and not self.source.weight[self.source.y > 0.0].any():
            raise InputError(
                "metric='break-even': no held-out row is of the positive class; hold out others, or stop by "
                "'loss' or 'error'"
            )

    def __call__(self, point: Point) -> float:
        """The measure of the model ``(point.w, point.b)``."""
        problem = make_problem(self.source, self.loss, 0.0, ExactBias(), self.classes)
        if self.metric == "loss":
            mean: float = problem.mean_loss(point.w, point.b)
            return mean
        y, weight = self.source.y, self.source.weight
        scores = problem.evaluate(Point(point.w, point.b, None)).scores
        if not np.isfinite(scores).all():  # the run diverges: no model is worse
            return np.inf
        if self.metric == "error":
            return (error_rate if scores.ndim == 1 else class_error_rate)(y, scores, weight)
        return 1.0 - break_even(y > 0.0, scores, weight)


def split_off(source: View, part: float, seed: int) -> tuple[View, View]:
    """Views of the rows without a random part of them, and of that part."""
    if not 0.0 < part < 1.0:
        raise InputError(f"validation={part!r} must be a part of the rows between 0 and 1, or a pair (X, y)")
    count = round(part * source.n)
    if not 0 < count < source.n:
        raise InputError(
            f"validation={part!r} of {source.n} rows is {count} rows; at least one must be on either side"
        )
    order = np.random.default_rng(seed).permutation(source.n)
    held_out = np.zeros(source.n, dtype=bool)
    held_out[order[:count]] = True
    sides = [np.where(mask, source.weight, 0.0) for mask in (~held_out, held_out)]
    if not all(weight.any() for weight in sides):
        raise InputError(
            "validation leaves one side with rows of weight 0 only; choose another part or another seed"
        )
    return source.with_weight(sides[0]), source.with_weight(sides[1])
