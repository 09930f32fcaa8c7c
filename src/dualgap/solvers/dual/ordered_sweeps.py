"""Sweeps over all rows in one of five orders, without shrinking: the `DualSweeper` of ``sdca`` and of dual
polishing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...data.fetching import fetch_ahead, fetch_number
from ...data.rows import Batch
from ...runtime.arrays import Floats, Words
from ...runtime.counts import Counts
from ...runtime.jit import kernel
from ...runtime.random import below, permute, resample, shuffle, uniform
from ...training.states import (
    Extent,
    GrowingNaturals,
    GrowingReals,
    Naturals,
    Position,
    invariant,
    state_class,
)
from ..order import Order
from .sweeper import Subproblem

RANDOM, PERMUTATION, CYCLIC, IMPORTANCE, GAPS = ORDERS = (
    "random",
    "permutation",
    "cyclic",
    "importance",
    "gaps",
)


@state_class
class Alias(NamedTuple):
    """Walker's tables for drawing rows with given probabilities in constant time; empty where none are
    given.
    """

    threshold: GrowingReals  # take the slot's own row below this, else the other one
    other: GrowingNaturals  # uint32


@state_class
class DualSums(NamedTuple):
    """Sums of the duals over all steps, each brought up to date when its row changes; empty where no mean is
    asked for.
    """

    total: Floats  # row by row, the sum of the duals at steps 0..touched-1
    touched: Naturals  # int64


@state_class
class Cursor(NamedTuple):
    """Where the sweeps stand."""

    b: float
    position: Position = -1  # the next pick; -1 before an epoch is laid out
    counts: Counts = Counts()


@state_class
class Sweeps(NamedTuple):
    """The state of an `OrderedSweeper`."""

    order: Order
    alias: Alias
    sums: DualSums
    cursor: Cursor


@invariant(Sweeps)
def _check(sweeps: Sweeps, extent: Extent) -> Iterator[tuple[bool, str]]:
    size, (threshold, other) = sweeps.order.rows.size, sweeps.alias
    yield sweeps.cursor.position <= size, "cursor.position is beyond the picks"
    yield threshold.size == other.size and threshold.size in (0, size), "alias has other sizes than the rows"
    yield bool((other < size).all()), "alias.other is beyond the rows"
    yield (
        int(sweeps.sums.touched.max(initial=0)) <= sweeps.cursor.counts.visits,
        "sums.touched is in the future",
    )


@dataclass(frozen=True)
class OrderedSweeper:
    """A `DualSweeper` that visits rows in one of the orders, and may add up their duals."""

    order: str = PERMUTATION
    sums: bool = False  # of the duals over all steps

    def begin(self, batch: Batch, b: float, seed: int, d: int) -> Sweeps:
        """No epoch is laid out yet."""
        order = Order.of(batch, seed)
        if self.order == CYCLIC:
            permute(order.rng, order.rows, order.rows.size)
            order.picks[:] = order.rows
        size = batch.weight.size if self.sums else 0
        sums = DualSums(np.zeros(size), np.zeros(size, dtype=np.int64))
        return Sweeps(order, Alias(np.zeros(0), np.zeros(0, dtype=np.uint32)), sums, Cursor(b))

    def sweep(self, rows: Subproblem, w: Floats, beta: Floats, state: Sweeps, budget: int) -> Sweeps:
        """Make that many visits."""
        stop = state.cursor.counts.visits + budget
        cursor = _ascend(*rows, w, beta, state, ORDERS.index(self.order), stop)
        return state._replace(cursor=cursor)


def make_alias(probability: Floats) -> Alias:
    """Walker's tables (Vose's construction, IEEE TSE 1991)."""
    other = np.zeros(probability.size, dtype=np.uint32)
    threshold = probability * probability.size
    _fill(threshold, other)
    return Alias(threshold, other)


@kernel
def _fill(threshold: Floats, other: Any) -> None:
    n = threshold.shape[0]
    small, large = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    few = many = 0
    for i in range(n):
        other[i] = i
        if threshold[i] < 1.0:
            small[few] = i
            few += 1
        else:
            large[many] = i
            many += 1
    while few > 0 and many > 0:
        few -= 1
        i, j = small[few], large[many - 1]
        other[i] = j
        threshold[j] -= 1.0 - threshold[i]
        if threshold[j] < 1.0:
            many -= 1
            small[few] = j
            few += 1
    for k in range(few):  # left over by rounding
        threshold[small[k]] = 1.0
    for k in range(many):
        threshold[large[k]] = 1.0


@kernel
def _lay_out(rng: Words, order: int, rows: Any, picks: Any, alias: Any) -> None:
    """The rows of an epoch; orders are numbered as in ORDERS."""
    threshold, other = alias
    n = rows.shape[0]
    if order == 1:
        shuffle(rng, picks, n)
    elif order == 0:
        resample(rng, rows, picks)
    elif order >= 3:
        for k in range(n):
            slot = below(rng, n)
            own = threshold.shape[0] == 0 or uniform(rng) < threshold[slot]
            picks[k] = rows[slot if own else other[slot]]


@kernel
def _ascend(
    batch: Any, loss: Any, geometry: Any, w: Floats, beta: Floats, state: Any, order: int, stop: int
) -> Cursor:
    """Steps up to visit number ``stop``; orders are numbered as in ORDERS. For the update see
    `DualSweeper`.
    """
    rows, y, weight, squared_norms = batch
    scale, _, bias_rate = geometry
    present, picks, rng = state.order
    total, touched = state.sums
    b, position = state.cursor.b, state.cursor.position
    now, updates, entries = state.cursor.counts
    n = picks.shape[0]
    averaged = total.shape[0] > 0
    while now < stop:
        if position < 0 or position >= n:
            _lay_out(rng, order, present, picks, state.alias)
            position = 0
        fetch_ahead(batch, picks, position, n)
        fetch_number(beta, picks, position, n)
        i = picks[position]
        position += 1
        now += 1
        entries += rows.count(i)
        score = rows.dot(i, w) + b
        q = weight[i] * (scale * squared_norms[i] + bias_rate)
        best = loss.dual_prox(y[i], score, beta[i], q)
        move = weight[i] * (best - beta[i])
        if move != 0.0:
            if averaged:
                total[i] += beta[i] * (now - touched[i])
                touched[i] = now
            beta[i] = best
            rows.add(i, scale * move, w)
            b += bias_rate * move
            updates += 1
            entries += rows.count(i)
    return Cursor(b, position, Counts(now, updates, entries))
