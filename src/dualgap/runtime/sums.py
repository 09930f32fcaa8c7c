"""Sums whose rounding error is known: the arithmetic under every certificate.

``u = 2**-53`` is the unit roundoff of float64. A sum of k terms in any order errs by at most ``gamma(k) * sum
|term|`` with ``gamma(k) = k u / (1 - k u)``; a compensated sum by at most ``2 u |sum| + gamma(k)^2 sum
|term|``, which ``COMPENSATED * sum |term|`` covers for k up to ``LONGEST`` (Ogita, Rump and Oishi, SIAM J.
Sci. Comput. 2005). Longer sums are made in parts of at most that length, and the parts added with
compensation.
"""

from __future__ import annotations

import numpy as np

from .arrays import Floats, Offsets, canonical
from .jit import inner, kernel

UNIT = 2.0**-53
COMPENSATED = 4.0 * UNIT
LONGEST = 2**26  # gamma(2^26)^2 is half a unit
_STRETCH = 2**20  # terms of a part


@inner
def gamma(terms: float) -> float:
    """The worst relative error of a plain sum of that many terms."""
    return terms * UNIT / (1.0 - terms * UNIT)


@inner
def two_sum(a: float, b: float) -> tuple[float, float]:
    """``a + b`` and its rounding error, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@kernel
def _summed(values: Floats, squared: bool) -> tuple[float, float]:
    """The sum of some values, or of their squares, compensated, as a float and what is to be added to it."""
    total = lost = 0.0
    for i in range(values.shape[0]):
        total, error = two_sum(total, values[i] * values[i] if squared else values[i])
        lost += error
    return total, lost


def _summed_in_parts(values: Floats, squared: bool) -> tuple[float, float]:
    """The same for any number of values."""
    values = canonical(values, np.float64)
    total = lost = 0.0
    for first in range(0, values.shape[0], _STRETCH):
        part, part_lost = _summed(values[first : first + _STRETCH], squared)
        total, error = two_sum(total, part)
        lost += part_lost + error
    return total, lost


def summed(values: Floats) -> tuple[float, float]:
    """The sum of all values, compensated, as a float and what is to be added to it."""
    return _summed_in_parts(values, False)


def sum_of_squares(values: Floats) -> float:
    """``|values|^2``, compensated."""
    total, lost = _summed_in_parts(values, True)
    return total + lost


@kernel
def summed_by_group(groups: Offsets, values: Floats, count: int) -> tuple[Floats, Floats]:
    """The same for each of ``count`` groups; ``groups[i]`` is the number of the group of ``values[i]``."""
    total, lost = np.zeros(count), np.zeros(count)
    for i in range(values.shape[0]):
        total[groups[i]], error = two_sum(total[groups[i]], values[i])
        lost[groups[i]] += error
    return total, lost


@kernel
def add_vector(total: Floats, lost: Floats, part: Floats) -> None:
    """``total + lost += part``, element by element, compensated, in place."""
    for j in range(total.shape[0]):
        total[j], error = two_sum(total[j], part[j])
        lost[j] += error


class Total:
    """A compensated sum of numbers that come in parts; of non-negative ones, within two units of their
    sum.
    """

    def __init__(self) -> None:
        self._total = self._lost = 0.0

    def add(self, values: Floats) -> None:
        """The next numbers."""
        self.add_sum(*summed(values))

    def add_sum(self, total: float, lost: float) -> None:
        """A sum, as ``summed`` returns it."""
        self._total, error = two_sum(self._total, total)
        self._lost += lost + error

    @property
    def value(self) -> float:
        """The sum so far."""
        return float(self._total + self._lost)


class TotalByLabel:
    """The total weight of each label, compensated."""

    def __init__(self) -> None:
        self._totals: dict[float, Total] = {}

    def add(self, labels: Floats, groups: Offsets, weight: Floats) -> None:
        """Rows with these weights and the labels ``labels[groups]``, no two of which are the same."""
        parts = summed_by_group(canonical(groups, np.int64), canonical(weight, np.float64), labels.size)
        for label, total, lost in zip(labels.tolist(), *parts, strict=True):
            self._totals.setdefault(label, Total()).add_sum(total, lost)

    def __len__(self) -> int:
        return len(self._totals)

    def sorted(self) -> list[tuple[float, float]]:
        """Labels with their total weights, the smallest label first."""
        return [(label, self._totals[label].value) for label in sorted(self._totals)]


def total_of(values: Floats) -> float:
    """The sum, compensated."""
    total, lost = summed(values)
    return total + lost


def norm(values: Floats) -> float:
    """The Euclidean length."""
    return float(np.sqrt(sum_of_squares(values)))
