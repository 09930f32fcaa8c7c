"""A fingerprint of training rows: equal for the same rows in the same order, however they are stored."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import Floats

_ROWS = 8192  # converted at a time; the fingerprint does not depend on it


def fingerprint(X: Any, y: Any, weight: Any = None) -> str:
    """BLAKE2b of the rows, the targets and the weights (1 each by default), all as little-endian numbers of 8 bytes.

    A row counts as its nonzero entries in order of their columns, so dense and sparse storage agree, and so do
    files of different widths whose further columns are empty. Values are hashed as float64. Data kept in float32 have
    the fingerprint of their float64 original only where float32 holds every value of it exactly.
    """
    parts = {name: hashlib.blake2b(digest_size=32) for name in ("counts", "columns", "values", "targets")}
    n = int(X.shape[0])
    for first in range(0, n, _ROWS):
        block: Any = sp.csr_array(X[first : first + _ROWS], copy=True)
        block.sum_duplicates()
        block.eliminate_zeros()
        block.sort_indices()
        parts["counts"].update(np.diff(block.indptr).astype("<i8").tobytes())
        parts["columns"].update(block.indices.astype("<i8").tobytes())
        parts["values"].update(block.data.astype("<f8").tobytes())
    weight = np.ones(n) if weight is None else weight
    parts["targets"].update(_floats(y).tobytes() + _floats(weight).tobytes())
    total = hashlib.blake2b(digest_size=32)
    for part in parts.values():
        total.update(part.digest())
    return total.hexdigest()


def _floats(values: Any) -> Floats:
    return np.asarray(values).astype("<f8") + 0.0  # -0.0 becomes 0.0
