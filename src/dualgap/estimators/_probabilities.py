"""Probabilities of classes, for losses that have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..models.scoring import probabilities_of
from ..runtime.arrays import Floats

LOGISTIC, MULTINOMIAL, MODIFIED_HUBER = "logistic", "multinomial", "modified-huber"
PROBABILISTIC = (LOGISTIC, MULTINOMIAL, MODIFIED_HUBER)


def of_positive(loss: str, scores: Floats) -> Floats:
    """The probability of the positive class: 1 / (1 + exp(-s)) for the logistic loss, (clip(s, -1, 1) + 1) /
    2 for the modified Huber loss (Zhang 2004).
    """
    if loss == MODIFIED_HUBER:
        clipped: Floats = (np.clip(scores, -1.0, 1.0) + 1.0) / 2.0
        return clipped
    return probabilities_of(scores.reshape(-1))[:, 1].reshape(scores.shape)


def class_probabilities(loss: str, scores: Floats) -> Floats:
    """A column for each class. Those of one-against-rest models are divided by their sum, and alike where all
    are 0.
    """
    if loss == MULTINOMIAL and scores.ndim > 1:
        return probabilities_of(scores)
    positive = of_positive(loss, scores)
    if scores.ndim == 1:
        return np.stack([1.0 - positive, positive], axis=1)
    total = positive.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, positive / np.where(total > 0.0, total, 1.0), 1.0 / scores.shape[1])


def advice(loss: Any) -> str:
    """What to do for probabilities where the loss has none."""
    return (
        f"probability estimates are not available for loss={loss!r}; take loss='logistic', or calibrate: "
        "sklearn.calibration.CalibratedClassifierCV(estimator).fit(X, y)"
    )
