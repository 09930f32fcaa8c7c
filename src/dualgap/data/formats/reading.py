"""Read a file of rows, whatever its format: all of it, or in one pass of bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ...runtime.errors import InputError
from ..table import Table
from . import MEND, ReadOptions, ZeroBased, format_of


def read_data(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    threads: int | None = None,
    too_wide: str = MEND,
) -> Table:
    """All rows of a file, in memory: svmlight text (see :func:`read_svmlight`), a store, or a Parquet file
    with a column ``label``.
    """
    options = ReadOptions(n_features, zero_based, threads=threads, too_wide=too_wide)
    return format_of(path).read(Path(path), options)


def stream_data(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    threads: int | None = None,
    too_wide: str = MEND,
    block: int | None = None,
) -> Iterator[Table]:
    """The rows of a file in tables, in bounded memory. Text is read twice where it must first be seen how it
    counts.
    """
    options = ReadOptions(n_features, zero_based, threads=threads, too_wide=too_wide, block=block)
    yield from format_of(path).scan(Path(path), options)


def refuse_index_base(path: Path, what: str, options: ReadOptions) -> None:
    """Refuse ``zero_based`` for a format whose columns need no counting."""
    if options.zero_based != "auto":
        raise InputError(f"{path}: {what} knows its columns; leave --zero-based out")
