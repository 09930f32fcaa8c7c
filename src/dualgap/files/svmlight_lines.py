"""Svmlight text line by line: slow, and exact about what is wrong with a line."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..errors import InputError

_COMMENT = re.compile(rb"#[^\n]*")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WORDS = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_HIGHEST = 2**62  # no memory is that large, and int64 holds it


class _LineError(Exception):
    """What is wrong with a line."""


def without_comments(text: bytes) -> bytes:
    """The text with everything from ``#`` to the end of a line taken out."""
    return _COMMENT.sub(b"", text) if b"#" in text else text


def parse(path: Path, text: bytes, line: int) -> tuple[Any, ...]:
    """Labels, counts of entries, indices, values, line numbers and the number of qids, from a text without comments."""
    labels: list[float] = []
    counts: list[int] = []
    indices: list[int] = []
    values: list[float] = []
    lines: list[int] = []
    qids = 0
    for number, row in enumerate(text.split(b"\n"), start=line):
        try:
            odd = _CONTROL.search(row)
            if odd:
                raise _LineError(f"byte 0x{odd[0][0]:02x} where text was expected; is this a binary file?")
            tokens = row.split()
            if not tokens:
                continue
            labels.append(_label(tokens[0]))
            grouped = len(tokens) > 1 and tokens[1].startswith(b"qid:")
            qids += grouped
            entries = tokens[1 + grouped :]
            for token in entries:
                index, value = _entry(token)
                indices.append(index)
                values.append(value)
            counts.append(len(entries))
            lines.append(number)
        except _LineError as fault:
            raise InputError(f"{path}, line {number}: {fault}") from None
    return (
        np.array(labels, dtype=np.float64),
        np.array(counts, dtype=np.int64),
        np.array(indices, dtype=np.int64),
        np.array(values, dtype=np.float64),
        np.array(lines, dtype=np.int64),
        qids,
    )


def _label(token: bytes) -> float:
    if b"," in token:
        raise _LineError(
            f"{_shown(token)} is several labels (or CSV?); a row must have one: write one file for each label, with "
            "1 where the row has it and -1 where not"
        )
    if b":" in token:
        raise _LineError(f"the line begins with {_shown(token)} where its label should be; write 0 if there is none")
    return _number(token, f"label {_shown(token)}")


def _entry(token: bytes) -> tuple[int, float]:
    index, colon, value = token.partition(b":")
    if not colon:
        raise _LineError(f"{_shown(token)} should be index:value, with a colon and no blanks around it")
    if index == b"qid":
        raise _LineError(f"{_shown(token)} is out of place; qid comes right after the label")
    if not (index.isdigit() and index.isascii()):
        negative = index[:1] == b"-" and index[1:].isdigit()
        problem = "is below 0" if negative else "is not a whole number"
        raise _LineError(f"index {_shown(index)} in {_shown(token)} {problem}; indices count from 0 or 1")
    if len(index.lstrip(b"0")) > 18 or int(index) > _HIGHEST:
        raise _LineError(f"index {_shown(index)} is too large for any model; hash the indices to fewer columns")
    return int(index), _number(value, f"value {_shown(value)} of index {int(index)}")


def _number(token: bytes, what: str) -> float:
    if not _NUMBER.fullmatch(token):
        _refuse_word(token, what)
    value = float(token)
    if not math.isfinite(value):
        raise _LineError(f"{what} does not fit into float64")
    return value


def _refuse_word(token: bytes, what: str) -> NoReturn:
    if _WORDS.fullmatch(token):
        raise _LineError(f"{what} is not finite; fill in missing values or leave the row out")
    raise _LineError(f"{what} is not a number")


def _shown(token: bytes) -> str:
    text = token.decode("ascii", errors="backslashreplace")
    return repr(text if len(text) <= 40 else text[:37] + "...")
