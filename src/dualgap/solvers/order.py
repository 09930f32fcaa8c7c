"""The order in which a solver visits rows: that of an epoch is laid out beforehand, so that rows can be
fetched ahead.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..data.rows import Batch
from ..runtime.arrays import Words
from ..runtime.random import generator


class Order(NamedTuple):
    """The rows of an epoch, and what the next epoch is drawn from."""

    rows: Any  # uint32; those of positive weight
    picks: Any  # uint32; the rows of this epoch, in order
    rng: Words

    @classmethod
    def of(cls, batch: Batch, seed: int) -> Order:
        """No epoch is laid out yet."""
        rows = np.flatnonzero(batch.weight).astype(np.uint32)
        return cls(rows, rows.copy(), generator(seed))
