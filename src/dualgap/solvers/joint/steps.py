"""How far a step of Newton's method goes, and where free intercepts end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from ...runtime.arrays import Floats
from .rows import JointRows

FLAT, RISING = 0.3, 0.05  # a search ends where the slope is this part of the first, and where it is positive
MAX_LOOKS, LONGEST = 12, 8.0  # of a search
FIRM = 1e-7  # what is added to the curvature of intercepts, which may be nothing but rounding
BALANCED = 1e-13  # a z that is as good as 0


def step_length(
    at: Callable[[float], tuple[float, float]], value: float, slope: float
) -> tuple[float, float]:
    """A step length at which a convex function hardly falls any more, and its value there.

    ``at`` gives value and slope; ``value`` and ``slope`` are those at 0. The search begins at 1, doubles as
    long as the function falls, and then goes by secants that are kept within the bracket.
    """
    low, low_slope, high, high_slope, t, found = 0.0, slope, np.inf, 0.0, 1.0, value
    for _ in range(MAX_LOOKS):
        found, here = at(t)
        if -FLAT * abs(slope) <= here <= RISING * abs(slope) and found < value:
            break
        if here < 0.0:
            low, low_slope = t, here
        else:
            high, high_slope = t, here
        if high == np.inf:
            t *= 2.0
            if t > LONGEST:
                break
        else:
            rise = high_slope - low_slope  # 0 where there is nothing left to gain
            secant = low - low_slope * (high - low) / rise if rise > 0.0 else low
            t = min(max(secant, low + 0.1 * (high - low)), high - 0.1 * (high - low))
    return t, found


def fitted_intercepts(rows: JointRows, scores: Floats, steps: int) -> Floats:
    """What to add to free intercepts so that z is 0: Newton's method in K variables, with its first slope."""
    slope, shift = rows.balance_slope(scores), np.zeros(rows.classes)
    slope += np.trace(slope) / rows.classes**2  # all intercepts together may move freely
    slope[np.diag_indices(rows.classes)] += FIRM
    factor = lu_factor(slope)
    z = rows.balance(scores, shift)
    for _ in range(steps):
        if np.abs(z).max() <= BALANCED:
            break
        moved = shift - lu_solve(factor, z)
        left = rows.balance(scores, moved)
        if not np.abs(left).max() < np.abs(z).max():  # rounding, or too far from where z is 0
            break
        shift, z = moved, left
    return shift
