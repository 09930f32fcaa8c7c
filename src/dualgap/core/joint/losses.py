"""The joint losses: multinomial logistic and Crammer-Singer."""

from __future__ import annotations

# mypy: disable-error-code="misc"
# (mypy knows no plain class attributes in a NamedTuple; Python does)
import math
from typing import NamedTuple

import numpy as np

from ...runtime.arrays import Floats
from ...runtime.jit import inner
from .contract import joint_loss_type

SURE = 1e-12  # a p_y up to which it is taken to be 0, and the others to have all of the mass
TINY = 1e-12  # a curvature up to which the dual step of the multinomial is taken to be that of curvature 0


@inner
def _entropy_term(x: float) -> float:
    """``-x ln x``, 0 at 0."""
    return -x * math.log(x) if x > 0.0 else 0.0


@joint_loss_type
class Multinomial(NamedTuple):
    """``ln sum_k exp(s_k - s_y)``: minus the logarithm of the probability of y."""

    unit: float = 1.0  # not used: Numba wants a NamedTuple to have a field

    name = "multinomial"
    summary = "ln sum_k exp(s_k - s_y): logistic regression of K classes at once"
    smoothness = 0.5
    probabilistic = True

    def row_loss(self, y: int, scores: Floats, off: float) -> tuple[float, float]:
        # The largest term is left out of the sum, so that a small loss is known to a small relative error.
        # The slopes add up to 2 (1 - p_y), which grows by a factor of exp(2 off) at most.
        top = 0
        for k in range(1, scores.shape[0]):
            if scores[k] > scores[top]:
                top = k
        rest = 0.0
        for k in range(scores.shape[0]):
            if k != top:
                rest += math.exp(scores[k] - scores[top])
        value = (scores[top] - scores[y]) + math.log1p(rest)
        wrong = 1.3 * rest / (1.0 + rest) if top == y and off <= 0.1 else 1.0
        return value, 2.0 * (wrong if wrong < 1.0 else 1.0)

    def row_gradient(self, y: int, scores: Floats, out: Floats) -> None:
        top = scores[0]
        for k in range(1, scores.shape[0]):
            top = scores[k] if scores[k] > top else top
        total = 0.0
        for k in range(scores.shape[0]):
            out[k] = math.exp(scores[k] - top)
            total += out[k]
        for k in range(scores.shape[0]):
            out[k] /= total
        out[y] -= 1.0

    def row_dual(self, y: int, beta: Floats, mass: float) -> float:
        total = -(1.0 - mass) * math.log1p(-mass) if mass < 1.0 else 0.0
        for k in range(beta.shape[0]):
            if k != y:
                total += _entropy_term(-beta[k])
        return total

    def row_dual_error(self, mass: float, value: float, error: float) -> float:
        # -p ln p moves by no more than -t ln t where p moves by t <= 1/2, and by (p + -p ln p) r where p
        # moves by a relative r.
        return error * (2.0 * value + 2.0 * mass) + 1.01 * _entropy_term(error * mass)

    def row_step(self, y: int, scores: Floats, beta: Floats, curvature: float, out: Floats) -> None:
        # Stationary where ln p_k + q p_k = s_k + q p'_k - nu, with p' = e_y - beta and q the curvature: so
        # q p_k = W(q exp(s_k + q p'_k - nu)), Lambert's function. nu is the root of G(nu) = ln sum_k p_k(nu),
        # which falls, and within q of L = ln sum_k exp(s_k), which it is where p' is optimal already.
        # Newton's method on G from there, kept within a bracket.
        q, count = curvature, scores.shape[0]
        top = scores[0]
        for k in range(1, count):
            top = scores[k] if scores[k] > top else top
        total = 0.0
        for k in range(count):
            out[k] = math.exp(scores[k] - top)
            total += out[k]
        if q > TINY:
            nu = top + math.log(total)
            low, high, shift = nu - q, nu + q, math.log(q)
            for _ in range(60):
                total = slope = 0.0
                for k in range(count):
                    before = q * ((1.0 if k == y else 0.0) - beta[k])
                    x = lambert(scores[k] + before - nu + shift)
                    out[k] = x
                    total += x
                    slope += x / (1.0 + x)
                value = math.log(total / q)
                if value > 0.0:
                    low = nu
                else:
                    high = nu
                if abs(value) <= 1e-13 or high - low <= 1e-15 * (abs(low) + abs(high)):
                    break
                nu += value * total / slope
                if not low < nu < high:
                    nu = 0.5 * (low + high)
        for k in range(count):
            out[k] /= total

    def row_idle(self, y: int, scores: Floats, beta: Floats, out: Floats) -> int:
        return int(scores.shape[0])  # p > 0 at every optimum

    def row_at_zero(self, classes: int) -> float:
        return math.log(classes)


@inner
def lambert(z: float) -> float:
    """The x > 0 with ``x + ln x = z``: Lambert's function of exp(z). Two steps of Fritsch, Shafer and Crowley
    (CACM 1973, algorithm 443), each of fourth order.
    """
    if z < -30.0:
        return math.exp(z)  # to 1e-13, relative
    if z > 1.0:
        x = z - math.log(z)
    else:
        e = math.exp(z)
        x = e / (1.0 + 0.76 * e)
    for _ in range(2):
        r = z - x - math.log(x)
        one = 1.0 + x
        t = 2.0 * one * (one + 2.0 / 3.0 * r)
        x *= 1.0 + r / one * (t - r) / (t - 2.0 * r)
    return x


@joint_loss_type
class CrammerSinger(NamedTuple):
    """``max_k (1[k != y] + s_k - s_y)``: the support vector machine of K classes."""

    unit: float = 1.0  # not used: Numba wants a NamedTuple to have a field

    name = "crammer-singer"
    summary = "max(0, 1 + max_{k != y} s_k - s_y): the support vector machine of K classes at once"

    def row_loss(self, y: int, scores: Floats, off: float) -> tuple[float, float]:
        short = -np.inf
        for k in range(scores.shape[0]):
            if k != y:
                gap = 1.0 + (scores[k] - scores[y])
                short = gap if gap > short or gap != gap else short
        slopes = 0.0 if short < -2.0 * off else 2.0
        return (0.0 if short < 0.0 else short), slopes

    def row_gradient(self, y: int, scores: Floats, out: Floats) -> None:
        best, short = y, 0.0
        for k in range(scores.shape[0]):
            out[k] = 0.0
            if k != y and 1.0 + (scores[k] - scores[y]) > short:
                best, short = k, 1.0 + (scores[k] - scores[y])
        out[best] += 1.0
        out[y] -= 1.0

    def row_dual(self, y: int, beta: Floats, mass: float) -> float:
        return mass

    def row_dual_error(self, mass: float, value: float, error: float) -> float:
        return error * mass

    def row_step(self, y: int, scores: Floats, beta: Floats, curvature: float, out: Floats) -> None:
        # The point of the simplex nearest to v, v_k = p_k + (s_k + 1[k != y]) / q (Crammer and Singer, JMLR
        # 2001; LIBLINEAR's -s 4): max(v_k - theta, 0), with theta by Michelot's method (J. Optim. Theory
        # Appl. 1986), which drops entries below theta until none is.
        q, best = curvature, 0
        for k in range(scores.shape[0]):
            out[k] = scores[k] + (0.0 if k == y else 1.0) + q * ((1.0 if k == y else 0.0) - beta[k])
            best = k if out[k] > out[best] else best
        top = out[best]
        theta = top - q  # all of it in units of 1 / q
        for _ in range(scores.shape[0]):
            total, count = 0.0, 0
            for k in range(scores.shape[0]):
                if out[k] >= theta:
                    total += out[k] - top
                    count += 1
            new = top + (total - q) / count
            if not new > theta:
                break
            theta = new
        total = 0.0
        for k in range(scores.shape[0]):
            out[k] = out[k] - theta if out[k] > theta else 0.0
            total += out[k]
        for k in range(scores.shape[0]):
            out[k] = out[k] / total if total > 0.0 else 0.0
        if not total > 0.0:  # the row is empty, or all but: any class is best that has the largest score
            out[best] = 1.0

    def row_idle(self, y: int, scores: Floats, beta: Floats, out: Floats) -> int:
        # A step keeps p_k = 0 where v_k = s_k + 1[k != y] is below that of every class with p > 0: what they
        # have in common after it lies between theirs.
        level = np.inf
        for k in range(scores.shape[0]):
            if beta[k] < 0.0 or (k == y and beta[k] < 1.0 - SURE):
                v = scores[k] + (0.0 if k == y else 1.0)
                level = v if v < level else level
        left = 0
        for k in range(scores.shape[0]):
            zero = beta[k] >= 1.0 - SURE if k == y else beta[k] == 0.0
            idle = zero and scores[k] + (0.0 if k == y else 1.0) < level
            out[k] = 1.0 if idle else 0.0
            left += 0 if idle else 1
        return left

    def row_at_zero(self, classes: int) -> float:
        return 1.0
