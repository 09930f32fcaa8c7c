"""Newton's method with conjugate gradients: few passes over the data, each worth a lot.

    minimise  P(w, b) = lam/2 |w|^2 + r(b) + 1/N sum_i c_i phi(<w, x_i> + b, y_i)

With beta_i = -phi'(score_i) the gradient is lam (w - w(beta)), and P(w) - D(beta) = |gradient|^2 / (2 lam).
So the evaluation of a point brings the gradient there, and a step begins with what the evaluation of the one
before found. It solves H v = -gradient (``quadratic.py``) until the gap that the residual promises is a
hundredth of the present one, and goes along v to where P hardly falls any more: scores are linear, so this
search needs no pass. A free bias is fitted anew after every step, from the scores alone, so that the duals
satisfy its constraint.

A loss with a kink is smoothed about the present duals, ``phi_gamma* = phi* + gamma/2 (beta - centre)^2``: the
proximal point method on the dual, or the method of multipliers (Rockafellar, SIAM J. Control Optim. 1976;
with Newton inside it is that of Li, Sun and Toh, SIAM J. Optim. 2018). Its slope is a dual step that every
loss has, and it is curved only where the dual lies between its bounds, so products read few rows. Once the
distance to the optimum of the smoothed problem is a small part of the gap, the centre moves to the duals, and
gamma falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core.losses import smoothed_curvature, smoothed_dual
from ...core.problem import Evaluation, Point, Problem
from ...data.sources import Part
from ...runtime.arrays import Floats
from ...runtime.jit import kernel
from ...runtime.counts import Counts
from ...training.stopping import Reason
from ..dual.start import dual_start
from .quadratic import SAMPLE, Quadratic, Smoothing

FLAT = 0.1  # the search along a step ends where the slope is this part of the first
WIDE = 4.0  # gamma at first, in units of a typical target
FALL = 0.5  # factor of gamma when the centre moves
NEAR = 3.0  # it does where the distance to the smoothed optimum is this part of what the smoothing leaves
PATIENCE = 2  # products of a step, beyond which the next sample is twice as large


class State(NamedTuple):
    """The point, and its scores."""

    w: Floats
    b: float
    scores: Floats
    smoothing: Smoothing
    sample: int  # rows of the next sample for each column
    counts: Counts
    tol: float = 0.0  # the relative gap asked for; 0: none

    @property
    def paused(self) -> bool:
        """Every step ends with a point worth evaluating."""
        return True


@dataclass(frozen=True)
class Newton:
    """Truncated Newton with conjugate gradients."""

    name = "newton"
    summary = (
        "Newton's method with conjugate gradients, kinks smoothed: few passes, for many rows of few columns"
    )
    biases = ("none", "augmented", "exact")
    evaluated_steps = True  # a step begins with the evaluation of the last one

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at w = 0, or at the warm start."""
        n, d = problem.source.n, problem.source.d
        smoothing = Smoothing(0.0, np.zeros(0))
        if not np.isfinite(problem.loss.smoothness):
            smoothing = Smoothing(WIDE * typical_target(problem), dual_start(problem, warm)[2])
        if warm is None:
            w, b = np.zeros(d), problem.bias.centre
            scores = np.full(n, b)
        else:
            w = np.array(warm.w, dtype=np.float64)
            b = float(warm.b) if problem.bias.strength(problem.lam) < np.inf else 0.0
            scores = problem.evaluate(Point(w, b, None)).scores
        shift = fitted_bias(problem, smoothing, scores)
        return State(w, b + shift, scores + shift, smoothing, SAMPLE, Counts())

    def aim(self, state: State, tol: float) -> State:
        """Take no more products than a relative gap of ``tol`` needs, where that is known beforehand."""
        return state._replace(tol=tol)

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """One step of Newton's method."""
        counts, smoothing = state.counts, state.smoothing
        beta = (
            duals(problem, smoothing, state.scores) if last is None or smoothing.gamma > 0.0 else np.zeros(0)
        )
        if last is None:
            scores, passed, value = state.scores, problem.source.nnz, problem.value_at_zero
            w_beta, b_beta = problem.model_of(beta, state.b)
        else:
            scores, passed, value = last.scores, 0, last.primal
            w_beta, b_beta = last.w_of_dual, last.b
        here = np.append(state.w, state.b)
        if smoothing.gamma > 0.0 and self._is_near(problem, here, np.append(w_beta, b_beta), scores, beta):
            smoothing = Smoothing(FALL * smoothing.gamma, beta)
            shift = fitted_bias(problem, smoothing, scores)
            here[-1] += shift
            scores = scores + shift if shift != 0.0 else scores
            change = duals(problem, smoothing, scores)
            change -= beta
            w_move, b_move = problem.model_of(change, problem.bias.centre)
            w_beta, b_beta = w_beta + w_move, b_beta + b_move - problem.bias.centre
            passed += changed_entries(problem, change)
            del change  # vectors of one number a row weigh where rows are short
        del beta
        quadratic = Quadratic(problem, smoothing, scores, state.sample)
        gradient = quadratic.ridge * (here - np.append(w_beta, b_beta))  # 0 for a free bias, which is fitted
        v, along = quadratic.minimise(gradient, value, state.tol)
        pull = quadratic.ridge * v
        drift = float(pull @ here) - float(pull[-1]) * problem.bias.centre
        step = line_search(problem, smoothing, scores, along, float(gradient @ v), drift, float(pull @ v))
        along *= step
        along += scores
        scores = along
        shift = fitted_bias(problem, smoothing, scores)
        scores += shift
        here += step * v
        done = Counts(
            counts.visits + quadratic.visits + problem.epoch_size,
            counts.updates + 1,
            counts.entries + quadratic.entries + passed,
        )
        sample = state.sample * (2 if quadratic.products > PATIENCE else 1)
        return State(here[:-1], float(here[-1]) + shift, scores, smoothing, sample, done, state.tol)

    def _is_near(self, problem: Problem, here: Floats, there: Floats, scores: Floats, beta: Floats) -> bool:
        """Whether the smoothed problem is solved well enough: what is left is the smoothing's part of the
        gap.
        """
        away = here - there
        strength = problem.bias.strength(problem.lam)
        left = problem.lam * float(away[:-1] @ away[:-1])
        left += strength * float(away[-1]) ** 2 if 0.0 < strength < np.inf else 0.0

        def visit(part: Part) -> float:
            return float(
                _disagreement(
                    part.batch.y, part.batch.weight, problem.loss, scores[part.span], beta[part.span]
                )
            )

        smoothed = float(problem.source.reduce(visit, lambda a, b: a + b)) / problem.total_weight
        return 0.5 * left <= NEAR * smoothed

    def point(self, problem: Problem, state: State) -> Point:
        """The point, and the duals that its scores ask for."""
        return Point(state.w, state.b, duals(problem, state.smoothing, state.scores))

    def finished(self, state: State) -> Reason | None:
        """Newton has no rule of its own."""
        return None


def typical_target(problem: Problem) -> float:
    """The mean |y|, the scale of scores; 1 where all are 0."""
    return problem.mean(np.abs(problem.source.y)) or 1.0


def changed_entries(problem: Problem, change: Floats) -> int:
    """Stored entries of the rows whose duals change."""

    def visit(part: Part) -> int:
        return int(_entries(part.batch.rows, change[part.span]))

    return int(problem.source.reduce(visit, lambda a, b: a + b))


def duals(problem: Problem, smoothing: Smoothing, scores: Floats) -> Floats:
    """beta = -phi'."""
    beta = np.empty(problem.source.n)

    def visit(part: Part) -> None:
        span = part.span
        _duals(part.batch.y, problem.loss, smoothing.gamma, smoothing.centre[span], scores[span], beta[span])

    problem.source.reduce(visit, lambda left, right: None)
    return beta


def line_search(
    problem: Problem,
    smoothing: Smoothing,
    scores: Floats,
    along: Floats,
    first: float,
    drift: float,
    bend: float,
) -> float:
    """A step along v at which P is flat, and proven to be below its value at 0: 1 if that will do.

    The slope rises from its first value, which is negative; ``drift + step bend`` is the regulariser's part
    of it. ``low`` is a step of negative slope, ``fallen`` an upper bound on the change of P up to there, from
    slopes alone: differences of P drown in rounding errors at the end.
    """
    total = problem.total_weight

    def losses_slope(step: float) -> float:
        def visit(part: Part) -> float:
            span = part.span
            gamma, centre = smoothing.gamma, smoothing.centre[span]
            slope = _slope_along(
                part.batch.y, part.batch.weight, problem.loss, gamma, centre, scores[span], along[span], step
            )
            return float(slope)

        return float(problem.source.reduce(visit, lambda a, b: a + b)) / total

    if not first < 0.0:
        return 0.0
    low, high, at_low, at_high, fallen = 0.0, np.inf, first, np.inf, 0.0
    chord_low, chord_high = at_low, at_high
    step = 1.0
    for _ in range(100):
        at = drift + step * bend + losses_slope(step)
        if at <= 0.0:
            fallen += (step - low) * at
            chord_high *= 0.5 if low > 0.0 else 1.0  # an end that stays draws the next step nearer (Illinois)
            low = step
            at_low = chord_low = at
        else:
            chord_low *= 0.5 if high < np.inf else 1.0
            high = step
            at_high = chord_high = at
        flat = at_high <= -FLAT * first
        if flat and fallen + (high - low) * at_high <= 0.0 and at_high <= -at_low:
            return high
        if low > 0.0 and at_low >= FLAT * first:
            return low
        if high == np.inf:
            step = 2.0 * low
        elif flat:  # half the way proves that the whole of it goes down
            step = 0.5 * (low + high)
        else:
            share = chord_low / (chord_low - chord_high)
            step = low + (high - low) * min(max(share, 1e-3), 0.99)
    return low


def fitted_bias(problem: Problem, smoothing: Smoothing, scores: Floats) -> float:
    """What to add to a free bias so that the slopes sum to 0; 0 for any other bias."""
    if problem.bias.strength(problem.lam) > 0.0:
        return 0.0

    def slopes(shift: float) -> Any:
        def visit(part: Part) -> Any:
            span = part.span
            gamma, centre = smoothing.gamma, smoothing.centre[span]
            return np.array(
                _slopes(part.batch.y, part.batch.weight, problem.loss, gamma, centre, scores[span], shift)
            )

        return problem.source.reduce(visit, np.add)

    low, high, shift, stride = -np.inf, np.inf, 0.0, 1.0
    for _ in range(100):
        total, mass, curvature = slopes(shift)
        if abs(total) <= 1e-14 * mass:
            break
        if total < 0.0:
            low = shift
        else:
            high = shift
        move = -total / curvature if curvature > 0.0 else -np.sign(total) * np.inf
        if not (low < shift + move < high and abs(move) <= stride):
            inside = np.isfinite(low) and np.isfinite(high)
            move = 0.5 * (low + high) - shift if inside else np.clip(move, -stride, stride)
            stride *= 2.0
        if shift + move == shift:
            break
        shift += float(move)
    return shift


@kernel
def _entries(rows: Any, change: Floats) -> int:
    total = 0
    for i in range(change.shape[0]):
        if change[i] != 0.0:
            total += rows.count(i)
    return total


@kernel
def _duals(y: Floats, loss: Any, gamma: float, centre: Floats, scores: Floats, beta: Floats) -> None:
    for i in range(y.shape[0]):
        beta[i] = smoothed_dual(loss, gamma, centre, i, y[i], scores[i])


@kernel
def _disagreement(y: Floats, weight: Floats, loss: Any, scores: Floats, beta: Floats) -> float:
    """``sum c (phi(score) + phi*(-beta) + beta score)``: by how much the duals are not slopes of the loss
    itself.
    """
    total = 0.0
    for i in range(y.shape[0]):
        if weight[i] > 0.0:
            total += weight[i] * (
                loss.value(y[i], scores[i]) + loss.conjugate(y[i], beta[i]) + beta[i] * scores[i]
            )
    return total


@kernel
def _slope_along(
    y: Floats,
    weight: Floats,
    loss: Any,
    gamma: float,
    centre: Floats,
    scores: Floats,
    along: Floats,
    step: float,
) -> float:
    total = 0.0
    for i in range(y.shape[0]):
        if weight[i] > 0.0:
            total -= (
                weight[i]
                * along[i]
                * smoothed_dual(loss, gamma, centre, i, y[i], scores[i] + step * along[i])
            )
    return total


@kernel
def _slopes(
    y: Floats, weight: Floats, loss: Any, gamma: float, centre: Floats, scores: Floats, shift: float
) -> tuple[float, float, float]:
    """Sums of phi', |phi'| and phi''."""
    total = mass = curvature = 0.0
    for i in range(y.shape[0]):
        if weight[i] > 0.0:
            slope = -smoothed_dual(loss, gamma, centre, i, y[i], scores[i] + shift)
            total += weight[i] * slope
            mass += weight[i] * abs(slope)
            curvature += weight[i] * smoothed_curvature(loss, gamma, centre, i, y[i], scores[i] + shift)
    return total, mass, curvature
