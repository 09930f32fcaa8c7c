"""Newton's equations solved by Cholesky factors: what conjugate gradients would need many products for.

    (diag(ridge) + Z' diag(h) Z) v = r,    Z = (X, lift): the rows, with a column for the bias

By columns the matrix is made by BLAS and factorised as it is. Where rows are fewer, v = (Z' u + r) / ridge
with

    (Z diag(1/ridge) Z' + diag(1/h)) u = -Z (r / ridge),

a matrix of as many rows; a free bias, whose ridge is 0, is the multiplier of 1'u = -r of the bias. (The
formula of Woodbury would take differences of large numbers.) Either costs what tens of products do, and
does not mind columns of bad scale.

In an interior point method ``r = Z' (h t + m) - ridge away``, where the scores ``Z away`` are known. By rows
no product with Z is needed then but the one that makes v itself: the inner products of rows, which are
known, do for its scores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ...core.problem import Problem
from ...data.rows import CSR, Batch, Rows, as_matrix, row_count
from ...runtime.arrays import Floats

FLOPS = 15.0  # of BLAS in the time in which a pass reads an entry
DENSE_SHARE = 0.2  # of what a sparse entry costs a pass, for an entry of dense rows
SPARSE_PAIR = 20.0  # entries that a pass reads in the time of one product in a sparse A' A
BLOCK = 4096  # rows at a time, at most
CACHED = 2**15  # entries of a block that stays in the cache
# Sparse rows with so large a part of their entries stored are made dense, if they have so many: BLAS is then
# much the faster, and text that stores every entry behaves as the same numbers in an array do.
DENSE, LEAST_DENSE, MOST_DENSE = 0.25, 2**14, 2**25

DIGITS = 1e-6  # the part of a dual that rounding may spoil

Solve = Callable[[Floats], Floats]


class Residual(NamedTuple):
    """``Z' m - ridge away``, by its parts."""

    duals: Floats  # m
    away: Floats
    scores: Floats  # Z away


class Move(NamedTuple):
    """A vector v by its scores Z v; v itself is made when asked for."""

    scores: Floats
    place: Callable[[], Floats]


Equations = Callable[[Floats, Residual], Move]  # of t


def cost(rows: int, entries: int, d: int, sparse: bool) -> float:
    """What the factors cost, in entries that a pass over sparse rows would read meanwhile."""
    size, other = (d, rows) if d <= rows else (rows, d)
    pairs = entries * entries / max(1, rows) if d <= rows else 0.0  # inner products of rows are made once
    gram = SPARSE_PAIR * pairs if sparse else size * size * other / FLOPS if d <= rows else 0.0
    return gram + size**3 / (3.0 * FLOPS)


def in_entries(price: float, sparse: bool) -> int:
    """A price in entries of the rows at hand, for the counts of work."""
    return int(price if sparse else price / DENSE_SHARE)


def works_dense(rows: Rows, d: int) -> bool:
    """Whether rows are dense, or as good as dense and made so here."""
    if not isinstance(rows, CSR):
        return True
    whole = row_count(rows) * d
    return LEAST_DENSE <= whole <= MOST_DENSE and rows.values.size >= DENSE * whole


class Hessians:
    """``diag(ridge) + Z' diag(h) Z`` for any h >= 0, where Z = (X, lift) are all rows with a column for the
    bias.
    """

    def __init__(self, batch: Batch, chosen: Any, ridge: Floats, lift: float) -> None:
        self._rows, self._chosen, self.ridge, self.lift = batch.rows, chosen, ridge, lift
        self.n, self.d = batch.y.size if chosen is None else chosen.size, ridge.size - 1
        self.sparse = not works_dense(batch.rows, self.d)

    @classmethod
    def of(cls, problem: Problem, chosen: Any = None) -> Hessians:
        """Those of all rows of a problem, or of chosen ones."""
        strength = problem.bias.strength(problem.lam)
        lift = 0.0 if strength == np.inf else 1.0  # without a bias its number stays 0
        ridge = np.append(np.full(problem.source.d, problem.lam), strength if strength < np.inf else 1.0)
        return cls(problem.source.batch, chosen, ridge, lift)

    @cached_property
    def _X(self) -> Any:
        """The rows as they are, or made dense. Made when needed: SciPy copies the columns of sparse ones."""
        X: Any = as_matrix(self._rows, self.d)
        X = X if self._chosen is None else X[self._chosen]
        return X.toarray() if isinstance(self._rows, CSR) and not self.sparse else X

    @cached_property
    def X(self) -> Any:
        """The rows in float64."""
        return self._X.astype(np.float64, copy=False)

    def scores(self, w: Floats, b: float) -> Floats:
        """``Z (w, b)``."""
        found: Floats = self.X @ w + self.lift * b
        return found

    def moment(self, u: Floats) -> Floats:
        """``Z' u``."""
        return np.append(self.X.T @ u, self.lift * float(u.sum()))

    @cached_property
    def inner_products(self) -> Floats:
        """``X X'``."""
        gram = self.X @ self.X.T
        found: Floats = gram.toarray() if self.sparse else gram
        return found

    def factorised(self, h: Floats) -> Solve | None:
        """What solves ``(diag(ridge) + Z' diag(h) Z) v = r``; None where rounding leaves no factors."""
        if self.d <= self.n:
            return self.by_columns(*roots(h))
        solve = self._by_rows(h)
        if solve is None:
            return None
        divided = self.divided

        def answer(r: Floats) -> Floats:
            at = divided(r)
            u, b = solve(-self.scores(at[:-1], float(at[-1])), -float(r[-1]))
            return divided(self.moment(u) + r, b)

        return answer

    def equations(self, h: Floats) -> Equations | None:
        """What solves ``(diag(ridge) + Z' diag(h) Z) v = Z' (h t + m) - ridge away``, by whichever are fewer,
        rows or columns; None where rounding leaves no factors.
        """
        return self.equations_by_columns(h) if self.d <= self.n else self.equations_by_rows(h)

    def equations_by_columns(self, h: Floats) -> Equations | None:
        """A product with Z' for the right side, and one with Z for the scores."""
        solve = self.by_columns(*roots(h))
        if solve is None:
            return None

        def answer(t: Floats, residual: Residual) -> Move:
            v = solve(self.moment(h * t + residual.duals) - self.ridge * residual.away)
            return Move(self.scores(v[:-1], float(v[-1])), lambda: v)

        return answer

    def equations_by_rows(self, h: Floats) -> Equations | None:
        """By inner products of rows, with u + m for u: ``v = Z' u / ridge - away``. The scores of v are then
        differences of larger numbers; where these leave few digits, passes over the rows do it.
        """
        solve, steepest = self._by_rows(h), float(h.max())
        if solve is None:
            return None

        def answer(t: Floats, residual: Residual) -> Move:
            m, away, scores = residual
            if self.free:
                scores = scores - self.lift * away[-1]
            u, b = solve(t + scores - self._from_rows(m), -self.lift * float(m.sum()))
            u += m
            made = self._from_rows(u) - scores
            noise = self._noise(u) * steepest  # in u, where the scores make it
            if noise > DIGITS * float(np.abs(u).max()):
                return self._by_passes(solve, t, residual)
            made += self.lift * b if self.free else 0.0
            return Move(made, lambda: self.divided(self.moment(u) - self.ridge * away, b))

        return answer

    def _by_passes(self, solve: Any, t: Floats, residual: Residual) -> Move:
        """The same from differences of vectors, whose products with rows are as exact as they are small."""
        slope = self.moment(residual.duals) - self.ridge * residual.away
        at = self.divided(slope)
        u, b = solve(t - self.scores(at[:-1], float(at[-1])), -float(slope[-1]))
        v = self.divided(self.moment(u) + slope, b)
        return Move(self.scores(v[:-1], float(v[-1])), lambda: v)

    def _noise(self, u: Floats) -> float:
        """What rounding may leave in a sum of inner products."""
        longest = float(np.diagonal(self.inner_products).max())
        return float(np.finfo(np.float64).eps * longest / self.ridge[0] * np.abs(u).sum())

    @property
    def free(self) -> bool:
        """Whether the bias is not regularised."""
        return bool(self.ridge[-1] == 0.0)

    def divided(self, r: Floats, b: float = 0.0) -> Floats:
        """``r / ridge``, with ``b`` for a free bias."""
        return np.append(r[:-1] / self.ridge[0], b) if self.free else r / self.ridge

    def _from_rows(self, u: Floats) -> Floats:
        """``Z diag(1/ridge) Z' u``, without a free bias."""
        held = 0.0 if self.free else self.lift / float(self.ridge[-1]) * float(u.sum())
        found: Floats = self.inner_products @ u / self.ridge[0] + held
        return found

    def by_columns(self, rows: Any, root: Floats) -> Solve | None:
        """What solves ``(diag(ridge) + sum of root^2 z z') v = r`` over some rows, or all where ``rows`` is
        None; None where rounding leaves no factors.
        """
        d, lift = self.d, self.lift
        matrix = np.zeros((d + 1, d + 1))
        block = min(BLOCK, max(CACHED // d, 4 * d))
        for first in range(0, root.size, block):
            part = slice(first, first + block)
            A = self._scaled(part if rows is None else rows[part], root[part])
            gram = A.T @ A
            matrix[:d, :d] += gram.toarray() if self.sparse else gram
            matrix[d, :d] += lift * (A.T @ root[part])
            matrix[d, d] += lift * float(root[part] @ root[part])
        matrix[:d, d] = matrix[d, :d]
        matrix[np.diag_indices_from(matrix)] += self.ridge
        matrix[d, d] = matrix[d, d] or 1.0  # a free bias where no row is curved
        return cholesky(matrix)

    def _by_rows(self, h: Floats) -> Callable[[Floats, float], tuple[Floats, float]] | None:
        """What solves ``(Z diag(1/ridge) Z' + diag(1/h)) u = r`` by rows of h > 0; the others are absent. A
        free bias is the multiplier of ``1'u = total``.
        """
        n, free = self.n, self.free
        curved: Any = np.flatnonzero(h)
        if not curved.size:
            return lambda r, total: (np.zeros(n), 0.0)
        if curved.size == n:
            curved = slice(None)
            matrix = self.inner_products / self.ridge[0]
        else:
            matrix = self.inner_products[np.ix_(curved, curved)] / self.ridge[0]
        if not free:
            matrix += self.lift / self.ridge[-1]
        matrix.reshape(-1)[:: matrix.shape[0] + 1] += 1.0 / h[curved]
        kept, rough = matrix.copy(), cholesky(matrix)
        if rough is None:
            return None

        def solve(r: Floats) -> Floats:
            """Once more for what is left, as rows may be long for lam; if that brings the solution nearer."""
            u = rough(r)
            left = r - kept @ u
            finer = u + rough(left)
            return finer if np.abs(r - kept @ finer).max() < np.abs(left).max() else u

        level = solve(np.ones(matrix.shape[0])) if free else np.zeros(0)

        def answer(r: Floats, total: float) -> tuple[Floats, float]:
            u, b = np.zeros(n), 0.0
            u[curved] = solve(r[curved])
            if free:
                b = (float(u.sum()) - total) / float(level.sum())
                u[curved] -= b * level
            return u, b

        return answer

    def _scaled(self, curved: Any, root: Floats) -> Any:
        """Some rows, each times a number."""
        A = self._X[curved]  # no copy of a slice of dense rows
        if self.sparse:
            A.data = A.data * np.repeat(root, np.diff(A.indptr))
            return A
        return A * root[:, None]


def roots(h: Floats) -> tuple[Any, Floats]:
    """The rows of h > 0, None for all of them, and the square roots of h there."""
    rows = np.flatnonzero(h)
    return (None, np.sqrt(h)) if rows.size == h.size else (rows, np.sqrt(h[rows]))


def cholesky(matrix: Floats) -> Solve | None:
    """Solves with the Cholesky factor of a matrix, which is overwritten; None where rounding leaves none.

    It is scaled to a diagonal of 1, with a little more there, as columns may depend on each other.
    """
    width = matrix.shape[0]
    on_diagonal = matrix.reshape(-1)[:: width + 1]
    diagonal = on_diagonal.copy()
    size = 1.0 / np.sqrt(diagonal)
    matrix *= size[:, None] * size
    on_diagonal[:] = diagonal * (size * size) + 16.0 * width * np.finfo(np.float64).eps
    # LAPACK itself: scipy.linalg.cho_factor and cho_solve take five times as long for few columns
    factor, failed = dpotrf(matrix, lower=1, clean=0)
    if failed:
        return None
    return lambda residual: size * dpotrs(factor, size * residual, lower=1)[0]
