"""What the layouts of rows share: the codes of faults, and the sum of squares."""

from __future__ import annotations

import numpy as np

from ...runtime.arrays import Values
from ...runtime.jit import inner

LINE = 16  # entries of 4 bytes in a cache line

# what may be wrong with a row, from the mildest to the worst
UNORDERED, EXTREME, NOT_FINITE, BROKEN = 1, 2, 3, 4


@inner
def sum_of_squares(values: Values, first: int, last: int) -> float:
    """The sum of squares of ``values[first:last]``, in four partial sums."""
    t0 = t1 = t2 = t3 = 0.0
    p = first
    while p + 4 <= last:
        v0, v1 = np.float64(values[p]), np.float64(values[p + 1])
        v2, v3 = np.float64(values[p + 2]), np.float64(values[p + 3])
        t0 += v0 * v0
        t1 += v1 * v1
        t2 += v2 * v2
        t3 += v3 * v3
        p += 4
    while p < last:
        v0 = np.float64(values[p])
        t0 += v0 * v0
        p += 1
    return (t0 + t1) + (t2 + t3)
