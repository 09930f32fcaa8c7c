"""The order in which a solver visits rows: that of an epoch is laid out beforehand, so that rows can be
fetched ahead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.rows import Batch
from ..runtime.random import generator
from ..training.states import Generator, RowNumbers, state_class


@state_class
class Order(NamedTuple):
    """The rows of an epoch, and what the next epoch is drawn from."""

    rows: RowNumbers  # uint32; those of positive weight
    picks: RowNumbers  # uint32; the rows of this epoch, in order
    rng: Generator

    @classmethod
    def of(cls, batch: Batch, seed: int) -> Order:
        """No epoch is laid out yet."""
        rows = np.flatnonzero(batch.weight).astype(np.uint32)
        return cls(rows, rows.copy(), generator(seed))
