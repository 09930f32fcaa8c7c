"""A classification loss of rows that have offsets: ``phi(s + o, y)``, the score of a row being ``s + o``.

The target of a row is the complex number ``y + i o``: a record of label and offset that kernels handle as any
other number. So no kernel knows of offsets, and those that multiply labels themselves do not compile for
them; such solvers say so (``Capabilities.offsets``). Regression losses need none of this: they depend on
``s - y`` alone, so an offset moves the target. (Numba wants methods to be annotated alike: ``y: float``.)
"""

from __future__ import annotations

# mypy: disable-error-code="misc"
# (mypy knows no plain class attributes in a NamedTuple; Python does)
from typing import NamedTuple

from ...runtime.arrays import Floats
from .contract import Loss, Ramp, loss_type


@loss_type
class WithOffsets(NamedTuple):
    """``phi(s + o, y)`` for a loss ``phi`` and targets ``y + i o``; phi*(-beta) gains ``beta o``."""

    base: Loss

    offset = True
    hard = False
    hard_margin = None
    positive = ()
    below_one = ()

    @property
    def name(self) -> str:
        """That of the loss without offsets."""
        return str(self.base.name)

    @property
    def task(self) -> str:
        """Classification."""
        return str(self.base.task)

    @property
    def summary(self) -> str:
        """That of the loss, at the score with its offset."""
        return self.base.summary + ", s with the offset of the row"

    @property
    def lipschitz(self) -> float:
        """An offset changes no slope."""
        return float(self.base.lipschitz)

    @property
    def smoothness(self) -> float:
        """An offset changes no curvature."""
        return float(self.base.smoothness)

    @property
    def zhang_pairs(self) -> tuple[tuple[float, float], ...]:
        """They hold at every score."""
        pairs: tuple[tuple[float, float], ...] = self.base.zhang_pairs
        return pairs

    @property
    def quadratic(self) -> bool:
        """An offset changes no curvature."""
        return bool(self.base.quadratic)

    @property
    def probabilistic(self) -> bool:
        """Of the score with its offset."""
        return bool(self.base.probabilistic)

    def ramps(self, y: Floats) -> tuple[Ramp, ...]:
        shifted: list[Ramp] = [ramp._replace(at=ramp.at - y.imag) for ramp in self.base.ramps(y.real)]
        return tuple(shifted)

    def value(self, y: float, score: float) -> float:
        return self.base.value(y.real, score + y.imag)

    def derivative(self, y: float, score: float) -> float:
        return self.base.derivative(y.real, score + y.imag)

    def curvature(self, y: float, score: float) -> float:
        return self.base.curvature(y.real, score + y.imag)

    def conjugate(self, y: float, beta: float) -> float:
        return self.base.conjugate(y.real, beta) + beta * y.imag

    def dual_bounds(self, y: float) -> tuple[float, float]:
        return self.base.dual_bounds(y.real)

    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float:
        return self.base.dual_prox(y.real, score + y.imag, beta, curvature)

    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]:
        return self.base.dual_subdifferential(y.real, score + y.imag, beta)


def without_offsets(loss: Loss) -> Loss:
    """The loss itself, as a user names it."""
    found: Loss = loss.base if isinstance(loss, WithOffsets) else loss
    return found
