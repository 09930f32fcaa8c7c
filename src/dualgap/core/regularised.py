"""What problems with one score a row and joint problems of K scores a row have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, cast

import numpy as np

from ..data.sources import Source
from ..runtime.arrays import Floats, canonical
from ..runtime.errors import InputError
from ..runtime.sums import UNIT
from .bias import Bias, NoBias
from .bounds import VANISHED, Constants
from .certificate import Certificate, Form, certificate_of, in_form
from .evaluation import Evaluation, EvaluationPass, Partial, Point, StreamingEvaluation
from .objective import Identity, Size

ROUNDING_COUNTS = 0.1  # of a gap, from which on a certificate is made with compensated sums


@dataclass(frozen=True, eq=False)
class Regularised(ABC):
    """A source of rows, a loss, the strength of regularisation and the kind of bias.

    ``total_weight`` is N: the sum of the source's weights, within two units, unless it is given (for rows of
    a stream, or some of the rows of a larger problem). ``dataclasses.replace`` keeps it.
    """

    source: Source
    loss: Any  # a Loss, or a JointLoss
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

    @abstractmethod
    def check_targets(self, y: Floats, first: int = 0) -> None:
        """Refuse targets that the loss cannot take; errors count rows from ``first``."""

    @property
    def scores_per_row(self) -> tuple[int, ...]:
        """The shape of the scores of one row, and of its duals: () for one, (K,) for K of them."""
        return ()

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

    def has_values_of(self, other: Regularised) -> bool:
        """Whether both are the same problem on the same rows in memory, so that points have the same
        values.
        """
        mine, theirs = self.source, other.source
        return (
            (repr(self.loss), self.lam, repr(self.bias), self.total_weight)
            == (repr(other.loss), other.lam, repr(other.bias), other.total_weight)
            and mine.in_memory
            and theirs.in_memory
            and mine.batch.rows is theirs.batch.rows
            and np.array_equal(mine.y, theirs.y)
            and np.array_equal(mine.weight, theirs.weight)
        )

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

    @property
    @abstractmethod
    def value_at_zero(self) -> float:
        """The mean loss of the all-zero model, from y and the weights alone."""

    @property
    @abstractmethod
    def gap_floor(self) -> float | None:
        """What the gap is measured against where no positive lower bound is known; None: nothing."""

    @property
    @abstractmethod
    def intercept_bound(self) -> float:
        """A bound on what a free intercept can be in (w, b) that are at least as good as the all-zero
        model.
        """

    @cached_property
    def constants(self) -> Constants:
        """The numbers in P and D that do not depend on the point."""
        strength = self.bias.strength(self.lam)
        duals = int(np.prod((self.source.n, *self.scores_per_row)))
        return Constants(duals, self.lam, self.total_weight, self.bias.centre, strength)

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
        n, d, several = self.source.n, self.source.d, self.scores_per_row
        strength = self.bias.strength(self.lam)
        penalty = 0.5 * strength * self.bias.centre * self.bias.centre if strength < np.inf else 0.0
        value = self.value_at_zero + penalty
        in_memory = self.source.in_memory
        zero, centre = (np.zeros(several), np.zeros(several)) if several else (0.0, self.bias.centre)
        point = Point(np.zeros((d, *several)), zero, np.zeros((n, *several)) if in_memory else None)
        scores = np.zeros((n if in_memory else 0, *several))
        error = 32.0 * UNIT * value + VANISHED if 0.0 < value < np.inf else 0.0
        return point, Evaluation(value, error, 0.0, 0.0, scores, point.w, centre)

    def evaluate(self, point: Point, *, compensated: bool = False) -> Evaluation:
        """Compute P(point.w, point.b) and D(point.beta) anew, with bounds on their rounding errors: those of
        float64 or, at four times the work, far smaller ones.
        """
        if not self.source.in_memory:
            streaming = self.streaming_evaluation(point, compensated=compensated)
            for part in self.source.parts():
                streaming.add(part)
            return streaming.evaluation()
        evaluating = self.evaluation_pass(point, compensated=compensated)
        scores = evaluating.blank(self.source.n)
        whole = self.source.reduce(
            lambda part: evaluating.visit(part, scores[part.span]), EvaluationPass.merge
        )
        return self._evaluation(point, evaluating, whole, scores)

    def evaluation_pass(self, point: Point, *, compensated: bool = False) -> EvaluationPass:
        """What visits the rows to evaluate a point; it holds no rows."""
        n, d, several = self.source.n, self.source.d, self.scores_per_row
        shapes = [np.shape(array) for array in (point.w, point.beta) if array is not None]
        if shapes not in ([(d, *several)], [(d, *several), (n, *several)]):
            classes = f" and {several[0]} classes" if several else ""
            raise InputError(
                f"a point of shapes {shapes} does not belong to {n} rows of {d} columns{classes}"
            )
        beta = None
        if point.beta is not None and self.lam > 0.0:
            beta = self.feasible(canonical(point.beta, np.float64))
        return self._pass(point, beta, compensated)

    def streaming_evaluation(self, point: Point, *, compensated: bool = False) -> StreamingEvaluation:
        """The evaluation of a point by a pass that reads all rows for another purpose."""
        return self._streaming(point, self.evaluation_pass(point, compensated=compensated))

    def streaming_slopes(self, w: Floats, b: Any) -> StreamingEvaluation:
        """The evaluation of a model and of the duals that its own scores ask for, minus the derivatives of
        their losses, by such a pass; ``point.beta`` is complete when the pass is.
        """
        point = Point(w, b, np.zeros((self.source.n, *self.scores_per_row)))
        return self._streaming(point, self._slopes_pass(point))

    def _streaming(self, point: Point, evaluating: EvaluationPass) -> StreamingEvaluation:
        scores = evaluating.blank(0)

        def conclude(whole: Partial) -> Evaluation:
            return self._evaluation(point, evaluating, whole, scores)

        return StreamingEvaluation(point, evaluating, self.source.total_weight, conclude)

    @abstractmethod
    def _pass(self, point: Point, beta: Floats | None, compensated: bool) -> EvaluationPass:
        """The pass over the rows for a model and a feasible dual point."""

    @abstractmethod
    def _slopes_pass(self, point: Point) -> EvaluationPass:
        """The pass over the rows for a model and the duals that follow from its scores."""

    @abstractmethod
    def _evaluation(
        self, point: Point, evaluating: EvaluationPass, whole: Partial, scores: Floats
    ) -> Evaluation:
        """The values of a point, from what the pass over all rows has found."""

    @abstractmethod
    def feasible(self, beta: Floats) -> Floats:
        """A dual point that satisfies the constraint of a free bias: beta itself for every other kind."""

    @abstractmethod
    def mean_loss(self, w: Floats, b: Any) -> float:
        """The mean loss of a model, which is P without the terms of regularisation; no bounds, no dual."""

    def certificate(self, primal: float, primal_error: float, dual: float, dual_error: float) -> Certificate:
        """Put a primal and a dual value together; they may belong to different moments of a run."""
        floor = None if dual - dual_error > 0.0 else self.gap_floor  # which may take a pass over the targets
        return certificate_of(primal, primal_error, dual, dual_error, floor)

    def in_form(self, certificate: Certificate, form: Form) -> Certificate:
        """The same certificate for P ("mean") or for J = P / lam ("J")."""
        return in_form(certificate, form, self.lam)

    def with_bias(self, bias: Bias) -> Self:
        """The same problem with another bias. What does not depend on it is not computed again."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), bias=bias)
        for name in ("constants", "intercept_bound", "gap_floor"):
            vars(other).pop(name, None)
        return other
