"""Svmlight text: one row a line, ``label index:value index:value ...``, as SVMlight and LIBSVM know it.

Comments from ``#`` to the end of the line, blank lines, CRLF and a missing last newline are fine, and so are
indices in any order. ``qid:`` is ignored, and the result says so. Labels are numbers, or all of them words
(UTF-8).

Compiled code parses the pieces of a file, several at a time (``pieces``). It leaves a line with anything
unusual in it to ``lines``, whose first purpose is to explain what is wrong. Both take exactly the same
numbers: those of Python's ``float()``. ``words`` is the way to them for text whose labels are words or sets.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ....runtime.arrays import Offsets
from ....runtime.errors import InputError
from ...memory import available_memory, columns_take, widest
from ...table import Table, csr_over
from ...words import Vocabulary
from .. import ZeroBased
from ..text import STDIN, Piece, pieces, read_once, shown
from .lines import LineError, Range, parse_line
from .pieces import HIGHEST, Part, PieceError, parse_piece
from .words import has_words, parse_words

_SHARE = 0.8  # of the free memory that rows may take
_MEND = "raise n_features (--n-features) or mend the line"


def read_svmlight(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    threads: int | None = None,
    too_wide: str = _MEND,
    label_sets: bool = False,
) -> Table:
    """Read svmlight text, plain or compressed (``.gz``, ``.bz2``, ``.xz``, ``.zst``); ``-`` is the standard
    input.

    Parameters
    ----------
    path : path
        The file.
    n_features : int, optional
        The number of columns; by default as many as the highest index asks for. A higher index is an error.
    zero_based : {"auto", "yes", "no"}
        Whether indices count from 0. With "auto" they do if there is an index 0 in the file.
    threads : int, optional
        How many parse; by default as many as the process may use. They make no difference to the result.
    too_wide : str
        What the error about an index beyond ``n_features`` tells the user to do.
    label_sets : bool
        A row may have any number of labels, with commas between them (``1,5,7``); ``y`` has them as text.

    Returns
    -------
    Table
        ``X`` (CSR, float64, indices sorted), ``y`` (float64, or str where labels are words), ``zero_based``
        (what was decided), ``notes``.
    """
    path = Path(path)
    allowed = _allowed(n_features, zero_based, too_wide)
    found = _Gathered(shown(path), int(_SHARE * available_memory()))
    try:
        for part, done in _parts(path, allowed, threads, sets=label_sets):
            found.add(part, done)
        return _assemble(path, found, n_features, zero_based, too_wide, label_sets)
    except MemoryError:
        raise found.too_many() from None


def stream_svmlight(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "no",
    threads: int | None = None,
    too_wide: str = _MEND,
    block: int | None = None,
    label_sets: bool = False,
) -> Iterator[Table]:
    """The rows of a file in blocks of some megabytes of text (``block`` bytes), in bounded memory.

    With ``zero_based="auto"`` the columns of the blocks are the indices as they stand in the text: whether
    they count from 0 or 1 is known only in the end, when every block has been seen. Where ``n_features`` is
    not given, each block is as wide as its own indices ask for.
    """
    path = Path(path)
    allowed = _allowed(n_features, zero_based, too_wide)
    base = int(zero_based == "no")
    row, line = 0, 1
    for part, done in _parts(path, allowed, threads, block, label_sets):
        columns = part.columns
        columns -= np.uint32(base)
        width = part.highest + 1 - base if n_features is None else n_features + int(zero_based == "auto")
        yield Table(
            path,
            csr_over(part.values, columns, part.starts, (part.labels.size, max(width, 1))),
            part.labels,
            None if zero_based == "auto" else zero_based == "yes",
            notes=_qid_notes(part.qids),
            first=row,
            first_line=line,
            gaps=part.gaps,
            done=done,
            label_names=part.names,
        )
        row += part.labels.size
        line += part.lines


def counts_from_zero(path: Path, label_sets: bool = False) -> bool:
    """Whether there is an index 0 in the text."""
    parts = _parts(path, _allowed(None, "auto", _MEND), sets=label_sets)
    return any(part.lowest == 0 for part, _ in parts)


def _parts(
    path: Path,
    allowed: Range,
    threads: int | None = None,
    size: int | None = None,
    sets: bool = False,
) -> Iterator[tuple[Part, float]]:
    """The pieces of a file, parsed in threads, in order; each with the share of the file read so far."""
    threads = threads or len(os.sched_getaffinity(0))
    line = 1
    words: bool | None = sets or None  # not known before the first row
    waiting: deque[tuple[Piece, Future[Part]]] = deque()

    def finished() -> tuple[Part, float]:
        nonlocal line
        piece, future = waiting.popleft()
        try:
            part = future.result()
        except PieceError as fault:
            raise InputError(
                f"{shown(path)}, line {line + fault.line}, column {fault.column}: {fault}"
            ) from None
        piece.release()
        line += part.lines
        return part, piece.done

    with ThreadPoolExecutor(threads) as pool:  # ends with the file: safe to fork
        try:
            for piece in pieces(path, size):
                words = has_words(piece.text) if words is None else words
                parse = partial(parse_words, sets=sets) if words else parse_piece
                waiting.append((piece, pool.submit(parse, piece.text, allowed)))
                if len(waiting) > threads or path == STDIN:
                    yield finished()
            while waiting:
                yield finished()
        finally:
            for _, future in waiting:
                future.cancel()


class _Gathered:
    """The rows read so far, in arrays with room to spare (untouched memory takes no space)."""

    def __init__(self, name: str, most: int) -> None:
        self.words, self.name, self.most = Vocabulary(), name, most
        self.rows = self.entries = self.lines = self.qids = 0
        self.lowest, self.highest = HIGHEST + 1, -1
        self.labels, self.values = np.empty(0), np.empty(0)
        self.ends, self.columns = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint32)
        self.gaps: list[Offsets] = []

    def add(self, part: Part, done: float) -> None:
        """Append the rows of the next piece."""
        rows, entries = self.rows + part.labels.size, self.entries + part.values.size
        if 16 * rows + 12 * entries + 8 * (self.lines + part.lines - rows) > self.most:
            raise self.too_many()
        for name, needed in (("labels", rows), ("ends", rows), ("columns", entries), ("values", entries)):
            array: Any = getattr(self, name)
            if array.size < needed:
                setattr(self, name, _enlarged(array, needed, done))
        self.labels[self.rows : rows] = self.words.recode(part.labels, part.names, self.name)
        np.add(part.starts[1:], self.entries, out=self.ends[self.rows : rows])
        self.columns[self.entries : entries] = part.columns
        self.values[self.entries : entries] = part.values
        if part.gaps.size:
            self.gaps.append(part.gaps + self.rows)
        self.rows, self.entries, self.lines = rows, entries, self.lines + part.lines
        self.lowest, self.highest = min(self.lowest, part.lowest), max(self.highest, part.highest)
        self.qids += part.qids

    def too_many(self) -> InputError:
        """The error that memory does not hold them."""
        return InputError(
            f"{self.name}: its rows do not fit into memory ({self.rows:,} rows with {self.entries:,} entries "
            f"in {self.lines:,} lines, and more to come); make a store of it with `dualgap convert`, which "
            "can be trained from disk"
        )

    def close(self) -> None:
        """Give back the room to spare."""
        for array, size in (
            (self.labels, self.rows),
            (self.ends, self.rows),
            (self.columns, self.entries),
            (self.values, self.entries),
        ):
            array.resize(size, refcheck=False)


def _enlarged(array: Any, needed: int, done: float) -> Any:
    """The array enlarged to what the whole file is expected to need, so that it is not moved again."""
    if not array.size and done:
        try:
            return np.empty(int(1.25 * needed / done) + 1, dtype=array.dtype)
        except MemoryError:
            pass
    array.resize(int(1.125 * needed) + 1, refcheck=False)
    return array


def _assemble(
    path: Path, found: _Gathered, n_features: int | None, zero_based: ZeroBased, too_wide: str, sets: bool
) -> Table:
    if found.rows == 0:
        raise InputError(f"{shown(path)}: no rows in it, only blank lines or comments")
    found.close()
    auto = zero_based == "auto"
    from_zero = found.lowest == 0 if auto else zero_based == "yes"
    base = 0 if from_zero else 1
    width = max(found.highest + 1 - base, 0)
    if width == 0 and n_features is None:
        raise InputError(f"{shown(path)}: no row has any feature; pass --n-features if that is meant")
    gaps = np.concatenate(found.gaps) if found.gaps else np.zeros(0, dtype=np.int64)
    if n_features is not None and width > n_features:  # only now is it known that indices count from 0
        row = int(np.searchsorted(found.ends, np.argmax(found.columns >= n_features), side="right"))
        line = row + 1 + int(np.searchsorted(gaps, row, side="right"))
        _complain_about(
            path, line, _allowed(n_features, "yes", too_wide), found.words.names is not None, sets
        )
    found.columns -= np.uint32(base)
    starts = np.concatenate([[0], found.ends])
    notes = []
    if auto and not from_zero:
        notes.append("indices count from 1, as there is no index 0 (--zero-based yes: from 0)")
    elif auto:
        notes.append("indices count from 0, as there is an index 0")
    X = csr_over(found.values, found.columns, starts, (found.rows, n_features or width))
    notes += _qid_notes(found.qids)
    return Table(
        path,
        X,
        found.words.final(found.labels),
        bool(from_zero),
        notes=tuple(notes),
        first_line=1,
        gaps=gaps,
        label_names=found.words.names,
    )


def _qid_notes(qids: int) -> tuple[str, ...]:
    return (f"qid ignored on {qids} lines: rows are not grouped into queries",) if qids else ()


def _complain_about(path: Path, line: int, allowed: Range, words: bool, sets: bool) -> None:
    """Raise the error for a line, with its column; the line is read again for that, where the file can be."""
    before = 0
    for piece in () if read_once(path) else pieces(path):
        ends = np.flatnonzero(piece.text == 10)
        if before + ends.size >= line:
            number = line - before - 1
            first = int(ends[number - 1]) + 1 if number else 0
            try:
                text = piece.text[first : ends[number]].tobytes()
                parse_line(text, allowed, words=words, sets=sets)
            except LineError as error:
                raise InputError(f"{path}, line {line}, column {error.column}: {error}") from None
            break
        before += ends.size
    raise InputError(f"{shown(path)}, line {line}: {allowed.complaint(allowed.high + 1)}")


def _allowed(n_features: int | None, zero_based: str, too_wide: str) -> Range:
    """The range of indices that may occur, as far as it is known before the file is read."""
    if zero_based not in ("auto", "yes", "no"):
        raise InputError(f"zero_based={zero_based!r} must be 'auto', 'yes' or 'no'")
    if n_features is not None and n_features < 1:
        raise InputError(f"n_features={n_features!r} must be at least 1")
    base = int(zero_based != "yes")  # with "auto", the last index of text that counts from 1
    most = min(widest(available_memory()), HIGHEST)

    def hugeness(width: int) -> str:
        return (
            f"means {columns_take(width)}; --n-features N finds wrong indices (those beyond N), and hashing "
            "(index modulo 2**24, say) makes do with fewer columns"
        )

    def complaint(index: int) -> str:
        if index == 0:
            return "index 0 where indices count from 1; pass --zero-based yes if they count from 0"
        if n_features is not None:
            return f"index {index} is beyond the {n_features} features; {too_wide}"
        return f"index {index} {hugeness(index + 1 - base)}"

    if n_features is not None and n_features > most:
        raise InputError(f"n_features={n_features} {hugeness(n_features)}")
    return Range(int(zero_based == "no"), (n_features or most) - 1 + base, complaint)
