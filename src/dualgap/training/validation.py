"""Rows held out of training, and the loss of a model on them: what early stopping looks at.

A run on few passes over the data is regularised by that alone (Zhang, ICML 2004, section 5.2); how many are
best, rows that took no part in training can tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.bias import ExactBias
from ..core.losses import Loss
from ..core.problem import Point, Problem
from ..data.rows import take_rows
from ..data.sources import InMemory, in_memory
from ..runtime.errors import InputError


@dataclass(frozen=True, eq=False)
class Validation:
    """The mean loss on held-out rows."""

    source: InMemory
    loss: Loss

    def __call__(self, point: Point) -> float:
        """Of a model; not regularised."""
        return Problem(self.source, self.loss, 0.0, ExactBias()).evaluate(point._replace(beta=None)).primal


def split_off(source: InMemory, part: float, seed: int) -> tuple[InMemory, InMemory]:
    """The source without a random part of its rows, and that part."""
    if not 0.0 < part < 1.0:
        raise InputError(f"validation={part!r} must be a part of the rows between 0 and 1, or a pair (X, y)")
    count = round(part * source.n)
    if not 0 < count < source.n:
        raise InputError(
            f"validation={part!r} of {source.n} rows is {count} rows; at least one must be on either side"
        )
    order = np.random.default_rng(seed).permutation(source.n)
    return _take(source, np.sort(order[count:])), _take(source, np.sort(order[:count]))


def given(pair: Any, classes: Any, d: int) -> InMemory:
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
    source = in_memory(X, y)
    if source.d != d:
        raise InputError(f"validation X has {source.d} columns and X has {d}; they must be equally many")
    return source


def _take(source: InMemory, which: Any) -> InMemory:
    part = replace(
        source,
        rows=take_rows(source.rows, which),
        y=source.y[which],
        weight=source.weight[which],
        squared_norms=source.squared_norms[which],
    )
    if not part.weight.any():
        raise InputError(
            "validation leaves one side with rows of weight 0 only; choose another part or another seed"
        )
    return part
