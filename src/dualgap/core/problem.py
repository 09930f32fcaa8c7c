"""The problem, and the certificate of any point. This module knows nothing of any solver.

    P(w, b) = lam/2 |w|^2 + r(b) + 1/N sum_i c_i phi(<w, x_i> + b, y_i),      N = sum_i c_i
    D(beta) = -1/N sum_i c_i phi*(-beta_i) - lam/2 |w(beta)|^2 + min_b (r(b) - z b)
    w(beta) = 1/(lam N) sum_i c_i beta_i x_i,   z = 1/N sum_i c_i beta_i

lam = 0 leaves the dual problem with the constraint sum c beta x = 0, which no computed beta satisfies: the
only lower bound is then D(0) = 0. Weak duality: D(beta) <= P(w, b) for every beta and every (w, b). A row of
weight 2 is that row twice, a row of weight 0 is absent. In C-form J = P / lam with C = 1 / (lam N).

A certificate is about P and D with the rows, targets, weights and lam exactly as given, and with N the exact
sum of the weights. The code divides by ``total_weight``, a float within two units of N (``sums.Total``); the
bounds below allow for that. Where a caller gives C, lam is the float 1 / (C total_weight), and 1 / (lam N) is
within five units of C; the bounds hold for J with the caller's C as well.

An evaluation is one pass over the data as the user gave them. It trusts no sum that a solver keeps: scores,
losses, conjugates and w(beta) are computed anew in float64, the totals compensated, and every rounding error
on the way is bounded (``sums.py``); the bounds are added to the gap. How each bound arises:

- A score of k products errs by at most ``gamma(k + 2) (|w| |x_i| + |b|)``, by Cauchy and Schwarz. The loss is
  convex, so that moves it by at most that much times its steepest slope within the interval.
- ``sum c beta x`` over the m rows of a part errs, as a vector, by at most ``gamma(m + 2) sum c |beta| |x|``
  in length; parts are merged with compensation. ``lam/2 |w|^2`` then errs by ``lam |w| error + lam/2
  error^2``.
- With a free bias, weak duality wants ``z = 0``, and floats give a z that is almost 0. For every (w, b) at
  least as good as the all-zero model ``|b| <= bias_reach``, so the dual value less ``|z| bias_reach`` bounds
  the best of them.
- Formulas of losses and conjugates err by a few units of their largest term; compensated totals by less than
  that.
- What is left (total_weight for N, products, quotients, the change of form, the C of a caller) is less than
  32 units of each term of P and D. It is most in ``lam/2 |w(beta)|^2``, where N and C count twice: below 28.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from ..data.rows import Batch, entry_count
from ..data.sources import Part, Source
from ..runtime.arrays import Floats, canonical
from ..runtime.errors import InputError, InternalError
from ..runtime.jit import kernel
from ..runtime.sums import COMPENSATED, UNIT, Total, add_vector, gamma, norm, two_sum
from .bias import Bias, NoBias
from .geometry import DualGeometry, PrimalGeometry
from .losses import Loss

Form = Literal["mean", "J"]

# Where D <= 0 no relative gap follows from (P - D) / D, and the gap is measured against this part of P(0).
# An optimum of 0 needs it: a constant target that a free bias fits exactly, or targets that are all 0.
ABSOLUTE_SHARE = 1e-6

# More than all that can be lost where products of numbers between 1e-100 and 1e100 fall below the smallest
# float.
VANISHED = 1e-200
SMALLEST = 5e-324  # float: a product that vanishes loses less


class Point(NamedTuple):
    """What a solver offers: a primal point, and a dual point if it has one."""

    w: Floats
    b: float
    beta: Floats | None


class Certificate(NamedTuple):
    """Proof of how good a model is: the best objective possible lies between ``dual`` and ``primal``.

    ``gap`` is ``primal - dual`` plus ``rounding``, a bound on all rounding errors in the two. Where ``dual >
    0``, ``relative_gap = gap / dual`` (less its rounding), and the objective is at most that fraction above
    the optimum; where ``dual <= 0``, the gap is measured against a millionth of the objective of the all-zero
    model. ``form`` is "mean" for P or "J" for P / lam.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    rounding: float
    form: Form


class Evaluation(NamedTuple):
    """A certificate in mean form with what the pass computed on the way."""

    primal: float
    primal_error: float
    dual: float
    dual_error: float
    scores: Floats
    w_of_dual: Floats  # w(beta)
    b: float  # the bias that belongs to beta


class Identity(NamedTuple):
    """Which problem it is, in words and a digest of the data: a run goes on only with the problem it was made
    for.
    """

    loss: str
    lam: float
    bias: str
    data: str


class _Sums(NamedTuple):
    """What one part of the rows adds to an evaluation."""

    loss: float
    loss_lost: float
    loss_error: float
    conjugate: float
    conjugate_lost: float
    conjugate_error: float
    balance: float  # sum c beta
    balance_lost: float
    mass: float  # sum c |beta|
    length: float  # sum c |beta| |x|


Share: TypeAlias = tuple[_Sums, Floats, Floats, float]  # with sum c beta x, what its sums lost, and its error


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

    def __post_init__(self) -> None:
        if cast("float | None", self.total_weight) is None:
            object.__setattr__(self, "total_weight", self.source.total_weight)
        if not (1e-100 <= self.lam <= 1e100 or self.lam == 0.0):
            raise InputError(f"lam={self.lam!r} must be a positive number between 1e-100 and 1e100")
        if self.source.in_memory:
            self.check_targets(self.source.y)

    def check_targets(self, y: Floats, first: int = 0) -> None:
        """Refuse targets that the loss cannot take; those of rows from ``first`` on."""
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
        """What tells this problem from others."""
        return Identity(repr(self.loss), self.lam, repr(self.bias), self.source.digest)

    @property
    def epoch_size(self) -> int:
        """How many rows have a positive weight: an epoch is that many visits."""
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
        """``q_i = c_i (scale |x_i|^2 + bias_rate)``: the curvature of the dual along beta_i, per unit of c_i
        / N.
        """
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
        """By weight, of one number a row. Not by BLAS: its threads wake up slowly, and sums depend on their
        number.
        """
        return float(np.einsum("i,i", self.source.weight, values)) / self.total_weight

    @cached_property
    def value_at_zero(self) -> float:
        """The mean loss of the all-zero model, from y and the weights alone."""
        known = self.source.target_weights
        if known is not None:
            y, weight = (np.array(part, dtype=np.float64) for part in zip(*known, strict=True))
            total, lost = _loss_at_zero(y, weight, self.loss)
        else:

            def visit(part: Part) -> tuple[float, float]:
                return _loss_at_zero(part.batch.y, part.batch.weight, self.loss)

            total, lost = self.source.reduce(visit, _added)
        if total == np.inf:
            return np.inf  # a hard margin is not met at 0
        return max(float(total + lost) / self.total_weight, SMALLEST) if total > 0.0 else 0.0

    @cached_property
    def bias_reach(self) -> float:
        """A bound on ``|b|`` over all (w, b) that are at least as good as the all-zero model."""
        return self.reach(self.value_at_zero)

    def reach(self, level: float) -> float:
        """A bound on ``|b|`` over all (w, b) with P(w, b) <= level under a free bias, from the losses alone.

        There ``lam/2 |w|^2 <= level``, so a score lies within ``length |x_i|`` of b. Rows whose loss rises
        there add up to more than N level once b is large enough, on either side: doubling finds such a b. It
        is infinite where the losses do not tie b down (one class only), or the level is.
        """
        if not np.isfinite(level):
            return np.inf
        source, worst = self.source, 1.001 * level * self.total_weight
        length = float(np.sqrt(2.002 * level / self.lam))
        reach = 1.0
        for sign in (1.0, -1.0):
            while reach < 1e300:
                if (
                    _losses_beyond(
                        source.y, source.weight, source.squared_norms, self.loss, length, sign, reach
                    )
                    >= worst
                ):
                    break
                reach *= 2.0
        return reach if reach < 1e300 else np.inf

    def certify(self, point: Point) -> Certificate:
        """The certificate of a point, in mean form, from one pass over the data."""
        found = self.evaluate(point)
        return self.certificate(found.primal, found.primal_error, found.dual, found.dual_error)

    def zero_point(self) -> tuple[Point, Evaluation]:
        """The all-zero point and its evaluation, which needs no pass over the data: D(0) = 0 for every
        loss.
        """
        n, d = self.source.n, self.source.d
        strength = self.bias.strength(self.lam)
        penalty = 0.5 * strength * self.bias.centre * self.bias.centre if strength < np.inf else 0.0
        value = self.value_at_zero + penalty
        resident = self.source.in_memory
        point = Point(np.zeros(d), 0.0, np.zeros(n) if resident else None)
        scores = np.zeros(n if resident else 0)
        error = 32.0 * UNIT * value + VANISHED if 0.0 < value < np.inf else 0.0
        return point, Evaluation(value, error, 0.0, 0.0, scores, point.w, self.bias.centre)

    def evaluate(self, point: Point) -> Evaluation:
        """Compute P(point.w, point.b) and D(point.beta) anew, with bounds on their rounding errors."""
        evaluating = EvaluationPass(self, point)
        if self.source.in_memory:
            return evaluating.evaluation(self.source.reduce(evaluating.visit, evaluating.merge))
        passing = StreamingEvaluation(evaluating)
        for part in self.source.parts():
            passing.add(part)
        return passing.evaluation()

    def mean_loss(self, w: Floats, b: float) -> float:
        """The mean loss of a model, which is P without the terms of regularisation; no bounds, no dual."""
        w = canonical(w, np.float64)

        def visit(part: Part) -> tuple[float, float]:
            return _total_loss(part.batch, self.loss, w, b)

        total, lost = self.source.reduce(visit, _added)
        mean = (total + lost) / self.total_weight
        return float(mean) if np.isfinite(mean) else np.inf

    def model_of(self, beta: Floats, b: float) -> tuple[Floats, float]:
        """w(beta), and b(beta) or, where the bias is free and does not follow from beta, the b given."""

        def visit(part: Part) -> tuple[Floats, float]:
            moment = np.zeros(self.source.d)
            share = part.batch.weight * beta[part.span]
            _add_rows(part.batch.rows, share, moment)
            return moment, float(share.sum())

        moment, balance = self.source.reduce(visit, lambda a, b: (a[0] + b[0], a[1] + b[1]))
        strength = self.bias.strength(self.lam)
        if strength > 0.0:
            b = self.bias.centre + balance / (strength * self.total_weight)
        return moment * self.scale, b

    def _primal(self, sums: _Sums, length: float, b: float) -> tuple[float, float]:
        strength = self.bias.strength(self.lam)
        shift = b - self.bias.centre
        penalty = 0.0 if strength == np.inf else 0.5 * strength * shift * shift
        if strength == np.inf and b != 0.0:
            return np.inf, 0.0  # NoBias: such a point is not feasible
        ridge = 0.5 * self.lam * length * length
        mean = (sums.loss + sums.loss_lost) / self.total_weight
        value = ridge + penalty + mean
        error = sums.loss_error / self.total_weight + 32.0 * UNIT * (ridge + penalty + mean) + VANISHED
        return (
            (value, error) if np.isfinite(value + error) else (np.inf, 0.0)
        )  # not finite, or not sure to be

    def _dual(self, sums: _Sums, moment: Floats, moment_error: float, reach: float) -> tuple[float, float]:
        """D and a bound on its error, from ``moment = sum c beta x`` and the length of its error."""
        if not np.isfinite(sums.conjugate):
            return -np.inf, 0.0
        if self.lam == 0.0:
            return 0.0, 0.0
        weight = self.total_weight
        conjugate = (sums.conjugate + sums.conjugate_lost) / weight
        length = norm(moment / weight)  # the square of the moment itself might vanish or overflow
        ridge = 0.5 * length * length / self.lam
        length_error = moment_error / weight + 2.0 * COMPENSATED * length
        ridge_error = (length * length_error + 0.5 * length_error**2) / self.lam

        strength = self.bias.strength(self.lam)
        z = (sums.balance + sums.balance_lost) / weight
        z_error = (COMPENSATED * sums.mass + self.source.n * SMALLEST) / weight
        if strength == np.inf:
            push = pull = term_error = 0.0
        elif strength == 0.0:
            push = pull = 0.0
            if sums.mass > 0.0 and not np.isfinite(reach):
                return -np.inf, 0.0
            term_error = (abs(z) + z_error) * reach if sums.mass > 0.0 else 0.0
        else:
            push, pull = self.bias.centre * z, z * z / (2.0 * strength)
            if abs(z) < 1e-140:  # its square might vanish, and the strength may be as small
                pull = z / (2.0 * strength) * z
            term_error = z_error * (abs(self.bias.centre) + (abs(z) + z_error) / strength)

        value = -conjugate - ridge - push - pull
        size = abs(conjugate) + ridge + abs(push) + pull
        if sums.mass == 0.0:
            return 0.0, 0.0
        error = sums.conjugate_error / weight + ridge_error + term_error + 32.0 * UNIT * size + VANISHED
        return (value, error) if np.isfinite(value + error) else (-np.inf, 0.0)

    def certificate(self, primal: float, primal_error: float, dual: float, dual_error: float) -> Certificate:
        """Put a primal and a dual value together; they may belong to different moments of a run."""
        rounding = primal_error + dual_error
        gap = primal - dual + rounding
        if primal == np.inf or dual == -np.inf:
            return Certificate(primal, dual, np.inf, np.inf, rounding, "mean")
        if gap < 0.0:
            raise InternalError(
                f"weak duality broken: primal {primal!r} < dual {dual!r} by more than rounding {rounding!r}; "
                "please report this with the data and the options"
            )
        sure = dual - dual_error
        base = sure if sure > 0.0 else ABSOLUTE_SHARE * self.value_at_zero
        relative = 0.0 if gap == 0.0 else (gap / base if base > 0.0 else np.inf)
        return Certificate(primal, dual, gap, relative, rounding, "mean")

    def in_form(self, certificate: Certificate, form: Form) -> Certificate:
        """The same certificate for P ("mean") or for J = P / lam ("J")."""
        if certificate.form == form or self.lam == 0.0:  # without lam there is no C-form
            return certificate
        factor = 1.0 / self.lam if form == "J" else self.lam
        primal, dual, gap, relative, rounding, _ = certificate
        return Certificate(primal * factor, dual * factor, gap * factor, relative, rounding * factor, form)

    def with_bias(self, bias: Bias) -> Problem:
        """The same problem with another bias."""
        return replace(self, bias=bias)


class EvaluationPass:
    """An evaluation under way: ``visit`` every block once, ``merge`` what comes out in the order of the
    blocks.
    """

    def __init__(self, problem: Problem, point: Point) -> None:
        source = problem.source
        n, d = source.n, source.d
        shapes = [np.shape(array) for array in (point.w, point.beta) if array is not None]
        if shapes not in ([(d,)], [(d,), (n,)]):
            raise InputError(f"a point of shapes {shapes} does not belong to {n} rows of {d} columns")
        self.problem, self.point = problem, point
        self._w = canonical(point.w, np.float64)
        self._length = norm(self._w) * (1.0 + COMPENSATED)
        self._beta: Floats | None = None
        if point.beta is not None and problem.lam > 0.0:
            self._beta = canonical(
                problem.bias.feasible(canonical(point.beta, np.float64), source.weight), np.float64
            )
        self._scores = np.empty(n if source.in_memory else 0)

    def visit(self, part: Part) -> Share:
        """What one part adds."""
        moment = np.zeros(self.problem.source.d)
        sums = self.sums(part, moment)
        return sums, moment, np.zeros(0), float(gamma(part.batch.y.shape[0] + 2.0)) * sums.length

    def sums(self, part: Part, moment: Floats) -> _Sums:
        """The same, with ``sum c beta x`` added to a vector that may hold other blocks already."""
        rows = part.batch.y.shape[0]
        beta = canonical(np.zeros(rows) if self._beta is None else self._beta[part.span], np.float64)
        scores = self._scores[part.span] if self._scores.size else np.empty(rows)
        loss = self.problem.loss
        bounds = float(loss.lipschitz), float(loss.smoothness)
        return _Sums(
            *_evaluate(*part.batch, loss, *bounds, self._w, self.point.b, self._length, beta, scores, moment)
        )

    def merge(self, left: Share, right: Share) -> Share:
        """Two neighbours together."""
        lost = left[2] if left[2].size else np.zeros(self.problem.source.d)
        add_vector(left[1], lost, right[1])
        return _merge(left[0], right[0]), left[1], lost, left[3] + right[3]

    def evaluation(self, whole: Share) -> Evaluation:
        """The end of it."""
        problem, point = self.problem, self.point
        sums, moment, lost, moment_error = whole
        if lost.size:
            moment += lost
        primal, primal_error = problem._primal(sums, self._length, point.b)
        strength = problem.bias.strength(problem.lam)
        reach = 0.0
        if strength == 0.0 and problem.lam > 0.0:  # the hard margin has no finite value at zero
            finite = np.isfinite(problem.value_at_zero)
            reach = problem.bias_reach if finite else problem.reach(primal + primal_error)
        dual, dual_error = problem._dual(sums, moment, moment_error, reach)
        balance = (sums.balance + sums.balance_lost) / problem.total_weight
        b = problem.bias.centre + balance / strength if strength > 0 else point.b
        w = moment * problem.scale if problem.lam > 0.0 else np.zeros(moment.size)
        return Evaluation(primal, primal_error, dual, dual_error, self._scores, w, b)


class StreamingEvaluation:
    """An evaluation by someone who reads all rows for another purpose, a block at a time, in their order.

    Blocks are gathered into parts that are large against the d numbers that a part adds up.
    """

    def __init__(self, evaluating: EvaluationPass) -> None:
        self.point = evaluating.point
        self._evaluating = evaluating
        self._d = evaluating.problem.source.d
        self._enough = self._d + 1_000_000  # entries of a part
        self._whole: Share | None = None
        self._weight = Total()
        self._begin()

    def _begin(self) -> None:
        self._moment = np.zeros(self._d)
        self._sums: _Sums | None = None
        self._rows = self._entries = 0

    def add(self, part: Part) -> None:
        """The next rows."""
        sums = self._evaluating.sums(part, self._moment)
        self._sums = sums if self._sums is None else _merge(self._sums, sums)
        self._rows += part.batch.y.shape[0]
        self._entries += entry_count(part.batch.rows)
        self._weight.add(part.batch.weight)
        if self._entries >= self._enough:
            self._close()

    def evaluation(self) -> Evaluation:
        """When every row has been seen. Their weights must add up to N: it was not found in this pass."""
        weight = self._evaluating.problem.source.total_weight
        if not abs(self._weight.value - weight) <= 2.0 * COMPENSATED * weight:
            raise InputError(
                f"the weights of all rows add up to {self._weight.value!r}, and should to {weight!r}: a feed "
                "must give the same rows in every pass, and a store whose header is wrong must be converted "
                "anew"
            )
        self._close()
        assert self._whole is not None  # a source has rows
        return self._evaluating.evaluation(self._whole)

    def _close(self) -> None:
        if self._sums is not None:
            share = (
                self._sums,
                self._moment,
                np.zeros(0),
                float(gamma(self._rows + 2.0)) * self._sums.length,
            )
            self._whole = share if self._whole is None else self._evaluating.merge(self._whole, share)
            self._begin()


def _merge(a: _Sums, b: _Sums) -> _Sums:
    loss, loss_lost = two_sum(a.loss, b.loss)
    conjugate, conjugate_lost = two_sum(a.conjugate, b.conjugate)
    balance, balance_lost = two_sum(a.balance, b.balance)
    return _Sums(
        loss,
        a.loss_lost + b.loss_lost + loss_lost,
        a.loss_error + b.loss_error,
        conjugate,
        a.conjugate_lost + b.conjugate_lost + conjugate_lost,
        a.conjugate_error + b.conjugate_error,
        balance,
        a.balance_lost + b.balance_lost + balance_lost,
        a.mass + b.mass,
        a.length + b.length,
    )


@kernel
def _evaluate(
    rows: Any,
    y: Floats,
    weight: Floats,
    squared_norms: Floats,
    loss: Any,
    lipschitz: float,
    smoothness: float,
    w: Floats,
    b: float,
    length: float,
    beta: Floats,
    scores: Floats,
    moment: Floats,
) -> _Sums:
    """One part of an evaluation: fill in ``scores``, add ``c beta x`` to ``moment``, return the sums."""
    bounded = min(lipschitz, smoothness) < np.inf
    total = lost = error = 0.0
    dual = dual_lost = dual_error = 0.0
    balance = balance_lost = mass = reach = 0.0
    last = y.shape[0] - 1
    for i in range(y.shape[0]):
        if i < last:
            rows.prefetch_weights(i + 1, w)
            if beta[i + 1] != 0.0:
                rows.prefetch_weights(i + 1, moment)
        c = weight[i]
        score = rows.dot(i, w) + b
        scores[i] = score
        if c == 0.0:
            continue
        size = np.sqrt(squared_norms[i])
        value = loss.value(y[i], score)
        off = gamma(rows.count(i) + 4.0) * 1.01 * (length * size + abs(b)) + 4.0 * UNIT * (
            1.0 + abs(score) + abs(y[i])
        )
        if bounded:
            steep = min(lipschitz, abs(loss.derivative(y[i], score)) + smoothness * off)
        else:
            steep = max(abs(loss.derivative(y[i], score - off)), abs(loss.derivative(y[i], score + off)))
        error += c * (1.01 * steep * off + 16.0 * UNIT * value)
        total, rest = two_sum(total, c * value)
        lost += rest

        # a dual of 0 has a conjugate too: -inf phi, which is 0 for every loss here
        a = beta[i]
        if a != 0.0:
            conjugate = loss.conjugate(y[i], a)
            dual_error += c * 16.0 * UNIT * (abs(conjugate) + abs(a) * (1.0 + abs(y[i]) + abs(a)))
            dual, rest = two_sum(dual, c * conjugate)
            dual_lost += rest
            balance, rest = two_sum(balance, c * a)
            balance_lost += rest
            mass += c * abs(a)
            reach += 1.01 * c * abs(a) * size
            rows.add(i, c * a, moment)
    return _Sums(total, lost, error, dual, dual_lost, dual_error, balance, balance_lost, mass, reach)


@kernel
def _add_rows(rows: Any, share: Floats, moment: Floats) -> None:
    """``moment += sum of share_i x_i``."""
    for i in range(share.shape[0]):
        if share[i] != 0.0:
            rows.add(i, share[i], moment)


def _added(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    """Two compensated sums together."""
    total, lost = two_sum(a[0], b[0])
    return total, a[1] + b[1] + lost


@kernel
def _loss_at_zero(y: Floats, weight: Floats, loss: Any) -> tuple[float, float]:
    """The total loss of the all-zero model, compensated. It is 0 only where it is so exactly."""
    total = lost = 0.0
    for i in range(y.shape[0]):
        if weight[i] > 0.0:
            share = weight[i] * loss.value(y[i], 0.0)
            if share == 0.0 and loss.derivative(y[i], 0.0) != 0.0:
                share = SMALLEST  # a loss so small that it vanished
            total, rest = two_sum(total, share)
            lost += rest
    return total, lost


@kernel
def _total_loss(batch: Batch, loss: Any, w: Floats, b: float) -> tuple[float, float]:
    """``sum_i c_i phi(<w, x_i> + b, y_i)``, compensated; rows of weight 0 are not read."""
    rows, y, weight, _ = batch
    total = lost = 0.0
    for i in range(y.shape[0]):
        if weight[i] > 0.0:
            total, rest = two_sum(total, weight[i] * loss.value(y[i], rows.dot(i, w) + b))
            lost += rest
    return total, lost


@kernel
def _losses_beyond(
    y: Floats, weight: Floats, squared_norms: Floats, loss: Any, length: float, sign: float, reach: float
) -> float:
    """What the rows lose at least where ``sign b >= reach`` and ``|w| <= length``: rows whose loss rises that
    way.

    Their scores are taken a little lower than they are, for the rounding errors of score and loss.
    """
    total = 0.0
    for i in range(y.shape[0]):
        away = 1.001 * length * np.sqrt(squared_norms[i])
        score = sign * (reach - away - 8.0 * UNIT * (1.0 + reach + away + abs(y[i])))
        if weight[i] > 0.0 and sign * loss.derivative(y[i], score) > 0.0:
            total += weight[i] * loss.value(y[i], score)
    return total
