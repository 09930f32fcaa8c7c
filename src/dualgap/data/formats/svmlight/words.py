"""Svmlight text whose labels are words, ``spam 1:0.5 3:1``: the first label of a file says which it has.

A piece is parsed as if every label were 0: each word gives way to a 0 and blanks, so that all positions in
the text stay what they are, and the parser for numbers knows nothing of words.
"""

from __future__ import annotations

import re

import numpy as np

from ....runtime.decimals import Bytes
from .lines import LineError, Range, check_word, is_word, parse_line
from .pieces import Part, PieceError, parse_piece

_LINE = re.compile(rb"[^\S\n]*([^\s#]*)(#?)[^\n]*\n")  # its label, empty where there is no row
_FIRST = re.compile(rb"^[^\S\n]*([^\s#]+)", re.MULTILINE)


def has_words(text: Bytes) -> bool | None:
    """Whether the first label of a piece is a word, as all are then; None if there is no row in it."""
    first = _FIRST.search(text.data)
    return None if first is None else is_word(first[1])


def parse_words(text: Bytes, allowed: Range) -> Part:
    """Parse a piece in which every label is a word."""
    raw = text.tobytes()
    plain = bytearray(raw)
    labels: list[bytes] = []
    known: set[bytes] = set()
    for number, line in enumerate(_LINE.finditer(raw)):
        label = line[1]
        if label:
            first, last = line.span(1)
            if label not in known or line[2]:
                _check(line, number, plain[: line.start()], allowed)
                known.add(label)
            plain[first:last] = b"0".ljust(last - first)
            labels.append(label)
    part = parse_piece(np.frombuffer(plain, dtype=np.uint8), allowed)
    names = sorted(known)  # the bytes of UTF-8 sort as its characters do
    places = {label: float(place) for place, label in enumerate(names)}
    codes = np.array([places[label] for label in labels])
    return part._replace(labels=codes, names=tuple(name.decode() for name in names))


def _check(line: re.Match[bytes], number: int, before: bytearray, allowed: Range) -> None:
    """Refuse a line whose label is no word, or goes on with a comment; faults in lines before come first."""
    try:
        check_word(line[1])
        if not line[2]:
            return
    except LineError:
        pass
    if before:
        parse_piece(np.frombuffer(before, dtype=np.uint8), allowed)
    try:
        parse_line(line[0], allowed, words=True)
    except LineError as error:
        raise PieceError(number, error) from None
