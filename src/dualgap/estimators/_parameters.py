"""What the parameters of estimators may be, checked as ``fit`` begins, with messages like scikit-learn's."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import cache
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from ..runtime.checks import shown
from ..runtime.errors import InputError


class Kind(NamedTuple):
    """What a parameter may be: a phrase that completes "must be", and a test."""

    phrase: str
    holds: Callable[[Any], bool]

    def __or__(self, other: Any) -> Kind:
        """Either of the two."""
        return Kind(f"{self.phrase} or {other.phrase}", lambda value: self.holds(value) or other.holds(value))


def real(low: float, high: float = math.inf, *, ends: str = "[)") -> Kind:
    """A number between two others, with or without either of them, as ``ends`` draws it."""

    def holds(value: Any) -> bool:
        if not _is(value, Real):
            return False
        above = value >= low if ends[0] == "[" else value > low
        return bool(above and (value <= high if ends[1] == "]" else value < high))

    return Kind(f"a float in the range {ends[0]}{float(low)}, {float(high)}{ends[1]}", holds)


def whole(low: int) -> Kind:
    """A whole number of at least ``low``."""
    return Kind(
        f"an int in the range [{low}, inf)", lambda value: _is(value, Integral) and bool(value >= low)
    )


def _is(value: Any, kind: type) -> bool:
    """Whether a value is a number of a kind; True and False are none."""
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_)


def one_of(*words: str) -> Kind:
    """One of some words."""
    listed = "{" + ", ".join(map(repr, words)) + "}"
    return Kind(f"a str among {listed}", lambda value: isinstance(value, str) and value in words)


def a(kind: type, name: str | None = None) -> Kind:
    """An instance of a class."""
    return Kind(f"an instance of {name or kind.__name__!r}", lambda value: isinstance(value, kind))


ANYTHING = Kind("anything", lambda value: True)  # checked where it is used, by a message of its own
NONE = Kind("None", lambda value: value is None)
FLAG = Kind("a bool", lambda value: isinstance(value, bool | np.bool_))
POSITIVE = real(0.0, ends="()")
NON_NEGATIVE = real(0.0)

COMMON: dict[str, Kind] = {
    "C": real(0.0, ends="(]") | NONE,
    "alpha": NON_NEGATIVE | NONE,
    "tol": NON_NEGATIVE,
    "fit_intercept": FLAG,
    "bias": one_of("exact", "augmented"),
    "intercept_scaling": POSITIVE,
    "solver": a(str),
    "solver_options": a(dict) | NONE,
    "max_iter": POSITIVE,
    "time_limit": POSITIVE | NONE,
    "early_stopping": FLAG,
    "validation_fraction": real(0.0, 1.0, ends="()"),
    "n_iter_no_change": whole(1),
    "warm_start": FLAG,
    "keep_dual": FLAG,
    "output": one_of("best", "last"),
    "callbacks": a(list) | a(tuple) | NONE,
    "verbose": whole(0) | FLAG,
    "multi_class": one_of("ovr", "crammer_singer"),
    "epsilon": NON_NEGATIVE,
    "quantile": real(0.0, 1.0, ends="()"),
    "shuffle": FLAG,
    "average": FLAG | whole(1),
    "eta0": NON_NEGATIVE,
}


def validate(estimator: Any, kinds: Mapping[str, Kind]) -> None:
    """Refuse a parameter of an estimator that is not what it must be. ``kinds`` come before the common
    ones; what neither knows is checked where it is used.
    """
    cls: Any = type(estimator)
    for name in _parameters_of(cls):
        value = getattr(estimator, name)
        kind = kinds.get(name, COMMON.get(name, ANYTHING))
        if not kind.holds(value):
            raise InputError(
                f"The {name!r} parameter of {type(estimator).__name__} must be {kind.phrase}. "
                f"Got {shown(value)} instead."
            )


@cache
def _parameters_of(cls: Any) -> tuple[str, ...]:
    """The names of the parameters of an estimator: scikit-learn's ``get_params`` inspects its signature
    each time.
    """
    return tuple(inspect.signature(cls).parameters)
