"""Threads that share a pass over the data."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from functools import cache
from threading import Lock
from typing import Any, Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")

_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


def in_threads(visit: Callable[[S], T], parts: list[S], threads: int) -> list[T]:
    """``visit`` every part; results in order. This thread and others each take the next part that nobody has
    taken.

    So nobody waits for a thread that is slow, or slow to wake up, for longer than a part takes. The others
    are kept for the next pass: starting a thread may take as long as a pass over a million entries. A forked
    process has none of them, and makes its own.
    """
    if threads < 2:
        return [visit(part) for part in parts]
    key = os.getpid(), threads
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(threads - 1, thread_name_prefix="dualgap")
    pool = _pools[key]
    results: dict[int, T] = {}
    left = iter(range(len(parts)))

    def work() -> None:
        for k in left:
            results[k] = visit(parts[k])

    shares = [pool.submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:  # whatever happens here, nobody goes on with arrays that are no longer looked after
        deque(left, maxlen=0)  # nothing is left to take
        begun = [share for share in shares if not share.cancel()]
        wait(begun)
    for share in begun:
        share.result()
    return [results[k] for k in range(len(parts))]


class OrderedMerge(Generic[T]):
    """Merges the results of parts in the order of the parts, each as soon as all before it have come: few of
    them are held at a time, and neither the order of merging nor its result depends on the threads.
    """

    def __init__(self, merge: Callable[[T, T], T]) -> None:
        self._merge, self._lock = merge, Lock()
        self._waiting: dict[int, T] = {}
        self._merged = 0
        self.total: T  # of all parts so far, once the first has come

    def add(self, number: int, result: T) -> None:
        """The result of the part of that number, counted from 0; may be called from any thread."""
        with self._lock:
            self._waiting[number] = result
            while self._merged in self._waiting:
                found = self._waiting.pop(self._merged)
                self.total = self._merge(self.total, found) if self._merged else found
                self._merged += 1


def blas_threads(count: int) -> AbstractContextManager[Any]:
    """BLAS uses so many threads at most. By itself it takes all cores, and on a machine that is busy its
    threads wait for each other for longer than the work takes one of them.
    """
    limit: AbstractContextManager[Any] = _controller().limit(limits=count, user_api="blas")
    return limit


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # it looks for libraries: some milliseconds

    return ThreadpoolController()
