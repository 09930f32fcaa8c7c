"""Where a fit with ``warm_start`` begins: the last model, and the duals of the rows that are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.problem import Point
from ..data.fingerprint import row_hashes
from ..runtime.arrays import Floats, Words

Points = Callable[[int], Point | None]


def hashes_of(X: Any, targets: Floats) -> Words:
    """A hash of every row with its label or target, by which it is known again in another fit."""
    numbers = targets if targets.ndim == 1 else targets @ np.arange(1.0, targets.shape[1] + 1.0)
    return row_hashes(X, numbers)


def cold(k: int) -> None:
    """No starting point."""
    return


def warm_points(
    coef: Floats, intercept: Floats, dual: Floats, before: Words, now: Words, models: int, d: int
) -> Points:
    """The starting point of each of ``models`` runs from the last fit's weights and duals.

    Rows that were there before keep their duals, in whatever order they come; new ones have 0. Where the
    classes or columns are others the runs begin afresh.
    """
    if coef.shape[1] != d or models not in (1, coef.shape[0]):
        return cold
    taken = dual if np.array_equal(before, now) else _moved(dual, before, now)
    if models == coef.shape[0]:
        return lambda k: Point(coef[k], float(intercept[k]), taken[k])
    joint = Point(np.ascontiguousarray(coef.T), intercept.copy(), np.ascontiguousarray(taken.T))
    return lambda k: joint


def _moved(dual: Floats, before: Words, now: Words) -> Floats:
    """Duals brought to the rows that have the hashes of theirs; 0 for all other rows."""
    order = np.argsort(before, kind="stable")
    place = np.minimum(np.searchsorted(before, now, sorter=order), before.size - 1)
    known = before[order[place]] == now
    return np.where(known, dual[:, order[place]], 0.0)
