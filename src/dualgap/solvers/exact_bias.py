"""A bias that is not regularised, for any solver that can move its bias: the proximal point method on b.

    minimise P(w, b)  over w and b,  with no penalty on b

by solving, one after the other, the problems with the penalty ``mu/2 (b - centre)^2``, each centred at the
bias that the one before ended with (Rockafellar, SIAM J. Control Optim. 1976). On the dual side that is the
method of multipliers for the constraint ``z = 1/N sum c beta = 0``: the inner problem has ``b(beta) = centre
+ z / mu``, and moving the centre to it adds ``z / mu`` to b once more. The inner solver keeps its duals, and
the centre moves after every epoch of visits: waiting until an inner problem is solved takes longer.

How strong the penalty is: ``mu = lam / (SHARE mean |x|^2)``, as if the bias were a feature with a small part
of a row's norm. Measured on a9a, w8a and wikitox-bow at C = 1: shares of 0.01 to 0.1 need about equally many
epochs, 1 needs 1.5 times and 10 over 4 times as many. Where lam is large that would hold b too firmly, as z =
1/N sum c beta is at most of the size of a slope of the loss: mu is at most STRONGEST times the loss of the
all-zero model over mean y^2, a slope over a score. (At C = 1e-4 on iris that turns thousands of epochs into a
handful. Letting mu adapt to the fall of z, as is often done, ran away.)

Where C is small, b still has far to go when the rest is solved, and z falls by a tenth in an epoch: the
centre then moves further, to where the secant of z vanishes. (a9a, C = 0.01, to 1e-3: 4.5 epochs for 9.1;
mushrooms 5.4 for 18; hardly a difference at C = 1.) And as long as z alone keeps the gap above the one asked
for, the inner solver is asked for none: its own gap says nothing of that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core.bias import Centred
from ..core.problem import Evaluation, Point, Problem
from ..runtime.arrays import Floats
from ..runtime.counts import Counts
from ..training.solver import AnySolver, Capabilities, Solver, Status, Steps
from ..training.states import Extent, Fixed, Magnitude, NotNegative, invariant, state_class
from ..training.stopping import BROKEN

SHARE = 0.03
STRONGEST = 0.1
FURTHEST = 8.0  # times the way from the centre to the bias, that the centre moves at most


def centred(problem: Problem, centre: float, mu: float) -> Problem:
    """The problem with its bias held at the centre."""
    return problem.with_bias(Centred(centre, mu))


def prox_strength(problem: Problem) -> float:
    """How firmly it is held: mu."""
    square = problem.mean_square
    target = problem.mean(np.square(np.abs(problem.source.y)))
    strongest = (
        STRONGEST * problem.value_at_zero / target if target > 0.0 and problem.value_at_zero > 0.0 else np.inf
    )
    return min(problem.lam / (SHARE * square if square > 0.0 else 1.0), strongest)


def unbalanced(problem: Problem, z: float) -> float:
    """About the part of the gap that is left while ``z = 1/N sum c beta`` is not 0, however good the duals
    are for the centred problem.

    Duals are made feasible by scaling those of one sign down. To first order that costs nothing, as b is the
    multiplier of z; to second order lam/2 |w|^2 of the change, which is at most that of rows that all point
    the same way.
    """
    return z * z * problem.mean_square / (2.0 * problem.lam)


@state_class
class State(NamedTuple):
    """The inner solver's state, and the centre of its bias."""

    inner: Any
    centre: float
    mu: Fixed
    moved: int  # visits when the centre last moved
    tol: NotNegative = 0.0  # the relative gap asked for; 0: none
    way: float = 0.0  # z / mu when the centre last moved
    step: float = 0.0  # how far it moved then
    slope: Magnitude = np.inf  # how much smaller z / mu had become by then, for each unit of the move before

    @property
    def counts(self) -> Counts:
        """Those of the inner solver."""
        counts: Counts = self.inner.counts
        return counts


@invariant(State)
def _check(state: State, extent: Extent) -> Iterator[tuple[bool, str]]:
    yield state.moved <= state.counts.visits, "moved is beyond the visits made"


@dataclass(frozen=True)
class ExactBiasSolver(Solver[State]):
    """A solver for problems with a free bias, made of one for problems with a centred bias.

    It has no options and no name of its own: how the bias is found is no choice of the user's.
    """

    inner: AnySolver

    name = "exact bias"  # never seen: an instance has the inner solver's
    summary = "the proximal point method on the bias"
    capabilities = Capabilities(biases=("exact",))

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.inner.name)
        object.__setattr__(self, "summary", self.inner.summary)
        object.__setattr__(self, "capabilities", self.inner.capabilities._replace(biases=("exact",)))

    @property
    def identity(self) -> str:
        """The inner solver's."""
        return self.inner.identity

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at the bias of the warm start, or at 0."""
        centre, mu = 0.0 if warm is None else float(warm.b), prox_strength(problem)
        return State(self.inner.start(centred(problem, centre, mu), warm), centre, mu, 0)

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Let the inner solver work, and move the centre when it is time to, until the inner solver has
        something to say. Nothing in between is for the caller to act on, and on small data going back to it
        each time costs more than the work.
        """
        return self._step(self.inner, problem, state, budget, news)

    def _step(
        self, steps: Steps[Any], problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        stop = state.counts.visits + budget
        if news is not None:  # its w(beta) is that of a scaled beta, and of no use
            held = centred(problem, state.centre, state.mu)
            inner = self.inner.recompute_primal(held, state.inner)
            state = state._replace(inner=self.inner.take_news(held, inner, news))
        while True:
            before = state.counts.visits
            end = state.moved + problem.epoch_size * self.inner.epochs_per_centre
            held = centred(problem, state.centre, state.mu)
            inner, status = steps.step(held, state.inner, min(stop, end) - before, None)
            state = state._replace(inner=inner)
            broken = status.ended is not None and status.ended.name == BROKEN
            if broken or (state.counts.visits < end and status.ended is None):
                return state, status
            state = self._moved(problem, state)
            if status != Status() or not before < state.counts.visits < stop:
                return state, status._replace(ended=None)

    def _moved(self, problem: Problem, state: State) -> State:
        """The centre moves to the bias, and further where the last moves have hardly made z smaller.

        z falls as the centre moves, by ``slope`` times mu for each unit; the secant through its last two
        values tells where it vanishes. The steeper of the last two slopes counts: z is known roughly. Where
        an epoch does not bring the inner problem near its end, z is noise, and so is a secant (`asdca` with
        the absolute loss: 4.6% left after 10,000 epochs); so solvers that cannot tell their gap have none.
        """
        inner, b = self.inner.shift_bias(state.inner, state.centre)
        way, slope, further = b - state.centre, np.inf, 0.0  # way: z / mu
        exact = self.inner.capabilities.estimates_gap
        if exact and state.step != 0.0 and (state.way - way) / state.step > 0.0:
            slope = (state.way - way) / state.step
            further = way * (min(max(1.0 / max(slope, state.slope), 1.0), FURTHEST) - 1.0)
        if further != 0.0:
            inner, _ = self.inner.shift_bias(inner, b + way - further)
        far = unbalanced(problem, state.mu * way) > state.tol * problem.value_at_zero
        inner = self.inner.set_target(inner, 0.0 if far else state.tol)
        visits = state.counts.visits
        return State(inner, b + further, state.mu, visits, state.tol, way, way + further, slope)

    def point(self, problem: Problem, state: State) -> Point:
        """The inner solver's point."""
        return self.inner.point(problem, state.inner)

    def check(self, problem: Problem, visits: float) -> None:
        """The inner solver's options may not suit the data."""
        self.inner.check(centred(problem, 0.0, prox_strength(problem)), visits)

    def plan(self, problem: Problem, tol: float) -> list[str]:
        """The theory of the inner solvers has a regularised bias or none."""
        return [
            "bias=exact: a sequence of problems with a regularised bias; no bound on the number of steps is "
            "known"
        ]

    def resolved(self, problem: Problem) -> AnySolver:
        """With the inner solver's choice."""
        return ExactBiasSolver(self.inner.resolved(problem))

    def at_work(self, state: State | None) -> AnySolver:
        """The inner solver: how the bias is found is nothing that a user has chosen."""
        return self.inner.at_work(None if state is None else state.inner)

    def fresh_like(self, problem: Problem, state: Any) -> State:
        """With a first state of the inner solver's."""
        fresh = self.start(problem, None)
        if not isinstance(state, State):
            return fresh
        return fresh._replace(inner=self.inner.fresh_like(centred(problem, 0.0, fresh.mu), state.inner))

    def story(self, problem: Problem, state: State) -> list[str]:
        """The inner solver's."""
        return self.inner.story(problem, state.inner)

    def set_target(self, state: State, tol: float) -> State:
        """The inner solver's gap is about that of the whole problem, once the bias has settled."""
        return state._replace(inner=self.inner.set_target(state.inner, tol), tol=tol)

    def opened(self, problem: Problem, state: State) -> AbstractContextManager[Steps[State]]:
        """With what the inner solver has open."""
        return self._opened(problem, state)

    @contextmanager
    def _opened(self, problem: Problem, state: State) -> Iterator[Steps[State]]:
        held = centred(problem, state.centre, state.mu)
        with self.inner.opened(held, state.inner) as steps:
            yield _Opened(self, steps)

    def rows_per_iteration(self, problem: Problem) -> int:
        """The inner solver's."""
        return self.inner.rows_per_iteration(centred(problem, 0.0, prox_strength(problem)))

    @property
    def dual_sweeps(self) -> int:
        """The inner solver's."""
        return self.inner.dual_sweeps

    def improve_dual(self, problem: Problem, beta: Floats, b: float, visits: int) -> Floats | None:
        """The inner solver's."""
        return self.inner.improve_dual(problem, beta, b, visits)


@dataclass(frozen=True)
class _Opened:
    """The steps of a solver whose inner solver has threads or files open."""

    solver: ExactBiasSolver
    steps: Steps[Any]

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """As `ExactBiasSolver.step`."""
        return self.solver._step(self.steps, problem, state, budget, news)
