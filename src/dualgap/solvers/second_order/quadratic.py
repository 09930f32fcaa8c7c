"""The second-order model of P at a point, for Newton's method: products with its Hessian, and what stands in
for it.

    H = diag(ridge) + X' diag(h) X,   h_i = c_i phi''(score_i) / N

Vectors have d + 1 numbers, the last one for the bias: a column of ones (of zeros, where there is none) whose
ridge is the bias's own strength. A product is one pass over the rows of h > 0: a dot and an add for each.

What makes conjugate gradients fast is the matrix that stands in for H (the preconditioner). Where columns are
few it is H over a sample of rows, drawn in proportion to h and factorised: SAMPLE rows a column bring the
products of a step from tens down to two or three. A step that takes more lets the next one spend twice as
much on factors, up to those of H itself. (Whole, H costs what 5 products do where dense rows have 28
columns, and 28 where they have 500.) For least squares H is the same everywhere, and may be worth having
whole: one step then ends at the optimum. Elsewhere it is the diagonal of H, which on texts saves three
quarters of them and more.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Any

import numpy as np

from ...core.problem import Problem
from ...data.rows import entries_where
from ...data.sources import Part
from ...runtime.arrays import Floats
from ...runtime.jit import kernel
from .direct import DENSE_SHARE, FLOPS, Hessians, cholesky, cost, in_entries, roots
from .smoothed_losses import Smoothing

FORCING = 0.1  # conjugate gradients end where the residual is this part of the gradient
ROUNDS = 250  # or after so many products
SAMPLE = 50  # rows of a sample for each column, at first
LEAST = 3  # below so many the diagonal does better
EFFORT = 4  # products of two entries for a sample, at most, as a multiple of all entries
WHOLE = 12  # the same where the sample may be all rows, because H is the same everywhere
CUBES = 240  # d^3, likewise: what the factors may cost
MOST_DIRECT = 5000  # rows or columns of a Hessian that is factorised whole: 200 MB


def with_bias(w: Floats, b: float) -> Floats:
    """w and b as one vector. (np.append takes five times as long for few columns.)"""
    joined = np.empty(w.size + 1)
    joined[:-1] = w
    joined[-1] = b
    return joined


class Quadratic:
    """The model at the point of these scores; it counts the rows and entries that its products read."""

    def __init__(
        self, problem: Problem, smoothing: Smoothing, scores: Floats, sample: int, hessians: Hessians
    ) -> None:
        self.problem, self.source, self.sample, self.hessians = problem, problem.source, sample, hessians
        strength = problem.bias.strength(problem.lam)
        self.lift = 0.0 if strength == np.inf else 1.0  # without a bias its number stays 0
        self.strength = strength if strength < np.inf else 1.0
        self.exact = problem.loss.quadratic
        self.ridge = with_bias(np.full(self.source.d, problem.lam), self.strength)
        self.h = np.empty(self.source.n)
        self.reused = np.zeros(self.source.n)
        self.visits = self.entries = self.products = 0

        def visit(part: Part) -> int:
            rows, y, weight, _ = part.batch
            _, curvature = smoothing.of(part).duals_and_curvatures(y, problem.loss, scores[part.span])
            self.h[part.span] = 1.0 / problem.total_weight * weight * curvature
            return entries_where(rows, self.h[part.span] > 0.0)

        self.curved_entries = int(self.source.reduce(visit, add))  # of the rows of h > 0
        self.curved = int(np.count_nonzero(self.h > 0.0))

    def promised_gap(self, gradient: Floats) -> float:
        """The gap at a point of this gradient, times 2; that of a free bias is fitted away."""
        w = float(gradient[:-1] @ gradient[:-1]) / self.problem.lam
        return w + (float(gradient[-1]) ** 2 / self.strength if self.strength > 0.0 else 0.0)

    def minimise(self, gradient: Floats, value: float, tol: float) -> tuple[Floats, Floats]:
        """v with H v = -gradient, roughly, and X v.

        Where the model is all there is to it, which holds for least squares, conjugate gradients end where
        half the relative gap asked for is reached, ``value`` being P at the point: one step is then the whole
        of it.
        """
        v, along = np.zeros(gradient.size), np.zeros(self.source.n)
        residual = -gradient
        enough = FORCING**2 * self.promised_gap(residual)
        if enough == 0.0:
            return v, along
        exact = tol > 0.0 and self.exact
        solve = self.preconditioner()
        p = z = solve(residual)
        size = float(residual @ z)
        for _ in range(ROUNDS):
            scores, product = self.product(p)
            bend = float(p @ product)
            if not bend > 0.0:
                break
            length = size / bend
            v += length * p
            scores *= length
            along += scores
            residual -= length * product
            if exact:
                enough = tol * (value + 0.5 * float(gradient @ v))
            if self.promised_gap(residual) <= enough:
                break
            z = solve(residual)
            size, before = float(residual @ z), size
            if not size > 0.0:
                break
            p = z + size / before * p
        if self.curved < self.source.n:  # rows of h = 0 were left out
            self.complete(v, along)
        return v, along

    def product(self, p: Floats) -> tuple[Floats, Floats]:
        """X p, where h > 0, and H p. The first is a vector that the next product takes again."""
        scores = self.reused

        def visit(part: Part) -> Floats:
            total = np.zeros(p.size)
            _multiply(part.batch.rows, self.h[part.span], p, self.lift, scores[part.span], total)
            return total

        product = self.source.reduce(visit, np.add)
        product += self.ridge * p
        self.products += 1
        self.visits += self.curved
        self.entries += 2 * self.curved_entries
        return scores, product

    def complete(self, v: Floats, along: Floats) -> None:
        """X v where h = 0."""

        def visit(part: Part) -> None:
            _multiply(part.batch.rows, self.h[part.span], v, self.lift, along[part.span], np.zeros(0))

        self.source.reduce(visit, lambda left, right: None)
        self.visits += self.source.n - self.curved
        self.entries += self.source.nnz - self.curved_entries

    def preconditioner(self) -> Callable[[Floats], Floats]:
        """What solves H z = r cheaply and roughly."""
        solve, rows = self.factorised(), self.sample_size
        if solve is None and rows > 0:
            solve = self.sampled(rows)
        if solve is not None:
            return solve

        def visit(part: Part) -> Floats:
            total = np.zeros(self.source.d + 1)
            _diagonal(part.batch.rows, self.h[part.span], self.lift, total)
            return total

        diagonal = self.source.reduce(visit, np.add) + self.ridge
        self.entries += self.curved_entries
        diagonal[diagonal == 0.0] = 1.0  # a free bias where no row is curved
        return lambda residual: residual / diagonal

    @property
    def effort(self) -> float:
        """What factors may cost, in entries that a pass over sparse rows would read meanwhile."""
        entry = 1.0 if self.hessians.sparse else DENSE_SHARE
        return EFFORT * self.sample / SAMPLE * entry * self.source.nnz

    def factorised(self) -> Callable[[Floats], Floats] | None:
        """H itself, where its factors are worth it."""
        n, d = self.source.n, self.source.d
        price = cost(self.curved if d <= n else n, self.curved_entries, d, self.hessians.sparse)
        if min(n, d) > MOST_DIRECT or (self.curved < d <= n) or price > self.effort:
            return None
        self.entries += in_entries(price, self.hessians.sparse)
        return self.hessians.factorised(self.h)

    @property
    def sample_size(self) -> int:
        """Rows of a sample; 0 where too few can be had for what products cost."""
        d, nnz = self.source.d, self.source.nnz
        pairs = (self.curved_entries / max(1, self.curved)) ** 2 / 2.0
        most = EFFORT * nnz / max(1.0, pairs) if self.hessians.sparse else FLOPS * self.effort / d**2
        rows = int(min(self.curved, self.sample * d, most))
        if self.exact and self.curved * pairs <= WHOLE * nnz:
            rows = self.curved
        return 0 if d**3 > CUBES * nnz or (rows < self.curved and rows < LEAST * d) else rows

    def sampled(self, rows: int) -> Callable[[Floats], Floats] | None:
        """H over about so many rows, drawn in proportion to h; those of large h are all in it.

        Scaled to a diagonal of 1 it is factorised with a little more there: columns may depend on each other.
        """
        stride = self.stride(rows)
        if not self.hessians.sparse:  # BLAS is several times as fast as the kernel
            chosen, root = drawn(self.h, stride) if stride > 0.0 else roots(self.h)
            self.entries += in_entries(root.size * self.source.d**2 / FLOPS, sparse=False)
            return self.hessians.by_columns(chosen, root)
        width = self.source.d + 1
        matrix = np.zeros((width, width))
        (part,) = self.source.parts()
        self.entries += int(_sample(part.batch.rows, self.h, stride, self.lift, matrix))
        diagonal = matrix.diagonal() + self.ridge
        diagonal[-1] = diagonal[-1] or 1.0  # a free bias where no row is curved
        matrix += matrix.T  # rows may list their columns in any order; below the diagonal is all there
        matrix.reshape(-1)[:: width + 1] = diagonal
        return cholesky(matrix)

    def stride(self, rows: int) -> float:
        """Such that all rows of h >= stride, and one wherever the sum of the others passes it, are so
        many.
        """
        if rows == self.curved:
            return 0.0
        large, rest = 0, float(self.h.sum())
        stride = rest / rows
        for _ in range(10):
            above = self.h >= stride
            before, large = large, int(np.count_nonzero(above))
            if large == before or large >= rows:
                break
            stride = (rest - float(np.sum(self.h, where=above))) / (rows - large)
        return stride


def drawn(h: Floats, stride: float) -> tuple[Any, Floats]:
    """The rows of h >= stride, and one wherever the sum of the others passes a multiple of it; with the
    root of what each stands for.
    """
    large = np.flatnonzero(h >= stride)
    below = h.copy()
    below[large] = 0.0
    np.cumsum(below, out=below)
    small = np.searchsorted(below, stride * np.arange(0.5, below[-1] / stride))
    chosen = np.concatenate([large, small[small < h.size]])
    share = np.full(chosen.size, stride)
    share[: large.size] = h[large]
    return chosen, np.sqrt(share)


@kernel
def _multiply(rows: Any, h: Floats, p: Floats, lift: float, scores: Floats, product: Floats) -> None:
    """``scores = X p`` and ``product += X' h X p`` over the rows of h > 0; where ``product`` is empty,
    ``scores = X p`` over the other rows.
    """
    last = p.shape[0] - 1
    whole = product.shape[0] > 0
    for i in range(h.shape[0]):
        if (h[i] > 0.0) == whole:
            score = rows.dot(i, p) + lift * p[last]
            scores[i] = score
            if whole:
                rows.add(i, h[i] * score, product)
                product[last] += lift * h[i] * score


@kernel
def _diagonal(rows: Any, h: Floats, lift: float, diagonal: Floats) -> None:
    """``diagonal += that of X' h X``."""
    for i in range(h.shape[0]):
        if h[i] > 0.0:
            for k in range(rows.count(i)):
                column, value = rows.entry(i, k)
                diagonal[column] += h[i] * value * value
            diagonal[diagonal.shape[0] - 1] += lift * h[i]


@kernel
def _sample(rows: Any, h: Floats, stride: float, lift: float, matrix: Floats) -> int:
    """Add h x x' of a sample, each product once; a row that stands for its neighbours counts as the
    stride.
    """
    last, entries = matrix.shape[0] - 1, 0
    ahead = 0.5 * stride
    for i in range(h.shape[0]):
        if h[i] == 0.0:
            continue
        share = h[i]
        if share < stride:
            ahead -= share
            if ahead > 0.0:
                continue
            ahead += stride
            share = stride
        count = rows.count(i)
        entries += count * (count + 1) // 2
        for k in range(count):
            column, value = rows.entry(i, k)
            value *= share
            for m in range(k + 1):
                other, factor = rows.entry(i, m)
                matrix[column, other] += value * factor
            matrix[last, column] += lift * value
        matrix[last, last] += lift * share
    return entries
