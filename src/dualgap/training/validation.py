"""Early stopping: the mean loss on rows held out of training.

Stopping after few passes over the data regularises by itself (Zhang, ICML 2004, section 5.2). The number of
passes is chosen by the loss on rows that took no part in training. Training rows and held-out rows are two
views of the same stored rows, each with weight 0 for the rows of the other: nothing is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.bias import ExactBias
from ..core.losses import Loss
from ..core.problem import Point, Problem
from ..data.sources import View, view
from ..runtime.errors import InputError


@dataclass(frozen=True, eq=False)
class Validation:
    """The mean loss on held-out rows."""

    source: View
    loss: Loss

    def __call__(self, point: Point) -> float:
        """The mean loss of the model ``(point.w, point.b)``."""
        return Problem(self.source, self.loss, 0.0, ExactBias()).mean_loss(point.w, point.b)


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


def given(pair: Any, classes: Any, d: int) -> View:
    """Held-out rows from a pair (X, y), with the labels of the training rows."""
    try:
        X, y = pair
    except (TypeError, ValueError):
        raise InputError("validation must be a part of the rows between 0 and 1, or a pair (X, y)") from None
    if classes is not None:
        labels = np.asarray(y)
        if labels.ndim != 1:
            raise InputError(
                f"validation y has shape {labels.shape}; it must be one label a row, in one dimension"
            )
        strange = ~np.isin(labels, classes)
        if strange.any():
            bad = int(np.argmax(strange))
            raise InputError(f"validation y[{bad}] is {labels[bad]}, which is no class of the training rows")
        y = np.where(labels == classes[1], 1.0, -1.0)
    source = view(X, y)
    if source.d != d:
        raise InputError(f"validation X has {source.d} columns and X has {d}; they must be equally many")
    return source
