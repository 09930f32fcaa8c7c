"""Stochastic gradient descent, one row a step: the engine of ``sgd``, ``svmsgd``, ``asgd``, ``norma``,
``perceptron``.

    step t = 1, 2, ...:   w <- (1 - eta_t lam) w - eta_t phi'(<w, x> + b, y) x

w is kept as ``s v``: s takes in the shrinking, and v takes in s before it vanishes, so a step costs the
entries of its row. The mean of the iterates with weights rho_t, taken before their steps, is kept beside it:
``sum of rho_t w = past v + u``, and a move of v by a multiple of a row moves u by that multiple times -past.
A constant feature rho is one more coordinate; a bias that is not regularised takes ``bias_step`` times the
step of the others and does not shrink. A weight multiplies its row's loss by c n/N.

A dual point comes from means of -phi' row by row, in which the k-th look at a row has a weight in proportion
to k: early slopes are forgotten. They are convex combinations of slopes, so they stay in the box.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...core.losses import Loss
from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats, Words
from ...runtime.errors import InputError
from ...runtime.jit import kernel, prefetch
from ...runtime.random import ORDERS, PERMUTATION, generator, lay_out
from ...runtime.counts import Counts
from ...training.stopping import Reason
from ..dual.averaging import clipped
from .options import (
    BIASES,
    PRECISIONS,
    bias_step_option,
    constant_feature,
    duals_option,
    not_negative,
    one_of,
    precision_option,
)
from .polishing import Polished, polish_option
from .rates import Rate

SMALLEST, SMALLEST_OF_MEAN = 1e-9, 1e-4  # of s, before v takes it in
_FAR, _NEAR = 12, 5  # steps ahead at which a row's numbers, and then its entries, are fetched


class Walk(NamedTuple):
    """Where the solver stands; w = s v."""

    t: int
    position: int  # in the epoch; -1 before it is ordered
    s: float
    v_bias: float
    b: float  # a bias that is not regularised
    past: float
    u_bias: float
    r: float  # the sum of rho_t
    visits: int
    updates: int
    entries: int


class State(NamedTuple):
    """w = s v; the mean is (past v + u) / r."""

    v: Any  # float64 or float32
    u: Floats  # empty where no mean is asked for
    slopes: Floats  # means of -phi'; empty where no duals are kept
    looks: Any  # uint32: how many
    rows: Any  # uint32, of positive weight
    picks: Any  # uint32: the rows of an epoch
    rng: Words
    walk: Walk
    rate: Rate
    paused: bool = False

    @property
    def counts(self) -> Counts:
        """What the loop wants to know."""
        return Counts(self.walk.visits, self.walk.updates, self.walk.entries)


@dataclass(frozen=True)
class RowByRow(Polished):
    """What solvers of the primal problem that look at one row a step share."""

    seed: int = field(default=0, metadata={"help": "seed of the random order"})
    order: str = field(
        default=PERMUTATION,
        metadata={"help": "permutation (a fresh one each epoch), random (with replacement) or given"},
    )
    duals: bool = duals_option()
    bias_step: float = bias_step_option()
    polish: int = polish_option()

    biases = BIASES
    streams = True  # rows may come and go

    def __post_init__(self) -> None:
        self.check_polish()
        one_of(self, "order", ORDERS)
        not_negative(self, "bias_step")

    def finished(self, state: Any) -> Reason | None:
        """Only a gap or a limit ends it."""
        return None


@dataclass(frozen=True)
class Descent(RowByRow):
    """What the solvers that stand on this engine share; each says what it descends, and how fast."""

    precision: str = precision_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "precision", PRECISIONS)

    # what a solver chooses

    def descended(self, problem: Problem) -> tuple[Loss, float]:
        """The loss and lam of the steps."""
        return problem.loss, problem.lam

    def rate(self, problem: Problem) -> Rate:
        """The learning rate."""
        raise NotImplementedError

    def mean_from(self, problem: Problem) -> float:
        """The step from which on iterates are averaged; infinite: none is."""
        return math.inf

    def discount(self, problem: Problem) -> float:
        """``rho_t = eta_t - discount eta_t^2``, or 1 where it is negative."""
        return -1.0

    # what the loop wants

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at w = 0, or at the model of a warm start."""
        n, d = problem.source.n, problem.source.d
        averaged = math.isfinite(self.mean_from(problem))
        v = np.zeros(d, dtype=np.float64 if averaged else self.precision)  # the lazy mean wants exact moves
        b = 0.0
        if warm is not None:
            v[:] = warm.w
            b = float(warm.b)
        free = problem.bias.kind == "exact"
        rows = np.flatnonzero(problem.source.weight).astype(np.uint32)
        u = np.zeros(d if averaged else 0)
        slopes, looks = np.zeros(n if self.duals else 0), np.zeros(n if self.duals else 0, dtype=np.uint32)
        walk = Walk(0, -1, 1.0, 0.0 if free else b, b if free else 0.0, 0.0, 0.0, 0.0, 0, 0, 0)
        return State(v, u, slopes, looks, rows, rows.copy(), generator(self.seed), walk, self.rate(problem))

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """Make that many steps."""
        (part,) = problem.source.parts()
        loss, lam = self.descended(problem)
        first = self.mean_from(problem)
        walk = _descend(
            *part.batch,
            loss,
            lam,
            problem.epoch_size / problem.total_weight,
            constant_feature(problem),
            self.bias_step if problem.bias.kind == "exact" else 0.0,
            state.v,
            state.u,
            state.slopes,
            state.looks,
            state.rows,
            state.picks,
            state.rng,
            state.walk,
            state.rate,
            ORDERS.index(self.order),
            int(first) if math.isfinite(first) else -1,
            self.discount(problem),
            state.walk.visits + budget,
        )
        return state._replace(walk=Walk(*walk))

    def point(self, problem: Problem, state: State) -> Point:
        """The last model or the mean, and the means of the slopes as a dual point."""
        w, b = model_of(state)
        beta = clipped(problem, state.slopes) if self.duals else None
        return Point(w, b, beta)


def model_of(state: State) -> tuple[Floats, float]:
    """w and b: of the mean, where there is one."""
    walk = state.walk
    if state.u.size and walk.r > 0.0:
        w = (walk.past * state.v.astype(np.float64) + state.u) / walk.r
        return w, (walk.past * walk.v_bias + walk.u_bias) / walk.r
    return walk.s * state.v.astype(np.float64), walk.s * walk.v_bias + walk.b


def check_rate(rate: Rate, lam: float) -> Rate:
    """w must not change its sign by shrinking; the first step of 1/(lam t) may make it 0."""
    if rate.at(1) * lam > 1.0 + 1e-12:
        raise InputError(
            f"eta0={rate.eta0:g} makes a first step of {rate.at(1):g}; it must be at most 1/lam = "
            f"{1.0 / lam:g}"
        )
    return rate


@kernel
def _descend(
    rows: Any,
    y: Floats,
    weight: Floats,
    squared_norms: Floats,
    loss: Any,
    lam: float,
    ratio: float,
    constant: float,
    bias_step: float,
    v: Any,
    u: Any,
    slopes: Floats,
    looks: Any,
    present: Any,
    picks: Any,
    rng: Words,
    walk: Walk,
    rate: Rate,
    order: int,
    mean_from: int,
    discount: float,
    stop: int,
) -> Walk:
    """Steps up to visit number ``stop``; orders are numbered as in ORDERS."""
    t, position, s, v_bias, b, past, u_bias, r, visits, updates, entries = walk
    n = picks.shape[0]
    averaged, kept = u.shape[0] > 0, slopes.shape[0] > 0
    while visits < stop:
        if position < 0 or position >= n:
            position = 0
            lay_out(rng, order, present, picks)
        if position + _FAR < n:
            ahead = picks[position + _FAR]
            rows.prefetch_offsets(ahead)
            prefetch(y, ahead)
            prefetch(weight, ahead)
            if kept:
                prefetch(slopes, ahead)
                prefetch(looks, ahead)
        if position + _NEAR < n:
            rows.prefetch_row(picks[position + _NEAR])
        i = picks[position]
        position += 1
        visits += 1
        t += 1
        entries += rows.count(i)
        slope = loss.derivative(y[i], s * (rows.dot(i, v) + v_bias) + b)
        if kept:
            looks[i] += np.uint32(1)
            slopes[i] += (-slope - slopes[i]) * (2.0 / (looks[i] + 1.0))
        eta = rate.at(t)
        if averaged and t >= mean_from:
            rho = eta * (1.0 - discount * eta) if discount >= 0.0 else 1.0
            past += rho * s
            u_bias += rho * b
            r += rho
        if lam > 0.0:
            shrink = 1.0 - eta * lam
            if shrink < SMALLEST:  # the first step of 1/(lam t), or nearly: w becomes 0 or next to it
                if averaged:
                    for j in range(v.shape[0]):
                        u[j] += past * v[j]
                    u_bias += past * v_bias
                    past = 0.0
                shrink = max(shrink, 0.0)
                for j in range(v.shape[0]):
                    v[j] *= s * shrink
                v_bias *= s * shrink
                s = 1.0
            else:
                s *= shrink
        if slope != 0.0:
            push = -eta * ratio * weight[i] * slope
            move = push / s
            rows.add(i, move, v)
            v_bias += move * constant
            entries += rows.count(i)
            if past != 0.0:
                rows.add(i, -past * move, u)
                u_bias -= past * move * constant
                entries += rows.count(i)
            b += bias_step * push
            updates += 1
        if s < (SMALLEST_OF_MEAN if averaged else SMALLEST):
            for j in range(v.shape[0]):
                if averaged:  # or else past v + u would cancel
                    u[j] += past * v[j]
                v[j] *= s
            u_bias += past * v_bias
            past = 0.0
            v_bias *= s
            s = 1.0
    return Walk(t, position, s, v_bias, b, past, u_bias, r, visits, updates, entries)
