"""Feature expansion on the fly: rows are stored small and expanded when they are read.

``poly2``   the entries of a row and all products of two of them, ``x_i`` and ``x_i x_j`` with i <= j
``kmer:k``  a row is a sequence of symbols (its values, in the order of its columns; a missing column ends a
            run of neighbours): how often each word of k neighbouring symbols occurs, for DNA and text

Both are hashed to ``2^bits`` columns, with a random sign for ``poly2``, so that entries that meet in a column
cancel on average (Weinberger, Dasgupta, Langford, Smola and Attenberg, ICML 2009). What comes out of a row
depends on the row alone, so a model that keeps the name of the expansion can predict for any row. In the
library any stateless transformer of scikit-learn will do as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from ..runtime.arrays import Floats, Offsets, canonical
from ..runtime.checks import shown, whole
from ..runtime.errors import InputError
from ..runtime.jit import kernel
from .chunks import AHEAD, Chunk, Feed
from .rows import CSR, as_csr, row_count, sparse_rows

BITS = 20
_TARGET = 1_000_000  # bytes of a chunk after it has grown
_A, _B = np.uint64(0x9E3779B9), np.uint64(0x85EBCA6B)  # odd numbers of 32 bits
_MASK, _16, _15, _32 = np.uint64(0xFFFFFFFF), np.uint64(16), np.uint64(15), np.uint64(32)


class Expansion(Protocol):
    """A function from rows to rows with more features."""

    @property
    def name(self) -> str: ...
    @property
    def bits(self) -> int | None: ...  # of hashed columns, if they are hashed
    def width(self, d: int) -> int: ...
    def apply(self, rows: CSR, d: int) -> CSR: ...


@dataclass(frozen=True)
class Poly2:
    """The entries of a row and the products of two of them, hashed."""

    bits: int = BITS
    name = "poly2"

    def width(self, d: int) -> int:
        """The number of columns after hashing."""
        return 1 << self.bits

    def apply(self, rows: CSR, d: int) -> CSR:
        """The expanded rows."""
        counts = np.diff(rows.starts)
        return _grown(_poly2, rows, counts * (counts + 3) // 2, self.bits, 0)


@dataclass(frozen=True)
class Kmers:
    """Counts of words of k neighbouring symbols, hashed."""

    k: int
    bits: int = BITS

    @property
    def name(self) -> str:
        """The name on the command line."""
        return f"kmer:{self.k}"

    def width(self, d: int) -> int:
        """The number of columns after hashing."""
        return 1 << self.bits

    def apply(self, rows: CSR, d: int) -> CSR:
        """The expanded rows."""
        return _grown(_kmers, rows, np.diff(rows.starts), self.bits, self.k)


@dataclass(frozen=True)
class Transformed:
    """The rows that a stateless transformer of scikit-learn returns."""

    transformer: Any
    bits = None

    def __post_init__(self) -> None:
        from sklearn.utils import get_tags

        if get_tags(self.transformer).requires_fit:
            raise InputError(
                f"expand={self.transformer!r} must be fitted to data; a transformer without a state will do "
                "(FunctionTransformer, Normalizer, FeatureHasher, ...)"
            )

    @property
    def name(self) -> str:
        """The name of the transformer's class."""
        return type(self.transformer).__name__

    def width(self, d: int) -> int:
        """The number of columns, found by transforming an empty row."""
        return int(self.transformer.transform(sp.csr_matrix((1, d))).shape[1])

    def apply(self, rows: CSR, d: int) -> CSR:
        """The rows as the transformer returns them."""
        first = int(rows.starts[0])
        part = slice(first, int(rows.starts[-1]))
        matrix = sp.csr_matrix(
            (rows.values[part], rows.columns[part].astype(np.int64), rows.starts - first),
            shape=(row_count(rows), d),
        )
        found = sp.csr_array(self.transformer.transform(matrix))
        found.sum_duplicates()
        dtype = np.float32 if found.dtype == np.float32 else np.float64
        return CSR(
            canonical(found.data, dtype),
            canonical(found.indices, np.uint32),
            canonical(found.indptr, np.int64),
        )


def make_expansion(spec: Any, bits: int | None = None) -> Expansion | None:
    """The expansion of a name, as on the command line, or of a transformer."""
    if spec is None:
        if bits is not None:
            raise InputError(
                f"hash_bits={shown(bits)} is for expand='poly2' and its like; add it or leave this out"
            )
        return None
    if not isinstance(spec, str):
        if bits is not None:
            raise InputError(
                f"hash_bits={shown(bits)} is for poly2 and kmer; a transformer knows its own width"
            )
        return Transformed(spec) if hasattr(spec, "transform") else _as_it_is(spec)
    chosen = BITS if bits is None else whole("hash_bits", bits, 0)
    if not 1 <= chosen <= 30:
        raise InputError(f"hash_bits={shown(bits)} must lie between 1 and 30")
    kind, _, parameter = spec.partition(":")
    if kind == "poly2" and not parameter:
        return Poly2(chosen)
    if kind == "kmer" and parameter.isdigit() and 1 <= int(parameter) <= 64:
        return Kmers(int(parameter), chosen)
    raise InputError(f"expand={shown(spec)} is not known; there are: poly2, kmer:K (K from 1 to 64)")


def _as_it_is(expansion: Any) -> Expansion:
    if not hasattr(expansion, "apply"):
        raise InputError(f"expand={shown(expansion)} is no transformer: it has no method transform")
    found: Expansion = expansion
    return found


def expanded(X: Any, expansion: Expansion) -> Any:
    """A matrix with the expanded rows of another."""
    matrix = as_csr(X)
    rows = CSR(
        canonical(matrix.data, np.float32 if matrix.dtype == np.float32 else np.float64),
        canonical(matrix.indices, np.uint32),
        canonical(matrix.indptr, np.int64),
    )
    found = expansion.apply(rows, matrix.shape[1])
    shape = (matrix.shape[0], expansion.width(matrix.shape[1]))
    return sp.csr_array((found.values, found.columns.astype(np.int64), found.starts), shape=shape)


def sequences(texts: Sequence[str]) -> Any:
    """Strings as rows for ``kmer``: column p holds the code of the p-th character."""
    counts = np.array([len(text) for text in texts], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])
    values = np.array([ord(letter) for text in texts for letter in text], dtype=np.float32)
    columns = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
    return sp.csr_array((values, columns, starts), shape=(len(texts), max(int(counts.max(initial=0)), 1)))


class Expanded:
    """A feed whose rows are expanded as they are read; its chunks are parts of the other feed's chunks."""

    dense_bytes = 0

    def __init__(self, feed: Feed, expansion: Expansion) -> None:
        self.inner, self.expansion = feed, expansion
        self.origin = feed.origin
        self.name, self.n, self.inputs = feed.name, feed.n, feed.d
        self.labels, self.total_weight, self.epoch_size = feed.labels, feed.total_weight, feed.epoch_size
        self.d, self.steady = expansion.width(feed.d), feed.steady
        sample = feed.load(0, True)
        head = min(200, sample.y.size)
        rows = sparse_rows(sample.rows, 0, head)
        grown = expansion.apply(rows, feed.d)
        self.value_bytes = grown.values.itemsize
        each = grown.values.size / head
        self.nnz = int(each * feed.n)  # an estimate: to know it takes a pass
        per_chunk = feed.n / feed.chunks * (each * (4 + self.value_bytes) + 40)
        self._parts = max(1, round(per_chunk / _TARGET))
        self.chunks = feed.chunks * self._parts
        # one chunk of the other feed is held, shared by all that wait; rows differ, and growing needs room
        self.chunk_bytes = feed.chunk_bytes // (AHEAD + 2) + 2 * int(per_chunk / self._parts)
        self._last: tuple[int, Chunk] | None = None

    def load(self, k: int, first: bool) -> Chunk:
        """A part of a chunk of the other feed, expanded."""
        number, part = divmod(k, self._parts)
        if self._last is None or self._last[0] != number:
            self._last = number, self.inner.load(number, first)
        chunk = self._last[1]
        n = chunk.y.size
        here = slice(n * part // self._parts, n * (part + 1) // self._parts)
        rows = sparse_rows(chunk.rows, here.start, here.stop)
        weight = None if chunk.weight is None else chunk.weight[here]
        span = slice(chunk.span.start + here.start, chunk.span.start + here.stop)
        return Chunk(self.expansion.apply(rows, self.inner.d), chunk.y[here], weight, span)

    def labelled(self, k: int) -> tuple[Floats, Floats | None]:
        """Labels and weights of a chunk."""
        number, part = divmod(k, self._parts)
        y, weight = self.inner.labelled(number)
        here = slice(y.size * part // self._parts, y.size * (part + 1) // self._parts)
        return y[here], None if weight is None else weight[here]


def _grown(grow: Any, rows: CSR, sizes: Any, bits: int, k: int) -> CSR:
    """Expanded rows; ``sizes`` bounds the number of entries of each."""
    most = int(sizes.sum())
    values, columns = np.empty(most, dtype=rows.values.dtype), np.empty(most, dtype=np.uint32)
    starts = np.zeros(row_count(rows) + 1, dtype=np.int64)
    place = np.full(
        1 << int(2 * sizes.max(initial=1)).bit_length(), -1, dtype=np.int64
    )  # half empty, at least
    end = grow(rows, bits, k, (values, columns, starts), place)
    return CSR(
        canonical(values[:end].copy() if end < most else values, values.dtype),
        canonical(columns[:end].copy() if end < most else columns, np.uint32),
        canonical(starts, np.int64),
    )


@kernel
def _mixed(word: Any) -> Any:
    """Scramble 32 bits (the finish of MurmurHash3); nothing overflows 64."""
    word ^= word >> _16
    word = (word * _B) & _MASK
    word ^= word >> _15
    word = (word * _A) & _MASK
    return word ^ (word >> _16)


@kernel
def _put(
    value: float, word: Any, bits: int, values: Any, columns: Any, place: Offsets, first: int, end: int
) -> int:
    """Add a value to the column of a hash; returns where the row ends then.

    ``place`` is a hash table with linear probing: where in the row a column is. What is left of earlier rows
    points before ``first``, and counts as empty.
    """
    column = np.uint32(word >> np.uint64(32 - bits))
    mask = place.shape[0] - 1
    slot = np.int64(column) & mask
    while place[slot] >= first:
        if columns[place[slot]] == column:
            values[place[slot]] += value
            return end
        slot = (slot + 1) & mask
    place[slot] = end
    columns[end] = column
    values[end] = value
    return end + 1


@kernel
def _poly2(rows: Any, bits: int, k: int, grown: Any, place: Offsets) -> int:
    """``x_i`` goes to the hash of i, ``x_i x_j`` to the hash of (i, j), each with the sign that its hash
    has.
    """
    values, columns, starts = rows
    out, out_columns, out_starts = grown
    end = 0
    for i in range(starts.shape[0] - 1):
        first = end
        for p in range(starts[i], starts[i + 1]):
            one = _mixed((np.uint64(columns[p]) * _A + _B) & _MASK)
            x = np.float64(values[p])
            sign = 1.0 - 2.0 * np.float64(one & np.uint64(1))
            end = _put(sign * x, one, bits, out, out_columns, place, first, end)
            for q in range(p, starts[i + 1]):
                other = _mixed((np.uint64(columns[q]) * _B + _A) & _MASK)
                both = _mixed((one * _B + other) & _MASK)
                sign = 1.0 - 2.0 * np.float64(both & np.uint64(1))
                end = _put(sign * x * np.float64(values[q]), both, bits, out, out_columns, place, first, end)
        out_starts[i + 1] = end
    return end


@kernel
def _kmers(rows: Any, bits: int, k: int, grown: Any, place: Offsets) -> int:
    """Count the words of k symbols in neighbouring columns; no signs, as all counts are positive."""
    values, columns, starts = rows
    out, out_columns, out_starts = grown
    end = 0
    for i in range(starts.shape[0] - 1):
        first = end
        run = 0
        for p in range(starts[i], starts[i + 1]):
            run = run + 1 if p > starts[i] and columns[p] == columns[p - 1] + np.uint32(1) else 1
            if run >= k:
                word = np.uint64(k)
                for q in range(p - k + 1, p + 1):
                    symbol = np.uint64(np.int64(np.round(values[q] * 64.0)) & 0xFFFFFFFF)
                    word = _mixed((word * _A + symbol) & _MASK)
                end = _put(1.0, word, bits, out, out_columns, place, first, end)
        out_starts[i + 1] = end
    return end
