"""JSON headers of files of unknown origin, checked as a whole against a description of their fields.

A description is a `Kind` (of a single value), a dictionary of descriptions by the names of fields, or an
`Each` of the values of a list or dictionary. Fields in an `Optional` may be left out or null.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from .checks import shown

WORDS = ("inf", "-inf", "nan")  # numbers that JSON has no words for


class Kind(NamedTuple):
    """What a value must be."""

    holds: Callable[[Any], bool]
    words: str


class Optional(NamedTuple):
    """A field that may be left out, or null."""

    description: Any


class Each(NamedTuple):
    """A list, or with ``named`` a dictionary, of values of one description."""

    description: Any
    named: bool = False


Description: TypeAlias = Kind | Optional | Each | dict[str, Any]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**64


def is_number(value: Any) -> bool:
    """Whether a value is a finite number that float64 holds as it is written."""
    if type(value) is int:
        return abs(value) < 2**1023 and float(value) == value
    return type(value) is float and math.isfinite(value)


TEXT = Kind(_is_text, "a text")
FLAG = Kind(lambda value: type(value) is bool, "true or false")
WHOLE = Kind(_is_whole, "a whole number >= 0")
COUNT = Kind(lambda value: _is_whole(value) and value > 0, "a whole number >= 1")
NUMBER = Kind(is_number, "a number")
NOT_NEGATIVE = Kind(lambda value: is_number(value) and value >= 0, "a number >= 0")
EXTENDED = Kind(lambda value: is_number(value) or value in WORDS, "a number")  # or an infinity, or NaN
SCALAR = Kind(
    lambda value: value is None or type(value) in (bool, int) or is_number(value) or _is_text(value),
    "a number, a text, true, false or null",
)


def one_of(*choices: str) -> Kind:
    """One of some words."""
    return Kind(lambda value: isinstance(value, str) and value in choices, " or ".join(map(repr, choices)))


def check_fields(value: Any, description: Description, path: str = "") -> None:
    """Raise a ValueError unless a value from JSON is as described; it names the field and what it must be."""
    where = path or "the header"
    if isinstance(description, Optional):
        if value is not None:
            check_fields(value, description.description, path)
    elif isinstance(description, Kind):
        if not description.holds(value):
            raise ValueError(f"{where} is {shown(value)}, and must be {description.words}")
    elif isinstance(description, Each):
        _check_each(value, description, path)
    else:
        if not isinstance(value, dict):
            raise ValueError(f"{where} is {shown(value)}, and must be an object")
        for name in value:
            if name not in description:
                raise ValueError(f"{where} has a field {shown(name)}, which is not known")
        for name, kind in description.items():
            if name in value:
                check_fields(value[name], kind, _join(path, name))
            elif not isinstance(kind, Optional):
                raise ValueError(f"{where} lacks the field {name!r}")


def _check_each(value: Any, description: Each, path: str) -> None:
    wanted = dict if description.named else list
    if not isinstance(value, wanted):
        kind = "an object" if description.named else "a list"
        raise ValueError(f"{path or 'the header'} is {shown(value)}, and must be {kind}")
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in items:
        check_fields(item, description.description, _join(path, name))


def _join(path: str, name: Any) -> str:
    word = str(name) if str(name).isalnum() or str(name).isidentifier() else repr(name)
    word = word if len(word) <= 40 else word[:37] + "..."
    return f"{path}.{word}" if path else word
