"""Sums over all rows of the (smoothed) loss, from scores alone: duals, the line search, a free bias.

Scores are linear in the step along a direction and in the bias, so none of these needs a pass over the
entries of the rows. One kernel computes what a loss says of every row; the sums are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Any, NamedTuple

import numpy as np

from ...core.losses import Loss
from ...core.problem import Problem
from ...data.rows import entries_where
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

    def fill_duals(self, y: Floats, loss: Loss, scores: Floats, dual: Floats) -> None:
        """-phi' of the smoothed loss, for some rows."""
        _fill(y, loss, self.gamma, self._centre, scores, dual, dual, DUALS)

    def duals_and_curvatures(self, y: Floats, loss: Loss, scores: Floats) -> tuple[Floats, Floats]:
        """The same and phi''."""
        dual, curvature = np.empty(y.size), np.empty(y.size)
        _fill(y, loss, self.gamma, self._centre, scores, dual, curvature, CURVATURES)
        return dual, curvature

    @property
    def _centre(self) -> Floats | None:
        """None for the loss itself: the kernel is then compiled without the steps of smoothing."""
        return self.centre if self.gamma > 0.0 else None


def typical_target(problem: Problem) -> float:
    """The mean |y|, the scale of scores; 1 where all are 0."""
    return problem.mean(np.abs(problem.source.y)) or 1.0


def duals(problem: Problem, smoothing: Smoothing, scores: Floats) -> Floats:
    """beta = -phi' of the smoothed loss, for every row."""
    beta = np.empty(problem.source.n)

    def visit(part: Part) -> None:
        smoothing.of(part).fill_duals(part.batch.y, problem.loss, scores[part.span], beta[part.span])

    problem.source.reduce(visit, lambda left, right: None)
    return beta


def changed_entries(problem: Problem, change: Floats) -> int:
    """Stored entries of the rows whose duals change."""

    def visit(part: Part) -> int:
        return entries_where(part.batch.rows, change[part.span] != 0.0)

    return int(problem.source.reduce(visit, add))


def left_by_smoothing(problem: Problem, scores: Floats, beta: Floats) -> float:
    """``1/N sum c (phi(score) + phi*(-beta) + beta score)``: by how much the duals of the smoothed loss miss
    the slopes of the loss itself, which is the smoothing's part of the gap. A term is 0 iff -beta is a slope.
    """

    def visit(part: Part) -> float:
        _, y, weight, _ = part.batch
        own, gaps = beta[part.span], np.empty(y.size)
        _fill(y, problem.loss, 0.0, own, scores[part.span], own, gaps, GAPS)
        return ordered_sum(weight * gaps)

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
            own, dual = along[part.span], np.empty(y.size)
            smoothing.of(part).fill_duals(y, problem.loss, scores[part.span] + step * own, dual)
            return -ordered_sum(weight * own * dual)

        return drift + step * bend + float(problem.source.reduce(visit, add)) / problem.total_weight

    return slope


def fitted_bias(problem: Problem, smoothing: Smoothing, scores: Floats) -> float:
    """What to add to a free bias so that the slopes of the losses sum to 0; 0 for any other bias."""
    if problem.bias.strength(problem.lam) > 0.0:
        return 0.0

    def slopes(shift: float) -> Any:
        def visit(part: Part) -> Any:
            _, y, weight, _ = part.batch
            dual, curvature = smoothing.of(part).duals_and_curvatures(
                y, problem.loss, scores[part.span] + shift
            )
            sums = -weight * dual, weight * np.abs(dual), weight * curvature
            return np.array([ordered_sum(terms) for terms in sums])

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


def ordered_sum(terms: Floats) -> float:
    """The sum in an order that is the same on every machine: of many terms every 256th, then these sums one
    after the other. (``sum`` adds as many at a time as a processor can; one by one takes ten times as long.)
    """
    if terms.size > 4 * LANES:
        whole = terms.size - terms.size % LANES
        lanes = np.add.reduce(terms[:whole].reshape(-1, LANES), axis=0)
        terms = np.append(lanes, terms[whole:])
    return float(np.add.accumulate(terms)[-1]) if terms.size else 0.0


LANES = 256
DUALS, CURVATURES, GAPS = range(3)


@kernel
def _fill(
    y: Floats, loss: Any, gamma: float, centre: Any, scores: Floats, dual: Floats, other: Floats, what: int
) -> None:
    """What the smoothed loss says of each row at its score.

    ``dual = -phi'``, the ``b`` that maximises ``-phi*(-b) - score b - gamma/2 (b - centre)^2``, and with
    CURVATURES also ``other = phi''``, which is 1/gamma where the dual is at no bound or kink. GAPS are of the
    loss itself: ``other = phi(score) + phi*(-dual) + dual score`` at duals that are given.
    """
    for i in range(y.shape[0]):
        label, score = y[i], scores[i]
        if what == GAPS:
            other[i] = loss.value(label, score) + loss.conjugate(label, dual[i]) + dual[i] * score
        elif centre is None:
            dual[i] = -loss.derivative(label, score)
            if what == CURVATURES:
                other[i] = loss.curvature(label, score)
        else:
            best = loss.dual_prox(label, score, centre[i], gamma)
            dual[i] = best
            if what == CURVATURES:
                left, right = loss.dual_subdifferential(label, score, best)
                other[i] = 1.0 / gamma if left == right else 0.0
