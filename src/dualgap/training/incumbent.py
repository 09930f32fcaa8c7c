"""The best primal and the best dual point that a run has seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ..core.problem import Certificate, Evaluation, Intercept, Point, Regularised
from ..runtime.arrays import Floats
from .run import Value

DualOrigin: TypeAlias = Literal["none", "warm start", "solver", "polish"]


class Known(NamedTuple):
    """An evaluation that has been made already, and the problem that made it."""

    problem: Regularised
    found: Evaluation


def kept(b: Intercept) -> Intercept:
    """An intercept, or a copy of K of them, that no solver changes."""
    return b.copy() if isinstance(b, np.ndarray) and b.ndim else float(b)


def scaled(problem: Regularised, point: Point, found: Evaluation) -> Point | None:
    """The point with its dual point scaled down to where a lower bound is surely positive; None where that
    is not known to help.

    D(beta) = L - Q/2, where Q = lam |w(beta)|^2, with the term of b, grows with the square of beta. As
    conjugates are convex and 0 at 0, D(s beta) >= s L - s^2 Q/2 for s in [0, 1]: largest at s = L / Q.
    """
    if point.beta is None or not np.isfinite(found.dual):
        return None
    strength = problem.bias.strength(problem.lam)
    square = problem.lam * float(np.vdot(found.w_of_dual, found.w_of_dual))
    if 0.0 < strength < np.inf:
        square += strength * float(np.sum(np.square(found.b - problem.bias.centre)))
    linear = found.dual + 0.5 * square
    if not 0.0 < linear < square < np.inf:
        return None
    return point._replace(beta=linear / square * point.beta)


@dataclass
class Incumbent:
    """The best primal and the best dual point seen. They may come from different moments: D(beta) <= P(w, b)
    always.
    """

    merit: float = math.inf  # of the primal point: the smaller, the better
    primal: float = math.inf
    primal_error: float = 0.0
    dual: float = -math.inf
    dual_error: float = 0.0
    w: Floats = field(default_factory=lambda: np.zeros(0))
    b: Intercept = 0.0
    beta: Floats = field(default_factory=lambda: np.zeros(0))
    origin: DualOrigin = "none"  # of the dual point

    @classmethod
    def of(cls, problem: Regularised) -> Incumbent:
        """No point yet."""
        source, several = problem.source, problem.scores_per_row
        return cls(w=np.zeros((source.d, *several)), beta=np.zeros((source.n, *several)))

    def see(
        self,
        point: Point,
        found: Evaluation,
        origin: DualOrigin,
        merit: float | None = None,
        *,
        owned: bool = False,
    ) -> None:
        """Keep what is better than before; the merit of a model is its primal value unless another is given.

        The solver goes on changing its arrays, so they are copied, unless the point is ``owned`` by nobody
        else.
        """
        merit = found.primal + found.primal_error if merit is None else merit
        if merit < self.merit:
            self.merit = merit
            self.primal, self.primal_error = found.primal, found.primal_error
            self.w, self.b = (point.w if owned else point.w.copy()), kept(point.b)
        if found.dual - found.dual_error > self.dual - self.dual_error:
            self.dual, self.dual_error = found.dual, found.dual_error
            beta = np.zeros_like(self.beta) if point.beta is None else point.beta
            self.beta = beta if owned or point.beta is None else beta.copy()
            self.origin = origin

    def is_hidden(self, found: Evaluation) -> bool:
        """Whether the rounding errors of an evaluation may be all that keeps the gap from being half as
        large: then the point is worth an evaluation with smaller ones.
        """
        gap = min(found.primal, self.primal) - max(found.dual, self.dual)
        return found.primal_error + found.dual_error >= gap

    @property
    def has_bound(self) -> bool:
        """Whether a positive lower bound is known."""
        return self.dual - self.dual_error > 0.0

    def certificate(self, problem: Regularised) -> Certificate:
        """What the two points prove together."""
        return problem.certificate(self.primal, self.primal_error, self.dual, self.dual_error)

    @property
    def point(self) -> Point:
        """The two points as one."""
        return Point(self.w, self.b, self.beta)

    @property
    def value(self) -> Value:
        """The values of the two points."""
        return Value(self.primal, self.primal_error, self.dual, self.dual_error)

    @property
    def dual_density(self) -> float:
        """The share of rows whose dual variable is not 0."""
        return np.count_nonzero(self.beta) / max(1, self.beta.size)
