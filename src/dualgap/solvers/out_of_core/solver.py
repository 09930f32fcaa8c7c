"""What solvers for rows beyond memory share.

    maximise  D(beta) = -1/N sum_i c_i phi*(-beta_i) - lam/2 |w(beta)|^2 + bias term

over the duals of the rows in a cache, one at a time and exactly (``cache_sweeper.py``), while a Reader brings
other rows (``engine.py``). w and all duals are in memory. Every row goes by once in each pass of the Reader,
so the passes carry the certificates with them (``passing.py``).

Solvers differ in which rows enter and leave the cache, and in how many visits come before others are taken
in.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Self

from ...core.problem import Evaluation, Point, Problem
from ...data.chunks import Feed
from ...runtime.errors import InputError
from ...runtime.options import option
from ...training.solver import Capabilities, Solver, Status, Steps
from ...training.stopping import Reason, broken
from ..dual.start import dual_start
from .cache_sweeper import CacheSweeper, Sweeps
from .capacity import capacity
from .engine import ChunkOrder, Engine, Reading, damaged
from .state import Frozen, Place, State

REST = 8  # measured: 4 takes up to a pass more to 1e-4


def rest_option() -> int:
    """The option `rest` of solvers whose sweeps pass over rows with slack."""
    return option(  # type: ignore[no-any-return]
        REST,
        "rows at a bound with slack are visited in one of so many sweeps (1: in each, as published)",
        low=1,
    )


@dataclass(frozen=True)
class OutOfCore(Solver[State]):
    """A solver for rows that are not all in memory. Rows that are in memory are treated alike, as chunks."""

    seed: int = option(0, "seed of the random order")
    cache: float = option(
        0.0, "rows to keep in memory: a number, or a share below 1 (0: what the memory budget allows)", low=0
    )

    max_passes: int = option(
        0, "end after so many passes over the data, the Reader's max_iter (0: no limit)", low=0
    )

    capabilities = Capabilities(from_disk=True, moves_bias=True, own_stops=("max_passes",))

    # Where the solvers differ.

    @abstractmethod
    def take_in(self, engine: Engine, state: State) -> State:
        """Put rows that have been read into the cache, evicting others as needed, and set the visits owed.

        Called when no visits are owed.
        """

    def chunk_order(self, feed: Feed, slots: int) -> ChunkOrder:
        """The order of the chunks in each pass, for a cache with room for ``slots`` rows: as they come."""
        return lambda pass_number: range(feed.chunks)

    @property
    def reading(self) -> Reading:
        """How chunks are read: in turns with training."""
        return Reading(lockstep=True)

    def sweeper(self, problem: Problem) -> CacheSweeper:
        """What visits the rows in the cache."""
        return CacheSweeper()

    @property
    def first_epsilon(self) -> float:
        """Where the epsilon of the trainer's eviction begins."""
        return math.inf

    def most_owed(self, slots: int) -> int:
        """The visits that are owed at most, for a cache with room for so many rows."""
        return math.ceil(self.visits_per_row * slots)

    # What runs that share a reader ask for.

    def in_lockstep(self) -> Self:
        """The solver that reads and trains in turns, so that a seed gives the same model each time."""
        return self

    @property
    def visits_per_row(self) -> float:
        """Visits after each row that is read, at least: by that many runs that share a reader take turns."""
        return 1.0

    # What all of them do.

    def check(self, problem: Problem, visits: float) -> None:
        """The memory budget must have room for a few rows."""
        capacity(problem, self.cache)

    def start(self, problem: Problem, warm: Point | None) -> State:
        """An empty cache, and nothing read."""
        w, b, beta = dual_start(problem, warm)
        sweeps = Sweeps.empty(capacity(problem, self.cache), b, self.seed, self.first_epsilon)
        return State(w, beta, sweeps, Place(), owed=0, room=0, frozen=Frozen.empty())

    def opened(self, problem: Problem, state: State) -> AbstractContextManager[Steps[State]]:
        """With a cache, filled again with the rows that the state names, and a Reader."""
        return self._opened(problem, state)

    @contextmanager
    def _opened(self, problem: Problem, state: State) -> Iterator[Steps[State]]:
        if state.owed > self.most_owed(state.sweeps.ids.size):
            raise damaged(f"owed is {state.owed} visits, more than the cache ever owes")
        engine = Engine(problem, state, self.reading, self.chunk_order)
        try:
            yield _Opened(self, engine)
        finally:
            engine.close()

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """One step with a cache and a Reader of its own; a run that is `opened` keeps them."""
        with self.opened(problem, state) as steps:
            return steps.step(problem, state, budget, news)

    def step_with(
        self, engine: Engine, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Visit rows in the cache, and take others in when no visits are owed any more.

        A step ends where an evaluation is complete, before any further visit: at which visit a run is told
        of it must not depend on the budgets.
        """
        if news is not None:  # w(beta), computed anew: rounding errors do not accumulate
            state.w[:] = news.w_of_dual
            state = state.at(b=news.b)
        engine.tell_bias(state.b)
        ended: Reason | None = None
        stop = state.counts.visits + budget
        while state.counts.visits < stop and not engine.has_evaluation():
            if state.owed <= 0:
                if 0 < self.max_passes <= state.place.pass_number:
                    ended = Reason("max_passes", f"max_passes={self.max_passes} passes have been made")
                    break
                try:
                    state = self.take_in(engine, state)
                except InputError as error:
                    ended = broken(str(error))
                    break
                if engine.has_evaluation():
                    break
            state = self._train(engine, problem, state, stop - state.counts.visits)
        measures = {"passes": engine.passes(state.place)}
        return state, Status(ended=ended, evaluated=engine.next_evaluation(), measures=measures)

    def _train(self, engine: Engine, problem: Problem, state: State, budget: int) -> State:
        """Make the visits owed, or where rows are awaited a sweep, within the budget."""
        visits, owed = state.counts.visits, state.owed
        budget = min(budget, owed if owed > 0 else state.size)
        state = engine.train(problem, self.sweeper(problem), state, budget)
        done = state.counts.visits - visits
        return state._replace(owed=owed - done if state.size else 0)

    def point(self, problem: Problem, state: State) -> Point:
        """The pair w(beta), beta."""
        return Point(state.w, state.b, state.beta)

    def shift_bias(self, state: State, centre: float) -> tuple[State, float]:
        """The same duals under a bias whose centre moves to the present one."""
        return state.at(b=2.0 * state.b - centre), state.b

    def recompute_primal(self, problem: Problem, state: State) -> State:
        """w(beta) computed anew, so that rounding errors do not accumulate."""
        w, b = problem.model_of(state.beta, state.b)
        state.w[:] = w
        return state.at(b=b)


@dataclass(frozen=True)
class _Opened:
    """The steps of a run with its cache and its Reader."""

    solver: OutOfCore
    engine: Engine

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """As `OutOfCore.step`."""
        return self.solver.step_with(self.engine, problem, state, budget, news)
