"""What ``decomposition`` and ``smo`` share: the dual problem with a free bias or none, its gradients, bounds
and shrinking.

With v_i = c_i beta_i, between 0 and c_i y_i, the dual problem with a free bias is, for a margin m,

    maximise  m/N sum y_i v_i - lam/2 |w|^2,   w = 1/(lam N) sum v_i x_i,   subject to  sum v_i = 0.

Its gradient per unit of 1/N is ``g_i = m y_i - <w, x_i>``. A row may go *up* where v_i is below its upper
bound, *down* where it is above its lower one; v is optimal iff no g of a row that may go up exceeds one of a
row that may go down, and every b between the two is then an optimal bias. The constraint lets no row move
alone: the basic step is the one on a pair,

    v_i += t,  v_j -= t,   t = (g_i - g_j) / (scale |x_i - x_j|^2),  clipped to both boxes,

with scale = 1/(lam N).

Without a bias there is no constraint, and rows may move alone. That is the same as one more row x = 0 whose
v has no bounds: its gradient is always 0, and a pair step with it is a step of one row. So v is optimal iff
no g of a row that may go up exceeds 0, and none of a row that may go down is below it.

Shrinking: rows at a bound whose gradient is beyond the extremes are removed from the active rows until these
are solved to a threshold; then all rows are restored, with w and all gradients computed anew.

C = infinity is the hard margin: the boxes have no upper bound, and the loss is infinite below the margin. A
primal point is then made feasible by stretching w until the least margin is 1. Where the data are not
separable the dual grows without bound, and v proves it: y_i (<w, x_i> + b) >= 1 for all i gives sum |v| <=
<w, sum v x> + b sum v, and |b| <= |w| R as both classes are there, so no hyperplane has a margin 1/|w| above
(|sum v x| + R |sum v|) / sum |v|; without a bias the second term is missing. That is computed anew, with a
bound on its rounding. Where the dual grows too slowly to tell, a linear program decides
(``separability.py``): v becomes the ray that it finds, or its hyperplane is kept, which is a primal point.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.problem import Point, Problem
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.jit import kernel
from ...runtime.sums import gamma, norm
from ...training.solver import Capabilities, Solver, Status
from ...training.states import (
    Extended,
    Extent,
    GrowingReals,
    Magnitude,
    Numbers,
    RowNumbers,
    invariant,
    state_class,
)
from ...training.stopping import Reason

FALL = 0.2  # factor of the threshold each time all rows are restored
RESOLUTION = 4.0 * float(np.finfo(np.float64).eps)  # of gradients, as a part of the largest one
# rows that a call reads at most, or those of one round: limits in seconds must not wait for more
READS = 2_000_000
SHRINK_PERIOD = 1000  # pair steps of smo between two looks at what can be left out
MARGIN_LIMIT = 1e-6  # of the longest row: data with no larger margin count as not separable


@state_class
class Variables(NamedTuple):
    """v, w(v), and the gradients of the active rows; those of the others are out of date."""

    v: Floats
    w: Floats
    gradient: Floats


class Box(NamedTuple):
    """The bounds of v, row by row."""

    low: Floats
    high: Floats


class Extremes(NamedTuple):
    """The largest gradient of the rows that may go up (-inf where there is none), the smallest of those that
    may go down (inf). Without a bias 0 is among both.
    """

    highest: float
    lowest: float

    @property
    def violation(self) -> float:
        """At an optimum at most 0."""
        return self.highest - self.lowest

    @property
    def middle(self) -> float:
        """A bias between the two."""
        if math.isinf(self.highest) and math.isinf(self.lowest):
            return 0.0
        if math.isinf(self.highest) or math.isinf(self.lowest):
            return float(self.lowest if math.isinf(self.highest) else self.highest)
        return float(0.5 * (self.highest + self.lowest))


@state_class
class Cursor(NamedTuple):
    """The scalars of the state."""

    active: int  # the first so many rows of the order take part
    threshold: Magnitude = math.inf  # of the violation, at which all rows are restored
    violation: Extended = math.inf  # of the active rows
    bias: float = 0.0
    proven: Extended = (
        math.inf
    )  # no hyperplane has a larger margin, as a part of the longest row (hard margin)
    steps: Annotated[int, Numbers(0, SHRINK_PERIOD, whole=True)] = (
        0  # pair steps since rows were last shrunk (smo)
    )
    moved: bool = False  # since all rows were restored
    stuck: bool = False  # no step changes anything any more
    decided: bool = False  # it has been asked whether the classes are separable (hard margin)
    counts: Counts = Counts()


@state_class
class State(NamedTuple):
    """v and what follows from it, and which rows are active."""

    variables: Variables
    order: RowNumbers  # int64
    cursor: Cursor
    hyperplane: GrowingReals  # w and b that separate the classes, found by a linear program; else empty

    @property
    def counts(self) -> Counts:
        """Work done so far."""
        return self.cursor.counts

    @property
    def active_rows(self) -> Any:
        """The rows that take part."""
        return self.order[: self.cursor.active]

    def at(self, **changes: Any) -> State:
        """The same with other values in the cursor."""
        return self._replace(cursor=self.cursor._replace(**changes))

    def counted(self, visits: int, updates: int, entries: int) -> State:
        """The same after some more work."""
        done = self.counts
        return self.at(counts=Counts(done.visits + visits, done.updates + updates, done.entries + entries))

    @property
    def resolution(self) -> float:
        """A violation of this size may be rounding error of the gradients; all are up to date."""
        return RESOLUTION * float(np.abs(self.variables.gradient).max())


@invariant(State)
def _check(state: State, extent: Extent) -> Iterator[tuple[bool, str]]:
    yield state.cursor.active <= state.order.size, "cursor.active is beyond the order"
    yield extent.distinct_rows(state.order), "order has a row twice, or one of weight 0"
    yield state.hyperplane.size in (0, extent.d + 1), "hyperplane is none of this problem"


@dataclass(frozen=True)
class WorkingSetSolver(Solver[State]):
    """Where solvers on working sets begin, what they hand over and how they end; the steps are their own."""

    capabilities = Capabilities(losses=("hinge", "hard-margin"), offsets=False, biases=("none", "exact"))

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at v = 0, or at the dual point of a warm start."""
        source = problem.source
        v, w = np.zeros(source.n), np.zeros(source.d)
        if warm is not None and warm.beta is not None:
            evaluated = problem.evaluate(Point(w, 0.0, warm.beta))
            if math.isfinite(evaluated.dual):
                v, w = source.weight * problem.bias.feasible(warm.beta, source.weight), evaluated.w_of_dual
        order, variables = np.flatnonzero(source.weight), Variables(v, w, np.zeros(source.n))
        return restore_all(problem, State(variables, order, Cursor(order.size), np.zeros(0)))

    def point(self, problem: Problem, state: State) -> Point:
        """w(beta) with the middle of the optimal biases; stretched to the margin where that is hard."""
        source, cursor = problem.source, state.cursor
        v, w, gradient = state.variables
        b = cursor.bias
        beta = np.divide(v, source.weight, out=np.zeros(source.n), where=source.weight > 0)
        if problem.loss.hard:
            margins = source.y * (source.y - gradient + b)
            least = float(margins[source.weight > 0].min()) if cursor.active == state.order.size else -1.0
            if least <= 0.0 and state.hyperplane.size:
                w, b = state.hyperplane[:-1], float(state.hyperplane[-1])
            elif least > 0.0:
                w, b = w * (1.0 + 1e-10) / least, b * (1.0 + 1e-10) / least
        return Point(w, b, beta)

    def story(self, problem: Problem, state: State) -> list[str]:
        """What is known of a hard margin that was not found."""
        if not problem.loss.hard or not state.cursor.decided or state.cursor.proven < MARGIN_LIMIT:
            return []
        if state.hyperplane.size:
            return ["a linear program separated the classes"]
        return [
            "whether the classes are separable is not decided: a linear program found no answer; use a "
            "finite C"
        ]


def status_of(problem: Problem, state: State, *, restored: bool) -> Status:
    """Where all rows were restored it is convenient to evaluate.

    A run ends where a hard margin is proven to be too small to look for, or where nothing is left to do in
    float64.
    """
    cursor, ended = state.cursor, None
    margin = cursor.proven
    if margin < MARGIN_LIMIT and proven_margin(problem, *model_of(problem, state.variables.v)) < MARGIN_LIMIT:
        ended = Reason(
            "not separable",
            f"proven: no hyperplane separates the classes by a margin above {cursor.proven:.2g} of the "
            "longest row, so the data count as not separable; use a finite C",
        )
    elif cursor.stuck:
        ended = Reason(
            "stalled",
            "no step changes the dual variables any more in float64 (violation "
            f"{max(cursor.violation, 0.0):.3g}); "
            "rescale the columns of X, loosen the gap asked for or try another solver",
        )
    return Status("convenient" if restored else "no", ended)


def box_of(problem: Problem) -> Box:
    """The bounds of v_i = c_i beta_i; 0 and 0 for rows of weight 0."""
    source = problem.source
    bound = problem.loss.dual_bounds(1.0)[1]
    end = np.multiply(source.weight * source.y, bound, out=np.zeros(source.n), where=source.weight > 0.0)
    return Box(np.minimum(end, 0.0), np.maximum(end, 0.0))


def most_violating(state: State, box: Box, half: int) -> tuple[Any, Any]:
    """Up to ``half`` active rows that want to go up most and as many that want to go down most, in that
    order.
    """
    rows = state.active_rows
    gradient, v = state.variables.gradient[rows], state.variables.v[rows]
    up, down = np.flatnonzero(v < box.high[rows]), np.flatnonzero(v > box.low[rows])
    return rows[_smallest(-gradient, up, half)], rows[_smallest(gradient, down, half)]


def _smallest(key: Floats, among: Any, count: int) -> Any:
    """The indices among some of which the key is smallest, sorted by it."""
    if among.size <= 4 * count:
        return among[np.argsort(key[among], kind="stable")[:count]]
    found = among[np.argpartition(key[among], count)[:count]]
    return found[np.argsort(key[found], kind="stable")]


def extremes_of(problem: Problem, state: State, up: Any, down: Any) -> Extremes:
    """The extremes, of rows as `most_violating` sorts them."""
    gradient = state.variables.gradient
    highest = float(gradient[up[0]]) if up.size else -math.inf
    lowest = float(gradient[down[0]]) if down.size else math.inf
    return Extremes(highest, lowest) if problem.bias.free else Extremes(max(highest, 0.0), min(lowest, 0.0))


def bias_of(problem: Problem, extremes: Extremes) -> float:
    """The middle of the optimal biases, or 0 where there is none."""
    return extremes.middle if problem.bias.free else 0.0


def restore_all(problem: Problem, state: State) -> State:
    """All rows active, with w and their gradients computed anew, and what the dual value proves."""
    source = problem.source
    v, w, gradient = state.variables
    w[:] = model_of(problem, v)[1]
    set_gradients(source.batch.rows, source.y, problem.loss.margin, w, gradient)
    state = state.counted(state.order.size, 0, source.nnz)
    return state.at(active=state.order.size, proven=proven_margin(problem, v, w), moved=False)


def model_of(problem: Problem, v: Floats) -> tuple[Floats, Floats]:
    """v, and w(v) computed anew."""
    w, used = np.zeros(problem.source.d), np.flatnonzero(v)
    add_rows(problem.source.batch.rows, used, v[used], problem.scale, w)
    return v, w


def proven_margin(problem: Problem, v: Floats, w: Floats) -> float:
    """No hyperplane has a larger margin, as a part of the longest row, as v of the signs of y proves."""
    source = problem.source
    if not problem.loss.hard or (v * source.y < 0.0).any():
        return math.inf
    lengths = np.sqrt(source.squared_norms)
    mass, longest = float(np.abs(v).sum()), math.sqrt(problem.max_squared_norm)
    hulls = norm(w) / problem.scale + (longest * abs(math.fsum(v)) if problem.bias.free else 0.0)
    hulls += float(gamma(source.n + 8.0)) * float(np.abs(v) @ lengths)
    return hulls / (mass * longest) if mass * longest > 0.0 else math.inf


@kernel
def pair_step(
    difference: float, curvature: float, v_i: float, high_i: float, v_j: float, low_j: float
) -> float:
    """How far v_i goes up and v_j down: to the top of the parabola, or to the first bound."""
    return min(difference / curvature, high_i - v_i, v_j - low_j)


@kernel
def move_pair(v: Floats, i: int, j: int, step: float, box: Any) -> None:
    """``v_i += step, v_j -= step``, landing on a bound exactly where the step ends there."""
    low, high = box
    v[i] = high[i] if step >= high[i] - v[i] else v[i] + step
    v[j] = low[j] if step >= v[j] - low[j] else v[j] - step


@kernel
def shrink(order: Any, active: int, v: Floats, gradient: Floats, box: Any, extremes: Any) -> int:
    """Remove rows at a bound whose gradient lies beyond all that could make them move; how many stay."""
    low, high = box
    highest, lowest = extremes
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
def add_rows(rows: Any, some: Any, change: Floats, scale: float, w: Floats) -> None:
    """``w += scale sum_p change_p x_{some_p}``."""
    for p in range(some.shape[0]):
        if change[p] != 0.0:
            rows.add(some[p], scale * change[p], w)


@kernel
def set_gradients(rows: Any, y: Floats, margin: float, w: Floats, gradient: Floats) -> None:
    """``g_i = margin y_i - <w, x_i>`` for all rows."""
    for i in range(y.shape[0]):
        gradient[i] = margin * y[i] - rows.dot(i, w)
