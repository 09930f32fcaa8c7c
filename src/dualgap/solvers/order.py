"""The order in which a solver visits rows: that of an epoch is laid out beforehand, so that rows can be
fetched ahead.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..data.rows import Batch
from ..runtime.checks import whole
from ..runtime.random import generator, permute
from ..training.states import Generator, RowNumbers, state_class

Rows: TypeAlias = np.ndarray[Any, np.dtype[np.uint32]]


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


def first_permutation(n: int, seed: int = 0) -> Rows:
    """The order in which solvers of the primal problem that shuffle visit n rows in their first epoch.

    ``X[first_permutation(n, seed)]`` is what other programs, which take rows as they come, are to be given
    for a comparison (Panagiotakopoulos and Tsampouka, ICANN 2013, Table 8). ``order=fixed`` visits rows in
    this order in every epoch. Rows of weight 0 are not counted.
    """
    picks = np.arange(whole("n", n, 1), dtype=np.uint32)
    permute(generator(whole("seed", seed, 0)), picks, picks.size)
    return picks
