"""Evaluation of a point: one pass over the rows as the user gave them.

It uses no sum that a solver keeps: scores, losses, conjugates and w(beta) are computed anew in float64, the
totals compensated, and every rounding error on the way is bounded (``bounds.py``).

``EvaluationPass`` holds the point and the loss, and no rows: it can be sent to another process, which visits
its own. The results of parts are merged in the order of the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from ..data.rows import Batch, entry_count
from ..data.sources import Part
from ..runtime.arrays import Floats, canonical, writable
from ..runtime.errors import InputError
from ..runtime.jit import inner, kernel
from ..runtime.sums import COMPENSATED, UNIT, Total, add_vector, gamma, norm, two_sum
from .bounds import SMALLEST, Compensated, Sums, merged
from .losses import Loss

Intercept: TypeAlias = Any  # a float, or in joint problems an array of K of them


class Point(NamedTuple):
    """What a solver offers: a primal point, and a dual point if it has one. In joint problems of K classes
    the shapes are (d, K), (K,) and (n, K).
    """

    w: Floats
    b: Intercept
    beta: Floats | None


class Evaluation(NamedTuple):
    """P and D of a point in mean form, with bounds on their errors and the arrays computed on the way."""

    primal: float
    primal_error: float
    dual: float
    dual_error: float
    scores: Floats  # one a row, or K; empty where the rows are not in memory
    w_of_dual: Floats  # w(beta)
    b: Intercept  # the intercept that belongs to beta


class Partial(NamedTuple):
    """What some of the rows add to an evaluation."""

    sums: Sums
    moment: Floats  # sum c beta x
    lost: Floats  # what rounding lost of the moment while parts were merged; empty before
    moment_error: float  # a bound on the length of the moment's error


class Linear(NamedTuple):
    """A model, with a bound on the length of w."""

    w: Floats
    b: float
    length: float


class Slopes(NamedTuple):
    """Bounds on the first and second derivative of a loss."""

    lipschitz: float
    smoothness: float

    @classmethod
    def of(cls, loss: Loss) -> Slopes:
        """Those of a loss; its constants may be whole numbers."""
        return cls(float(loss.lipschitz), float(loss.smoothness))


@dataclass(frozen=True, eq=False)
class EvaluationPass:
    """The evaluation of one point: ``visit`` every part once, ``merge`` the results in their order."""

    loss: Loss
    model: Linear
    beta: Floats | None  # a feasible dual point of all rows

    gathers: ClassVar[bool] = True  # chunks can be added to the sums of those before

    @classmethod
    def of(cls, loss: Loss, w: Floats, b: float, beta: Floats | None) -> EvaluationPass:
        """For a model and a feasible dual point, if there is one."""
        w = writable(w)
        length = norm(w) * (1.0 + COMPENSATED)
        return cls(loss, Linear(w, float(b), length), None if beta is None else canonical(beta, np.float64))

    def blank(self, rows: int) -> Floats:
        """Room for the scores of so many rows."""
        return np.empty(rows)

    def visit(self, part: Part, scores: Floats) -> Partial:
        """What one part adds; the scores of its rows are written into the last argument."""
        moment = np.zeros(self.model.w.size)
        sums = self.sums(part, scores, moment)
        return self.partial(sums, moment, part.batch.y.shape[0])

    def sums(self, part: Part, scores: Floats, moment: Floats) -> Sums:
        """The same, with ``sum c beta x`` added to a vector that may hold other parts already."""
        beta = np.zeros(part.batch.y.shape[0]) if self.beta is None else self.beta[part.span]
        beta = canonical(beta, np.float64)
        return _evaluate(part.batch, self.loss, Slopes.of(self.loss), self.model, beta, scores, moment)

    @staticmethod
    def partial(sums: Sums, moment: Floats, rows: int) -> Partial:
        """The result of so many rows that were added up one by one."""
        return Partial(sums, moment, np.zeros(0), float(gamma(rows + 2.0)) * sums.length)

    @staticmethod
    def merge(left: Partial, right: Partial) -> Partial:
        """Two neighbours together; the arrays of the left one are used again."""
        lost = left.lost if left.lost.size else np.zeros(left.moment.size)
        add_vector(left.moment, lost, right.moment)
        error = left.moment_error + right.moment_error
        return Partial(merged(left.sums, right.sums), left.moment, lost, error)


@dataclass(frozen=True, eq=False)
class SlopesPass(EvaluationPass):
    """The evaluation of a model, and of the duals that its own scores ask for, ``beta_i = -phi'(score_i)``:
    they are written into ``beta`` as rows go by.
    """

    def sums(self, part: Part, scores: Floats, moment: Floats) -> Sums:
        """The duals of these rows, and then what `EvaluationPass.sums` does."""
        assert self.beta is not None
        _fill_duals(part.batch, self.loss, self.model, self.beta[part.span])
        return super().sums(part, scores, moment)


class StreamingEvaluation:
    """An evaluation during a pass that reads all rows for another purpose, a chunk at a time, in their order.

    Chunks are gathered into parts that have many more entries than the d numbers that a part adds up.
    ``weight`` is what the weights of all rows must add up to; ``conclude`` makes an evaluation of the result.
    """

    def __init__(
        self,
        point: Point,
        evaluating: EvaluationPass,
        weight: float,
        conclude: Callable[[Partial], Evaluation],
    ) -> None:
        self.point = point
        self._evaluating, self._expected, self._conclude = evaluating, weight, conclude
        self._d = evaluating.model.w.size
        self._enough = self._d + 1_000_000  # entries of a part
        self._whole: Partial | None = None
        self._weight = Total()
        self._begin()

    def _begin(self) -> None:
        self._moment = np.zeros(self._d)
        self._sums: Sums | None = None
        self._rows = self._entries = 0

    def add(self, part: Part) -> None:
        """The next rows."""
        rows = part.batch.y.shape[0]
        self._weight.add(part.batch.weight)
        if not self._evaluating.gathers:
            self._merge(self._evaluating.visit(part, self._evaluating.blank(rows)))
            return
        sums = self._evaluating.sums(part, self._evaluating.blank(rows), self._moment)
        self._sums = sums if self._sums is None else merged(self._sums, sums)
        self._rows += rows
        self._entries += entry_count(part.batch.rows)
        if self._entries >= self._enough:
            self._close()

    def evaluation(self) -> Evaluation:
        """The evaluation, once every row has been seen."""
        weight = self._expected
        if not abs(self._weight.value - weight) <= 2.0 * COMPENSATED * weight:
            raise InputError(
                f"the weights of all rows add up to {self._weight.value!r}, and should to {weight!r}: a feed "
                "must give the same rows in every pass, and a store whose header is wrong must be converted "
                "anew"
            )
        self._close()
        assert self._whole is not None  # a source has rows
        return self._conclude(self._whole)

    def _close(self) -> None:
        if self._sums is not None:
            self._merge(self._evaluating.partial(self._sums, self._moment, self._rows))
            self._begin()

    def _merge(self, part: Partial) -> None:
        self._whole = part if self._whole is None else self._evaluating.merge(self._whole, part)


@kernel
def _evaluate(
    batch: Batch, loss: Any, slopes: Slopes, model: Linear, beta: Floats, scores: Floats, moment: Floats
) -> Sums:
    """One part of an evaluation: fill in ``scores``, add ``c beta x`` to ``moment``, return the sums.

    The error of a score is at most ``off``. The loss is convex, so its error is at most ``off`` times the
    largest slope within ``score +- off``: the Lipschitz constant, the slope at the score plus smoothness
    times off, or the slopes at both ends.
    """
    rows, y, weight, squared_norms = batch
    lipschitz, smoothness = slopes
    w, b, length = model
    bounded = lipschitz < np.inf or smoothness < np.inf
    total = lost = error = 0.0
    dual = dual_lost = dual_error = 0.0
    balance = balance_lost = mass = lengths = 0.0
    last = y.shape[0] - 1
    for i in range(y.shape[0]):
        if i < last:
            rows.prefetch_weights(i + 1, w)
            if beta[i + 1] != 0.0:
                rows.prefetch_weights(i + 1, moment)
        c, label = weight[i], y[i]
        score = rows.dot(i, w) + b
        scores[i] = score
        if c == 0.0:
            continue
        size = np.sqrt(squared_norms[i])
        value = loss.value(label, score)
        off = gamma(rows.count(i) + 4.0) * 1.01 * (length * size + abs(b)) + 4.0 * UNIT * (
            1.0 + abs(score) + abs(label)
        )
        steep = abs(loss.derivative(label, score if bounded else score - off))
        if bounded:
            steep += smoothness * off
            steep = steep if steep < lipschitz else lipschitz
        else:
            other = abs(loss.derivative(label, score + off))
            steep = other if other > steep else steep
        error += c * (1.01 * steep * off + 16.0 * UNIT * value)
        total, rest = two_sum(total, c * value)
        lost += rest

        # the conjugate at 0 is minus the infimum of the loss, which is 0 for every loss
        a = beta[i]
        if a != 0.0:
            conjugate = loss.conjugate(label, a)
            dual_error += c * 16.0 * UNIT * (abs(conjugate) + abs(a) * (1.0 + abs(label) + abs(a)))
            dual, rest = two_sum(dual, c * conjugate)
            dual_lost += rest
            balance, rest = two_sum(balance, c * a)
            balance_lost += rest
            mass += c * abs(a)
            lengths += 1.01 * c * abs(a) * size
            rows.add(i, c * a, moment)
    return Sums(
        Compensated(total, lost),
        error,
        Compensated(dual, dual_lost),
        dual_error,
        Compensated(balance, balance_lost),
        mass,
        lengths,
    )


@kernel
def _fill_duals(batch: Batch, loss: Any, model: Linear, beta: Floats) -> None:
    """``beta_i = -phi'(<w, x_i> + b, y_i)``."""
    rows, y, _, _ = batch
    w, b, _ = model
    for i in range(y.shape[0]):
        beta[i] = -loss.derivative(y[i], rows.dot(i, w) + b)


@kernel
def total_loss(batch: Batch, loss: Any, w: Floats, b: float) -> Compensated:
    """``sum_i c_i phi(<w, x_i> + b, y_i)``; rows of weight 0 are not read."""
    rows, y, weight, _ = batch
    total = lost = 0.0
    for i in range(y.shape[0]):
        if weight[i] > 0.0:
            total, rest = two_sum(total, weight[i] * loss.value(y[i], rows.dot(i, w) + b))
            lost += rest
    return Compensated(total, lost)


@inner
def loss_at_zero(y: float, weight: float, loss: Any) -> float:
    """``c phi(0, y)``. It is 0 only where it is so exactly."""
    share = weight * loss.value(y, 0.0)
    if share == 0.0 and loss.derivative(y, 0.0) != 0.0:
        share = SMALLEST  # a loss so small that it vanished
    return share  # type: ignore[no-any-return]


@kernel
def losses_at_zero(y: Floats, weight: Floats, loss: Any) -> Compensated:
    """The total loss of the all-zero model."""
    total = lost = 0.0
    for i in range(y.shape[0]):
        if weight[i] > 0.0:
            total, rest = two_sum(total, loss_at_zero(y[i], weight[i], loss))
            lost += rest
    return Compensated(total, lost)


@kernel
def add_rows(rows: Any, share: Floats, moment: Floats) -> None:
    """``moment += sum of share_i x_i``."""
    for i in range(share.shape[0]):
        if share[i] != 0.0:
            rows.add(i, share[i], moment)
