"""scikit-learn's linear models; values are tolerances for LinearSVC and lsqr, numbers of iterations for the
others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Fitted

_MANY = 1_000_000  # iterations that no run reaches: its tolerance or the time limit ends it


def version() -> str:
    """What is installed."""
    import sklearn

    return f"scikit-learn {sklearn.__version__}"


def prepare(X: Any, y: Any) -> Any:
    """The arrays as they are; what ``fit`` converts is in its own time."""
    return X, y


def train(data: Any, loss: str, C: float, arm: str, value: float, threads: int, limit: float | None) -> Any:
    """``fit`` of the estimator that the arm names."""
    X, y = data
    return _estimator(arm, loss, C, value, X.shape[0]).fit(X, y)


def fitted(model: Any) -> Fitted:
    """Coefficients and iterations."""
    count = getattr(model, "n_iter_", None)
    return Fitted(np.ravel(model.coef_), 0.0, None if count is None else float(np.max(count)))


def _estimator(arm: str, loss: str, C: float, value: float, n: int) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
    from sklearn.svm import LinearSVC

    common = {"fit_intercept": False, "random_state": 0}
    if arm in ("dual", "primal"):
        name = {"hinge": "hinge", "squared-hinge": "squared_hinge"}[loss]
        return LinearSVC(C=C, loss=name, dual=arm == "dual", tol=value, max_iter=_MANY, **common)
    if arm in ("sgd", "asgd"):
        rate = 1.0 / (C * n)
        return SGDClassifier(
            loss="hinge", alpha=rate, max_iter=int(value), tol=None, average=arm == "asgd", **common
        )
    if arm in ("lbfgs", "newton-cg"):
        return LogisticRegression(C=C, solver=arm, tol=1e-12, max_iter=int(value), **common)
    if arm == "sag":
        return Ridge(alpha=0.5 / C, solver="sag", tol=1e-12, max_iter=int(value), **common)
    return Ridge(alpha=0.5 / C, solver="lsqr", tol=value, max_iter=_MANY, **common)
