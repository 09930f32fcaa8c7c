"""Dual coordinate descent over the rows in the cache, which is what ``cached-loops``, ``block`` and
``selective-block`` do between reads.

Sweeps visit the rows in random order, each step exact as in ``dcd``. A visit also tells how firmly its row
sits at a bound or kink, its *slack*: rows with much of it are not worth their place in memory.

Eviction during sweeps (Matsushima, Vishwanathan and Smola, KDD 2012, the trainer of dual cached loops): a row
whose slack exceeds epsilon leaves the cache. Epsilon is the largest gradient of the sweep before, and falls
by 0.9 at every visit while the cache is nine tenths full.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...data.rows import Batch
from ...runtime.arrays import Floats, Offsets
from ...runtime.counts import Counts
from ...runtime.jit import kernel, prefetch
from ...runtime.random import generator, permute, shuffle
from ...training.states import (
    Extended,
    ExtendedReals,
    Extent,
    Generator,
    Naturals,
    Position,
    RowNumbers,
    invariant,
    state_class,
)
from ..dual.shrinking import projected_slope
from ..dual.sweeper import Subproblem

FAR, NEAR = 12, 5  # visits ahead at which a row's numbers, and then its entries, are fetched
FIRST_EPSILON = 9.0  # of eviction, in the first sweep
CROWDED, FALL = 0.9, 0.9  # epsilon falls by this factor while so much of the cache is in use


@state_class
class Cursor(NamedTuple):
    """Where the sweeps stand."""

    b: float
    size: int = 0  # rows in the cache
    position: Position = -1  # of the next one in the order; -1 before it is shuffled
    epsilon: Extended = FIRST_EPSILON  # rows with more slack than this are evicted, if sweeps evict rows
    new_epsilon: Extended = 0.0  # the largest gradient of this sweep so far
    counts: Counts = Counts()


@state_class
class Sweeps(NamedTuple):
    """The state of a `CacheSweeper`. The rows themselves are not part of it: they can be read again."""

    ids: RowNumbers  # numbers of the rows in the slots of the cache, which are those of their duals
    slack: ExtendedReals  # of the rows in the slots when they were last visited; 0 where they may still move
    order: Naturals  # uint32; a permutation of the slots, those in use first
    rng: Generator
    cursor: Cursor

    @classmethod
    def empty(cls, slots: int, b: float, seed: int) -> Sweeps:
        """Of a cache with room for so many rows and none in it."""
        order = np.arange(slots, dtype=np.uint32)
        return cls(np.zeros(slots, dtype=np.int64), np.zeros(slots), order, generator(seed), Cursor(b))

    def shuffled(self, size: int) -> Any:
        """Put the first ``size`` slots of the order into random order; their places in it."""
        permute(self.rng, self.order, size)
        return np.arange(size)


@invariant(Sweeps)
def _check(sweeps: Sweeps, extent: Extent) -> Iterator[tuple[bool, str]]:
    slots = sweeps.order.size
    yield sweeps.cursor.size <= slots, "cursor.size is beyond the cache"
    yield sweeps.cursor.position <= slots, "cursor.position is beyond the cache"
    yield np.array_equal(np.sort(sweeps.order), np.arange(slots)), "order is no permutation of the slots"


@dataclass(frozen=True)
class CacheSweeper:
    """A `DualSweeper` over a batch whose rows are slots of a cache, ``beta`` being that of all rows.

    The row of slot s is number 2 s of ``batch.rows`` (see ``data/row_cache.py``); targets, weights and norms
    are numbered by slots. Rows that a sweep evicts stand right behind those in use in the order.
    """

    evicts: bool = False

    def begin(self, batch: Batch, b: float, seed: int, d: int) -> Sweeps:
        """No row is in the cache yet."""
        return Sweeps.empty(batch.weight.size, b, seed)

    def sweep(self, rows: Subproblem, w: Floats, beta: Floats, state: Sweeps, budget: int) -> Sweeps:
        """Visit rows in the cache until the budget is spent or none is left."""
        return state._replace(cursor=_sweep(*rows, w, beta, state, self.evicts, budget))


@kernel(forceinline=True)
def _fetch_ahead(batch: Any, beta: Floats, ids: Offsets, order: Any, position: int, size: int) -> None:
    """Ask for the rows in the slots that are visited `FAR` and `NEAR` places after ``position``.

    As ``data/fetching.fetch_ahead``, and as there without branches, for rows whose offsets come in pairs and
    whose duals are found by their numbers.
    """
    ahead = order[min(position + FAR, size - 1)]
    prefetch(ids, ahead)
    prefetch(batch.y, ahead)
    prefetch(batch.weight, ahead)
    prefetch(batch.squared_norms, ahead)
    near = order[min(position + NEAR, size - 1)]
    batch.rows.prefetch_rows(2 * ahead, 2 * near)
    prefetch(beta, ids[near])


@kernel
def _sweep(
    batch: Any, loss: Any, geometry: Any, w: Floats, beta: Floats, state: Any, evicts: bool, budget: int
) -> Cursor:
    """Sweeps over the rows in the cache, until ``budget`` rows are visited or none is left.

    For the row i in a slot, with q = c_i (scale |x_i|^2 + bias_rate) and s = <w, x_i> + b:
        beta_i' = argmax -phi*(-beta') - s (beta' - beta_i) - q/2 (beta' - beta_i)^2
        w += scale c_i (beta_i' - beta_i) x_i,    b += bias_rate c_i (beta_i' - beta_i)
    With [left, right] the subdifferential of the negated dual along beta_i, which holds 0 where the row is
    optimal, its slack is min(right, -left).
    """
    rows, y, weight, squared_norms = batch
    scale, _, bias_rate = geometry
    ids, slack, order, rng, cursor = state
    b, size, position, epsilon, new_epsilon, counts = cursor
    visits, updates, entries = counts
    stop = visits + budget
    crowded = CROWDED * order.shape[0]
    while visits < stop and size > 0:
        if position < 0 or position >= size:
            if position >= size:
                epsilon, new_epsilon = new_epsilon, 0.0
            position = 0
            shuffle(rng, order, size)
        while position < size and visits < stop:
            _fetch_ahead(batch, beta, ids, order, position, size)
            if evicts and size > crowded:
                epsilon *= FALL
            slot = order[position]
            i = ids[slot]
            score = rows.dot(2 * slot, w) + b
            visits += 1
            entries += rows.count(2 * slot)
            left, right = loss.dual_subdifferential(y[slot], score, beta[i])
            satisfied = min(right, -left)
            if evicts and satisfied > epsilon:
                size -= 1
                order[position], order[size] = order[size], order[position]
                continue
            slack[slot] = max(satisfied, 0.0)
            projected = projected_slope(left, right)
            new_epsilon = max(new_epsilon, abs(projected), slack[slot] if slack[slot] < np.inf else 0.0)
            if projected != 0.0:
                q = weight[slot] * (scale * squared_norms[slot] + bias_rate)
                best = loss.dual_prox(y[slot], score, beta[i], q)
                move = weight[slot] * (best - beta[i])
                if move != 0.0:
                    beta[i] = best
                    rows.add(2 * slot, scale * move, w)
                    b += bias_rate * move
                    updates += 1
                    entries += rows.count(2 * slot)
            position += 1
    return Cursor(b, size, position, epsilon, new_epsilon, Counts(visits, updates, entries))
