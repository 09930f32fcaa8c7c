"""What the layouts of rows share: the codes of faults, and the sum of squares."""

from __future__ import annotations

import numpy as np

from ...runtime.arrays import Values
from ...runtime.jit import kernel

LINE = 16  # entries of 4 bytes in a cache line

# what may be wrong with a row, from the mildest to the worst
UNORDERED, EXTREME, NOT_FINITE, BROKEN = 1, 2, 3, 4


@kernel
def sum_of_squares(values: Values) -> float:
    """The sum of squares, in four partial sums: the same for a row alone and within its matrix."""
    t0 = t1 = t2 = t3 = 0.0
    whole = values.shape[0] - values.shape[0] % 4
    for p in range(0, whole, 4):
        v0, v1, v2, v3 = values[p], values[p + 1], values[p + 2], values[p + 3]
        t0 += np.float64(v0) * np.float64(v0)
        t1 += np.float64(v1) * np.float64(v1)
        t2 += np.float64(v2) * np.float64(v2)
        t3 += np.float64(v3) * np.float64(v3)
    for p in range(whole, values.shape[0]):
        t0 += np.float64(values[p]) * np.float64(values[p])
    return (t0 + t1) + (t2 + t3)
