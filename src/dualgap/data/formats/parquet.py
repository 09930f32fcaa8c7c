"""Parquet files: one column is the label (numbers or words), one may be the weight, all others are numeric
features.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...runtime.errors import InputError
from ..table import Table, in_columns, joined
from ..words import check_words, coded
from . import ReadOptions, WriteOptions
from .arrow.store import arrow
from .feeds import ChunkFeed
from .reading import refuse_index_base

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
        The column that holds the labels, numbers or words. All others must hold numbers: they are the
        features, in their order.
    weight : str, optional
        The column that holds the weights of the rows.
    """
    files = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]
    if not files:
        raise InputError("no Parquet files are given")
    columns = _columns(files, label, weight)

    def chunks() -> Iterator[tuple[Any, Any, Any]]:
        for file in files:
            yield from _chunks(file, columns)

    name = ", ".join(map(str, files[:3])) + (", ..." if len(files) > 3 else "")
    return ChunkFeed(chunks, name=name, feature_names=tuple(columns.features))


class Parquet:
    """Parquet files as a format of the registry."""

    name, title, indexed = "parquet", "Parquet", False
    suffixes: tuple[str, ...] = (".parquet", ".pq")

    def sniff(self, head: bytes, path: Path) -> bool:
        """Parquet files begin with these bytes."""
        return head.startswith(b"PAR1")

    def read(self, path: Path, options: ReadOptions) -> Table:
        """All rows, in memory."""
        tables = list(self.scan(path, options))
        if not tables:
            raise InputError(f"{path}: no rows in it")
        return joined(tables)

    def scan(self, path: Path, options: ReadOptions) -> Iterator[Table]:
        """The rows, some thousands at a time."""
        refuse_index_base(path, "a Parquet file", options)
        columns = _columns([path], options.label, options.weight, labelled=options.labelled)
        total = max(_opened(path).metadata.num_rows, 1)
        names, first = tuple(columns.features), 0
        for X, y, weight in _chunks(path, columns):
            codes, words = coded(y, str(path))
            share = None if weight is None else np.asarray(weight, dtype=np.float64)
            done = (first + codes.size) / total
            table = Table(path, X, codes, None, share, names, first=first, done=done, label_names=words)
            yield in_columns(table, options.n_features, options.too_wide)
            first += codes.size

    def feed(self, path: Path, options: ReadOptions) -> ChunkFeed:
        """The rows for training from disk."""
        return parquet_feed(path, label=options.label, weight=options.weight)

    def write(self, path: Path, tables: Iterable[Table], options: WriteOptions) -> None:
        """Refused."""
        raise InputError(f"{path}: Parquet files are read and not written; write a store (.arrow) instead")


FORMAT = Parquet()


class _Columns(NamedTuple):
    """Which columns of a file are what; a label of None means rows without labels."""

    features: list[str]
    label: str | None
    weight: str | None


def _chunks(file: Path, columns: _Columns) -> Iterator[tuple[Any, Any, Any]]:
    """Rows, labels (0 where there are none) and weights, some thousand rows at a time."""
    features, label, weight = columns
    wanted = [*features, *(name for name in (label, weight) if name is not None)]
    for batch in _opened(file).iter_batches(_ROWS, columns=wanted):
        if batch.num_rows:
            X = np.column_stack([_numbers(file, batch.column(name), name) for name in features])
            y = np.zeros(batch.num_rows) if label is None else _labels(file, batch.column(label), label)
            share = None if weight is None else _numbers(file, batch.column(weight), weight)
            yield sp.csr_array(X), y, share


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


def _columns(files: list[Path], label: str, weight: str | None, *, labelled: bool = True) -> _Columns:
    """What the columns are, which all files must share."""
    first: list[str] = []
    for file in files:
        found = _opened(file).schema_arrow.names
        if not labelled:
            features = [name for name in found if name not in (label, weight)]
            return _Columns(features, None, weight if weight in found else None)
        for name in (label, weight):
            if name is not None and name not in found:
                raise InputError(f"{file}: there is no column {name!r}; there are: {', '.join(found[:8])}")
        if first and found != first:
            raise InputError(f"{file}: other columns than {files[0]} has")
        first = found
    features = [name for name in first if name not in (label, weight)]
    if not features:
        raise InputError(f"{files[0]}: no columns but those of labels and weights")
    return _Columns(features, label, weight)


def _labels(file: Path, column: Any, name: str) -> Any:
    """Labels as numbers or as words."""
    pa = arrow()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        return _numbers(file, column, name)
    _refuse_gaps(file, column, name)
    try:
        words = column.to_pylist()
    except UnicodeDecodeError:
        raise InputError(f"{file}: column {name!r} holds labels that are not UTF-8 text") from None
    check_words(set(words), f"{file}: column {name!r}")
    return np.array(words, dtype=object)


def _numbers(file: Path, column: Any, name: str) -> Any:
    pa = arrow()
    kind = column.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise InputError(f"{file}: column {name!r} holds {kind}, and not numbers; encode it or leave it out")
    _refuse_gaps(file, column, name)
    numbers = column.to_numpy(zero_copy_only=False)
    return numbers if numbers.dtype == np.float32 else numbers.astype(np.float64)


def _refuse_gaps(file: Path, column: Any, name: str) -> None:
    if column.null_count:
        raise InputError(f"{file}: column {name!r} has missing values; fill them in or leave the rows out")
