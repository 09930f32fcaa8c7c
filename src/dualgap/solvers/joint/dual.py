"""Dual ascent for joint problems, one row and all its K duals at a time.

    pick a row i;   p <- argmax over the simplex of -phi*(p - e_y) + <s_i, p> - q_i/2 |p - p_i|^2,
    q_i = c_i (scale |x_i|^2 + bias_rate);   beta_i <- e_y - p;   W <- W + scale c_i x_i (change of beta_i)^T

For Crammer-Singer the step is a projection onto the simplex (Crammer and Singer, JMLR 2001; Keerthi et al.,
KDD 2008; LIBLINEAR's -s 4 has the same in coordinates), for the multinomial loss a root of one variable. An
epoch visits the rows in a fresh permutation.

A bias that is not regularised is found as in `solvers.exact_bias`: by the penalty ``mu/2 |b - centre|^2``,
whose centre moves to b(beta) = centre + z / mu after every epoch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core.geometry import DualGeometry
from ...core.joint.problem import JointProblem
from ...core.problem import Evaluation, Point
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.jit import kernel
from ...runtime.options import option
from ...runtime.random import shuffle
from ...training.solver import Capabilities, Solver, Status
from ...training.states import Extent, Fixed, Position, invariant, state_class
from ..exact_bias import SHARE, STRONGEST
from ..order import Order


@state_class
class Cursor(NamedTuple):
    """Where the visits stand."""

    position: Position = -1  # the next pick; -1 before an epoch is laid out
    counts: Counts = Counts()


@state_class
class State(NamedTuple):
    """W = W(beta), and b = centre + z / mu where the bias is free, b = b(beta) elsewhere."""

    w: Floats
    b: Floats
    beta: Floats
    centre: Floats
    mu: Fixed  # of a free bias; 0 elsewhere
    moved: int  # visits when the centre last moved
    order: Order
    cursor: Cursor

    @property
    def counts(self) -> Counts:
        """Work done so far."""
        return self.cursor.counts


@invariant(State)
def _check(state: State, extent: Extent) -> Iterator[tuple[bool, str]]:
    yield state.cursor.position <= state.order.picks.size, "cursor.position is beyond the picks"
    yield state.moved <= state.counts.visits, "moved is beyond the visits made"


@dataclass(frozen=True)
class JointDual(Solver[State]):
    """Dual ascent over rows, all classes of a row at once."""

    seed: int = option(0, "seed of the random order")

    name = "joint-dual"
    summary = "dual ascent for K classes at once: all duals of a row in one step"
    capabilities = Capabilities(
        losses=("multinomial", "crammer-singer"), biases=("none", "augmented", "exact")
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
        order = Order.of(source.batch, self.seed)
        return State(w, b, beta, centre, _prox_strength(problem), 0, order, Cursor())

    def step(
        self, problem: JointProblem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Make that many visits; the centre of a free bias moves after every epoch."""
        free = problem.bias.free
        if news is not None and not free:  # under a free bias its w(beta) is that of another beta
            state.w[...] = news.w_of_dual
            state.b[...] = news.b
        rate = 1.0 / (state.mu * problem.total_weight) if free else problem.bias_rate
        geometry = DualGeometry(problem.scale, 0.0, rate)
        batch, stop = problem.source.batch, state.counts.visits + budget
        work = np.empty((2, problem.classes))
        while state.counts.visits < stop:
            end = min(stop, state.moved + problem.epoch_size) if free else stop
            state = state._replace(cursor=ascend(batch, problem.loss, geometry, state, work, end))
            if free and end == state.moved + problem.epoch_size:
                way = state.b - state.centre
                state.centre[...] = state.b
                state.b[...] += way
                state = state._replace(moved=end)
        return state, Status()

    def point(self, problem: JointProblem, state: State) -> Point:
        """W(beta), b and beta."""
        return Point(state.w, state.b, state.beta)


def _prox_strength(problem: JointProblem) -> float:
    """How firmly a free bias is held: mu, as in `exact_bias.prox_strength`; 0 for other kinds."""
    if not problem.bias.free:
        return 0.0
    square = problem.mean_square
    return min(problem.lam / (SHARE * square if square > 0.0 else 1.0), STRONGEST * problem.value_at_zero)


@kernel
def ascend(batch: Any, loss: Any, geometry: Any, state: Any, work: Floats, stop: int) -> Cursor:
    """Steps up to visit number ``stop``; ``work`` has room for two rows of K numbers."""
    rows, y, weight, squared_norms = batch
    scale, _, bias_rate = geometry
    w, b, beta = state.w, state.b, state.beta
    _, picks, rng = state.order
    position = state.cursor.position
    now, updates, entries = state.cursor.counts
    scores, change = work[0], work[1]
    n, classes = picks.shape[0], b.shape[0]
    while now < stop:
        if position < 0 or position >= n:
            shuffle(rng, picks, n)
            position = 0
        i = picks[position]
        position += 1
        now += 1
        count, label, c = rows.count(i), int(y[i]), weight[i]
        entries += count * classes
        for k in range(classes):
            scores[k] = b[k]
        for e in range(count):
            j, x = rows.entry(i, e)
            for k in range(classes):
                scores[k] += x * w[j, k]
        loss.row_step(label, scores, beta[i], c * (scale * squared_norms[i] + bias_rate), change)
        mass, moved = 0.0, False
        for k in range(classes):
            if k != label:
                mass += change[k]
                move = -change[k] - beta[i, k]
                moved |= move != 0.0
                beta[i, k] = -change[k]
                change[k] = c * move
        change[label] = c * (mass - beta[i, label])
        beta[i, label] = mass
        if moved:
            updates += 1
            entries += count * classes
            for e in range(count):
                j, x = rows.entry(i, e)
                for k in range(classes):
                    w[j, k] += scale * x * change[k]
            for k in range(classes):
                b[k] += bias_rate * change[k]
    return Cursor(position, Counts(now, updates, entries))
