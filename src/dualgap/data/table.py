"""Tables: labelled rows as a format reads them, a whole file or some of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..runtime.arrays import Columns, Floats, Offsets, Values
from ..runtime.errors import InputError
from .formats.text import shown
from .words import Names, Vocabulary, decoded


@dataclass(frozen=True, eq=False)
class Table:
    """Rows with their labels ``y``, from a file. ``notes`` are remarks that a user should see.

    Labels are numbers, or words: then ``codes`` are their positions in ``label_names``, which are sorted.
    ``zero_based`` tells whether the text that the rows come from counts its columns from 0 (None: they come
    from no text). A table that is part of a file begins at row ``first`` of it. In text every row has a line:
    ``gaps`` holds, for each line without a row (blank or comment) from line ``first_line`` on, how many rows
    of this table come before it.
    """

    path: Path
    X: Any  # CSR, or dense
    codes: Any  # float64 where the rows come from a file
    zero_based: bool | None = None
    weight: Floats | None = None
    feature_names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    first: int = 0
    first_line: int | None = None
    gaps: Offsets = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    done: float = 0.0  # the share of the file that has been read with this table (0: unknown)
    digests: tuple[str, ...] | None = None  # of all rows of the file, where it keeps them (see `fingerprint`)
    label_names: Names = None  # None: labels are numbers, and codes are the labels themselves

    @cached_property
    def y(self) -> Any:
        """The labels, numbers or words."""
        return decoded(self.codes, self.label_names)

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

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


def in_columns(table: Table, n_features: int | None, too_wide: str) -> Table:
    """The same rows in a matrix of that many columns; an entry beyond them is an error."""
    if n_features is None or n_features == table.X.shape[1]:
        return table
    if n_features < 1:
        raise InputError(f"n_features={n_features!r} must be at least 1")
    beyond = table.X.indices >= n_features
    if beyond.any():
        entry = int(beyond.argmax())
        row = int((table.X.indptr > entry).argmax()) - 1
        column = f"column {table.X.indices[entry]} is beyond the {n_features} features"
        raise InputError(f"{table.place(row)}: {column}; {too_wide}")
    X = table.X.copy() if not table.X.data.flags.writeable else table.X
    X.resize(X.shape[0], n_features)
    names = table.feature_names
    return replace(table, X=X, feature_names=None if names is None else names[:n_features])


def joined(tables: Sequence[Table]) -> Table:
    """All rows of some tables of one file, in memory."""
    if len(tables) == 1:
        return tables[0]
    weights = [table.weight for table in tables if table.weight is not None]
    words, where = Vocabulary(), shown(tables[0].path)
    codes = np.concatenate([words.recode(table.codes, table.label_names, where) for table in tables])
    return replace(
        tables[0],
        X=_stacked([table.X for table in tables]),
        codes=words.final(codes),
        label_names=words.names,
        weight=np.concatenate(weights) if weights else None,
        done=1.0,
    )


def _stacked(matrices: list[Any]) -> Any:
    return sp.vstack(matrices, format="csr") if sp.issparse(matrices[0]) else np.concatenate(matrices)
