"""Dual coordinate descent with shrinking, for every loss but the hard margin: the flagship.

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

Foresight. In the first epoch of a cold start w is the sum of the few rows seen so far: scores are much too
small, and where C is small row after row steps to its upper bound, to come back in later epochs. The t rows
seen are as good a sample as any, so w counts as n/t times as long, which makes a step one of the problem that
has these t rows alone (Modified-SGD of Shalev-Shwartz and Zhang, which prepares the duals for SDCA). Where C
is large, that problem would have hardly any regularisation while t is small; so the factor is (1 + r)/(t/n +
r), with r = C |x|^2 of the average row, times the largest curvature of the loss if that is below 1.

``foresight=false`` leaves that out; ``liblinear_e`` makes epochs, shrinks rows and stops as LIBLINEAR does
(``liblinear.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.options import option
from ...training.solver import Capabilities, Preset, Solver, Status
from ...training.states import state_class
from ...training.stopping import Reason
from .liblinear import Extremes, Place, Rule, Shuffled, sweep_as_liblinear
from .shrinking import (
    SHRUNK,
    rebuild_active,
)
from .shrinking_sweeper import ShrinkingSweeper
from .shrinking_sweeps import Manner, Search, Sweeps
from .start import dual_start
from .sweeper import Subproblem

GROUP, SHORT = 4, 150  # neighbours that are visited together where rows have so many entries or fewer
MAX_FORESIGHT = 20.0  # 1/r at most


@state_class
class State(NamedTuple):
    """w = w(beta) at all times."""

    w: Floats
    beta: Floats
    sweeps: Sweeps
    extremes: Extremes = Extremes()  # of LIBLINEAR's rule

    @property
    def counts(self) -> Counts:
        """Work done so far."""
        return self.sweeps.cursor.counts

    def at(self, **changes: Any) -> State:
        """The same with other values in the cursor."""
        return self._replace(sweeps=self.sweeps.at(**changes))


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
    foresight: bool = option(True, "in a first epoch, count w as if it were the sum of all rows already")
    liblinear_e: float = option(
        0.0, "shrink and stop as LIBLINEAR does, at its option -e; for classes (0: do not)", low=0
    )

    name = "dcd"
    summary = "dual coordinate descent with shrinking: fast to any accuracy, for every loss"
    capabilities = Capabilities(moves_bias=True, estimates_gap=True, own_stops=("pg_tol", "liblinear_e"))
    papers: ClassVar[Mapping[str, Preset]] = {
        "hsieh-2008": Preset(
            "Hsieh, Chang, Lin, Keerthi and Sundararajan (2008), algorithm 3, as in LIBLINEAR",
            {"foresight": False, "liblinear_e": 0.1},
            "0.1 is LIBLINEAR's default; Panagiotakopoulos and Tsampouka (2013) have 2.8 for Adult at C = 1.",
        )
    }

    def check_together(self) -> None:
        """One rule of its own at a time."""
        if self.pg_tol > 0.0 and self.liblinear_e > 0.0:
            raise InputError(
                f"pg_tol={self.pg_tol:g} and liblinear_e={self.liblinear_e:g} are two rules; give one of them"
            )

    def check(self, problem: Problem, visits: float) -> None:
        """LIBLINEAR's rule is for two classes."""
        if self.liblinear_e > 0.0 and problem.loss.task != "classification":
            raise InputError(
                f"liblinear_e={self.liblinear_e:g} is for classification, and {problem.loss.name!r} is for "
                "regression; leave it out"
            )

    def _sweeper(self, problem: Problem, foresight: float = 0.0) -> ShrinkingSweeper:
        group = GROUP if problem.source.nnz <= SHORT * problem.source.n else 1
        return ShrinkingSweeper(Manner(self.shrinking, group), foresight)

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at beta = 0, or at the dual point of a warm start."""
        w, b, beta = dual_start(problem, warm)
        ahead = self.foresight and self.liblinear_e == 0.0 and not beta.any()
        sweeper = self._sweeper(problem, _foresight(problem) if ahead else 0.0)
        return State(w, beta, sweeper.begin(problem.source.batch, b, self.seed, problem.source.d))

    def set_target(self, state: State, tol: float) -> State:
        """Ask for an evaluation where a relative gap of ``tol`` seems to be reached."""
        estimate = state.sweeps.cursor.estimate
        return state if estimate.tol == tol else state.at(estimate=estimate._replace(tol=tol))

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Visit rows until the budget is spent or those that are active are as good as solved."""
        if self.liblinear_e > 0.0:
            return self._step_as_liblinear(problem, state, budget)
        if news is not None:  # w(beta), computed anew: rounding errors do not accumulate
            state.w[:] = news.w_of_dual
            state = self.take_news(problem, state.at(b=news.b), news)
            if state.sweeps.search.settled:
                return state, self._status(state)
        elif self.pg_tol > 0.0:  # a run that is resumed finds anew what has ended it
            state = state._replace(sweeps=state.sweeps.knowing(settled=False))
        w, beta, sweeps, _ = state
        sweeps = self._sweeper(problem).sweep(Subproblem.of(problem), w, beta, sweeps, budget)
        state = State(w, beta, sweeps, state.extremes)
        return state, self._status(state)

    def _step_as_liblinear(self, problem: Problem, state: State, budget: int) -> tuple[State, Status]:
        """Epochs as LIBLINEAR makes them; it does not look at evaluations."""
        sweeps, cursor = state.sweeps, state.sweeps.cursor
        place = Place(cursor.b, cursor.active, cursor.position, state.extremes, cursor.counts)
        rule = Rule(self.shrinking, self.liblinear_e, cursor.counts.visits + budget)
        order = Shuffled(sweeps.active_rows, sweeps.rng)
        place, met = sweep_as_liblinear(*Subproblem.of(problem), state.w, state.beta, order, place, rule)
        b, active, position, extremes, counts = place
        state = state._replace(extremes=extremes)
        state = state.at(b=b, active=active, position=position, counts=counts)
        ended = None
        if met:
            reached = f"the projected gradients of an epoch over all rows range within {self.liblinear_e:g}"
            ended = Reason("liblinear_e", f"{reached}: LIBLINEAR would stop here")
        return state, Status("convenient" if position < 0 else "no", ended)

    def _status(self, state: State) -> Status:
        cursor, settled = state.sweeps.cursor, state.sweeps.search.settled
        ended = None
        if settled and self.pg_tol == 0.0:
            ended = Reason("optimal", "no row can be improved any further in float64")
        elif settled:
            ended = Reason(
                "pg_tol", f"the projected gradients of all rows range within pg_tol={self.pg_tol:g}"
            )
        if not cursor.paused:
            return Status("no", ended)
        return Status("target_expected" if cursor.estimate.expects_target else "convenient", ended)

    def take_news(self, problem: Problem, state: State, news: Evaluation) -> State:
        """Rebuild the active rows from the scores of an evaluation: all but those firmly at a bound or kink.

        An epoch under way goes on with the rows still to come, and no row is shrunk in a first one: how often
        a run is evaluated must not decide where it gets to.
        """
        sweeps, source = state.sweeps, problem.source
        cursor = sweeps.cursor
        sweeps.anchor[:] = news.w_of_dual
        shrinking = self.shrinking and cursor.foresight == 0.0
        active, high, low = rebuild_active(
            source.batch, problem.loss, news.scores, state.beta, sweeps.shrunk, shrinking
        )
        position, scheduled = cursor.position, cursor.scheduled
        if position >= 0:
            coming = sweeps.schedule[position:scheduled]
            coming = coming[sweeps.cooldown[coming] != SHRUNK]
            position, scheduled = 0, coming.size
            sweeps.schedule[:scheduled] = coming
        search = Search(settled=bool(high - low <= self.pg_tol), anchor_b=news.b)
        state = state._replace(sweeps=sweeps._replace(search=search))
        return state.at(
            active=active,
            shrunk=0,
            scheduled=scheduled,
            position=position,
            estimate=cursor.estimate.corrected(problem.total_weight, news),
        )

    def point(self, problem: Problem, state: State) -> Point:
        """The pair w(beta), beta."""
        return Point(state.w, state.sweeps.cursor.b, state.beta)

    def shift_bias(self, state: State, centre: float) -> tuple[State, float]:
        """The same duals under a bias whose centre moves to the present one."""
        b, search = state.sweeps.cursor.b, state.sweeps.search
        if search.settled:  # rows that were all optimal are looked at again at once
            state = state._replace(sweeps=state.sweeps.knowing(asked=True, settled=False))
        return state.at(b=2.0 * b - centre), b

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
