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

The default is not the published algorithm, which evicts by ``threshold``, draws rows uniformly
(``draws=uniform``) and lets neither thread wait (``sweeps=0``): ``paper=matsushima-2012``. No row rests where
either of the first two is asked for. Passes over the data with a tenth of the rows in memory, C = 1, to 1e-2
/ 1e-3 / 1e-4, all at ``sweeps=6``: the default 3.5 / 5.5 / 7.5 (a9a), 2.5 / 3.5 / 4.5 (w8a), 3 / 3 / 4
(wikitox-bow); the published rules 4.5 / 5.5 / 9.5, 4.5 / 6.5 / 9.5, 4 / 6 / 7.

Where all rows are in memory and the cache holds them all, nothing is evicted, and ``dcd`` does the same with
shrinking.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...core.problem import Problem
from ...runtime.errors import InputError
from ...runtime.options import option
from ...training.solver import AnySolver, Preset
from ..dual.dcd import DCD
from .cache_sweeper import CacheSweeper, Eviction
from .capacity import capacity
from .engine import Engine, Reading
from .solver import OutOfCore, rest_option
from .state import State

SCORE, THRESHOLD, RANDOM = EVICTIONS = ("score", "threshold", "random")
SWEEPS, UNIFORM = DRAWS = ("sweeps", "uniform")
EPSILON0, BETA, FILL = 9.0, 0.9, 0.9  # of the published eviction
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
    epsilon0: float = option(
        EPSILON0, "threshold: rows with more slack than epsilon leave; where it begins", low=0
    )
    beta: float = option(
        BETA, "threshold: epsilon falls by this factor at every visit of a full cache", low=0, high=1
    )
    fill: float = option(FILL, "threshold: the share of the cache from which on it is full", low=0, high=1)
    draws: str = option(
        SWEEPS,
        "rows are visited in sweeps of random order, or uniform: drawn anew (as published)",
        choices=DRAWS,
    )
    rest: int = rest_option()
    lockstep: bool = option(False, "read and train in turns, so that a seed gives the same model each time")

    name = "cached-loops"
    summary = (
        "dual cached loops: a reader streams rows, a trainer sweeps those in memory; for data beyond memory "
        "(by default not by the published rules: paper=matsushima-2012 has these)"
    )
    papers: ClassVar[Mapping[str, Preset]] = {
        "matsushima-2012": Preset(
            "Matsushima, Vishwanathan and Smola (2012), as in Vishwanathan's lecture",
            {"eviction": THRESHOLD, "draws": UNIFORM, "sweeps": 0.0, "rest": 1},
            "Neither thread waits, so a run depends on how fast the disk is; max_passes is the Reader's "
            "max_iter.",
        )
    }

    def check_together(self) -> None:
        """A reader that never waits is not in lockstep."""
        if self.lockstep and self.sweeps == 0:
            raise InputError(
                "sweeps=0 lets the reader run ahead, which lockstep=true does not; give one of the two up"
            )
        if self.eviction != THRESHOLD and (self.epsilon0, self.beta, self.fill) != (EPSILON0, BETA, FILL):
            raise InputError(
                f"epsilon0, beta and fill belong to eviction={THRESHOLD!r}, and this is {self.eviction!r}"
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

    def sweeper(self, problem: Problem) -> CacheSweeper:
        """With the published eviction and draws where they are asked for, and then no row rests."""
        uniform, evicts = self.draws == UNIFORM, self.eviction == THRESHOLD
        rest = 1 if uniform or evicts else self.rest
        eviction = Eviction(self.beta, self.fill, problem.epoch_size) if evicts else None
        return CacheSweeper(rest, uniform, eviction)

    @property
    def first_epsilon(self) -> float:
        """As the option says."""
        return self.epsilon0

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
