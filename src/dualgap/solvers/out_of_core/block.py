"""Block minimisation, plain and selective: fill the memory, optimise what is there, go on to the next block.

``block`` (Yu, Hsieh, Chang and Lin, KDD 2010): the rows are split into blocks that fit into memory. Each in
turn, in a random order every pass, is loaded and swept a few times by dual coordinate descent; then it is
dropped.

``selective-block`` (Chang and Roth, KDD 2011): part of the memory keeps informative rows of earlier blocks,
which are swept together with the new block. A row is informative if it is not optimal with slack; when there
are more than fit, those with the most slack leave, and among the others chance decides. Unlike there, rows
with slack are not visited in every sweep (``rest``, see ``cache_sweeper.py``).

Both wait for the disk while they load, as they are published; ``cached-loops`` does not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.problem import Problem
from ...data.chunks import Feed
from ...runtime.options import option
from ...training.solver import Preset
from .cache_sweeper import CacheSweeper
from .engine import ChunkOrder, Engine
from .solver import OutOfCore, rest_option
from .state import State

MAX_KEPT = 0.95  # a block needs some of the cache


@dataclass(frozen=True)
class BlockMinimisation(OutOfCore):
    """Block minimisation."""

    inner: int = option(10, "sweeps over the rows in memory before others are loaded", low=1)

    name = "block"
    summary = "block minimisation: load a block of rows, optimise it, load the next; for data beyond memory"
    papers: ClassVar[Mapping[str, Preset]] = {
        "yu-2010": Preset(
            "Yu, Hsieh, Chang and Lin (2010), algorithm 1 with dual coordinate descent in blocks",
            {},
            "The defaults are the paper's; it also tried 1 and 20 sweeps a block (inner).",
        )
    }

    @property
    def kept_share(self) -> float:
        """The share of the cache that is for rows of earlier blocks."""
        return 0.0

    @property
    def epochs_per_centre(self) -> int:
        """The centre of the bias moves when all rows have been in the cache, about once a pass."""
        return math.ceil(self.inner / (1.0 - self.kept_share))

    def most_owed(self, slots: int) -> int:
        """So many sweeps over a full cache."""
        return self.inner * slots

    def chunk_order(self, feed: Feed, slots: int) -> ChunkOrder:
        """Blocks of neighbouring chunks, in a random order every pass."""

        def order(pass_number: int) -> Any:
            count = max(1, math.ceil(feed.n / max(1.0, (1.0 - self.kept_share) * slots)))
            blocks = np.array_split(np.arange(feed.chunks), min(count, feed.chunks))
            shuffled = np.random.default_rng([self.seed, pass_number]).permutation(len(blocks))
            return np.concatenate([blocks[k] for k in shuffled])

        return order

    def take_in(self, engine: Engine, state: State) -> State:
        """Evict what is not kept, and fill the cache with rows that come next, up to the end of a pass."""
        cache, size = engine.cache, self._keep(engine, state)
        state = state.at(size=size, position=-1, due=0)
        new = 0
        while True:
            piece = engine.next_piece(wait=True)
            assert piece is not None  # it was waited for
            row = state.place.row
            count = cache.fits(piece.part, row, state.size)
            while count == 0 and new == 0 and size > 0:  # what was kept is in the way of a long row
                size = cache.evict(state.sweeps.shuffled(size)[: -(-size // 2)], size)
                state = state.at(size=size)
                count = cache.fits(piece.part, row, size)
            if count == 0 and new == 0:
                count = 1  # a single row larger than the cache, which grows or says what is wrong
            if count == 0:
                break
            size = cache.insert(piece.part, row, row + count, state.size)
            state = engine.advanced(state, piece, count, size, 0)
            new += count
            if piece.last and state.place.row == 0:
                break
        return engine.noted(state._replace(owed=self.inner * state.size))

    def _keep(self, engine: Engine, state: State) -> int:
        """Evict what is not kept for the next block; how many rows stay."""
        cache, sweeps, size = engine.cache, state.sweeps, state.size
        stay = min(size, int(self.kept_share * cache.slots))
        places = sweeps.shuffled(size)
        if 0 < stay < size:
            places = np.argpartition(-sweeps.slack[sweeps.order[:size]], size - stay - 1)
        return cache.evict(places[: size - stay], size)


@dataclass(frozen=True)
class SelectiveBlockMinimisation(BlockMinimisation):
    """Block minimisation with a cache of informative rows."""

    kept: float = option(
        0.5, "share of the cache for informative rows of earlier blocks", low=0.0, high=MAX_KEPT
    )
    rest: int = rest_option()

    name = "selective-block"
    summary = "block minimisation that keeps informative rows of earlier blocks; for data beyond memory"
    papers: ClassVar[Mapping[str, Preset]] = {
        "chang-2011": Preset(
            "Chang and Roth (2011), selective block minimisation",
            {"kept": 0.5, "rest": 1},
            "The paper tried several shares of the memory for kept rows (kept).",
        )
    }

    @property
    def kept_share(self) -> float:
        """As the option says."""
        return self.kept

    def sweeper(self, problem: Problem) -> CacheSweeper:
        """Rows with slack rest."""
        return CacheSweeper(self.rest)
