"""Checks of what a caller passes: a value of the right kind, or an error that names the argument and what it
takes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from .errors import InputError


def number(name: str, value: Any, *, zero: bool = False) -> float:
    """A positive finite float (or 0, where that is allowed)."""
    found = _scalar(value)
    if isinstance(found, bool) or not isinstance(found, Real):
        raise InputError(f"{name}={shown(value)} must be a number")
    try:
        found = float(found)
    except OverflowError:  # an int beyond float64
        found = math.inf
    if not math.isfinite(found) or found < 0 or (found == 0 and not zero):
        raise InputError(
            f"{name}={shown(value)} must be a {'non-negative' if zero else 'positive'} finite number"
        )
    return found


def whole(name: str, value: Any, least: int) -> int:
    """An int that is at least ``least``; a float will do if it is a whole number."""
    found = _scalar(value)
    if isinstance(found, float | np.floating) and math.isfinite(found) and found == math.floor(found):
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, Integral):
        raise InputError(f"{name}={shown(value)} must be a whole number >= {least}")
    if found < least:
        raise InputError(f"{name}={shown(value)} must be at least {least}")
    return int(found)


_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def duration(name: str, value: Any) -> float:
    """Seconds: a number, or a text such as "60s", "10min" or "2h"."""
    if not isinstance(value, str):
        return number(name, value, zero=True)
    found = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([a-z]*)", value.strip().lower())
    if found is None or found[2] not in _SECONDS:
        raise InputError(
            f"{name}={shown(value)} is no duration; write it as 60s, 10min, 2h or a number of seconds"
        )
    return number(name, float(found[1]) * _SECONDS[found[2]], zero=True)


def flag(name: str, value: Any) -> bool:
    """True or False (or 1 or 0)."""
    if isinstance(value, bool | np.bool_) or (isinstance(value, Integral) and value in (0, 1)):
        return bool(value)
    raise InputError(f"{name}={shown(value)} must be True or False")


def one_of(name: str, value: Any, choices: Sequence[str]) -> Any:
    """One of some words."""
    if isinstance(value, str) and value in choices:
        return value
    raise InputError(f"{name}={shown(value)} must be {' or '.join(map(repr, choices))}")


def functions(name: str, values: Any, what: str) -> list[Callable[..., Any]]:
    """A list of functions; ``what`` says of what kind."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise InputError(f"{name}={shown(values)} must be a list of {what}; put a single one in brackets")
    found = list(values)
    for k, value in enumerate(found):
        if not callable(value):
            raise InputError(f"{name}[{k}]={shown(value)} cannot be called; {name} must be a list of {what}")
    return found


def shown(value: Any) -> str:
    """A value for a message: one line, not longer than is needed to recognise it."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # an int of more digits than Python is willing to print
        text = "an int too long to print"
    return text if len(text) <= 80 else text[:77] + "..."


def as_matrix(X: Any) -> Any:
    """What a caller gave for rows as an array; the entries that a mask hides would be taken for values."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise InputError("X is a masked array; fill in what is masked (X.filled(0.0)) or leave its rows out")
    try:
        return np.asarray(X)
    except ValueError:
        raise InputError("X must hold numbers, in rows that are equally long") from None


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
