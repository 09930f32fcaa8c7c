"""Section 4: the constants A and B of seven losses, and which two of them are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..report import Claim, verdict_on

GRID = np.linspace(-20.0, 20.0, 40_001)  # of p, or of p y; y is 1, which loses nothing


class Loss(NamedTuple):
    """A loss and its slope at p where y = 1, with the paper's constants: slope^2 <= A loss + B."""

    value: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    A: float
    B: float


def smoothed(gamma: float) -> Loss:
    """The quadratically smoothed hinge."""

    def value(p: Any) -> Any:
        return np.where(
            p >= 1.0 - gamma, np.maximum(0.0, 1.0 - p) ** 2 / (2.0 * gamma), 1.0 - 0.5 * gamma - p
        )

    def slope(p: Any) -> Any:
        return np.where(p >= 1.0 - gamma, -np.maximum(0.0, 1.0 - p) / gamma, -1.0)

    return Loss(value, slope, 0.0, 1.0)


LOSSES = {
    "logistic": Loss(lambda p: np.logaddexp(0.0, -p), lambda p: -np.exp(-np.logaddexp(0.0, p)), 0.0, 1.0),
    "hinge": Loss(lambda p: np.maximum(0.0, 1.0 - p), lambda p: np.where(p < 1.0, -1.0, 0.0), 0.0, 1.0),
    "smoothed hinge": smoothed(1.0),
    "least squares": Loss(lambda p: (p - 1.0) ** 2, lambda p: 2.0 * (p - 1.0), 4.0, 0.0),
    "modified least squares": Loss(
        lambda p: np.maximum(0.0, 1.0 - p) ** 2, lambda p: -2.0 * np.maximum(0.0, 1.0 - p), 4.0, 0.0
    ),
    "Huber": Loss(
        lambda p: np.where(abs(p - 1.0) <= 1.0, (p - 1.0) ** 2, 2.0 * abs(p - 1.0) - 1.0),
        lambda p: np.clip(2.0 * (p - 1.0), -2.0, 2.0),
        0.0,
        4.0,
    ),
    "modified Huber": Loss(
        lambda p: np.where(p >= -1.0, np.maximum(0.0, 1.0 - p) ** 2, -4.0 * p),
        lambda p: np.where(p >= -1.0, -2.0 * np.maximum(0.0, 1.0 - p), -4.0),
        0.0,
        16.0,
    ),
}
ROUNDING = 1e-9


def claims() -> tuple[Claim, Claim]:
    """Both claims, on a grid."""
    kept = {
        name: bool(np.all(loss.slope(GRID) ** 2 <= loss.A * loss.value(GRID) + loss.B + ROUNDING))
        for name, loss in LOSSES.items()
    }
    two, other = LOSSES["modified Huber"].value(GRID), smoothed(2.0).value(GRID)
    apart = float(np.max(abs(two - 4.0 * other)))
    return (
        verdict_on(
            "the seven losses satisfy Assumption 4.1 with the constants A and B given (section 4)",
            list(kept.values()),
            f"on {GRID.size:,} points from {GRID[0]:g} to {GRID[-1]:g}: {sum(kept.values())} of {len(kept)}",
        ),
        verdict_on(
            "the modified Huber loss is equivalent to the smoothed hinge with gamma = 2 (section 4)",
            apart <= 1e-9,
            f"it is four times as large: four times the smoothed hinge differs from it by {apart:.1g} at "
            "most",
        ),
    )
