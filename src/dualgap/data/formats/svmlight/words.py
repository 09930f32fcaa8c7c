"""Svmlight text whose labels are words, ``spam 1:0.5 3:1``: the first label of a file says which it has; and
text with any number of labels a row, ``1,5,7 1:0.5 3:1`` (LIBSVM's multilabel format), if that is asked for.

A piece is parsed as if every label were 0: each word gives way to a 0 and blanks, so that the parser for
numbers knows nothing of words. A set of labels is a word with commas in it.
"""

from __future__ import annotations

import re
from typing import NoReturn

import numpy as np

from ....runtime.arrays import Offsets
from ....runtime.decimals import Bytes
from ...words import NO_LABELS
from .lines import LineError, Range, check_set, check_word, is_word, parse_line
from .pieces import Part, PieceError, parse_piece

_NEWLINE, _HASH, _COLON = 10, 35, 58
_FIRST = re.compile(rb"^[^\S\n]*([^\s#]+)", re.MULTILINE)
_BLANK, _END = np.zeros(256, dtype=bool), np.zeros(256, dtype=bool)
_BLANK[list(b" \t\r\v\f")] = True
_END[list(b" \t\r\v\f\n#")] = True  # what ends a label


def has_words(text: Bytes) -> bool | None:
    """Whether the first label of a piece is a word, as all are then; None if there is no row in it."""
    first = _FIRST.search(text.data)
    return None if first is None else is_word(first[1])


def parse_words(text: Bytes, allowed: Range, sets: bool = False) -> Part:
    """Parse a piece in which every label is a word; with ``sets``, a set of labels, which may be empty."""
    first, last = _places(text)
    if sets:
        colons = np.append(np.flatnonzero(text == _COLON), text.size)
        last = np.where(colons[np.searchsorted(colons, first)] < last, first, last)  # an entry is no label
    raw = text.tobytes()
    labels = [raw[begin:end] for begin, end in zip(first.tolist(), last.tolist(), strict=True)]
    wrong = _first_wrong(text, last, labels, sets)
    if wrong is not None:
        begin = raw.rfind(b"\n", 0, first[wrong]) + 1
        if begin:
            parse_words(text[:begin], allowed, sets)  # a fault in the lines before it comes first
        _complain_about(raw, raw.count(b"\n", 0, begin), allowed, sets)
    try:
        part = parse_piece(_without_labels(text, first, last), allowed)
    except PieceError as fault:
        _complain_about(raw, fault.line, allowed, sets)
    labels = [label or NO_LABELS.encode() for label in labels]
    names = sorted(set(labels))  # the bytes of UTF-8 sort as its characters do
    places = {label: float(place) for place, label in enumerate(names)}
    codes = np.array([places[label] for label in labels])
    return part._replace(labels=codes, names=tuple(name.decode() for name in names))


def _places(text: Bytes) -> tuple[Offsets, Offsets]:
    """Where the labels of all rows begin and end. The text ends with a newline."""
    lines = np.flatnonzero(text == _NEWLINE)
    first = np.concatenate([[0], lines[:-1] + 1])
    if _BLANK[text[first]].any():
        others = np.flatnonzero(~_BLANK[text])
        first = others[np.searchsorted(others, first)]
    ends = np.flatnonzero(_END[text])
    last = ends[np.searchsorted(ends, first)]
    rows = first < last  # no label: a blank line or a comment
    return first[rows], last[rows]


def _first_wrong(text: Bytes, last: Offsets, labels: list[bytes], sets: bool) -> int | None:
    """The first row whose label is no word, or runs into a comment; None if there is none."""
    wrong = np.flatnonzero(text[last] == _HASH)[:1].tolist()
    for label in dict.fromkeys(labels):  # in the order of their first rows
        try:
            (check_set if sets else check_word)(label)
        except LineError:
            wrong.append(labels.index(label))
            break
    return min(wrong, default=None)


def _complain_about(raw: bytes, number: int, allowed: Range, sets: bool) -> NoReturn:
    """Raise the error of a line, as it stands in the text."""
    try:
        parse_line(raw.split(b"\n")[number], allowed, words=True, sets=sets)
    except LineError as error:
        raise PieceError(number, error) from None
    raise AssertionError(f"line {number} of the piece has a fault that the careful parser does not see")


def _without_labels(text: Bytes, first: Offsets, last: Offsets) -> Bytes:
    """The text with a 0 and blanks for every label; one that is empty has no place, and is put in."""
    plain = text.copy()
    lengths = last - first
    before = np.cumsum(lengths) - lengths
    plain[np.arange(lengths.sum()) + np.repeat(first - before, lengths)] = ord(" ")
    plain[first[lengths > 0]] = ord("0")
    missing = first[lengths == 0]
    if not missing.size:
        return plain
    return np.insert(plain, np.repeat(missing, 2), np.tile(np.frombuffer(b"0 ", np.uint8), missing.size))
