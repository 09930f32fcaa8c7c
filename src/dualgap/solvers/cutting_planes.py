"""What the cutting-plane solvers share: cuts, their master problem, and the dual point behind its multipliers.

The mean hinge loss R(w) = 1/N sum c_i max(0, m - y_i s_i) is bounded from below by its tangents. A cut is the tangent
at some point: with the members M = {i: y_i s_i < m} there,

    R(w, b) >= offset - <gradient, w> - pull b,
    offset = m/N sum_M c_i,   gradient = 1/N sum_M c_i y_i x_i,   pull = 1/N sum_M c_i y_i.

The master problem replaces R by the highest of the cuts (and 0). Its dual, over multipliers t >= 0 with sum t <= 1, is

    maximise  offset't - lam/2 |w|^2 - centre z - z^2 / (2 mu),   w = 1/lam sum t gradient,  z = sum t pull

(the last two terms for a bias centred with strength mu), a small quadratic program for DAQP (Arnstrom, Bemporad and
Axehill, IEEE TAC 2022). Its multipliers are a dual point of the whole problem: beta_i = y_i sum of t over the cuts that
i is a member of, in the box because sum t <= 1. Memberships are kept as bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import Floats
from ..errors import InputError
from ..jit import kernel
from ..problem import Problem
from ..sources import Block

PATIENCE = 50  # rounds after which a cut that has not taken part is dropped
NOTHING = 1e-10  # a multiplier below this is rounding error
RIDGE = 1e-13  # added to the diagonal of the master, as a part of its mean, so that it is strictly convex


class Cuts(NamedTuple):
    """The cuts so far, one a row, and the multipliers of the last master problem."""

    gradients: Floats
    pulls: Floats
    offsets: Floats
    members: Any  # uint8, eight rows a byte
    products: Floats  # gradients times gradients
    multipliers: Floats
    idle: Any  # rounds since the multiplier was positive

    @property
    def grows(self) -> bool:
        """By a row a cut."""
        return True


def no_cuts(n: int, d: int) -> Cuts:
    """Before the first cut."""
    empty = np.zeros(0)
    members = np.zeros((0, (n + 7) // 8), dtype=np.uint8)
    return Cuts(np.zeros((0, d)), empty, empty, members, np.zeros((0, 0)), empty, np.zeros(0, dtype=np.int64))


def scores(problem: Problem, w: Floats, b: float) -> Floats:
    """``<w, x_i> + b`` for every row."""
    found = np.empty(problem.source.n)

    def visit(block: Block) -> None:
        _scores(block.rows, w, b, found[block.span])

    problem.source.reduce(visit, lambda left, right: None)
    return found


def add_cut(problem: Problem, cuts: Cuts, score: Floats) -> Cuts:
    """The tangent at a point, given by its scores, as one more cut."""
    y, weight, margin = problem.source.y, problem.source.weight, problem.loss.margin  # type: ignore[attr-defined]
    member = (y * score < margin) & (weight > 0)
    share = np.where(member, weight * y, 0.0)

    def visit(block: Block) -> Floats:
        part = np.zeros(problem.source.d)
        _add_rows(block.rows, share[block.span], part)
        return part

    total = problem.total_weight
    gradient = problem.source.reduce(visit, np.add) / total
    products = cuts.gradients @ gradient
    corner = np.array([[gradient @ gradient]])
    return Cuts(
        np.vstack([cuts.gradients, gradient]),
        np.append(cuts.pulls, share.sum() / total),
        np.append(cuts.offsets, margin * weight[member].sum() / total),
        np.vstack([cuts.members, np.packbits(member)]),
        np.block([[cuts.products, products[:, None]], [products[None, :], corner]]),
        np.append(cuts.multipliers, 0.0),
        np.append(cuts.idle, 0),
    )


def solve_master(problem: Problem, cuts: Cuts) -> Cuts:
    """The best multipliers, warm from the last ones; cuts that have been idle for long are dropped."""
    strength = problem.bias.strength(problem.lam)
    hessian = cuts.products / problem.lam
    linear = -cuts.offsets
    if strength < np.inf:
        hessian = hessian + np.outer(cuts.pulls, cuts.pulls) / strength
        linear = linear + problem.bias.centre * cuts.pulls
    found = _quadratic_program(hessian, linear, cuts.multipliers)
    multipliers = np.where(found > NOTHING, found, 0.0)
    multipliers /= max(1.0, multipliers.sum())
    idle = np.where(multipliers > 0.0, 0, cuts.idle + 1)
    kept = idle < PATIENCE
    if kept.all():
        return cuts._replace(multipliers=multipliers, idle=idle)
    return Cuts(
        cuts.gradients[kept],
        cuts.pulls[kept],
        cuts.offsets[kept],
        cuts.members[kept],
        cuts.products[np.ix_(kept, kept)],
        multipliers[kept],
        idle[kept],
    )


def _quadratic_program(hessian: Floats, linear: Floats, warm: Floats) -> Floats:
    """min 1/2 t'Ht + linear't over t >= 0, sum t <= 1.

    Cuts may be almost dependent, and an active-set method can then go round in circles from a warm start: a cold one,
    and a little more convexity, have always got out of that. Any t within the constraints is a valid dual point.
    """
    import daqp

    count = linear.size
    size = max(float(np.mean(np.diag(hessian))), 1e-300)
    for ridge, start in ((RIDGE, warm), (100 * RIDGE, None), (1e4 * RIDGE, None), (1e6 * RIDGE, None)):
        found, _, flag, _ = daqp.solve(
            hessian / size + ridge * np.eye(count),
            linear / size,
            np.ones((1, count)),
            np.append(np.full(count, 1e30), 1.0),
            np.append(np.zeros(count), -1e30),
            primal_start=start,
            primal_tol=1e-10,
            iter_limit=100_000,
        )
        if flag > 0:
            return np.asarray(found)
    raise InputError(
        f"the quadratic program over {count} cuts could not be solved (DAQP's flag {flag}); "
        "rescale the columns of X or use solver='dcd'"
    )


def master_point(problem: Problem, cuts: Cuts) -> tuple[Floats, float]:
    """The w and b that belong to the multipliers."""
    used = np.flatnonzero(cuts.multipliers)
    w = cuts.multipliers[used] @ cuts.gradients[used] / problem.lam
    strength = problem.bias.strength(problem.lam)
    return w, problem.bias.centre + (float(cuts.multipliers @ cuts.pulls) / strength if strength > 0 else 0.0)


def slack(cuts: Cuts, w: Floats, b: float) -> float:
    """The height of the highest cut, or 0: what the master believes the mean loss to be."""
    heights = cuts.offsets - cuts.gradients @ w - cuts.pulls * b
    return max(0.0, float(heights.max(initial=0.0)))


def dual_point(problem: Problem, cuts: Cuts) -> Floats:
    """beta, rebuilt from the multipliers and the memberships."""
    a = np.zeros(problem.source.n)
    for k in np.flatnonzero(cuts.multipliers):
        a += cuts.multipliers[k] * np.unpackbits(cuts.members[k], count=a.size)
    return np.minimum(a, 1.0) * problem.source.y


def mean_loss(problem: Problem, score: Floats) -> float:
    """R, from scores."""
    source, margin = problem.source, problem.loss.margin  # type: ignore[attr-defined]
    return float(_total_loss(source.y, source.weight, margin, score)) / problem.total_weight


@kernel
def _total_loss(y: Floats, weight: Floats, margin: float, score: Floats) -> float:
    total = 0.0
    for i in range(y.shape[0]):
        total += weight[i] * max(0.0, margin - y[i] * score[i])
    return total


@kernel
def _scores(rows: Any, w: Floats, b: float, found: Floats) -> None:
    for i in range(found.shape[0]):
        found[i] = rows.dot(i, w) + b


@kernel
def _add_rows(rows: Any, share: Floats, total: Floats) -> None:
    for i in range(share.shape[0]):
        if share[i] != 0.0:
            rows.add(i, share[i], total)
