"""What a file of data holds, whatever its format: a whole file, or a block of its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..runtime.arrays import Columns, Floats, Offsets, Values
from .formats.text import shown


@dataclass(frozen=True, eq=False)
class Data:
    """Rows with their labels. ``notes`` are remarks that a user should see.

    ``zero_based`` tells from where the text that the rows come from counts its columns (None: there was no
    text). A block of a file begins at its row ``first``. In text a row has a line: ``gaps`` holds, for every
    line without a row (blank or comment) since line ``first_line``, how many rows of this block come before
    it.
    """

    path: Path
    X: Any  # CSR
    y: Floats
    zero_based: bool | None = None
    weight: Floats | None = None
    feature_names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    first: int = 0
    first_line: int | None = None
    gaps: Offsets = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    done: float = 0.0  # how much of the file has been read with this block, from 0 to 1 (0: nobody knows)
    digests: tuple[str, ...] | None = None  # of all rows of the file, where it keeps them (see `fingerprint`)

    def line(self, row: int) -> int:
        """The line of the text that a row comes from."""
        assert self.first_line is not None
        return int(self.first_line + row + np.searchsorted(self.gaps, row, side="right"))

    def place(self, row: int) -> str:
        """Where to find a row, for messages."""
        if self.first_line is None:
            return f"{shown(self.path)}, row {self.first + row}"
        return f"{shown(self.path)}, line {self.line(row)}"


def csr_over(values: Values, columns: Columns, starts: Offsets, shape: tuple[int, int]) -> Any:
    """CSR over these very arrays, which SciPy's constructor would check and sometimes copy.

    SciPy wants one type for columns and offsets, of 32 bits if all of them fit.
    """
    X: Any = sp.csr_array(shape)
    small = shape[1] <= 2**31 - 1 and starts[-1] <= 2**31 - 1
    X.indices = columns.view(np.int32) if small else columns.astype(np.int64)
    X.indptr = starts.astype(np.int32) if small else starts
    X.data = values
    return X
