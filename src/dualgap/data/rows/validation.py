"""From a matrix of the user to rows: faults are found, and the squared lengths.

This is NumPy where it can be: what looks at the rows once must not take longer to compile than to run.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...runtime.arrays import Columns, Floats, Offsets, Values, canonical
from ...runtime.checks import as_matrix
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ...runtime.threads import in_threads
from .batch import Rows, entry_count, row_count
from .common import BROKEN, EXTREME, NOT_FINITE, UNORDERED
from .csr import CSR, MANY, WideCSR
from .dense import Dense, HalfDense, matrix_as

_STRETCH = 50_000  # columns that are looked at at a time, so that they stay in the cache
_SHARE = 250_000  # entries that make a thread worth its start


class Validated(NamedTuple):
    """Rows without a fault."""

    rows: Rows
    width: int
    squares: Floats  # squared Euclidean lengths


def as_rows(X: Any, threads: int = 1) -> Validated:
    """Rows over the caller's own arrays, where these fit as they are, validated in one pass.

    Values stay float32 or float64, those of dense rows float16 too; small integers become float32, which
    holds them exactly. A row may list its columns in any order; entries that name a column twice are summed.
    """
    rows: Rows
    matrix: Any = X
    if sp.issparse(X):
        matrix = matrix if matrix.format == "csr" else matrix.tocsr()
        rows, width = _sparse_rows(matrix), matrix.shape[1]
    else:
        matrix = as_matrix(X)
        if matrix.ndim != 2:
            raise InputError(
                f"X has {matrix.ndim} dimension{'s' * (matrix.ndim != 1)}, shape {matrix.shape}; it must "
                "have 2, "
                "rows by columns (X.reshape(-1, 1) for a single column, X.reshape(1, -1) for a single row)"
            )
        rows, width = dense_rows(matrix), matrix.shape[1]
    squares, fault, row = _validated(rows, width, threads)
    if fault == UNORDERED and isinstance(rows, CSR) and _repeats(rows, width):
        summed = matrix.copy()
        summed.sum_duplicates()
        return as_rows(summed, threads)
    if fault > UNORDERED:
        raise InputError(_message(rows, width, fault, row, squares))
    return Validated(rows, width, canonical(squares, np.float64))


def squared_lengths(rows: Rows, width: int, first: int = 0) -> Floats:
    """``|x_i|^2`` of rows that nobody has validated; errors count rows from ``first``."""
    squares, fault, row = _validated(rows, width, 1)
    if fault > UNORDERED:
        raise InputError(_message(rows, width, fault, row, squares, first))
    return canonical(squares, np.float64)


def squares(rows: Rows, count: int) -> Floats:
    """``|x_i|^2`` of the first rows, which have been validated before."""
    found = np.empty(count)
    _fill(rows, 0, count, found)
    return found


def _fill(rows: Rows, first: int, last: int, squares: Floats) -> None:
    """The squared lengths of rows first to last - 1; those in float16 are widened some at a time."""
    step = last - first
    if isinstance(rows, HalfDense):
        step = _STRETCH // max(rows.matrix.shape[1], 1)
    step = max(step, 1)
    for begin in range(first, last, step):
        end = min(begin + step, last)
        _fill_squares(*_stretches(rows, begin, end), squares[begin - first : end - first])


def _stretches(rows: Rows, first: int, last: int) -> tuple[Values, Offsets]:
    """The values of rows first to last - 1 as one array, and where each row begins in it."""
    if isinstance(rows, CSR):
        return rows.values, rows.starts[first : last + 1]
    if isinstance(rows, HalfDense):
        return _stretches(_as_float32(rows, slice(first, last)), 0, last - first)
    width = rows.matrix.shape[1]
    starts = np.arange(first * width, last * width + 1, max(width, 1))
    return rows.matrix.reshape(-1), canonical(starts if width else np.zeros(last - first + 1), np.int64)


def _as_float32(rows: HalfDense, some: Any) -> Dense:
    """Some rows in float32, which holds them exactly."""
    return Dense(canonical(matrix_as(HalfDense(rows.matrix[some]), np.float32), np.float32))


def dense_rows(matrix: Any) -> Dense:
    """Rows over a matrix in C order, in its own type if that is float16, float32 or float64."""
    if matrix.dtype.kind == "f" and matrix.dtype.itemsize == 2:
        bits: Any = canonical(matrix, np.float16).view(np.uint16)
        return HalfDense(bits)
    return Dense(canonical(matrix, value_type(matrix.dtype)))


def value_type(dtype: np.dtype[Any]) -> type[np.floating[Any]]:
    """The type that values of another are held in, unless they are dense and float16."""
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
        canonical(matrix.data, value_type(matrix.data.dtype)), columns, starts
    )


def _message(rows: Rows, width: int, fault: int, row: int, squares: Floats, before: int = 0) -> str:
    if fault == BROKEN:
        return (
            f"row {before + row} of X is no valid CSR row: a column beyond {width - 1} or offsets out of "
            "order"
        )
    if fault == NOT_FINITE:
        columns: Any = np.arange(width)
        values: Any = rows.matrix[row] if isinstance(rows, Dense) else None
        if isinstance(rows, HalfDense):
            values = values.view(np.float16)
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


def _validated(rows: Rows, width: int, threads: int) -> tuple[Floats, int, int]:
    """Squared lengths, the worst fault there is, and the first row that has it, or -1."""
    squares = np.empty(row_count(rows))
    count = max(1, min(4 * threads if threads > 1 else 1, entry_count(rows) // _SHARE, squares.size))
    edges = [squares.size * k // count for k in range(count + 1)]
    parts = list(pairwise(edges))
    found = in_threads(lambda part: _validate(rows, width, squares, *part), parts, min(threads, count))
    worst = max(fault for fault, _ in found)
    return squares, worst, min((row for fault, row in found if fault == worst), default=-1)


def _validate(rows: Rows, width: int, squares: Floats, first: int, last: int) -> tuple[int, int]:
    """Fill in the squared lengths of rows; return their worst fault and the first row with it, or (0, -1)."""
    fault, row = _fault_of_columns(rows, width, first, last) if isinstance(rows, CSR) else (0, -1)
    if fault == BROKEN:
        return fault, row
    _fill(rows, first, last, squares[first:last])
    sound = (squares[first:last] >= 1e-200) & (squares[first:last] <= 1e200)  # NaN is not
    if not sound.all():
        some = first + np.flatnonzero(~sound)
        if isinstance(rows, CSR):
            some = some[rows.starts[some] < rows.starts[some + 1]]  # rows without an entry are sound as well,
        else:
            some = some[rows.matrix[some].any(axis=1)]  # and so are zeros
        fault, row = max((fault, row), _fault_among(rows, some)) if some.size else (fault, row)
    return fault, row


def _fault_among(rows: Rows, some: Any) -> tuple[int, int]:
    """As `_fault_of_values`; float16 in kernels need not know infinity and NaN."""
    if not isinstance(rows, HalfDense):
        return _fault_of_values(rows, some)
    fault, place = _fault_of_values(_as_float32(rows, some), np.arange(some.size))
    return fault, int(some[place]) if place >= 0 else -1


def _fault_of_columns(rows: CSR, width: int, first: int, last: int) -> tuple[int, int]:
    """The fault of offsets and columns of rows first to last - 1, and the first row that is broken, or -1."""
    starts = rows.starts[first : last + 1]
    wrong = (starts[:-1] < 0) | (starts[:-1] > starts[1:]) | (starts[1:] > rows.columns.shape[0])
    count = int(np.argmax(wrong)) if wrong.any() else last - first  # rows before the first with wrong offsets
    begin, end = (int(starts[0]), int(starts[count])) if count else (0, 0)
    columns, falls = rows.columns[begin:end], 0
    for p in range(0, end - begin, _STRETCH):
        some = columns[p : p + _STRETCH + 1]
        if some.max() >= width:
            place = begin + p + int(np.argmax(some >= width))
            return BROKEN, first + int(np.searchsorted(starts[: count + 1], place, side="right")) - 1
        falls += int(np.count_nonzero(some[1:] <= some[:-1]))
    if count < last - first:
        return BROKEN, first + count
    begins = starts[1:-1] - begin  # from one row to the next columns may fall
    if not (starts[1:] > starts[:-1]).all():  # picking takes longer than all the rest
        begins = begins[(starts[1:-1] > starts[:-2]) & (begins < end - begin)]
    falls -= int(np.count_nonzero(columns[begins] <= columns[begins - 1]))
    return (UNORDERED, -1) if falls else (0, -1)


@kernel
def _fill_squares(values: Values, starts: Offsets, squares: Floats) -> None:
    """``squares[i] = |x_i|^2``, each in four partial sums; the same for a row alone and within its matrix."""
    for i in range(squares.shape[0]):
        t0 = t1 = t2 = t3 = 0.0
        p, end = starts[i], starts[i + 1]
        while p < end:
            v = np.float64(values[p])
            t0 += v * v
            if p + 4 <= end:
                v = np.float64(values[p + 1])
                t1 += v * v
                v = np.float64(values[p + 2])
                t2 += v * v
                v = np.float64(values[p + 3])
                t3 += v * v
                p += 3
            p += 1
        squares[i] = (t0 + t1) + (t2 + t3)


@kernel
def _fault_of_values(rows: Any, some: Any) -> tuple[int, int]:
    """The worst fault of rows whose squared lengths are out of range, and the first row with it, or (0, -1).
    It is none where all values are 0.
    """
    worst, where = 0, -1
    for i in some:
        fault = 0
        for k in range(rows.count(i)):
            _, value = rows.entry(i, k)
            if not np.isfinite(value):
                return NOT_FINITE, i
            if value != 0.0:
                fault = EXTREME
        if fault > worst:
            worst, where = fault, i
    return worst, where


def _repeats(rows: CSR, width: int) -> bool:
    """Whether a row names a column twice."""
    return int(_first_repeated(rows.columns, rows.starts, np.full(width, -1, dtype=np.int64))) >= 0


@kernel
def _first_repeated(columns: Columns, starts: Offsets, seen: Offsets) -> int:
    """The first row that names a column twice, or -1; ``seen`` holds -1 for every column."""
    for i in range(starts.shape[0] - 1):
        for p in range(starts[i], starts[i + 1]):
            if seen[columns[p]] == i:
                return i
            seen[columns[p]] = i
    return -1
