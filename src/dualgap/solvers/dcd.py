"""Dual coordinate descent with shrinking, for every loss: the flagship.

    maximise  D(beta) = -1/N sum_i c_i phi*(-beta_i) - lam/2 |w(beta)|^2 + bias term

one coordinate at a time, exactly (Hsieh, Chang, Lin, Keerthi and Sundararajan, ICML 2008, Algorithm 1 and 3;
Shalev-Shwartz and Zhang, JMLR 2013). w = w(beta) and b = b(beta) are kept up to date, so a step costs the entries of
one row. An epoch visits the active rows in a fresh random order: cyclic order is hopeless, and shuffled blocks of
neighbouring rows cost 3 to 18 times the passes on real files, whose neighbours are alike.

Shrinking. A row that a visit finds at a bound or kink with its slopes pointing firmly there (left < 0 < right) leaves
the active rows at once. It comes back when a judgement, which computes the scores of all rows anyway, finds that it is
no longer optimal. So no visit is spent on asking the rows that have left how they are: on text that halves the work
against the rule of Hsieh et al., which brings all rows back every so often, and lets them go one epoch later. Only
where no judgement comes, and the slopes of the active rows have fallen far, all rows return for one visit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Floats, Words
from ..errors import InputError
from ..jit import kernel, prefetch
from ..problem import Judgement, Point, Problem
from ..random import generator, shuffle
from ..solve import Counts
from ..stopping import Reason
from .warm import dual_start

_FAR, _NEAR = 12, 5  # visits ahead at which a row's numbers, and then its entries, are fetched
_ENOUGH = 0.1  # part of their first range to which the slopes of active rows fall before the others are worth a look
_LONG = 0.001  # the same, where nobody looks


class Sweep(NamedTuple):
    """Where the solver stands, between rows of an epoch or between epochs."""

    b: float
    active: int  # the first so many rows of the order take part
    position: int  # the next one to visit; -1 before an epoch is shuffled
    high: float  # the largest PG of this epoch so far, or 0
    low: float  # the smallest, or 0
    span: float  # range of PG in the first epoch since rows came back
    paused: bool  # the active rows are as good as solved: the others are worth a look
    settled: bool  # a judgement found all rows within pg_tol
    epochs: int
    visits: int
    updates: int
    entries: int


class State(NamedTuple):
    """w = w(beta) at all times."""

    w: Floats
    beta: Floats
    order: Any  # uint32; rows of weight 0 are not in it
    rng: Words
    sweep: Sweep

    @property
    def counts(self) -> Counts:
        """What the loop wants to know."""
        return Counts(self.sweep.visits, self.sweep.updates, self.sweep.entries)

    @property
    def paused(self) -> bool:
        """A good moment to judge."""
        return self.sweep.paused


@dataclass(frozen=True)
class DCD:
    """Dual coordinate descent."""

    seed: int = field(default=0, metadata={"help": "seed of the random order"})
    shrinking: bool = field(default=True, metadata={"help": "leave rows out for a while that sit firmly at a bound"})
    pg_tol: float = field(
        default=0.0,
        metadata={"help": "also stop when the projected gradients of all rows range within this (0: never)"},
    )

    name = "dcd"
    meaning = "dual coordinate descent with shrinking: fast to any accuracy, for every loss"
    own_stops = ("pg_tol",)  # options that end a run by a rule of its own

    def __post_init__(self) -> None:
        if not (math.isfinite(self.pg_tol) and self.pg_tol >= 0):
            raise InputError(f"pg_tol={self.pg_tol!r} must be a finite number >= 0 (0 switches the rule off)")

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at beta = 0, or at the dual point of a warm start."""
        w, b, beta = dual_start(problem, warm)
        order = np.flatnonzero(problem.source.weight).astype(np.uint32)
        sweep = Sweep(b, order.size, -1, 0.0, 0.0, math.inf, False, False, 0, 0, 0, 0)
        return State(w, beta, order, generator(self.seed), sweep)

    def step(self, problem: Problem, state: State, budget: int, last: Judgement | None) -> State:
        """Visit rows until the budget is spent or all rows come back."""
        (block,) = problem.source.blocks()
        if last is not None:  # w(beta), computed anew: rounding errors do not pile up
            state.w[:] = last.w
            state = self.notice(problem, state._replace(sweep=state.sweep._replace(b=last.b)), last)
            if state.sweep.settled:
                return state
        sweep = _sweep(
            *block[:4],
            problem.loss,
            problem.scale,
            problem.bias_rate,
            *state[:4],
            state.sweep,
            self.shrinking,
            budget,
        )
        return state._replace(sweep=Sweep(*sweep))

    def notice(self, problem: Problem, state: State, last: Judgement) -> State:
        """Call back the rows that a judgement found wanting, and only those."""
        source = problem.source
        active, high, low = _recall(source.y, last.scores, problem.loss, state.beta, state.order)
        if not self.shrinking:
            active = state.order.size
        settled = high - low <= self.pg_tol
        return state._replace(
            sweep=state.sweep._replace(active=active, position=-1, span=math.inf, paused=False, settled=settled)
        )

    def point(self, problem: Problem, state: State) -> Point:
        """The pair w(beta), beta."""
        return Point(state.w, state.sweep.b, state.beta)

    def recentre(self, state: State, centre: float) -> tuple[State, float]:
        """The same duals under a bias whose centre moves to the present one."""
        b = state.sweep.b
        return state._replace(sweep=state.sweep._replace(b=2.0 * b - centre)), b

    def refresh(self, problem: Problem, state: State) -> State:
        """w(beta) computed anew, so that rounding errors do not pile up."""
        w, b = problem.model_of(state.beta, state.sweep.b)
        state.w[:] = w
        return state._replace(sweep=state.sweep._replace(b=b))

    def finished(self, state: State) -> Reason | None:
        """The optional rule on projected gradients; or nothing is left to do."""
        if not state.sweep.settled:
            return None
        if self.pg_tol == 0.0:
            return Reason("optimal", "no row can be improved any further in float64")
        return Reason("pg_tol", f"the projected gradients of all rows range within pg_tol={self.pg_tol:g}")


@kernel
def _sweep(
    rows: Any,
    y: Floats,
    weight: Floats,
    norms: Floats,
    loss: Any,
    scale: float,
    bias_rate: float,
    w: Floats,
    beta: Floats,
    order: Any,
    rng: Words,
    sweep: Sweep,
    shrinking: bool,
    budget: int,
) -> Sweep:
    """Epochs over the active rows, until ``budget`` rows are visited or the active rows are as good as solved.

    For row i with q = c_i (scale |x_i|^2 + bias_rate), the curvature of the dual along beta_i per unit of c_i/N:
        beta_i' = argmax -phi*(-beta') - s (beta' - beta_i) - q/2 (beta' - beta_i)^2,   s = <w, x_i> + b
        w += scale c_i (beta_i' - beta_i) x_i,    b += bias_rate c_i (beta_i' - beta_i)
    """
    b, active, position, high, low, span, already, settled, epochs, visits, updates, entries = sweep
    paused = False
    stop = visits + budget
    while visits < stop:
        if position < 0:
            position = 0
            shuffle(rng, order, active)
            high, low = 0.0, 0.0
        while position < active and visits < stop:
            if position + _FAR < active:
                ahead = order[position + _FAR]
                rows.announce(ahead)
                prefetch(beta, ahead)
                prefetch(y, ahead)
                prefetch(weight, ahead)
                prefetch(norms, ahead)
            if position + _NEAR < active:
                rows.prefetch(order[position + _NEAR])
            i = order[position]
            score = rows.dot(i, w) + b
            visits += 1
            entries += rows.count(i)
            left, right = loss.dual_slopes(y[i], score, beta[i])
            if shrinking and left < 0.0 < right:
                active -= 1
                order[position], order[active] = order[active], order[position]
                continue
            projected = right if right < 0.0 else (left if left > 0.0 else 0.0)
            high = max(high, projected)
            low = min(low, projected)
            if projected != 0.0:
                q = weight[i] * (scale * norms[i] + bias_rate)
                best = loss.best_dual(y[i], score, beta[i], q)
                move = weight[i] * (best - beta[i])
                if move != 0.0:
                    beta[i] = best
                    rows.add(i, scale * move, w)
                    b += bias_rate * move
                    updates += 1
                    entries += rows.count(i)
            position += 1
        if position < active:
            break
        position = -1
        epochs += 1
        if span == np.inf:
            span = high - low
        if high - low <= _LONG * span:  # an empty range, too
            active = order.shape[0]
            span = np.inf
            paused = True
            break
        if high - low <= _ENOUGH * span and not already:
            already = paused = True
            break
    return Sweep(b, active, position, high, low, span, paused, settled, epochs, visits, updates, entries)


@kernel
def _recall(y: Floats, scores: Floats, loss: Any, beta: Floats, order: Any) -> tuple[int, float, float]:
    """Move the rows that are not firmly at a bound or kink to the front; how many, and the range of all PG."""
    high, low = 0.0, 0.0
    active = 0
    for position in range(order.shape[0]):
        i = order[position]
        left, right = loss.dual_slopes(y[i], scores[i], beta[i])
        projected = right if right < 0.0 else (left if left > 0.0 else 0.0)
        high = max(high, projected)
        low = min(low, projected)
        if not left < 0.0 < right:
            order[position], order[active] = order[active], i
            active += 1
    return active, high, low
