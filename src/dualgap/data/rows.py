"""How a row is stored: CSR (or WideCSR, with very many columns) or Dense. Nothing else in the project asks
which.

The methods that kernels call: ``dot(i, w)``, ``add(i, scale, w)``, ``count(i)`` (stored entries), ``entry(i,
k)`` (one of them, for what the first two do not do), ``square(i)`` (its squared length), ``validate`` (a
first look), and, some visits ahead, ``prefetch_offsets(i)``, ``prefetch_row(i)`` and ``prefetch_weights(i,
w)``: fetch the offsets that the second one reads, then the row itself, then the numbers of w that the row
begins with. Sums run in float64 whatever the values are stored in. Column numbers are uint32: without the
test for negative indices that signed ones get, a gather runs 1.3 times as fast.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from ..runtime.arrays import Columns, Floats, Offsets, Values, canonical
from ..runtime.errors import InputError
from ..runtime.jit import kernel, kernel_type, prefetch
from ..runtime.threads import in_threads

_LINE = 16  # entries of 4 bytes in a cache line
MANY = 400_000  # columns: a model of so many numbers does not stay in the caches
_AHEAD = 64  # entries before they are needed, its numbers are asked for
_STRETCH = 256  # rows that a first look takes at a time
_SHARE = 250_000  # entries that it takes to be worth a thread
UNORDERED, EXTREME, NOT_FINITE, BROKEN = (
    1,
    2,
    3,
    4,
)  # what may be wrong with a row, from the mildest to the worst


@kernel
def _square(values: Values) -> float:
    """The sum of squares, in four partial sums whose order does not depend on who asks."""
    t0 = t1 = t2 = t3 = 0.0
    whole = values.shape[0] - values.shape[0] % 4
    for p in range(0, whole, 4):
        v0, v1, v2, v3 = values[p], values[p + 1], values[p + 2], values[p + 3]
        t0 += np.float64(v0) * np.float64(v0)
        t1 += np.float64(v1) * np.float64(v1)
        t2 += np.float64(v2) * np.float64(v2)
        t3 += np.float64(v3) * np.float64(v3)
    for p in range(whole, values.shape[0]):
        t0 += np.float64(values[p]) * np.float64(values[p])
    return (t0 + t1) + (t2 + t3)


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

    def square(self, i: int) -> float:
        """``|x_i|^2``."""
        return _square(self.values[self.starts[i] : self.starts[i + 1]])

    def columns_sorted(self, width: int, first: int, last: int) -> bool:
        """Whether rows first to last - 1 name columns that exist, each in order: loops for vector
        instructions.
        """
        for i in range(first, last):
            if not 0 <= self.starts[i] <= self.starts[i + 1] <= self.columns.shape[0]:
                return False
        begin = self.starts[first]
        columns = self.columns[begin : self.starts[last]]  # a slice: its indices are known not to be negative
        size = columns.shape[0]
        if size == 0:
            return True
        falls, highest = 0, columns[0]
        for p in range(1, size):
            falls += columns[p] <= columns[p - 1]
        for p in range(1, size):  # apart: in one loop they take longer
            highest = max(highest, columns[p])
        for i in range(first + 1, last):  # from one row to the next columns may fall
            p = self.starts[i] - begin
            if 0 < p < size and p != self.starts[i - 1] - begin:
                falls -= columns[p] <= columns[p - 1]
        return bool(falls == 0 and highest < width)

    def validate(self, i: int, width: int, columns_sorted: bool) -> tuple[int, float]:
        """What is wrong with a row's columns (0: nothing, as for rows with sorted columns), and its squared
        length.
        """
        first, last = self.starts[i], self.starts[i + 1]
        if first < 0 or first > last or last > self.columns.shape[0]:
            return BROKEN, 0.0
        fault = 0
        before = np.int64(-1)
        for p in range(first, first if columns_sorted else last):
            column = np.int64(self.columns[p])
            if column >= width:
                return BROKEN, 0.0
            if column <= before:
                fault = UNORDERED
            before = column
        return fault, self.square(i)

    def prefetch_offsets(self, i: int) -> None:
        """Fetch where the row is."""
        prefetch(self.starts, i)

    def prefetch_row(self, i: int) -> None:
        """Fetch the row."""
        for p in range(self.starts[i], self.starts[i + 1], _LINE):
            prefetch(self.columns, p)
            prefetch(self.values, p)
            prefetch(self.values, p + _LINE // 2)  # they may take 8 bytes each

    def prefetch_weights(self, i: int, w: Floats) -> None:
        """The model is in the caches."""


@kernel_type
class WideCSR(CSR):
    """Compressed sparse rows of so many columns that the model is not in the caches: half of the time is
    spent waiting.

    The same sums as those of CSR, in the same order; what they need next is fetched meanwhile.
    """

    __slots__ = ()

    def dot(self, i: int, w: Floats) -> float:
        """``<w, x_i>``."""
        t0 = t1 = t2 = t3 = 0.0
        p = self.starts[i]
        end = self.starts[i + 1]
        while p + 4 <= end:
            if p + _AHEAD + 4 <= end:
                prefetch(w, self.columns[p + _AHEAD])
                prefetch(w, self.columns[p + _AHEAD + 1])
                prefetch(w, self.columns[p + _AHEAD + 2])
                prefetch(w, self.columns[p + _AHEAD + 3])
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
        end = self.starts[i + 1]
        for p in range(self.starts[i], end):
            if p + _AHEAD < end:
                prefetch(w, self.columns[p + _AHEAD])
            w[self.columns[p]] += scale * np.float64(self.values[p])

    def prefetch_weights(self, i: int, w: Floats) -> None:
        """Fetch what the row begins with; ``dot`` and ``add`` fetch the rest."""
        first = self.starts[i]
        for p in range(first, min(first + _AHEAD, self.starts[i + 1])):
            prefetch(w, self.columns[p])


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _dense_dot(row: Values, w: Floats) -> float:
    """Reassociation lets this one loop use vector instructions (3 to 6 times as fast); a gather gains nothing
    by it.
    """
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
        return int(self.matrix.shape[1])

    def entry(self, i: int, k: int) -> tuple[int, float]:
        """Column and value of the k-th stored entry."""
        return np.uint32(k), np.float64(self.matrix[i, k])  # type: ignore[return-value]

    def square(self, i: int) -> float:
        """``|x_i|^2``."""
        return _square(self.matrix[i])

    def columns_sorted(self, width: int, first: int, last: int) -> bool:
        """Every column is there."""
        return True

    def validate(self, i: int, width: int, columns_sorted: bool) -> tuple[int, float]:
        """What is wrong with a row's columns, which is nothing here, and its squared length."""
        return 0, self.square(i)

    def prefetch_offsets(self, i: int) -> None:
        """Where a dense row is needs no look-up."""

    def prefetch_row(self, i: int) -> None:
        """Fetch the head of the row; the processor sees the rest coming."""
        for j in range(0, min(self.matrix.shape[1], 8 * _LINE), _LINE):
            prefetch(self.matrix[i], j)

    def prefetch_weights(self, i: int, w: Floats) -> None:
        """A dense row takes the model in its order: the processor sees it coming."""


Rows: TypeAlias = CSR | Dense


class Batch(NamedTuple):
    """A contiguous batch of rows with targets, weights and squared norms: what a kernel is given."""

    rows: Rows
    y: Floats
    weight: Floats
    squared_norms: Floats  # squared Euclidean lengths


class Surveyed(NamedTuple):
    """Rows that have been looked at: nothing is wrong with them."""

    rows: Rows
    width: int
    squares: Floats  # squared Euclidean lengths


def as_rows(X: Any, threads: int = 1) -> Surveyed:
    """Rows over the caller's own arrays wherever these already fit, checked in one pass.

    Values stay float32 or float64; small integers become float32, which holds them exactly. A row may list
    its columns in any order; entries that name a column twice are summed.
    """
    rows: Rows
    matrix: Any = X
    if sp.issparse(X):
        matrix = matrix if matrix.format == "csr" else matrix.tocsr()
        rows, width = _sparse_rows(matrix), matrix.shape[1]
    else:
        matrix = np.asarray(X)
        if matrix.ndim != 2:
            raise InputError(
                f"X has {matrix.ndim} dimension{'s' * (matrix.ndim != 1)}, shape {matrix.shape}; it must "
                "have 2, "
                "rows by columns (X.reshape(-1, 1) for a single column, X.reshape(1, -1) for a single row)"
            )
        rows, width = Dense(canonical(matrix, _value_type(matrix.dtype))), matrix.shape[1]
    squares, fault, row = _surveyed(rows, width, threads)
    if fault == UNORDERED and isinstance(rows, CSR) and _first_repeated(rows, width) >= 0:
        summed = matrix.copy()
        summed.sum_duplicates()
        return as_rows(summed, threads)
    if fault > UNORDERED:
        raise InputError(_complaint(rows, width, fault, row, squares))
    return Surveyed(rows, width, canonical(squares, np.float64))


def squared_lengths(rows: Rows, width: int, first: int = 0) -> Floats:
    """Of rows that come from elsewhere; what is wrong with them is an error that counts them from
    ``first``.
    """
    squares, fault, row = _surveyed(rows, width, 1)
    if fault > UNORDERED:
        raise InputError(_complaint(rows, width, fault, row, squares, first))
    return canonical(squares, np.float64)


@kernel
def squares(rows: Any, count: int) -> Floats:
    """Squared Euclidean lengths of rows that have been looked at before."""
    found = np.empty(count)
    for i in range(count):
        found[i] = rows.square(i)
    return found


def row_count(rows: Rows) -> int:
    """The number of rows."""
    return int(rows.starts.shape[0] - 1 if isinstance(rows, CSR) else rows.matrix.shape[0])


def slice_rows(rows: Rows, first: int, last: int) -> Rows:
    """Rows first to last - 1, without a copy."""
    if isinstance(rows, CSR):
        return type(rows)(rows.values, rows.columns, rows.starts[first : last + 1])
    return Dense(rows.matrix[first:last])


def entry_count(rows: Rows) -> int:
    """The number of stored entries."""
    return int(rows.starts[-1] - rows.starts[0]) if isinstance(rows, CSR) else rows.matrix.size


def _value_type(dtype: np.dtype[Any]) -> type[np.floating[Any]]:
    if dtype.kind in "biu":
        return np.float32 if dtype.itemsize <= 2 else np.float64
    if dtype.kind != "f":
        raise InputError(f"X holds {dtype} values; it must hold real numbers")
    return np.float32 if dtype.itemsize <= 4 else np.float64


def _sparse_rows(matrix: Any) -> CSR:
    if len(matrix.shape) != 2:
        raise InputError(f"X has shape {matrix.shape}; it must have 2 dimensions, rows by columns")
    n, width = matrix.shape
    if width > 2**32:
        raise InputError(f"X has {width} columns; at most 2**32 are supported, so hash them to fewer")
    starts, indices = canonical(matrix.indptr, np.int64), matrix.indices
    if starts.shape != (n + 1,) or indices.shape != matrix.data.shape:
        raise InputError(
            f"X is no valid CSR matrix: {n} rows, {starts.size} offsets, {indices.size} columns, "
            f"{matrix.data.size} "
            "values; there must be one offset more than rows, and as many columns as values"
        )
    if indices.dtype.itemsize > 4 and indices.size and (indices.min() < 0 or indices.max() >= width):
        raise InputError(f"X names column {indices.min() if indices.min() < 0 else indices.max()} of {width}")
    columns = canonical(indices.view(np.uint32) if indices.dtype == np.int32 else indices, np.uint32)
    return (WideCSR if width > MANY else CSR)(
        canonical(matrix.data, _value_type(matrix.data.dtype)), columns, starts
    )


def _complaint(rows: Rows, width: int, fault: int, row: int, squares: Floats, before: int = 0) -> str:
    if fault == BROKEN:
        return (
            f"row {before + row} of X is no valid CSR row: a column beyond {width - 1} or offsets out of "
            "order"
        )
    if fault == NOT_FINITE:
        columns: Any = np.arange(width)
        values: Any = rows.matrix[row] if isinstance(rows, Dense) else None
        if isinstance(rows, CSR):
            span = slice(rows.starts[row], rows.starts[row + 1])
            values, columns = rows.values[span], rows.columns[span]
        bad = int(np.argmin(np.isfinite(values)))
        what = "NaN" if np.isnan(values[bad]) else "infinity"
        return (
            f"X contains {what} at row {before + row}, column {columns[bad]}; "
            "fill or drop missing values and clip infinite ones first"
        )
    size = "large" if squares[row] > 1.0 else "small"
    return (
        f"row {before + row} of X has values so {size} (beyond 1e100 or below 1e-100) that products with "
        "them may "
        "not fit into float64; rescale the columns of X"
    )


def _surveyed(rows: Rows, width: int, threads: int) -> tuple[Floats, int, int]:
    """Squared lengths, the worst fault there is, and the first row that has it, or -1."""
    squares = np.empty(row_count(rows))
    count = max(1, min(4 * threads if threads > 1 else 1, entry_count(rows) // _SHARE, squares.size))
    edges = [squares.size * k // count for k in range(count + 1)]
    parts = list(pairwise(edges))
    found = in_threads(lambda part: _survey(rows, width, squares, *part), parts, min(threads, count))
    worst = max(fault for fault, _ in found)
    return squares, worst, min((row for fault, row in found if fault == worst), default=-1)


@kernel
def _survey(rows: Any, width: int, squares: Floats, first: int, last: int) -> tuple[int, int]:
    """Fill in the squared lengths of rows; their worst fault and the first row that has it, or (0, -1)."""
    worst, where = 0, -1
    for begin in range(
        first, last, _STRETCH
    ):  # rows that stay in the cache while they are looked at several times
        end = min(begin + _STRETCH, last)
        columns_sorted = rows.columns_sorted(width, begin, end)
        for i in range(begin, end):
            fault, squares[i] = rows.validate(i, width, columns_sorted)
            if fault != BROKEN and not 1e-200 <= squares[i] <= 1e200:  # NaN fails this too
                fault = max(fault, _fault_of_values(rows, i))
            if fault > worst:
                worst, where = fault, i
            if fault == BROKEN:
                return worst, where
    return worst, where


@kernel
def _fault_of_values(rows: Any, i: int) -> int:
    """What is wrong with a row whose squared length is out of range, if not all of its values are 0."""
    fault = 0
    for k in range(rows.count(i)):
        _, value = rows.entry(i, k)
        if not np.isfinite(value):
            return NOT_FINITE
        if value != 0.0:
            fault = EXTREME
    return fault


@kernel
def _first_repeated(rows: CSR, width: int) -> int:
    """The first row that names a column twice, or -1."""
    seen = np.full(width, -1, dtype=np.int64)
    for i in range(rows.starts.shape[0] - 1):
        for p in range(rows.starts[i], rows.starts[i + 1]):
            if seen[rows.columns[p]] == i:
                return i
            seen[rows.columns[p]] = i
    return -1
