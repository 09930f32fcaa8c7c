"""How a row of data is stored: CSR or Dense. Nothing else in the project asks which.

The methods that kernels call: ``dot(i, w)``, ``add(i, scale, w)``, ``count(i)`` (stored entries), ``square(i)``, and
``announce(i)`` / ``prefetch(i)``: ask for what ``prefetch(i)`` reads, then for the row itself, some visits ahead.
Sums run in float64 whatever the values are stored in. Column numbers are uint32: without the test for negative
indices that signed ones get, a gather runs 1.3 times as fast.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from .arrays import Columns, Floats, Offsets, Values, canonical
from .errors import InputError
from .jit import kernel, kernel_type, prefetch

_LINE = 16  # entries of 4 bytes in a cache line


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

    def square(self, i: int) -> float:
        """``|x_i|^2``."""
        total = 0.0
        for p in range(self.starts[i], self.starts[i + 1]):
            value = np.float64(self.values[p])
            total += value * value
        return total

    def largest(self, i: int) -> float:
        """The largest absolute value."""
        found = 0.0
        for p in range(self.starts[i], self.starts[i + 1]):
            found = max(found, abs(np.float64(self.values[p])))
        return found

    def announce(self, i: int) -> None:
        """Fetch where the row is."""
        prefetch(self.starts, i)

    def prefetch(self, i: int) -> None:
        """Fetch the row."""
        for p in range(self.starts[i], self.starts[i + 1], _LINE):
            prefetch(self.columns, p)
            prefetch(self.values, p)


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _dense_dot(row: Values, w: Floats) -> float:
    """Reassociation lets this one loop use vector instructions (3 to 6 times as fast); a gather gains nothing by it."""
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

    def square(self, i: int) -> float:
        """``|x_i|^2``."""
        total = 0.0
        for j in range(self.matrix.shape[1]):
            value = np.float64(self.matrix[i, j])
            total += value * value
        return total

    def largest(self, i: int) -> float:
        """The largest absolute value."""
        found = 0.0
        for j in range(self.matrix.shape[1]):
            found = max(found, abs(np.float64(self.matrix[i, j])))
        return found

    def announce(self, i: int) -> None:
        """Where a dense row is needs no look-up."""

    def prefetch(self, i: int) -> None:
        """Fetch the head of the row; the processor sees the rest coming."""
        for j in range(0, min(self.matrix.shape[1], 8 * _LINE), _LINE):
            prefetch(self.matrix[i], j)


Rows: TypeAlias = CSR | Dense


def as_rows(X: Any) -> tuple[Rows, int]:
    """Rows over the caller's own arrays wherever these already fit, and the number of columns.

    Values stay float32 or float64; small integers become float32, which holds them exactly. A row may list its
    columns in any order; entries that name a column twice are summed.
    """
    rows: Rows
    if sp.issparse(X):
        rows, width = _sparse_rows(X)
    else:
        matrix = np.asarray(X)
        if matrix.ndim != 2:
            raise InputError(
                f"X has {matrix.ndim} dimension{'s' * (matrix.ndim != 1)}, shape {matrix.shape}; it must have 2, "
                "rows by columns (X.reshape(-1, 1) for a single column, X.reshape(1, -1) for a single row)"
            )
        rows, width = Dense(canonical(matrix, _value_type(matrix.dtype))), matrix.shape[1]
    _refuse_bad_values(rows)
    return rows, width


def squares(rows: Rows) -> Floats:
    """``|x_i|^2`` for every row, or an error where it is so extreme that products with it might not fit float64."""
    found = np.empty(row_count(rows))
    bad = _squares(rows, found)
    if bad >= 0:
        size = "large" if found[bad] > 1.0 else "small"
        raise InputError(
            f"row {bad} of X has values so {size} (beyond 1e100 or below 1e-100) that products with them may not fit "
            "into float64; rescale the columns of X"
        )
    return found


def row_count(rows: Rows) -> int:
    """The number of rows."""
    return int(rows.starts.shape[0] - 1 if isinstance(rows, CSR) else rows.matrix.shape[0])


def slice_rows(rows: Rows, first: int, last: int) -> Rows:
    """Rows first to last - 1, without a copy."""
    if isinstance(rows, CSR):
        return CSR(rows.values, rows.columns, rows.starts[first : last + 1])
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


def _sparse_rows(X: Any) -> tuple[CSR, int]:
    matrix = X if X.format == "csr" else X.tocsr()
    if len(matrix.shape) != 2:
        raise InputError(f"X has shape {matrix.shape}; it must have 2 dimensions, rows by columns")
    width = matrix.shape[1]
    if width > 2**32:
        raise InputError(f"X has {width} columns; at most 2**32 are supported, so hash them to fewer")
    starts = canonical(matrix.indptr, np.int64)
    indices = matrix.indices
    if starts.shape != (matrix.shape[0] + 1,) or indices.shape != matrix.data.shape:
        raise InputError(
            f"X is no valid CSR matrix: {matrix.shape[0]} rows, {starts.size} offsets, {indices.size} columns, "
            f"{matrix.data.size} values; there must be one offset more than rows, and as many columns as values"
        )
    columns = canonical(indices.view(np.uint32) if indices.dtype == np.int32 else indices, np.uint32)
    if indices.dtype.itemsize > 4 and indices.size and (indices.min() < 0 or indices.max() >= width):
        raise InputError(f"X names column {indices.min() if indices.min() < 0 else indices.max()} of {width}")
    rows = CSR(canonical(matrix.data, _value_type(matrix.data.dtype)), columns, starts)
    fault, row = _check_structure(rows, width)
    if fault == _BROKEN:
        raise InputError(f"row {row} of X is no valid CSR row: a column beyond {width - 1} or offsets out of order")
    if fault == _UNORDERED and _first_repeated(rows, width) >= 0:
        summed = matrix.copy()
        summed.sum_duplicates()
        return _sparse_rows(summed)
    return rows, width


def _refuse_bad_values(rows: Rows) -> None:
    first, last = (rows.starts[0], rows.starts[-1]) if isinstance(rows, CSR) else (0, rows.matrix.size)
    values = rows.values if isinstance(rows, CSR) else rows.matrix.reshape(-1)
    bad = _first_not_finite(values, first, last)
    if bad < 0:
        return
    if isinstance(rows, CSR):
        row = int(np.searchsorted(rows.starts, bad, side="right")) - 1
        column = int(rows.columns[bad])
    else:
        row, column = divmod(bad, rows.matrix.shape[1])
    raise InputError(
        f"X contains {'NaN' if np.isnan(values[bad]) else 'infinity'} at row {row}, column {column}; "
        "fill or drop missing values and clip infinite ones first"
    )


_BROKEN, _UNORDERED = 1, 2


@kernel
def _check_structure(rows: CSR, width: int) -> tuple[int, int]:
    """(0, -1) if every row lists rising columns below width, else what is wrong and the first row where it is."""
    unordered = -1
    for i in range(rows.starts.shape[0] - 1):
        if rows.starts[i] < 0 or rows.starts[i] > rows.starts[i + 1] or rows.starts[i + 1] > rows.columns.shape[0]:
            return _BROKEN, i
        before = np.int64(-1)
        for p in range(rows.starts[i], rows.starts[i + 1]):
            column = np.int64(rows.columns[p])
            if column >= width:
                return _BROKEN, i
            if column <= before and unordered < 0:
                unordered = i
            before = column
    return (_UNORDERED, unordered) if unordered >= 0 else (0, -1)


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


@kernel
def _first_not_finite(values: Any, first: int, last: int) -> int:
    for p in range(first, last):
        if not np.isfinite(values[p]):
            return p
    return -1


@kernel
def _squares(rows: Any, found: Floats) -> int:
    """Fill in the squared norms; the first row whose norm is too large, or too small though not 0, or -1."""
    for i in range(found.shape[0]):
        found[i] = rows.square(i)
        if not found[i] <= 1e200 or (found[i] < 1e-200 and rows.largest(i) > 0.0):
            return i
    return -1
