"""Write svmlight text, each number in the shortest form that reads back exactly."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np

from ....runtime.arrays import Floats
from ....runtime.decimals import LONGEST, ROOM, Bytes, write_float, write_whole
from ....runtime.errors import InputError
from ....runtime.jit import kernel
from ....runtime.writing import replacing
from ...labels import shown_label
from ...rows import as_csr
from ...words import are_words, fault_of, shown_word
from .lines import is_number, is_word
from .pieces import HIGHEST

_ENTRIES = 200_000  # formatted at a time
_LONGEST_INDEX = 11  # digits and a colon


def write_svmlight(
    path: str | os.PathLike[str], X: Any, y: Any, *, zero_based: bool = False, threads: int | None = None
) -> None:
    """Write rows and labels as svmlight text, compressed if the name says so (``.gz``, ``.bz2``, ``.xz``,
    ``.zst``).

    Parameters
    ----------
    path : path
        The file; it appears under this name when it is complete.
    X : array or sparse matrix of shape (n, d)
        The rows. Entries that are 0 are left out.
    y : array of n numbers or words
        The labels. Words must be such as svmlight text can hold: without blanks, colons, commas, semicolons
        and ``#``, and with no digit, sign or point first.
    zero_based : bool
        Whether columns are to count from 0.
    threads : int, optional
        How many format numbers; by default as many as the process may use.
    """
    rows = as_csr(X)
    if rows.ndim != 2:
        raise InputError(f"X has shape {rows.shape}; it must have rows and columns")
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if rows.nnz and int(rows.indices.max()) + (not zero_based) > HIGHEST:
        raise InputError(f"X has column {rows.indices.max()}; indices beyond {HIGHEST} cannot be read again")
    labels = np.asarray(y)
    if not are_words(labels):
        try:
            labels = labels.astype(np.float64, copy=False)
        except (ValueError, TypeError):
            raise InputError("y holds something else than numbers or words; encode it first") from None
    if labels.shape != (rows.shape[0],):
        raise InputError(
            f"y has shape {labels.shape} and X has {rows.shape[0]} rows; there must be one label a row"
        )
    with replacing(path) as raw, packed(Path(path), raw) as stream:
        write_blocks(stream, [(rows, labels)], zero_based=zero_based, threads=threads)


def write_blocks(
    stream: IO[bytes], blocks: Iterable[tuple[Any, Any]], *, zero_based: bool, threads: int | None = None
) -> None:
    """Write blocks of rows with their labels, numbers or words, one after another."""
    threads = threads or len(os.sched_getaffinity(0))
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for X, y in chain.from_iterable(_sliced(*block) for block in _of_one_kind(blocks)):
            waiting.append(pool.submit(_formatted, X, y, 0 if zero_based else 1))
            if len(waiting) > threads:
                stream.write(waiting.popleft().result())
        while waiting:
            stream.write(waiting.popleft().result())


def _of_one_kind(blocks: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """The same blocks; words that text cannot hold, or not beside those before, are refused."""
    first: str | None = None
    for X, y in blocks:
        for word in sorted(set(y.tolist())) if are_words(y) else ():
            kind = _kind(word)
            if kind is None:
                raise InputError(
                    f"label {shown_word(word)} cannot be written: in svmlight text a word has no blanks, "
                    "colons, commas, semicolons and #, no digit, sign or point first, and is not nan or inf; "
                    "rename it, or write a store (.arrow)"
                )
            first = first or kind
            if kind != first:
                raise InputError(
                    f"label {shown_word(word)} would be read as a {kind}, and others as {first}s; svmlight "
                    "text has labels of one kind"
                )
        yield X, y


def _kind(word: str) -> str | None:
    """What a word is to a reader of text: "word", or "number" if it is just as that is written; else None."""
    token = word.encode(errors="surrogatepass")
    if is_word(token):
        return None if fault_of(word) else "word"
    return "number" if is_number(token) and shown_label(float(word)) == word else None


def _sliced(X: Any, y: Any) -> Iterator[tuple[Any, Any]]:
    edges = np.searchsorted(X.indptr, np.arange(0, X.nnz, _ENTRIES), side="left")
    edges = np.unique(np.concatenate([edges, np.arange(0, y.size, _ENTRIES), [y.size]]))
    for first, last in pairwise(edges):
        yield X[first:last], y[first:last]


def _formatted(X: Any, y: Any, base: int) -> Any:
    words = are_words(y)
    labels = np.zeros(y.size) if words else y
    if not (np.isfinite(X.data).all() and np.isfinite(labels).all()):
        raise InputError("NaN or infinity in the rows or labels; svmlight text has no words for them")
    out = np.empty(y.size * (LONGEST + 1) + X.nnz * (LONGEST + _LONGEST_INDEX) + ROOM, dtype=np.uint8)
    starts, columns = X.indptr.astype(np.int64), X.indices.astype(np.uint32, copy=False)
    text = out[: _format(starts, columns, X.data.astype(np.float64, copy=False), labels, base, out)]
    if not words:
        return text
    lines = text.tobytes().splitlines(keepends=True)  # each begins with its label, a 0
    return b"".join([word.encode() + line[1:] for word, line in zip(y.tolist(), lines, strict=True)])


@contextmanager
def packed(path: Path, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    """A stream that compresses as the name of the file says."""
    openers: dict[str, Callable[[Any], Any]] = {
        ".gz": partial(gzip.GzipFile, "", "wb", 6, mtime=0),
        ".bz2": partial(bz2.BZ2File, mode="wb"),
        ".xz": partial(lzma.LZMAFile, mode="wb"),
        ".zst": _zstandard,
    }
    opener = openers.get(path.suffix.lower())
    if opener is None:
        yield raw
    else:
        with opener(raw) as stream:
            yield stream


def _zstandard(raw: IO[bytes]) -> Any:
    try:
        import zstandard
    except ImportError:
        raise InputError("writing .zst needs the package zstandard: pip install 'dualgap[zstd]'") from None
    return zstandard.ZstdCompressor().stream_writer(raw, closefd=False)


@kernel
def _format(starts: Any, columns: Any, values: Floats, labels: Floats, base: int, out: Bytes) -> int:
    """Write all rows; returns where they end."""
    at = 0
    for row in range(labels.shape[0]):
        at = write_float(labels[row], out, at)
        for entry in range(starts[row], starts[row + 1]):
            if values[entry] != 0.0:
                out[at] = np.uint8(32)
                at = write_whole(np.int64(columns[entry]) + base, out, at + 1)  # type: ignore[arg-type]
                out[at] = np.uint8(58)
                at = write_float(values[entry], out, at + 1)
        out[at] = np.uint8(10)
        at += 1
    return at
