"""A cache of dense rows in a fixed amount of memory, in the type that they are stored in: float16 takes 2
bytes a number, where a cache of sparse rows takes 8.

All rows are equally long, so the row of slot s is row s of a matrix, and nothing ever moves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.arrays import Floats, Offsets
from .row_cache import RowCache
from .rows import Dense, HalfDense, Rows
from .sources import Part

DENSE: dict[int, tuple[type[Dense], Any]] = {  # rows whose numbers have so many bytes, as kernels see them
    2: (HalfDense, np.uint16),
    4: (Dense, np.float32),
    8: (Dense, np.float64),
}


class DenseRowCache(RowCache):
    """Dense rows in slots; all else is as in `RowCache`."""

    def __init__(
        self, ids: Offsets, order: Any, slack: Floats, kind: tuple[type[Dense], Any], *, n: int, d: int
    ) -> None:
        self._kind, dtype = kind
        super().__init__(ids, order, slack, 0, dtype, n=n, grows=False)
        self._matrix = np.empty((ids.size, d), dtype=dtype)

    @property
    def room(self) -> int:
        """The number of entries that there is room for."""
        return int(self._matrix.size)

    @property
    def rows(self) -> Rows:
        """The matrix; the row of slot s is number s."""
        matrix = self._matrix.view()
        matrix.flags.writeable = False
        return self._kind(matrix)

    def fits(self, part: Part, first: int, size: int) -> int:
        """How many rows of a part, from that one on, go in without eviction; see `RowCache.fits`."""
        last = min(part.batch.y.shape[0], first + self.slots)
        entering = np.cumsum(self._enters(part, first, last))
        return int(np.searchsorted(entering, self.slots - size, side="right"))

    def insert(self, part: Part, first: int, last: int, size: int) -> int:
        """Copy rows of a part into free slots; the number of rows present then."""
        rows = first + np.flatnonzero(self._enters(part, first, last))
        slots = self.order[size : size + rows.size]
        batch: Any = part.batch
        self._matrix[slots] = batch.rows.matrix[rows]
        self.y[slots], self.weight[slots] = batch.y[rows], batch.weight[rows]
        self.squared_norms[slots] = batch.squared_norms[rows]
        self.ids[slots], self.slack[slots] = part.span.start + rows, 0.0
        self.present[self.ids[slots]] = True
        return size + int(rows.size)

    def count_evicted(self, slots: Any) -> None:
        """Account for rows that have left these slots."""
        self.present[self.ids[slots.astype(np.int64)]] = False

    def _enters(self, part: Part, first: int, last: int) -> Any:
        """Which rows of a part would enter: those of positive weight that are not in the cache."""
        return ~self.present[part.span][first:last] & (part.batch.weight[first:last] > 0.0)
