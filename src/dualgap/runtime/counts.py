"""What a solver has done so far, counted and not timed."""

from __future__ import annotations

from typing import NamedTuple


class Counts(NamedTuple):
    """Work done so far; nested in the state of every solver, and returned by its kernels."""

    visits: int = 0  # of rows
    updates: int = 0  # visits that changed the model
    entries: int = 0  # stored entries read or written; a dot product and an addition count apart
