"""The perceptron with a growing margin: the steps of ``sgd-r``, ``sgd-s`` and ``sgd-m``.

With the step 1/(lam (t + 1)) the update of the SVM's stochastic gradient descent is, in terms of ``a = lam t
w``, that of a perceptron whose margin threshold grows with the number t of presentations (Panagiotakopoulos
and Tsampouka, ICANN 2013, equations 5 to 7):

    a <- a + y_k   if  a.y_k <= lam t;    t <- t + 1

y_k stands for the pattern y_k x_k; a tie is an update. Shrinking w costs nothing. A weight multiplies its
row's update, y_k by weight_scale c_k.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...data.fetching import fetch_ahead, fetch_number
from ...runtime.counts import Counts
from ...runtime.jit import kernel
from ...training.states import Extended, Extent, Naturals, Position, Reals, invariant, state_class
from ..order import Order
from .state import begin_epoch


@state_class
class Sums(NamedTuple):
    """What the stopping rule of the paper rests on."""

    M: float = 0.0  # margin errors, each times its weight
    r: float = 0.0  # |a|^2, the constant feature included
    L: float = 0.0  # losses of this epoch as they were met


@state_class
class Cursor(NamedTuple):
    """Where the solver stands; the paper's symbols."""

    t: int = 0  # presentations, repeated ones included: T of the paper is t/n at the end of an epoch
    epoch: int = 0  # complete epochs
    position: Position = -1  # the next pattern of this one; -1 before it is laid out
    a_bias: float = 0.0  # the constant feature's part of a
    b: float = 0.0  # a bias that is not regularised
    sums: Sums = Sums()
    promising: bool = False  # the estimate of the relative accuracy has met its target
    counts: Counts = Counts()


@state_class
class State(NamedTuple):
    """w = a / (lam t); beta_k = errors_k n/t at the end of an epoch."""

    a: Reals  # float64 or float32
    errors: Naturals  # int32: margin errors of each row; empty where no duals are kept
    order: Order
    cursor: Cursor
    accurate: Extended  # the relative accuracy at which the paper's rule stopped; infinite if it did not

    @property
    def counts(self) -> Counts:
        """Work done so far."""
        return self.cursor.counts


@invariant(State)
def _check(state: State, extent: Extent) -> Iterator[tuple[bool, str]]:
    yield state.cursor.position <= state.order.picks.size, "cursor.position is beyond the picks"


class Manner(NamedTuple):
    """How patterns are presented."""

    how: int  # the order
    splitting: bool  # multiple updates first, then all the shrinking
    times: int  # presentations of a pattern in a row
    target: float  # the relative accuracy at which the estimate is promising; 0: never


@kernel
def margin_errors(P: float, times: int, lam: float, q: float) -> int:
    """Proposition 3: how many of ``times`` presentations in a row are margin errors; P = a.y - lam t, q =
    |y|^2.

    Where a free bias has pushed the threshold the other way (lam <= 0) the presentations are simulated one by
    one.
    """
    if lam > 0.0:
        if (times - 1) * lam < P:
            return 0
        return int(min(float(times), math.floor(((times - 1) * lam - P) / max(q, lam)) + 1.0))
    found = 0
    for _ in range(times):
        if P <= 0.0:
            P += q
            found += 1
        P -= lam
    return found


@kernel
def present(batch: Any, loss: Any, geometry: Any, state: Any, manner: Any, stop: int) -> Cursor:
    """Present patterns up to visit number ``stop``, or to the end of an epoch, where by Proposition 2

    D >= margin M/t - lam/2 |w|^2   and   P is about lam/2 |w|^2 + L/n.
    """
    rows, y, weight, squared_norms = batch
    lam, weight_scale, rho2, bias_step = geometry
    a, errors, order, cursor, _ = state
    picks = order.picks
    how, splitting, times, target = manner
    t, epoch, position, a_bias, b, sums, promising, counts = cursor
    M, r, L = sums
    visits, updates, entries = counts
    margin, n, counted = loss.margin, picks.shape[0], errors.shape[0] > 0
    if position < 0:
        position = begin_epoch(order, how, epoch == 0)
        L = 0.0
    while position < n and visits < stop:
        fetch_ahead(batch, picks, position, n)
        if counted:
            fetch_number(errors, picks, position, n)
        i = picks[position]
        position += 1
        visits += 1
        entries += rows.count(i)
        share = weight_scale * weight[i]
        q = share * (squared_norms[i] + rho2)
        p = y[i] * (rows.dot(i, a) + a_bias)
        aim = margin - y[i] * b
        theta = lam * t
        if splitting:
            behind = theta * aim - p
            few = int(min(float(times), math.floor(behind / q) + 1.0)) if q > 0.0 else times
            caused = few if behind >= 0.0 else 0
        else:
            caused = margin_errors(p - theta * aim, times, lam * aim, q)
        if p <= theta * aim:
            L += share * (aim - p / theta) if t > 0 else share * aim
        if caused > 0:
            if counted:
                errors[i] += caused
            move = caused * share * y[i]
            rows.add(i, move, a)
            a_bias += move * rho2
            r += caused * share * (2.0 * p + caused * q)
            M += caused * share
            updates += 1
            entries += rows.count(i)
            if bias_step > 0.0:
                b += bias_step * move / (lam * (t + 1.0))
        t += times
    if position == n:
        position = -1
        epoch += 1
        theta = lam * t
        half = 0.5 * lam * r / (theta * theta)
        primal = half + L / n
        dual = margin * M / t - half
        promising = primal - dual <= target * dual and target > 0.0
    counts = Counts(visits, updates, entries)
    return Cursor(t, epoch, position, a_bias, b, Sums(M, r, L), promising, counts)
