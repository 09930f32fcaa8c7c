"""A solver that changes its mind: coordinates as long as they promise to arrive, a method of second order
else.

Dual coordinate descent is the fastest method where rows hardly disagree, and crawls where they do; a method
of second order takes about as many steps everywhere, each of which costs many epochs where columns are
many. Which is which is seen from a run: every certificate tells how fast the gap falls, and so what is left
to do. What the other method would need is forecast from the size of the data (`forecasts.py`). The run goes
over to it where it expects to save a good part of the work, with w and the duals as a starting point, and
comes back if the forecast was wrong.

Work is counted and never timed: a busy machine makes no difference to the model. How much switching
can cost is bounded: a method is given up only after it has worked for a set part of what the other is
expected to need, and of all work before. So stints become longer and longer, and whichever method solves the
problem gets there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np

from ..core.problem import Evaluation, Point, Problem
from ..runtime.arrays import Floats
from ..runtime.counts import Counts
from ..training.solver import AnySolver, Capabilities, Solver, Status, Steps
from ..training.states import Extended, Extent, Magnitude, NotNegative, Numbers, invariant, state_class
from .forecasts import Forecast, at_first_sight, remaining

TRIAL = 0.2  # a method has a fair trial: this part of what the other one is expected to need,
TRIAL_SHOWN = 0.07  # or this part where the first gap tells if coordinates crawl,
GROWTH = 0.5  # and this part of all work before
MARGIN = 1.5  # the other one must be expected to be so many times cheaper
MARGIN_BACK = 2.0  # the same for a method that was given up before
PATIENCE = 2.5  # times what a method of second order is expected to need, before it is doubted; or once,
# where a w is known that separates the rows
FAR = 100.0  # the relative gap from which on a point is no start for a method of second order
LEAST_SAVED = 3e6  # and to save so many nanoseconds: a change may have to compile something


Growing: TypeAlias = Annotated[Floats, Numbers(0.0, infinite=True, shape=(None,))]


@state_class
class Ledger(NamedTuple):
    """What the method at work has done since it took over, at each of its evaluations."""

    costs: Growing
    gaps: Growing  # relative, the best so far

    def after(self, cost: float, gap: float) -> Ledger:
        """With one more evaluation."""
        return Ledger(np.append(self.costs, cost), np.append(self.gaps, gap))


@state_class
class Changes(NamedTuple):
    """The changes made: at which visits, at which gap, and the costs that were expected then."""

    visits: Growing
    gaps: Growing
    given_up: Growing
    expected: Growing

    def after(self, *change: float) -> Changes:
        """With one more."""
        return Changes(*(np.append(old, new) for old, new in zip(self, change, strict=True)))


@state_class
class State(NamedTuple):
    """The state of the method at work, and the ledger by which it is judged."""

    active: Annotated[int, Numbers(0, 1, whole=True)]  # 0: the first, 1: the second
    inner: Any
    before: Counts  # by methods that have been given up
    ledger: Ledger
    changes: Changes
    spent: NotNegative = 0.0  # the work of all stints before
    given_up: Magnitude = 0.0  # what coordinates had still to do when they were given up; 0: they were not
    primal: Extended = np.inf  # the best values seen
    dual: Extended = -np.inf
    tol: NotNegative = 0.0

    @property
    def begun(self) -> int:
        """The method that began: each change was from one to the other."""
        return (self.active + self.changes.visits.size) % 2

    @property
    def counts(self) -> Counts:
        """The work of all."""
        inner: Counts = self.inner.counts
        visits, updates, entries = self.before
        return Counts(visits + inner.visits, updates + inner.updates, entries + inner.entries)


@invariant(State)
def _check(state: State, extent: Extent) -> Iterator[tuple[bool, str]]:
    for name, group in (("ledger", state.ledger), ("changes", state.changes)):
        yield len({part.size for part in group}) == 1, f"{name} has parts of different lengths"
    yield bool((state.ledger.costs[1:] >= state.ledger.costs[:-1]).all()), "ledger.costs do not ascend"


NO_LEDGER = Ledger(np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class Switching(Solver[State]):
    """Two solvers, one at a time. The first is coordinate descent, the second a method of second order."""

    first: AnySolver
    second: AnySolver
    begins: int = 0  # which of the two

    name = "auto"
    summary = "coordinate descent or a method of second order, by what the run shows"
    capabilities = Capabilities(biases=("none", "augmented", "exact"), estimates_gap=True)

    @property
    def identity(self) -> str:
        """That of both."""
        return f"auto({self.first.identity}, {self.second.identity}, {self.begins})"

    def solver(self, active: int) -> AnySolver:
        """One of the two."""
        return self.second if active else self.first

    def at_work(self, state: State | None) -> AnySolver:
        """The one at work, or the one that begins, as a user knows it."""
        if state is None:
            return self.solver(self.begins).at_work(None)
        return self.active(state).at_work(state.inner)

    def active(self, state: State) -> AnySolver:
        """The one at work, together with what finds its bias."""
        return self.solver(state.active)

    def check(self, problem: Problem, visits: float) -> None:
        """Both must suit the data."""
        self.first.check(problem, visits)
        self.second.check(problem, visits)

    def plan(self, problem: Problem, tol: float) -> list[str]:
        """What the one that begins has to say, and when the other one takes over."""
        this, other = self.solver(self.begins), self.solver(1 - self.begins)
        return [
            *this.plan(problem, tol),
            f"where certificates show that {this.name} would take over {MARGIN:g} times the work that "
            f"{other.name} is expected to need, {other.name} goes on from there",
        ]

    def rows_per_iteration(self, problem: Problem) -> int:
        """The two differ."""
        return 0

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin with the method that the data suggest."""
        return self._start(problem, warm, self.begins)

    def _start(self, problem: Problem, warm: Point | None, active: int) -> State:
        inner = self.solver(active).start(problem, warm)
        none = Changes(*(np.zeros(0) for _ in Changes._fields))
        return State(active, inner, Counts(), NO_LEDGER, none)

    def fresh_like(self, problem: Problem, state: Any) -> State:
        """With the method that a state has at work."""
        known = isinstance(state, State) and state.active in (0, 1)
        return self._start(problem, None, state.active if known else self.begins)

    def set_target(self, state: State, tol: float) -> State:
        """For the decision, and for the method at work."""
        inner = self.active(state).set_target(state.inner, tol)
        return state._replace(inner=inner, tol=tol)

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Decide if there is news; then let the method at work go on."""
        return self.step_with(self.active, problem, state, budget, news)

    def step_with(
        self, steps: Any, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """``steps`` tells what makes the steps of a state's method."""
        if news is not None:
            decided = self._decide(problem, state, news)
            if decided.active != state.active:
                news = None  # it is about the point of the other method
            state = decided
        inner, status = steps(state).step(problem, state.inner, budget, news)
        return state._replace(inner=inner), status

    def point(self, problem: Problem, state: State) -> Point:
        """That of the method at work."""
        return self.active(state).point(problem, state.inner)

    def opened(self, problem: Problem, state: State) -> AbstractContextManager[Steps[State]]:
        """With what the method at work has open."""
        return self._opened(problem)

    @contextmanager
    def _opened(self, problem: Problem) -> Iterator[Steps[State]]:
        with ExitStack() as stack:
            yield _Opened(self, problem, stack)

    def story(self, problem: Problem, state: State) -> list[str]:
        """What was changed, and why."""
        found, active = [], self.begins
        for visits, gap, given_up, expected in zip(*state.changes, strict=True):
            before, active = self.solver(active).name, 1 - active
            times = "many" if given_up == np.inf else f"{given_up / expected:.2g}"
            found.append(
                f"{self.solver(active).name} after {visits / problem.epoch_size:.3g} epochs, at a relative "
                f"gap of {gap:.2g}: {before} was expected to take {times} times as long"
            )
        return found

    def _decide(self, problem: Problem, state: State, news: Evaluation) -> State:
        """The state after an evaluation: with another method at work if that is expected to be clearly
        cheaper.
        """
        primal, dual = min(state.primal, news.primal), max(state.dual, news.dual)
        gap = (primal - dual) / dual if dual > 0.0 else np.inf
        state = state._replace(primal=primal, dual=dual)
        if not 0.0 < state.tol < gap:
            return state
        forecast = Forecast.of(problem)
        work = forecast.work(self.active(state).name, state.inner.counts, state.ledger.costs.size + 1)
        state = state._replace(ledger=state.ledger.after(work, gap))
        few = forecast.margins and separated(problem, news)
        own = self._own(forecast, state, gap, few)
        other = self._other(forecast, state, gap, few)
        margin = MARGIN_BACK if state.changes.visits.size else MARGIN
        if own <= margin * other or own - other <= LEAST_SAVED:
            return state
        trial = TRIAL_SHOWN if forecast.shows_at_once and state.active == 0 else TRIAL
        if work < max(trial * other, GROWTH * state.spent):
            return state
        return self._changed(problem, state, gap, own, other)

    def _own(self, forecast: Forecast, state: State, gap: float, few: bool) -> float:
        """The work that the method at work has still to do."""
        if state.active == 0:
            costs, gaps, tol = *state.ledger, state.tol
            if costs.size == 1 and forecast.shows_at_once:
                return at_first_sight(float(costs[0]), gap, tol)
            return remaining(costs, gaps, tol)
        spent = float(state.ledger.costs[-1])
        expected = forecast.prior(self.second.name, float(state.ledger.gaps[0]), state.tol)
        left, done = np.log(gap / state.tol), np.log(float(state.ledger.gaps[0]) / gap)
        as_seen = float(spent * min(1.0, left / done)) if done > 0.0 else spent  # as long again at the most
        doubted = spent >= (1.0 if few else PATIENCE) * expected
        return as_seen if doubted else min(max(expected - spent, 0.0), as_seen)

    def _other(self, forecast: Forecast, state: State, gap: float, few: bool) -> float:
        """The work that the other one would have to do."""
        if state.active == 1 and state.given_up > 0.0:
            return state.given_up
        name = self.solver(1 - state.active).name
        return forecast.prior(name, gap, state.tol, few)

    def _changed(self, problem: Problem, state: State, gap: float, own: float, other: float) -> State:
        """The other method, from where this one is, if that is anywhere: Newton's method takes more steps
        from coordinates that were far off than from 0 (12 for 7, arcene with the logistic loss).
        """
        point = self.point(problem, state) if state.active == 1 or gap < FAR else None
        active = 1 - state.active
        solver = self.solver(active)
        inner = solver.set_target(solver.start(problem, point), state.tol)
        return state._replace(
            active=active,
            inner=inner,
            before=state.counts,
            ledger=NO_LEDGER,
            changes=state.changes.after(float(state.counts.visits), gap, own, other),
            spent=state.spent + float(state.ledger.costs[-1]),
            given_up=own if state.active == 0 else state.given_up,
        )


def separated(problem: Problem, news: Evaluation) -> bool:
    """Whether all rows of positive weight are on the right side, of two classes."""
    y, weight = problem.source.y, problem.source.weight
    scores = news.scores + y.imag if np.iscomplexobj(y) else news.scores  # y + i o where rows have offsets
    return not ((y.real * scores <= 0.0) & (weight > 0.0)).any()


class _Opened:
    """The steps of a run, with what the method at work has open."""

    def __init__(self, switching: Switching, problem: Problem, stack: ExitStack) -> None:
        self._switching, self._problem, self._stack = switching, problem, stack
        self._active = -1
        self._steps: Steps[Any] | None = None

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """As `Switching.step`."""
        return self._switching.step_with(self._open, problem, state, budget, news)

    def _open(self, state: State) -> Any:
        if self._active != state.active:
            self._stack.close()
            solver = self._switching.active(state)
            self._steps = self._stack.enter_context(solver.opened(self._problem, state.inner))
            self._active = state.active
        return self._steps
