"""Convert files of rows: text and Parquet to stores, stores to text; packed, shuffled anew."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from ...runtime.errors import InputError
from ...runtime.npy import read_array
from ...runtime.writing import check_destination
from ..rows import as_csr
from ..table import Table
from . import Format, ReadOptions, WriteOptions, ZeroBased, format_named, format_of
from .arrow.header import Header
from .arrow.store import Store
from .arrow.writing import BUDGET, Counting, Options
from .compression import COMPRESSIONS
from .svmlight.reading import counts_from_zero, stream_svmlight
from .text import PIECE, pieces, read_once


def format_for(path: str | os.PathLike[str]) -> Format:
    """The format that the name of a file asks for when it is written."""
    name = Path(path).name.lower()
    store, text = map(format_named, ("store", "svmlight"))
    if name.endswith(store.suffixes):
        return store
    for suffix in COMPRESSIONS:
        name = name.removesuffix(suffix)
    if not name.endswith(text.suffixes):
        raise InputError(
            f"{path}: the name does not tell what to write; {', '.join(store.suffixes)} for a store, "
            f"{', '.join(text.suffixes)} for svmlight text, which {', '.join(COMPRESSIONS)} may follow"
        )
    return text


def convert(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    keep_order: bool = False,
    seed: int = 0,
    dtype: str = "auto",
    compression: str | None = None,
    memory_budget: int = BUDGET,
    label: str = "label",
    labels: str | os.PathLike[str] | None = None,
    multilabel: bool = False,
    weights: str | os.PathLike[str] | None = None,
    names: str | os.PathLike[str] | None = None,
    told: Callable[[str], None] = lambda text: None,
    warned: Callable[[str], None] | None = None,
) -> Header | None:
    """Convert a file of rows; the names of the files say which way.

    Parameters
    ----------
    source : path
        Svmlight text (plain or packed, ``-`` for the standard input), a store, a Parquet file or a NumPy
        array (``.npy``).
    destination : path
        ``.arrow`` for a store, ``.svm`` (perhaps ``.svm.gz`` and so on) for text.
    n_features : int, optional
        The number of columns; by default as many as the highest index asks for.
    zero_based : {"auto", "yes", "no"}
        Whether the text counts columns from 0.
    keep_order : bool
        For a store: leave the rows in their order, where they are shuffled otherwise. Text keeps it always.
    seed : int
        Of the shuffle.
    dtype : {"auto", "float32", "float64"}
        How a store keeps values. "auto" takes float32 if it holds every value exactly.
    compression : {"lz4", "zstd"}, optional
        Of a store.
    memory_budget : int
        Bytes that may be used for rows on the way.
    label : str
        The column of a Parquet file that holds the labels.
    labels : path
        An ``.npy`` file with the labels of the rows of another.
    multilabel : bool
        A row of text may have any number of labels, with commas between them.
    weights, names : path, optional
        For a store: files with one weight a row, and with one name a column, a line each. Weights may also
        be an ``.npy`` file.
    told, warned : callables
        Get a line of text now and then: how far it is, and what cannot be kept.

    Returns
    -------
    Header or None
        What is known of a store.
    """
    source, destination = Path(source), Path(destination)
    form, origin = format_for(destination), format_of(source)
    extra = {"LABELS": labels, "WEIGHTS": weights, "NAMES": names}
    inputs = {name: None if file is None else Path(file) for name, file in extra.items()}
    check_destination(destination, IN=source, **inputs)
    if labels is not None and not origin.rows_alone:
        raise InputError(f"{source}: labels come from the file; leave those of {labels} out")
    beside = None if labels is None else read_array(labels)
    reading = ReadOptions(n_features, zero_based, label, label_sets=multilabel, labels=beside)
    if form.name != "store":
        if weights or names or compression or dtype != "auto":
            raise InputError(
                "weights, names, dtype and compression are for stores; text has no place for them"
            )
        _to_text(source, destination, origin, form, reading, told, warned or told)
        return None
    options = Options(None if keep_order else seed, dtype, compression, memory_budget)
    options.check()
    tables, width, known = _tables(source, origin, reading, memory_budget)
    if names is not None:
        titles = _names(Path(names))
        tables = (replace(table, feature_names=titles) for table in tables)
    if weights is not None:
        tables = _weighted(tables, Path(weights))

    def counting(lowest: int) -> Counting:
        return known or Counting(int(lowest != 0), lowest == 0)

    writing = WriteOptions(store=options, n_features=width, counting=counting, told=told)
    written: Header = form.write(destination, tables, writing)
    return written


def _tables(
    source: Path, origin: Format, reading: ReadOptions, memory_budget: int
) -> tuple[Iterator[Table], int | None, Counting | None]:
    """The rows, their number of columns if it is known, and from where columns count, unless that is seen in
    the end.
    """
    if origin.indexed:
        # rows of a piece take up to three times its bytes, on every thread
        size = min(PIECE, max(50_000, memory_budget // 500))
        zero_based = reading.zero_based
        tables = stream_svmlight(
            source,
            n_features=reading.n_features,
            zero_based=zero_based,
            block=size,
            label_sets=reading.label_sets,
        )
        return tables, reading.n_features, None if zero_based == "auto" else Counting(0, zero_based == "yes")
    if reading.n_features is not None:
        raise InputError(f"{source}: a store knows its columns; leave --n-features out")
    header = Store(source).header if origin.name == "store" else None
    tables = _sparse(origin.scan(source, reading))
    if header is None:
        return tables, None, Counting(0, None)
    return tables, header.d, Counting(0, header.zero_based)


def _sparse(tables: Iterable[Table]) -> Iterator[Table]:
    """The same rows as CSR; zeros of dense ones are left out."""
    return (replace(table, X=as_csr(table.X)) for table in tables)


def _to_text(
    source: Path,
    destination: Path,
    origin: Format,
    form: Format,
    options: ReadOptions,
    told: Callable[[str], None],
    warned: Callable[[str], None],
) -> None:
    """Write text whose columns count from where they counted before, or from 1."""
    from_zero = False
    if origin.name == "store":
        header = Store(source).header
        from_zero = bool(header.zero_based)
        lost = [word for word, has in (("weights", header.weighted), ("names", header.feature_names)) if has]
        if lost:
            warned(
                f"{source}: text has no place for the {' and '.join(lost)} of this store: they are left out"
            )
    elif origin.indexed:
        from_zero = options.zero_based == "yes" or (
            options.zero_based == "auto"
            and not read_once(source)
            and counts_from_zero(source, options.label_sets)
        )
        options = options._replace(zero_based="yes" if from_zero else "no")

    def tables() -> Iterator[Table]:
        rows = 0
        for table in _sparse(origin.scan(source, options)):
            yield table
            rows += table.n
            told(f"wrote {rows:,} rows" + (f" ({100 * table.done:.0f}%)" if table.done else ""))

    form.write(destination, tables(), WriteOptions(zero_based=from_zero))


def _weighted(blocks: Iterable[Table], file: Path) -> Iterator[Table]:
    """The rows with weights from a file that has one a line, or from an array."""
    numbers = iter(read_array(file).tolist()) if file.suffix == ".npy" else _numbers(file)
    rows = 0
    for data in blocks:
        weight = np.fromiter(islice(numbers, data.n), dtype=np.float64)
        rows += data.n
        if weight.size < data.n:
            raise InputError(f"{file}: {rows - data.n + weight.size} weights, and there are more rows")
        yield replace(data, weight=weight)
    if next(numbers, None) is not None:
        raise InputError(f"{file}: more weights than the {rows} rows; give one a row")


def _numbers(file: Path) -> Iterator[float]:
    for number, line in _lines(file):
        try:
            value = float(line)
        except ValueError:
            value = math.nan
        if not 0.0 <= value < math.inf:
            raise InputError(f"{file}, line {number}: weight {line[:40]!r} is not a number >= 0")
        yield value


def _names(file: Path) -> tuple[str, ...]:
    return tuple(line for _, line in _lines(file))


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text, numbered from 1, without their ends."""
    number = 0
    for piece in pieces(file):
        try:
            lines = piece.text.tobytes().decode().split("\n")[:-1]  # splitlines() knows of many more ends
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: not UTF-8 text ({error.reason})") from None
        for line in lines:
            number += 1
            yield number, line.strip()
