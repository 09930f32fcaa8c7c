"""Feeds of anything that yields chunks of rows again and again; the rows of a feed as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...runtime.arrays import Floats, canonical
from ...runtime.errors import InputError
from ...runtime.sums import Total, TotalByLabel
from ..chunks import Chunk, Feed, Origin
from ..labels import MOST_CLASSES
from ..rows import CSR, as_csr, sparse_rows
from ..sources import view
from ..table import Table, joined
from ..words import Vocabulary, are_words, coded
from .arrow.feed import StoreFeed


class ChunkFeed:
    """Chunks of rows from a function that begins an iterator over them: ``(X, y)`` or ``(X, y,
    sample_weight)``. Labels ``y`` are numbers or words.

    It is called for every pass, and must yield the same chunks each time. All chunks are read once at the
    beginning, to know how many rows and columns there are.
    """

    steady = False
    dense_bytes = 0

    def __init__(
        self,
        start: Callable[[], Iterable[Any]],
        *,
        name: str = "chunks",
        n_features: int | None = None,
        feature_names: tuple[str, ...] | None = None,
    ) -> None:
        self._start, self.name = start, name
        self._iterator: Iterator[Any] = iter(())
        self._next = -1
        sizes, self.nnz, self.epoch_size, self.d = [], 0, 0, n_features or 0
        total = Total()
        words = Vocabulary()
        weights: TotalByLabel | None = TotalByLabel()
        self.value_bytes, self.chunk_bytes = 4, 0
        for X, y, weight in map(_parts, start()):
            y, names = coded(y, name) if are_words(np.asarray(y)) else (y, None)
            rows = view(X, y, weight if weight is None or np.any(weight) else None)
            sizes.append(rows.n)
            self.nnz += rows.nnz
            self.d = max(self.d, rows.d)
            share = np.ones(rows.n) if weight is None else np.asarray(weight, dtype=np.float64)
            total.add(share)
            self.epoch_size += int(np.count_nonzero(share))
            self.value_bytes = max(self.value_bytes, _value_bytes(X))
            self.chunk_bytes = max(self.chunk_bytes, 12 * rows.nnz + 40 * rows.n)
            labels = words.recode(rows.y, names, name)
            if weights is not None:
                weights.add(*np.unique(labels, return_inverse=True), share)
                weights = weights if len(weights) <= MOST_CLASSES else None
        if not sizes or not self.epoch_size:
            raise InputError(f"{name}: no rows, or none of positive weight")
        self.total_weight = total.value
        self.origin = Origin(feature_names=feature_names, label_names=words.names)
        self._codes = {word: float(code) for code, word in enumerate(words.names or ())}
        self.labels: list[tuple[float, float]] | None = None
        if weights is not None:
            found, totals = zip(*weights.sorted(), strict=True)
            self.labels = sorted(zip(words.final(np.array(found)).tolist(), totals, strict=True))
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        self.n, self.chunks = int(self._starts[-1]), len(sizes)

    def load(self, k: int, first: bool) -> Chunk:
        """The next chunk; going back means starting anew."""
        if self._next < 0 or k < self._next:
            self._iterator, self._next = iter(self._start()), 0
        try:
            while self._next < k:
                next(self._iterator)
                self._next += 1
            X, y, weight = _parts(next(self._iterator))
        except StopIteration:
            raise InputError(
                f"{self.name}: ended at chunk {self._next}, and had {self.chunks} before"
            ) from None
        self._next += 1
        matrix = as_csr(X)
        span = slice(int(self._starts[k]), int(self._starts[k + 1]))
        if matrix.shape[0] != span.stop - span.start or matrix.shape[1] > self.d:
            raise InputError(f"{self.name}: chunk {k} has another shape than before: {matrix.shape}")
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        dtype = np.float32 if self.value_bytes == 4 else np.float64
        rows = CSR(
            canonical(matrix.data, dtype),
            canonical(matrix.indices, np.uint32),
            canonical(matrix.indptr, np.int64),
        )
        labels = self._numbers(y, k)
        share = np.ones(labels.shape) if weight is None else np.asarray(weight, dtype=np.float64)
        if labels.shape != (matrix.shape[0],) or share.shape != labels.shape:
            raise InputError(
                f"{self.name}: chunk {k} has {labels.shape} labels and {share.shape} weights for its rows"
            )
        if not (np.isfinite(labels).all() and np.isfinite(share).all() and (share >= 0).all()):
            raise InputError(
                f"{self.name}: chunk {k} has other labels or weights than before: not finite, or negative"
            )
        return Chunk(rows, canonical(labels, np.float64), canonical(share, np.float64), span)

    def _numbers(self, y: Any, k: int) -> Floats:
        """The labels of a chunk as numbers: codes where they are words."""
        try:
            if self.origin.label_names is None:
                return np.asarray(y, dtype=np.float64)
            return np.array([self._codes[word] for word in np.asarray(y).tolist()])
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{self.name}: chunk {k} has other labels than before") from None

    def labelled(self, k: int) -> tuple[Floats, Floats | None]:
        """Labels and weights of a chunk."""
        chunk = self.load(k, False)
        return chunk.y, chunk.weight


def _value_bytes(X: Any) -> int:
    return 4 if getattr(X, "dtype", None) in (np.float32, np.float16) else 8


def _parts(chunk: Any) -> tuple[Any, Any, Any]:
    X, y, *rest = chunk
    return X, y, rest[0] if rest else None


def scan_feed(feed: Feed) -> Iterator[Table]:
    """The chunks of a feed as tables."""
    for k in range(feed.chunks):
        chunk = feed.load(k, True)
        rows = sparse_rows(chunk.rows, 0, chunk.y.size)
        part = slice(int(rows.starts[0]), int(rows.starts[-1]))
        starts = rows.starts - rows.starts[0]
        X: Any = sp.csr_array(
            (rows.values[part], rows.columns[part].astype(np.int64), starts), shape=(starts.size - 1, feed.d)
        )
        yield Table(
            Path(feed.name),
            X,
            chunk.y,
            feed.origin.zero_based,
            chunk.weight,
            feed.origin.feature_names,
            first=chunk.span.start,
            label_names=feed.origin.label_names,
        )


def read_feed(feed: Feed) -> Table:
    """All rows of a feed, in memory, with a weight each."""
    if isinstance(feed, StoreFeed):
        return feed.store.read()
    tables = list(scan_feed(feed))
    weights = [np.ones(table.n) if table.weight is None else table.weight for table in tables]
    return replace(joined(tables), weight=np.concatenate(weights), digests=feed.origin.digests)
