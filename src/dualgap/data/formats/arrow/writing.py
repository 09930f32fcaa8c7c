"""Write a store: rows come in, in any order and of any number, are shuffled once, and go out in blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ....runtime.errors import InputError
from ....runtime.writing import check_destination, replacing
from ...fingerprint import RowDigests
from ...rows import as_csr, as_rows
from ...table import Table
from ...words import are_words, coded
from ..text import shown
from .header import KEY, Header
from .spool import Rows, Spool, joined
from .store import arrow, batch_of, schema
from .totals import Totals

BATCH = 4_000_000  # bytes a record batch, or a little more
BUDGET = 1_000_000_000
SMALLEST_BUDGET = 16_000_000  # below, the pieces of a file are too large already


class Counting(NamedTuple):
    """By how much the columns of blocks are too high, and how the text they come from counts them (None: no
    text).
    """

    base: int
    zero_based: bool | None


@dataclass(frozen=True)
class Options:
    """How a store is written."""

    seed: int | None = 0  # None: rows stay in their order
    value_type: str = "auto"  # float32 where that loses nothing, else float64
    compression: str | None = None
    memory_budget: int = BUDGET
    batch: int = BATCH

    def check(self) -> None:
        """Refuse what makes no sense."""
        if self.value_type not in ("auto", "float32", "float64"):
            raise InputError(f"dtype={self.value_type!r} must be 'auto', 'float32' or 'float64'")
        if self.compression not in (None, "lz4", "zstd"):
            raise InputError(f"compression={self.compression!r} must be None, 'lz4' or 'zstd'")
        if self.seed is not None and self.seed < 0:
            raise InputError(f"seed={self.seed} must be at least 0")
        if self.memory_budget < SMALLEST_BUDGET:
            raise InputError(
                f"memory_budget={self.memory_budget} is too little; give at least {SMALLEST_BUDGET} bytes"
            )


def write_store(
    path: str | os.PathLike[str],
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    feature_names: Iterable[str] | None = None,
    keep_order: bool = False,
    seed: int = 0,
    dtype: str = "auto",
    compression: str | None = None,
    memory_budget: int = BUDGET,
) -> Header:
    """Write rows that are in memory to a store; see :func:`convert` for files.

    Parameters
    ----------
    path : path
        The file; it appears under this name when it is complete.
    X : array or sparse matrix of shape (n, d)
        The rows.
    y : array of n numbers or words
        The labels.
    sample_weight : array of n numbers, optional
        The weights of the rows.
    feature_names : d names, optional
        What the columns are called.
    keep_order : bool
        Leave the rows in their order. Most solvers of data beyond memory want them shuffled, and that is the
        default.
    seed : int
        Of the shuffle.
    dtype : {"auto", "float32", "float64"}
        How values are stored. "auto" takes float32 if it holds every value exactly.
    compression : {"lz4", "zstd"}, optional
        Smaller files that take longer to read.
    memory_budget : int
        Bytes that may be used on the way.
    """
    as_rows(X)  # complains about what cannot be trained on
    rows = as_csr(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if not rows.shape[1]:
        raise InputError("X has no columns")
    labels, words = coded(y, "y") if are_words(np.asarray(y)) else (y, None)
    labels = _vector("y", labels, rows.shape[0])
    weight = None if sample_weight is None else _vector("sample_weight", sample_weight, rows.shape[0])
    if weight is not None and weight.size and weight.min() < 0:
        raise InputError(f"sample_weight[{int(weight.argmin())}] is {weight.min():g}; weights must be >= 0")
    names = None if feature_names is None else tuple(str(name) for name in feature_names)
    if names is not None and len(names) != rows.shape[1]:
        raise InputError(f"feature_names has {len(names)} names and X has {rows.shape[1]} columns")
    options = Options(None if keep_order else seed, dtype, compression, memory_budget)

    def blocks() -> Iterator[Table]:
        n = labels.size
        step = max(1, n * BATCH // max(12 * rows.nnz + 24 * n, 1))
        for first in range(0, n, step):
            part = slice(first, first + step)
            some = None if weight is None else weight[part]
            done = min(1.0, (first + step) / n)
            yield Table(Path(path), rows[part], labels[part], None, some, names, done=done, label_names=words)

    return write_blocks(path, blocks(), options, n_features=rows.shape[1])


def write_blocks(
    path: str | os.PathLike[str],
    blocks: Iterable[Table],
    options: Options,
    *,
    n_features: int | None = None,
    counting: Callable[[int], Counting] = lambda lowest: Counting(0, None),
    told: Callable[[str], None] = lambda text: None,
) -> Header:
    """Write blocks of rows to a store. ``counting`` is asked how columns count, once the lowest of all is
    known.
    """
    options.check()
    path = check_destination(path)
    arrow()
    spool = Spool(path.resolve().parent, options.memory_budget, options.seed)
    try:
        seen = Totals()
        origin = path
        for data in blocks:
            origin = data.path
            if data.n:
                labels = seen.look(data)
                spool.add(Rows(data.X, labels, data.weight), data.done)
            told(f"read {seen.n:,} rows" + (f" ({100 * data.done:.0f}%)" if data.done else ""))
        if seen.n == 0:
            raise InputError(f"{shown(origin)}: no rows in it, only blank lines or comments")
        if not seen.present:
            raise InputError(f"{path}: all weights are 0; at least one row must have a positive weight")
        found = counting(seen.lowest)
        width = max(seen.highest + 1 - found.base, 1)
        if n_features is not None and width > n_features:
            raise InputError(
                f"{shown(origin)}: index {seen.highest} is beyond the {n_features} features, as indices "
                "count from 0"
            )
        names = seen.feature_names
        if names is not None and n_features is None:
            n_features = len(names)
        if names is not None and (len(names) != n_features or width > len(names)):
            raise InputError(
                f"{len(names)} names for {max(width, n_features or 0)} columns; give one name a column"
            )
        return _write(path, spool, seen, options, found, n_features or width, told)
    finally:
        spool.close()


def _write(
    path: Path,
    spool: Spool,
    seen: Totals,
    options: Options,
    counting: Counting,
    width: int,
    told: Callable[[str], None],
) -> Header:
    from .ipc import ArrowFile

    value_type = options.value_type
    if value_type == "auto":
        value_type = "float32" if seen.exact32 else "float64"
    layout = schema(value_type, seen.weighted)
    rows, entries, checksums = [], [], []
    digests = RowDigests()
    done = 0
    with replacing(path) as stream:
        file = ArrowFile(stream, layout, options.compression)
        for block in _blocks(spool.rows(), options.batch, np.dtype(value_type).itemsize):
            X = block.X
            X.indices -= counting.base
            with np.errstate(over="ignore"):
                X.data = X.data.astype(value_type, copy=False)
            if not np.isfinite(X.data).all():
                raise InputError(f"{path}: values beyond float32; convert with --dtype float64")
            labels = seen.words.final(block.y)
            batch, checksum = batch_of(layout, X, labels, block.weight)
            file.write(batch)
            digests.add(X)
            rows.append(block.y.size)
            entries.append(int(X.nnz))
            checksums.append(checksum)
            done += block.y.size
            told(f"wrote {done:,} of {seen.n:,} rows")
        written = _Written(value_type, rows, entries, checksums, digests.digests())
        header = _header(seen, options, counting, width, written)
        file.close({KEY: header.to_json()})
    return header


class _Written(NamedTuple):
    """What is known of the batches once they are written."""

    value_type: str
    rows: list[int]
    entries: list[int]
    checksums: list[str]
    digests: tuple[str, ...]


def _header(seen: Totals, options: Options, counting: Counting, width: int, written: _Written) -> Header:
    classes, names = seen.classes(), seen.words.names
    return Header(
        n=seen.n,
        d=width,
        nnz=seen.nnz,
        classes=None if classes is None else [[label, count] for label, count, _ in classes],
        class_weights=None if classes is None else [weight for _, _, weight in classes],
        present=seen.present,
        weighted=seen.weighted,
        total_weight=seen.total_weight.value,
        norms={
            "smallest": seen.smallest,
            "mean": seen.lengths / seen.n,
            "largest": seen.largest,
            "empty": seen.empty,
        },
        zero_based=counting.zero_based,
        feature_names=None if seen.feature_names is None else list(seen.feature_names),
        seed=options.seed,
        value_type=written.value_type,
        compression=options.compression,
        batch_rows=written.rows,
        batch_entries=written.entries,
        checksums=written.checksums,
        digests=list(written.digests),
        compensated=True,
        label_names=None if names is None else list(names),
    )


def _blocks(blocks: Iterator[Rows], size: int, value_bytes: int) -> Iterator[Rows]:
    """The same rows in blocks of ``size`` bytes in the file, or a little more; the last may be smaller."""
    waiting: list[Rows] = []
    held = 0
    for block in blocks:
        sizes = np.cumsum(np.diff(block.X.indptr) * (4 + value_bytes) + 24)
        first = 0
        while first < block.y.size:
            before = sizes[first - 1] if first else 0
            last = min(int(np.searchsorted(sizes, before + size - held)) + 1, block.y.size)
            part = slice(first, last)
            waiting.append(
                Rows(block.X[part], block.y[part], None if block.weight is None else block.weight[part])
            )
            held += int(sizes[last - 1] - before)
            if held >= size:
                yield joined(waiting)
                waiting, held = [], 0
            first = last
    if waiting:
        yield joined(waiting)


def _vector(name: str, values: Any, n: int) -> Any:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != (n,):
        raise InputError(f"{name} has shape {array.shape} and X has {n} rows; there must be one number a row")
    if not np.isfinite(array).all():
        raise InputError(f"{name}[{int(np.argmin(np.isfinite(array)))}] is not finite")
    return array
