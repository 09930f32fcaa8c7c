"""Generated data that several tests train on."""

from __future__ import annotations

import numpy as np


def noisy(seed: int, n: int = 120, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian rows whose labels depend on the first column and on noise as large as it is."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sign(X[:, 0] + rng.normal(size=n))
