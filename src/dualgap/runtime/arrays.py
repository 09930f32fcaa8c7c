"""Names for the array types that kernels see, and the one place that brings arrays into that form."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Values: TypeAlias = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Columns: TypeAlias = npt.NDArray[np.uint32]
Offsets: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]


def writable(array: Any) -> Floats:
    """A writable, C-contiguous float64 array: the array itself, or a copy where it is not so.

    For the vectors that rows are multiplied with and added to: were some of them read-only, ``dot`` would be
    compiled twice.
    """
    return np.require(array, dtype=np.float64, requirements=["C", "A", "W"])


def canonical(array: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A read-only, C-contiguous, aligned view of native byte order; a copy only where the array is not so
    already.

    Read-only, because Numba compiles one more version of a kernel for each array type it meets: memory maps
    and arrays that the caller protects then look like all others, and nothing the caller owns can be written
    to.
    """
    fits = type(array) is np.ndarray and array.dtype == dtype
    if fits and array.flags.c_contiguous and array.flags.aligned:  # nearly always, and np.require is slow
        found: npt.NDArray[Any] = array
        if not found.flags.writeable:
            return found
    else:
        required = np.dtype(dtype).newbyteorder("=")
        found = np.asarray(np.require(array, dtype=required, requirements=["C", "A"]))
    view = found.view()
    view.flags.writeable = False
    return view
