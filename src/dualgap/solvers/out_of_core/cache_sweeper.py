"""Dual coordinate descent over the rows in the cache, which is what ``cached-loops``, ``block`` and
``selective-block`` do between reads.

Sweeps visit the rows in random order, each step exact as in ``dcd``. A visit also tells how firmly its row
sits at a bound or kink, its *slack*: rows with much of it are not worth their place in memory, and rows with
any of it are not worth a visit in every sweep. With ``rest`` = k a sweep visits all rows without slack and
one in k of the others, at random.

Why rows rest: the cache is a set, so most of its rows are at a bound soon, and those that still move get the
smaller part of the visits. (A cache that held informative rows several times would visit them more often for
that; it needs 8.5 passes on a9a to 1e-4, a set without rest 13.5, a set with rest 7.5.)

Eviction during sweeps (Matsushima, Vishwanathan and Smola, KDD 2012, the trainer of dual cached loops): a row
whose slack exceeds epsilon leaves the cache. Epsilon begins at epsilon0 and falls by beta at every visit
while the cache is full to ``fill``. After every n visits, n being the number of rows of the data, it is
renewed: it becomes the largest gradient seen in these visits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...data.rows import CSR, Batch
from ...runtime.arrays import Floats, Offsets
from ...runtime.counts import Counts
from ...runtime.jit import kernel, prefetch
from ...runtime.random import below, generator, permute, shuffle
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


@state_class
class Cursor(NamedTuple):
    """Where the sweeps stand."""

    b: float
    size: int = 0  # rows in the cache
    position: Position = -1  # of the next one in the order; -1 before it is shuffled
    due: int = 0  # the first so many rows in the order are visited in this sweep
    epsilon: Extended = np.inf  # rows with more slack than this are evicted, if sweeps evict rows
    new_epsilon: Extended = 0.0  # the largest gradient since epsilon was renewed
    renewed: int = 0  # visits when that was
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
    def empty(cls, slots: int, b: float, seed: int, epsilon: float = np.inf) -> Sweeps:
        """Of a cache with room for so many rows and none in it."""
        order, cursor = np.arange(slots, dtype=np.uint32), Cursor(b, epsilon=epsilon)
        return cls(np.zeros(slots, dtype=np.int64), np.zeros(slots), order, generator(seed), cursor)

    def shuffled(self, size: int) -> Any:
        """Put the first ``size`` slots of the order into random order; their places in it."""
        permute(self.rng, self.order, size)
        return np.arange(size)


@invariant(Sweeps)
def _check(sweeps: Sweeps, extent: Extent) -> Iterator[tuple[bool, str]]:
    slots = sweeps.order.size
    yield sweeps.cursor.size <= slots, "cursor.size is beyond the cache"
    yield sweeps.cursor.position <= slots, "cursor.position is beyond the cache"
    yield sweeps.cursor.due <= sweeps.cursor.size, "cursor.due is more rows than are in the cache"
    yield sweeps.cursor.renewed <= sweeps.cursor.counts.visits, "cursor.renewed is in the future"
    yield np.array_equal(np.sort(sweeps.order), np.arange(slots)), "order is no permutation of the slots"


class Eviction(NamedTuple):
    """The published rule by which the trainer evicts rows."""

    beta: float  # epsilon falls by this factor at every visit ...
    fill: float  # ... while more than this share of the cache is in use
    period: int  # visits after which it is renewed


class Manner(NamedTuple):
    """How rows in the cache are visited, as the kernel sees it."""

    evicts: bool
    eviction: Eviction
    uniform: bool  # every visit draws its row anew, instead of sweeps in random order
    rest: int  # rows with slack are visited in one of so many sweeps
    pitch: int  # the row of slot s is number pitch s
    stop: int  # visits at which it ends


@dataclass(frozen=True)
class CacheSweeper:
    """A `DualSweeper` over a batch whose rows are slots of a cache, ``beta`` being that of all rows.

    The row of slot s is number 2 s of ``batch.rows`` where these are sparse, and number s where they are
    dense (``data/row_cache.py``, ``dense_row_cache.py``); targets, weights and norms are numbered by slots.
    Rows that a sweep evicts stand right behind those in use in the order.
    """

    rest: int = 1
    uniform: bool = False
    eviction: Eviction | None = None

    def begin(self, batch: Batch, b: float, seed: int, d: int) -> Sweeps:
        """No row is in the cache yet."""
        return Sweeps.empty(batch.weight.size, b, seed)

    def sweep(self, rows: Subproblem, w: Floats, beta: Floats, state: Sweeps, budget: int) -> Sweeps:
        """Visit rows in the cache until the budget is spent or none is left."""
        evicts, stop = self.eviction is not None, state.cursor.counts.visits + budget
        pitch = 2 if isinstance(rows.batch.rows, CSR) else 1
        eviction = self.eviction or Eviction(1.0, 1.0, 1)
        manner = Manner(evicts, eviction, self.uniform, self.rest, pitch, stop)
        return state._replace(cursor=_sweep(*rows, w, beta, state, manner))


@kernel(forceinline=True)
def _fetch_ahead(
    batch: Any, beta: Floats, ids: Offsets, order: Any, position: int, size: int, pitch: int
) -> None:
    """Ask for the rows in the slots that are visited `FAR` and `NEAR` places after ``position``.

    As ``data/fetching.fetch_ahead``, and as there without branches, for rows in slots whose
    duals are found by their numbers.
    """
    ahead = order[min(position + FAR, size - 1)]
    prefetch(ids, ahead)
    prefetch(batch.y, ahead)
    prefetch(batch.weight, ahead)
    prefetch(batch.squared_norms, ahead)
    near = order[min(position + NEAR, size - 1)]
    batch.rows.prefetch_rows(pitch * ahead, pitch * near)
    prefetch(beta, ids[near])


@kernel
def _schedule(state: Any, size: int, rest: int) -> int:
    """Bring the rows of the next sweep to the front of the order, shuffled; how many: all rows without slack,
    and of the others one in ``rest``; all where that would be none.
    """
    _, slack, order, rng, _ = state
    due = 0
    for k in range(size):
        if rest == 1 or slack[order[k]] == 0.0 or below(rng, rest) == 0:
            order[k], order[due] = order[due], order[k]
            due += 1
    due = due if due > 0 else size
    shuffle(rng, order, due)
    return due


@kernel
def _sweep(batch: Any, loss: Any, geometry: Any, w: Floats, beta: Floats, state: Any, manner: Any) -> Cursor:
    """Sweeps over the rows in the cache, until ``manner.stop`` rows are visited or none is left.

    For the row i in a slot, with q = c_i (scale |x_i|^2 + bias_rate) and s = <w, x_i> + b:
        beta_i' = argmax -phi*(-beta') - s (beta' - beta_i) - q/2 (beta' - beta_i)^2
        w += scale c_i (beta_i' - beta_i) x_i,    b += bias_rate c_i (beta_i' - beta_i)
    With [left, right] the subdifferential of the negated dual along beta_i, which holds 0 where the row is
    optimal, its slack is min(right, -left).
    """
    rows, y, weight, squared_norms = batch
    scale, _, bias_rate = geometry
    ids, slack, order, rng, cursor = state
    evicts, (fall, fill, period), uniform, rest, pitch, stop = manner
    b, size, position, due, epsilon, new_epsilon, renewed, counts = cursor
    visits, updates, entries = counts
    crowded = fill * order.shape[0]
    while visits < stop and size > 0:
        if position < 0 or position >= due:
            position = 0
            due = size if uniform else _schedule(state, size, rest)
        while position < due and visits < stop:
            if evicts and visits - renewed >= period:
                epsilon, new_epsilon, renewed = new_epsilon, 0.0, visits
            if evicts and size > crowded:
                epsilon *= fall
            if uniform:  # the row goes to this place of the order, as it may be evicted from there
                other = below(rng, size)
                order[position], order[other] = order[other], order[position]
            else:
                _fetch_ahead(batch, beta, ids, order, position, due, pitch)
            slot = order[position]
            i, r = ids[slot], pitch * slot
            score = rows.dot(r, w) + b
            visits += 1
            entries += rows.count(r)
            left, right = loss.dual_subdifferential(y[slot], score, beta[i])
            satisfied = min(right, -left)
            if evicts and satisfied > epsilon:
                size -= 1
                due -= 1
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
                    rows.add(r, scale * move, w)
                    b += bias_rate * move
                    updates += 1
                    entries += rows.count(r)
            position += 1
    return Cursor(b, size, position, due, epsilon, new_epsilon, renewed, Counts(visits, updates, entries))
