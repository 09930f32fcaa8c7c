"""Starting points for the K logistic problems of one-vs-rest, found for all classes at once.

    P_k(w, b) = lam/2 |w|^2 + r(b) + 1/N sum_i c_i phi(<w, x_i> + b, +1 where y_i = k, else -1)

The problems have the rows in common: their scores, gradients and products with Hessians are products of one
matrix with K columns, as in `newton`, and each class has step lengths of its own. A class takes part until
its gap, |gradient|^2 / (2 lam), is reached. Nothing is certified here: what is found is handed to a run of
each class as its warm start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.problem import Point, Problem
from ...data.sources import View
from ...runtime.arrays import Floats
from ...runtime.threads import blas_threads, in_threads
from .preconditioner import Preconditioner
from .rows import JointRows
from .together import Class, evaluated

FINER, LEAST_ROWS = 8, 4096  # samples come first, as in `newton`
LEVEL_ENDS = 0.1
FORCING, STALE = 0.03, 0.5
SURE = 0.3  # of the relative gap asked for
MAX_STEPS, MAX_PRODUCTS, MAX_HALVINGS, FITS = 25, 40, 12, 3


class Start(NamedTuple):
    """Models of all classes, and their scores."""

    w: Floats  # (d, K)
    b: Floats
    scores: Floats  # (n, K)

    def classes(self, problems: Sequence[Problem], codes: Any, tol: float) -> list[Class]:
        """Each class with its duals, which are minus the slopes of the loss, and evaluated."""
        points = [
            Point(self.w[:, k].copy(), float(self.b[k]), self.duals(k, codes == k))
            for k in range(len(problems))
        ]
        return evaluated(problems, points, codes, tol)

    def duals(self, k: int, positive: Any) -> Floats:
        """Those of class k, whose rows are ``positive``."""
        found: Floats = positive - _sigmoid(self.scores[:, k].astype(np.float64))
        return found


def one_vs_rest_start(
    source: View,
    codes: Any,
    classes: int,
    lam: float,
    ridge: float,
    tol: float,
    interrupted: Callable[[], bool] = lambda: False,
) -> Start:
    """Models of all classes whose relative gap is about ``tol``, or what there is when ``interrupted``;
    ``ridge`` is that of the intercepts, 0 where they are free and infinite where there are none.
    """
    share = source.weight / source.total_weight
    rows = JointRows(source.rows, codes, share, classes, source.d, source.threads)
    present = np.flatnonzero(source.weight)
    w, b = np.zeros((source.d, classes)), np.zeros(classes)
    level = 0
    while present.size // FINER ** (level + 1) >= max(LEAST_ROWS, 32 * classes):
        level += 1
    with blas_threads(1):
        for finer in range(level, -1, -1):
            some = rows
            if finer:
                count = present.size // FINER**finer
                some = rows.some(np.sort(np.random.default_rng(finer).choice(present, count, replace=False)))
            _minimise(_Logistic(some, lam, ridge), w, b, tol, interrupted, sample=finer > 0)
        scores = rows.scores(w, b)
        if ridge == 0.0:
            shift = _fitted(rows, scores)
            b += shift
            scores += shift.astype(rows.dtype)
    return Start(w, b, scores)


class _Logistic(NamedTuple):
    """The problems of all classes on some rows."""

    rows: JointRows
    lam: float
    ridge: float

    def slopes(self, scores: Floats, w: Floats, b: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Values, gradients and probabilities, of each class."""
        rows = self.rows
        p, value = np.empty_like(scores), np.zeros(rows.classes)

        def visit(spans: list[slice]) -> Floats:
            total = np.zeros(rows.classes)
            for span in spans:
                p[span] = _sigmoid(scores[span])
                total += _losses(scores[span], rows.y[span], rows.share[span])
            return total

        for found in in_threads(visit, rows.parts, rows.threads):
            value += found
        residual = p.copy()
        residual[np.arange(rows.n), rows.y] -= 1.0
        residual *= rows.share.astype(rows.dtype)[:, None]
        g = rows.moments(residual) + self.lam * w
        value += 0.5 * self.lam * _inner(w, w)
        gb = np.zeros_like(b)
        if self.ridge < np.inf:
            gb = residual.sum(axis=0, dtype=np.float64) + self.ridge * b
            value += 0.5 * self.ridge * b * b
        return value, g, gb, p

    def gaps(self, g: Floats, gb: Floats) -> Floats:
        """P - D of each class."""
        found = 0.5 * _inner(g, g) / self.lam
        return found + (0.5 * gb * gb / self.ridge if 0.0 < self.ridge < np.inf else 0.0)

    def direction(
        self, base: Preconditioner, p: Floats, g: Floats, gb: Floats, target: Floats
    ) -> tuple[Floats, Floats]:
        """``-H^-1 gradient`` of each class by conjugate gradients, until what is left predicts the target."""
        rows, lam, ridge = self.rows, self.lam, self.ridge
        precondition = base.applied(lam, ridge)
        q = p * (1.0 - p)
        q *= rows.share.astype(rows.dtype)[:, None]
        x, xb = np.zeros_like(g), np.zeros_like(gb)
        r, rb = -g, -gb
        z, zb = precondition(r, rb)
        v, vb = z, zb
        size = first = _inner(r, z) + rb * zb
        for _ in range(MAX_PRODUCTS):
            along = rows.scores(v, vb)
            along *= q
            hv = rows.moments(along) + lam * v
            hb = np.zeros_like(vb) if ridge == np.inf else along.sum(axis=0, dtype=np.float64) + ridge * vb
            step = size / np.maximum(_inner(v, hv) + vb * hb, 1e-300)
            x, xb = x + step * v, xb + step * vb
            r, rb = r - step * hv, rb - step * hb
            z, zb = precondition(r, rb)
            last, size = size, _inner(r, z) + rb * zb
            if np.all((size <= FORCING * first) | (self.gaps(r, rb) <= target)):
                break
            turn = size / np.maximum(last, 1e-300)
            v, vb = z + turn * v, zb + turn * vb
        return x, xb


def _minimise(
    problem: _Logistic, w: Floats, b: Floats, tol: float, interrupted: Callable[[], bool], sample: bool
) -> None:
    """Newton's method for all classes; w and b are moved in place."""
    rows, lam, ridge = problem.rows, problem.lam, problem.ridge
    scores, base, made_at = rows.scores(w, b), None, np.inf
    for _ in range(MAX_STEPS):
        if interrupted():
            return
        value, g, gb, p = problem.slopes(scores, w, b)
        if base is None or value.sum() < (1.0 - STALE) * made_at:
            base, made_at = Preconditioner.of(rows, p), float(value.sum())
        target = SURE * tol * value
        if np.all(problem.gaps(g, gb) <= target):
            return
        v, vb = problem.direction(base, p, g, gb, target)
        along = rows.scores(v, vb)
        slope = _inner(g, v) + gb * vb
        t, after = np.ones(rows.classes), value
        for _ in range(MAX_HALVINGS):
            moved_w, moved_b = w + t * v, b + t * vb
            after = _values(rows, scores, along, t) + 0.5 * lam * _inner(moved_w, moved_w)
            after += 0.5 * ridge * moved_b * moved_b if ridge < np.inf else 0.0
            high = after > value + 1e-4 * t * slope
            if not high.any():
                break
            t[high] *= 0.5
        w += t * v
        b += t * vb
        scores += t.astype(rows.dtype) * along
        if sample and np.all(value - after <= LEVEL_ENDS * after):
            return


def _values(rows: JointRows, scores: Floats, along: Floats, t: Floats) -> Floats:
    """The mean losses at ``scores + t along``."""

    def visit(spans: list[slice]) -> Floats:
        total = np.zeros(rows.classes)
        for span in spans:
            total += _losses(
                scores[span] + t.astype(rows.dtype) * along[span], rows.y[span], rows.share[span]
            )
        return total

    return np.asarray(np.sum(in_threads(visit, rows.parts, rows.threads), axis=0), dtype=np.float64)


def _losses(scores: Floats, y: Any, share: Floats) -> Floats:
    """``sum_i share_i ln(1 + exp(-+ s_ik))`` of each class."""
    signed = scores.copy()
    own = np.arange(y.size), y
    signed[own] = -signed[own]
    large = np.maximum(signed, 0.0)
    np.abs(signed, out=signed)
    np.negative(signed, out=signed)
    np.exp(signed, out=signed)
    np.log1p(signed, out=signed)
    signed += large
    found: Floats = share @ signed
    return found


def _fitted(rows: JointRows, scores: Floats) -> Floats:
    """What to add to free intercepts so that the residuals of each class add up to 0: Newton's method."""
    shares = np.bincount(rows.y, weights=rows.share, minlength=rows.classes)
    shift = np.zeros(rows.classes)
    for _ in range(FITS):

        def visit(spans: list[slice], shift: Floats = shift) -> tuple[Floats, Floats]:
            z, slope = np.zeros(rows.classes), np.zeros(rows.classes)
            for span in spans:
                p = _sigmoid(scores[span] + shift)
                z += rows.share[span] @ p
                slope += rows.share[span] @ (p * (1.0 - p))
            return z, slope

        found = in_threads(visit, rows.parts, rows.threads)
        z = np.sum([one for one, _ in found], axis=0) - shares
        slope = np.sum([two for _, two in found], axis=0)
        shift = shift - np.clip(z / np.maximum(slope, 1e-12), -1.0, 1.0)
    return shift


def _sigmoid(scores: Floats) -> Floats:
    """``1 / (1 + exp(-s))``; scores beyond 80 are taken for 80, beyond which exp is slow or overflows."""
    found = np.clip(scores, -80.0, 80.0)
    np.negative(found, out=found)
    np.exp(found, out=found)
    found += 1.0
    np.reciprocal(found, out=found)
    return found


def _inner(a: Floats, b: Floats) -> Floats:
    """The inner product of each column."""
    return np.asarray(np.einsum("jk,jk->k", a, b), dtype=np.float64)
