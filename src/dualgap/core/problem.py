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
from typing import cast

import numpy as np

from ..data.sources import Part, Source
from ..runtime.arrays import Floats, canonical, writable
from ..runtime.errors import InputError
from ..runtime.sums import UNIT
from .bias import Bias, NoBias
from .bounds import (
    SMALLEST,
    VANISHED,
    Compensated,
    Constants,
    added,
    dual_value,
    intercept_bound,
    primal_value,
)
from .certificate import ABSOLUTE_SHARE as ABSOLUTE_SHARE
from .certificate import Certificate as Certificate
from .certificate import Form as Form
from .certificate import certificate_of, in_form
from .compensated import CompensatedPass
from .evaluation import Evaluation as Evaluation
from .evaluation import (
    EvaluationPass,
    Partial,
    StreamingEvaluation,
    add_rows,
    loss_at_zero,
    losses_at_zero,
    total_loss,
)
from .evaluation import Point as Point
from .geometry import DualGeometry, PrimalGeometry
from .losses import Loss
from .objective import Identity as Identity
from .objective import Size

ROUNDING_COUNTS = 0.1  # of a gap, from which on a certificate is made with compensated sums


@dataclass(frozen=True, eq=False)
class Problem:
    """A source of rows, a loss, the strength of regularisation and the kind of bias.

    ``total_weight`` is N: the sum of the source's weights, within two units, unless it is given (for rows of
    a stream, or some of the rows of a larger problem). ``dataclasses.replace`` keeps it.
    """

    source: Source
    loss: Loss
    lam: float
    bias: Bias = NoBias()  # noqa: RUF009  (frozen, without state)
    total_weight: float = None  # type: ignore[assignment]  # never None once it is made
    derivation: str = ""  # how the rows were made of those that a user gave, for ``identity``

    def __post_init__(self) -> None:
        if cast("float | None", self.total_weight) is None:
            object.__setattr__(self, "total_weight", self.source.total_weight)
        if not (1e-100 <= self.lam <= 1e100 or self.lam == 0.0):
            raise InputError(f"lam={self.lam!r} must be a positive number between 1e-100 and 1e100")
        if self.source.in_memory:
            self.check_targets(self.source.y)

    def check_targets(self, y: Floats, first: int = 0) -> None:
        """Refuse targets that the loss cannot take; errors count rows from ``first``."""
        far = np.abs(y) > 1e100
        if far.any():
            raise InputError(f"y[{first + int(np.argmax(far))}] is beyond 1e100; rescale the targets")
        if self.loss.task == "classification":
            wrong = np.abs(y) != 1.0
            if wrong.any():
                bad = int(np.argmax(wrong))
                raise InputError(
                    f"y[{first + bad}] is {y[bad]:g}; the {self.loss.name} loss needs labels -1 and +1"
                )

    @property
    def identity(self) -> Identity:
        """Equal for equal problems, different for almost all others."""
        data = f"{self.source.digest} {self.derivation}".rstrip()
        return Identity(repr(self.loss), self.lam, repr(self.bias), data)

    @property
    def size(self) -> Size:
        """Numbers of rows, columns and stored entries."""
        source = self.source
        return Size(source.n, source.d, source.nnz, source.epoch_size, source.in_memory)

    @property
    def epoch_size(self) -> int:
        """The rows of positive weight: an epoch is that many visits."""
        return self.source.epoch_size

    @property
    def C(self) -> float:
        """The C of the C-form."""
        return 1.0 / (self.lam * self.total_weight) if self.lam > 0.0 else np.inf

    @property
    def scale(self) -> float:
        """``1/(lam N)``: a step of beta_i by t moves w by scale c_i t x_i."""
        return self.C

    @property
    def bias_rate(self) -> float:
        """A step of beta_i by t moves b by bias_rate c_i t."""
        strength = self.bias.strength(self.lam)
        return 1.0 / (strength * self.total_weight) if strength > 0 else np.inf

    @property
    def dual_geometry(self) -> DualGeometry:
        """For kernels that move dual variables."""
        return DualGeometry(self.scale, self.bias.centre, self.bias_rate)

    def primal_geometry(self, bias_step: float) -> PrimalGeometry:
        """For kernels that visit rows one by one; ``bias_step`` counts only for a free bias."""
        weight_scale = self.epoch_size / self.total_weight
        rho2 = self.bias.rho * self.bias.rho
        return PrimalGeometry(self.lam, weight_scale, rho2, bias_step if self.bias.free else 0.0)

    @property
    def curvatures(self) -> Floats:
        """The curvatures of the dual along each beta_i per unit of c_i / N, ``q_i`` of `geometry`."""
        return self.source.weight * (self.scale * self.source.squared_norms + self.bias_rate)

    @cached_property
    def mean_square(self) -> float:
        """``sum c |x|^2 / N``."""
        return self.mean(self.source.squared_norms)

    @cached_property
    def max_squared_norm(self) -> float:
        """``max |x_i|^2`` over the rows of positive weight."""
        return float(np.max(self.source.squared_norms, where=self.source.weight > 0.0, initial=0.0))

    def mean(self, values: Floats) -> float:
        """The weighted mean of one number a row. Not by BLAS, whose sums depend on the number of threads."""
        return float(np.einsum("i,i", self.source.weight, values)) / self.total_weight

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
            y = part.batch.y[part.batch.weight > 0.0]
            return float(y.min(initial=np.inf)), float(y.max(initial=-np.inf))

        return self.source.reduce(visit, lambda a, b: (min(a[0], b[0]), max(a[1], b[1])))

    @cached_property
    def intercept_bound(self) -> float:
        """A bound on ``|b|`` over all (w, b) that are at least as good as the all-zero model."""
        return self.intercept_bound_at(self.value_at_zero)

    def intercept_bound_at(self, level: float) -> float:
        """A bound on ``|b|`` over all (w, b) with P(w, b) <= level under a free bias."""
        return intercept_bound(self.source.batch, self.loss, self.constants, level)

    @cached_property
    def constants(self) -> Constants:
        """The numbers in P and D that do not depend on the point."""
        strength = self.bias.strength(self.lam)
        return Constants(self.source.n, self.lam, self.total_weight, self.bias.centre, strength)

    def certify(self, point: Point, *, compensated: bool = False) -> Certificate:
        """The certificate of a point, in mean form, from one pass over the data, or a second, compensated one
        where a part of the gap is rounding.
        """
        if not compensated:
            found = self.evaluate(point)
            certificate = self.certificate(found.primal, found.primal_error, found.dual, found.dual_error)
            if certificate.gap == np.inf or certificate.rounding < ROUNDING_COUNTS * certificate.gap:
                return certificate
        found = self.evaluate(point, compensated=True)
        return self.certificate(found.primal, found.primal_error, found.dual, found.dual_error)

    def zero_point(self) -> tuple[Point, Evaluation]:
        """The all-zero point and its evaluation, which needs no pass over the rows: D(0) = 0."""
        n, d = self.source.n, self.source.d
        strength = self.bias.strength(self.lam)
        penalty = 0.5 * strength * self.bias.centre * self.bias.centre if strength < np.inf else 0.0
        value = self.value_at_zero + penalty
        in_memory = self.source.in_memory
        point = Point(np.zeros(d), 0.0, np.zeros(n) if in_memory else None)
        scores = np.zeros(n if in_memory else 0)
        error = 32.0 * UNIT * value + VANISHED if 0.0 < value < np.inf else 0.0
        return point, Evaluation(value, error, 0.0, 0.0, scores, point.w, self.bias.centre)

    def evaluate(self, point: Point, *, compensated: bool = False) -> Evaluation:
        """Compute P(point.w, point.b) and D(point.beta) anew, with bounds on their rounding errors: those of
        float64 or, at four times the work, far smaller ones.
        """
        if not self.source.in_memory:
            streaming = self.streaming_evaluation(point, compensated=compensated)
            for part in self.source.parts():
                streaming.add(part)
            return streaming.evaluation()
        evaluating, scores = self.evaluation_pass(point, compensated=compensated), np.empty(self.source.n)
        whole = self.source.reduce(
            lambda part: evaluating.visit(part, scores[part.span]), EvaluationPass.merge
        )
        return self._evaluation(point, evaluating, whole, scores)

    def evaluation_pass(self, point: Point, *, compensated: bool = False) -> EvaluationPass:
        """What visits the rows to evaluate a point; it holds no rows."""
        n, d = self.source.n, self.source.d
        shapes = [np.shape(array) for array in (point.w, point.beta) if array is not None]
        if shapes not in ([(d,)], [(d,), (n,)]):
            raise InputError(f"a point of shapes {shapes} does not belong to {n} rows of {d} columns")
        beta = None
        if point.beta is not None and self.lam > 0.0:
            beta = self.feasible(canonical(point.beta, np.float64))
        kind = CompensatedPass if compensated else EvaluationPass
        return kind.of(self.loss, point.w, point.b, beta)

    def streaming_evaluation(self, point: Point, *, compensated: bool = False) -> StreamingEvaluation:
        """The evaluation of a point by a pass that reads all rows for another purpose."""
        evaluating, scores = self.evaluation_pass(point, compensated=compensated), np.empty(0)

        def conclude(whole: Partial) -> Evaluation:
            return self._evaluation(point, evaluating, whole, scores)

        return StreamingEvaluation(point, evaluating, self.source.total_weight, conclude)

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

    def certificate(self, primal: float, primal_error: float, dual: float, dual_error: float) -> Certificate:
        """Put a primal and a dual value together; they may belong to different moments of a run."""
        floor = None if dual - dual_error > 0.0 else self.gap_floor  # which may take a pass over the targets
        return certificate_of(primal, primal_error, dual, dual_error, floor)

    def in_form(self, certificate: Certificate, form: Form) -> Certificate:
        """The same certificate for P ("mean") or for J = P / lam ("J")."""
        return in_form(certificate, form, self.lam)

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

    def with_bias(self, bias: Bias) -> Problem:
        """The same problem with another bias. What does not depend on it is not computed again."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), bias=bias)
        for name in ("constants", "intercept_bound", "gap_floor"):
            vars(other).pop(name, None)
        return other
