"""What the cutting-plane solvers share: cuts, their master problem, and the dual point behind its
multipliers.

The mean hinge loss R(w) = 1/N sum c_i max(0, m - y_i s_i) is bounded from below by its tangents. A cut is the
tangent at some point: with the members M = {i: y_i s_i < m} there,

    R(w, b) >= offset - <gradient, w> - pull b,
    offset = m/N sum_M c_i,   gradient = 1/N sum_M c_i y_i x_i,   pull = 1/N sum_M c_i y_i.

The master problem replaces R by the highest of the cuts (and 0). Its dual, over multipliers t >= 0 with sum t
<= 1, is

    maximise  offset't - lam/2 |w|^2 - centre z - z^2 / (2 mu),   w = 1/lam sum t gradient,  z = sum t pull

(the last two terms for a bias centred with strength mu), a small quadratic program for DAQP (Arnstrom,
Bemporad and Axehill, IEEE TAC 2022). Its multipliers are a dual point of the whole problem: beta_i = y_i sum
of t over the cuts that i is a member of, in the box because sum t <= 1. Memberships are kept as bits.

A cut that is known already shows that the master problem was not solved accurately enough. It is then solved
again with its ridge centred at the last multipliers (the proximal point method) and a search along that step,
which removes the error of the ridge. Where that changes nothing, or takes too long, the run ends: float64
allows no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.problem import Problem
from ...data.sources import Part
from ...runtime.arrays import Floats
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ...training.states import WHOLE, Extent, GrowingNaturals, GrowingReals, Numbers, invariant, state_class
from ...training.stopping import Reason

MAX_IDLE = 50  # rounds after which a cut whose multiplier was 0 in all of them is dropped
MIN_MULTIPLIER = 1e-10  # below this it is rounding error
TINY = 1e-5  # multipliers of at most this size are scaled for DAQP, whose tolerances are absolute
MAX_KNOWN = 50  # rounds in a row whose cuts were known already, after which a run ends, ...
MIN_GAIN = 1e-4  # ... not counting those that raise the master's value by this part of it
RIDGE = 1e-13  # added to the diagonal of the master, as a part of its mean, so that it is strictly convex


@state_class
class Cuts(NamedTuple):
    """The cuts so far, and the multipliers of the last master problem. Each cut adds a row to every array."""

    gradients: Annotated[Floats, Numbers(shape=(None, "d"))]
    pulls: GrowingReals
    offsets: GrowingReals
    members: Annotated[Any, WHOLE._replace(shape=(None, None))]  # uint8, eight rows a byte
    products: Annotated[Floats, Numbers(shape=(None, None))]  # gradients times gradients
    multipliers: Annotated[Floats, Numbers(0.0, 1.0, shape=(None,))]
    idle: GrowingNaturals  # rounds since the multiplier was positive
    known: int  # rounds in a row whose cut was known already


@invariant(Cuts)
def _check(cuts: Cuts, extent: Extent) -> Iterator[tuple[bool, str]]:
    count = cuts.offsets.size
    shapes = [(count,)] * 4 + [(count, extent.d), (count, count), (count, (extent.n + 7) // 8)]
    found = (
        cuts.pulls,
        cuts.offsets,
        cuts.multipliers,
        cuts.idle,
        cuts.gradients,
        cuts.products,
        cuts.members,
    )
    yield [array.shape for array in found] == shapes, "arrays have different numbers of cuts"
    yield float(cuts.multipliers.sum()) <= 1.0 + 1e-6, "multipliers add up to more than 1"


def no_cuts(n: int, d: int) -> Cuts:
    """Before the first cut."""
    empty = np.zeros(0)
    return Cuts(
        gradients=np.zeros((0, d)),
        pulls=empty,
        offsets=empty,
        members=np.zeros((0, (n + 7) // 8), dtype=np.uint8),
        products=np.zeros((0, 0)),
        multipliers=empty,
        idle=np.zeros(0, dtype=np.int64),
        known=0,
    )


def scores(problem: Problem, w: Floats, b: float) -> Floats:
    """``<w, x_i> + b`` for every row."""
    found = np.empty(problem.source.n)

    def visit(part: Part) -> None:
        _scores(part.batch.rows, w, b, found[part.span])

    problem.source.reduce(visit, lambda left, right: None)
    return found


def add_cut(problem: Problem, cuts: Cuts, score: Floats) -> Cuts:
    """The tangent at a point, given by its scores, as one more cut, unless it is known already."""
    y, weight, margin = problem.source.y, problem.source.weight, problem.loss.margin
    member = (y * score < margin) & (weight > 0)
    bits = np.packbits(member)
    if (cuts.members == bits).all(axis=1).any():
        return cuts._replace(known=cuts.known + 1)
    share = np.where(member, weight * y, 0.0)

    def visit(part: Part) -> Floats:
        moment = np.zeros(problem.source.d)
        _add_rows(part.batch.rows, share[part.span], moment)
        return moment

    total = problem.total_weight
    gradient = problem.source.reduce(visit, np.add) / total
    products = cuts.gradients @ gradient
    corner = np.array([[gradient @ gradient]])
    return Cuts(
        gradients=np.vstack([cuts.gradients, gradient]),
        pulls=np.append(cuts.pulls, share.sum() / total),
        offsets=np.append(cuts.offsets, margin * weight[member].sum() / total),
        members=np.vstack([cuts.members, bits]),
        products=np.block([[cuts.products, products[:, None]], [products[None, :], corner]]),
        multipliers=np.append(cuts.multipliers, 0.0),
        idle=np.append(cuts.idle, 0),
        known=0,
    )


def solve_master(problem: Problem, cuts: Cuts) -> Cuts:
    """The best multipliers, warm from the last ones; cuts that have been idle for long are dropped."""
    strength = problem.bias.strength(problem.lam)
    hessian = cuts.products / problem.lam
    linear = -cuts.offsets
    if strength < np.inf:
        hessian = hessian + np.outer(cuts.pulls, cuts.pulls) / strength
        linear = linear + problem.bias.centre * cuts.pulls
    multipliers = _quadratic_program(hessian, linear, cuts.multipliers, proximal=cuts.known > 0)
    multipliers /= max(1.0, multipliers.sum())
    if cuts.known > 0:
        multipliers = _further(problem, cuts, linear, multipliers)
        value, before = (_value(problem, cuts, linear, t) for t in (multipliers, cuts.multipliers))
        if np.array_equal(multipliers, cuts.multipliers):
            cuts = cuts._replace(known=MAX_KNOWN)
        elif value - before > MIN_GAIN * abs(value):
            cuts = cuts._replace(known=1)
    idle = np.where(multipliers > 0.0, 0, cuts.idle + 1)
    kept = idle < MAX_IDLE
    if kept.all():
        return cuts._replace(multipliers=multipliers, idle=idle)
    return Cuts(
        gradients=cuts.gradients[kept],
        pulls=cuts.pulls[kept],
        offsets=cuts.offsets[kept],
        members=cuts.members[kept],
        products=cuts.products[np.ix_(kept, kept)],
        multipliers=multipliers[kept],
        idle=idle[kept],
        known=cuts.known,
    )


def _value(problem: Problem, cuts: Cuts, linear: Floats, multipliers: Floats) -> float:
    """The value of the master's dual, computed from the gradients."""
    w, strength = multipliers @ cuts.gradients, problem.bias.strength(problem.lam)
    pull = float(multipliers @ cuts.pulls) if 0.0 < strength < np.inf else 0.0
    return -float(linear @ multipliers) - 0.5 * float(w @ w) / problem.lam - 0.5 * pull * pull / strength


def _further(problem: Problem, cuts: Cuts, linear: Floats, multipliers: Floats) -> Floats:
    """Beyond the new multipliers, away from the last ones, to the best point on that ray within the
    constraints.

    Where the master is curved less than the ridge, a proximal step is much too short. The curvature along it
    is computed from the gradients: in ``products`` it may be rounding error alone.
    """
    step = multipliers - cuts.multipliers
    push, total = step @ cuts.gradients, float(step.sum())
    slope = -float(linear @ step) - float(push @ (multipliers @ cuts.gradients)) / problem.lam
    curvature = float(push @ push) / problem.lam
    strength = problem.bias.strength(problem.lam)
    if 0.0 < strength < np.inf:
        pull = float(step @ cuts.pulls)
        slope -= pull * float(multipliers @ cuts.pulls) / strength
        curvature += pull * pull / strength
    if not (slope > 0.0 and curvature > 0.0):
        return multipliers
    falling = step < 0.0
    length = min(slope / curvature, float(np.min(multipliers[falling] / -step[falling], initial=np.inf)))
    if total > 1e-6 * float(np.abs(step).sum()):  # else the sum stays, but for rounding
        length = min(length, max(0.0, 1.0 - float(multipliers.sum())) / total)
    found = np.maximum(multipliers + length * step, 0.0)
    return found / max(1.0, float(found.sum()))


def exhausted(cuts: Cuts) -> Reason | None:
    """The reason to end where no new cut has been found for long."""
    if cuts.known < MAX_KNOWN:
        return None
    return Reason(
        "stalled",
        "there is no new cut, and float64 does not solve the master problem over those known more "
        "accurately; "
        "rescale the columns of X, loosen the gap asked for or try another solver",
    )


def _quadratic_program(hessian: Floats, linear: Floats, warm: Floats, *, proximal: bool) -> Floats:
    """min 1/2 t'Ht + linear't over t >= 0, sum t <= 1; with ``proximal`` the ridge is centred at the last t.

    Cuts may be almost dependent, and an active-set method can then go round in circles from a warm start: a
    cold one, and a little more convexity, have always got out of that. Any t within the constraints is a
    valid dual point.
    """
    import daqp

    count = linear.size
    diagonal = np.diag(hessian)
    size = max(float(np.mean(diagonal)), 1e-300)
    typical = max(float(np.max(np.abs(linear) / np.maximum(diagonal, 1e-300))), float(np.max(warm)))
    unit = 2.0 ** np.floor(np.log2(typical)) if 0.0 < typical < TINY else 1.0  # of the multipliers
    warm = warm / unit
    for ridge, start in ((RIDGE, warm), (100 * RIDGE, None), (1e4 * RIDGE, None), (1e6 * RIDGE, None)):
        slope = linear / (size * unit)
        found, _, flag, _ = daqp.solve(
            hessian / size + ridge * np.eye(count),
            slope - ridge * warm if proximal else slope,
            np.ones((1, count)),
            np.append(np.full(count, 1e30), 1.0 / unit),
            np.append(np.zeros(count), -1e30),
            primal_start=start,
            primal_tol=1e-10,
            iter_limit=100_000,
        )
        if flag > 0:
            return np.where(found > MIN_MULTIPLIER, unit * found, 0.0)
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
    """The height of the highest cut at a point, or 0: the mean loss in the master problem."""
    heights = cuts.offsets - cuts.gradients @ w - cuts.pulls * b
    return max(0.0, float(heights.max(initial=0.0)))


def dual_point(problem: Problem, cuts: Cuts) -> Floats:
    """beta, rebuilt from the multipliers and the memberships."""
    a = np.zeros(problem.source.n)
    for k in np.flatnonzero(cuts.multipliers):
        a += cuts.multipliers[k] * np.unpackbits(cuts.members[k], count=a.size)
    return np.minimum(a, 1.0) * problem.source.y


def mean_loss(problem: Problem, score: Floats) -> float:
    """R(w, b), from the scores there."""
    source, margin = problem.source, problem.loss.margin
    return float(_total_loss(source.y, source.weight, margin, score)) / problem.total_weight


@kernel
def _total_loss(y: Floats, weight: Floats, margin: float, score: Floats) -> float:
    """``sum c_i max(0, m - y_i s_i)``."""
    total = 0.0
    for i in range(y.shape[0]):
        total += weight[i] * max(0.0, margin - y[i] * score[i])
    return total


@kernel
def _scores(rows: Any, w: Floats, b: float, found: Floats) -> None:
    """``<w, x_i> + b`` for the rows of a part."""
    for i in range(found.shape[0]):
        found[i] = rows.dot(i, w) + b


@kernel
def _add_rows(rows: Any, share: Floats, total: Floats) -> None:
    """``total += sum share_i x_i``."""
    for i in range(share.shape[0]):
        if share[i] != 0.0:
            rows.add(i, share[i], total)
