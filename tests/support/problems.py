"""Small generated problems. The numbers depend on the arguments only, so that a test can rely on them.

Whatever is drawn is drawn in the order of the code: rows, which entries stay, the model behind the targets,
noise, weights. What an argument switches off is not drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dualgap.core.bias import NoBias
from dualgap.core.losses import make_loss
from dualgap.core.problem import Problem
from dualgap.data.sources import view
from dualgap.solvers import SOLVERS, can_train

# solvers of the hinge loss; the others are for smooth losses from disk, or for joint problems of K classes
SINGLE_SCORE = [name for name, solver in SOLVERS.items() if can_train(solver, "hinge")]

Arrays = tuple[np.ndarray, np.ndarray]
Weights = Callable[[np.random.Generator, int], np.ndarray]


def signs(target: np.ndarray) -> np.ndarray:
    """Labels: +1 above 0, else -1."""
    return np.where(target > 0, 1.0, -1.0)


def mixed_weights(rng: np.random.Generator, n: int) -> np.ndarray:
    """Some rows absent, some double, some half."""
    return rng.choice([0.0, 1.0, 2.0, 0.5], size=n, p=[0.1, 0.6, 0.2, 0.1])


def whole_weights(rng: np.random.Generator, n: int) -> np.ndarray:
    """Some rows absent, some double."""
    return rng.choice([0.0, 1.0, 2.0], size=n, p=[0.1, 0.7, 0.2])


def gaussian_rows(rng: np.random.Generator, n: int, d: int, density: float | None = None) -> np.ndarray:
    """Standard normal entries, of which each stays with probability ``density``."""
    X = rng.normal(size=(n, d))
    return X if density is None else X * (rng.random((n, d)) < density)


def linear_targets(
    rng: np.random.Generator, X: np.ndarray, noise: float, intercept: float = 0.0
) -> np.ndarray:
    """A random linear function of the rows, with Gaussian noise."""
    target = X @ rng.normal(size=X.shape[1]) + intercept
    return target + noise * rng.normal(size=X.shape[0]) if noise else target


def linear_data(
    n: int, d: int, seed: int, *, noise: float = 1.0, density: float | None = None, regression: bool = False
) -> Arrays:
    """Gaussian rows with targets that a linear function almost tells: its signs, or its values."""
    rng = np.random.default_rng(seed)
    X = gaussian_rows(rng, n, d, density)
    target = linear_targets(rng, X, noise)
    return X, target if regression else signs(target)


def sparse_data(
    n: int, d: int, seed: int = 0, *, density: float = 0.5, noise: float = 0.0, regression: bool = False,
    empty_row: int | None = None, weights: tuple[float, ...] = (),
) -> tuple[Any, ...]:  # fmt: skip
    """Rows, targets and, if there are any to choose from, weights; the places of entries are drawn first."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < density, rng.standard_normal((n, d)), 0.0)
    if empty_row is not None:
        X[empty_row] = 0.0
    target = linear_targets(rng, X, noise)
    y = target if regression else signs(target)
    return (X, y, rng.choice(weights, size=n)) if weights else (X, y)


def off_centre(n: int = 60, d: int = 4, seed: int = 1) -> Arrays:
    """Rows around (1.5, ..., 1.5), two fifths of them positive: the intercept matters."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 1.5
    target = linear_targets(rng, X, 1.0)
    return X, signs(target - np.quantile(target, 0.6))


def noisy(seed: int, n: int = 120, d: int = 6, *, noise: float = 1.0, regression: bool = False) -> Arrays:
    """Gaussian rows whose targets depend on the first column and on noise that is as large, or larger."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    target = X[:, 0] + noise * rng.normal(size=n)
    return X, target if regression else signs(target)


def small_problem(
    loss: str = "hinge", *, n: int, d: int, lam: float, seed: int, bias: Any = None,
    density: float | None = None, largest: int | None = None, empty_row: bool = False,
    intercept: float = 0.0, noise: float = 0.5, weighted: bool = True, weights: Weights = mixed_weights,
    layout: Callable[[np.ndarray], Any] = np.asarray,
) -> Problem:  # fmt: skip
    """A problem in memory, of Gaussian entries or whole numbers up to ``largest``; row 0 may be empty."""
    rng = np.random.default_rng(seed)
    if largest is None:
        X = gaussian_rows(rng, n, d, density)
    else:
        X = rng.integers(-largest, largest + 1, size=(n, d)).astype(float)
    if empty_row:
        X[0] = 0.0
    target = linear_targets(rng, X, noise, intercept)
    chosen = make_loss(loss)
    y = signs(target) if chosen.task == "classification" else target
    weight = weights(rng, n) if weighted else np.ones(n)
    return Problem(view(layout(X), y, weight), chosen, lam, bias or NoBias())
