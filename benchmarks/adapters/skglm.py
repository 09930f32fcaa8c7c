"""skglm: its LinearSVC (the value is a tolerance), and L-BFGS for the logistic loss (a number of
iterations).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from . import Fitted


def version() -> str:
    """What is installed."""
    import skglm

    return f"skglm {skglm.__version__}"


def prepare(X: Any, y: Any) -> Any:
    """The arrays as they are."""
    return X, y


def train(data: Any, loss: str, C: float, arm: str, value: float, threads: int, limit: float | None) -> Any:
    """Train; L-BFGS wants columns."""
    import skglm

    X, y = data
    if arm == "svc":
        return skglm.LinearSVC(C=C, tol=value, max_iter=10_000, fit_intercept=False).fit(X, y)
    columns = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
    penalty = skglm.penalties.L2(1.0 / (C * X.shape[0]))
    solver = skglm.solvers.LBFGS(max_iter=int(value), tol=1e-12)
    return solver.solve(columns, y, skglm.datafits.Logistic(), penalty)


def fitted(model: Any) -> Fitted:
    """An estimator, or the triple that a solver of skglm returns. Its iterations are no passes over the
    data.
    """
    return Fitted(np.ravel(model[0] if isinstance(model, tuple) else model.coef_))
