"""Joint duals under a bias that is not regularised: their balance, and points for which it is 0.

Weak duality with a free b in R^K needs ``z = 1/N sum_i c_i beta_i = 0``: the mean of the p_i is then ``pi``,
the share of each class in all weight. Mixing all p_i with one point q of the simplex gets there:

    p'_i = (1 - t) p_i + t q,    q = pi + (1 - t)/t (pi - mean p),

where q >= 0 for ``t >= 1 - pi_k / (mean p)_k``, all k, and the smallest such t is taken. It needs
every class to have rows (pi_k > 0).
"""

from __future__ import annotations

import math

import numpy as np

from ...runtime.arrays import Floats
from ...runtime.jit import kernel
from ...runtime.sums import UNIT, two_sum
from .contract import mass_of

NONE_LEFT = 16.0 * UNIT  # a z that is rounding


def balanced(beta: Floats, y: Floats, weight: Floats, total_weight: float) -> Floats:
    """A dual point whose z is 0 up to rounding; ``beta`` itself where that is so already, and where it is
    not feasible.
    """
    classes = beta.shape[1]
    sums = np.zeros((2, classes))
    _balance(beta, y, weight, sums)
    z = (sums[0] + sums[1]) / total_weight
    if not np.isfinite(z).all() or np.abs(z).max() <= NONE_LEFT:
        return beta
    shares = np.bincount(y.astype(np.intp), weights=weight, minlength=classes) / total_weight
    mean = shares - z
    if not (shares > 0.0).all():
        return beta
    t = float(np.max(np.where(z < 0.0, -z / np.maximum(mean, 5e-324), 0.0)))
    if not 0.0 < t < 1.0:
        return beta
    q = np.maximum(shares + (1.0 - t) / t * z, 0.0)
    mixed = np.empty_like(beta)
    _mix(beta, y, t, q / q.sum(), mixed)
    return mixed


@kernel
def _balance(beta: Floats, y: Floats, weight: Floats, sums: Floats) -> None:
    """``sums[0] + sums[1] += sum_i c_i beta_i``, compensated, with the mass of each row for its beta_y."""
    for i in range(y.shape[0]):
        c, label = weight[i], int(y[i])
        if c > 0.0:
            own = mass_of(label, beta[i])
            for k in range(beta.shape[1]):
                sums[0, k], rest = two_sum(sums[0, k], c * (own if k == label else beta[i, k]))
                sums[1, k] += rest


@kernel
def _mix(beta: Floats, y: Floats, t: float, q: Floats, mixed: Floats) -> None:
    """``mixed_i = (1 - t) beta_i + t (e_y - q)``."""
    for i in range(y.shape[0]):
        label = int(y[i])
        total = 0.0
        for k in range(beta.shape[1]):
            mixed[i, k] = (1.0 - t) * beta[i, k] - t * q[k]
            if k != label:
                total -= mixed[i, k]
        mixed[i, label] = total


def intercept_bound(
    y: Floats, weight: Floats, squared_norms: Floats, lam: float, level: float, classes: int
) -> float:
    """A bound on ``b_j - b_y``, for all classes j and y, over all (W, b) with P(W, b) <= level.

    A joint loss is at least ``s_j - s_y``, and 0 at least. So the rows of class y, a share pi_y of all
    weight, have a mean of s_j - s_y of at most level / pi_y, of which ``<w_j - w_y, mean x>`` is at least
    ``-sqrt(2) |W| max |x_i|``, and ``|W| <= sqrt(2 level / lam)``. Infinite where a class has no rows.
    """
    codes = y.astype(np.intp)
    shares = np.bincount(codes, weights=weight, minlength=classes) / weight.sum()
    if not (shares > 0.0).all() or not math.isfinite(level):
        return math.inf
    longest = np.zeros(classes)
    np.maximum.at(longest, codes, np.where(weight > 0.0, squared_norms, 0.0))
    length = math.sqrt(2.0 * level / lam)
    return float(1.001 * np.max(level / shares + math.sqrt(2.0) * length * np.sqrt(longest)))
