"""Stochastic gradient descent, one row a step: what ``sgd``, ``svmsgd``, ``asgd``, ``norma`` and
``perceptron`` are made of.

    step t = 1, 2, ...:   w <- (1 - eta_t lam) w - eta_t phi'(<w, x> + b, y) x

w is kept as ``s v``: s takes in the shrinking, and v takes in s before it vanishes, so a step costs the
entries of its row. The mean of the iterates with weights rho_t, taken before their steps, is kept beside it:
``sum of rho_t w = past v + u``, and a move of v by a multiple of a row moves u by that multiple times -past.
A constant feature rho is one more coordinate; a bias that is not regularised takes ``bias_step`` times the
step of the others and does not shrink.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from ...core.geometry import PrimalGeometry
from ...core.losses import Loss
from ...core.problem import Point, Problem
from ...data.fetching import fetch_ahead, fetch_number
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ...runtime.options import option
from ...training.states import Extent, Position, Positive, Reals, invariant, state_class
from .options import precision_option
from .rates import Rate
from .row_by_row import RowByRow, intercepts
from .slopes import note_slope
from .state import State, begin_epoch

SMALLEST, SMALLEST_OF_MEAN = 1e-9, 1e-4  # of s, before v takes it in


@state_class
class Model(NamedTuple):
    """w = s v; the mean of the iterates is (past v + u) / r."""

    v: Reals  # float64 or float32
    u: Floats  # empty where no mean is asked for
    rate: Rate


@state_class
class Cursor(NamedTuple):
    """Where the solver stands; the coordinate of the constant feature has its own s v, past v + u."""

    position: Position = -1
    s: Positive = 1.0
    v_bias: float = 0.0
    b: float = 0.0  # a bias that is not regularised
    past: float = 0.0
    u_bias: float = 0.0
    r: float = 0.0  # the sum of rho_t
    counts: Counts = Counts()


@invariant(State)
def _check(state: State[Any, Any], extent: Extent) -> Iterator[tuple[bool, str]]:
    if isinstance(state.model, Model):  # past multiplies what is added to u
        yield (
            state.model.u.size > 0 or state.cursor.past == 0.0,
            "cursor.past is that of a mean, and there is none",
        )


class Manner(NamedTuple):
    """How steps are made and averaged."""

    how: int  # the order
    mean_from: int  # the first step of the mean
    discount: float  # rho_t = eta_t - discount eta_t^2, or 1 where it is negative


@dataclass(frozen=True)
class Descent(RowByRow[Model, Cursor]):
    """Stochastic gradient descent; subclasses choose the learning rate, and what is averaged."""

    precision: str = precision_option()

    @abstractmethod
    def rate(self, problem: Problem) -> Rate:
        """The learning rate."""

    def mean_from(self, problem: Problem) -> float:
        """The step from which on iterates are averaged; infinite: none is."""
        return math.inf

    def discount(self, problem: Problem) -> float:
        """``rho_t = eta_t - discount eta_t^2``, or 1 where it is negative."""
        return -1.0

    def manner(self, problem: Problem) -> Manner:
        """How steps are made and averaged."""
        first = self.mean_from(problem)
        if not math.isfinite(first):
            return Manner(self.how, -1, -1.0)
        return Manner(self.how, int(first), self.discount(problem))

    def begin(self, problem: Problem, warm: Point | None) -> tuple[Model, Cursor]:
        """Model and cursor at w = 0, or at the model of a warm start."""
        d = problem.source.d
        averaged = math.isfinite(self.mean_from(problem))
        v = np.zeros(d, dtype=np.float64 if averaged else self.precision)  # the lazy mean wants exact moves
        if warm is not None:
            v[:] = warm.w
        v_bias, b = intercepts(problem, warm)
        return Model(v, np.zeros(d if averaged else 0), self.rate(problem)), Cursor(v_bias=v_bias, b=b)

    def visit(
        self,
        problem: Problem,
        loss: Loss,
        geometry: PrimalGeometry,
        state: State[Model, Cursor],
        stop: int,
    ) -> State[Model, Cursor]:
        """Make steps until ``stop`` rows have been visited in all."""
        cursor = _descend(problem.source.batch, loss, geometry, state, self.manner(problem), stop)
        return state._replace(cursor=cursor)

    def model_of(self, state: State[Model, Cursor]) -> tuple[Floats, float]:
        """The mean of the iterates, once there is one, or the last iterate."""
        model, cursor = state.model, state.cursor
        if not model.u.size or cursor.r == 0.0:
            return last_iterate(state)
        w = (cursor.past * model.v.astype(np.float64) + model.u) / cursor.r
        return w, (cursor.past * cursor.v_bias + cursor.u_bias) / cursor.r


@dataclass(frozen=True)
class Averaged(Descent):
    """Stochastic gradient descent that hands over the mean of its iterates from ``tstart`` on."""

    tstart: int = option(0, "first step of the average (0: after one epoch)", low=0)

    def mean_from(self, problem: Problem) -> float:
        """As asked for, or after an epoch."""
        return self.tstart or problem.epoch_size + 1

    def for_stream(self) -> Self:
        """The mean begins at once: a stream does not know how long an epoch is."""
        return replace(super().for_stream(), tstart=self.tstart or 1)


def last_iterate(state: State[Model, Cursor]) -> tuple[Floats, float]:
    """w and b after the last step."""
    cursor = state.cursor
    return cursor.s * state.model.v.astype(np.float64), cursor.s * cursor.v_bias + cursor.b


def check_rate(rate: Rate, lam: float) -> Rate:
    """Refuse a rate at which shrinking changes the sign of w; the first step of 1/(lam t) may make it 0."""
    if rate.at(1) * lam > 1.0 + 1e-12:
        raise InputError(
            f"eta0={rate.eta0:g} makes a first step of {rate.at(1):g}; it must be at most 1/lam = "
            f"{1.0 / lam:g}"
        )
    return rate


@kernel
def _descend(batch: Any, loss: Any, geometry: Any, state: Any, manner: Any, stop: int) -> Cursor:
    """Steps up to visit number ``stop``, with w = s v and (past v + u) / r the mean:

    g = phi'(s (<v, x> + v_bias) + b, y),   s <- (1 - eta lam) s,   v <- v - eta weight_scale c g / s x
    """
    rows, y, weight, _ = batch
    lam, weight_scale, rho2, bias_step = geometry
    model, order, means, cursor = state
    picks = order.picks
    v, u, rate = model
    how, mean_from, discount = manner
    position, s, v_bias, b, past, u_bias, r, counts = cursor
    visits, updates, entries = counts
    averaged = u.shape[0] > 0
    n, kept = picks.shape[0], means.slopes.shape[0] > 0
    while visits < stop:
        if position < 0 or position >= n:
            position = begin_epoch(order, how, position < 0)
        fetch_ahead(batch, picks, position, n)
        if kept:
            fetch_number(means.slopes, picks, position, n)
            fetch_number(means.looks, picks, position, n)
        i = picks[position]
        position, visits = position + 1, visits + 1
        entries += rows.count(i)
        slope = loss.derivative(y[i], s * (rows.dot(i, v) + v_bias) + b)
        if kept:
            note_slope(means, i, -slope)
        eta = rate.at(visits)
        if averaged and visits >= mean_from:
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
            push = -eta * weight_scale * weight[i] * slope
            move = push / s
            rows.add(i, move, v)
            v_bias += move * rho2
            entries += rows.count(i)
            if past != 0.0:
                rows.add(i, -past * move, u)
                u_bias -= past * move * rho2
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
    return Cursor(position, s, v_bias, b, past, u_bias, r, Counts(visits, updates, entries))
