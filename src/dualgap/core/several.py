"""Evaluations of one point each of several problems that differ in their targets alone, in one pass.

One-vs-rest has K problems on the same rows: their scores and ``sum c beta x`` are products of matrices with a
column for each (`joint.products`), dense rows by BLAS, sparse ones read once for all. The values and the
bounds on their errors are those of `evaluation`, but for the order of sums: a score of m products errs by
``gamma(m + 4)`` whatever that is, and ``sum c beta x`` over the m rows of a part, in blocks, by ``gamma(m +
blocks + 2) sum c |beta| |x|``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..data.sources import Part
from ..runtime.arrays import Floats, canonical, writable
from ..runtime.jit import kernel
from ..runtime.sums import UNIT, add_vector, gamma, two_sum
from ..runtime.threads import blas_threads
from .bounds import Compensated, Sums, merged
from .evaluation import Evaluation, EvaluationPass, Partial, Point, Slopes
from .joint.products import blocks
from .problem import Problem


class Columns(NamedTuple):
    """The models of K problems, with bounds on their lengths."""

    b: Floats
    length: Floats


class Facts(NamedTuple):
    """What is known of some rows besides their scores."""

    positive: Any  # the number of the column in which a row's target is +1; it is -1 in all others
    weight: Floats
    squared_norms: Floats
    terms: Floats  # products in a score


class Together(NamedTuple):
    """What some rows add to the evaluations of all problems."""

    sums: list[Sums]
    moment: Floats  # (d, K)
    lost: Floats  # what rounding lost while parts were merged, as one vector; empty before
    errors: Floats  # K: bounds on the lengths of the errors of the moments

    @staticmethod
    def merge(left: Together, right: Together) -> Together:
        """Two neighbours together; the arrays of the left one are used again."""
        lost = left.lost if left.lost.size else np.zeros(left.moment.size)
        add_vector(left.moment.reshape(-1), lost, right.moment.reshape(-1))
        sums = [merged(one, other) for one, other in zip(left.sums, right.sums, strict=True)]
        return Together(sums, left.moment, lost, left.errors + right.errors)


def evaluate_together(
    problems: Sequence[Problem], points: Sequence[Point], positive: Any
) -> list[Evaluation]:
    """The evaluation of each point by its problem.

    The problems have the same rows, weights, loss, lam and kind of bias, with lam > 0, and every point has
    duals. ``positive`` has for every row the number of the problem in which its target is +1, or any other
    number where there is none; the targets are -1 elsewhere.
    """
    first, count = problems[0], len(problems)
    source = first.source
    betas = [
        problem.feasible(canonical(point.beta, np.float64))
        for problem, point in zip(problems, points, strict=True)
    ]
    passes = [
        EvaluationPass.of(first.loss, point.w, point.b, beta)
        for point, beta in zip(points, betas, strict=True)
    ]
    w = np.stack([one.model.w for one in passes], axis=1)
    models = Columns(
        np.array([one.model.b for one in passes]), np.array([one.model.length for one in passes])
    )
    beta, scores = np.stack(betas, axis=1), np.empty((source.n, count))
    slopes = Slopes.of(first.loss)

    def visit(part: Part) -> Together:
        rows, _, weight, squared_norms = part.batch
        moment, sums = np.zeros(w.shape), np.zeros((count, 10))
        used = 0
        at, duals, own = scores[part.span], beta[part.span], positive[part.span]
        for block in blocks(rows, count):
            span = block.span
            block.multiply(w, models.b, at[span])
            share = np.zeros((span.stop - span.start, count))
            facts = Facts(own[span], weight[span], squared_norms[span], block.terms())
            _evaluate(facts, first.loss, slopes, models, writable(at[span]), duals[span], share, sums)
            block.add_to(moment, share)
            used += 1
        found = [_sums(row) for row in sums]
        factor = float(gamma(weight.shape[0] + used + 2.0))
        return Together(found, moment, np.zeros(0), factor * sums[:, 9])

    with blas_threads(1):
        whole = source.reduce(visit, Together.merge)
    lost = whole.lost.reshape(w.shape) if whole.lost.size else np.zeros((0, count))
    return [
        problem._evaluation(
            point,
            evaluating,
            Partial(whole.sums[k], whole.moment[:, k].copy(), lost[:, k].copy(), float(whole.errors[k])),
            scores[:, k].copy(),
        )
        for k, (problem, point, evaluating) in enumerate(zip(problems, points, passes, strict=True))
    ]


def _sums(row: Floats) -> Sums:
    total, lost, error, dual, dual_lost, dual_error, balance, balance_lost, mass, length = map(float, row)
    return Sums(
        Compensated(total, lost),
        error,
        Compensated(dual, dual_lost),
        dual_error,
        Compensated(balance, balance_lost),
        mass,
        length,
    )


@kernel
def _evaluate(
    facts: Facts,
    loss: Any,
    slopes: Slopes,
    models: Columns,
    scores: Floats,
    beta: Floats,
    share: Floats,
    sums: Floats,
) -> None:
    """`evaluation._evaluate` of every column, for rows whose scores are known; ``share = c beta``."""
    positive, weight, squared_norms, terms = facts
    lipschitz, smoothness = slopes
    bounded = lipschitz < np.inf or smoothness < np.inf
    for i in range(weight.shape[0]):
        c = weight[i]
        if c == 0.0:
            continue
        size = np.sqrt(squared_norms[i])
        relative = gamma(terms[i] + 4.0) * 1.01
        for k in range(scores.shape[1]):
            label, score = 1.0 if k == positive[i] else -1.0, scores[i, k]
            value = loss.value(label, score)
            off = relative * (models.length[k] * size + abs(models.b[k])) + 4.0 * UNIT * (2.0 + abs(score))
            steep = abs(loss.derivative(label, score if bounded else score - off))
            if bounded:
                steep += smoothness * off
                steep = steep if steep < lipschitz else lipschitz
            else:
                other = abs(loss.derivative(label, score + off))
                steep = other if other > steep else steep
            sums[k, 2] += c * (1.01 * steep * off + 16.0 * UNIT * value)
            sums[k, 0], rest = two_sum(sums[k, 0], c * value)
            sums[k, 1] += rest
            a = beta[i, k]
            if a != 0.0:
                conjugate = loss.conjugate(label, a)
                sums[k, 5] += c * 16.0 * UNIT * (abs(conjugate) + abs(a) * (2.0 + abs(a)))
                sums[k, 3], rest = two_sum(sums[k, 3], c * conjugate)
                sums[k, 4] += rest
                sums[k, 6], rest = two_sum(sums[k, 6], c * a)
                sums[k, 7] += rest
                sums[k, 8] += c * abs(a)
                sums[k, 9] += 1.01 * c * abs(a) * size
                share[i, k] = c * a
