"""Parse a piece of svmlight text: compiled code for ordinary lines, the careful parser for all others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....runtime.arrays import Columns, Floats, Offsets
from ....runtime.decimals import MOST_DIGITS, Bytes, to_float
from ....runtime.jit import kernel
from ...table import csr_over
from ...words import Names
from .lines import LineError, Range, Row, parse_line

HIGHEST = 2**32 - 1  # the highest index that fits into the columns' type


class Part(NamedTuple):
    """The rows of one piece of a file; columns count as in the text, from 0 or from 1.

    ``labels`` are numbers, or positions in ``names``.
    """

    labels: Floats
    starts: Offsets
    columns: Columns
    values: Floats
    gaps: Offsets
    lines: int
    lowest: int
    highest: int
    qids: int
    names: Names = None


class PieceError(Exception):
    """An error in a line of a piece."""

    def __init__(self, line: int, error: LineError) -> None:
        super().__init__(str(error))
        self.line, self.column = line, error.column


def parse_piece(text: Bytes, allowed: Range) -> Part:
    """Parse a piece: the compiled parser stops at an unusual line, the careful parser reads it, and so on."""
    # Lines and colons are upper bounds on rows and entries; NumPy counts them as fast as a kernel would.
    most_rows, most_entries = (int(np.count_nonzero(text == mark)) for mark in (_NEWLINE, _COLON))
    labels, values = np.empty(most_rows), np.empty(most_entries)
    starts, columns = np.zeros(most_rows + 1, dtype=np.int64), np.empty(most_entries, dtype=np.uint32)
    gaps = np.empty(most_rows, dtype=np.int64)
    tally = np.array([0, 0, 0, 0, HIGHEST + 1, -1, 0, 0], dtype=np.int64)
    low, high = allowed.low, allowed.high
    while True:
        _parse(text, (low, high), labels, starts, columns, values, gaps, tally)
        at, rows, entries, lines, lowest, highest, unordered, qids = tally.tolist()
        if at == text.size:
            break
        end = at + int(np.argmax(text[at:] == 10))
        row = _careful(text[at:end], lines, allowed)
        if row is None:
            gaps[lines - rows] = rows
        else:
            labels[rows] = row.label
            new = slice(entries, entries + len(row.indices))
            columns[new], values[new] = row.indices, row.values
            tally[_ROWS], tally[_ENTRIES] = rows + 1, new.stop
            starts[rows + 1] = new.stop
            if row.indices:
                tally[_LOWEST] = min(lowest, *row.indices)
                tally[_UPPERMOST] = max(highest, *row.indices)
                tally[_UNORDERED] |= sorted(row.indices) != row.indices
            tally[_QIDS] = qids + row.grouped
        tally[_AT], tally[_LINES] = end + 1, lines + 1
    part = Part(
        labels[:rows].copy(),
        starts[: rows + 1].copy(),
        columns[:entries].copy(),
        values[:entries].copy(),
        gaps[: lines - rows].copy(),
        lines,
        lowest,
        highest,
        qids,
    )
    if unordered:
        _put_in_order(text, part, allowed)
    return part


def _careful(line: Bytes, number: int, allowed: Range) -> Row | None:
    try:
        return parse_line(line.tobytes(), allowed)
    except LineError as error:
        raise PieceError(number, error) from None


def _put_in_order(text: Bytes, part: Part, allowed: Range) -> None:
    """Sort the entries of every row by their columns; an index that occurs twice is an error."""
    if part.highest < 2**31 - 1:
        matrix = csr_over(part.values, part.columns, part.starts, (part.labels.size, part.highest + 1))
        matrix.sort_indices()
    else:  # beyond what SciPy's columns of 32 bits can tell apart
        row = np.repeat(np.arange(part.labels.size), np.diff(part.starts))
        order = np.lexsort((part.columns, row))
        part.columns[:], part.values[:] = part.columns[order], part.values[order]
    same = np.flatnonzero(part.columns[1:] == part.columns[:-1])
    row = np.searchsorted(part.starts, same, side="right")
    twice = same[part.starts[row] > same + 1]  # both in one row
    if twice.size:
        rows = int(np.searchsorted(part.starts, twice[0], side="right")) - 1
        number = rows + int(np.searchsorted(part.gaps, rows, side="right"))
        ends = np.flatnonzero(text == 10)
        first = 0 if number == 0 else int(ends[number - 1]) + 1
        _careful(text[first : int(ends[number])], number, allowed)


_AT, _ROWS, _ENTRIES, _LINES, _LOWEST, _UPPERMOST, _UNORDERED, _QIDS = range(8)  # what `tally` counts
_TAB, _NEWLINE, _RETURN, _BLANK, _HASH, _COLON = 9, 10, 13, 32, 35, 58
_ODD = -1  # a place where the careful parser must look


@kernel
def _number(text: Bytes, at: int) -> Any:
    """The number that begins at a position, and where it ends; _ODD where the careful parser must look."""
    negative = text[at] == 45
    if negative or text[at] == 43:
        at += 1
    digits = np.int64(0)
    places = 0
    first = at
    significant: Any = 0
    c = np.int64(text[at]) - 48
    while 0 <= c <= 9:
        significant += significant > 0 or c > 0
        if significant > MOST_DIGITS:
            return 0.0, _ODD
        digits = 10 * digits + c
        at += 1
        c = np.int64(text[at]) - 48
    count = at - first
    if c == -2:  # a point
        at += 1
        first = at
        c = np.int64(text[at]) - 48
        while 0 <= c <= 9:
            significant += significant > 0 or c > 0
            if significant > MOST_DIGITS:
                return 0.0, _ODD
            digits = 10 * digits + c
            at += 1
            c = np.int64(text[at]) - 48
        places = at - first
        count += places
    if count == 0:
        return 0.0, _ODD
    exponent = np.int64(0)
    if c == 53 or c == 21:  # e, E
        at += 1
        down = text[at] == 45
        if down or text[at] == 43:
            at += 1
        first = at
        c = np.int64(text[at]) - 48
        while 0 <= c <= 9:
            exponent = 10 * exponent + c
            at += 1
            c = np.int64(text[at]) - 48
            if at - first > 4:
                return 0.0, _ODD
        if at == first:
            return 0.0, _ODD
        if down:
            exponent = -exponent
    value = to_float(digits, exponent - places)
    if not abs(value) < np.inf:
        return 0.0, _ODD
    return (-value if negative else value), at


@kernel
def _skip(text: Bytes, at: int) -> int:
    """The position of the next byte that is no blank."""
    while text[at] == _BLANK or text[at] == _TAB or text[at] == _RETURN:
        at += 1
    return at


@kernel
def _ends_token(c: int) -> bool:
    return c in (_BLANK, _NEWLINE, _RETURN, _TAB, _HASH)


@kernel
def _parse(
    text: Bytes,
    limits: tuple[int, int],
    labels: Floats,
    starts: Offsets,
    columns: Columns,
    values: Floats,
    gaps: Offsets,
    tally: Offsets,
) -> None:
    """Parse lines from ``tally[_AT]`` on, up to the first unusual one. The text ends with a newline."""
    low, high = limits
    at, row, entry, line = tally[_AT], tally[_ROWS], tally[_ENTRIES], tally[_LINES]
    lowest, highest, unordered, qids = tally[_LOWEST], tally[_UPPERMOST], tally[_UNORDERED], tally[_QIDS]
    while at < text.shape[0]:
        p = _skip(text, at)
        if text[p] != _NEWLINE and text[p] != _HASH:
            label, p = _number(text, p)
            if p == _ODD or not _ends_token(text[p]):
                break
            e = entry
            before = np.int64(-1)
            disorder = np.int64(0)
            grouped = False
            p = _skip(text, p)
            if text[p] == 113:  # q
                if not (
                    text[p + 1] == 105 and text[p + 2] == 100 and text[p + 3] == _COLON
                ):  # stops at a newline
                    break
                p += 4
                while 48 <= text[p] <= 57:
                    p += 1
                if not _ends_token(text[p]):
                    break
                grouped = True
                p = _skip(text, p)
            odd = False
            while text[p] != _NEWLINE and text[p] != _HASH:
                first = p
                index = np.int64(0)
                while 48 <= text[p] <= 57 and p < first + MOST_DIGITS:
                    index = 10 * index + (np.int64(text[p]) - 48)
                    p += 1
                if p == first or text[p] != _COLON or index < low or index > high or index == before:
                    odd = True
                    break
                value, p = _number(text, p + 1)
                if p == _ODD or not _ends_token(text[p]):
                    odd = True
                    break
                disorder |= index < before
                before = index
                columns[e] = np.uint32(index)
                values[e] = value
                e += 1
                p = _skip(text, p)
            if odd:
                break
            for k in range(entry, e):
                lowest = min(lowest, np.int64(columns[k]))
                highest = max(highest, np.int64(columns[k]))
            entry = e
            unordered |= disorder
            qids += grouped
            labels[row] = label
            row += 1
            starts[row] = entry
        else:
            gaps[line - row] = row
        while text[p] != _NEWLINE:
            p += 1
        at = p + 1
        line += 1
    tally[_AT], tally[_ROWS], tally[_ENTRIES], tally[_LINES] = at, row, entry, line
    tally[_LOWEST], tally[_UPPERMOST], tally[_UNORDERED], tally[_QIDS] = lowest, highest, unordered, qids
