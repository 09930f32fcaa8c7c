"""A sample of rows in memory that stands for all rows: its losses, slopes and curvature by products of
matrices, in the precision the rows are stored in. Nothing here is part of a certificate.

Problems with one score a row and joint problems look alike: w has shape (d, K) and b (K,), with K = 1 for the
former.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ...core.losses import JOINT
from ...core.problem import AnyProblem
from ...data.rows import CSR, Dense, Rows
from ...data.sources import Part
from ...runtime.arrays import Floats, canonical
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ..joint.preconditioner import Preconditioner
from ..joint.rows import JointRows, Sums, _block, _multiply, _taken

ROWS_PER_COLUMN = 8  # of the sample that a preconditioner is made of

Precondition: TypeAlias = Callable[[Floats, Floats], tuple[Floats, Floats]]


class Slope(NamedTuple):
    """The mean loss at some scores, its gradient by w and b, and what tells the curvature there."""

    value: float
    moment: Floats
    by_class: Floats
    curvature: Any


class Sample(Protocol):
    """What the steps on a sample ask of it."""

    @property
    def n(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    def some(self, picks: Any) -> Sample: ...
    def scores(self, w: Floats, b: Floats) -> Floats: ...
    def slope(self, scores: Floats) -> Slope: ...
    def product(self, curvature: Any, v: Floats, vb: Floats) -> Sums: ...
    def along(self, scores: Floats, direction: Floats, t: float) -> tuple[float, float]: ...
    def precondition(self, curvature: Any, lam: float, ridge: float) -> Precondition: ...


@dataclass(frozen=True, eq=False)
class JointSample(JointRows):
    """Rows of a joint problem with the multinomial loss."""

    def some(self, picks: Any) -> JointSample:
        """A copy of these rows; shares add up to 1 again."""
        rows = super().some(picks)
        return JointSample(rows.rows, rows.y, rows.share, self.classes, self.d, self.threads)

    def slope(self, scores: Floats) -> Slope:
        """The mean loss and its gradient; the curvature is that of the probabilities."""
        found, p = self.gradient(scores)
        return Slope(found.value, found.moment, found.by_class, p)

    def product(self, curvature: Any, v: Floats, vb: Floats) -> Sums:
        """That of the Hessian with (v, vb)."""
        return self.hessian(curvature, np.ones(self.n, dtype=bool), v, vb)

    def precondition(self, curvature: Any, lam: float, ridge: float) -> Precondition:
        """As Newton's method in memory has it."""
        made = Preconditioner.of(self, curvature).applied(lam, ridge)
        return lambda g, gb: made(g, gb)


@dataclass(frozen=True, eq=False)
class BinarySample(JointRows):
    """Rows of a problem with one score a row; ``y`` are its targets."""

    loss: Any = None

    def some(self, picks: Any) -> BinarySample:
        """A copy of these rows; shares add up to 1 again."""
        rows = super().some(picks)
        return BinarySample(rows.rows, rows.y, rows.share, 1, self.d, self.threads, self.loss)

    def slope(self, scores: Floats) -> Slope:
        """The mean loss and its gradient; the curvature is share_i phi''_i."""
        residual, curvature = np.empty(self.n), np.empty(self.n)
        value = _slopes(self.y, self.share, self.loss, scores[:, 0], residual, curvature)
        column = residual.astype(self.dtype)[:, None]
        return Slope(float(value), self.moments(column), residual.sum(keepdims=True), curvature)

    def product(self, curvature: Any, v: Floats, vb: Floats) -> Sums:
        """That of the Hessian with (v, vb)."""
        weight, v, vb = curvature.astype(self.dtype)[:, None], v.astype(self.dtype), vb.astype(self.dtype)

        def visit(spans: list[slice]) -> Sums:
            total = self._no_sums()
            for span in spans:
                rows = _block(self.rows, span, self.dtype)
                found = np.empty((span.stop - span.start, 1), dtype=self.dtype)
                _multiply(rows, v, vb, found)
                found *= weight[span]
                self._add(span, rows, found, total)
            return total

        return self._reduce(visit)

    def along(self, scores: Floats, direction: Floats, t: float) -> tuple[float, float]:
        """The mean loss at ``scores + t direction``, and its slope."""
        value, slope = _along(self.y, self.share, self.loss, scores[:, 0], direction[:, 0], t)
        return float(value), float(slope)

    def precondition(self, curvature: Any, lam: float, ridge: float) -> Precondition:
        """The inverse of the Hessian of some of the rows, or of its diagonal where columns are many."""
        count = min(self.n, ROWS_PER_COLUMN * max(self.d, 256))
        picks = np.arange(count) * self.n // count
        some = self if count == self.n else self.some(picks)
        q = curvature[picks]
        q = q * (curvature.sum() / q.sum() if q.sum() > 0.0 else 1.0)
        a, mean = float(q.sum()), some.moments(q.astype(self.dtype)[:, None])[:, 0]
        if not self.full:
            diagonal = some.squares(q) + lam
            return lambda g, gb: (g / diagonal[:, None], gb / (a + ridge))
        free = ridge < np.inf
        H = np.empty((self.d + free, self.d + free))
        H[: self.d, : self.d] = some.second_moments(q)
        if free:
            H[-1, :-1] = H[:-1, -1] = mean
            H[-1, -1] = a + ridge
        H[np.arange(self.d), np.arange(self.d)] += lam + 1e-7 * float(np.trace(H)) / self.d
        factor = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)

        def applied(g: Floats, gb: Floats) -> tuple[Floats, Floats]:
            both = cho_solve(factor, np.vstack([g, gb]) if free else g, check_finite=False)
            return (both[:-1], both[-1]) if free else (both, np.zeros_like(gb))

        return applied


@dataclass(eq=False)
class Gathering:
    """Rows of a sample, gathered as chunks go by: of every stretch of rows its part of all that there is room
    for, at random.
    """

    problem: AnyProblem
    room: int
    seed: int
    _rows: list[Rows] = field(default_factory=list)
    _matrix: Any = None  # of dense rows: they are written where they stay
    _count: int = 0
    _y: list[Floats] = field(default_factory=list)
    _weight: list[Floats] = field(default_factory=list)

    def add(self, part: Part) -> None:
        """Take rows of the next part."""
        n, (first, last) = self.problem.source.n, (part.span.start, part.span.stop)
        count = last * self.room // n - first * self.room // n
        rng = np.random.default_rng([self.seed, first])
        picks = np.sort(rng.choice(last - first, count, replace=False))
        rows = part.batch.rows
        if isinstance(rows, Dense):
            if self._matrix is None:
                self._matrix = np.empty((self.room, rows.matrix.shape[1]), dtype=rows.matrix.dtype)
                self._rows.append(type(rows)(canonical(self._matrix, self._matrix.dtype)))
            self._matrix[self._count : self._count + count] = rows.matrix[picks]
            self._count += count
        else:
            self._rows.append(_taken(rows, picks))
        self._y.append(part.batch.y[picks])
        self._weight.append(part.batch.weight[picks])

    def sample(self) -> Sample:
        """The rows, once all have gone by."""
        problem, y, weight = self.problem, np.concatenate(self._y), np.concatenate(self._weight)
        total = float(weight.sum())
        if not total > 0.0:
            raise InputError("no row of the sample in memory has a positive weight; raise memory_budget")
        rows, threads = self._rows[0], problem.source.threads
        if not isinstance(rows, Dense):
            rows = joined(self._rows)
        self._rows.clear()
        if problem.loss.task == JOINT:
            classes = problem.classes
            return JointSample(rows, y.astype(np.intp), weight / total, classes, problem.source.d, threads)
        return BinarySample(rows, y, weight / total, 1, problem.source.d, threads, problem.loss)


def joined(parts: list[Rows]) -> Rows:
    """All rows in one; the parts are given back as they are copied."""
    first = parts[0]
    if isinstance(first, Dense):
        count = sum(part.matrix.shape[0] for part in parts)  # type: ignore[union-attr]
        whole = np.empty((count, first.matrix.shape[1]), dtype=first.matrix.dtype)
        place = 0
        while parts:
            block: Any = parts.pop(0)
            whole[place : place + block.matrix.shape[0]] = block.matrix
            place += block.matrix.shape[0]
        return type(first)(canonical(whole, whole.dtype))
    sparse: Any = parts
    spans = [slice(int(part.starts[0]), int(part.starts[-1])) for part in sparse]
    values = np.concatenate([part.values[span] for part, span in zip(sparse, spans, strict=True)])
    columns = np.concatenate([part.columns[span] for part, span in zip(sparse, spans, strict=True)])
    lengths = np.concatenate([np.diff(part.starts) for part in sparse])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return CSR(*(canonical(array, array.dtype) for array in (values, columns, starts)))


@kernel
def _slopes(y: Floats, share: Floats, loss: Any, scores: Any, residual: Floats, curvature: Floats) -> float:
    """The mean loss; ``share phi'`` and ``share phi''`` of every row."""
    total = 0.0
    for i in range(y.shape[0]):
        score = np.float64(scores[i])
        total += share[i] * loss.value(y[i], score)
        residual[i] = share[i] * loss.derivative(y[i], score)
        curvature[i] = share[i] * loss.curvature(y[i], score)
    return total


@kernel
def _along(y: Floats, share: Floats, loss: Any, scores: Any, direction: Any, t: float) -> tuple[float, float]:
    """The mean loss at ``scores + t direction``, and its slope."""
    total = slope = 0.0
    for i in range(y.shape[0]):
        way = np.float64(direction[i])
        score = np.float64(scores[i]) + t * way
        total += share[i] * loss.value(y[i], score)
        slope += share[i] * loss.derivative(y[i], score) * way
    return total, slope
