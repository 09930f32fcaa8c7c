"""Threads that share a pass over the data."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")

_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


def in_threads(visit: Callable[[S], T], parts: list[S], threads: int) -> list[T]:
    """``visit`` every part, shared out among this thread and others; results in order.

    The others are kept for the next pass: starting a thread may take as long as a pass over a million entries. A forked
    process has none of them, and makes its own.
    """
    if threads < 2:
        return [visit(part) for part in parts]
    key = os.getpid(), threads
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(threads - 1, thread_name_prefix="dualgap")
    pool = _pools[key]
    edges = [len(parts) * k // threads for k in range(threads + 1)]
    mine, *others = [parts[first:last] for first, last in pairwise(edges)]
    shares = [pool.submit(lambda share: [visit(part) for part in share], share) for share in others]
    try:
        results = [visit(part) for part in mine]
    finally:
        wait(shares)  # whatever happens here, nobody goes on with arrays that are no longer looked after
    return results + [result for share in shares for result in share.result()]
