"""Dual ascent for joint problems, one row and all its K duals at a time.

    pick a row i;   p <- argmax over the simplex of -phi*(p - e_y) + <s_i, p> - q_i/2 |p - p_i|^2,
    q_i = c_i (scale |x_i|^2 + bias_rate);   beta_i <- e_y - p;   W <- W + scale c_i x_i (change of beta_i)^T

For Crammer-Singer the step is a projection onto the simplex (Crammer and Singer, JMLR 2001; Keerthi et al.,
KDD 2008; LIBLINEAR's -s 4 has the same in coordinates), for the multinomial loss a root of one variable. An
epoch visits the active rows in a fresh permutation; `active` says which are, and which of their classes.

A bias that is not regularised is found as in `solvers.exact_bias`: by the penalty ``mu/2 |b - centre|^2``,
whose centre moves to b(beta) = centre + z / mu after every epoch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...core.geometry import DualGeometry
from ...core.joint.problem import JointProblem
from ...core.problem import Evaluation, Point
from ...data.rows import Dense
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.options import option
from ...training.solver import Capabilities, Solver, Status
from ...training.states import Extent, Fixed, invariant, state_class
from ...training.stopping import Reason
from ..exact_bias import SHARE, STRONGEST
from .active import Sweeps
from .sweeps import Work, sweep


@state_class
class State(NamedTuple):
    """W = W(beta), and b = centre + z / mu where the bias is free, b = b(beta) elsewhere. W is (d, K), or for
    dense rows (K, d).
    """

    w: Floats
    b: Floats
    beta: Floats
    centre: Floats
    mu: Fixed  # of a free bias; 0 elsewhere
    moved: int  # visits when the centre last moved
    sweeps: Sweeps

    @property
    def counts(self) -> Counts:
        """Work done so far."""
        return self.sweeps.cursor.counts


@invariant(State)
def _check(state: State, extent: Extent) -> Iterator[tuple[bool, str]]:
    yield state.moved <= state.counts.visits, "moved is beyond the visits made"


@dataclass(frozen=True)
class JointDual(Solver[State]):
    """Dual ascent over rows, all classes of a row at once."""

    seed: int = option(0, "seed of the random order")

    name = "joint-dual"
    summary = "dual ascent for K classes at once: all duals of a row in one step, with shrinking"
    capabilities = Capabilities(
        losses=("multinomial", "crammer-singer"), biases=("none", "augmented", "exact"), estimates_gap=True
    )

    def start(self, problem: JointProblem, warm: Point | None) -> State:
        """Begin at beta = 0, or at the dual point and the intercepts of a warm start."""
        source, K = problem.source, problem.classes
        w, b, beta = np.zeros((source.d, K)), np.zeros(K), np.zeros((source.n, K))
        centre = np.zeros(K) if warm is None or not problem.bias.free else np.array(warm.b, dtype=np.float64)
        if warm is not None and warm.beta is not None:
            found = problem.evaluate(Point(w, b, warm.beta))
            if math.isfinite(found.dual):
                w, beta = found.w_of_dual, np.array(problem.feasible(warm.beta), dtype=np.float64)
                b = np.array(found.b)
        if problem.bias.free:
            b = centre.copy()
        sweeps = Sweeps.of(source.weight, K, self.seed)
        w = np.ascontiguousarray(w.T) if _by_class(problem) else w
        return State(w, b, beta, centre, _prox_strength(problem), 0, sweeps)

    def set_target(self, state: State, tol: float) -> State:
        """Ask for an evaluation where a relative gap of ``tol`` seems to be reached."""
        estimate = state.sweeps.cursor.estimate._replace(tol=tol)
        return state._replace(sweeps=state.sweeps.at(estimate=estimate))

    def step(
        self, problem: JointProblem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Visit rows until the budget is spent or those that are active are as good as solved; the centre of
        a free bias moves after every epoch.
        """
        free, source = problem.bias.free, problem.source
        sweeps = state.sweeps
        if news is not None:
            if not free:  # under a free bias its w(beta) is that of another beta
                state.w[...] = news.w_of_dual.T if _by_class(problem) else news.w_of_dual
                state.b[...] = news.b
            sweeps = sweeps.informed(source.y, problem.loss, state.beta, problem.total_weight, news)
            if sweeps.cursor.active == 0 and not free:
                ended = Reason("optimal", "no row can be improved any further in float64")
                return state._replace(sweeps=sweeps), Status("no", ended)
        elif sweeps.cursor.solved:  # nobody looked at the others
            sweeps = sweeps.reopened()
        state = state._replace(sweeps=sweeps)
        rate = 1.0 / (state.mu * problem.total_weight) if free else problem.bias_rate
        geometry = DualGeometry(problem.scale, 0.0, rate)
        stop, work = state.counts.visits + budget, Work.of(problem.classes, _by_class(problem))
        while True:
            cursor = sweep(source.batch, problem.loss, geometry, state, work, stop, free)
            state = state._replace(sweeps=state.sweeps._replace(cursor=cursor))
            if free:
                state = _centred(state)
            if free and cursor.active == cursor.shrunk:
                state = state._replace(sweeps=state.sweeps.reopened())
            elif cursor.solved or (cursor.paused and not (free and _unbalanced(problem, state))):
                return state, Status("target_expected" if cursor.paused else "convenient")
            if state.counts.visits >= stop:
                return state, Status()

    def point(self, problem: JointProblem, state: State) -> Point:
        """W(beta), b and beta."""
        w = np.ascontiguousarray(state.w.T) if _by_class(problem) else state.w
        return Point(w, state.b, state.beta)


def _by_class(problem: JointProblem) -> bool:
    """Whether W is stored by classes; see `sweeps.Work`."""
    return isinstance(problem.source.batch.rows, Dense)


def _centred(state: State) -> State:
    """The centre of a free bias moves where an epoch has ended, and most active rows were in it."""
    cursor = state.sweeps.cursor
    if cursor.position >= 0 or 2 * (state.counts.visits - state.moved) < cursor.active - cursor.shrunk:
        return state
    way = state.b - state.centre
    state.centre[...] = state.b
    state.b[...] += way
    return state._replace(moved=state.counts.visits)


def _unbalanced(problem: JointProblem, state: State) -> bool:
    """Whether ``z = mu (b - centre)`` alone keeps the gap above the one asked for; see
    `exact_bias.unbalanced`.
    """
    estimate, z = state.sweeps.cursor.estimate, state.mu * (state.b - state.centre)
    left = float(z @ z) * problem.mean_square / (2.0 * problem.lam)
    return left * problem.total_weight > estimate.tol * estimate.dual


def _prox_strength(problem: JointProblem) -> float:
    """How firmly a free bias is held: mu, as in `exact_bias.prox_strength`; 0 for other kinds."""
    if not problem.bias.free:
        return 0.0
    square = problem.mean_square
    return min(problem.lam / (SHARE * square if square > 0.0 else 1.0), STRONGEST * problem.value_at_zero)
