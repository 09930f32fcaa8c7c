"""Options: fields of a frozen dataclass with a help text and a range, checked in one place.

A solver declares ``k: int = option(1, "rows in a batch", low=1)``; from that come its help, its
documentation, the conversion of what a user wrote on the command line, and the check of the value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, NamedTuple

from .checks import shown
from .errors import InputError

TRUE = ("true", "yes", "1")
FALSE = ("false", "no", "0")
_WORDS = {word: word in TRUE for word in TRUE + FALSE}


class Range(NamedTuple):
    """The values that an option may have; None where there is no bound."""

    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] | None = None


def option(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | None = None,
    compare: bool = True,
) -> Any:
    """A field of a dataclass that is an option: its default, a line of help, and the values it may have."""
    metadata = {"help": help, "range": Range(low, high, choices)}
    return field(default=default, compare=compare, metadata=metadata)


@dataclass(frozen=True)
class Option:
    """One option, as a user sees it."""

    name: str
    type: str  # as it is annotated: "int", "float", "bool", "str" or "Any"
    default: Any
    help: str
    range: Range

    def check(self, value: Any) -> None:
        """Refuse a value out of range."""
        low, high, choices = self.range
        if choices is not None and isinstance(value, str) and value not in choices:
            raise InputError(f"{self.name}={value!r} must be one of {', '.join(choices)}")
        if low is None and high is None:
            return
        low, high = -math.inf if low is None else low, math.inf if high is None else high
        if not (math.isfinite(value) and low <= value <= high):
            kind = "a whole number" if self.type == "int" else "a finite number"
            bounds = f">= {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
            raise InputError(f"{self.name}={value!r} must be {kind} {bounds}")

    def convert(self, owner: str, value: Any) -> Any:
        """A value of the option's type, from text where the command line gave text."""
        complaint = f"option {self.name}={shown(value)} of solver {owner!r} must be of type {self.type}"
        if self.type == "bool":
            if isinstance(value, str) and value.lower() in _WORDS:
                return _WORDS[value.lower()]
            if isinstance(value, bool):
                return value
            raise InputError(f"{complaint}: true or false")
        if self.type == "Any":  # a word on the command line, an array in Python; the solver checks it
            return value
        if isinstance(value, bool):
            raise InputError(complaint)
        try:
            if self.type == "int":
                number = int(value)
                if not isinstance(value, str) and number != value:
                    raise ValueError
                return number
            return float(value) if self.type == "float" else str(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(complaint) from None


@cache
def options_of(cls: Any) -> tuple[Option, ...]:
    """The options of a class, in their order; the seed is not one of them, as it is given apart.

    Annotations are strings, so they name their types.
    """
    return tuple(
        Option(item.name, str(item.type), item.default, item.metadata["help"], item.metadata["range"])
        for item in fields(cls)
        if "range" in item.metadata and item.name != "seed"
    )


def check_options(instance: Any) -> None:
    """Refuse an instance of such a class that has an option out of range."""
    cls: Any = type(instance)
    for item in options_of(cls):
        item.check(getattr(instance, item.name))
