"""Sums whose rounding error is known: the arithmetic under every certificate.

``u = 2**-53`` is the unit roundoff of float64. A sum of k terms in any order errs by at most ``gamma(k) * sum |term|``
with ``gamma(k) = k u / (1 - k u)``; a compensated sum by at most ``2 u |sum| + gamma(k)^2 sum |term|``, which
``COMPENSATED * sum |term|`` covers for any k that fits in memory (Ogita, Rump and Oishi, SIAM J. Sci. Comput. 2005).
"""

from __future__ import annotations

import numpy as np

from .arrays import Floats
from .jit import kernel

UNIT = 2.0**-53
COMPENSATED = 4.0 * UNIT


@kernel
def gamma(terms: float) -> float:
    """The worst relative error of a plain sum of that many terms."""
    return terms * UNIT / (1.0 - terms * UNIT)


@kernel
def two_sum(a: float, b: float) -> tuple[float, float]:
    """``a + b`` and its rounding error, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@kernel
def sum_of_squares(values: Floats) -> float:
    """``|values|^2``, compensated."""
    total = 0.0
    lost = 0.0
    for value in values:
        total, error = two_sum(total, value * value)
        lost += error
    return total + lost


@kernel
def add_vector(total: Floats, lost: Floats, part: Floats) -> None:
    """``total + lost += part``, element by element, compensated, in place."""
    for j in range(total.shape[0]):
        total[j], error = two_sum(total[j], part[j])
        lost[j] += error


def norm(values: Floats) -> float:
    """The Euclidean length."""
    return float(np.sqrt(sum_of_squares(values)))
