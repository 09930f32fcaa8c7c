"""Rows: CSR, WideCSR (very many columns), Dense or HalfDense (float16). Only this package asks which.

Methods that kernels call: ``dot(i, w)``, ``add(i, scale, w)``, ``count(i)`` (stored entries), ``entry(i, k)``
(the k-th of them), and, some visits ahead, ``prefetch_rows(far, near)`` (the offsets of one row, and what
they tell of another) and ``prefetch_weights(i, w)`` (the entries of w at the row's first columns). Sums run
in float64 whatever the values are stored in.
"""

from __future__ import annotations

from .batch import (
    Batch,
    Rows,
    as_csr,
    as_matrix,
    entries_where,
    entry_count,
    row_count,
    slice_rows,
    sparse_rows,
)
from .csr import CSR, MANY, WideCSR
from .dense import Dense, HalfDense, matrix_as
from .validation import Validated, as_rows, dense_rows, squared_lengths, squares, value_type

__all__ = [
    "CSR",
    "MANY",
    "Batch",
    "Dense",
    "HalfDense",
    "Rows",
    "Validated",
    "WideCSR",
    "as_csr",
    "as_matrix",
    "as_rows",
    "dense_rows",
    "entries_where",
    "entry_count",
    "matrix_as",
    "row_count",
    "slice_rows",
    "sparse_rows",
    "squared_lengths",
    "squares",
    "value_type",
]
