"""Scaling of rows as they are read: by one factor, by columns, or to unit length.

A number       every value is multiplied by it
``max-abs``    every column is divided by its largest absolute value in the training rows
``unit-rows``  every row is divided by its Euclidean length

A model keeps the scaling and applies it to whatever it is given; its weights and its certificate are those of
the scaled rows. Scaled values are float64 whatever the rows are stored in, so the same rows in float32 (where
that loses nothing) and in float64, sparse and dense, in memory and on disk, are the same scaled rows to the
bit, and the same problem. A zero stays a zero, so sparse rows stay sparse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..runtime.arrays import Floats
from ..runtime.checks import number, shown
from ..runtime.errors import InputError, nearest

MAX_ABS, UNIT_ROWS = "max-abs", "unit-rows"
_ENTRIES = 1 << 20  # whose squares are held at a time


@dataclass(frozen=True, eq=False)
class Scaling:
    """What rows are multiplied or divided by."""

    name: str  # "max-abs", "unit-rows" or a number, as ``fit(scale=)`` and ``--scale`` take it
    columns: Floats | None = None  # of "max-abs": the divisor of each column

    def apply(self, X: Any) -> Any:
        """A scaled copy of a matrix, in float64: CSR of a sparse one, dense of a dense one."""
        if self.columns is not None and X.shape[1] != self.columns.size:
            raise InputError(
                f"X has {X.shape[1]} columns, and those of the training rows, by which it is to be scaled, "
                f"are {self.columns.size}; they must be equally many"
            )
        if sp.issparse(X):
            rows = _canonical_rows(X)
            values = self.values(rows.data, rows.indices, rows.indptr)
            return sp.csr_array((values, rows.indices, rows.indptr), shape=rows.shape)
        dense: Floats = np.array(X, dtype=np.float64)
        if self.columns is not None:
            dense /= self.columns
        elif self.name == UNIT_ROWS:
            n, d = dense.shape
            dense /= _lengths(dense.reshape(-1), np.arange(n + 1) * d)[:, None]
        else:
            dense *= float(self.name)
        return dense

    def values(self, values: Any, columns: Any, starts: Any) -> Floats:
        """The scaled values of CSR rows; ``starts`` tells which entries are theirs."""
        part = slice(int(starts[0]), int(starts[-1]))
        scaled: Floats = values[part].astype(np.float64)
        if self.columns is not None:
            scaled /= self.columns[columns[part]]
        elif self.name == UNIT_ROWS:
            scaled /= np.repeat(_lengths(scaled, starts - starts[0]), np.diff(starts))
        else:
            scaled *= float(self.name)
        return scaled


def scale_name(scale: Any) -> str | None:
    """What a user asks for, as a name: "max-abs", "unit-rows" or a number; None for none."""
    if scale is None:
        return None
    if isinstance(scale, str):
        name = scale.replace("_", "-")
        if name in (MAX_ABS, UNIT_ROWS):
            return name
        try:
            scale = float(scale)
        except ValueError:
            known = "a number", MAX_ABS, UNIT_ROWS
            raise InputError(f"scale={shown(scale)} is not known; {nearest(name, known)}") from None
    return repr(number("scale", scale))


def fitted(name: str, matrices: Iterable[Any], d: int) -> Scaling:
    """A scaling of that name; one by columns looks at the training rows, which may come in parts."""
    if name != MAX_ABS:
        return Scaling(name)
    largest = np.zeros(d)
    for X in matrices:
        if sp.issparse(X):
            rows = _canonical_rows(X)
            np.maximum.at(largest, rows.indices, np.abs(rows.data.astype(np.float64, copy=False)))
        elif X.shape[0]:
            ends = X.max(axis=0).astype(np.float64), -X.min(axis=0).astype(np.float64)
            largest = np.maximum(largest, np.maximum(*ends))
    return Scaling(name, _divisors(largest))


def _canonical_rows(X: Any) -> Any:
    """CSR in which no row names a column twice: the two would be one larger value."""
    rows = X.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _lengths(values: Floats, starts: Any) -> Floats:
    """Euclidean lengths of rows, each a sum in the order of its entries, to which zeros add nothing."""
    found = np.empty(starts.size - 1)
    for first, last in _spans(starts):
        part = slice(int(starts[first]), int(starts[last]))
        rows = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
        squares = np.square(values[part])
        found[first:last] = np.bincount(rows, weights=squares, minlength=last - first)
    return _divisors(np.sqrt(found))


def _spans(starts: Any) -> Iterator[tuple[int, int]]:
    """Ranges of rows that have some million entries each."""
    n, entries = starts.size - 1, int(starts[-1])
    count = max(1, min(n, -(-entries // _ENTRIES)))
    return pairwise(n * k // count for k in range(count + 1))


def _divisors(sizes: Floats) -> Floats:
    """Sizes to divide by; 1 for what is empty, and for what is too large or small, which is refused later."""
    return np.where(np.isfinite(sizes) & (sizes > 0.0), sizes, 1.0)
