"""How many rows the cache of a run has room for."""

from __future__ import annotations

import math

from ...core.problem import Problem
from ...data.chunks import AHEAD, OnDisk
from ...data.memory import training_bytes
from ...data.row_cache import MEMBER_BYTES, ROOM, SLOT_BYTES
from ...runtime.errors import InputError

COLUMN_BYTES = 64  # of vectors of d numbers that a run needs at a time
RESIDENT_COLUMN_BYTES = 24  # of these, those that the memory budget does not cover: weights
DUAL_COPIES = 3  # beside the duals themselves: those being evaluated, those just evaluated, the best so far


def capacity(problem: Problem, cache: float) -> int:
    """The number of rows in the cache: ``cache`` (a number or a share), or as many as the memory budget
    allows.
    """
    source = problem.source
    wanted = source.n
    if cache > 0:
        wanted = min(source.n, max(2, math.ceil(cache * source.n) if cache < 1 else int(cache)))
    if not isinstance(source, OnDisk) or source.memory_budget is None:
        return wanted
    feed = source.feed
    columns = (COLUMN_BYTES - RESIDENT_COLUMN_BYTES) * source.d
    fixed = (AHEAD + 2) * feed.chunk_bytes + (8 * DUAL_COPIES + MEMBER_BYTES) * source.n + columns
    entry = feed.dense_bytes or ROOM * (4 + feed.value_bytes)
    each = source.nnz / source.n * entry + SLOT_BYTES
    rows = int((source.memory_budget - fixed) / each)
    if rows >= 2:
        return min(wanted, rows)
    models = source.models
    needed = models * math.ceil(fixed + 2 * each)
    shared = f", shared by {models} models," if models > 1 else ""
    whole = training_bytes(source.n, source.d, source.nnz, feed.value_bytes)  # less, where data are tiny
    raise InputError(
        f"memory_budget={models * source.memory_budget}{shared} is too little for these data: give at least "
        f"{min(needed, whole)} bytes; from disk, {fixed:.0f} go into what is being read and working copies "
        f"of duals and weights, and {each:.0f} into each row in memory"
    )
