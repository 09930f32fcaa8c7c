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

from ...runtime.errors import InputError, suggestion
from ...runtime.paths import kind_of_path
from ..memory import available_memory
from ..table import Table, in_columns, joined
from ..words import check_words, coded
from . import ReadOptions, WriteOptions
from .arrow.store import arrow
from .feeds import ChunkFeed
from .reading import refuse_index_base

_ROWS, _CELLS = 16_384, 2**25  # read at a time, at most
_MOST_ROWS, _ROWS_A_BYTE = 10**8, 1000  # rows of any file; of a larger one, for each of its bytes
_SHARE = 0.4  # of the free memory that rows may take: they are copied once


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
    rows_alone = False
    suffixes: tuple[str, ...] = (".parquet", ".pq")

    def sniff(self, head: bytes, path: Path) -> bool:
        """Parquet files begin with these bytes."""
        return head.startswith(b"PAR1")

    def read(self, path: Path, options: ReadOptions) -> Table:
        """All rows, in memory."""
        tables, size, most = [], 0, _SHARE * available_memory()
        for table in self.scan(path, options):
            tables.append(table)
            size += 12 * table.X.nnz + 16 * table.n
            if size > most:
                raise InputError(
                    f"{path}: its rows do not fit into memory; train from disk (memory_budget=, "
                    "--memory-budget), or make a store of it with `dualgap convert`"
                )
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


_SHOWN = 8  # names of columns that a message lists


class _Columns(NamedTuple):
    """Which columns of a file are what; a label of None means rows without labels."""

    features: list[str]
    label: str | None
    weight: str | None


def _chunks(file: Path, columns: _Columns) -> Iterator[tuple[Any, Any, Any]]:
    """Rows, labels (0 where there are none) and weights, some thousand rows at a time."""
    features, label, weight = columns
    wanted = [*features, *(name for name in (label, weight) if name is not None)]
    for batch in _batches(file, wanted, label):
        if batch.num_rows:
            X = np.column_stack([_numbers(file, batch.column(name), name) for name in features])
            y = np.zeros(batch.num_rows) if label is None else _labels(file, batch.column(label), label)
            share = None if weight is None else _numbers(file, batch.column(weight), weight)
            yield sp.csr_array(X), y, share


def _batches(file: Path, wanted: list[str], label: str | None) -> Iterator[Any]:
    """Record batches of so many rows that memory holds them, however many columns there are."""
    rows = max(1, min(_ROWS, _CELLS // max(len(wanted), 1)))
    batches = iter(_opened(file, label).iter_batches(rows, columns=wanted))
    while True:
        try:
            batch = next(batches, None)
        except _faults() as error:
            raise _damage(file, error) from None
        if batch is None:
            return
        yield batch


def _opened(file: Path, label: str | None = None) -> Any:
    """The file; a label that is a text is read as a code for it, so that a long one is there only once."""
    arrow()
    import pyarrow.parquet

    if kind_of_path(file) in ("folder", "device"):
        raise InputError(f"{file}: is a {kind_of_path(file)}; give a file")
    try:
        found = pyarrow.parquet.ParquetFile(file, read_dictionary=[] if label is None else [label])
        rows = found.metadata.num_rows
    except FileNotFoundError:
        raise InputError(f"{file}: no such file") from None
    except _faults() as error:
        raise _damage(file, error) from None
    if not 0 <= rows <= max(_MOST_ROWS, _ROWS_A_BYTE * file.stat().st_size):
        raise InputError(f"{file}: it claims to have {rows:,} rows, more than a file of its size can be for")
    return found


def _faults() -> tuple[type[Exception], ...]:
    """What Arrow raises where a file is damaged."""
    return (arrow().ArrowException, OSError, ValueError, TypeError, KeyError, IndexError, MemoryError)


def _damage(file: Path, error: BaseException) -> InputError:
    told = " ".join(str(error).split())[:200]
    return InputError(f"{file}: no Parquet file, or a damaged one: {told}")


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
                raise InputError(_no_column(file, name, found, "weight" if name == weight else "label"))
        if first and found != first:
            raise InputError(f"{file}: other columns than {files[0]} has")
        first = found
    features = [name for name in first if name not in (label, weight)]
    if not features:
        raise InputError(f"{files[0]}: no columns but those of labels and weights")
    return _Columns(features, label, weight)


def _no_column(file: Path, name: str, found: list[str], what: str) -> str:
    meant = suggestion(name, found)
    listed = ", ".join(found[:_SHOWN]) + ", ..." * (len(found) > _SHOWN)
    return (
        f"{file}: there is no column {name!r} for the {what}s (--{what} COLUMN); {meant}there are: {listed}"
    )


def _labels(file: Path, column: Any, name: str) -> Any:
    """Labels as numbers or as words."""
    pa = arrow()
    coded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if coded else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        return _numbers(file, column.dictionary_decode() if coded else column, name)
    _refuse_gaps(file, column, name)
    try:
        words = np.array((column.dictionary if coded else column).to_pylist(), dtype=object)
    except UnicodeDecodeError:
        raise InputError(f"{file}: column {name!r} holds labels that are not UTF-8 text") from None
    labels = words[column.indices.to_numpy()] if coded else words
    check_words(set(labels), f"{file}: column {name!r}")
    return labels


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
