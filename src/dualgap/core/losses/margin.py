"""Losses of the margin ``y s`` made of lines and parabolas: the hinge and its relatives."""

from __future__ import annotations

# mypy: disable-error-code="misc"
# (mypy knows no plain class attributes in a NamedTuple; Python does)
from typing import Any, NamedTuple

from .contract import Loss, loss_type
from .functions import INF, TINY, boxed, clip


@loss_type
class HardMargin(NamedTuple):
    """0 where ``y s >= margin``, else infinite: the hinge at C = infinity.

    It is not in the registry: ``C=inf`` with the hinge asks for it.
    """

    margin: float = 1.0

    name = "hard-margin"
    task = "classification"
    summary = "no row may fall short of the margin (the hinge at C = infinity)"
    lipschitz = INF
    smoothness = INF
    zhang_pairs = ()
    hard = True

    def value(self, y: float, score: float) -> float:
        return 0.0 if y * score >= self.margin else INF

    def derivative(self, y: float, score: float) -> float:
        return 0.0 if y * score >= self.margin else -y * INF

    def curvature(self, y: float, score: float) -> float:
        return 0.0

    def conjugate(self, y: float, beta: float) -> float:
        return -y * beta * self.margin if y * beta >= 0.0 else INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return (0.0 if y > 0.0 else -INF), (INF if y > 0.0 else 0.0)

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        a = y * beta + (self.margin - y * score) / (curvature if curvature > TINY else TINY)
        return y * (a if a > 0.0 else 0.0)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        return boxed(y * score - self.margin, y * beta, 0.0, INF)


@loss_type
class Hinge(NamedTuple):
    """``max(0, margin - y s)``, the SVM loss. At the kink the slope is 0."""

    margin: float = 1.0

    name = "hinge"
    task = "classification"
    summary = "max(0, margin - y s): the support vector machine"
    lipschitz = 1.0
    smoothness = INF
    zhang_pairs = ((0.0, 1.0),)

    @property
    def hard_margin(self) -> Loss:
        """The limit of C times the hinge, C to infinity."""
        cls: type[Any] = HardMargin
        limit: Loss = cls(self.margin)
        return limit

    def value(self, y: float, score: float) -> float:
        short = self.margin - y * score
        return short if short > 0.0 else 0.0

    def derivative(self, y: float, score: float) -> float:
        return -y if y * score < self.margin else 0.0

    def curvature(self, y: float, score: float) -> float:
        return 0.0

    def conjugate(self, y: float, beta: float) -> float:
        a = y * beta
        return -a * self.margin if 0.0 <= a <= 1.0 else INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return (0.0 if y > 0.0 else y), (y if y > 0.0 else 0.0)

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        a = y * beta + (self.margin - y * score) / (curvature if curvature > TINY else TINY)
        return y * (0.0 if a < 0.0 else 1.0 if a > 1.0 else a)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        gradient, a = y * score - self.margin, y * beta
        return (-INF if a <= 0.0 else gradient), (INF if a >= 1.0 else gradient)


@loss_type
class SmoothHinge(NamedTuple):
    """``max(0, 1 - y s)^2 / (2 gamma)`` for ``y s >= 1 - gamma``, else ``1 - gamma/2 - y s``."""

    gamma: float = 1.0

    name = "smooth-hinge"
    task = "classification"
    summary = "the hinge with its kink rounded over a width of gamma; gamma -> 0 is the hinge"
    lipschitz = 1.0
    margin = 1.0
    positive = ("gamma",)

    @property
    def smoothness(self) -> float:
        """|phi''| <= 1/gamma."""
        return 1.0 / self.gamma

    @property
    def zhang_pairs(self) -> tuple[tuple[float, float], ...]:
        """Both pairs of section 4."""
        return ((0.0, 1.0), (2.0 / self.gamma, 0.0))

    def value(self, y: float, score: float) -> float:
        short = 1.0 - y * score
        if not short > 0.0:
            return 0.0
        return short * short / (2.0 * self.gamma) if short <= self.gamma else short - 0.5 * self.gamma

    def derivative(self, y: float, score: float) -> float:
        return -y * clip((1.0 - y * score) / self.gamma, 0.0, 1.0)

    def curvature(self, y: float, score: float) -> float:
        return 1.0 / self.gamma if 0.0 <= 1.0 - y * score <= self.gamma else 0.0

    def conjugate(self, y: float, beta: float) -> float:
        a = y * beta
        return 0.5 * self.gamma * a * a - a if 0.0 <= a <= 1.0 else INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return (0.0 if y > 0.0 else y), (y if y > 0.0 else 0.0)

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        return y * clip((curvature * y * beta + (1.0 - y * score)) / (curvature + self.gamma), 0.0, 1.0)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        a = y * beta
        return boxed(y * score - 1.0 + self.gamma * a, a, 0.0, 1.0)


@loss_type
class SquaredHinge(NamedTuple):
    """``scale max(0, 1 - y s)^2``: modified least squares, the L2-SVM."""

    scale: float = 1.0

    name = "squared-hinge"
    task = "classification"
    summary = "scale * max(0, 1 - y s)^2: modified least squares, the L2-SVM"
    lipschitz = INF
    margin = 1.0
    positive = ("scale",)

    @property
    def smoothness(self) -> float:
        """|phi''| <= 2 scale."""
        return 2.0 * self.scale

    @property
    def zhang_pairs(self) -> tuple[tuple[float, float], ...]:
        """A = 4 at scale 1."""
        return ((4.0 * self.scale, 0.0),)

    def value(self, y: float, score: float) -> float:
        short = 1.0 - y * score
        return self.scale * short * short if short > 0.0 else 0.0

    def derivative(self, y: float, score: float) -> float:
        short = 1.0 - y * score
        return -2.0 * self.scale * y * (short if short > 0.0 else 0.0)

    def curvature(self, y: float, score: float) -> float:
        return 2.0 * self.scale if y * score <= 1.0 else 0.0

    def conjugate(self, y: float, beta: float) -> float:
        a = y * beta
        return a * a / (4.0 * self.scale) - a if a >= 0.0 else INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return (0.0 if y > 0.0 else -INF), (INF if y > 0.0 else 0.0)

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        a = (curvature * y * beta + (1.0 - y * score)) / (curvature + 0.5 / self.scale)
        return y * (a if a > 0.0 else 0.0)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        a = y * beta
        return boxed(y * score - 1.0 + 0.5 * a / self.scale, a, 0.0, INF)


@loss_type
class ModifiedHuber(NamedTuple):
    """``scale max(0, 1 - y s)^2`` for ``y s >= -1``, else ``-4 scale y s``.

    It is 4 scale times the smoothed hinge with gamma = 2.
    """

    scale: float = 1.0

    name = "modified-huber"
    task = "classification"
    summary = "scale * max(0, 1 - y s)^2, continued by a line below y s = -1"
    margin = 1.0
    positive = ("scale",)

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
        short = 1.0 - y * score
        if not short > 0.0:
            return 0.0
        return self.scale * (short * short if short <= 2.0 else 4.0 * (short - 1.0))

    def derivative(self, y: float, score: float) -> float:
        return -2.0 * self.scale * y * clip(1.0 - y * score, 0.0, 2.0)

    def curvature(self, y: float, score: float) -> float:
        return 2.0 * self.scale if abs(score) <= 1.0 else 0.0

    def conjugate(self, y: float, beta: float) -> float:
        a = y * beta
        return a * a / (4.0 * self.scale) - a if 0.0 <= a <= 4.0 * self.scale else INF

    def dual_bounds(self, y: float) -> tuple[float, float]:
        reach = 4.0 * self.scale * y
        return (0.0 if y > 0.0 else reach), (reach if y > 0.0 else 0.0)

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        free = (curvature * y * beta + (1.0 - y * score)) / (curvature + 0.5 / self.scale)
        return y * clip(free, 0.0, 4.0 * self.scale)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        a = y * beta
        return boxed(y * score - 1.0 + 0.5 * a / self.scale, a, 0.0, 4.0 * self.scale)
