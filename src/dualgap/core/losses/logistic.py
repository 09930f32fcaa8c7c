"""The logistic loss, and its dual step by Newton's method."""

from __future__ import annotations

# mypy: disable-error-code="misc"
# (mypy knows no plain class attributes in a NamedTuple; Python does)
import math
from typing import NamedTuple

from ...runtime.jit import inner
from .contract import loss_type
from .functions import INF, TINY, boxed, clip


@inner
def log1p(x: float) -> float:
    """``ln(1 + x)`` for x from -1 to 1 within a few rounding errors, in less than the C library's time.

    1 + x is off by a rounding error r, which is x - (u - 1) exactly; ``ln(u + r) = ln(u) + r / u``, and where
    r is not 0 the difference between r / u and r is below a rounding error of x.
    """
    u = 1.0 + x
    return math.log(u) + (x - (u - 1.0))


@inner
def sigmoid(z: float) -> float:
    """``1 / (1 + exp(-z))`` without overflow, and without a branch: signs of scores cannot be foreseen."""
    e = math.exp(-abs(z))
    return (1.0 if z >= 0.0 else e) / (1.0 + e)


@inner
def logistic_dual(margin: float, a: float, curvature: float) -> float:
    """Maximise ``-a' ln a' - (1 - a') ln(1 - a') - margin a' - curvature/2 (a' - a)^2`` over a' in [0, 1].

    With ``a' = sigmoid(-z)`` the stationary point is the root of ``h(z) = z - margin - curvature (sigmoid(-z)
    - a)``, which rises with slope 1 to 1 + curvature/4 and lies between the values of a' = 0 and a' = 1.
    Newton from inside that bracket: from the margin, unless the curvature ties a' to a. As |h''| <=
    curvature/10, a step of length t leaves an error of at most curvature/20 t^2: nothing need be evaluated to
    see that it is small (2 to 4 usually do). Where the slope varies much, Newton alone can jump from side to
    side for ever: a step that leaves the bracket, or is not half as long as the one before, halves the
    bracket instead.
    """
    low = margin - curvature * a
    high = margin + curvature * (1.0 - a)
    z = margin
    if curvature > 4.0:
        z = clip(math.log1p(-a) - math.log(a), low, high) if 0.0 < a < 1.0 else 0.5 * (low + high)
    moved = high - low
    for _ in range(100):
        inside = sigmoid(-z)
        h = z - margin - curvature * (inside - a)
        if h > 0.0:
            high = z
        else:
            low = z
        step = -h / (1.0 + curvature * inside * (1.0 - inside))
        if abs(step) <= 1e-13 * (1.0 + abs(z)) or curvature * step * step <= 1e-13 * (1.0 + abs(z)):
            if (
                abs(step) <= 1e-8
            ):  # sigmoid(-z - step) to first order: what is left out is below rounding errors
                return inside - inside * (1.0 - inside) * step
            z += step
            break
        if not low < z + step < high or abs(step) > 0.5 * moved:
            step = 0.5 * (low + high) - z
        moved = abs(step)
        z += step
    return sigmoid(-z)


@loss_type
class Logistic(NamedTuple):
    """``ln(1 + exp(-y s))``."""

    unit: float = 1.0  # not used: Numba wants a NamedTuple to have a field

    name = "logistic"
    task = "classification"
    summary = "ln(1 + exp(-y s)): logistic regression"
    lipschitz = 1.0
    smoothness = 0.25
    zhang_pairs = ((0.0, 1.0),)
    margin = INF
    probabilistic = True

    def value(self, y: float, score: float) -> float:
        m = y * score
        return math.log1p(math.exp(-abs(m))) + (-m if m < 0.0 else 0.0)

    def derivative(self, y: float, score: float) -> float:
        return -y * sigmoid(-y * score)

    def curvature(self, y: float, score: float) -> float:
        e = math.exp(-abs(score))
        return e / ((1.0 + e) * (1.0 + e))

    def conjugate(self, y: float, beta: float) -> float:
        a = y * beta
        if not 0.0 <= a <= 1.0:
            return INF
        if a == 0.0 or a == 1.0:
            return 0.0
        return a * math.log(a) + (1.0 - a) * log1p(-a)

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return (0.0 if y > 0.0 else y), (y if y > 0.0 else 0.0)

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        return y * logistic_dual(y * score, y * beta, curvature)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        # beyond these bounds a is 0 or 1 in float64 and cannot move
        a = y * beta
        inside = clip(a, TINY, 1.0 - 2.0**-53)
        return boxed(y * score + math.log(inside / (1.0 - inside)), a, TINY, 1.0 - 2.0**-53)
