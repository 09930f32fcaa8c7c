"""Small functions of which losses are made.

Conditional expressions: Numba compiles them several times as fast as ``min`` and ``max``, to the same code.
"""

from __future__ import annotations

import math

from ...runtime.jit import inner

INF = math.inf
TINY = 1e-300  # replaces a curvature of 0 (an empty row): the dual step then goes as far as its bounds


@inner
def clip(value: float, low: float, high: float) -> float:
    """The point of [low, high] nearest to ``value``."""
    return low if value < low else high if value > high else value


@inner
def boxed(gradient: float, value: float, low: float, high: float) -> tuple[float, float]:
    """Left and right derivative at ``value`` of a function on [low, high] with that gradient."""
    return (-INF if value <= low else gradient), (INF if value >= high else gradient)


@inner
def soft(value: float, threshold: float) -> float:
    """Soft thresholding: ``sign(value) max(|value| - threshold, 0)``."""
    up, down = value - threshold, -value - threshold
    return (0.0 if up < 0.0 else up) - (0.0 if down < 0.0 else down)
