"""The margin perceptron with unlearning (Panagiotakopoulos and Tsampouka, ICML 2010), for the hinge loss.

A reconstruction from what later papers say of it; the text of the paper itself was not at hand. A perceptron
that counts: ``I_k`` updates were caused by row k, and the model is

    w = 1/(lam N) sum_k c_k beta_k x_k,    beta_k = y_k I_k / M,    0 <= I_k <= M,

so that M updates fill a row's box (in the paper's terms ``M = C b`` with a margin threshold b, a = b w, duals
I_k/b). A row that falls short of its margin learns (I_k rises by 1), one that exceeds it unlearns (I_k falls
by 1), each only where the dual rises by it: with ``q = c_k |x_k|^2 / (lam N M)``, where ``|margin - y_k s| >
q/2``. Every update raises the dual by a least amount and the counters have finitely many values, so a run
ends by itself, with every margin within q/2 of what optimality asks for. ``delta`` sets that quantum: M is
the least power of 2 with q <= delta for all rows. If the gap is not met by then, M is multiplied and the run
goes on from the same duals.

A score is worth several updates: presenting the row again and again until the dual would fall makes the
number of updates the nearest integer to ``(margin - y s)/q``, which is one addition to w. After an epoch over
all rows come mini-epochs over the active ones, those that moved or whose counter is neither 0 nor M.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...data.fetching import fetch_ahead, fetch_number
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ...runtime.options import option
from ...runtime.random import generator, shuffle
from ...training.solver import Capabilities, Preset, Solver, Status
from ...training.states import (
    Extent,
    Generator,
    Naturals,
    Numbers,
    Position,
    Reals,
    RowNumbers,
    invariant,
    state_class,
)
from ...training.stopping import Reason
from .start import dual_start

FINEST = 2**30  # the largest M: counters are 32-bit numbers
REFINE = 4  # factor of M when no row can move any more
PRECISIONS = ("float64", "float32")


@state_class
class Cursor(NamedTuple):
    """Where the epochs stand."""

    b: float
    position: Position = -1  # the next row of the epoch; -1 before it is shuffled
    minis: Position = -1  # mini-epochs made since the last full one; -1: this is a full one
    active: int = 0  # rows in the active set
    moved: int = 0  # updates in this epoch
    settled: bool = False  # a full epoch had none
    counts: Counts = Counts()


@state_class
class State(NamedTuple):
    """w = w(beta), beta = y counter / M."""

    w: Reals  # float64 or float32
    counters: Naturals  # int32
    M: Annotated[int, Numbers(1, FINEST, whole=True)]
    rows: RowNumbers  # uint32; those of positive weight
    active_rows: RowNumbers  # uint32; the first ``cursor.active`` of them are the active set
    rng: Generator
    cursor: Cursor

    @property
    def counts(self) -> Counts:
        """Work done so far."""
        return self.cursor.counts

    def at(self, **changes: Any) -> State:
        """The same with other values in the cursor."""
        return self._replace(cursor=self.cursor._replace(**changes))

    def beta(self, y: Floats) -> Floats:
        """The dual point that the counters stand for."""
        beta: Floats = y * (self.counters / self.M)
        return beta


@invariant(State)
def _check(state: State, extent: Extent) -> Iterator[tuple[bool, str]]:
    cursor, room = state.cursor, state.rows.size
    count = room if cursor.minis < 0 else cursor.active
    yield cursor.active <= room, "cursor.active is beyond active_rows"
    yield cursor.position <= count, "cursor.position is beyond the rows"
    # rows join the active set one by one during a full epoch
    yield not (cursor.minis < 0 <= cursor.position < cursor.active), "cursor.active is more than were visited"
    yield int(state.counters.max(initial=0)) <= state.M, "counters are beyond M"


class Limits(NamedTuple):
    """How much is made of a row and of the active rows."""

    multiplicity: int  # updates that one visit may cause, at most
    mini_epochs: int  # epochs over the active rows between two over all rows


@dataclass(frozen=True)
class MPU(Solver[State]):
    """The margin perceptron with unlearning."""

    seed: int = option(0, "seed of the random order")
    delta: float = option(0.1, "the quantum: rows are learned to a margin of about this first", low=0)
    delta_stop: float = option(
        0.0, "also stop at this measured relative gap (0: only at the gap of the run)", low=0
    )
    multiplicity: int = option(
        0, "updates that one look at a row may cause, at most (0: as many as raise the dual)", low=0
    )
    mini_epochs: int = option(10, "epochs over the active rows between two over all rows", low=0)
    precision: str = option("float64", "of w while training: float64 or float32", choices=PRECISIONS)

    name = "mpu"
    summary = "the margin perceptron with unlearning (a reconstruction), for the hinge loss"
    papers: ClassVar[Mapping[str, Preset]] = {
        "panagiotakopoulos-2010": Preset(
            "Panagiotakopoulos and Tsampouka (2010), as later papers describe it",
            {},
            "A reconstruction: the text of the paper was not at hand, so it is not known whether these "
            "defaults are its own.",
        ),
        "panagiotakopoulos-2013": Preset(
            "Panagiotakopoulos and Tsampouka (2013), tables 3, 5, 7 and 8",
            {"delta": 0.02, "delta_stop": 0.02},
            "A reconstruction. 0.02 is for Adult at C = 1; each data set and C has its own there. Table 8 is "
            "in single precision (precision=float32).",
        ),
    }
    capabilities = Capabilities(losses=("hinge",), offsets=False, moves_bias=True, own_stops=("delta_stop",))

    def check_together(self) -> None:
        """A quantum is positive."""
        if self.delta == 0.0:
            raise InputError(f"delta={self.delta!r} must be a positive number (0.1 or so)")

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin with counters at 0, or near the dual point of a warm start."""
        _, _, beta = dual_start(problem, warm)
        M = _quantum(problem, self.delta)
        rows = np.flatnonzero(problem.source.weight).astype(np.uint32)
        state = State(
            w=np.zeros(problem.source.d, dtype=self.precision),
            counters=np.rint(np.abs(beta) * M).astype(np.int32),
            M=M,
            rows=rows,
            active_rows=rows.copy(),
            rng=generator(self.seed),
            cursor=Cursor(problem.bias.centre),
        )
        return self.recompute_primal(problem, state) if beta.any() else state

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Visit rows until the budget is spent or nothing moves any more; then refine the quantum."""
        relative_gap = math.inf
        if news is not None:
            state.w[:] = news.w_of_dual
            found = problem.certificate(news.primal, news.primal_error, news.dual, news.dual_error)
            state, relative_gap = state.at(b=news.b), found.relative_gap
        if state.cursor.settled:
            if REFINE * state.M <= FINEST:
                state.counters[:] *= REFINE
                state = state._replace(M=REFINE * state.M)
            state = state.at(settled=False)
        limits = Limits(self.multiplicity or state.M, self.mini_epochs)
        margin = problem.loss.margin
        cursor = _learn(problem.source.batch, margin, problem.dual_geometry, state, limits, budget)
        state = state._replace(cursor=cursor)
        return state, Status("convenient" if cursor.settled else "no", self._ended(state, relative_gap))

    def _ended(self, state: State, relative_gap: float) -> Reason | None:
        """The measured gap is small enough, or no finer quantum can be counted."""
        if relative_gap <= self.delta_stop:
            return Reason("delta_stop", f"the relative gap {relative_gap:.3g} is at most delta_stop")
        if state.cursor.settled and REFINE * state.M > FINEST:
            return Reason(
                "finest quantum", "no row can be improved any further by the finest quantum there is"
            )
        return None

    def point(self, problem: Problem, state: State) -> Point:
        """The pair w(beta), beta."""
        return Point(state.w.astype(np.float64), state.cursor.b, state.beta(problem.source.y))

    def shift_bias(self, state: State, centre: float) -> tuple[State, float]:
        """The same duals under a bias whose centre moves to the present one."""
        b = state.cursor.b
        return state.at(b=2.0 * b - centre), b

    def recompute_primal(self, problem: Problem, state: State) -> State:
        """w(beta) computed anew, so that rounding errors do not accumulate."""
        w, b = problem.model_of(state.beta(problem.source.y), state.cursor.b)
        state.w[:] = w
        return state.at(b=b)


def _quantum(problem: Problem, delta: float) -> int:
    """The least power of 2 M with q <= delta for all rows: multiplied by 4 and so on it ends at the
    finest.
    """
    needed = min(max(float(problem.curvatures.max()) / delta, 1.0), float(FINEST))
    return 1 << math.ceil(math.log2(needed))


@kernel
def _best_change(short: float, q: float, M: int) -> int:
    """The number of updates that raises the dual most, the nearest integer to short / q; within -M and M.

    An empty row (q = 0) goes straight to its bound.
    """
    best = min(max(short / q, -float(M)), float(M)) if q > 0.0 else (float(M) if short > 0.0 else -float(M))
    return math.ceil(best - 0.5) if best > 0.0 else math.floor(best + 0.5)


@kernel
def _learn(batch: Any, margin: float, geometry: Any, state: Any, limits: Any, budget: int) -> Cursor:
    """Full epochs and mini-epochs until ``budget`` rows are visited or a full epoch moves nothing.

    For row i, with q = c_i (scale |x_i|^2 + bias_rate) / M and t the nearest integer to (margin - y_i s) / q,
    within the multiplicity and such that 0 <= I_i + t <= M:
        I_i += t,    w += scale c_i y_i t/M x_i,    b += bias_rate c_i y_i t/M
    """
    rows, y, weight, squared_norms = batch
    scale, _, bias_rate = geometry
    multiplicity, mini_epochs = limits
    w, counters, M, rng = state.w, state.counters, state.M, state.rng
    all_rows, active_rows = state.rows, state.active_rows
    b, position, minis, active, moved, settled, counts = state.cursor
    visits, updates, entries = counts
    stop = visits + budget
    while visits < stop and not settled:
        full = minis < 0
        rest = all_rows if full else active_rows
        count = all_rows.shape[0] if full else active
        if position < 0:
            position = 0
            moved = 0
            shuffle(rng, rest, count)
            if full:
                active = 0
        while position < count and visits < stop:
            fetch_ahead(batch, rest, position, count)
            fetch_number(counters, rest, position, count)
            i = rest[position]
            position += 1
            visits += 1
            entries += rows.count(i)
            short = margin - y[i] * (rows.dot(i, w) + b)
            q = weight[i] * (scale * squared_norms[i] + bias_rate) / M
            change = min(max(_best_change(short, q, M), -multiplicity), multiplicity)
            counter = int(counters[i])
            change = min(max(change, -counter), M - counter)
            if change != 0:
                counter += change
                counters[i] = counter
                move = weight[i] * y[i] * change / M
                rows.add(i, scale * move, w)
                b += bias_rate * move
                moved += 1
                updates += 1
                entries += rows.count(i)
            if full and (change != 0 or 0 < counter < M):
                active_rows[active] = i
                active += 1
        if position < count:
            break
        position = -1
        if full and moved == 0:
            settled = True
        elif active == 0 or mini_epochs == 0 or (not full and (moved == 0 or minis + 1 >= mini_epochs)):
            minis = -1
        else:
            minis = 0 if full else minis + 1
    return Cursor(b, position, minis, active, moved, settled, Counts(visits, updates, entries))
