"""Implicit updates: stochastic gradient descent with the gradient taken where the step ends, for every loss.

    w' = w - eta (lam w' + phi'(<w', x>, y) x),   so   w' = mu (w + eta a x),  mu = 1/(1 + eta lam),  a =
    -phi'(<w', x>)

Along x that is one equation for the new score p' = mu <w, x> + mu eta |x|^2 a: just the one that the dual
step of the loss solves from beta = 0 at the score mu <w, x> and the curvature mu eta |x|^2. For the hinge it
gives the three cases of the lecture: a = 0, a = y, and in between an a that puts the row exactly on its
margin. No step is too long: one that is infinitely long goes to the row's own optimum. Without shrinking (mu
= 1) and with eta = 1/(lam n), a first step on a row is the step of dual coordinate ascent.

eta is 1/(lam t), or constant. A weight multiplies its row's loss by c n/N.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats, Words
from ...runtime.jit import kernel, prefetch
from ...runtime.random import ORDERS, generator, lay_out
from ...runtime.counts import Counts
from ..dual.averaging import clipped
from .descent import RowByRow
from .options import constant_feature, not_negative

SMALLEST = 1e-9  # of s, before v takes it in
_FAR, _NEAR = 12, 5  # steps ahead at which a row's numbers, and then its entries, are fetched


class Walk(NamedTuple):
    """Where the solver stands; w = s v."""

    t: int
    position: int  # in the epoch; -1 before it is ordered
    s: float
    v_bias: float
    b: float  # a bias that is not regularised
    updates: int
    entries: int


class State(NamedTuple):
    """w = s v."""

    v: Floats
    slopes: Floats  # means of a, row by row; empty where no duals are kept
    looks: Any  # uint32: how many
    rows: Any  # uint32, of positive weight
    picks: Any  # uint32: the rows of an epoch
    rng: Words
    walk: Walk
    paused: bool = False

    @property
    def counts(self) -> Counts:
        """What the loop wants to know."""
        return Counts(self.walk.t, self.walk.updates, self.walk.entries)


@dataclass(frozen=True)
class Implicit(RowByRow):
    """Implicit updates."""

    eta: float = field(default=0.0, metadata={"help": "a constant step (0: 1/(lam t) in step t)"})
    shrinking: bool = field(
        default=True, metadata={"help": "regularise in every step (false: the losses alone)"}
    )

    name = "implicit"
    summary = "stochastic gradient descent with the gradient taken at the end of the step, for every loss"

    def __post_init__(self) -> None:
        super().__post_init__()
        not_negative(self, "eta")

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at w = 0, or at the model of a warm start."""
        n, d = problem.source.n, problem.source.d
        v, b = (np.zeros(d), 0.0) if warm is None else (np.array(warm.w, dtype=np.float64), float(warm.b))
        free = problem.bias.kind == "exact"
        rows = np.flatnonzero(problem.source.weight).astype(np.uint32)
        size = n if self.duals else 0
        walk = Walk(0, -1, 1.0, 0.0 if free else b, b if free else 0.0, 0, 0)
        slopes, looks = np.zeros(size), np.zeros(size, dtype=np.uint32)
        return State(v, slopes, looks, rows, rows.copy(), generator(self.seed), walk)

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """Make that many steps."""
        (part,) = problem.source.parts()
        walk = _go(
            *part.batch,
            problem.loss,
            problem.lam,
            problem.epoch_size / problem.total_weight,
            constant_feature(problem),
            self.bias_step if problem.bias.kind == "exact" else 0.0,
            state.v,
            state.slopes,
            state.looks,
            state.rows,
            state.picks,
            state.rng,
            state.walk,
            self.eta,
            self.shrinking,
            ORDERS.index(self.order),
            state.walk.t + budget,
        )
        return state._replace(walk=Walk(*walk))

    def point(self, problem: Problem, state: State) -> Point:
        """The last model, and the means of the slopes as a dual point."""
        walk = state.walk
        beta = clipped(problem, state.slopes) if self.duals else None
        return Point(walk.s * state.v, walk.s * walk.v_bias + walk.b, beta)


@kernel
def _go(
    rows: Any,
    y: Floats,
    weight: Floats,
    squared_norms: Floats,
    loss: Any,
    lam: float,
    ratio: float,
    constant: float,
    bias_step: float,
    v: Floats,
    slopes: Floats,
    looks: Any,
    present: Any,
    picks: Any,
    rng: Words,
    walk: Walk,
    constant_eta: float,
    shrinking: bool,
    order: int,
    stop: int,
) -> Walk:
    """Steps up to number ``stop``; orders are numbered as in ORDERS."""
    t, position, s, v_bias, b, updates, entries = walk
    n = picks.shape[0]
    kept = slopes.shape[0] > 0
    while t < stop:
        if position < 0 or position >= n:
            position = 0
            lay_out(rng, order, present, picks)
        if position + _FAR < n:
            ahead = picks[position + _FAR]
            rows.prefetch_offsets(ahead)
            prefetch(y, ahead)
            prefetch(weight, ahead)
            prefetch(squared_norms, ahead)
        if position + _NEAR < n:
            rows.prefetch_row(picks[position + _NEAR])
        i = picks[position]
        position += 1
        t += 1
        entries += rows.count(i)
        eta = constant_eta if constant_eta > 0.0 else 1.0 / (lam * t)
        mu = 1.0 / (1.0 + eta * lam) if shrinking else 1.0
        length = eta * ratio * weight[i]
        s *= mu
        score = s * (rows.dot(i, v) + v_bias) + b
        a = loss.dual_prox(y[i], score, 0.0, length * (mu * (squared_norms[i] + constant) + bias_step))
        if kept:
            looks[i] += np.uint32(1)
            slopes[i] += (a - slopes[i]) * (2.0 / (looks[i] + 1.0))
        if a != 0.0:
            move = mu * length * a / s
            rows.add(i, move, v)
            v_bias += move * constant
            b += bias_step * length * a
            updates += 1
            entries += rows.count(i)
        if s < SMALLEST:
            v *= s
            v_bias *= s
            s = 1.0
    return Walk(t, position, s, v_bias, b, updates, entries)
