"""An interior point method: few steps, whatever the scale of the columns.

    phi(s) = sum over ramps of  max over low <= beta <= high of  beta (a - s) - bend/2 beta^2

is every loss that is made of lines and parabolas (one ramp, or two for the epsilon-insensitive ones). With
g_i = c_i / N, p and q >= 0 the multipliers of the upper and the lower bound, and Z = (X, lift) the rows
with a column for the bias, the optimum has

    ridge (w, b) = Z' g sum beta,   s - a + bend beta + p - q = 0,   p (high - beta) = q (beta - low) = 0.

Both products are led to 0 together (Mehrotra, SIAM J. Optim. 1992: a predictor, then a corrector of second
order with the same factors). A step solves ``(diag(ridge) + Z' diag(g sum 1/theta) Z) v = r`` with ``theta
= bend + p/(high - beta) + q/(beta - low)``, by a Cholesky factor of as many columns or rows as there are
fewer of (``direct.py``): ten to thirty steps of min(n, d)^2 max(n, d) operations. BLAS and LAPACK do all of
it, nothing is compiled. For support vector machines: Fine and Scheinberg, JMLR 2001; Ferris and Munson,
SIAM J. Optim. 2002.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.threads import blas_threads
from ...training.solver import Capabilities, Solver, Status, Steps
from ...training.states import state_class
from ...training.stopping import Reason
from .direct import Equations, Hessians, Move, Residual, cost, in_entries

TO_BOUNDARY = 0.99  # the part of the way to the nearest bound that a step may go
PASSES, PASSES_BY_ROWS = 4, 1  # of a step over the rows, besides an evaluation
NO_ROOM = 1e-20  # between a dual and a bound that it has met up to rounding; duals are of the order of 1


@state_class
class State(NamedTuple):
    """The point; beta, p and q have a row for each ramp of the loss."""

    w: Floats
    b: float
    beta: Floats
    p: Floats
    q: Floats
    counts: Counts = Counts()


class Direction(NamedTuple):
    """A step of all unknowns."""

    move: Move  # of (w, b)
    beta: Floats
    p: Floats
    q: Floats


def present(problem: Problem) -> Any:
    """The rows of positive weight: an index of all, or of some."""
    weight = problem.source.weight
    return slice(None) if weight.all() else np.flatnonzero(weight)


def hessians_of(problem: Problem) -> Hessians:
    """Those of the rows of positive weight."""
    weight = problem.source.weight
    return Hessians.of(problem, None if weight.all() else np.flatnonzero(weight))


class Box(NamedTuple):
    """The ramps of a loss, a row for each, and the weights g of the rows."""

    at: Floats
    low: Floats
    high: Floats
    bend: Floats
    floor: Floats  # low, and 0 where there is no bound
    ceiling: Floats
    g: Floats

    @classmethod
    def of(cls, problem: Problem) -> Box:
        """Those of the rows of positive weight."""
        chosen = present(problem)
        ramps = problem.loss.ramps(problem.source.y[chosen])
        at, low, high = (np.stack([ramp[k] for ramp in ramps]) for k in range(3))
        floor, ceiling = (np.where(np.isfinite(bound), bound, 0.0) for bound in (low, high))
        bend, g = np.array([[ramp.bend] for ramp in ramps]), problem.source.weight[chosen]
        return cls(at, low, high, bend, floor, ceiling, g / problem.total_weight)

    def products(self, p: Floats, q: Floats, beta: Floats) -> tuple[Floats, Floats]:
        """``p (high - beta)`` and ``q (beta - low)``; without a bound p and q are 0."""
        return p * (self.ceiling - beta), q * (beta - self.floor)


@dataclass(frozen=True)
class InteriorPoint(Solver[State]):
    """The predictor-corrector method."""

    name = "interior-point"
    summary = "an interior point method: few steps whatever the scales, for few rows or few columns"
    capabilities = Capabilities(
        losses=(
            "hinge",
            "smooth-hinge",
            "squared-hinge",
            "modified-huber",
            "squared",
            "huber",
            "absolute",
            "quantile",
            "epsilon-insensitive",
            "squared-epsilon-insensitive",
        ),
        biases=("none", "augmented", "exact"),
        evaluated_steps=True,
    )

    def check(self, problem: Problem, visits: float) -> None:
        """Factors of more than 20,000 rows or columns take too long, and gigabytes."""
        n, d = problem.source.n, problem.source.d
        if min(n, d) > 20_000:
            raise InputError(
                f"solver {self.name!r} factorises a matrix of min(rows, columns) = {min(n, d):,} rows, and "
                "takes 20,000 at most; take another solver"
            )

    def rows_per_iteration(self, problem: Problem) -> int:
        """All rows, three times."""
        return 3 * problem.epoch_size

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin in the middle: beta between its bounds, p and q of the size of a target. A warm start is of
        no use.
        """
        box, b = Box.of(problem), problem.bias.centre
        short = box.at - b
        typical = float(np.abs(short).mean()) or 1.0
        low, high = np.maximum(box.low, -typical), np.minimum(box.high, typical)
        beta = 0.5 * (np.minimum(low, high) + high)
        p = np.where(np.isfinite(box.high), np.maximum(short, 0.0) + typical, 0.0)
        q = np.where(np.isfinite(box.low), np.maximum(-short, 0.0) + typical, 0.0)
        return State(np.zeros(problem.source.d), b, beta, p, q)

    def opened(self, problem: Problem, state: State) -> AbstractContextManager[Steps[State]]:
        """With what is the same in every step: the rows as a matrix, and their inner products."""
        return self._opened(problem)

    @contextmanager
    def _opened(self, problem: Problem) -> Iterator[Steps[State]]:
        with blas_threads(problem.source.threads):
            yield _Opened(problem)

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """One step, whatever the budget."""
        return _Opened(problem).step(problem, state, budget, news)

    def point(self, problem: Problem, state: State) -> Point:
        """The point, with the sum of the ramps' duals for each row."""
        beta = np.zeros(problem.source.n)
        beta[present(problem)] = state.beta.sum(axis=0)
        return Point(state.w, state.b, beta)


class _Opened:
    """The steps of a run."""

    def __init__(self, problem: Problem) -> None:
        self.hessians, self.box = hessians_of(problem), Box.of(problem)

    @np.errstate(over="ignore", invalid="ignore")  # a step that is no number is noticed
    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """One step of the predictor-corrector method."""
        source, hessians = problem.source, self.hessians
        scores = hessians.scores(state.w, state.b) if news is None else news.scores[present(problem)]
        step = _Step.of(hessians, self.box, state, scores, problem.bias.centre)
        price = cost(source.n, source.nnz, source.d, hessians.sparse)
        passes = PASSES if source.d <= source.n else PASSES_BY_ROWS
        counts = Counts(
            state.counts.visits + 3 * problem.epoch_size,
            state.counts.updates + 1,
            state.counts.entries + passes * source.nnz + in_entries(price, hessians.sparse),
        )
        if step is None:
            reason = Reason("stalled", "the Hessian cannot be factorised any more; try another solver")
            return state._replace(counts=counts), Status("required", reason)
        predictor = step.towards(0.0, None)
        now, far = step.product(0.0, predictor), step.reach(predictor)
        centring = (step.product(far, predictor) / now) ** 3 if now > 0.0 else 0.0
        v = step.towards(centring * now, predictor)
        length = min(1.0, TO_BOUNDARY * step.reach(v))
        place = v.move.place()
        if not all(np.isfinite(part).all() for part in (place, v.beta, v.p, v.q)):  # rounding has won
            reason = Reason("stalled", "steps are no numbers any more; rescale X or take a smaller C")
            return state._replace(counts=counts), Status("required", reason)
        state = State(
            state.w + length * place[:-1],
            state.b + length * float(place[-1]),
            state.beta + length * v.beta,
            state.p + length * v.p,
            state.q + length * v.q,
            counts,
        )
        ended = (
            None if length > 1e-10 else Reason("stalled", "steps have become too short; try another solver")
        )
        return state, Status("required", ended)


def _room(box: Box, state: State) -> tuple[Floats, Floats]:
    """How far duals are from their bounds: never 0, though rounding may have it so."""
    return np.maximum(box.high - state.beta, NO_ROOM), np.maximum(state.beta - box.low, NO_ROOM)


class _Step(NamedTuple):
    """The linear equations of one step."""

    state: State
    solve: Equations
    box: Box
    theta: Floats
    margin: Floats  # s - a + bend beta + p - q
    residual: Residual  # Z' g sum beta - ridge (w, b)

    @classmethod
    def of(cls, hessians: Hessians, box: Box, state: State, scores: Floats, centre: float) -> _Step | None:
        """The equations at a state; None where they cannot be solved."""
        up, down = _room(box, state)
        theta = box.bend + state.p / up + state.q / down
        margin = scores - box.at + box.bend * state.beta + state.p - state.q
        solve = hessians.equations(box.g * (1.0 / theta).sum(axis=0))
        if solve is None:
            return None
        away = np.append(state.w, state.b - centre)
        residual = Residual(box.g * state.beta.sum(axis=0), away, scores - hessians.lift * centre)
        return cls(state, solve, box, theta, margin, residual)

    def towards(self, target: float, first: Direction | None) -> Direction:
        """The step to products of ``target``; ``first`` is the predictor, whose products of second order
        count.
        """
        state, box = self.state, self.box
        up, down = _room(box, state)
        above, below = (target - now for now in box.products(state.p, state.q, state.beta))
        if first is not None:
            above, below = above + first.p * first.beta, below - first.q * first.beta
        rho = -self.margin - above / up + below / down
        mean = (rho / self.theta).sum(axis=0) / (1.0 / self.theta).sum(axis=0)
        move = self.solve(mean, self.residual)
        beta = (rho - move.scores) / self.theta
        return Direction(move, beta, (above + state.p * beta) / up, (below - state.q * beta) / down)

    def product(self, far: float, v: Direction) -> float:
        """The mean of p (high - beta) and q (beta - low) so far along a direction."""
        state = self.state
        above, below = self.box.products(state.p + far * v.p, state.q + far * v.q, state.beta + far * v.beta)
        return float(0.5 * (above + below).mean())

    def reach(self, v: Direction) -> float:
        """How far along a direction the first bound is met, 1 at most."""
        state = self.state
        up, down = _room(self.box, state)
        pairs = ((state.p, v.p), (state.q, v.q), (up, -v.beta), (down, v.beta))
        found = 1.0
        for at, move in pairs:
            falls = (move < 0.0) & np.isfinite(at)
            found = min(found, float(np.min(-at[falls] / move[falls], initial=1.0)))
        return found
