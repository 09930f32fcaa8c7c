"""Measures of a classifier's scores, for targets of -1 and +1: what early stopping and ``evaluate`` share."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.arrays import Floats


def error_rate(y: Floats, scores: Floats, weight: Floats) -> float:
    """The share of all weight on rows that are predicted wrong; a positive score predicts +1."""
    wrong = (scores > 0.0) != (y > 0.0)
    return float(weight[wrong].sum() / weight.sum())


def class_error_rate(y: Floats, scores: Floats, weight: Floats) -> float:
    """The same for K scores a row, the highest of which predicts the class; y holds numbers of classes."""
    wrong = scores.argmax(axis=1) != y
    return float(weight[wrong].sum() / weight.sum())


def break_even(positive: Any, scores: Floats, weight: Floats | None = None) -> float:
    """Precision and recall where they are equal: where as many rows are taken as are positive.

    Of the rows taken, those of the highest scores, ``found`` are positive; linear between thresholds, so ties
    count in proportion. A row of weight 2 counts as two. NaN if no row is positive.
    """
    share = np.ones(scores.size) if weight is None else weight
    if not share[positive].any():
        return float("nan")
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), scores.size - 1)  # ties are taken together
    taken = np.append(0.0, np.cumsum(share[order])[ends])
    found = np.append(0.0, np.cumsum(np.where(positive, share, 0.0)[order])[ends])
    return float(np.interp(found[-1], taken, found) / found[-1])


def threshold_for(
    positive: Any,
    scores: Floats,
    weight: Floats | None = None,
    *,
    precision: float | None = None,
    recall: float | None = None,
) -> float:
    """The threshold above which scores count as positive: the break-even point, where as much is taken as is
    positive; or the lowest one with a precision of at least so much, or the highest one with such a recall.

    It lies midway between two scores. NaN if no row is positive or no threshold has the precision.
    """
    share = np.ones(scores.size) if weight is None else weight
    total = share[positive].sum()
    if not total:
        return float("nan")
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), scores.size - 1)  # ties are taken together
    taken = np.cumsum(share[order])[ends]
    found = np.cumsum(np.where(positive, share, 0.0)[order])[ends]
    if precision is not None:
        fitting = np.flatnonzero(found >= precision * taken)
        if not fitting.size:
            return float("nan")
        cut = fitting[-1]
    elif recall is not None:
        cut = np.flatnonzero(found >= recall * total)[0]
    else:
        cut = np.argmin(np.abs(taken - total))
    values = scores[order][ends]
    below = values[cut + 1] if cut + 1 < values.size else values[cut] - 2.0
    return float(0.5 * (values[cut] + below))
