"""Dense rows that are not all in memory, as a feed: those of an ``.npy`` file, or of a memory map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...runtime.arrays import Floats, canonical
from ...runtime.errors import InputError
from ...runtime.sums import Total, TotalByLabel
from ..chunks import Chunk, Origin
from ..labels import MOST_CLASSES
from ..rows import dense_rows, value_type
from ..sources import check_weights
from ..words import Names, are_words, coded

_ENTRIES, _CHUNKS = 1 << 19, 64  # entries of a chunk, at most; or as many as make so many chunks


class DenseRows(NamedTuple):
    """A matrix in C order, some rows of which can be had at a time."""

    name: str
    shape: tuple[int, int]
    dtype: Any
    read: Callable[[int, int], Any]  # rows first to last - 1
    steady: bool  # what has been read once is the same again


class DenseFeed:
    """Chunks of dense rows, with labels and weights that are in memory.

    Rows are held as they are where they are float16, float32 or float64. Integers of up to 16 bits become
    float32, which holds them exactly, others float64.
    """

    def __init__(self, rows: DenseRows, y: Any, weight: Any = None) -> None:
        self._rows, self.name, self.steady = rows, rows.name, rows.steady
        self.n, self.d = rows.shape
        self.nnz = self.n * self.d
        self.value_bytes = np.dtype(value_type(rows.dtype)).itemsize  # of sparse rows made of these
        half = rows.dtype.kind == "f" and rows.dtype.itemsize == 2
        self.dense_bytes = 2 if half else self.value_bytes
        self._y, names = labels_of(self.name, y, self.n)
        self._weight = None if weight is None else weights_of(self.name, weight, self.n)
        self.origin = Origin(label_names=names)
        share = np.ones(self.n) if self._weight is None else self._weight
        total = Total()
        total.add(share)
        self.total_weight = total.value
        self.epoch_size = int(np.count_nonzero(share))
        if not self.epoch_size:
            raise InputError(f"{self.name}: no rows, or none of positive weight")
        found, places = np.unique(self._y, return_inverse=True)
        self.labels: list[tuple[float, float]] | None = None
        if found.size <= MOST_CLASSES:
            weights = TotalByLabel()
            weights.add(found, places, share)
            self.labels = weights.sorted()
        self._step = max(1, min(_ENTRIES, self.nnz // _CHUNKS) // self.d)
        self.chunks = -(-self.n // self._step)
        size = self._step * self.d
        converted = 0 if rows.dtype.itemsize == self.dense_bytes else rows.dtype.itemsize
        self.chunk_bytes = size * (self.dense_bytes + converted) + 24 * self._step

    def with_labels(self, y: Any) -> DenseFeed:
        """The same rows and weights with other labels."""
        return DenseFeed(self._rows, y, self._weight)

    def load(self, k: int, first: bool) -> Chunk:
        """Rows k * step to (k + 1) * step - 1."""
        span = self._span(k)
        return Chunk(dense_rows(self._rows.read(span.start, span.stop)), *self.labelled(k), span)

    def labelled(self, k: int) -> tuple[Floats, Floats | None]:
        """Labels and weights of a chunk."""
        span = self._span(k)
        return self._y[span], None if self._weight is None else self._weight[span]

    def _span(self, k: int) -> slice:
        return slice(k * self._step, min((k + 1) * self._step, self.n))


def labels_of(name: str, y: Any, n: int) -> tuple[Floats, Names]:
    """Labels of n rows as numbers, and their names if they are words."""
    found = np.asarray(y)
    if found.ndim != 1:
        raise InputError(f"{name}: its labels have shape {found.shape}; give one a row, in one dimension")
    if found.size != n:
        raise InputError(f"{name}: has {n} rows and there are {found.size} labels; they must be equally many")
    if found.dtype.kind not in "biuf" and not are_words(found):
        raise InputError(f"{name}: its labels are {found.dtype}; they must be numbers or words")
    codes, names = coded(found, f"the labels of {name}")
    finite = np.isfinite(codes)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(f"{name}: the label of row {row} is {codes[row]}; labels must be finite numbers")
    return canonical(codes, np.float64), names


def weights_of(name: str, weight: Any, n: int) -> Floats:
    """Weights of n rows."""
    found = np.asarray(weight)
    if found.shape != (n,) or found.dtype.kind not in "biuf":
        raise InputError(
            f"{name}: its weights are {found.dtype} of shape {found.shape}; give a number for each of its "
            f"{n} rows"
        )
    weights = canonical(found, np.float64)
    check_weights(weights, f"{name}: weight")
    return weights
