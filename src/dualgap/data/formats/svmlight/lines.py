"""Parse svmlight text line by line: slow, and exact about what is wrong with a line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple, NoReturn

from ...words import fault_of

_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
_NUMBER = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_TOKEN = re.compile(rb"\S+")
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)
# no digit, sign or point first, as a number that is mistyped has; no commas, which part labels or columns
_WORD = re.compile(rb"[^\s\x00-\x1f\x7f\d+.:,;#-][^\s\x00-\x1f\x7f:,;#]*")
_ONE_KIND = "write all labels as numbers or all as words"


class Row(NamedTuple):
    """The content of a line."""

    label: float
    indices: list[int]
    values: list[float]
    grouped: bool  # it has a qid


class LineError(Exception):
    """What is wrong with a line, and in which of its columns, counted from 1."""

    def __init__(self, message: str, column: int = 0) -> None:
        super().__init__(message)
        self.column = column


class Range(NamedTuple):
    """The indices that may occur; ``complaint`` says what is wrong with any other."""

    low: int
    high: int
    complaint: Callable[[int], str]


def is_word(token: bytes) -> bool:
    """Whether a label is a word, as all labels of a file are if the first of them is."""
    return bool(_WORD.fullmatch(token)) and not _NOT_FINITE.fullmatch(token)


def is_number(token: bytes) -> bool:
    """Whether a label is a number."""
    return bool(_NUMBER.fullmatch(token))


def parse_line(line: bytes, allowed: Range, *, words: bool = False, sets: bool = False) -> Row | None:
    """The row of a line, or None if it is blank or a comment.

    With ``words`` its label must be a word, with ``sets`` any number of labels; it is then returned as 0.
    """
    line, comment, _ = line.partition(b"#")
    odd = _CONTROL.search(line)
    if odd:
        raise LineError(
            f"byte 0x{odd[0][0]:02x} where text was expected; is this a binary file?",
            _column(line, odd.start()),
        )
    tokens = _TOKEN.finditer(line)  # one by one: a line may be long
    first = next(tokens, None)
    if first is None:
        return None
    if b":" not in line and not sets:
        _refuse_table(line, len(line.split(None, 2)))
    place = 0
    seen: set[int] = set()
    indices, values = [], []
    try:
        place = first.start()
        unlabelled = sets and b":" in first[0]
        label = 0.0 if unlabelled else _label(first[0], words, sets)
        if words and comment and first.end() == len(line) and not unlabelled:
            raise LineError(
                f"label {_shown(first[0] + comment)} ends in a #, which begins a comment; put a blank "
                "before it, or write the label without"
            )
        second = first if unlabelled else next(tokens, None)
        grouped = second is not None and second[0].startswith(b"qid:")
        for token in tokens if grouped or second is None else chain([second], tokens):
            place = token.start()
            index, value = _entry(token[0])
            if not allowed.low <= index <= allowed.high:
                raise LineError(allowed.complaint(index))
            if index in seen:
                raise LineError(f"index {index} occurs twice; merge or drop one of the two entries")
            seen.add(index)
            indices.append(index)
            values.append(value)
    except LineError as fault:
        fault.column = _column(line, place)
        raise
    return Row(label, indices, values, grouped)


def _column(line: bytes, place: int) -> int:
    """The column, counted in characters from 1, of a place in the bytes of a line."""
    return len(line[:place].decode(errors="replace")) + 1


def _refuse_table(line: bytes, tokens: int) -> None:
    """A line of several fields, none of which is index:value."""
    for separator, words in ((b",", "CSV (commas)"), (b";", "CSV (semicolons)"), (b"\t", "TSV (tabs)")):
        if separator in line.strip():
            kind = words
            break
    else:
        if tokens < 3:
            return
        kind = "a table (blanks)"
    raise LineError(
        f"this looks like {kind} and not like svmlight text, whose rows are LABEL INDEX:VALUE ...; convert "
        "it, with "
        "dualgap.files.write_svmlight for instance, or give the arrays to dualgap.fit in Python",
        1,
    )


def _label(token: bytes, words: bool, sets: bool) -> float:
    if sets:
        check_set(token)
        return 0.0
    if b"," in token:
        raise LineError(
            f"{_shown(token)} is several labels; a row must have one, unless task='multilabel' (convert "
            "and inspect: --multilabel)"
        )
    if b":" in token:
        raise LineError(
            f"the line begins with {_shown(token)} where its label should be, which has no colon; write 0 if "
            "there is none"
        )
    what = f"label {_shown(token)}"
    if words:
        check_word(token)
        return 0.0
    if is_word(token):
        raise LineError(f"{what} is not a number, and the labels before it are; {_ONE_KIND}")
    if not is_number(token):
        _refuse_label(token, what)
    return _number(token, what)


def check_word(token: bytes) -> None:
    """Refuse a label that is no word, in a file whose labels are words."""
    what = f"label {_shown(token)}"
    if is_number(token):
        raise LineError(f"{what} is a number, and the labels before it are words; {_ONE_KIND}")
    if not is_word(token):
        _refuse_label(token, what)
    try:
        fault = fault_of(token.decode())
    except UnicodeDecodeError:
        fault = "is not UTF-8 text; convert the file, with iconv -t UTF-8 for instance"
    if fault is not None:
        raise LineError(f"{what} {fault}")


def check_set(token: bytes) -> None:
    """Refuse labels with commas between them of which one is neither a number nor a word."""
    for label in token.split(b",") if token else ():
        if not label:
            raise LineError(f"label {_shown(token)} has a comma with no label beside it; leave the comma out")
        if not is_number(label):
            check_word(label)


def _refuse_label(token: bytes, what: str) -> NoReturn:
    if _NOT_FINITE.fullmatch(token):
        _refuse_word(token, what)
    raise LineError(
        f"{what} is not a number, and no word, which would begin with no digit, sign or point and have no "
        "semicolon in it"
    )


def _entry(token: bytes) -> tuple[int, float]:
    index, colon, value = token.partition(b":")
    if not colon:
        raise LineError(f"{_shown(token)} should be index:value, with a colon and no blanks around it")
    if index == b"qid":
        raise LineError(f"{_shown(token)} is out of place; qid comes right after the label")
    if not (index.isdigit() and index.isascii()):
        negative = index[:1] == b"-" and index[1:].isdigit()
        problem = "is below 0" if negative else "is not a whole number"
        raise LineError(f"index {_shown(index)} in {_shown(token)} {problem}; indices count from 0 or 1")
    if len(index.lstrip(b"0")) > 18:
        raise LineError(
            f"index {_shown(index)} is too large for any model; hash the indices to fewer columns"
        )
    number = int(index[-18:])
    return number, _number(value, f"value {_shown(value)} of index {number}")


def _number(token: bytes, what: str) -> float:
    if not _NUMBER.fullmatch(token):
        _refuse_word(token, what)
    value = float(token)
    if not math.isfinite(value):
        raise LineError(f"{what} does not fit into float64")
    return value


def _refuse_word(token: bytes, what: str) -> NoReturn:
    if _NOT_FINITE.fullmatch(token):
        raise LineError(f"{what} is not finite; fill in missing values or leave the row out")
    raise LineError(f"{what} is not a number")


def _shown(token: bytes) -> str:
    text = token.decode(errors="backslashreplace")
    return repr(text if len(text) <= 40 else text[:37] + "...")
