"""Dense rows.

Those in float16 are kept as they are, and widened number by number in the registers of a kernel.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...runtime.arrays import Floats, Values
from ...runtime.half import converts_half, widened
from ...runtime.jit import inner, kernel, kernel_type, prefetch
from .common import LINE


@inner(fastmath={"reassoc", "contract", "nsz"})
def _dense_dot(row: Values, w: Floats) -> float:
    """``<w, x>``. Reassociation allows vector instructions, which are 3 to 6 times as fast."""
    total = 0.0
    for j in range(row.shape[0]):
        total += np.float64(row[j]) * w[j]
    return total


@kernel_type
class Dense(NamedTuple):
    """A C-contiguous matrix."""

    matrix: Values

    def dot(self, i: int, w: Floats) -> float:
        """``<w, x_i>``."""
        return _dense_dot(self.matrix[i], w)

    def add(self, i: int, scale: float, w: Floats) -> None:
        """``w += scale x_i``."""
        for j in range(self.matrix.shape[1]):
            w[j] += scale * np.float64(self.matrix[i, j])

    def count(self, i: int) -> int:
        """The number of stored entries."""
        return self.matrix.shape[1]  # type: ignore[no-any-return]

    def entry(self, i: int, k: int) -> tuple[int, float]:
        """Column and value of the k-th stored entry."""
        return np.uint32(k), np.float64(self.matrix[i, k])  # type: ignore[return-value]

    def prefetch_rows(self, far: int, near: int) -> None:
        """Prefetch the head of row ``near``; the processor's own prefetcher sees the rest coming."""
        width = self.matrix.shape[1]
        for j in range(0, width if width < 8 * LINE else 8 * LINE, LINE):
            prefetch(self.matrix[near], j)

    def prefetch_weights(self, i: int, w: Floats) -> None:
        """Nothing: w is read in order, which the processor's own prefetcher sees coming."""


@inner(fastmath={"reassoc", "contract", "nsz"})
def _half_dot(row: Values, w: Floats) -> float:
    """``<w, x>``, the sum of `_dense_dot` in its order."""
    total = 0.0
    for j in range(row.shape[0]):
        total += widened(row[j]) * w[j]
    return total


@kernel_type
class HalfDense(Dense):
    """A C-contiguous matrix in float16; kernels see a view of its bits as uint16."""

    __slots__ = ()

    def dot(self, i: int, w: Floats) -> float:
        """``<w, x_i>``."""
        return _half_dot(self.matrix[i], w)

    def add(self, i: int, scale: float, w: Floats) -> None:
        """``w += scale x_i``."""
        for j in range(self.matrix.shape[1]):
            w[j] += scale * widened(self.matrix[i, j])

    def entry(self, i: int, k: int) -> tuple[int, float]:
        """Column and value of the k-th stored entry."""
        return np.uint32(k), widened(self.matrix[i, k])  # type: ignore[return-value]


def matrix_as(rows: Dense, dtype: Any) -> Any:
    """All rows as an array of float32 or float64; a copy only where they are stored otherwise. NumPy takes
    ten times as long for float16 as the processor's own instructions do.
    """
    if not isinstance(rows, HalfDense):
        return rows.matrix.astype(dtype, copy=False)
    if not _converts():
        return rows.matrix.view(np.float16).astype(dtype)
    found = np.empty(rows.matrix.shape, dtype=dtype)
    _widen(rows.matrix, found)
    return found


@cache
def _converts() -> bool:
    """As `converts_half`, which takes a millisecond to find out."""
    return converts_half()


@kernel
def _widen(bits: Values, out: Any) -> None:
    """``out = bits``, as numbers."""
    for i in range(bits.shape[0]):
        for j in range(bits.shape[1]):
            out[i, j] = widened(bits[i, j])
