"""Small functions of which losses are made."""

from __future__ import annotations

import math

from ...runtime.jit import kernel

INF = math.inf
TINY = 1e-300  # replaces a curvature of 0 (an empty row): the dual step then goes as far as its bounds


@kernel
def clip(value: float, low: float, high: float) -> float:
    """The point of [low, high] nearest to ``value``."""
    return min(max(value, low), high)


@kernel
def boxed(gradient: float, value: float, low: float, high: float) -> tuple[float, float]:
    """Left and right derivative at ``value`` of a function on [low, high] with that gradient."""
    return (-INF if value <= low else gradient), (INF if value >= high else gradient)


@kernel
def soft(value: float, threshold: float) -> float:
    """Soft thresholding: ``sign(value) max(|value| - threshold, 0)``."""
    return max(value - threshold, 0.0) - max(-value - threshold, 0.0)
