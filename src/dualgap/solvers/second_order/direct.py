"""Newton's equations solved by Cholesky factors: what conjugate gradients would need many products for.

    (diag(ridge) + Z' diag(h) Z) v = Z' h t - slope,    Z = (X, lift): the rows, with a column for the bias

By columns the matrix is made by BLAS and factorised as it is. Where rows are fewer, v = (Z' u - slope) /
ridge with

    (Z diag(1/ridge) Z' + diag(1/h)) u = t + Z (slope / ridge),

a matrix of as many rows; a free bias, whose ridge is 0, is the multiplier of 1'u = slope of the bias. (The
formula of Woodbury would take differences of large numbers.) Either costs what tens of products do, and
does not mind columns of bad scale.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

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

Solve = Callable[[Floats], Floats]
Equations = Callable[[Floats, Floats], Floats]  # of t and slope


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
        solve, zero = self._by_rows(h), np.zeros(self.n)
        return None if solve is None else lambda r: solve(zero, -r)

    def equations(self, h: Floats) -> Equations | None:
        """What solves ``(diag(ridge) + Z' diag(h) Z) v = Z' h t - slope`` for any t and slope, by whichever
        are fewer, rows or columns; None where rounding leaves no factors.
        """
        if self.d <= self.n:
            solve = self.by_columns(*roots(h))
            return None if solve is None else lambda t, slope: solve(self.moment(h * t) - slope)
        return self._by_rows(h)

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

    def _by_rows(self, h: Floats) -> Equations | None:
        """By rows of h > 0; the others are absent."""
        lam, strength = float(self.ridge[0]), float(self.ridge[-1])
        free, held = strength == 0.0, self.lift / strength if strength > 0.0 else 0.0
        curved = np.flatnonzero(h)
        if not curved.size:
            ridge = np.where(self.ridge > 0.0, self.ridge, 1.0)
            return lambda t, slope: -slope / ridge
        matrix = self.inner_products[np.ix_(curved, curved)] / lam + held
        matrix[np.diag_indices_from(matrix)] += 1.0 / h[curved]
        solve = cholesky(matrix)
        if solve is None:
            return None
        level = solve(np.ones(curved.size)) if free else np.zeros(curved.size)

        def answer(t: Floats, slope: Floats) -> Floats:
            u, b = np.zeros(self.n), 0.0
            u[curved] = solve((t + self.X @ slope[:-1] / lam + held * slope[-1])[curved])
            if free:
                b = (float(u.sum()) - float(slope[-1])) / float(level.sum())
                u[curved] -= b * level
            v = self.moment(u) - slope
            return np.append(v[:-1] / lam, b if free else v[-1] / strength)

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
