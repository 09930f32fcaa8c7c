"""Dual coordinate descent with shrinking, for every loss: the flagship.

    maximise  D(beta) = -1/N sum_i c_i phi*(-beta_i) - lam/2 |w(beta)|^2 + bias term

one coordinate at a time, exactly (Hsieh, Chang, Lin, Keerthi and Sundararajan, ICML 2008, Algorithm 1 and 3;
Shalev-Shwartz and Zhang, JMLR 2013). w = w(beta) and b = b(beta) are kept up to date, so a step costs the entries of
one row. An epoch visits the active rows in a fresh random order: cyclic order is hopeless, and shuffled blocks of
neighbouring rows cost 3 to 18 times the passes on real files, whose neighbours are alike.

Shrinking. With G the slope of the negated dual along a coordinate (left and right derivative where it has a kink),
PG its projection (0 where the row is optimal), M and m the largest and smallest PG of the epoch before: a row with
``right > M and left < m`` sits at a bound or kink so firmly that it is left out for now. At a simple bound that is the
rule of Hsieh et al.; the two-sided form serves the kink of the epsilon-insensitive loss too. Once the range M - m of
the active rows is below a threshold, all rows come back, and the threshold falls.
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
_FALL = 0.3  # factor of the threshold each time all rows come back


class Sweep(NamedTuple):
    """Where the solver stands, between rows of an epoch or between epochs."""

    b: float
    active: int  # the first so many rows of the order take part
    position: int  # the next one to visit; -1 before an epoch is shuffled
    high: float  # M of the epoch before
    low: float  # m of the epoch before
    new_high: float  # the same, of this epoch so far
    new_low: float
    threshold: float  # range of PG at which all rows come back
    paused: bool  # all rows have just come back
    settled: bool  # a full epoch had a range within pg_tol
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
        sweep = Sweep(b, order.size, -1, math.inf, -math.inf, -math.inf, math.inf, math.inf, False, False, 0, 0, 0, 0)
        return State(w, beta, order, generator(self.seed), sweep)

    def step(self, problem: Problem, state: State, budget: int, last: Judgement | None) -> State:
        """Visit rows until the budget is spent or all rows come back."""
        (block,) = problem.source.blocks()
        if last is not None:  # w(beta), computed anew: rounding errors do not pile up
            state.w[:] = last.w
            state = state._replace(sweep=state.sweep._replace(b=last.b))
        sweep = _sweep(
            *block[:4],
            problem.loss,
            problem.scale,
            problem.bias_rate,
            *state[:4],
            state.sweep,
            self.shrinking,
            self.pg_tol,
            budget,
        )
        return state._replace(sweep=Sweep(*sweep))

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
    pg_tol: float,
    budget: int,
) -> Sweep:
    """Epochs over the active rows, until ``budget`` rows are visited or the range of PG meets the threshold.

    For row i with q = c_i (scale |x_i|^2 + bias_rate), the curvature of the dual along beta_i per unit of c_i/N:
        beta_i' = argmax -phi*(-beta') - s (beta' - beta_i) - q/2 (beta' - beta_i)^2,   s = <w, x_i> + b
        w += scale c_i (beta_i' - beta_i) x_i,    b += bias_rate c_i (beta_i' - beta_i)
    """
    b, active, position, high, low, new_high, new_low, threshold, _, settled, epochs, visits, updates, entries = sweep
    paused = False
    stop = visits + budget
    while visits < stop:
        if position < 0:
            position = 0
            shuffle(rng, order, active)
            new_high, new_low = -np.inf, np.inf
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
            if shrinking and right > high and left < low:
                active -= 1
                order[position], order[active] = order[active], order[position]
                continue
            projected = right if right < 0.0 else (left if left > 0.0 else 0.0)
            new_high = max(new_high, projected)
            new_low = min(new_low, projected)
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
        span = new_high - new_low
        if threshold == np.inf and span < np.inf:
            threshold = _FALL * span
        high = new_high if new_high > 0.0 else np.inf
        low = new_low if new_low < 0.0 else -np.inf
        if span <= max(threshold, pg_tol) and threshold < np.inf:
            settled = active == order.shape[0] and span <= pg_tol
            paused = True
            active = order.shape[0]
            high, low = np.inf, -np.inf
            threshold *= _FALL
            break
    return Sweep(
        b, active, position, high, low, new_high, new_low, threshold, paused, settled, epochs, visits, updates, entries
    )
