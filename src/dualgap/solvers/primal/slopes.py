"""A dual point made of the slopes that a stochastic solver meets: a mean of -phi' for every row.

The k-th visit of a row has a weight in proportion to k, so that early slopes are forgotten. The means are
convex combinations of slopes, so they stay within the bounds of beta.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.problem import Problem
from ...runtime.arrays import Floats
from ...runtime.jit import kernel
from ...training.states import Naturals, state_class
from ..dual.averaging import clipped


@state_class
class SlopeMeans(NamedTuple):
    """Weighted means of -phi', row by row; empty where no dual point is asked for."""

    slopes: Floats
    looks: Naturals  # uint32: visits of each row

    @classmethod
    def of(cls, n: int) -> SlopeMeans:
        """No row has been visited."""
        return cls(np.zeros(n), np.zeros(n, dtype=np.uint32))

    def dual_point(self, problem: Problem) -> Floats | None:
        """The means as beta, without the rounding errors by which they may exceed their bounds."""
        return clipped(problem, self.slopes) if self.slopes.size else None


@kernel(forceinline=True)
def note_slope(means: Any, i: int, slope: float) -> None:
    """Take in -phi' of one more visit of row i: the k-th changes the mean by a part 2/(k + 1)."""
    means.looks[i] += np.uint32(1)
    means.slopes[i] += (slope - means.slopes[i]) * (2.0 / (means.looks[i] + 1.0))
