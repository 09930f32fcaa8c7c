"""Decomposition with the true bias: SVM-light's working sets, and SMO, for the hinge loss on linear data.

With v_i = c_i beta_i, between 0 and c_i y_i, the dual problem with a free bias is

    maximise  m/N sum y_i v_i - lam/2 |w|^2,   w = 1/(lam N) sum v_i x_i,   subject to  sum v_i = 0.

Its gradient per unit of 1/N is ``g_i = m y_i - <w, x_i>``. A row may go *up* where v_i is below its upper
bound, *down* where it is above its lower one; v is optimal iff no g of a row that may go up exceeds one of a
row that may go down, and every b between the two is then an optimal bias. The constraint lets no row move
alone: the kernel is the step on a pair,

    v_i += t,  v_j -= t,   t = (g_i - g_j) / (scale |x_i - x_j|^2),  clipped to both boxes,   scale = 1/(lam
    N).

- ``decomposition`` (Joachims 1999, the active-set method of SVM-light): each round takes the q/2 rows that
  want to go up most and the q/2 that want to go down most, solves the problem over them by pair steps on
  their q x q Gram matrix, then brings the gradients of the active rows up to date in one pass: for linear
  data that costs their entries, and w replaces the kernel.
- ``smo`` (Platt 1998) is q = 2, with the second row chosen by second-order information (Fan, Chen and Lin,
  JMLR 2005).

A round counts as visits of the rows of its working set, though it reads all active rows once (a pair step of
``smo`` twice): the number of rounds needed grows with n, so an epoch is n rows moved, and ``entries`` counts
what is read. Rows that sit firmly at a bound are left out (shrinking) until the rest is solved to a
threshold, then all come back. Where a step changes no dual variable in float64, though the gradients were
just computed anew, the run ends.

C = infinity is the hard margin: the boxes have no upper bound, and the loss is infinite below the margin. A
primal point is then made feasible by stretching w until the least margin is 1. Where the data are not
separable the dual grows without bound, and v proves it: y_i (<w, x_i> + b) >= 1 for all i gives sum |v| <=
<w, sum v x> + b sum v, and |b| <= |w| R as both classes are there, so no hyperplane has a margin 1/|w| above
(|sum v x| + R |sum v|) / sum |v|. That is computed anew, with a bound on its rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ...runtime.sums import gamma, norm
from ...training.stopping import Reason

_FALL = 0.2  # factor of the threshold each time all rows come back
_REVIEW = 1000  # pair steps of smo between two looks at what can be left out
_RESOLUTION = 4.0 * float(np.finfo(np.float64).eps)  # of gradients, as a part of the largest one
# rows that a call reads at most, or those of one round: limits in seconds must not wait for more
_READS = 2_000_000
MARGIN_LIMIT = 1e-6  # of the longest row: data with no larger margin count as not separable


class State(NamedTuple):
    """v and w with the gradients of the active rows; those of the others are stale."""

    v: Floats
    w: Floats
    gradient: Floats
    order: Any  # int64; the first ``active`` rows take part
    active: int
    threshold: float  # of the violation, at which all rows come back
    violation: float  # largest g up less smallest g down, of the active rows
    bias: float
    proven: (
        float  # no separating hyperplane has a larger margin (hard margin only), as a part of the longest row
    )
    steps: int  # pair steps since the last look at what can be left out (smo)
    moved: bool  # since all rows came back
    stuck: bool  # no step changes anything any more
    paused: bool
    counts: Counts


@dataclass(frozen=True)
class Decomposition:
    """The active-set method of SVM-light, for linear data."""

    q: int = field(default=40, metadata={"help": "rows in the working set (even, at least 2)"})
    shrinking: bool = field(
        default=True, metadata={"help": "leave rows out for a while that sit firmly at a bound"}
    )

    name = "decomposition"
    summary = (
        "working sets of q rows as in SVM-light, with the true bias, for the hinge loss and the hard margin"
    )
    losses = ("hinge", "hard-margin")
    biases = ("exact",)

    def __post_init__(self) -> None:
        if self.q < 2 or self.q % 2:
            raise InputError(f"q={self.q!r} must be an even number of rows, at least 2")

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at v = 0, or at the dual point of a warm start."""
        source = problem.source
        v, w = np.zeros(source.n), np.zeros(source.d)
        if warm is not None and warm.beta is not None:
            evaluated = problem.evaluate(Point(w, 0.0, warm.beta))
            if math.isfinite(evaluated.dual):
                v, w = source.weight * problem.bias.feasible(warm.beta, source.weight), evaluated.w_of_dual
        order = np.flatnonzero(source.weight)
        state = State(
            v,
            w,
            np.zeros(source.n),
            order,
            order.size,
            math.inf,
            math.inf,
            0.0,
            math.inf,
            0,
            False,
            False,
            False,
            Counts(),
        )
        return _all_back(problem, state)

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """Rounds until the budget is spent or all rows come back."""
        end, reads = state.counts.visits + budget, 0
        state = state._replace(paused=False)
        while state.counts.visits < end and not (state.paused or state.stuck) and reads < _READS:
            reads += state.active
            state = self._round(problem, state)
        return state

    def _round(self, problem: Problem, state: State) -> State:
        (part,) = problem.source.parts()
        low, high = _bounds(problem)
        rows = state.order[: state.active]
        up, down = _choose(state, rows, low, high, self.q // 2)
        highest, lowest = _ends(state, up, down)
        violation = highest - lowest
        state = state._replace(violation=violation, bias=_middle(highest, lowest))
        if state.threshold == math.inf:
            state = state._replace(threshold=_FALL * max(violation, 0.0))
        if not state.moved and violation <= _resolution(state):
            return state._replace(stuck=True)
        if violation <= state.threshold:
            return _all_back(problem, state._replace(threshold=_FALL * state.threshold, paused=True))
        working = np.unique(np.concatenate([up, down]))
        gram = np.empty((working.size, working.size))
        _gram(part.batch.rows, working, np.zeros(problem.source.d), gram)
        before = state.v[working]
        values, slope = before.copy(), state.gradient[working]
        _pair_steps(problem.scale * gram, low[working], high[working], 0.1 * violation, values, slope)
        if np.array_equal(values, before):
            return _all_back(problem, state) if state.moved else state._replace(stuck=True)
        change = np.zeros(problem.source.d)
        _move(part.batch.rows, working, values - before, problem.scale, change)
        state.v[working] = values
        state.w[:] += change
        entries = _update(part.batch.rows, rows, change, state.gradient)
        active = (
            _shrink(state.order, state.active, state.v, low, high, state.gradient, highest, lowest)
            if self.shrinking
            else state.active
        )
        counts = Counts(
            state.counts.visits + working.size,
            state.counts.updates + working.size,
            state.counts.entries + entries,
        )
        state = state._replace(active=active, counts=counts, moved=True)
        return _all_back(problem, state) if _hopeless(problem, state) else state

    def point(self, problem: Problem, state: State) -> Point:
        """w(beta) with the middle of the optimal biases; stretched to the margin where that is hard."""
        source = problem.source
        beta = np.divide(state.v, source.weight, out=np.zeros(source.n), where=source.weight > 0)
        w, b = state.w, state.bias
        if problem.loss.hard:
            margins = source.y * (source.y - state.gradient + b)
            least = float(margins[source.weight > 0].min()) if state.active == state.order.size else -1.0
            if least > 0.0:
                w, b = w * (1.0 + 1e-10) / least, b * (1.0 + 1e-10) / least
        return Point(w, b, beta)

    def finished(self, state: State) -> Reason | None:
        """A hard margin that is proven to be too small to look for, or nothing left to do in float64."""
        if state.proven < MARGIN_LIMIT:
            return Reason(
                "not separable",
                f"proven: no hyperplane separates the classes by a margin above {state.proven:.2g} of the "
                "longest row, "
                "so the data count as not separable; use a finite C",
            )
        if state.stuck:
            return Reason(
                "stalled",
                "no step changes the dual variables any more in float64 (violation "
                f"{max(state.violation, 0.0):.3g}); "
                "rescale the columns of X, loosen the gap asked for or try another solver",
            )
        return None


@dataclass(frozen=True)
class SMO(Decomposition):
    """Sequential minimal optimisation: working sets of two, the second row chosen by second-order
    information.
    """

    q: int = field(default=2, init=False, repr=False, metadata={"help": "always 2"})

    name = "smo"
    summary = "sequential minimal optimisation (pairs, second-order choice), with the true bias"

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """Pair steps until the budget is spent or all rows come back."""
        (part,) = problem.source.parts()
        low, high = _bounds(problem)
        end = state.counts.visits + budget
        state = state._replace(paused=False)
        reads = 0
        while state.counts.visits < end and not (state.paused or state.stuck) and reads < _READS:
            rows = state.order[: state.active]
            left = math.ceil((end - state.counts.visits) / 2)
            affordable = max(1, (_READS - reads) // (2 * max(rows.size, 1)))
            allowed = min(_REVIEW - state.steps, left, affordable)
            if state.threshold == math.inf:
                highest, lowest = _ends(state, *_choose(state, rows, low, high, 1))
                state = state._replace(threshold=_FALL * max(highest - lowest, 0.0))
            highest, lowest, done, entries = _smo(
                part.batch.rows,
                part.batch.squared_norms,
                problem.scale,
                low,
                high,
                rows,
                state.v,
                state.w,
                state.gradient,
                state.threshold,
                allowed,
            )
            reads += 2 * done * rows.size
            counts = Counts(
                state.counts.visits + 2 * done, state.counts.updates + done, state.counts.entries + entries
            )
            violation, moved = highest - lowest, state.moved or done > 0
            state = state._replace(
                counts=counts,
                violation=violation,
                bias=_middle(highest, lowest),
                steps=state.steps + done,
                moved=moved,
            )
            if not moved and (
                violation <= _resolution(state) or (violation > state.threshold and done < allowed)
            ):
                state = state._replace(stuck=True)
            elif (
                violation > state.threshold and done < allowed
            ):  # no pair moves: the gradients may have drifted
                state = _all_back(problem, state._replace(steps=0))
            elif violation <= state.threshold:
                state = _all_back(
                    problem, state._replace(threshold=_FALL * state.threshold, paused=True, steps=0)
                )
            elif state.steps == _REVIEW:
                state = state._replace(steps=0)
                if _hopeless(problem, state):
                    return _all_back(problem, state)
                if self.shrinking:
                    active = _shrink(
                        state.order, state.active, state.v, low, high, state.gradient, highest, lowest
                    )
                    state = state._replace(active=active)
        return state


def _bounds(problem: Problem) -> tuple[Floats, Floats]:
    source = problem.source
    reach = source.weight * source.y
    if problem.loss.hard:
        reach = np.where(source.weight > 0.0, source.y * np.inf, 0.0)
    return np.minimum(reach, 0.0), np.maximum(reach, 0.0)


def _middle(highest: float, lowest: float) -> float:
    """A bias between the gradient of the last row that may go up and that of the last that may go down."""
    if math.isinf(highest) and math.isinf(lowest):
        return 0.0
    if math.isinf(highest) or math.isinf(lowest):
        return float(lowest if math.isinf(highest) else highest)
    return float(0.5 * (highest + lowest))


def _choose(state: State, rows: Any, low: Floats, high: Floats, half: int) -> tuple[Any, Any]:
    """The rows that want to go up most and those that want to go down most, in that order."""
    gradient, v = state.gradient[rows], state.v[rows]
    up, down = np.flatnonzero(v < high[rows]), np.flatnonzero(v > low[rows])
    first = (
        up[np.argsort(-gradient[up], kind="stable")[:half]]
        if up.size <= 4 * half
        else _extreme(-gradient, up, half)
    )
    last = (
        down[np.argsort(gradient[down], kind="stable")[:half]]
        if down.size <= 4 * half
        else _extreme(gradient, down, half)
    )
    return rows[first], rows[last]


def _ends(state: State, up: Any, down: Any) -> tuple[float, float]:
    """The largest gradient of the rows that may go up, the smallest of those that may go down; none: -inf,
    inf.
    """
    highest = float(state.gradient[up[0]]) if up.size else -math.inf
    return highest, float(state.gradient[down[0]]) if down.size else math.inf


def _resolution(state: State) -> float:
    """A violation of this size may be rounding error of the gradients; all are up to date."""
    return _RESOLUTION * float(np.abs(state.gradient).max())


def _extreme(key: Floats, among: Any, count: int) -> Any:
    found = among[np.argpartition(key[among], count)[:count]]
    return found[np.argsort(key[found], kind="stable")]


def _hopeless(problem: Problem, state: State) -> bool:
    """Whether v seems to prove that the classes cannot be separated; ``_all_back`` then makes sure."""
    if not problem.loss.hard:
        return False
    mass = float(np.abs(state.v).sum()) * math.sqrt(problem.max_squared_norm)
    return norm(state.w) < 0.5 * MARGIN_LIMIT * problem.scale * mass


def _all_back(problem: Problem, state: State) -> State:
    """All rows active again, with w and their gradients computed anew, and what the dual value proves."""
    source = problem.source
    (part,) = source.parts()
    state.w[:] = 0.0
    used = np.flatnonzero(state.v)
    _move(part.batch.rows, used, state.v[used], problem.scale, state.w)
    margin = problem.loss.margin
    _fresh(part.batch.rows, source.y, margin, state.w, state.gradient)
    proven = math.inf
    if problem.loss.hard:
        lengths = np.sqrt(source.squared_norms)
        mass, longest = float(np.abs(state.v).sum()), math.sqrt(problem.max_squared_norm)
        hulls = norm(state.w) / problem.scale + longest * abs(math.fsum(state.v))
        hulls += float(gamma(source.n + 8.0)) * float(np.abs(state.v) @ lengths)
        proven = hulls / (mass * longest) if mass * longest > 0.0 else math.inf
    counts = state.counts
    counts = Counts(counts.visits + state.order.size, counts.updates, counts.entries + source.nnz)
    return state._replace(active=state.order.size, proven=proven, counts=counts, moved=False)


@kernel
def _pair_steps(
    gram: Floats, low: Floats, high: Floats, tolerance: float, v: Floats, gradient: Floats
) -> None:
    """Pair steps on a small Gram matrix (times scale) until no pair violates by more than the tolerance."""
    size = v.shape[0]
    for _ in range(100 * size):
        i = -1
        for a in range(size):
            if v[a] < high[a] and (i < 0 or gradient[a] > gradient[i]):
                i = a
        if i < 0:
            return
        j = -1
        gain = 0.0
        for a in range(size):
            if v[a] > low[a] and gradient[i] - gradient[a] > tolerance:
                difference = gradient[i] - gradient[a]
                here = difference * difference / max(gram[i, i] + gram[a, a] - 2.0 * gram[i, a], 1e-300)
                if here > gain:
                    gain = here
                    j = a
        if j < 0:
            return
        curvature = max(gram[i, i] + gram[j, j] - 2.0 * gram[i, j], 1e-300)
        step = pair_step(gradient[i] - gradient[j], curvature, v[i], high[i], v[j], low[j])
        move(v, i, j, step, low, high)
        for a in range(size):
            gradient[a] -= step * (gram[i, a] - gram[j, a])


@kernel
def pair_step(
    difference: float, curvature: float, v_i: float, high_i: float, v_j: float, low_j: float
) -> float:
    """How far v_i goes up and v_j down: to the top of the parabola, or to the first bound."""
    return min(difference / curvature, high_i - v_i, v_j - low_j)


@kernel
def move(v: Floats, i: int, j: int, step: float, low: Floats, high: Floats) -> None:
    """``v_i += step, v_j -= step``, landing on a bound exactly where the step ends there."""
    v[i] = high[i] if step >= high[i] - v[i] else v[i] + step
    v[j] = low[j] if step >= v[j] - low[j] else v[j] - step


@kernel
def _smo(
    rows: Any,
    squared_norms: Floats,
    scale: float,
    low: Floats,
    high: Floats,
    active: Any,
    v: Floats,
    w: Floats,
    gradient: Floats,
    threshold: float,
    allowed: int,
) -> tuple[float, float, int, int]:
    """Up to ``allowed`` pair steps, while they move anything; the largest g up, the smallest g down, steps,
    entries.

    The first row wants to go up most. The second is the one whose pair raises the dual most, (g_i - g_j)^2
    divided by the curvature scale |x_i - x_j|^2, which needs the inner products of all active rows with x_i;
    one more pass brings their gradients up to date.
    """
    scattered = np.zeros(w.shape[0])
    products = np.empty(active.shape[0])
    entries = 0
    done = 0
    while True:
        i = -1
        highest, lowest = -np.inf, np.inf
        for k in active:
            if v[k] < high[k] and gradient[k] > highest:
                highest = gradient[k]
                i = k
            if v[k] > low[k] and gradient[k] < lowest:
                lowest = gradient[k]
        if i < 0 or highest - lowest <= threshold or done == allowed:
            return highest, lowest, done, entries
        rows.add(i, 1.0, scattered)
        j = -1
        gain = best = 0.0
        for p in range(active.shape[0]):
            k = active[p]
            products[p] = rows.dot(k, scattered)
            entries += rows.count(k)
            difference = highest - gradient[k]
            if v[k] > low[k] and difference > 0.0:
                curvature = max(scale * (squared_norms[i] + squared_norms[k] - 2.0 * products[p]), 1e-300)
                if difference * difference / curvature > gain:
                    gain = difference * difference / curvature
                    j = k
                    best = curvature
        rows.add(i, -1.0, scattered)
        if j < 0:
            return highest, lowest, done, entries
        step = pair_step(highest - gradient[j], best, v[i], high[i], v[j], low[j])
        v_i, v_j = v[i], v[j]
        move(v, i, j, step, low, high)
        if v[i] == v_i and v[j] == v_j:  # below the resolution of float64
            return highest, lowest, done, entries
        rows.add(i, scale * step, w)
        rows.add(j, -scale * step, w)
        rows.add(j, 1.0, scattered)
        for p in range(active.shape[0]):
            k = active[p]
            gradient[k] -= scale * step * (products[p] - rows.dot(k, scattered))
            entries += rows.count(k)
        rows.add(j, -1.0, scattered)
        done += 1


@kernel
def _shrink(
    order: Any,
    active: int,
    v: Floats,
    low: Floats,
    high: Floats,
    gradient: Floats,
    highest: float,
    lowest: float,
) -> int:
    """Leave out rows at a bound whose gradient lies beyond all that could make them move; how many stay."""
    p = 0
    while p < active:
        i = order[p]
        stuck_high = v[i] >= high[i] and gradient[i] > highest
        stuck_low = v[i] <= low[i] and gradient[i] < lowest
        if stuck_high or stuck_low:
            active -= 1
            order[p], order[active] = order[active], order[p]
        else:
            p += 1
    return active


@kernel
def _gram(rows: Any, working: Any, scattered: Floats, gram: Floats) -> None:
    for a in range(working.shape[0]):
        rows.add(working[a], 1.0, scattered)
        for b in range(a + 1):
            gram[a, b] = rows.dot(working[b], scattered)
            gram[b, a] = gram[a, b]
        rows.add(working[a], -1.0, scattered)


@kernel
def _move(rows: Any, working: Any, change: Floats, scale: float, w: Floats) -> None:
    for p in range(working.shape[0]):
        if change[p] != 0.0:
            rows.add(working[p], scale * change[p], w)


@kernel
def _update(rows: Any, active: Any, change: Floats, gradient: Floats) -> int:
    entries = 0
    for k in active:
        gradient[k] -= rows.dot(k, change)
        entries += rows.count(k)
    return entries


@kernel
def _fresh(rows: Any, y: Floats, margin: float, w: Floats, gradient: Floats) -> None:
    for i in range(y.shape[0]):
        gradient[i] = margin * y[i] - rows.dot(i, w)
