"""What is done with a changed file, and what must then hold."""

from __future__ import annotations

import io
import os
import re
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from dualgap.data.formats import text
from dualgap.data.formats.svmlight import reading as svmlight
from dualgap.data.formats.svmlight.lines import LineError, Range, Row, parse_line
from dualgap.data.formats.svmlight.reading import stream_svmlight
from dualgap.data.formats.svmlight.words import has_words
from dualgap.data.table import Table
from dualgap.files import Store, read_svmlight
from dualgap.runtime.errors import InputError

from .seeds import PACKERS

_PLACE = re.compile(r".*?, line (\d+), column (\d+): (.*)")
_BOM = b"\xef\xbb\xbf"
_NO_FILE = os.open(os.devnull, os.O_RDONLY)
_MEMORY = 8_000_000_000  # for the limit on columns, which is to be the same on every machine
SUFFIXES = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}


class _Pipe(io.BufferedReader):
    """A standard input that comes from memory. To the reader it is no regular file."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))  # type: ignore[arg-type]

    def fileno(self) -> int:
        return _NO_FILE


class _AtOnce:
    """Does what a pool of threads does, in this thread and sooner."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def __enter__(self) -> _AtOnce:
        return self

    def __exit__(self, *fault: object) -> None:
        pass

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def _changed(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Attributes have other values for a while. (What mock does, in a fraction of the time.)"""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, value in changes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


@dataclass(frozen=True)
class _Way:
    """How a text is to be read. It follows from the text, so that what is found can be found again."""

    from_file: bool
    streamed: bool
    threads: bool
    zero_based: Any
    n_features: int | None
    piece: int

    @classmethod
    def of(cls, data: bytes) -> _Way:
        dice = zlib.crc32(data)
        pieces = (64_000, 4_000_000) if _packed(data) else (8, 64)  # packed, a few bytes can hold megabytes
        return cls(
            from_file=dice % 8 == 0,
            streamed=dice >> 3 & 3 == 0,
            threads=dice >> 5 & 31 == 0,
            zero_based=("auto", "auto", "yes", "no")[dice >> 10 & 3],
            n_features=(None, None, None, 4)[dice >> 12 & 3],
            piece=(*pieces, 4_000_000, 4_000_000)[dice >> 14 & 3],
        )


class Target:
    """Counts what it is given, and what of that is refused."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.given = self.refused = 0

    def __call__(self, data: bytes) -> None:
        """Read it. Anything but a right result or an InputError of one line is raised."""
        self.given += 1
        try:
            self.check(data)
        except InputError as error:
            if "\n" in str(error):
                raise AssertionError("an error of more than one line") from error
            self.refused += 1

    def check(self, data: bytes) -> None:
        raise NotImplementedError


class TextTarget(Target):
    """Reads svmlight text in many ways. Text that is not packed must come out as the careful parser reads
    it.
    """

    def check(self, data: bytes) -> None:
        way = _Way.of(data)
        try:
            found = self._read(data, way)
        except InputError as error:
            _same_fault(data, way, str(error))
            raise
        for block in found:
            safe(block)
            sound(block)
        if not way.streamed:
            _same_rows(data, way, found[0])

    def _read(self, data: bytes, way: _Way) -> list[Table]:
        path = text.STDIN
        if way.from_file:
            suffix = next((suffix for magic, suffix in SUFFIXES.items() if data.startswith(magic)), "")
            path = self.folder / f"input.svm{suffix}"
            path.write_bytes(data)
        settings: Any = {
            "n_features": way.n_features,
            "zero_based": way.zero_based,
            "threads": 1 + 2 * way.threads,
        }
        with _changed(
            (sys, "stdin", SimpleNamespace(buffer=_Pipe(data))),
            (svmlight, "available_memory", lambda: _MEMORY),
            (svmlight, "ThreadPoolExecutor", svmlight.ThreadPoolExecutor if way.threads else _AtOnce),
            (text, "PIECE", way.piece),
        ):
            if way.streamed:
                return list(stream_svmlight(path, block=way.piece, **settings))
            return [read_svmlight(path, **settings)]


class StoreTarget(Target):
    """Reads a store, all of it. Its checksums vouch for its rows; here it is asked whether they can do
    harm.
    """

    def check(self, data: bytes) -> None:
        path = self.folder / "input.arrow"
        path.write_bytes(data)
        store = Store(path)
        for block in store.blocks():
            safe(block)
        safe(store.read())
        assert store.read().y.size == store.header.n


def safe(data: Table) -> None:
    """Whether no use of the arrays can reach outside of them."""
    X, n = data.X, data.y.size
    assert X.shape[0] == n
    assert X.indptr.size == n + 1
    assert X.indptr[0] == 0
    assert X.indptr[-1] == X.indices.size == X.data.size
    assert (np.diff(X.indptr) >= 0).all()
    if X.indices.size:
        assert X.indices.min() >= 0
        assert X.indices.max() < X.shape[1]


def sound(data: Table) -> None:
    """Whether the rows are fit for training: finite, and by rising columns."""
    X, n = data.X, data.y.size
    assert np.isfinite(X.data).all()
    assert np.isfinite(data.codes).all()
    row = np.repeat(np.arange(n), np.diff(X.indptr))
    steps = np.diff(row * np.int64(X.shape[1]) + X.indices)
    assert (steps > 0).all(), "the columns of a row do not rise"
    if n:
        assert data.line(n - 1) - data.line(0) >= n - 1


def _lines(data: bytes) -> list[bytes]:
    return data.removeprefix(_BOM).split(b"\n")


def _range(way: _Way, zero_based: Any) -> Range:
    with _changed((svmlight, "available_memory", lambda: _MEMORY)):
        return svmlight._allowed(way.n_features, zero_based, svmlight._MEND)


def _packed(data: bytes) -> bool:
    return any(data.startswith(magic) for magic in PACKERS)


def _words(data: bytes) -> bool:
    """Whether the labels of a text are words."""
    return bool(has_words(np.frombuffer(data.removeprefix(_BOM), dtype=np.uint8)))


def _same_fault(data: bytes, way: _Way, message: str) -> None:
    """The line that an error names has that fault in that column."""
    place = _PLACE.fullmatch(message)
    if place is None or _packed(data):
        return
    line = _lines(data)[int(place[1]) - 1]
    faults = []
    for zero_based in (way.zero_based, "yes"):
        try:
            parse_line(line, _range(way, zero_based), words=_words(data))
        except LineError as error:
            faults.append((error.column, str(error)))
    assert (int(place[2]), place[3]) in faults, f"{message!r}, but the line {line!r} has {faults}"


def _same_rows(data: bytes, way: _Way, found: Table) -> None:
    """Every number is the one that the careful parser takes, and every row has its line."""
    if _packed(data):
        return
    allowed = _range(way, way.zero_based)
    rows: list[Row] = []
    words: list[str] = []
    for number, line in enumerate(_lines(data), 1):
        row = parse_line(line, allowed, words=_words(data))
        if row is not None:
            assert found.line(len(rows)) == number
            rows.append(row)
            words.append(line.split()[0].decode() if _words(data) else "")
    base = 0 if found.zero_based else 1
    expected = [sorted(zip(row.indices, row.values, strict=True)) for row in rows]
    if _words(data):
        assert found.y.tolist() == words
    else:
        assert found.y.tobytes() == np.array([row.label for row in rows]).tobytes()
    assert found.X.data.tobytes() == np.array([value for row in expected for _, value in row]).tobytes()
    assert (found.X.indices + base).tolist() == [index for row in expected for index, _ in row]
    assert np.diff(found.X.indptr).tolist() == [len(row) for row in expected]
