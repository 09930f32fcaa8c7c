"""Measures of how well a model does on labelled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..data.dataset import DataSpec, scan
from ..runtime.arrays import Floats
from ..runtime.errors import InputError

if TYPE_CHECKING:
    from .model import Model

SUMMARIES = {
    "accuracy": "share of rows predicted right",
    "error": "share of rows predicted wrong",
    "precision": "share of positive predictions that are right",
    "recall": "share of positive rows that are found",
    "f1": "harmonic mean of precision and recall",
    "break_even": "precision = recall, at the threshold where they meet",
    "auc": "area under the ROC curve",
    "mse": "mean squared error",
    "mae": "mean absolute error",
    "r2": "share of the variance that is explained",
}


class Measured(NamedTuple):
    """Measures by name, and the numbers of rows that they rest on."""

    rows: int
    positives: int  # rows of the positive class; for regression rows with a positive target
    values: dict[str, float]  # NaN where a measure is not defined


def measure(model: Model, spec: DataSpec) -> Measured:
    """Score all rows, in one pass of bounded memory, and compare with their labels."""
    schema = model.schema
    targets, scores = [np.zeros(0)], [np.zeros(0)]
    for table in scan(spec, schema):
        targets.append(schema.targets(table))
        scores.append(model.decision(table.X))
    y, found = np.concatenate(targets), np.concatenate(scores)
    if not y.size:
        raise InputError(f"{spec.X}: no rows in it, only blank lines or comments")
    values = regression(y, found) if model.classes is None else classification(y, found)
    return Measured(int(y.size), int((y > 0).sum()), values)


def classification(targets: Floats, scores: Floats) -> dict[str, float]:
    """Measures of scores for targets of -1 and +1; a positive score predicts +1."""
    positive, predicted = targets > 0, scores > 0
    hits = int((positive & predicted).sum())
    accuracy = float((positive == predicted).mean())
    precision = _ratio(hits, int(predicted.sum()))
    recall = _ratio(hits, int(positive.sum()))
    taken, found = _curve(positive, scores)
    return {
        "accuracy": accuracy,
        "error": 1.0 - accuracy,
        "precision": precision,
        "recall": recall,
        "f1": _ratio(2 * hits, int(predicted.sum() + positive.sum())),
        "break_even": _break_even(taken, found),
        "auc": _area(taken, found),
    }


def regression(targets: Floats, scores: Floats) -> dict[str, float]:
    """Measures of predictions for any targets."""
    residual = targets - scores
    spread = float(((targets - targets.mean()) ** 2).sum())
    return {
        "mse": float((residual**2).mean()),
        "mae": float(abs(residual).mean()),
        "r2": 1.0 - _ratio(float((residual**2).sum()), spread),
    }


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def _curve(positive: Any, scores: Floats) -> tuple[Floats, Floats]:
    """For every threshold: how many rows are predicted positive, and how many of them are positive."""
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), scores.size - 1)  # ties are taken together
    return np.append(0.0, ends + 1.0), np.append(0.0, np.cumsum(positive[order])[ends])


def _break_even(taken: Floats, found: Floats) -> float:
    """Precision found/taken equals recall found/positives where taken = positives; linear between
    thresholds.
    """
    return _ratio(float(np.interp(found[-1], taken, found)), float(found[-1]))


def _area(taken: Floats, found: Floats) -> float:
    return _ratio(float(np.trapezoid(found, taken - found)), float(found[-1] * (taken[-1] - found[-1])))
