"""All estimators, and small data for them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import is_classifier

import dualgap.estimators

ESTIMATORS: dict[str, Any] = {name: getattr(dualgap.estimators, name) for name in dualgap.estimators.__all__}
CLASSIFIERS = [name for name, cls in ESTIMATORS.items() if is_classifier(cls())]
REGRESSORS = [name for name in ESTIMATORS if name not in CLASSIFIERS]
STREAMING = ["LinearClassifier", "LinearRegressor", "Perceptron", "SGDClassifier", "SGDRegressor"]
N, D = 60, 4


def rows(seed: int = 0, n: int = N) -> Any:
    """Rows off centre, so that an intercept matters."""
    return np.random.default_rng(seed).normal(size=(n, D)) + 0.3


def labels(X: Any, classes: int = 2, seed: int = 1) -> Any:
    """Classes that overlap."""
    noise = np.random.default_rng(seed).normal(size=X.shape[0])
    return np.digitize(X @ np.arange(1.0, D + 1.0) / 3.0 + noise, np.linspace(-0.5, 2.5, classes - 1))


def targets(X: Any, seed: int = 1) -> Any:
    """Numbers around a linear function."""
    return X @ np.arange(1.0, D + 1.0) + 2.0 + np.random.default_rng(seed).normal(size=X.shape[0])


def data_for(name: str, classes: int = 2) -> tuple[Any, Any]:
    """Rows, and labels or targets."""
    X = rows()
    return X, labels(X, classes) if name in CLASSIFIERS else targets(X)


def made(name: str, **parameters: Any) -> Any:
    """An estimator with those of the parameters that it has."""
    known = inspect.signature(ESTIMATORS[name]).parameters
    return ESTIMATORS[name](**{key: value for key, value in parameters.items() if key in known})


def parameters_of(name: str) -> list[str]:
    return list(inspect.signature(ESTIMATORS[name]).parameters)
