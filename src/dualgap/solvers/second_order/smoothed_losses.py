"""Sums over all rows of the (smoothed) loss, from scores alone: duals, the line search, a free bias.

Scores are linear in the step along a direction and in the bias, so none of these needs a pass over the
entries of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Any, NamedTuple

import numpy as np

from ...core.losses import smoothed_curvature, smoothed_dual
from ...core.problem import Problem
from ...data.sources import Part
from ...runtime.arrays import Floats
from ...runtime.jit import kernel
from ...training.states import NotNegative, state_class

FLAT = 0.1  # the line search ends where the slope is this part of the first


@state_class
class Smoothing(NamedTuple):
    """A loss with a kink is smoothed about these duals; gamma = 0 is the loss itself."""

    gamma: NotNegative
    centre: Floats

    def of(self, part: Part) -> Smoothing:
        """The smoothing of the rows of a part."""
        return Smoothing(self.gamma, self.centre[part.span])


def typical_target(problem: Problem) -> float:
    """The mean |y|, the scale of scores; 1 where all are 0."""
    return problem.mean(np.abs(problem.source.y)) or 1.0


def duals(problem: Problem, smoothing: Smoothing, scores: Floats) -> Floats:
    """beta = -phi' of the smoothed loss, for every row."""
    beta = np.empty(problem.source.n)

    def visit(part: Part) -> None:
        span = part.span
        _duals(part.batch.y, problem.loss, smoothing.of(part), scores[span], beta[span])

    problem.source.reduce(visit, lambda left, right: None)
    return beta


def changed_entries(problem: Problem, change: Floats) -> int:
    """Stored entries of the rows whose duals change."""

    def visit(part: Part) -> int:
        return int(_entries(part.batch.rows, change[part.span]))

    return int(problem.source.reduce(visit, add))


def left_by_smoothing(problem: Problem, scores: Floats, beta: Floats) -> float:
    """``1/N sum c (phi(score) + phi*(-beta) + beta score)``: by how much the duals of the smoothed loss miss
    the slopes of the loss itself, which is the smoothing's part of the gap.
    """

    def visit(part: Part) -> float:
        _, y, weight, _ = part.batch
        return float(_disagreement(y, weight, problem.loss, scores[part.span], beta[part.span]))

    return float(problem.source.reduce(visit, add)) / problem.total_weight


class Direction(NamedTuple):
    """The objective along w + step v, in terms of the regulariser and of X v."""

    along: Floats  # the change of the scores
    first: float  # the slope of P at 0
    drift: float  # of the regulariser: drift + step bend is its part of the slope
    bend: float


def line_search(problem: Problem, smoothing: Smoothing, scores: Floats, direction: Direction) -> float:
    """A step along v at which P is flat, and proven to be below its value at 0: 1 if that will do.

    The slope rises from its first value, which is negative. ``low`` is a step of negative slope, ``fallen``
    an upper bound on the change of P up to there, from slopes alone: differences of P drown in rounding
    errors at the end.
    """
    first = direction.first
    if not first < 0.0:
        return 0.0
    slope = _slope_of(problem, smoothing, scores, direction)
    low, high, at_low, at_high, fallen = 0.0, np.inf, first, np.inf, 0.0
    chord_low, chord_high = at_low, at_high
    step = 1.0
    for _ in range(100):
        at = slope(step)
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


def _slope_of(
    problem: Problem, smoothing: Smoothing, scores: Floats, direction: Direction
) -> Callable[[float], float]:
    """The slope of P along a direction, as a function of the step."""
    along, _, drift, bend = direction

    def slope(step: float) -> float:
        def visit(part: Part) -> float:
            _, y, weight, _ = part.batch
            span, own = part.span, smoothing.of(part)
            return float(_slope_along(y, weight, problem.loss, own, scores[span], along[span], step))

        return drift + step * bend + float(problem.source.reduce(visit, add)) / problem.total_weight

    return slope


def fitted_bias(problem: Problem, smoothing: Smoothing, scores: Floats) -> float:
    """What to add to a free bias so that the slopes of the losses sum to 0; 0 for any other bias."""
    if problem.bias.strength(problem.lam) > 0.0:
        return 0.0

    def slopes(shift: float) -> Any:
        def visit(part: Part) -> Any:
            _, y, weight, _ = part.batch
            return np.array(_slopes(y, weight, problem.loss, smoothing.of(part), scores[part.span], shift))

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
    """Entries of the rows that change."""
    total = 0
    for i in range(change.shape[0]):
        if change[i] != 0.0:
            total += rows.count(i)
    return total


@kernel
def _duals(y: Floats, loss: Any, smoothing: Any, scores: Floats, beta: Floats) -> None:
    """``beta_i = -phi'(score_i)`` of the smoothed loss."""
    gamma, centre = smoothing
    for i in range(y.shape[0]):
        beta[i] = smoothed_dual(loss, gamma, centre, i, y[i], scores[i])


@kernel
def _disagreement(y: Floats, weight: Floats, loss: Any, scores: Floats, beta: Floats) -> float:
    """``sum c (phi(score) + phi*(-beta) + beta score)``, which is 0 iff each -beta is a slope of its loss."""
    total = 0.0
    for i in range(y.shape[0]):
        if weight[i] > 0.0:
            total += weight[i] * (
                loss.value(y[i], scores[i]) + loss.conjugate(y[i], beta[i]) + beta[i] * scores[i]
            )
    return total


@kernel
def _slope_along(
    y: Floats, weight: Floats, loss: Any, smoothing: Any, scores: Floats, along: Floats, step: float
) -> float:
    """``sum c_i along_i phi'(score_i + step along_i)``."""
    gamma, centre = smoothing
    total = 0.0
    for i in range(y.shape[0]):
        if weight[i] > 0.0:
            dual = smoothed_dual(loss, gamma, centre, i, y[i], scores[i] + step * along[i])
            total -= weight[i] * along[i] * dual
    return total


@kernel
def _slopes(
    y: Floats, weight: Floats, loss: Any, smoothing: Any, scores: Floats, shift: float
) -> tuple[float, float, float]:
    """Sums of phi', |phi'| and phi'' at ``score_i + shift``."""
    gamma, centre = smoothing
    total = mass = curvature = 0.0
    for i in range(y.shape[0]):
        if weight[i] > 0.0:
            slope = -smoothed_dual(loss, gamma, centre, i, y[i], scores[i] + shift)
            total += weight[i] * slope
            mass += weight[i] * abs(slope)
            curvature += weight[i] * smoothed_curvature(loss, gamma, centre, i, y[i], scores[i] + shift)
    return total, mass, curvature
