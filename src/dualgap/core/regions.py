"""Where the optimum lies: what a primal and a dual point prove of the scores that the exact optimum gives.

In C-form, with J(w, b) an upper bound on the objective of the model, D the lower bound of the dual point, v =
w(beta) and G = J(w, b) - D:

- J is strongly convex in w, so ``1/2 |w - w*|^2 <= J(w, b) - J*``. D is a quadratic function of w(beta) and a
  concave one, so ``1/2 |v - w*|^2 <= J* - D``. Together ``|w - w*|^2 + |v - w*|^2 <= 2 G``, which is a ball:
  ``|w* - m|^2 <= G - |w - v|^2 / 4`` around ``m = (w + v) / 2``. Its radius lies between sqrt(G/2) and
  sqrt(G), where J alone would give sqrt(2 G). A regularised intercept is one more weight.

- An intercept that is not regularised has no such ball. But any dual point beta', with ``zeta = C sum c
  beta'`` that need not be 0, has ``J(u, b) >= D0(beta') + 1/2 |u - v'|^2 - zeta b`` for all (u, b), D0 being
  the dual value without a bias. At the optimum, with ``m' = (w + v') / 2`` and ``k = D0(beta') - J(w, b) +
  1/4 |w - v'|^2``, that is ``zeta b* >= |w* - m'|^2 + k``, and the least that ``<w*, x> + b*`` can be is, for
  zeta > 0,

      ``<m', x> - zeta/4 |x|^2 + k / zeta``

  and the most, for zeta < 0, the same expression. Dual points of either sign come from moving beta along the
  duals that are free to move: the best length of such a step makes the interval ``sqrt(G) |x - centre of the
  free rows|`` wide to either side, so three lengths are tried and every row takes the best of them.

All bounds allow for rounding: of J and D by their own bounds, of w(beta) as `bounds` derives it, of lam for
the C of a caller.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..runtime.arrays import Floats
from ..runtime.errors import InputError
from ..runtime.sums import UNIT, gamma, norm
from .bias import AugmentedBias, NoBias
from .problem import AnyProblem, Evaluation, Point

STEPS = (0.5, 1.0, 2.0)  # times the step that suits rows of the usual length
FORM = 16.0 * UNIT  # more than J and w(beta) differ between lam and the C of a caller, relatively
SHARE = 0.1  # of a gap, from which on rounding is worth a pass with compensated sums


class Cut(NamedTuple):
    """A bound on all scores: with ``m'`` the centre moved by ``step`` times the direction of its ray,
    ``<m', x> - zeta/4 |x|^2 + constant / zeta``.
    """

    step: float
    zeta: float
    zeta_error: float
    constant: float  # a lower bound on k
    error: float  # a bound on the length of the error of m'


class Ray(NamedTuple):
    """Cuts whose dual points lie on one ray; all of them bound scores from the same side."""

    direction: Floats
    cuts: tuple[Cut, ...]


class Region(NamedTuple):
    """A ball that holds the weights of the optimum, and bounds on scores where the intercept is free."""

    centre: Floats  # of shape (d,), or (d, K)
    intercept: Any  # of the centre
    radius: float
    rho: float  # the constant feature behind a regularised intercept; 0 without one
    free: bool = False  # the intercept is not regularised: scores are bounded by the rays, if at all
    below: Ray | None = None
    above: Ray | None = None


def region_of(problem: AnyProblem, point: Point) -> Region:
    """Where the optimum lies, from a model and its dual point; some passes over the rows."""
    if problem.lam == 0.0:
        raise InputError("lam=0: nothing bounds the scores of the optimum; give lam or C to have bounds")
    if problem.bias.free and problem.scores_per_row:
        raise InputError(
            "bias='exact' with all classes at once: no bound is known on the scores of the optimum; take "
            "bias='augmented', or one class against the rest"
        )
    found = _evaluated(problem, point)
    high = (found.primal + found.primal_error) / problem.lam * (1.0 + FORM)
    low = (found.dual - found.dual_error) / problem.lam
    gap = high - low + FORM * abs(low)
    ball = _ball(problem, point, found, gap)
    if not problem.bias.free or not math.isfinite(gap):
        return ball._replace(free=problem.bias.free)
    return ball._replace(
        free=True,
        below=_ray(problem, point, found, high, gap, ball, 1.0),
        above=_ray(problem, point, found, high, gap, ball, -1.0),
    )


def _evaluated(problem: AnyProblem, point: Point) -> Evaluation:
    found: Evaluation = problem.evaluate(point)
    rounding, gap = found.primal_error + found.dual_error, found.primal - found.dual
    return problem.evaluate(point, compensated=True) if rounding > SHARE * gap else found


def _error_of_w(problem: AnyProblem, beta: Floats | None, length: float) -> float:
    """A bound on the length of the error of w(beta), with its weight of a constant feature."""
    if beta is None:
        return 0.0
    source, rho = problem.source, problem.bias.rho
    sizes = np.abs(beta) if beta.ndim == 1 else np.sqrt(np.einsum("ik,ik->i", beta, beta))
    mass = float(np.sum(source.weight * sizes * (np.sqrt(source.squared_norms) + rho)))
    terms = source.n + 16.0 + (beta.shape[1] if beta.ndim == 2 else 0)
    scale: float = problem.scale
    return 1.02 * float(gamma(terms)) * mass * scale + FORM * length


def _ball(problem: AnyProblem, point: Point, found: Evaluation, gap: float) -> Region:
    rho = float(problem.bias.rho) if isinstance(problem.bias, AugmentedBias) else 0.0
    w, v = point.w, found.w_of_dual
    centre = 0.5 * (w + v)
    intercept: Any = 0.0 * np.asarray(point.b) if not rho else 0.5 * (point.b + np.asarray(found.b))
    apart, length = norm((w - v).reshape(-1)), norm(w.reshape(-1)) + norm(v.reshape(-1))
    if rho:
        shift = norm(np.atleast_1d(np.asarray(point.b) - np.asarray(found.b))) / rho
        apart = math.hypot(apart, shift)
        length += (norm(np.atleast_1d(point.b)) + norm(np.atleast_1d(found.b))) / rho
    error = _error_of_w(problem, point.beta, length)
    sure = max(0.0, apart * (1.0 - 16.0 * UNIT) - error)
    square = gap - 0.25 * sure * sure
    radius = math.sqrt(max(0.0, square)) * (1.0 + 16.0 * UNIT) + error + 4.0 * UNIT * length
    return Region(centre, intercept if np.ndim(intercept) else float(intercept), radius, rho)


def _room(problem: AnyProblem, beta: Floats) -> tuple[Floats, Floats, Floats]:
    """Bounds of the duals, and how freely each can move: 0 at a bound and at 0, where conjugates may have a
    kink, and in proportion to the distance near by, so that a step costs no more than a part of the gap. For
    the logistic loss it is the curvature.
    """
    box, y = problem.loss.dual_bounds, problem.source.y
    if problem.loss.task == "regression":
        low, high = (np.full(beta.shape, end) for end in box(0.0))
    else:
        up = y.real > 0.0
        low, high = (np.where(up, a, b) for a, b in zip(box(1.0), box(-1.0), strict=True))
    width, size = high - low, np.abs(beta)
    closed = np.isfinite(width)
    room = np.where((beta > low) & (beta < high) & (problem.source.weight > 0.0), 1.0, 0.0)
    room[closed] *= ((beta - low)[closed] / width[closed]) * (high - beta)[closed]
    at_kink = ~(closed & ((low == 0.0) | (high == 0.0)))
    room[at_kink] *= size[at_kink] / (size[at_kink] + (float(size.mean()) or 1.0))
    return low, high, room


def _ray(
    problem: AnyProblem, point: Point, found: Evaluation, high: float, gap: float, ball: Region, sign: float
) -> Ray | None:
    """The cuts of one sign; None where no dual is free to move that way."""
    start = np.zeros(problem.source.n) if point.beta is None else problem.feasible(point.beta)
    least, most, room = _room(problem, start)
    weight, scale = problem.source.weight, problem.scale
    rate = scale * float(np.sum(weight * room))  # of zeta
    if not rate > 0.0:
        return None
    usual = math.sqrt(problem.mean_square) or 1.0
    best = min(2.0 * math.sqrt(gap) / (rate * usual), 1.0)
    if not best > 0.0:
        return None
    plain = problem.with_bias(NoBias())
    zero, v = np.zeros(problem.source.d), found.w_of_dual
    evaluated = []
    for factor in STEPS:
        beta = np.clip(start + sign * factor * best * room, least, most)
        evaluated.append((sign * factor * best, beta, plain.evaluate(Point(zero, 0.0, beta))))
    step, _, middle = evaluated[1]
    direction = (middle.w_of_dual - v) / step
    cuts = []
    for step, beta, value in evaluated:
        if not np.isfinite(value.dual):
            continue
        share = weight * beta
        zeta, mass = scale * math.fsum(share.tolist()), scale * float(np.sum(np.abs(share)))
        error = _error_of_w(problem, beta, norm(value.w_of_dual))
        off = norm(value.w_of_dual - v - step * direction)
        length = norm(point.w) + norm(v) + norm(value.w_of_dual)
        apart = max(0.0, norm(value.w_of_dual - point.w) * (1.0 - 16.0 * UNIT) - error)
        dual = (value.dual - value.dual_error) / problem.lam
        constant = dual - FORM * abs(dual) - high + 0.25 * apart * apart * (1.0 - 16.0 * UNIT)
        zeta_error = 2.0 * FORM * mass
        if sign * zeta > 2.0 * zeta_error:
            cuts.append(Cut(step, zeta, zeta_error, constant, 0.5 * (error + off) + 8.0 * UNIT * length))
    return Ray(direction, tuple(cuts)) if cuts else None
