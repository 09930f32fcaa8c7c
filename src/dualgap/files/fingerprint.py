"""A fingerprint of training rows: equal for the same rows in the same order, however they are stored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import Floats

_ROWS = 8192  # converted at a time; the fingerprint does not depend on it


class RowDigests:
    """What a fingerprint takes from the rows, block after block."""

    def __init__(self) -> None:
        self._parts = tuple(hashlib.blake2b(digest_size=32) for _ in range(3))

    def add(self, X: Any) -> None:
        """The next rows."""
        counts, columns, values = self._parts
        for first in range(0, int(X.shape[0]), _ROWS):
            block: Any = sp.csr_array(X[first : first + _ROWS], copy=True)
            block.sum_duplicates()
            block.eliminate_zeros()
            block.sort_indices()
            counts.update(np.diff(block.indptr).astype("<i8").tobytes())
            columns.update(block.indices.astype("<i8").tobytes())
            values.update(block.data.astype("<f8").tobytes())

    def digests(self) -> tuple[str, ...]:
        """Of the entries a row, of the columns, of the values."""
        return tuple(part.hexdigest() for part in self._parts)


def fingerprint(X: Any, y: Any, weight: Any = None, *, digests: Sequence[str] | None = None) -> str:
    """BLAKE2b of the rows, the targets and the weights (1 each by default), all as little-endian numbers of 8 bytes.

    A row counts as its nonzero entries in order of their columns, so dense and sparse storage agree, and so do
    files of different widths whose further columns are empty. Values are hashed as float64. Data kept in float32 have
    the fingerprint of their float64 original only where float32 holds every value of it exactly. Where the digests of
    the rows are known (a store keeps them), X need not be looked at.
    """
    if digests is None:
        rows = RowDigests()
        rows.add(X)
        digests = rows.digests()
    return combined(digests, [y], [np.ones(len(y)) if weight is None else weight])


def combined(digests: Sequence[str], targets: Iterable[Any], weights: Iterable[Any]) -> str:
    """The same, from targets and weights that come in parts."""
    numbers = hashlib.blake2b(digest_size=32)
    for part in chain(targets, weights):
        numbers.update(_floats(part).tobytes())
    total = hashlib.blake2b(digest_size=32)
    for digest in digests:
        total.update(bytes.fromhex(digest))
    total.update(numbers.digest())
    return total.hexdigest()


def _floats(values: Any) -> Floats:
    return np.asarray(values).astype("<f8") + 0.0  # -0.0 becomes 0.0
