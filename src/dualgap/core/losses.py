"""The losses: all that the project knows about ``phi(score, y)`` is in this file.

Conventions
-----------
``score = <w, x> + b``. Classification losses take ``y`` in {-1, +1}, regression
losses any real ``y``. The dual variable ``beta`` of a row is signed: ``-beta`` is a slope of the loss, so
that ``w(beta) = 1/(lam N) sum c beta x`` for classification and regression alike. For classification ``a = y
beta >= 0`` is the usual dual variable divided by its bound C c.

A loss is a ``NamedTuple`` (its fields are its parameters) with the methods that kernels call:

``value(y, score)``
    phi.
``slope(y, score)``
    phi', a subgradient at kinks; which one is stated in the class.
``curvature(y, score)``
    phi''; where it jumps, the larger of the two values; 0 for losses made of lines.
``conjugate(y, beta)``
    phi*(-beta) = sup over scores of (-beta score - phi); infinite where beta is infeasible.
``box(y)``
    The interval of feasible beta: where phi*(-beta) is finite.
``dual_prox(y, score, beta, curvature)``
    The dual step: the ``b`` that maximises ``-phi*(-b) - score (b - beta) - curvature/2 (b - beta)^2``. It
    returns the new value and not the difference, because ``beta + (b - beta)`` may miss the bound by a
    rounding error, and a dual point outside its box proves nothing.
``dual_subdifferential(y, score, beta)``
    The left and right derivative of the negated dual along ``a`` (classification) or ``beta`` (regression),
    per unit of weight: the ``G`` of Hsieh et al. (ICML 2008), infinite beyond a bound. ``beta`` is best iff
    left <= 0 <= right.

and with constants: ``lipschitz``, ``smoothness`` (infinite where there is none), ``zhang_pairs``: all (A, B)
with ``phi'^2 <= A phi + B`` that Zhang (ICML 2004, section 4) gives or that follow at once. ``kernel_type``
makes a class callable from kernels, the registry at the end gives it its name, and nothing else asks which
loss it has.
"""

from __future__ import annotations

# mypy: disable-error-code="misc"
# (mypy knows no plain class attributes in a NamedTuple; Python does)
import math
from typing import Any, NamedTuple, Protocol

from ..runtime.checks import shown
from ..runtime.errors import InputError, nearest
from ..runtime.jit import kernel, kernel_type

_TINY = 1e-300  # stands in for a curvature of 0 (an empty row): the step is then as long as the box allows
_INF = math.inf


class Loss(Protocol):
    """What the rest of the project may ask of a loss."""

    @property
    def name(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def lipschitz(self) -> float: ...
    @property
    def smoothness(self) -> float: ...
    @property
    def zhang_pairs(self) -> tuple[tuple[float, float], ...]: ...
    @property
    def quadratic(self) -> bool: ...  # phi'' is the same everywhere
    @property
    def margin(self) -> float: ...  # of the hinge and the hard margin only
    def value(self, y: float, score: float) -> float: ...
    def derivative(self, y: float, score: float) -> float: ...
    def curvature(self, y: float, score: float) -> float: ...
    def conjugate(self, y: float, beta: float) -> float: ...
    def dual_bounds(self, y: float) -> tuple[float, float]: ...
    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float: ...
    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]: ...
    def _asdict(self) -> dict[str, Any]: ...


@kernel
def clip(value: float, low: float, high: float) -> float:
    """The nearest point of [low, high]."""
    return min(max(value, low), high)


@kernel
def boxed(gradient: float, value: float, low: float, high: float) -> tuple[float, float]:
    """One-sided slopes of a function with that gradient on [low, high]."""
    return (-_INF if value <= low else gradient), (_INF if value >= high else gradient)


@kernel
def soft(value: float, threshold: float) -> float:
    """Shrink towards 0 by the threshold."""
    return max(value - threshold, 0.0) - max(-value - threshold, 0.0)


@kernel
def log1p(x: float) -> float:
    """``ln(1 + x)`` for x from -1 to 1 within a few rounding errors, in less than the C library's time.

    1 + x is off by a rounding error r, which is x - (u - 1) exactly; ``ln(u + r) = ln(u) + r / u``, and where
    r is not 0 the difference between r / u and r is below a rounding error of x.
    """
    u = 1.0 + x
    return math.log(u) + (x - (u - 1.0))


@kernel
def smoothed_dual(loss: Any, gamma: float, centre: Any, i: int, y: float, score: float) -> float:
    """-phi' of the smoothed loss: the ``b`` that maximises ``-phi*(-b) - score b - gamma/2 (b -
    centre_i)^2``.
    """
    if gamma == 0.0:
        return -loss.derivative(y, score)  # type: ignore[no-any-return]
    return loss.dual_prox(y, score, centre[i], gamma)  # type: ignore[no-any-return]


@kernel
def smoothed_curvature(loss: Any, gamma: float, centre: Any, i: int, y: float, score: float) -> float:
    """phi'' of the smoothed loss: 1/gamma where the dual is at no bound or kink."""
    if gamma == 0.0:
        return loss.curvature(y, score)  # type: ignore[no-any-return]
    left, right = loss.dual_subdifferential(y, score, loss.dual_prox(y, score, centre[i], gamma))
    return 1.0 / gamma if left == right else 0.0


@kernel_type
class Hinge(NamedTuple):
    """``max(0, margin - y s)``, the SVM loss. At the kink the slope is 0."""

    margin: float = 1.0

    name = "hinge"
    task = "classification"
    summary = "max(0, margin - y s): the support vector machine"
    quadratic = False
    lipschitz = 1.0
    smoothness = _INF
    zhang_pairs = ((0.0, 1.0),)

    def value(self, y: float, score: float) -> float:
        return max(0.0, self.margin - y * score)

    def derivative(self, y: float, score: float) -> float:
        return -y if y * score < self.margin else 0.0

    def curvature(self, y: float, score: float) -> float:
        return 0.0

    def conjugate(self, y: float, beta: float) -> float:
        a = y * beta
        return -a * self.margin if 0.0 <= a <= 1.0 else _INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return min(0.0, y), max(0.0, y)

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        return y * clip(y * beta + (self.margin - y * score) / max(curvature, _TINY), 0.0, 1.0)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        return boxed(y * score - self.margin, y * beta, 0.0, 1.0)


@kernel_type
class SmoothHinge(NamedTuple):
    """The smoothed hinge: ``max(0, 1 - y s)^2 / (2 gamma)`` for ``y s >= 1 - gamma``, else ``1 - gamma/2 - y
    s``.
    """

    gamma: float = 1.0

    name = "smooth-hinge"
    task = "classification"
    summary = "the hinge with its kink rounded over a width of gamma; gamma -> 0 is the hinge"
    quadratic = False
    lipschitz = 1.0

    @property
    def smoothness(self) -> float:
        """|phi''| <= 1/gamma."""
        return 1.0 / self.gamma

    @property
    def zhang_pairs(self) -> tuple[tuple[float, float], ...]:
        """Both pairs of section 4."""
        return ((0.0, 1.0), (2.0 / self.gamma, 0.0))

    def value(self, y: float, score: float) -> float:
        short = max(0.0, 1.0 - y * score)
        return short * short / (2.0 * self.gamma) if short <= self.gamma else short - 0.5 * self.gamma

    def derivative(self, y: float, score: float) -> float:
        return -y * clip((1.0 - y * score) / self.gamma, 0.0, 1.0)

    def curvature(self, y: float, score: float) -> float:
        return 1.0 / self.gamma if 0.0 <= 1.0 - y * score <= self.gamma else 0.0

    def conjugate(self, y: float, beta: float) -> float:
        a = y * beta
        return 0.5 * self.gamma * a * a - a if 0.0 <= a <= 1.0 else _INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return min(0.0, y), max(0.0, y)

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        return y * clip((curvature * y * beta + (1.0 - y * score)) / (curvature + self.gamma), 0.0, 1.0)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        a = y * beta
        return boxed(y * score - 1.0 + self.gamma * a, a, 0.0, 1.0)


@kernel_type
class SquaredHinge(NamedTuple):
    """``scale max(0, 1 - y s)^2``: modified least squares, the L2-SVM."""

    scale: float = 1.0

    name = "squared-hinge"
    task = "classification"
    summary = "scale * max(0, 1 - y s)^2: modified least squares, the L2-SVM"
    quadratic = False
    lipschitz = _INF

    @property
    def smoothness(self) -> float:
        """|phi''| <= 2 scale."""
        return 2.0 * self.scale

    @property
    def zhang_pairs(self) -> tuple[tuple[float, float], ...]:
        """A = 4 at scale 1."""
        return ((4.0 * self.scale, 0.0),)

    def value(self, y: float, score: float) -> float:
        short = max(0.0, 1.0 - y * score)
        return self.scale * short * short

    def derivative(self, y: float, score: float) -> float:
        return -2.0 * self.scale * y * max(0.0, 1.0 - y * score)

    def curvature(self, y: float, score: float) -> float:
        return 2.0 * self.scale if y * score <= 1.0 else 0.0

    def conjugate(self, y: float, beta: float) -> float:
        a = y * beta
        return a * a / (4.0 * self.scale) - a if a >= 0.0 else _INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return (0.0 if y > 0.0 else -_INF), (_INF if y > 0.0 else 0.0)

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        return y * max(0.0, (curvature * y * beta + (1.0 - y * score)) / (curvature + 0.5 / self.scale))

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        a = y * beta
        return boxed(y * score - 1.0 + 0.5 * a / self.scale, a, 0.0, _INF)


@kernel_type
class ModifiedHuber(NamedTuple):
    """``scale max(0, 1 - y s)^2`` for ``y s >= -1``, else ``-4 scale y s``: 4 smoothed hinges with gamma =
    2.
    """

    scale: float = 1.0

    name = "modified-huber"
    task = "classification"
    summary = "scale * max(0, 1 - y s)^2, continued by a line below y s = -1"
    quadratic = False

    @property
    def lipschitz(self) -> float:
        """|phi'| <= 4 scale."""
        return 4.0 * self.scale

    @property
    def smoothness(self) -> float:
        """|phi''| <= 2 scale."""
        return 2.0 * self.scale

    @property
    def zhang_pairs(self) -> tuple[tuple[float, float], ...]:
        """The pair of section 4, and the smoothed hinge's second pair carried over."""
        return ((0.0, 16.0 * self.scale * self.scale), (4.0 * self.scale, 0.0))

    def value(self, y: float, score: float) -> float:
        short = max(0.0, 1.0 - y * score)
        return self.scale * (short * short if short <= 2.0 else 4.0 * (short - 1.0))

    def derivative(self, y: float, score: float) -> float:
        return -2.0 * self.scale * y * clip(1.0 - y * score, 0.0, 2.0)

    def curvature(self, y: float, score: float) -> float:
        return 2.0 * self.scale if abs(score) <= 1.0 else 0.0

    def conjugate(self, y: float, beta: float) -> float:
        a = y * beta
        return a * a / (4.0 * self.scale) - a if 0.0 <= a <= 4.0 * self.scale else _INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return min(0.0, 4.0 * self.scale * y), max(0.0, 4.0 * self.scale * y)

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        free = (curvature * y * beta + (1.0 - y * score)) / (curvature + 0.5 / self.scale)
        return y * clip(free, 0.0, 4.0 * self.scale)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        a = y * beta
        return boxed(y * score - 1.0 + 0.5 * a / self.scale, a, 0.0, 4.0 * self.scale)


@kernel_type
class Logistic(NamedTuple):
    """``ln(1 + exp(-y s))``."""

    unit: float = 1.0  # not used: Numba wants a NamedTuple to have a field

    name = "logistic"
    task = "classification"
    summary = "ln(1 + exp(-y s)): logistic regression"
    quadratic = False
    lipschitz = 1.0
    smoothness = 0.25
    zhang_pairs = ((0.0, 1.0),)

    def value(self, y: float, score: float) -> float:
        m = y * score
        return math.log1p(math.exp(-abs(m))) + max(-m, 0.0)

    def derivative(self, y: float, score: float) -> float:
        return -y * sigmoid(-y * score)

    def curvature(self, y: float, score: float) -> float:
        e = math.exp(-abs(score))
        return e / ((1.0 + e) * (1.0 + e))

    def conjugate(self, y: float, beta: float) -> float:
        a = y * beta
        if not 0.0 <= a <= 1.0:
            return _INF
        if a == 0.0 or a == 1.0:
            return 0.0
        return a * math.log(a) + (1.0 - a) * log1p(-a)

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return min(0.0, y), max(0.0, y)

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        return y * logistic_dual(y * score, y * beta, curvature)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        # beyond these bounds a is 0 or 1 in float64 and cannot move
        a = y * beta
        inside = clip(a, _TINY, 1.0 - 2.0**-53)
        return boxed(y * score + math.log(inside / (1.0 - inside)), a, _TINY, 1.0 - 2.0**-53)


@kernel
def sigmoid(z: float) -> float:
    """``1 / (1 + exp(-z))`` without overflow, and without a branch: signs of scores cannot be foreseen."""
    e = math.exp(-abs(z))
    return (1.0 if z >= 0.0 else e) / (1.0 + e)


@kernel
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


@kernel_type
class Squared(NamedTuple):
    """``scale (s - y)^2``: least squares (ridge regression has alpha = N lam / 2 at scale 1)."""

    scale: float = 1.0

    name = "squared"
    task = "regression"
    summary = "scale * (s - y)^2: least squares"
    quadratic = True
    lipschitz = _INF

    @property
    def smoothness(self) -> float:
        """phi'' = 2 scale."""
        return 2.0 * self.scale

    @property
    def zhang_pairs(self) -> tuple[tuple[float, float], ...]:
        """A = 4 at scale 1."""
        return ((4.0 * self.scale, 0.0),)

    def value(self, y: float, score: float) -> float:
        return self.scale * (score - y) * (score - y)

    def derivative(self, y: float, score: float) -> float:
        return 2.0 * self.scale * (score - y)

    def curvature(self, y: float, score: float) -> float:
        return 2.0 * self.scale

    def conjugate(self, y: float, beta: float) -> float:
        return beta * beta / (4.0 * self.scale) - y * beta

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return -_INF, _INF

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        return (curvature * beta + (y - score)) / (curvature + 0.5 / self.scale)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        gradient = score - y + 0.5 * beta / self.scale
        return gradient, gradient


@kernel_type
class Huber(NamedTuple):
    """``(s - y)^2`` up to a residual of ``threshold``, then ``2 threshold |s - y| - threshold^2``."""

    threshold: float = 1.0

    name = "huber"
    task = "regression"
    summary = "(s - y)^2 for residuals up to the threshold, a line beyond it"
    quadratic = False

    @property
    def lipschitz(self) -> float:
        """|phi'| <= 2 threshold."""
        return 2.0 * self.threshold

    @property
    def smoothness(self) -> float:
        """|phi''| <= 2."""
        return 2.0

    @property
    def zhang_pairs(self) -> tuple[tuple[float, float], ...]:
        """The pair of section 4; the second holds because 4 t^2 <= 4 phi beyond the threshold."""
        return ((0.0, 4.0 * self.threshold * self.threshold), (4.0, 0.0))

    def value(self, y: float, score: float) -> float:
        off = abs(score - y)
        return off * off if off <= self.threshold else self.threshold * (2.0 * off - self.threshold)

    def derivative(self, y: float, score: float) -> float:
        return 2.0 * clip(score - y, -self.threshold, self.threshold)

    def curvature(self, y: float, score: float) -> float:
        return 2.0 if abs(score - y) <= self.threshold else 0.0

    def conjugate(self, y: float, beta: float) -> float:
        return 0.25 * beta * beta - y * beta if abs(beta) <= 2.0 * self.threshold else _INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return -2.0 * self.threshold, 2.0 * self.threshold

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        bound = 2.0 * self.threshold
        return clip((curvature * beta + (y - score)) / (curvature + 0.5), -bound, bound)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        bound = 2.0 * self.threshold
        return boxed(score - y + 0.5 * beta, beta, -bound, bound)


@kernel_type
class Absolute(NamedTuple):
    """``|s - y|``: least absolute deviations. At the kink the slope is 0."""

    unit: float = 1.0  # not used: Numba wants a NamedTuple to have a field

    name = "absolute"
    task = "regression"
    summary = "|s - y|: least absolute deviations"
    quadratic = False
    lipschitz = 1.0
    smoothness = _INF
    zhang_pairs = ((0.0, 1.0),)

    def value(self, y: float, score: float) -> float:
        return abs(score - y)

    def derivative(self, y: float, score: float) -> float:
        return 1.0 if score > y else (-1.0 if score < y else 0.0)

    def curvature(self, y: float, score: float) -> float:
        return 0.0

    def conjugate(self, y: float, beta: float) -> float:
        return -y * beta if abs(beta) <= 1.0 else _INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return -1.0, 1.0

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        return clip(beta + (y - score) / max(curvature, _TINY), -1.0, 1.0)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        return boxed(score - y, beta, -1.0, 1.0)


@kernel_type
class EpsilonInsensitive(NamedTuple):
    """``max(0, |s - y| - epsilon)``: support vector regression. At the kinks the slope is 0."""

    epsilon: float = 0.1

    name = "epsilon-insensitive"
    task = "regression"
    summary = "max(0, |s - y| - epsilon): support vector regression"
    quadratic = False
    lipschitz = 1.0
    smoothness = _INF
    zhang_pairs = ((0.0, 1.0),)

    def value(self, y: float, score: float) -> float:
        return max(0.0, abs(score - y) - self.epsilon)

    def derivative(self, y: float, score: float) -> float:
        return 1.0 if score - y > self.epsilon else (-1.0 if y - score > self.epsilon else 0.0)

    def curvature(self, y: float, score: float) -> float:
        return 0.0

    def conjugate(self, y: float, beta: float) -> float:
        return self.epsilon * abs(beta) - y * beta if abs(beta) <= 1.0 else _INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return -1.0, 1.0

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        return clip(soft(curvature * beta + (y - score), self.epsilon) / max(curvature, _TINY), -1.0, 1.0)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        left = score - y + (self.epsilon if beta > 0.0 else -self.epsilon)
        right = score - y + (self.epsilon if beta >= 0.0 else -self.epsilon)
        return (-_INF if beta <= -1.0 else left), (_INF if beta >= 1.0 else right)


@kernel_type
class SquaredEpsilonInsensitive(NamedTuple):
    """``max(0, |s - y| - epsilon)^2``."""

    epsilon: float = 0.1

    name = "squared-epsilon-insensitive"
    task = "regression"
    summary = "max(0, |s - y| - epsilon)^2"
    quadratic = False
    lipschitz = _INF
    smoothness = 2.0
    zhang_pairs = ((4.0, 0.0),)

    def value(self, y: float, score: float) -> float:
        over = max(0.0, abs(score - y) - self.epsilon)
        return over * over

    def derivative(self, y: float, score: float) -> float:
        return 2.0 * soft(score - y, self.epsilon)

    def curvature(self, y: float, score: float) -> float:
        return 2.0 if abs(score - y) >= self.epsilon else 0.0

    def conjugate(self, y: float, beta: float) -> float:
        return 0.25 * beta * beta + self.epsilon * abs(beta) - y * beta

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return -_INF, _INF

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        return soft(curvature * beta + (y - score), self.epsilon) / (curvature + 0.5)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        gradient = score - y + 0.5 * beta
        left = gradient + (self.epsilon if beta > 0.0 else -self.epsilon)
        right = gradient + (self.epsilon if beta >= 0.0 else -self.epsilon)
        return left, right


@kernel_type
class HardMargin(NamedTuple):
    """0 where ``y s >= margin``, else infinite: what the hinge becomes at C = infinity. Asked for by C, not
    by name.
    """

    margin: float = 1.0

    name = "hard-margin"
    task = "classification"
    summary = "no row may fall short of the margin (the hinge at C = infinity)"
    quadratic = False
    lipschitz = _INF
    smoothness = _INF
    zhang_pairs = ()

    def value(self, y: float, score: float) -> float:
        return 0.0 if y * score >= self.margin else _INF

    def derivative(self, y: float, score: float) -> float:
        return 0.0 if y * score >= self.margin else -y * _INF

    def curvature(self, y: float, score: float) -> float:
        return 0.0

    def conjugate(self, y: float, beta: float) -> float:
        return -y * beta * self.margin if y * beta >= 0.0 else _INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return (0.0 if y > 0.0 else -_INF), (_INF if y > 0.0 else 0.0)

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        return y * max(0.0, y * beta + (self.margin - y * score) / max(curvature, _TINY))

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        return boxed(y * score - self.margin, y * beta, 0.0, _INF)


def hard_margin(hinge: Any) -> Loss:
    """What a hinge becomes at C = infinity."""
    cls: type[Any] = HardMargin
    loss: Loss = cls(margin=hinge.margin)
    return loss


LOSSES: dict[str, type[Any]] = {
    loss.name: loss
    for loss in (
        Hinge,
        SmoothHinge,
        SquaredHinge,
        Logistic,
        ModifiedHuber,
        Squared,
        Huber,
        Absolute,
        EpsilonInsensitive,
        SquaredEpsilonInsensitive,
    )
}


# Other names of the same functions, most of them scikit-learn's, with the parameters that make them the same.
_ALIASES: dict[str, tuple[str, dict[str, float]]] = {
    "log-loss": ("logistic", {}),
    "log": ("logistic", {}),
    "squared-error": ("squared", {"scale": 0.5}),  # scikit-learn has (s - y)^2 / 2
    "absolute-error": ("absolute", {}),
    "perceptron": ("hinge", {"margin": 0.0}),
}
_ABSENT = ("crammer-singer", "exponential", "gamma", "pinball", "poisson", "quantile", "tweedie")

_POSITIVE = {"gamma", "scale", "threshold"}  # parameters that divide or bound; the others may be 0


def make_loss(spec: str | Loss) -> Loss:
    """A loss from its name (``"hinge"``), from name and parameters (``"huber:threshold=2"``), or as it is.

    Names may be written with underscores, as scikit-learn does.
    """
    if not isinstance(spec, str):
        if type(spec) not in LOSSES.values():
            raise InputError(f"loss={shown(spec)} is not a loss; {nearest(str(spec), LOSSES)}")
        return checked(spec)
    given, _, rest = spec.partition(":")
    name, parameters = given.replace("_", "-"), {}
    if name in _ALIASES:
        name, parameters = _ALIASES[name][0], dict(_ALIASES[name][1])
    if name in _ABSENT:
        raise InputError(f"the loss {given!r} is not offered; there are: {', '.join(sorted(LOSSES))}")
    if name not in LOSSES:
        raise InputError(f"unknown loss {shown(given)}; {nearest(name, LOSSES)}")
    cls = LOSSES[name]
    for part in filter(None, rest.split(",")):
        key, equals, text = part.partition("=")
        if key not in parameters_of(cls):
            raise InputError(f"loss {name!r} has no parameter {key!r}; {nearest(key, parameters_of(cls))}")
        try:
            parameters[key] = float(text)
        except ValueError:
            raise InputError(
                f"loss {name!r}: {key}={text!r} is not a number; write it as {name}:{key}=1.5"
            ) from None
        if not equals:
            raise InputError(f"loss {name!r}: give {key} a value, as in {name}:{key}=1.5")
    return checked(cls(**parameters))


def parameters_of(loss: Loss | type[Any]) -> dict[str, float]:
    """The parameters a user may set, with their defaults (or values, of an instance)."""
    found = loss._field_defaults if isinstance(loss, type) else loss._asdict()
    return {key: value for key, value in found.items() if key != "unit"}


def checked(loss: Loss) -> Loss:
    """The same loss with float parameters, or an error that names the one out of range."""
    values = {key: float(value) for key, value in loss._asdict().items()}
    for key, value in values.items():
        if not math.isfinite(value) or value < 0.0 or (key in _POSITIVE and value == 0.0):
            kind = "positive" if key in _POSITIVE else "non-negative"
            raise InputError(f"loss {loss.name!r}: {key}={value!r} must be a {kind} finite number")
    return type(loss)(**values)
