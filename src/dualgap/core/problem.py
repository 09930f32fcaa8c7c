"""The problem: P, D and the evaluation of any point. This module knows nothing of any solver.

    P(w, b) = lam/2 |w|^2 + r(b) + 1/N sum_i c_i phi(<w, x_i> + b, y_i),      N = sum_i c_i
    D(beta) = -1/N sum_i c_i phi*(-beta_i) - lam/2 |w(beta)|^2 + min_b (r(b) - z b)
    w(beta) = 1/(lam N) sum_i c_i beta_i x_i,   z = 1/N sum_i c_i beta_i

Weak duality: D(beta) <= P(w, b) for every beta and every (w, b). A row of weight 2 is that row twice, a row
of weight 0 is absent. In C-form J = P / lam with C = 1 / (lam N). lam = 0 leaves the dual problem with the
constraint sum c beta x = 0, which no computed beta satisfies exactly: the only lower bound is then D(0) = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ..data.sources import Part, Source
from ..runtime.arrays import Floats, writable
from ..runtime.errors import InputError
from ..runtime.sums import UNIT
from .bias import Bias
from .bounds import SMALLEST, Compensated, added, dual_value, intercept_bound, primal_value
from .certificate import ABSOLUTE_SHARE as ABSOLUTE_SHARE
from .certificate import Certificate as Certificate
from .certificate import Form as Form
from .compensated import CompensatedPass
from .evaluation import Evaluation as Evaluation
from .evaluation import (
    EvaluationPass,
    Partial,
    SlopesPass,
    add_rows,
    loss_at_zero,
    losses_at_zero,
    total_loss,
)
from .evaluation import Intercept as Intercept
from .evaluation import Point as Point
from .geometry import DualGeometry, PrimalGeometry
from .losses import JOINT, Loss
from .objective import Identity as Identity
from .regularised import Regularised as Regularised

AnyProblem: TypeAlias = Any  # a Problem, or a JointProblem: what a solver is made for


@dataclass(frozen=True, eq=False)
class Problem(Regularised):
    """A problem with one score a row."""

    loss: Loss

    def check_targets(self, y: Floats, first: int = 0) -> None:
        """Refuse targets that the loss cannot take; errors count rows from ``first``."""
        far = np.abs(y) > 1e100
        if far.any():
            raise InputError(f"y[{first + int(np.argmax(far))}] is beyond 1e100; rescale the targets")
        if self.loss.task == "classification":
            wrong = np.abs(y.real) != 1.0
            if wrong.any():
                bad = int(np.argmax(wrong))
                raise InputError(
                    f"y[{first + bad}] is {y[bad]:g}; the {self.loss.name} loss needs labels -1 and +1"
                )

    @property
    def dual_geometry(self) -> DualGeometry:
        """For kernels that move dual variables."""
        return DualGeometry(self.scale, self.bias.centre, self.bias_rate)

    def primal_geometry(self, bias_step: float) -> PrimalGeometry:
        """For kernels that visit rows one by one; ``bias_step`` counts only for a free bias."""
        weight_scale = self.epoch_size / self.total_weight
        rho2 = self.bias.rho * self.bias.rho
        return PrimalGeometry(self.lam, weight_scale, rho2, bias_step if self.bias.free else 0.0)

    @cached_property
    def value_at_zero(self) -> float:
        """The mean loss of the all-zero model, from y and the weights alone."""
        known = self.source.target_weights
        if known is not None:
            found = Compensated(math.fsum(loss_at_zero(y, c, self.loss) for y, c in known if c > 0.0), 0.0)
        else:

            def visit(part: Part) -> Compensated:
                return losses_at_zero(part.batch.y, part.batch.weight, self.loss)

            found = self.source.reduce(visit, added)
        if found.total == np.inf:
            return np.inf  # a hard margin is not met at 0
        return max(float(found.value) / self.total_weight, SMALLEST) if found.total > 0.0 else 0.0

    @cached_property
    def gap_floor(self) -> float | None:
        """What the gap is measured against where no positive lower bound is known; None: nothing.

        With lam > 0 the optimum is 0 only where the model without weights fits every target, for which the
        targets are enough; a fraction of P(0) is then a yardstick. (Elsewhere it would be none: at a large C
        the optimum is a tiny part of P(0), and a model far above it may be below any fraction.) With lam = 0
        the optimum may or may not be 0. An objective of 0 is then the optimum, and nothing else is.
        """
        if self._optimum_is_zero():
            return ABSOLUTE_SHARE * self.value_at_zero if self.value_at_zero < np.inf else 0.0
        return 0.0 if self.lam == 0.0 else None

    def _optimum_is_zero(self) -> bool:
        """Whether w = 0 and the best b leave no loss: the infimum of every loss is 0, so that is the case of
        a free bias and equal targets, or targets so close together that one b has no loss with either end.
        """
        if self.value_at_zero == 0.0:
            return True
        if not self.bias.free:
            return False
        low, high = self._target_range()
        if self.loss.offset:
            return low == high  # one class only: a large b leaves no loss
        b, slack = 0.5 * low + 0.5 * high, 8.0 * UNIT * (abs(low) + abs(high))  # more than b errs by
        fits = self.loss.value(low, b + slack) == self.loss.value(high, b - slack) == 0.0
        return low == high or fits

    def _target_range(self) -> tuple[float, float]:
        """The smallest and the largest target of a row of positive weight."""
        known = self.source.target_weights
        if known is not None:
            present = [y for y, c in known if c > 0.0]
            return min(present), max(present)

        def visit(part: Part) -> tuple[float, float]:
            y = part.batch.y[part.batch.weight > 0.0].real
            return float(y.min(initial=np.inf)), float(y.max(initial=-np.inf))

        return self.source.reduce(visit, lambda a, b: (min(a[0], b[0]), max(a[1], b[1])))

    @cached_property
    def intercept_bound(self) -> float:
        """A bound on ``|b|`` over all (w, b) that are at least as good as the all-zero model."""
        return self.intercept_bound_at(self.value_at_zero)

    def intercept_bound_at(self, level: float) -> float:
        """A bound on ``|b|`` over all (w, b) with P(w, b) <= level under a free bias."""
        return intercept_bound(self.source.batch, self.loss, self.constants, level)

    def _pass(self, point: Point, beta: Floats | None, compensated: bool) -> EvaluationPass:
        kind = CompensatedPass if compensated else EvaluationPass
        return kind.of(self.loss, point.w, point.b, beta)

    def _slopes_pass(self, point: Point) -> EvaluationPass:
        return SlopesPass(self.loss, EvaluationPass.of(self.loss, point.w, point.b, None).model, point.beta)

    def feasible(self, beta: Floats) -> Floats:
        """A dual point that satisfies the constraint of a free bias: beta itself for every other kind."""
        return self.bias.feasible(beta, self.source.weight)

    def mean_loss(self, w: Floats, b: float) -> float:
        """The mean loss of a model, which is P without the terms of regularisation; no bounds, no dual."""
        w = writable(w)
        found = self.source.reduce(lambda part: total_loss(part.batch, self.loss, w, float(b)), added)
        mean = found.value / self.total_weight
        return float(mean) if np.isfinite(mean) else np.inf

    def model_of(self, beta: Floats, b: float) -> tuple[Floats, float]:
        """w(beta), and b(beta) or, where the bias is free and does not follow from beta, the b given."""

        def visit(part: Part) -> tuple[Floats, float]:
            moment = np.zeros(self.source.d)
            share = part.batch.weight * beta[part.span]
            add_rows(part.batch.rows, share, moment)
            return moment, float(share.sum())

        moment, balance = self.source.reduce(visit, lambda a, b: (a[0] + b[0], a[1] + b[1]))
        strength = self.bias.strength(self.lam)
        if strength > 0.0:
            b = self.bias.centre + balance / (strength * self.total_weight)
        return moment * self.scale, b

    def _evaluation(
        self, point: Point, evaluating: EvaluationPass, whole: Partial, scores: Floats
    ) -> Evaluation:
        """The values of a point, from what the pass over all rows has found."""
        sums, moment, lost, moment_error = whole
        if lost.size:
            moment += lost
        constants, strength = self.constants, self.constants.strength
        primal, primal_error = primal_value(constants, sums, evaluating.model.length, point.b)
        bound = 0.0
        if strength == 0.0 and self.lam > 0.0:  # the hard margin has no finite value at zero
            finite = np.isfinite(self.value_at_zero)
            bound = self.intercept_bound if finite else self.intercept_bound_at(primal + primal_error)
        dual, dual_error = dual_value(constants, sums, moment, moment_error, bound)
        balance = sums.balance.value / self.total_weight
        b = self.bias.centre + balance / strength if strength > 0 else point.b
        w = moment * self.scale if self.lam > 0.0 else np.zeros(moment.size)
        return Evaluation(primal, primal_error, dual, dual_error, scores, w, b)


def make_problem(
    source: Source, loss: Any, lam: float, bias: Bias, classes: int | None, derivation: str = ""
) -> AnyProblem:
    """The problem of a loss; a joint one, of so many classes, where it is a joint loss."""
    if loss.task != JOINT:
        return Problem(source, loss, lam, bias, derivation=derivation)
    from .joint.problem import JointProblem  # with kernels that nothing else needs

    assert classes is not None
    return JointProblem(source, loss, lam, bias, derivation=derivation, classes=classes)
