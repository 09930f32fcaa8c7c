"""SGD-QN: stochastic gradient descent with a diagonal of learning rates (Bordes, Bottou and Gallinari, JMLR
2009).

    w <- w - B phi'(<w, x>) x                          (B diagonal; only the entries of x change)
    every ``skip`` steps:   w <- w - skip lam B w, and on the next row with a slope g, which its step
    makes g', where x_j != 0:   r_j = clip(lam + (g' - g) x_j / (change of w_j), 0.1 lam, 100 lam)
                                B_j <- 1/(1/B_j + skip r_j)

r_j is a secant: the change of the gradient over the change of w. As (change of w_j) is -B_j g x_j, it is
``lam + (g - g')/(B_j g)``. The version with the bounds on r_j is the one after the erratum of 2010. B begins
at eta0 = 1/(lam t0), calibrated as in ``svmsgd.py`` unless it is given. ``skip`` is 16 n d / nnz by default,
so that the shrinking, which costs O(d), takes a 16th of the time. It assumes that rows come in random order
(``order=given`` leaves them as they are). A weight multiplies its row's loss by c n/N.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats, Words
from ...runtime.errors import InputError
from ...runtime.jit import kernel, prefetch
from ...runtime.random import ORDERS, generator, lay_out
from ...runtime.counts import Counts
from ..dual.averaging import clipped
from .descent import RowByRow
from .options import PRECISIONS, constant_feature, not_negative, one_of, precision_option
from .svmsgd import SvmSgd, calibrated

_FAR, _NEAR = 12, 5  # steps ahead at which a row's numbers, and then its entries, are fetched


class Walk(NamedTuple):
    """Where the solver stands."""

    t: int
    position: int  # in the epoch; -1 before it is ordered
    until: int  # steps until w shrinks
    secant: bool  # the next row updates B
    b: float
    b_rate: float  # the learning rate of the constant feature, per unit of it
    updates: int
    entries: int


class State(NamedTuple):
    """The model and its learning rates."""

    w: Any  # float64 or float32
    B: Any  # float64 or float32
    slopes: Floats  # means of -phi', row by row; empty where no duals are kept
    looks: Any  # uint32: how many
    rows: Any  # uint32, of positive weight
    picks: Any  # uint32: the rows of an epoch
    rng: Words
    walk: Walk
    skip: int
    eta0: float
    paused: bool = False

    @property
    def counts(self) -> Counts:
        """What the loop wants to know."""
        return Counts(self.walk.t, self.walk.updates, self.walk.entries)


@dataclass(frozen=True)
class SGDQN(RowByRow):
    """A diagonal of learning rates from secants."""

    eta0: float = field(default=0.0, metadata={"help": "the first learning rate (0: the best on 1,000 rows)"})
    skip: int = field(default=0, metadata={"help": "steps between two shrinkings (0: 16 n d / nonzeros)"})
    precision: str = precision_option()

    name = "sgd-qn"
    summary = "stochastic gradient descent with a diagonal of learning rates from secants, for every loss"

    def __post_init__(self) -> None:
        super().__post_init__()
        not_negative(self, "eta0")
        one_of(self, "precision", PRECISIONS)
        if self.skip < 0:
            raise InputError(f"skip={self.skip!r} must be a number of steps >= 0 (0: 16 n d / nonzeros)")

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at w = 0, or at the model of a warm start."""
        source = problem.source
        n, d = source.n, source.d
        eta0 = self.eta0 or calibrated(SvmSgd(), problem)
        if eta0 * problem.lam > 1.0:
            raise InputError(f"eta0={eta0:g} must be at most 1/lam = {1.0 / problem.lam:g}")
        most = max(1, int(0.5 / (eta0 * problem.lam)))  # shrinking must not turn w round
        skip = self.skip or min(max(1, round(16 * n * d / max(source.nnz, 1))), most)
        if skip > 2 * most:
            raise InputError(
                f"skip={skip} shrinks w too much at once at eta0={eta0:g}; it must be at most {2 * most}"
            )
        w = np.zeros(d, dtype=self.precision)
        if warm is not None:
            w[:] = warm.w
        rows = np.flatnonzero(source.weight).astype(np.uint32)
        size = n if self.duals else 0
        walk = Walk(0, -1, skip, False, 0.0 if warm is None else float(warm.b), eta0, 0, 0)
        B = np.full(d, eta0, dtype=self.precision)
        slopes, looks = np.zeros(size), np.zeros(size, dtype=np.uint32)
        return State(w, B, slopes, looks, rows, rows.copy(), generator(self.seed), walk, skip, eta0)

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """Make that many steps."""
        (part,) = problem.source.parts()
        walk = _go(
            *part.batch[:3],
            problem.loss,
            problem.lam,
            problem.epoch_size / problem.total_weight,
            constant_feature(problem),
            self.bias_step if problem.bias.kind == "exact" else 0.0,
            state.w,
            state.B,
            state.slopes,
            state.looks,
            state.rows,
            state.picks,
            state.rng,
            state.walk,
            state.skip,
            1.0 / (problem.lam * state.eta0),
            ORDERS.index(self.order),
            state.walk.t + budget,
        )
        return state._replace(walk=Walk(*walk))

    def point(self, problem: Problem, state: State) -> Point:
        """The last model, and the means of the slopes as a dual point."""
        beta = clipped(problem, state.slopes) if self.duals else None
        return Point(state.w.astype(np.float64), state.walk.b, beta)


@kernel
def _slower(rate: float, change: float, lam: float, skip: int) -> float:
    """``1/(1/B + skip r)`` with ``r = lam + change/B`` within its bounds, ``change = (g - g')/g``."""
    r = min(max(lam + change / rate, 0.1 * lam), 100.0 * lam)
    return rate / (1.0 + skip * r * rate)


@kernel
def _go(
    rows: Any,
    y: Floats,
    weight: Floats,
    loss: Any,
    lam: float,
    ratio: float,
    constant: float,
    bias_step: float,
    w: Any,
    B: Any,
    slopes: Floats,
    looks: Any,
    present: Any,
    picks: Any,
    rng: Words,
    walk: Walk,
    skip: int,
    t0: float,
    order: int,
    stop: int,
) -> Walk:
    """Steps up to number ``stop``; orders are numbered as in ORDERS."""
    t, position, until, secant, b, b_rate, updates, entries = walk
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
        if position + _NEAR < n:
            rows.prefetch_row(picks[position + _NEAR])
        i = picks[position]
        position += 1
        t += 1
        count = rows.count(i)
        entries += count
        slope = loss.derivative(y[i], rows.dot(i, w) + b)
        if kept:
            looks[i] += np.uint32(1)
            slopes[i] += (-slope - slopes[i]) * (2.0 / (looks[i] + 1.0))
        if slope != 0.0:
            push = -ratio * weight[i] * slope
            for k in range(count):
                column, value = rows.entry(i, k)
                w[column] += push * B[column] * value
            b += push * (b_rate * constant + bias_step / (lam * (t + t0)))
            updates += 1
            entries += count
        if secant and slope != 0.0:
            change = (slope - loss.derivative(y[i], rows.dot(i, w) + b)) / slope
            for k in range(count):
                column, value = rows.entry(i, k)
                if value != 0.0:
                    B[column] = _slower(B[column], change, lam, skip)
            b_rate = _slower(b_rate, change, lam, skip)
            entries += 2 * count
            secant = False
        until -= 1
        if until == 0:
            until = skip
            secant = True
            for j in range(w.shape[0]):
                w[j] -= skip * lam * B[j] * w[j]
            if constant > 0.0:
                b -= skip * lam * b_rate * b
    return Walk(t, position, until, secant, b, b_rate, updates, entries)
