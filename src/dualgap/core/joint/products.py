"""Products of rows with K columns of weights at once: by BLAS for dense rows, by kernels for sparse ones.

Dense rows are widened to float64 some thousand at a time, never as a whole. A product of length m errs by at
most ``gamma(m) |x| |w_k|`` in whatever order BLAS adds it up, with or without fused operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...data.rows import CSR, Rows, matrix_as, row_count, slice_rows
from ...runtime.arrays import Columns, Floats, Offsets, Values
from ...runtime.jit import kernel

ENTRIES = 1 << 17  # numbers of a widened block, 1 MB: beyond the caches BLAS takes three times as long
LEAST, MOST = 64, 4096  # rows of a block


class Block(NamedTuple):
    """Some rows in a row, dense ones widened to float64."""

    span: slice
    rows: CSR | Floats

    def terms(self) -> Floats:
        """The number of products of each row's scores."""
        if isinstance(self.rows, CSR):
            return np.diff(self.rows.starts).astype(np.float64)
        return np.full(self.rows.shape[0], float(self.rows.shape[1]))

    def multiply(self, w: Floats, b: Floats, scores: Floats) -> None:
        """``scores = X w + b``."""
        if isinstance(self.rows, CSR):
            sparse_scores(*self.rows, w, b, scores)
        else:
            np.matmul(self.rows, w, out=scores)
            scores += b

    def add_to(self, moment: Floats, share: Floats) -> None:
        """``moment += X^T share``."""
        if isinstance(self.rows, CSR):
            sparse_add(*self.rows, share, moment)
        else:
            moment += self.rows.T @ share


def blocks(rows: Rows, classes: int) -> Iterator[Block]:
    """All rows in blocks, which depend on their shape alone."""
    count = row_count(rows)
    width = classes if isinstance(rows, CSR) else max(classes, rows.matrix.shape[1])
    step = min(max(ENTRIES // width, LEAST), MOST)
    for first in range(0, count, step):
        span = slice(first, min(first + step, count))
        part = slice_rows(rows, span.start, span.stop)
        if isinstance(part, CSR):
            yield Block(span, part)
        else:
            yield Block(span, matrix_as(part, np.float64))


@kernel
def sparse_scores(
    values: Values, columns: Columns, starts: Offsets, w: Floats, b: Floats, scores: Floats
) -> None:
    """``scores_i = b + sum_j x_ij w_j``, K numbers at a time."""
    count = b.shape[0]
    for i in range(scores.shape[0]):
        for k in range(count):
            scores[i, k] = 0.0
        for p in range(starts[i], starts[i + 1]):
            j, x = columns[p], np.float64(values[p])
            for k in range(count):
                scores[i, k] += x * w[j, k]
        for k in range(count):
            scores[i, k] += b[k]


@kernel
def sparse_add(values: Values, columns: Columns, starts: Offsets, share: Floats, moment: Floats) -> None:
    """``moment_j += sum_i x_ij share_i``; rows whose shares are all 0 are left out."""
    count = share.shape[1]
    for i in range(share.shape[0]):
        some = False
        for k in range(count):
            some |= share[i, k] != 0.0
        if some:
            for p in range(starts[i], starts[i + 1]):
                j, x = columns[p], np.float64(values[p])
                for k in range(count):
                    moment[j, k] += x * share[i, k]
