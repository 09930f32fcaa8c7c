"""The joint problem of K classes: P, D and the evaluation of any point.

    P(W, b) = lam/2 |W|_F^2 + r(b) + 1/N sum_i c_i phi(s_i, y_i),    s_i = W^T x_i + b in R^K,  N = sum_i c_i
    D(beta) = -1/N sum_i c_i phi*(-beta_i) - lam/2 |W(beta)|_F^2 + min_b (r(b) - <z, b>)
    W(beta) = 1/(lam N) sum_i c_i x_i beta_i^T,   z = 1/N sum_i c_i beta_i

W has shape (d, K), in C order, beta (n, K); y_i is the number of the class, 0 to K - 1. For the losses see
`contract`, for a free b `bias`. All else is as in `core.problem`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...runtime.arrays import Floats, canonical, writable
from ...runtime.errors import InputError
from ...runtime.sums import norm
from ...runtime.threads import blas_threads
from ..bounds import added, dual_value, primal_value
from ..evaluation import Evaluation, EvaluationPass, Partial, Point
from ..objective import Identity
from ..regularised import Regularised
from .bias import balanced, intercept_bound
from .compensated import CompensatedJointPass
from .contract import JointLoss
from .evaluation import JointPass, JointSlopesPass, fill_slopes, scalar_sums


@dataclass(frozen=True, eq=False)
class JointProblem(Regularised):
    """A joint problem; ``classes`` is K."""

    loss: JointLoss
    classes: int = 2

    def check_targets(self, y: Floats, first: int = 0) -> None:
        """Refuse targets that are no numbers of classes; errors count rows from ``first``."""
        wrong = ~((y >= 0.0) & (y < self.classes) & (y == np.floor(y)))
        if wrong.any():
            bad = int(np.argmax(wrong))
            raise InputError(
                f"y[{first + bad}] is {y[bad]:g}; the {self.loss.name} loss needs the numbers of classes, 0 "
                f"to {self.classes - 1}"
            )

    def check_bounded(self, names: Sequence[str] | None = None) -> None:
        """Refuse a class without rows under a free bias: its intercept would go to minus infinity. ``names``
        are those of the classes, for the message.
        """
        if not self.bias.free or not self.source.in_memory:
            return
        masses = np.bincount(
            self.source.y.astype(np.intp), weights=self.source.weight, minlength=self.classes
        )
        if not masses.all():
            absent = int(np.argmin(masses))
            which = f"number {absent} of {self.classes}" if names is None else names[absent]
            raise InputError(
                f"bias='exact': class {which} has no row of positive weight in training, so that the "
                "objective has no minimum (its intercept goes to minus infinity); leave the class out, or "
                "use bias='augmented'"
            )

    @property
    def scores_per_row(self) -> tuple[int, ...]:
        """K of them."""
        return (self.classes,)

    @property
    def identity(self) -> Identity:
        """Equal for equal problems, different for almost all others; the number of classes counts."""
        found = super().identity
        return found._replace(data=f"{found.data} {self.classes} classes")

    @cached_property
    def value_at_zero(self) -> float:
        """The mean loss of the all-zero model: that of any row."""
        return float(self.loss.row_at_zero(self.classes))

    @property
    def gap_floor(self) -> float | None:
        """None: with lam > 0 the optimum is positive, as W = 0 is not without loss. At lam = 0 an objective
        of 0 is the optimum, and nothing else is known to be.
        """
        return 0.0 if self.lam == 0.0 else None

    @cached_property
    def intercept_bound(self) -> float:
        """A bound on the differences of intercepts over all (W, b) that are at least as good as the all-zero
        model.
        """
        source = self.source
        return intercept_bound(
            source.y, source.weight, source.squared_norms, self.lam, self.value_at_zero, self.classes
        )

    def evaluate(self, point: Point, *, compensated: bool = False) -> Evaluation:
        """P and D of a point, with bounds on their rounding errors: those of float64 or, at many times the
        work, far smaller ones.

        Parts run on the source's threads, and BLAS has one thread in each: so the result does not depend on
        their number.
        """
        with blas_threads(1):
            return super().evaluate(point, compensated=compensated)

    def feasible(self, beta: Floats) -> Floats:
        """A dual point that satisfies the constraint of a free bias: beta itself for every other kind."""
        if not self.bias.free:
            return beta
        source = self.source
        if not source.in_memory:
            raise InputError("bias='exact' needs all rows in memory: its constraint ties all duals together")
        return balanced(canonical(beta, np.float64), source.y, source.weight, self.total_weight)

    def mean_loss(self, w: Floats, b: Any) -> float:
        """The mean loss of a model, which is P without the terms of regularisation; no bounds, no dual."""
        evaluating = JointPass.of(self.loss, w, b, None)
        with blas_threads(1):
            found = self.source.reduce(evaluating.mean_parts, added)
        mean = found.value / self.total_weight
        return float(mean) if np.isfinite(mean) else np.inf

    def slopes(self, scores: Floats) -> Floats:
        """The duals that follow from the scores of all rows: minus the gradients of their losses."""
        beta = np.empty(scores.shape)
        fill_slopes(self.source.y, self.loss, writable(scores), beta)
        return beta

    def _pass(self, point: Point, beta: Floats | None, compensated: bool) -> EvaluationPass:
        if np.shape(point.b) != (self.classes,):
            raise InputError(f"b has shape {np.shape(point.b)}, and there are {self.classes} classes")
        kind = CompensatedJointPass if compensated else JointPass
        return kind.of(self.loss, point.w, point.b, beta)

    def _slopes_pass(self, point: Point) -> EvaluationPass:
        return JointSlopesPass.of(self.loss, point.w, point.b, point.beta)

    def _evaluation(
        self, point: Point, evaluating: EvaluationPass, whole: Partial, scores: Floats
    ) -> Evaluation:
        """The values of a point, from what the pass over all rows has found."""
        sums, moment, lost, moment_error = whole
        if lost.size:
            moment += lost
        constants, strength = self.constants, self.constants.strength
        w = evaluating.model.w
        intercepts = np.asarray(point.b, dtype=np.float64)
        primal, primal_error = primal_value(constants, sums, norm(w.reshape(-1)), norm(intercepts))
        free = strength == 0.0
        bound = 0.5 * self.intercept_bound if free and self.lam > 0.0 else 0.0  # z adds up to 0
        reduced = scalar_sums(sums, free=free, classes=self.classes)
        dual, dual_error = dual_value(constants, reduced, moment, moment_error, bound)
        z = np.asarray(sums.balance.value) / self.total_weight
        b = z / strength if strength > 0 else point.b
        found = moment * self.scale if self.lam > 0.0 else np.zeros(moment.size)
        return Evaluation(primal, primal_error, dual, dual_error, scores, found.reshape(w.shape), b)
