"""A description of a file of rows, from one pass: counts, labels, ranges, scales, repeated rows."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..runtime.arrays import Words
from ..runtime.errors import InputError
from .dataset import DataSpec, scan
from .fingerprint import row_hashes
from .formats import ReadOptions
from .formats.text import shown
from .label_sets import labels_in
from .memory import training_bytes
from .rows import as_csr, as_rows
from .table import Table
from .words import COMMA, NO_LABELS, Vocabulary, decoded

_MOST_LABELS = 1000  # beyond, they are no classes


@dataclass(frozen=True)
class Summary:
    """The description of a file that ``summarise`` returns."""

    n: int
    d: int
    nnz: int
    zero_based: bool | None
    labels: dict[Any, int] | None  # numbers or words; None: more than a classifier would have
    multilabel: bool  # some rows have several labels, or none: rows count for each of theirs
    unlabelled: int  # rows of these that have none
    label_range: tuple[float, float] | None  # None: labels are words
    empty: int
    duplicates: int  # rows with the entries and the label of an earlier row, by hashes of 64 bits
    unused: int  # columns without entries
    values: tuple[float, float]  # smallest and largest entry
    scales: tuple[
        float, float
    ]  # root mean squares over all rows, of the columns in use: smallest and largest
    norms: tuple[float, float, float]  # Euclidean lengths of rows: smallest, mean, largest
    training_bytes: int  # memory for training in memory, about

    @property
    def density(self) -> float:
        """The share of entries that are stored."""
        return self.nnz / self.n / self.d


def summarise(
    path: str | os.PathLike[str],
    columns: ReadOptions = ReadOptions(),  # noqa: B008
    y: Any = None,
    weight: Any = None,
) -> Summary:
    """Describe all rows of a file; takes 8 bytes of memory a row and 16 a column, or a little more.

    ``y`` and ``weight`` are for a file that holds rows alone.
    """
    seen = _Seen()
    for data in scan(DataSpec(path, y, weight, columns=columns)):
        seen.look(data)
    if seen.n == 0:
        raise InputError(f"{path}: no rows in it, only blank lines or comments")
    return seen.summary()


class _Seen:
    """What is known after some tables."""

    def __init__(self) -> None:
        self.n = self.nnz = self.empty = self.width = 0
        self.zero_based: bool | None = None
        self.value_bytes, self.dense = 8, False
        self.labels: dict[Any, int] | None = {}
        self.multilabel, self.unlabelled = False, 0
        self.words = Vocabulary()
        self.label_range: tuple[float, float] | None = (math.inf, -math.inf)
        self.values = (math.inf, -math.inf)
        self.norms = (math.inf, 0.0, 0.0)
        self.squares, self.counts = np.zeros(0), np.zeros(0, dtype=np.int64)
        self.hashes: list[Words] = []

    def look(self, data: Table) -> None:
        """Take in the next table."""
        X, y = as_csr(data.X), self.words.recode(data.codes, data.label_names, shown(data.path))
        if not y.size:
            return
        self.dense = not sp.issparse(data.X)
        held = as_rows(data.X[:1]).rows.matrix if self.dense else X.data  # type: ignore[union-attr]
        self.zero_based, self.value_bytes = data.zero_based, held.itemsize
        self.n += y.size
        self.nnz += int(X.nnz)
        self._look_at_labels(data)
        filled = np.flatnonzero(np.diff(X.indptr))
        firsts = X.indptr[filled]
        self.empty += y.size - filled.size
        lengths = np.zeros(y.size)
        self.width = max(self.width, X.shape[1])
        if self.squares.size < self.width:
            for array in (self.squares, self.counts):
                array.resize(max(self.width, 2 * array.size), refcheck=False)
        if X.nnz:
            with np.errstate(over="ignore"):  # of values that no solver takes
                squares = np.square(X.data, dtype=np.float64)
            np.add.at(self.squares, X.indices, squares)
            np.add.at(self.counts, X.indices, 1)
            lengths[filled] = np.sqrt(np.add.reduceat(squares, firsts))
            self.values = (min(self.values[0], float(X.data.min())), max(self.values[1], float(X.data.max())))
        self.hashes.append(row_hashes(X, y))
        low, total, high = self.norms
        self.norms = (
            min(low, float(lengths.min())),
            total + float(lengths.sum()),
            max(high, float(lengths.max())),
        )

    def _look_at_labels(self, data: Table) -> None:
        codes, counts = np.unique(data.codes, return_counts=True)
        if data.label_names is not None:
            self.label_range = None
        elif self.label_range is not None:
            low, high = self.label_range
            self.label_range = (min(low, float(codes[0])), max(high, float(codes[-1])))
        if self.labels is not None:
            labels = decoded(codes, data.label_names).tolist()
            for name, count in zip(labels, counts.tolist(), strict=True):
                several = isinstance(name, str) and COMMA in name
                self.multilabel = self.multilabel or several
                self.unlabelled += count * (name == NO_LABELS)
                for label in labels_in(name) if several else (name,):
                    self.labels[label] = self.labels.get(label, 0) + count
            if len(self.labels) > _MOST_LABELS:
                self.labels = None

    @property
    def _held(self) -> tuple[int, int, int]:
        """Entries in memory, and bytes of their values and indices."""
        dense = (self.n * self.width, self.value_bytes, 0)
        return dense if self.dense else (self.nnz, self.value_bytes, 4)

    def summary(self) -> Summary:
        """The description of all rows so far."""
        used = self.counts[: self.width] > 0
        scales = np.sqrt(self.squares[: self.width][used] / self.n)
        low, total, high = self.norms
        return Summary(
            n=self.n,
            d=self.width,
            nnz=self.nnz,
            zero_based=self.zero_based,
            labels=self.labels,
            multilabel=self.multilabel,
            unlabelled=self.unlabelled,
            label_range=self.label_range,
            empty=self.empty,
            duplicates=self.n - np.unique(np.concatenate(self.hashes)).size,
            unused=int((~used).sum()),
            values=self.values if self.nnz else (0.0, 0.0),
            scales=(float(scales.min()), float(scales.max())) if scales.size else (0.0, 0.0),
            norms=(low, total / self.n, high),
            training_bytes=training_bytes(self.n, self.width, *self._held),
        )
