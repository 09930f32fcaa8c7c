"""Sparse rows.

Column numbers are uint32: without the test for negative indices that signed ones get, a gather runs 1.3 times
as fast. Reassociation (as in `dense`) gains nothing for gathers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...runtime.arrays import Columns, Floats, Offsets, Values
from ...runtime.jit import kernel_type, prefetch
from .common import LINE

MANY = 400_000  # columns: a model of so many numbers does not stay in the caches
_AHEAD = 64  # entries by which those of w are prefetched


@kernel_type
class CSR(NamedTuple):
    """Compressed sparse rows; row i is ``values[starts[i]:starts[i + 1]]`` at ``columns[...]``."""

    values: Values
    columns: Columns
    starts: Offsets

    def dot(self, i: int, w: Floats) -> float:
        """``<w, x_i>``; four partial sums, so that the additions overlap."""
        t0 = t1 = t2 = t3 = 0.0
        p = self.starts[i]
        end = self.starts[i + 1]
        while p + 4 <= end:
            t0 += w[self.columns[p]] * self.values[p]
            t1 += w[self.columns[p + 1]] * self.values[p + 1]
            t2 += w[self.columns[p + 2]] * self.values[p + 2]
            t3 += w[self.columns[p + 3]] * self.values[p + 3]
            p += 4
        while p < end:
            t0 += w[self.columns[p]] * self.values[p]
            p += 1
        return (t0 + t1) + (t2 + t3)

    def add(self, i: int, scale: float, w: Floats) -> None:
        """``w += scale x_i``."""
        for p in range(self.starts[i], self.starts[i + 1]):
            w[self.columns[p]] += scale * np.float64(self.values[p])

    def count(self, i: int) -> int:
        """The number of stored entries."""
        return self.starts[i + 1] - self.starts[i]  # type: ignore[no-any-return]

    def entry(self, i: int, k: int) -> tuple[int, float]:
        """Column and value of the k-th stored entry."""
        p = self.starts[i] + k
        return self.columns[p], np.float64(self.values[p])

    def prefetch_rows(self, far: int, near: int) -> None:
        """Prefetch the offsets of row ``far`` and the entries of row ``near``, whose offsets are at hand."""
        prefetch(self.starts, far)
        p, end = self.starts[near], self.starts[near + 1]
        while p < end:
            prefetch(self.columns, p)
            prefetch(self.values, p)
            prefetch(self.values, p + LINE // 2)  # they may take 8 bytes each
            p += LINE

    def prefetch_weights(self, i: int, w: Floats) -> None:
        """Nothing: w stays in the caches."""


@kernel_type
class WideCSR(CSR):
    """Compressed sparse rows of so many columns that w does not stay in the caches.

    The sums are those of CSR, in the same order; entries of w are prefetched some way ahead, without which
    half of the time is spent waiting for them.
    """

    __slots__ = ()

    def dot(self, i: int, w: Floats) -> float:
        """``<w, x_i>``."""
        t0 = t1 = t2 = t3 = 0.0
        p = self.starts[i]
        end = self.starts[i + 1]
        while p + 4 <= end:
            t0 += w[self.columns[p]] * self.values[p]
            t1 += w[self.columns[p + 1]] * self.values[p + 1]
            t2 += w[self.columns[p + 2]] * self.values[p + 2]
            t3 += w[self.columns[p + 3]] * self.values[p + 3]
            if p + _AHEAD + 4 <= end:
                prefetch(w, self.columns[p + _AHEAD])
                prefetch(w, self.columns[p + _AHEAD + 1])
                prefetch(w, self.columns[p + _AHEAD + 2])
                prefetch(w, self.columns[p + _AHEAD + 3])
            p += 4
        while p < end:
            t0 += w[self.columns[p]] * self.values[p]
            p += 1
        return (t0 + t1) + (t2 + t3)

    def add(self, i: int, scale: float, w: Floats) -> None:
        """``w += scale x_i``."""
        end = self.starts[i + 1]
        for p in range(self.starts[i], end):
            if p + _AHEAD < end:
                prefetch(w, self.columns[p + _AHEAD])
            w[self.columns[p]] += scale * np.float64(self.values[p])

    def prefetch_weights(self, i: int, w: Floats) -> None:
        """Prefetch the entries of w at the first columns; ``dot`` and ``add`` prefetch the others."""
        first, end = self.starts[i], self.starts[i + 1]
        for p in range(first, end if end < first + _AHEAD else first + _AHEAD):
            prefetch(w, self.columns[p])
