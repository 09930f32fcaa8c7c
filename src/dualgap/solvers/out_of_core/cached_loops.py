"""Dual cached loops (Matsushima, Vishwanathan and Smola, KDD 2012): a reader and a trainer, neither of which
waits for the other.

The reader streams rows from the disk, over and over. The trainer sweeps the rows in memory. On a slow disk
the trainer goes on sweeping while rows are awaited, until another sweep of the same few rows could not
matter. On a fast one the reader waits until every row that it brought has been followed by ``sweeps`` visits:
reading sooner would only read more often. With ``sweeps=0`` it does not wait (rows that are not taken in time
are then evaluated but not trained on). When the cache is full, rows are evicted for those that come. Which
ones decides how often the data must be read:

- ``score`` (default): those with the most slack when they were last visited; a row that is not at a bound or
  kink, or violates its optimality condition, has none. Ties, and rows not yet visited, at random.
- ``threshold``: as published. The trainer evicts rows (``cache_sweeper.py``), and the reader at random what
  is still too much.
- ``random``: random eviction by the reader alone.

Where all rows are in memory and the cache holds them all, nothing is evicted, and ``dcd`` does the same with
shrinking.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ...core.problem import Problem
from ...runtime.errors import InputError
from ...runtime.options import option
from ...training.solver import AnySolver
from ..dual.dcd import DCD
from .cache_sweeper import CacheSweeper
from .capacity import capacity
from .engine import Engine, Reading
from .solver import OutOfCore
from .state import State

SCORE, THRESHOLD, RANDOM = EVICTIONS = ("score", "threshold", "random")
MIN_EVICTED = 8  # an eighth of the cache at least is evicted at a time: moving what stays is work
MAX_TAKEN = 4  # a quarter of the cache at most is filled at a time
# sweeps over the same rows, none having come, after which the trainer waits: they are as good as solved
PATIENCE = 20


@dataclass(frozen=True)
class CachedLoops(OutOfCore):
    """Dual cached loops."""

    sweeps: float = option(
        6.0, "visits for every row that is read, at least (0: the reader never waits)", low=0
    )
    eviction: str = option(
        SCORE, "which rows make room: score (most slack), threshold (as published), random", choices=EVICTIONS
    )
    lockstep: bool = option(False, "read and train in turns, so that a seed gives the same model each time")

    name = "cached-loops"
    summary = (
        "dual cached loops: a reader streams rows, a trainer sweeps those in memory; for data beyond memory"
    )

    def check_together(self) -> None:
        """A reader that never waits is not in lockstep."""
        if self.lockstep and self.sweeps == 0:
            raise InputError(
                "sweeps=0 lets the reader run ahead, which lockstep=true does not; give one of the two up"
            )

    def resolved(self, problem: Problem) -> AnySolver:
        """``dcd`` where all rows are in memory and the cache would hold all of them."""
        if problem.source.in_memory and capacity(problem, self.cache) == problem.source.n:
            return DCD(seed=self.seed)
        return self

    @property
    def reading(self) -> Reading:
        """On a thread, unless in lockstep."""
        return Reading(self.lockstep, waits=self.sweeps > 0)

    @property
    def sweeper(self) -> CacheSweeper:
        """With the published eviction where it is asked for."""
        return CacheSweeper(evicts=self.eviction == THRESHOLD)

    def in_lockstep(self) -> CachedLoops:
        """With the option ``lockstep``."""
        return replace(self, lockstep=True)

    @property
    def visits_per_row(self) -> float:
        """As the option ``sweeps`` says."""
        return self.sweeps

    def take_in(self, engine: Engine, state: State) -> State:
        """Put rows that have been read into the cache; where none has come yet, training goes on without."""
        piece = engine.next_piece(wait=-state.owed >= PATIENCE * state.size)
        if piece is None:
            return state
        cache, row, size = engine.cache, state.place.row, state.size
        rows = piece.part.batch.y.shape[0] - row
        most = min(rows, max(1, cache.slots // MAX_TAKEN))
        count = cache.fits(piece.part, row, size)
        while size and count < most and (count == 0 or size == state.size):
            size = self._make_room(engine, state, size, most)
            count = cache.fits(piece.part, row, size)
        count = min(max(count, 1), most)
        size = cache.insert(piece.part, row, row + count, size)
        return engine.advanced(state, piece, count, size, math.ceil(self.sweeps * count))

    def _make_room(self, engine: Engine, state: State, size: int, rows: int) -> int:
        """Evict rows so that there is room for so many new ones; how many stay."""
        cache, sweeps = engine.cache, state.sweeps
        leaving = min(size, max(rows - (cache.slots - size), cache.slots // MIN_EVICTED, 1))
        places = sweeps.shuffled(size)
        if self.eviction == SCORE and leaving < size:
            places = np.argpartition(-sweeps.slack[sweeps.order[:size]], leaving - 1)
        return cache.evict(places[:leaving], size)
