"""Rows of a joint problem as second-order methods use them: products with K columns at once, by BLAS, in the
precision the rows are stored in, and what follows from K scores a row.

Nothing here is part of a certificate. Sums over rows run over a fixed number of parts, which are added up in
their order, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core.joint.problem import JointProblem
from ...core.joint.products import sparse_add, sparse_scores
from ...data.rows import CSR, Dense, Rows, as_matrix, matrix_as, slice_rows
from ...runtime.arrays import Floats
from ...runtime.threads import in_threads

PARTS = 8  # that threads share
MOST_COLUMNS = 2048  # of which a covariance is made
ENTRIES, LEAST, MOST = 1 << 18, 128, 2048  # of a block of rows, which stays in the caches
LOWEST = -80.0  # scores below the largest by more than this have a probability of 0: exp is slow there
SPARED = 0.8  # where more than this part of a block takes part in a product, all of it does


class Sums(NamedTuple):
    """Sums over rows: of numbers, and of K or d K numbers."""

    value: float
    by_class: Floats
    moment: Floats

    def plus(self, other: Sums) -> Sums:
        """Both together; the arrays of this one are used again."""
        self.by_class[...] += other.by_class
        self.moment[...] += other.moment
        return Sums(self.value + other.value, self.by_class, self.moment)


@dataclass(frozen=True, eq=False)
class JointRows:
    """Some rows with classes and shares c_i / N, where N is their own total weight."""

    rows: Rows
    y: Any  # numbers of classes, as integers
    share: Floats
    classes: int
    d: int
    threads: int

    @classmethod
    def of(cls, problem: JointProblem) -> JointRows:
        """All rows of a problem."""
        source = problem.source
        share = source.weight / problem.total_weight
        return cls(
            source.batch.rows, source.y.astype(np.intp), share, problem.classes, source.d, source.threads
        )

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.share.size)

    @property
    def dtype(self) -> Any:
        """Of products: float32 where the rows are stored so or shorter, else float64."""
        if isinstance(self.rows, Dense) and self.rows.matrix.dtype.itemsize <= 4:
            return np.float32
        return np.float64

    @property
    def full(self) -> bool:
        """Whether a covariance of all columns is affordable."""
        return isinstance(self.rows, Dense) and self.d <= MOST_COLUMNS

    def some(self, picks: Any) -> JointRows:
        """A copy of these rows; shares add up to 1 again."""
        share = self.share[picks] / self.share[picks].sum()
        return JointRows(_taken(self.rows, picks), self.y[picks], share, self.classes, self.d, self.threads)

    def scores(self, w: Floats, b: Floats) -> Floats:
        """``X w + b``."""
        found = np.empty((self.n, self.classes), dtype=self.dtype)
        w, b = w.astype(self.dtype), b.astype(self.dtype)

        def visit(spans: list[slice]) -> None:
            for span in spans:
                _multiply(_block(self.rows, span, self.dtype), w, b, found[span])

        in_threads(visit, self.parts, self.threads)
        return found

    def probabilities(self, scores: Floats) -> Floats:
        """Of all classes, for every row."""
        p = np.empty_like(scores)

        def visit(spans: list[slice]) -> None:
            for span in spans:
                softmax(scores[span], self.y[span], p[span])

        in_threads(visit, self.parts, self.threads)
        return p

    def gradient(self, scores: Floats) -> tuple[Sums, Floats]:
        """The mean loss, z = mean(p - e_y) and ``sum_i share_i x_i (p_i - e_y)^T``; and all p."""
        p = np.empty_like(scores)

        def visit(spans: list[slice]) -> Sums:
            total = self._no_sums()
            for span in spans:
                y, share = self.y[span], self.share[span]
                value = softmax(scores[span], y, p[span])
                residual = p[span].copy()
                residual[np.arange(y.size), y] -= 1.0
                residual *= share[:, None]
                self._add(span, None, residual, total)
                total = total._replace(value=total.value + float(share @ value))
            return total

        return self._reduce(visit), p

    def hessian(self, p: Floats, curved: Any, v: Floats, vb: Floats) -> Sums:
        """Its product with (v, vb), over the rows that are ``curved``."""
        v, vb = v.astype(self.dtype), vb.astype(self.dtype)

        def visit(spans: list[slice]) -> Sums:
            total = self._no_sums()
            for span in spans:
                picks = _picks(curved[span])
                rows = _block(self.rows, span, self.dtype, picks)
                some = p[span] if picks is None else p[span][picks]
                share = self.share[span] if picks is None else self.share[span][picks]
                found = np.empty_like(some)
                _multiply(rows, v, vb, found)
                found -= np.einsum("ik,ik->i", some, found)[:, None]
                found *= some
                found *= share.astype(self.dtype)[:, None]
                self._add(span, rows, found, total)
            return total

        return self._reduce(visit)

    def along(self, scores: Floats, direction: Floats, t: float) -> tuple[float, float]:
        """The mean loss at ``scores + t direction``, and its slope."""

        def visit(spans: list[slice]) -> tuple[float, float]:
            value = slope = 0.0
            for span in spans:
                y, share, way = self.y[span], self.share[span], direction[span]
                at = scores[span] + self.dtype(t) * way
                p = np.empty_like(at)
                value += float(share @ softmax(at, y, p))
                change = np.einsum("ik,ik->i", p, way) - way[np.arange(y.size), y]
                slope += float(share @ change)
            return value, slope

        found = in_threads(visit, self.parts, self.threads)
        return sum(value for value, _ in found), sum(slope for _, slope in found)

    def balance(self, scores: Floats, b: Floats) -> Floats:
        """``z = mean(p - e_y)`` of ``scores + b``, in float64."""

        def visit(spans: list[slice]) -> Floats:
            total = np.zeros(self.classes)
            for span in spans:
                at = scores[span] + b
                softmax(at, self.y[span], at)
                total += self.share[span] @ at
            return total

        found = in_threads(visit, self.parts, self.threads)
        shares = np.bincount(self.y, weights=self.share, minlength=self.classes)
        return np.asarray(np.sum(found, axis=0) - shares, dtype=np.float64)

    def balance_slope(self, scores: Floats) -> Floats:
        """The derivative of z by the intercepts, K x K."""

        def visit(spans: list[slice]) -> Sums:
            total = Sums(0.0, np.zeros(self.classes), np.zeros((self.classes, self.classes)))
            for span in spans:
                p = np.empty_like(scores[span])
                softmax(scores[span], self.y[span], p)
                weighted = p * self.share[span].astype(self.dtype)[:, None]
                total.by_class[...] += weighted.sum(axis=0)
                total.moment[...] -= weighted.T @ p
            return total

        found = self._reduce(visit)
        slope = found.moment
        slope[np.diag_indices(self.classes)] += found.by_class
        return slope

    def moments(self, share: Floats) -> Floats:
        """``sum_i x_i share_i^T``."""

        def visit(spans: list[slice]) -> Sums:
            total = self._no_sums()
            for span in spans:
                self._add(span, None, share[span], total)
            return total

        return self._reduce(visit).moment

    def second_moments(self, share: Floats) -> Floats:
        """``sum_i share_i x_i x_i^T`` of dense rows."""

        def visit(spans: list[slice]) -> Sums:
            total = Sums(0.0, np.zeros(0), np.zeros((self.d, self.d)))
            for span in spans:
                rows = _block(self.rows, span, self.dtype)
                total.moment[...] += rows.T @ (rows * share[span].astype(self.dtype)[:, None])
            return total

        return self._reduce(visit).moment

    def squares(self, share: Floats) -> Floats:
        """``sum_i share_i x_ij^2`` of each column."""
        rows = self.rows
        if isinstance(rows, Dense):
            matrix = as_matrix(rows, self.d)
            return np.asarray(np.einsum("ij,ij,i->j", matrix, matrix, share, dtype=np.float64))
        used = slice(int(rows.starts[0]), int(rows.starts[-1]))
        terms = np.square(rows.values[used].astype(np.float64)) * np.repeat(share, np.diff(rows.starts))
        found = np.bincount(rows.columns[used], weights=terms, minlength=self.d)
        return np.asarray(found, dtype=np.float64)

    @property
    def parts(self) -> list[list[slice]]:
        """Blocks of rows, by parts."""
        step = min(max(ENTRIES // max(self.d, self.classes), LEAST), MOST)
        blocks = [slice(first, min(first + step, self.n)) for first in range(0, self.n, step)]
        return [
            part
            for k in range(PARTS)
            if (part := blocks[len(blocks) * k // PARTS : len(blocks) * (k + 1) // PARTS])
        ]

    def _reduce(self, visit: Callable[[list[slice]], Sums]) -> Sums:
        first, *others = in_threads(visit, self.parts, self.threads)
        for other in others:
            first = first.plus(other)
        return first

    def _no_sums(self) -> Sums:
        return Sums(0.0, np.zeros(self.classes), np.zeros((self.d, self.classes)))

    def _add(self, span: slice, rows: Any, share: Floats, total: Sums) -> None:
        """``x share^T`` of a block, and its shares."""
        rows = _block(self.rows, span, self.dtype) if rows is None else rows
        total.by_class[...] += share.sum(axis=0, dtype=np.float64)
        if isinstance(rows, CSR):
            sparse_add(*rows, share, total.moment)
        else:
            total.moment[...] += rows.T @ share


def softmax(scores: Floats, y: Any, p: Floats) -> Floats:
    """The losses of some rows, in float64; their probabilities into ``p``."""
    np.subtract(scores, scores.max(axis=1, keepdims=True), out=p)
    np.maximum(p, LOWEST, out=p)
    own = p[np.arange(y.size), y].astype(np.float64)
    np.exp(p, out=p)
    total = np.einsum("ik->i", p)[:, None]
    p /= total
    losses: Floats = np.log(total[:, 0].astype(np.float64)) - own
    return losses


def _picks(curved: Any) -> Any:
    """The numbers of the rows of a block that take part, or None where nearly all do."""
    count = int(np.count_nonzero(curved))
    return None if count > SPARED * curved.size else np.flatnonzero(curved)


def _block(rows: Rows, span: slice, dtype: Any, picks: Any = None) -> Any:
    """Some rows of a block, dense ones as an array in the precision of products."""
    block = slice_rows(rows, span.start, span.stop)
    block = block if picks is None else _taken(block, picks)
    return block if isinstance(block, CSR) else matrix_as(block, dtype)


def _taken(rows: Rows, picks: Any) -> Rows:
    """A copy of some rows."""
    if isinstance(rows, Dense):
        return type(rows)(rows.matrix[picks])
    lengths = np.diff(rows.starts)[picks]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(rows.starts.dtype)
    where = np.repeat(rows.starts[:-1][picks] - starts[:-1], lengths) + np.arange(starts[-1])
    return CSR(rows.values[where], rows.columns[where], starts)


def _multiply(rows: Any, w: Floats, b: Floats, scores: Floats) -> None:
    if isinstance(rows, CSR):
        sparse_scores(*rows, w, b, scores)
    else:
        np.matmul(rows, w, out=scores)
        scores += b
