"""Rows of either layout, and batches of them for kernels."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from ...runtime.arrays import Floats, canonical
from .csr import CSR
from .dense import Dense, HalfDense

Rows: TypeAlias = CSR | Dense


class Batch(NamedTuple):
    """A contiguous batch of rows with targets, weights and squared norms: what a kernel is given."""

    rows: Rows
    y: Floats
    weight: Floats
    squared_norms: Floats  # squared Euclidean lengths


def row_count(rows: Rows) -> int:
    """The number of rows."""
    return int(rows.starts.shape[0] - 1 if isinstance(rows, CSR) else rows.matrix.shape[0])


def slice_rows(rows: Rows, first: int, last: int) -> Rows:
    """Rows first to last - 1, without a copy."""
    if isinstance(rows, CSR):
        return type(rows)(rows.values, rows.columns, rows.starts[first : last + 1])
    return type(rows)(rows.matrix[first:last])


def entries_where(rows: Rows, chosen: Any) -> int:
    """The number of stored entries of the chosen rows, one truth value a row."""
    if isinstance(rows, CSR):
        return int(np.diff(rows.starts) @ chosen)  # np.sum(..., where=chosen) takes up to seven times as long
    return int(np.count_nonzero(chosen) * rows.matrix.shape[1])


def entry_count(rows: Rows) -> int:
    """The number of stored entries."""
    return int(rows.starts[-1] - rows.starts[0]) if isinstance(rows, CSR) else rows.matrix.size


def sparse_rows(rows: Rows, first: int, last: int) -> CSR:
    """Rows first to last - 1 as sparse ones, of which dense rows are a copy; float16 becomes float32."""
    if isinstance(rows, CSR):
        return CSR(rows.values, rows.columns, rows.starts[first : last + 1])
    matrix = as_matrix(rows, rows.matrix.shape[1])[first:last]
    n, d = matrix.shape
    columns = np.tile(np.arange(d, dtype=np.uint32), n)
    values = canonical(matrix, np.promote_types(matrix.dtype, np.float32)).reshape(-1)
    return CSR(values, columns, np.arange(0, n * d + 1, d, dtype=np.int64))


def as_csr(X: Any, *, copy: bool = False) -> Any:
    """A matrix, dense or sparse, as SciPy's CSR, which has no float16 (such values become float32) and no
    foreign byte order.
    """
    if isinstance(X, np.ndarray):
        half = X.dtype.kind == "f" and X.dtype.itemsize == 2
        X = X.astype(np.float32 if half else X.dtype.newbyteorder("="), copy=False)
    return sp.csr_array(X, copy=copy)


def as_matrix(rows: Rows, d: int) -> Any:
    """All rows, of d columns, as a NumPy array or a SciPy CSR array; nothing is copied."""
    if isinstance(rows, HalfDense):
        return rows.matrix.view(np.float16)
    if not isinstance(rows, CSR):
        return rows.matrix
    columns = rows.columns.view(np.int32)  # d < 2^31
    return sp.csr_array((rows.values, columns, rows.starts), shape=(row_count(rows), d), copy=False)
