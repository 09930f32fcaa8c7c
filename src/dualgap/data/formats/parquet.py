"""Rows of Parquet files, as a feed: numeric columns are features, one column is the label."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...runtime.errors import InputError
from .arrow.store import arrow
from .feeds import ChunkFeed

_ROWS = 16_384  # read at a time


def parquet_feed(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, label: str, weight: str | None = None
) -> ChunkFeed:
    """Rows of one Parquet file, or of several that have the same columns, for ``fit`` and ``one_vs_rest``.

    Parameters
    ----------
    paths : path or paths
        The files, in the order in which their rows count.
    label : str
        The column that holds the labels. All others must hold numbers: they are the features, in their order.
    weight : str, optional
        The column that holds the weights of the rows.
    """
    files = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]
    if not files:
        raise InputError("no Parquet files are given")
    names = _columns(files, {label} | ({weight} if weight is not None else set()))

    def chunks() -> Iterator[tuple[Any, Any, Any]]:
        for file in files:
            for batch in _opened(file).iter_batches(
                _ROWS, columns=[*names, label, *([weight] if weight else [])]
            ):
                if batch.num_rows:
                    features = np.column_stack([_numbers(file, batch, name) for name in names])
                    share = None if weight is None else _numbers(file, batch, weight)
                    yield sp.csr_array(features), _numbers(file, batch, label), share

    return ChunkFeed(chunks, name=", ".join(map(str, files[:3])) + (", ..." if len(files) > 3 else ""))


def _opened(file: Path) -> Any:
    pa = arrow()
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(file)
    except FileNotFoundError:
        raise InputError(f"{file}: no such file") from None
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{file}: no Parquet file, or a damaged one: {' '.join(str(error).split())}"
        ) from None


def _columns(files: list[Path], others: set[str]) -> list[str]:
    """The names of the features, which all files must share."""
    first: list[str] | None = None
    for file in files:
        found = _opened(file).schema_arrow.names
        missing = others - set(found)
        if missing:
            raise InputError(
                f"{file}: there is no column {sorted(missing)[0]!r}; there are: {', '.join(found[:8])}"
            )
        if first is not None and found != first:
            raise InputError(f"{file}: other columns than {files[0]} has")
        first = found
    assert first is not None  # there is a file
    return [name for name in first if name not in others]


def _numbers(file: Path, batch: Any, name: str) -> Any:
    pa = arrow()
    column = batch.column(name)
    kind = column.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise InputError(f"{file}: column {name!r} holds {kind}, and not numbers; encode it or leave it out")
    if column.null_count:
        raise InputError(f"{file}: column {name!r} has missing values; fill them in or leave the rows out")
    numbers = column.to_numpy(zero_copy_only=False)
    return numbers if numbers.dtype == np.float32 else numbers.astype(np.float64)
