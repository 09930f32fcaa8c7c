"""A fingerprint of training rows: equal for the same rows in the same order, however they are stored.

Besides, a hash of every row with its target and weight, by which rows are found again in another order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ..runtime.arrays import Floats, Words
from .rows import as_csr

_ROWS = 8192  # converted at a time; the fingerprint does not depend on it,
_ENTRIES = 1 << 16  # nor on how many entries of dense rows are
_ODD = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64
)
_SHIFT = np.uint64(31)


class RowDigests:
    """Digests of rows that come block after block, for a fingerprint."""

    def __init__(self) -> None:
        self._parts = tuple(hashlib.blake2b(digest_size=32) for _ in range(3))

    def add(self, X: Any) -> None:
        """Add the next rows."""
        if isinstance(X, np.ndarray):
            for _, block in _dense_blocks(X):
                self._add_dense(block)
            return
        counts, columns, values = self._parts
        for first in range(0, int(X.shape[0]), _ROWS):
            block = as_csr(X[first : first + _ROWS], copy=True)
            block.sum_duplicates()
            block.eliminate_zeros()
            block.sort_indices()
            counts.update(np.diff(block.indptr).astype("<i8").tobytes())
            columns.update(block.indices.astype("<i8").tobytes())
            values.update(block.data.astype("<f8").tobytes())

    def _add_dense(self, block: Floats) -> None:
        """Add dense rows, of which zeros are no entries."""
        counts, columns, values = self._parts
        n, d = block.shape
        there = block != 0.0
        if there.all():
            counts.update(np.full(n, d, dtype="<i8").tobytes())
            columns.update(np.tile(np.arange(d, dtype="<i8"), n).data)
            values.update(np.ascontiguousarray(block).data)
            return
        counts.update(np.count_nonzero(there, axis=1).astype("<i8").tobytes())
        columns.update(np.nonzero(there)[1].astype("<i8").tobytes())
        values.update(block[there].data)

    def digests(self) -> tuple[str, ...]:
        """The digests of the numbers of entries, of the columns, and of the values."""
        return tuple(part.hexdigest() for part in self._parts)


def fingerprint(X: Any, y: Any, weight: Any = None, *, digests: Sequence[str] | None = None) -> str:
    """BLAKE2b of the rows, the targets and the weights (1 each by default), all as little-endian numbers of 8
    bytes.

    A row counts as its nonzero entries in order of their columns, so dense and sparse storage agree, and so
    do files of different widths whose further columns are empty. Values are hashed as float64. Data kept in
    float32 have the fingerprint of their float64 original only where float32 holds every value of it exactly.
    Where the digests of the rows are known (a store keeps them), X need not be looked at.
    """
    if digests is None:
        rows = RowDigests()
        rows.add(X)
        digests = rows.digests()
    return combined(digests, [y], [np.ones(len(y)) if weight is None else weight])


def combined(digests: Sequence[str], targets: Iterable[Any], weights: Iterable[Any]) -> str:
    """A fingerprint from digests of the rows, and targets and weights that come in parts."""
    numbers = hashlib.blake2b(digest_size=32)
    for part in chain(targets, weights):
        numbers.update(_floats(part).tobytes())
    total = hashlib.blake2b(digest_size=32)
    for digest in digests:
        total.update(bytes.fromhex(digest))
    total.update(numbers.digest())
    return total.hexdigest()


def row_hashes(X: Any, y: Any, weight: Any = None) -> Words:
    """A hash of 64 bits for every row with its target and its weight (1 by default).

    It is a sum over the entries, so it depends neither on their order nor on those that are 0. As in a
    fingerprint, values are hashed as float64.
    """
    hashes = _mixed(_bits(y)) + _mixed(_bits(np.ones(len(y)) if weight is None else weight) * _ODD[0])
    if isinstance(X, np.ndarray):
        columns = np.arange(X.shape[1], dtype=np.uint64) * _ODD[0]
        for first, block in _dense_blocks(X):
            dense = _mixed(columns + _bits(block) * _ODD[1])
            dense[block == 0.0] = 0
            hashes[first : first + block.shape[0]] += dense.sum(axis=1)
        return hashes
    for first in range(0, int(X.shape[0]), _ROWS):
        block = as_csr(X[first : first + _ROWS])
        if not block.has_canonical_format:
            block = block.copy()
            block.sum_duplicates()
        filled = np.flatnonzero(np.diff(block.indptr))
        if filled.size:
            entries = _mixed(block.indices.astype(np.uint64) * _ODD[0] + _bits(block.data) * _ODD[1])
            entries[block.data == 0] = 0
            hashes[first + filled] += np.add.reduceat(entries, block.indptr[filled])
    return hashes


def reweighted(hashes: Words, before: Floats, after: Floats) -> Words:
    """The hashes of rows whose weights were ``before`` and are ``after``."""
    return hashes - _mixed(_bits(before) * _ODD[0]) + _mixed(_bits(after) * _ODD[0])


def hashes_in_order(hashes: Words) -> str:
    """A fingerprint of rows in their order, from their hashes."""
    return hashlib.blake2b(hashes.astype("<u8").tobytes(), digest_size=32).hexdigest()


def hashes_in_any_order(hashes: Words) -> str:
    """A fingerprint that does not depend on the order of the rows; a row that occurs twice counts twice."""
    return hashes_in_order(np.sort(hashes))


def values_by_hash(hashes: Words, of_values: Words, values: Floats) -> Floats | None:
    """Values that belong to rows of the hashes ``of_values``, placed where ``hashes`` has them; None if one
    is missing.

    Among rows of one hash it makes no difference which one gets a value: entries, target and weight are the
    same.
    """
    order, chosen = np.argsort(hashes, kind="stable"), np.argsort(of_values, kind="stable")
    there, wanted = hashes[order], of_values[chosen]
    rank = np.arange(wanted.size) - np.searchsorted(wanted, wanted)  # among the values of the same hash
    place = np.searchsorted(there, wanted) + rank
    if wanted.size and (place.max() >= there.size or bool((there[place] != wanted).any())):
        return None
    found = np.zeros(hashes.size)
    found[order[place]] = values[chosen]
    return found


def _dense_blocks(X: Any) -> Iterator[tuple[int, Floats]]:
    """Dense rows in float64, so many at a time that they stay in the caches, with the number of the first."""
    step = max(1, _ENTRIES // max(int(X.shape[1]), 1))
    for first in range(0, int(X.shape[0]), step):
        yield first, X[first : first + step].astype("<f8")


def _bits(values: Any) -> Words:
    words: Words = _floats(values).view(np.uint64)
    return words


def _mixed(words: Words) -> Words:
    """Every bit of a word depends on every other, more or less (the finish of SplitMix64)."""
    words = words ^ (words >> _SHIFT)
    for factor in (_ODD[2], _ODD[3]):
        words *= factor
        words ^= words >> _SHIFT
    return words


def _floats(values: Any) -> Floats:
    return np.asarray(values).astype("<f8") + 0.0  # -0.0 becomes 0.0
