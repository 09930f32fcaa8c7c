"""The objective, computed in one place for every solver and peer: plain NumPy, and no code of the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "hinge": lambda y, score: np.maximum(0.0, 1.0 - y * score),
    "squared-hinge": lambda y, score: np.maximum(0.0, 1.0 - y * score) ** 2,
    "logistic": lambda y, score: np.logaddexp(0.0, -y * score),
    "squared": lambda y, score: (score - y) ** 2,
}


def objective(X: Any, y: Any, w: Any, b: float, loss: str, C: float) -> float:
    """``J = 1/2 |w|^2 + C sum_i phi(<w, x_i> + b, y_i)`` in float64, summed in extended precision."""
    w = np.asarray(w, dtype=np.float64)
    values = LOSSES[loss](y, X @ w + b)
    return 0.5 * float(w @ w) + C * float(np.sum(values, dtype=np.longdouble))
