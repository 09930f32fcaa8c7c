"""Newton's method with conjugate gradients: few passes over the data, each worth a lot.

    minimise  P(w, b) = lam/2 |w|^2 + r(b) + 1/N sum_i c_i phi(<w, x_i> + b, y_i)

With beta_i = -phi'(score_i) the gradient is lam (w - w(beta)), and P(w) - D(beta) = |gradient|^2 / (2 lam).
So the evaluation of a point brings the gradient there, and a step begins with what the evaluation of the one
before found. It solves H v = -gradient (``quadratic.py``) until the gap that the residual promises is a
hundredth of the present one, and goes along v to where P hardly falls any more: scores are linear, so this
search needs no pass. A free bias is fitted anew after every step, from the scores alone, so that the duals
satisfy its constraint.

A loss with a kink is smoothed about the present duals, ``phi_gamma* = phi* + gamma/2 (beta - centre)^2``: the
proximal point method on the dual, or the method of multipliers (Rockafellar, SIAM J. Control Optim. 1976;
with Newton inside it is that of Li, Sun and Toh, SIAM J. Optim. 2018). Its slope is a dual step that every
loss has, and it is curved only where the dual lies between its bounds, so products read few rows. Once the
distance to the optimum of the smoothed problem is a small part of the gap, the centre moves to the duals, and
gamma falls.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.threads import blas_threads
from ...training.solver import Capabilities, Solver, Status, Steps
from ...training.states import Natural, state_class
from ..dual.start import dual_start
from .direct import Hessians
from .quadratic import SAMPLE, Quadratic, with_bias
from .smoothed_losses import (
    Direction,
    Smoothing,
    changed_entries,
    duals,
    fitted_bias,
    left_by_smoothing,
    line_search,
    typical_target,
)

FIRST_GAMMA = 4.0  # in units of a typical target
GAMMA_FALL = 0.5  # factor of gamma when the centre moves
NEAR = 3.0  # it does where the distance to the smoothed optimum is this part of what the smoothing leaves
MAX_PRODUCTS = 2  # of a step, beyond which the next sample is twice as large, and factors may cost more
MANY_PRODUCTS = 16  # of a step, beyond which these may be as many times as large as products were too many
MOST_SAMPLE = 2**30
LARGE = 64  # columns from which on BLAS makes use of threads


@state_class
class State(NamedTuple):
    """The point, and its scores."""

    w: Floats
    b: float
    scores: Floats
    smoothing: Smoothing
    sample: Natural = SAMPLE  # rows of the next sample for each column
    counts: Counts = Counts()
    tol: float = 0.0  # the relative gap asked for; 0: none

    @property
    def place(self) -> Floats:
        """w and b as one vector."""
        return with_bias(self.w, self.b)


class Gradient(NamedTuple):
    """The place of a step's beginning, and w(beta), b(beta) there: their difference is the gradient."""

    place: Floats
    of_dual: Floats
    scores: Floats
    value: float  # P
    smoothing: Smoothing
    entries: int  # read to find it


@dataclass(frozen=True)
class Newton(Solver[State]):
    """Truncated Newton with conjugate gradients."""

    name = "newton"
    summary = (
        "Newton's method with conjugate gradients, kinks smoothed: few passes, for many rows of few columns"
    )
    capabilities = Capabilities(biases=("none", "augmented", "exact"), evaluated_steps=True)

    def rows_per_iteration(self, problem: Problem) -> int:
        """As many as conjugate gradients need."""
        return 0

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at w = 0, or at the warm start."""
        n, d = problem.source.n, problem.source.d
        smoothing = Smoothing(0.0, np.zeros(0))
        if not np.isfinite(problem.loss.smoothness):
            smoothing = Smoothing(FIRST_GAMMA * typical_target(problem), dual_start(problem, warm)[2])
        if warm is None:
            w, b = np.zeros(d), problem.bias.centre
            scores = np.full(n, b)
        else:
            w = np.array(warm.w, dtype=np.float64)
            b = float(warm.b) if problem.bias.strength(problem.lam) < np.inf else 0.0
            scores = problem.evaluate(Point(w, b, None)).scores
        shift = fitted_bias(problem, smoothing, scores)
        return State(w, b + shift, scores + shift, smoothing)

    def set_target(self, state: State, tol: float) -> State:
        """Take no more products than a relative gap of ``tol`` needs, where that is known beforehand."""
        return state._replace(tol=tol)

    def opened(self, problem: Problem, state: State) -> AbstractContextManager[Steps[State]]:
        """With BLAS on as many threads as the rows are read by."""
        return self._opened(problem)

    @contextmanager
    def _opened(self, problem: Problem) -> Iterator[Steps[State]]:
        with blas_threads(problem.source.threads) if problem.source.d >= LARGE else nullcontext():
            yield _Opened(self, Hessians.of(problem))

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """One step of Newton's method, whatever the budget."""
        return self.step_with(Hessians.of(problem), problem, state, news)

    def step_with(
        self, hessians: Hessians, problem: Problem, state: State, news: Evaluation | None
    ) -> tuple[State, Status]:
        """The same with what factorises, which keeps what is the same in every step."""
        found = _gradient(problem, state, news)
        place, of_dual, scores, value, smoothing, entries = found
        quadratic = Quadratic(problem, smoothing, scores, state.sample, hessians)
        gradient = quadratic.ridge * (place - of_dual)  # 0 for a free bias, which is fitted
        v, along = quadratic.minimise(gradient, value, state.tol)
        pull = quadratic.ridge * v
        drift = float(pull @ place) - float(pull[-1]) * problem.bias.centre
        direction = Direction(along, float(gradient @ v), drift, float(pull @ v))
        step = line_search(problem, smoothing, scores, direction)
        along *= step
        along += scores
        scores = along
        shift = fitted_bias(problem, smoothing, scores)
        scores += shift
        place += step * v
        state = State(
            w=place[:-1],
            b=float(place[-1]) + shift,
            scores=scores,
            smoothing=smoothing,
            sample=min(state.sample * _growth(quadratic.products), MOST_SAMPLE),
            counts=Counts(
                state.counts.visits + quadratic.visits + problem.epoch_size,
                state.counts.updates + 1,
                state.counts.entries + quadratic.entries + entries,
            ),
            tol=state.tol,
        )
        return state, Status("required")

    def point(self, problem: Problem, state: State) -> Point:
        """The point, and the duals that its scores ask for."""
        return Point(state.w, state.b, duals(problem, state.smoothing, state.scores))


def _growth(products: int) -> int:
    """The factor of the next sample, after a step of so many products."""
    if products <= MAX_PRODUCTS:
        return 1
    return 2 if products <= MANY_PRODUCTS else products // MAX_PRODUCTS


@dataclass(frozen=True)
class _Opened:
    """The steps of a run, with what is the same in each."""

    solver: Newton
    hessians: Hessians

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """As `Newton.step`."""
        return self.solver.step_with(self.hessians, problem, state, news)


def _gradient(problem: Problem, state: State, news: Evaluation | None) -> Gradient:
    """The gradient at the present point, from its evaluation if there is one.

    Where the smoothed problem is solved well enough, its centre moves to the duals and gamma falls: the duals
    are then others, and the gradient with them.
    """
    smoothing, centre = state.smoothing, problem.bias.centre
    place, kinks = state.place, smoothing.gamma > 0.0
    beta = duals(problem, smoothing, state.scores) if news is None or kinks else np.zeros(0)
    if news is None:
        scores, entries, value = state.scores, problem.source.nnz, problem.value_at_zero
        of_dual = with_bias(*problem.model_of(beta, state.b))
    else:
        scores, entries, value = news.scores, 0, news.primal
        of_dual = with_bias(news.w_of_dual, news.b)
    if kinks and _is_near(problem, place - of_dual, scores, beta):
        smoothing = Smoothing(GAMMA_FALL * smoothing.gamma, beta)
        shift = fitted_bias(problem, smoothing, scores)
        place[-1] += shift
        scores = scores + shift if shift != 0.0 else scores
        change = duals(problem, smoothing, scores)
        change -= beta
        w_move, b_move = problem.model_of(change, centre)
        of_dual = with_bias(of_dual[:-1] + w_move, of_dual[-1] + b_move - centre)
        entries += changed_entries(problem, change)
    return Gradient(place, of_dual, scores, value, smoothing, entries)


def _is_near(problem: Problem, away: Floats, scores: Floats, beta: Floats) -> bool:
    """Whether the smoothed problem is solved well enough: what is left is the smoothing's part of the gap.

    ``away`` is the distance of (w, b) to (w, b)(beta).
    """
    strength = problem.bias.strength(problem.lam)
    left = problem.lam * float(away[:-1] @ away[:-1])
    left += strength * float(away[-1]) ** 2 if 0.0 < strength < np.inf else 0.0
    return 0.5 * left <= NEAR * left_by_smoothing(problem, scores, beta)
