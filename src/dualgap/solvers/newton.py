"""Newton's method without the Hessian, for smooth losses: few passes over the data, and each tightens the gap a lot.

    minimise  P(w, b) = lam/2 |w|^2 + r(b) + 1/N sum_i c_i phi(<w, x_i> + b, y_i)

With beta_i = -phi'(score_i) the gradient is lam (w - w(beta)), and P(w) - D(beta) = |gradient|^2 / (2 lam): the judgement
of a point is the gradient there, and a step begins with what the judgement of the last one found. A step solves

    H v = -gradient,   H = lam I + X' diag(h) X,   h_i = c_i phi''(score_i) / N

by conjugate gradients, until the gap that its residual promises is a hundredth of the present one, and goes along v to
where P hardly falls any more. Products with H are one pass over the rows of h_i > 0; scores are linear, so the search
along v needs none. The bias is one more column of ones with a ridge of its own strength; one that is free is fitted
anew after every step, from the scores alone, so that the duals satisfy its constraint.

What makes conjugate gradients fast is the matrix that stands in for H (the preconditioner). Where columns are few it is
H over a sample of rows, drawn in proportion to h_i and factorised: SAMPLE rows a column bring the passes of a step from
tens down to two or three. Elsewhere it is the diagonal of H.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from ..arrays import Floats
from ..jit import kernel
from ..losses import LOSSES
from ..problem import Judgement, Point, Problem
from ..solve import Counts
from ..sources import Block
from ..stopping import Reason

FORCING = 0.1  # a step ends where the residual is this part of the gradient
FLAT = 0.1  # the search along a step ends where the slope is this part of the first
SAMPLE = 50  # rows of the sample for each column, at first
PATIENCE = 2  # products of a step, beyond which the next sample is twice as large
LEAST = 3  # rows of a sample for each column, below which the diagonal does better
EFFORT = 4  # products of two entries for a sample, as a multiple of all entries
CUBES = 240  # d^3, likewise: what the factors may cost
ROUNDS = 250  # products of one step at most


class State(NamedTuple):
    """The point, and its scores."""

    w: Floats
    b: float
    scores: Floats
    sample: int  # rows of the next sample for each column
    counts: Counts

    @property
    def paused(self) -> bool:
        """Every step ends with a point worth judging."""
        return True


@dataclass(frozen=True)
class Newton:
    """Truncated Newton with conjugate gradients."""

    name = "newton"
    meaning = "Newton's method with conjugate gradients, for smooth losses: few passes, and many threads help"
    losses = tuple(name for name, loss in LOSSES.items() if np.isfinite(loss().smoothness))
    biases = ("none", "augmented", "exact")
    judged_steps = True  # a step begins with the judgement of the last one

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at w = 0, or at the warm start."""
        n, d = problem.source.n, problem.source.d
        if warm is None:
            w, b = np.zeros(d), problem.bias.centre
            scores = np.full(n, b)
        else:
            w, b = np.array(warm.w, dtype=np.float64), float(warm.b)
            scores = problem.judge(Point(w, b, None)).scores
        shift = fitted_bias(problem, scores)
        return State(w, b + shift, scores + shift, SAMPLE, Counts())

    def step(self, problem: Problem, state: State, budget: int, last: Judgement | None) -> State:
        """One step of Newton's method."""
        source, counts = problem.source, state.counts
        if last is None:
            scores, (w_beta, b_beta) = state.scores, problem.model_of(duals(problem, state.scores), state.b)
        else:
            scores, w_beta, b_beta = last.scores, last.w, last.b
        quadratic = Quadratic(problem, scores, state.sample)
        here = np.append(state.w, state.b)
        gradient = quadratic.ridge * (here - np.append(w_beta, b_beta))  # 0 for a free bias, which is fitted
        v, along = quadratic.minimise(gradient)
        pull = quadratic.ridge * v
        drift = float(pull @ here) - float(pull[-1]) * problem.bias.centre
        step = line_search(problem, scores, along, float(gradient @ v), drift, float(pull @ v))
        scores = scores + step * along
        shift = fitted_bias(problem, scores)
        here += step * v
        passed = source.entries if last is None else 0
        done = Counts(
            counts.visits + quadratic.visits + problem.present,
            counts.updates + 1,
            counts.entries + quadratic.entries + passed,
        )
        sample = state.sample * (2 if quadratic.products > PATIENCE else 1)
        return State(here[:-1], float(here[-1]) + shift, scores + shift, sample, done)

    def point(self, problem: Problem, state: State) -> Point:
        """The point, and the duals that its scores ask for."""
        return Point(state.w, state.b, duals(problem, state.scores))

    def finished(self, state: State) -> Reason | None:
        """Newton has no rule of its own."""
        return None


class Quadratic:
    """The second-order model of P at a point. Vectors have d + 1 numbers, the last one for the bias."""

    def __init__(self, problem: Problem, scores: Floats, sample: int) -> None:
        self.problem, self.source, self.sample = problem, problem.source, sample
        strength = problem.bias.strength(problem.lam)
        self.lift = 0.0 if strength == np.inf else 1.0  # without a bias its number stays 0
        self.strength = strength if strength < np.inf else 1.0
        self.ridge = np.append(np.full(self.source.d, problem.lam), self.strength)
        self.h = np.empty(self.source.n)
        self.visits = self.entries = self.products = 0

        def visit(block: Block) -> Any:
            scale, span = 1.0 / problem.total_weight, block.span
            h, part = self.h[span], scores[span]
            return np.array(_curvatures(block.rows, block.y, block.weight, problem.loss, part, scale, h))

        curved, entries = self.source.reduce(visit, np.add)
        self.curved, self.curved_entries = int(curved), int(entries)  # rows of h > 0, and what they hold

    def promised_gap(self, gradient: Floats) -> float:
        """The gap at a point of this gradient, times 2; that of a free bias is fitted away."""
        w = float(gradient[:-1] @ gradient[:-1]) / self.problem.lam
        return w + (float(gradient[-1]) ** 2 / self.strength if self.strength > 0.0 else 0.0)

    def minimise(self, gradient: Floats) -> tuple[Floats, Floats]:
        """v with H v = -gradient, roughly, and X v."""
        v, along = np.zeros(gradient.size), np.zeros(self.source.n)
        residual = -gradient
        enough = FORCING**2 * self.promised_gap(residual)
        if enough == 0.0:
            return v, along
        solve = self.preconditioner()
        p = z = solve(residual)
        size = float(residual @ z)
        for _ in range(ROUNDS):
            scores, product = self.product(p)
            bend = float(p @ product)
            if not bend > 0.0:
                break
            length = size / bend
            v += length * p
            along += length * scores
            residual -= length * product
            if self.promised_gap(residual) <= enough:
                break
            z = solve(residual)
            size, before = float(residual @ z), size
            if not size > 0.0:
                break
            p = z + size / before * p
        if self.curved < self.source.n:  # rows of h = 0 were left out
            self.complete(v, along)
        return v, along

    def product(self, p: Floats) -> tuple[Floats, Floats]:
        """X p, where h > 0, and H p."""
        scores = np.zeros(self.source.n)

        def visit(block: Block) -> Floats:
            part = np.zeros(p.size)
            _product(block.rows, self.h[block.span], p, self.lift, scores[block.span], part)
            return part

        product = self.source.reduce(visit, np.add)
        product += self.ridge * p
        self.products += 1
        self.visits += self.curved
        self.entries += 2 * self.curved_entries
        return scores, product

    def complete(self, v: Floats, along: Floats) -> None:
        """X v where h = 0."""

        def visit(block: Block) -> None:
            _complete(block.rows, self.h[block.span], v, self.lift, along[block.span])

        self.source.reduce(visit, lambda left, right: None)
        self.visits += self.source.n - self.curved
        self.entries += self.source.entries - self.curved_entries

    def preconditioner(self) -> Callable[[Floats], Floats]:
        """What solves H z = r cheaply and roughly."""
        d = self.source.d
        pairs = (self.curved_entries / max(1, self.curved)) ** 2 / 2.0
        rows = int(min(self.curved, self.sample * d, EFFORT * self.source.entries / max(1.0, pairs)))
        if d**3 <= CUBES * self.source.entries and (rows == self.curved or rows >= LEAST * d):
            return self.sampled(rows)

        def visit(block: Block) -> Floats:
            part = np.zeros(d + 1)
            _diagonal(block.rows, self.h[block.span], self.lift, part)
            return part

        diagonal = self.source.reduce(visit, np.add) + self.ridge
        self.entries += self.curved_entries
        diagonal[diagonal == 0.0] = 1.0  # a free bias where no row is curved
        return lambda residual: residual / diagonal

    def sampled(self, rows: int) -> Callable[[Floats], Floats]:
        """H over about so many rows, drawn in proportion to h; those of large h are all in it."""
        matrix = np.zeros((self.source.d + 1, self.source.d + 1))
        (block,) = self.source.blocks()
        self.entries += int(_sample(block.rows, self.h, self.stride(rows), self.lift, matrix))
        matrix[np.diag_indices_from(matrix)] += self.ridge
        matrix[-1, -1] = matrix[-1, -1] or 1.0  # a free bias where no row is curved
        factor = scipy.linalg.cho_factor(matrix, lower=True, check_finite=False)
        return lambda residual: np.asarray(scipy.linalg.cho_solve(factor, residual, check_finite=False))

    def stride(self, rows: int) -> float:
        """Such that so many rows come of taking all of h >= stride, and one wherever the sum of the others passes it."""
        if rows == self.curved:
            return 0.0
        large, rest = 0, float(self.h.sum())
        stride = rest / rows
        for _ in range(10):
            above = self.h >= stride
            before, large = large, int(np.count_nonzero(above))
            if large == before or large >= rows:
                break
            stride = (rest - float(self.h[above].sum())) / (rows - large)
        return stride


def duals(problem: Problem, scores: Floats) -> Floats:
    """beta = -phi'."""
    beta = np.empty(problem.source.n)

    def visit(block: Block) -> None:
        _duals(block.y, problem.loss, scores[block.span], beta[block.span])

    problem.source.reduce(visit, lambda left, right: None)
    return beta


def line_search(
    problem: Problem, scores: Floats, along: Floats, first: float, drift: float, bend: float
) -> float:
    """A step along v at which P is flat, and proven to be below its value at 0: 1 if that will do.

    The slope rises from its first value, which is negative; ``drift + step bend`` is the ridge's part of it. ``low`` is a step of negative slope, ``fallen`` an upper
    bound on the change of P up to there, from slopes alone: differences of P drown in rounding errors at the end.
    """
    total = problem.total_weight

    def losses_slope(step: float) -> float:
        def visit(block: Block) -> float:
            span = block.span
            return float(_slope_along(block.y, block.weight, problem.loss, scores[span], along[span], step))

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


def fitted_bias(problem: Problem, scores: Floats) -> float:
    """What to add to a free bias so that the slopes sum to 0; 0 for any other bias."""
    if problem.bias.strength(problem.lam) > 0.0:
        return 0.0

    def slopes(shift: float) -> Any:
        def visit(block: Block) -> Any:
            return np.array(_slopes(block.y, block.weight, problem.loss, scores[block.span], shift))

        return problem.source.reduce(visit, np.add)

    low, high, shift, stride = -np.inf, np.inf, 0.0, 1.0
    for _ in range(100):
        total, mass, curvature = slopes(shift)
        if abs(total) <= 1e-16 * mass:
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
def _curvatures(
    rows: Any, y: Floats, weight: Floats, loss: Any, scores: Floats, scale: float, h: Floats
) -> tuple[int, int]:
    """Fill in h; the number of rows with h > 0, and of their entries."""
    curved = entries = 0
    for i in range(y.shape[0]):
        h[i] = scale * weight[i] * loss.curvature(y[i], scores[i])
        if h[i] > 0.0:
            curved += 1
            entries += rows.count(i)
    return curved, entries


@kernel
def _product(rows: Any, h: Floats, p: Floats, lift: float, scores: Floats, product: Floats) -> None:
    """``scores = X p`` and ``product += X' h X p`` over the rows of h > 0."""
    last = p.shape[0] - 1
    for i in range(h.shape[0]):
        if h[i] > 0.0:
            score = rows.dot(i, p) + lift * p[last]
            scores[i] = score
            rows.add(i, h[i] * score, product)
            product[last] += lift * h[i] * score


@kernel
def _complete(rows: Any, h: Floats, v: Floats, lift: float, scores: Floats) -> None:
    for i in range(h.shape[0]):
        if h[i] == 0.0:
            scores[i] = rows.dot(i, v) + lift * v[v.shape[0] - 1]


@kernel
def _diagonal(rows: Any, h: Floats, lift: float, diagonal: Floats) -> None:
    """``diagonal += that of X' h X``."""
    for i in range(h.shape[0]):
        if h[i] > 0.0:
            for k in range(rows.count(i)):
                column, value = rows.entry(i, k)
                diagonal[column] += h[i] * value * value
            diagonal[diagonal.shape[0] - 1] += lift * h[i]


@kernel
def _sample(rows: Any, h: Floats, stride: float, lift: float, matrix: Floats) -> int:
    """Add h x x' of a sample to the lower triangle; a row that stands for its neighbours counts as the stride."""
    last, entries = matrix.shape[0] - 1, 0
    ahead = 0.5 * stride
    for i in range(h.shape[0]):
        if h[i] == 0.0:
            continue
        share = h[i]
        if share < stride:
            ahead -= share
            if ahead > 0.0:
                continue
            ahead += stride
            share = stride
        count = rows.count(i)
        entries += count * (count + 1) // 2
        for k in range(count):
            column, value = rows.entry(i, k)
            for m in range(k + 1):
                other, factor = rows.entry(i, m)
                matrix[max(column, other), min(column, other)] += share * value * factor
            matrix[last, column] += lift * share * value
        matrix[last, last] += lift * share
    return entries


@kernel
def _duals(y: Floats, loss: Any, scores: Floats, beta: Floats) -> None:
    for i in range(y.shape[0]):
        beta[i] = -loss.slope(y[i], scores[i])


@kernel
def _slope_along(y: Floats, weight: Floats, loss: Any, scores: Floats, along: Floats, step: float) -> float:
    total = 0.0
    for i in range(y.shape[0]):
        if weight[i] > 0.0:
            total += weight[i] * along[i] * loss.slope(y[i], scores[i] + step * along[i])
    return total


@kernel
def _slopes(y: Floats, weight: Floats, loss: Any, scores: Floats, shift: float) -> tuple[float, float, float]:
    """Sums of phi', |phi'| and phi''."""
    total = mass = curvature = 0.0
    for i in range(y.shape[0]):
        if weight[i] > 0.0:
            slope = loss.slope(y[i], scores[i] + shift)
            total += weight[i] * slope
            mass += weight[i] * abs(slope)
            curvature += weight[i] * loss.curvature(y[i], scores[i] + shift)
    return total, mass, curvature
