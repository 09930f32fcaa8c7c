"""Where a fit with ``warm_start`` begins: the last model, and the duals of the rows that are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core.problem import Point
from ..data.fingerprint import row_hashes
from ..runtime.arrays import Floats, Words
from ..runtime.errors import InputError

Points = Callable[[int], Point | None]


class Start(NamedTuple):
    """Weights and intercepts that a user gives to begin with."""

    coef: Any
    intercept: Any


def given_points(start: Start, models: int, d: int) -> Points:
    """The weights given, once they are known to fit."""
    coef = np.zeros((models, d)) if start.coef is None else np.asarray(start.coef, dtype=np.float64)
    intercept = np.zeros(models) if start.intercept is None else np.asarray(start.intercept, dtype=np.float64)
    if coef.size != models * d:
        raise InputError(f"Provided coef_init does not match dataset: {coef.shape} for {(models, d)}")
    if intercept.size != models:
        raise InputError(f"Provided intercept_init does not match dataset: {intercept.shape} for {(models,)}")
    rows, values = coef.reshape(models, d), intercept.reshape(models)
    return lambda k: Point(np.ascontiguousarray(rows[k]), float(values[k]), None)


def hashes_of(X: Any, targets: Floats) -> Words:
    """A hash of every row with its label or target, by which it is known again in another fit."""
    numbers = targets if targets.ndim == 1 else targets @ np.arange(1.0, targets.shape[1] + 1.0)
    return row_hashes(X, numbers)


def cold(k: int) -> None:
    """No starting point."""
    return


def warm_points(
    coef: Floats, intercept: Floats, dual: Floats, before: Words, now: Words, *, joint: bool
) -> Points:
    """The starting point of each run from the last fit's weights and duals; of a joint problem there is one.

    Rows that were there before keep their duals, in whatever order they come; new ones have 0.
    """
    taken = dual if np.array_equal(before, now) else _moved(dual, before, now)
    if not joint:
        return lambda k: Point(coef[k], float(intercept[k]), taken[k])
    whole = Point(np.ascontiguousarray(coef.T), intercept.copy(), np.ascontiguousarray(taken.T))
    return lambda k: whole


def _moved(dual: Floats, before: Words, now: Words) -> Floats:
    """Duals brought to the rows that have the hashes of theirs; 0 for all other rows."""
    order = np.argsort(before, kind="stable")
    place = np.minimum(np.searchsorted(before, now, sorter=order), before.size - 1)
    known = before[order[place]] == now
    return np.where(known, dual[:, order[place]], 0.0)
