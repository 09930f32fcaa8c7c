"""Snap ML; the value is the number of epochs."""

from __future__ import annotations

from importlib.metadata import version as installed
from typing import Any

import numpy as np

from . import Fitted


def version() -> str:
    """What is installed."""
    return f"snapml {installed('snapml')}"


def prepare(X: Any, y: Any) -> Any:
    """The arrays as they are; what ``fit`` converts is in its own time."""
    return X, y


def train(data: Any, loss: str, C: float, arm: str, value: float, threads: int, limit: float | None) -> Any:
    """``fit`` of the estimator for the loss."""
    import snapml

    X, y = data
    options = {
        "max_iter": int(value),
        "tol": 0.0,
        "n_jobs": threads,
        "fit_intercept": False,
        "random_state": 0,
    }
    if loss == "logistic":
        model = snapml.LogisticRegression(regularizer=1.0 / C, dual=True, **options)
    elif loss == "squared":
        model = snapml.LinearRegression(regularizer=0.5 / C, dual=True, **options)
    else:
        model = snapml.SupportVectorMachine(regularizer=1.0 / C, loss=loss.replace("-", "_"), **options)
    return model.fit(X, y)


def fitted(model: Any) -> Fitted:
    """Coefficients and epochs."""
    return Fitted(np.ravel(model.coef_), 0.0, float(np.max(model.n_iter_)))
