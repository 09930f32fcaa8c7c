"""Dual coordinate descent with shrinking, for every loss: the flagship.

    maximise  D(beta) = -1/N sum_i c_i phi*(-beta_i) - lam/2 |w(beta)|^2 + bias term

one coordinate at a time, exactly (Hsieh, Chang, Lin, Keerthi and Sundararajan, ICML 2008, Algorithms 1 and 3;
Shalev-Shwartz and Zhang, JMLR 2013). w = w(beta) and b = b(beta) are kept up to date, so a step costs the
entries of one row. An epoch visits the active rows in a fresh random order: cyclic order is hopeless, and
shuffled blocks of 512 neighbours cost 3 to 18 times the passes on real files, whose neighbours are alike.
Groups of four, where rows are short, hardly cost any, and what belongs to a row (dual, label, weight, norm,
offset) is fetched once for all four.

With G the slope of the negated dual along a coordinate (left and right derivative where it has a kink), PG is
its projection, 0 where the row is optimal.

Which rows are visited: see ``shrinking.py``. When the solver asks to be evaluated: see ``gap_estimate.py``.

Foresight. In a first epoch w is the sum of the few rows seen so far: scores are much too small, and where C
is small row after row steps to its upper bound, to come back in later epochs. The t rows seen are as good a
sample as any, so w counts as n/t times as long, which makes a step one of the problem that has these t rows
alone (Modified-SGD of Shalev-Shwartz and Zhang, which prepares the duals for SDCA). Where C is large, that
problem would have hardly any regularisation while t is small; so the factor is (1 + r)/(t/n + r), with r = C
|x|^2 of the average row, times the largest curvature of the loss if that is below 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...data.fetching import fetch_ahead, fetch_number
from ...data.rows import Batch
from ...runtime.arrays import Floats, Words
from ...runtime.counts import Counts
from ...runtime.jit import kernel
from ...runtime.options import option
from ...runtime.random import generator, shuffle_groups
from ...training.solver import Capabilities, Solver, Status
from ...training.stopping import Reason
from .gap_estimate import WINDOW, GapEstimate, dual_value
from .shrinking import (
    ABSENT,
    SHRUNK,
    longer_cooldown,
    projected_slope,
    remove_shrunk,
    restore,
    scan_shrunk,
    schedule_epoch,
)
from .start import dual_start
from .sweeper import Subproblem

GROUP, SHORT = 4, 150  # neighbours that are visited together where rows have so many entries or fewer
FEW = 8192  # or fewer rows stay in the cache, and are visited one by one
MAX_FORESIGHT = 20.0  # 1/r at most
SOLVED = 0.1  # part to which the gap of active rows falls before the others are worth a look


class Gains(NamedTuple):
    """Gains of the dual value, to first order: what decides which rows cool down."""

    total: float = 0.0  # of this epoch's visits so far
    since: int = 0  # visits when this epoch began
    mean: float = 0.0  # of a visit, in the epoch before


class Cursor(NamedTuple):
    """Where the sweeps stand, between visits or between epochs."""

    b: float
    active: int  # the first so many of the active rows count, but for those shrunk in this epoch
    shrunk: int = 0  # so many were
    scheduled: int = 0  # the first so many rows of the schedule are visited in this epoch
    position: int = -1  # the next one; -1 before an epoch is scheduled
    scanned: int = -1  # how many rows a scan of the shrunk ones has passed; -1 when there is none
    anchor_b: float = math.nan  # the bias of the anchor; NaN before there is one
    gains: Gains = Gains()
    foresight: float = 0.0  # 1/r during a first epoch, else 0
    asked: bool = False  # an evaluation was asked for since rows were last restored
    paused: bool = False  # the gap asked for seems reached, or the active rows are solved
    settled: bool = False  # an evaluation found all rows within pg_tol, or none is left to move
    counts: Counts = Counts()
    estimate: GapEstimate = GapEstimate()


class Sweeps(NamedTuple):
    """The state of a `ShrinkingSweeper`."""

    active_rows: Any  # uint32; mostly as they lie in memory; what comes after the active ones is of no use
    schedule: Any  # uint32; the rows that this epoch visits, shuffled
    cooldown: Any  # uint8; see shrinking.py
    slack: (
        Any  # float32; by how much the score at the anchor of a shrunk row may change before it is restored
    )
    anchor: Floats  # w when all rows were last looked at
    rng: Words
    cursor: Cursor


class State(NamedTuple):
    """w = w(beta) at all times."""

    w: Floats
    beta: Floats
    sweeps: Sweeps

    @property
    def counts(self) -> Counts:
        """Work done so far."""
        return self.sweeps.cursor.counts

    def at(self, **changes: Any) -> State:
        """The same with other values in the cursor."""
        return self._replace(sweeps=self.sweeps._replace(cursor=self.sweeps.cursor._replace(**changes)))


class Manner(NamedTuple):
    """How rows are visited."""

    shrinking: bool
    group: int  # neighbours that are visited together


@dataclass(frozen=True)
class ShrinkingSweeper:
    """A `DualSweeper` with shrinking, cool-down and an estimate of the gap."""

    manner: Manner
    foresight: float = 0.0

    def begin(self, batch: Batch, b: float, seed: int, d: int) -> Sweeps:
        """All rows of positive weight are active."""
        absent = batch.weight == 0.0
        here = np.arange(absent.size, dtype=np.uint32)
        if absent.any():
            here = here[~absent]
        return Sweeps(
            active_rows=here,
            schedule=np.zeros_like(here),
            cooldown=absent * np.uint8(ABSENT),
            slack=np.zeros(absent.size, dtype=np.float32),
            anchor=np.zeros(d),
            rng=generator(seed),
            cursor=Cursor(b, here.size, foresight=self.foresight),
        )

    def sweep(self, rows: Subproblem, w: Floats, beta: Floats, state: Sweeps, budget: int) -> Sweeps:
        """Visit rows until the budget is spent or the active ones are as good as solved."""
        cursor = sweep(*rows, w, beta, state, self.manner, budget)
        return state._replace(cursor=cursor)


@dataclass(frozen=True)
class DCD(Solver[State]):
    """Dual coordinate descent."""

    seed: int = option(0, "seed of the random order")
    shrinking: bool = option(
        True, "leave rows out that sit firmly at a bound, let those cool down that gain little"
    )
    pg_tol: float = option(
        0.0, "also stop when the projected gradients of all rows range within this (0: never)", low=0
    )

    name = "dcd"
    summary = "dual coordinate descent with shrinking: fast to any accuracy, for every loss"
    capabilities = Capabilities(moves_bias=True, estimates_gap=True, own_stops=("pg_tol",))

    def _sweeper(self, problem: Problem, foresight: float = 0.0) -> ShrinkingSweeper:
        group = GROUP if problem.source.nnz <= SHORT * problem.source.n else 1
        return ShrinkingSweeper(Manner(self.shrinking, group), foresight)

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at beta = 0, or at the dual point of a warm start."""
        w, b, beta = dual_start(problem, warm)
        sweeper = self._sweeper(problem, 0.0 if beta.any() else _foresight(problem))
        return State(w, beta, sweeper.begin(problem.source.batch, b, self.seed, problem.source.d))

    def set_target(self, state: State, tol: float) -> State:
        """Ask for an evaluation where a relative gap of ``tol`` seems to be reached."""
        return state.at(estimate=state.sweeps.cursor.estimate._replace(tol=tol))

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Visit rows until the budget is spent or those that are active are as good as solved."""
        if news is not None:  # w(beta), computed anew: rounding errors do not accumulate
            state.w[:] = news.w_of_dual
            state = self.take_news(problem, state.at(b=news.b), news)
            if state.sweeps.cursor.settled:
                return state, self._status(state)
        w, beta, sweeps = state
        sweeps = self._sweeper(problem).sweep(Subproblem.of(problem), w, beta, sweeps, budget)
        state = State(w, beta, sweeps)
        return state, self._status(state)

    def _status(self, state: State) -> Status:
        cursor = state.sweeps.cursor
        ended = None
        if cursor.settled and self.pg_tol == 0.0:
            ended = Reason("optimal", "no row can be improved any further in float64")
        elif cursor.settled:
            ended = Reason(
                "pg_tol", f"the projected gradients of all rows range within pg_tol={self.pg_tol:g}"
            )
        if not cursor.paused:
            return Status("no", ended)
        return Status("target_expected" if cursor.estimate.expects_target else "convenient", ended)

    def take_news(self, problem: Problem, state: State, news: Evaluation) -> State:
        """Restore the rows that an evaluation found not to be optimal, and only those.

        An epoch under way goes on with the rows still to come, and no row is shrunk in a first one: how often
        a run is evaluated must not decide where it gets to.
        """
        sweeps, source = state.sweeps, problem.source
        cursor = sweeps.cursor
        sweeps.anchor[:] = news.w_of_dual
        shrinking = self.shrinking and cursor.foresight == 0.0
        active, high, low = restore(source.y, problem.loss, news.scores, state.beta, sweeps, shrinking)
        position, scheduled = cursor.position, cursor.scheduled
        if position >= 0:
            coming = sweeps.schedule[position:scheduled]
            coming = coming[sweeps.cooldown[coming] != SHRUNK]
            position, scheduled = 0, coming.size
            sweeps.schedule[:scheduled] = coming
        return state.at(
            active=active,
            shrunk=0,
            scheduled=scheduled,
            position=position,
            scanned=-1,
            asked=False,
            settled=bool(high - low <= self.pg_tol),
            anchor_b=news.b,
            estimate=cursor.estimate.corrected(problem.total_weight, news),
        )

    def point(self, problem: Problem, state: State) -> Point:
        """The pair w(beta), beta."""
        return Point(state.w, state.sweeps.cursor.b, state.beta)

    def shift_bias(self, state: State, centre: float) -> tuple[State, float]:
        """The same duals under a bias whose centre moves to the present one."""
        cursor = state.sweeps.cursor  # rows that were all optimal are looked at again at once
        moved = state.at(b=2.0 * cursor.b - centre, asked=cursor.asked or cursor.settled, settled=False)
        return moved, cursor.b

    def recompute_primal(self, problem: Problem, state: State) -> State:
        """w(beta) computed anew, so that rounding errors do not accumulate."""
        w, b = problem.model_of(state.beta, state.sweeps.cursor.b)
        state.w[:] = w
        return state.at(b=b)


def _foresight(problem: Problem) -> float:
    """1/r for the average row, within bounds."""
    source = problem.source
    curvature = problem.mean_square / (problem.lam * source.epoch_size) + problem.bias_rate
    r = min(1.0, problem.loss.smoothness) * curvature
    return min(1.0 / r, MAX_FORESIGHT) if r > 0.0 else MAX_FORESIGHT


@kernel
def sweep(
    batch: Any, loss: Any, geometry: Any, w: Floats, beta: Floats, state: Any, manner: Any, budget: int
) -> Cursor:
    """Epochs over the active rows, until ``budget`` rows are visited or the active rows are as good as
    solved.

    For row i with q = c_i (scale |x_i|^2 + bias_rate), the curvature of the dual along beta_i per unit of
    c_i/N:
        beta_i' = argmax -phi*(-beta') - s (beta' - beta_i) - q/2 (beta' - beta_i)^2,   s = <w, x_i> + b
        w += scale c_i (beta_i' - beta_i) x_i,    b += bias_rate c_i (beta_i' - beta_i)
    In a first epoch w, b - centre and q count as ``longer`` times as long, and no row is shrunk.
    """
    rows, y, weight, squared_norms = batch
    scale, centre, bias_rate = geometry
    shrinking, group = manner
    active_rows, schedule, cooldown, slack = state.active_rows, state.schedule, state.cooldown, state.slack
    anchor, rng, cursor = state.anchor, state.rng, state.cursor
    b, active, shrunk, scheduled, position = (
        cursor.b,
        cursor.active,
        cursor.shrunk,
        cursor.scheduled,
        cursor.position,
    )
    scanned, anchor_b, foresight, asked = cursor.scanned, cursor.anchor_b, cursor.foresight, cursor.asked
    gained, since, usual = cursor.gains
    visits, updates, entries = cursor.counts
    tol, dual, tally, tallied, gap, known, trust = cursor.estimate
    settled = cursor.settled
    paused = solved = False
    stop = visits + budget
    while visits < stop and not paused:
        if scanned >= 0:
            if math.isnan(anchor_b):
                anchor_b = b
                anchor[:] = w
            place = (anchor_b, active, scanned)
            scanned, active, seen, read = scan_shrunk(batch, loss, w, beta, state, b, place, stop - visits)
            visits += seen
            since += seen
            entries += read
            if scanned >= 0:
                break
            settled = active == 0
            if settled:
                break
        if position < 0:
            active, scheduled = schedule_epoch(active_rows, active, cooldown, schedule)
            position = shrunk = 0
            shuffle_groups(rng, schedule, scheduled, group if scheduled > FEW else 1)
        while position < scheduled and visits < stop and not (paused or solved):
            fetch_ahead(batch, schedule, position, scheduled)
            fetch_number(beta, schedule, position, scheduled)
            if position + 1 < scheduled:
                rows.prefetch_weights(schedule[position + 1], w)
            i = schedule[position]
            position += 1
            score = rows.dot(i, w) + b
            visits += 1
            entries += rows.count(i)
            longer = 1.0
            if foresight > 0.0:
                longer = (1.0 + foresight) / (1.0 + foresight * visits / active)
                score = centre + longer * (score - centre)
            elif visits & 3 == 0:
                tally += weight[i] * (
                    loss.value(y[i], score) + loss.conjugate(y[i], beta[i]) + beta[i] * score
                )
                tallied += 1
                if tallied >= max(active >> 6, min(active, WINDOW)):
                    gap = tally / tallied * (active - shrunk)
                    tally, tallied = 0.0, 0
                    paused = trust * gap <= tol * dual
                    if known < np.inf:
                        solved = gap <= SOLVED * known
                    else:
                        known = gap
            low, high = loss.dual_subdifferential(y[i], score, beta[i])
            if shrinking and foresight == 0.0 and low < 0.0 < high:
                cooldown[i] = SHRUNK
                slack[i] = 0.0
                shrunk += 1
                continue
            projected = projected_slope(low, high)
            gain = 0.0
            if projected != 0.0:
                q = longer * weight[i] * (scale * squared_norms[i] + bias_rate)
                best = loss.dual_prox(y[i], score, beta[i], q)
                move = weight[i] * (best - beta[i])
                if move != 0.0:
                    gain = abs(projected * move)
                    beta[i] = best
                    rows.add(i, scale * move, w)
                    b += bias_rate * move
                    updates += 1
                    entries += rows.count(i)
            if shrinking:
                gained += gain
                cooldown[i] = longer_cooldown(cooldown[i]) if gain < usual else 0
        if position >= scheduled:
            position = -1
            foresight = 0.0
            if tol > 0.0 and 2 * (visits - since) > y.shape[0]:
                dual = dual_value(loss, scale, y, weight, beta, w)
            if visits > since:
                usual = gained / (visits - since)
                gained, since = 0.0, visits
        if solved or active == shrunk:
            solved = False
            if asked and shrinking:
                asked = False
                scanned = 0
                known = np.inf
                active, position = remove_shrunk(active_rows, active, cooldown), -1
                shrunk = 0
            else:
                asked = paused = True
    return Cursor(
        b=b,
        active=active,
        shrunk=shrunk,
        scheduled=scheduled,
        position=position,
        scanned=scanned,
        anchor_b=anchor_b,
        gains=Gains(gained, since, usual),
        foresight=foresight,
        asked=asked,
        paused=paused,
        settled=settled,
        counts=Counts(visits, updates, entries),
        estimate=GapEstimate(tol, dual, tally, tallied, gap, known, trust),
    )
