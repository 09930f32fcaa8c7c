"""Losses of the residual ``s - y``."""

from __future__ import annotations

# mypy: disable-error-code="misc"
# (mypy knows no plain class attributes in a NamedTuple; Python does)
from typing import NamedTuple

import numpy as np

from ...runtime.arrays import Floats
from .contract import Ramp, loss_type
from .functions import INF, TINY, boxed, clip, soft


@loss_type
class Squared(NamedTuple):
    """``scale (s - y)^2``: least squares (ridge regression has alpha = N lam / 2 at scale 1)."""

    scale: float = 1.0

    name = "squared"
    task = "regression"
    summary = "scale * (s - y)^2: least squares"
    lipschitz = INF
    positive = ("scale",)
    quadratic = True  # phi'' is the same everywhere

    @property
    def smoothness(self) -> float:
        """phi'' = 2 scale."""
        return 2.0 * self.scale

    @property
    def zhang_pairs(self) -> tuple[tuple[float, float], ...]:
        """A = 4 at scale 1."""
        return ((4.0 * self.scale, 0.0),)

    def ramps(self, y: Floats) -> tuple[Ramp, ...]:
        free = np.full(y.shape, INF)
        return (Ramp(y, -free, free, 0.5 / self.scale),)

    def value(self, y: float, score: float) -> float:
        return self.scale * (score - y) * (score - y)

    def derivative(self, y: float, score: float) -> float:
        return 2.0 * self.scale * (score - y)

    def curvature(self, y: float, score: float) -> float:
        return 2.0 * self.scale

    def conjugate(self, y: float, beta: float) -> float:
        return beta * beta / (4.0 * self.scale) - y * beta

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return -INF, INF

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        return (curvature * beta + (y - score)) / (curvature + 0.5 / self.scale)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        gradient = score - y + 0.5 * beta / self.scale
        return gradient, gradient


@loss_type
class Huber(NamedTuple):
    """``(s - y)^2`` up to a residual of ``threshold``, then ``2 threshold |s - y| - threshold^2``."""

    threshold: float = 1.0

    name = "huber"
    task = "regression"
    summary = "(s - y)^2 for residuals up to the threshold, a line beyond it"
    positive = ("threshold",)

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

    def ramps(self, y: Floats) -> tuple[Ramp, ...]:
        bound = np.full(y.shape, 2.0 * self.threshold)
        return (Ramp(y, -bound, bound, 0.5),)

    def value(self, y: float, score: float) -> float:
        off = abs(score - y)
        return off * off if off <= self.threshold else self.threshold * (2.0 * off - self.threshold)

    def derivative(self, y: float, score: float) -> float:
        return 2.0 * clip(score - y, -self.threshold, self.threshold)

    def curvature(self, y: float, score: float) -> float:
        return 2.0 if abs(score - y) <= self.threshold else 0.0

    def conjugate(self, y: float, beta: float) -> float:
        return 0.25 * beta * beta - y * beta if abs(beta) <= 2.0 * self.threshold else INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return -2.0 * self.threshold, 2.0 * self.threshold

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        bound = 2.0 * self.threshold
        return clip((curvature * beta + (y - score)) / (curvature + 0.5), -bound, bound)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        bound = 2.0 * self.threshold
        return boxed(score - y + 0.5 * beta, beta, -bound, bound)


@loss_type
class Absolute(NamedTuple):
    """``|s - y|``: least absolute deviations. At the kink the slope is 0."""

    unit: float = 1.0  # not used: Numba wants a NamedTuple to have a field

    name = "absolute"
    task = "regression"
    summary = "|s - y|: least absolute deviations"
    lipschitz = 1.0
    smoothness = INF
    zhang_pairs = ((0.0, 1.0),)

    def ramps(self, y: Floats) -> tuple[Ramp, ...]:
        return (Ramp(y, np.full(y.shape, -1.0), np.ones(y.shape)),)

    def value(self, y: float, score: float) -> float:
        return abs(score - y)

    def derivative(self, y: float, score: float) -> float:
        return 1.0 if score > y else (-1.0 if score < y else 0.0)

    def curvature(self, y: float, score: float) -> float:
        return 0.0

    def conjugate(self, y: float, beta: float) -> float:
        return -y * beta if abs(beta) <= 1.0 else INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return -1.0, 1.0

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        return clip(beta + (y - score) / (curvature if curvature > TINY else TINY), -1.0, 1.0)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        return boxed(score - y, beta, -1.0, 1.0)


@loss_type
class Quantile(NamedTuple):
    """``quantile (y - s)`` below the target and ``(1 - quantile) (s - y)`` above it: the pinball loss, whose
    best constant is that quantile of the targets. At the kink the slope is 0.

    The absolute loss with an asymmetric dual box, and half of it at 0.5. ``1 - quantile`` is that difference
    rounded to float64: the loss, its conjugate and the bounds of its duals all mean the same number.
    """

    quantile: float = 0.5

    name = "quantile"
    task = "regression"
    summary = "max(quantile (y - s), (1 - quantile) (s - y)): quantile regression"
    smoothness = INF
    positive = ("quantile",)
    below_one = ("quantile",)

    @property
    def lipschitz(self) -> float:
        """The steeper of the two slopes."""
        return max(self.quantile, 1.0 - self.quantile)

    @property
    def zhang_pairs(self) -> tuple[tuple[float, float], ...]:
        """The slope is bounded."""
        return ((0.0, self.lipschitz * self.lipschitz),)

    def ramps(self, y: Floats) -> tuple[Ramp, ...]:
        return (Ramp(y, np.full(y.shape, self.quantile - 1.0), np.full(y.shape, self.quantile)),)

    def value(self, y: float, score: float) -> float:
        return self.quantile * (y - score) if score < y else (1.0 - self.quantile) * (score - y)

    def derivative(self, y: float, score: float) -> float:
        return 1.0 - self.quantile if score > y else (-self.quantile if score < y else 0.0)

    def curvature(self, y: float, score: float) -> float:
        return 0.0

    def conjugate(self, y: float, beta: float) -> float:
        return -y * beta if self.quantile - 1.0 <= beta and beta <= self.quantile else INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return self.quantile - 1.0, self.quantile

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        step = (y - score) / (curvature if curvature > TINY else TINY)
        return clip(beta + step, self.quantile - 1.0, self.quantile)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        return boxed(score - y, beta, self.quantile - 1.0, self.quantile)


@loss_type
class EpsilonInsensitive(NamedTuple):
    """``max(0, |s - y| - epsilon)``: support vector regression. At the kinks the slope is 0."""

    epsilon: float = 0.1

    name = "epsilon-insensitive"
    task = "regression"
    summary = "max(0, |s - y| - epsilon): support vector regression"
    lipschitz = 1.0
    smoothness = INF
    zhang_pairs = ((0.0, 1.0),)

    def ramps(self, y: Floats) -> tuple[Ramp, ...]:
        zero, one = np.zeros(y.shape), np.ones(y.shape)
        return Ramp(y - self.epsilon, zero, one), Ramp(y + self.epsilon, -one, zero)

    def value(self, y: float, score: float) -> float:
        over = abs(score - y) - self.epsilon
        return over if over > 0.0 else 0.0

    def derivative(self, y: float, score: float) -> float:
        return 1.0 if score - y > self.epsilon else (-1.0 if y - score > self.epsilon else 0.0)

    def curvature(self, y: float, score: float) -> float:
        return 0.0

    def conjugate(self, y: float, beta: float) -> float:
        return self.epsilon * abs(beta) - y * beta if abs(beta) <= 1.0 else INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return -1.0, 1.0

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        bend = curvature if curvature > TINY else TINY
        return clip(soft(curvature * beta + (y - score), self.epsilon) / bend, -1.0, 1.0)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        left = score - y + (self.epsilon if beta > 0.0 else -self.epsilon)
        right = score - y + (self.epsilon if beta >= 0.0 else -self.epsilon)
        return (-INF if beta <= -1.0 else left), (INF if beta >= 1.0 else right)


@loss_type
class SquaredEpsilonInsensitive(NamedTuple):
    """``max(0, |s - y| - epsilon)^2``."""

    epsilon: float = 0.1

    name = "squared-epsilon-insensitive"
    task = "regression"
    summary = "max(0, |s - y| - epsilon)^2"
    lipschitz = INF
    smoothness = 2.0
    zhang_pairs = ((4.0, 0.0),)

    def ramps(self, y: Floats) -> tuple[Ramp, ...]:
        zero, free = np.zeros(y.shape), np.full(y.shape, INF)
        return Ramp(y - self.epsilon, zero, free, 0.5), Ramp(y + self.epsilon, -free, zero, 0.5)

    def value(self, y: float, score: float) -> float:
        over = abs(score - y) - self.epsilon
        over = over if over > 0.0 else 0.0
        return over * over

    def derivative(self, y: float, score: float) -> float:
        return 2.0 * soft(score - y, self.epsilon)

    def curvature(self, y: float, score: float) -> float:
        return 2.0 if abs(score - y) >= self.epsilon else 0.0

    def conjugate(self, y: float, beta: float) -> float:
        return 0.25 * beta * beta + self.epsilon * abs(beta) - y * beta

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return -INF, INF

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        return soft(curvature * beta + (y - score), self.epsilon) / (curvature + 0.5)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        gradient = score - y + 0.5 * beta
        left = gradient + (self.epsilon if beta > 0.0 else -self.epsilon)
        right = gradient + (self.epsilon if beta >= 0.0 else -self.epsilon)
        return left, right
