"""Passes over rows in memory, shared out among threads."""

from __future__ import annotations

import itertools
import os
import threading
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.data.sources import Block, InMemory, in_memory
from dualgap.runtime import threads
from support.problems import linear_data


def rows(n: int = 60_000, d: int = 40, threads: int = 1) -> InMemory:
    return in_memory(*linear_data(n, d, seed=0), threads=threads)


def spans(source: InMemory) -> list[tuple[int, int]]:
    return source.reduce(lambda block: [(block.span.start, block.span.stop)], lambda a, b: a + b)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_parts_come_in_order_whoever_visits_them(threads: int) -> None:
    found = spans(rows(threads=threads))
    assert found == spans(rows())
    assert len(found) % 2 == 0
    assert (found[0][0], found[-1][1]) == (0, 60_000)
    assert all(a[1] == b[0] for a, b in itertools.pairwise(found))


def test_this_thread_and_another_share_the_work() -> None:
    both = threading.Barrier(2, timeout=30)  # nobody takes a second part before the other has taken a first

    def visit(block: Block) -> set[str]:
        both.wait()
        return {threading.current_thread().name}

    def names() -> set[str]:
        return rows(threads=2).reduce(visit, lambda a, b: a | b)

    seen = names()
    assert len(seen) == 2
    assert threading.current_thread().name in seen
    assert names() == seen  # the same thread as before, not a new one


def test_a_thread_that_does_not_wake_up_is_not_waited_for() -> None:
    source = rows(threads=2)
    spans(source)  # makes the pool
    asleep = threading.Event()
    pool = threads._pools[os.getpid(), 2]
    pool.submit(asleep.wait)
    try:
        assert spans(source) == spans(rows())
    finally:
        asleep.set()


@pytest.mark.parametrize("where", ["first", "last"])
def test_what_goes_wrong_in_a_thread_is_raised_here(where: str) -> None:
    def visit(block: Block) -> int:
        if (block.span.start == 0) == (where == "first"):
            raise ZeroDivisionError(where)
        return 0

    with pytest.raises(ZeroDivisionError, match=where):
        rows(threads=2).reduce(visit, lambda a, b: a + b)
    assert spans(rows(threads=2)) == spans(rows())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    source: Any = rows(threads=2)
    here = dualgap.fit(source, source.y, threads=2, tol=1e-2)
    child = os.fork()
    if child == 0:  # no assertion may leave this branch: pytest is in it too
        there = dualgap.fit(source, source.y, threads=2, tol=1e-2)
        os._exit(0 if np.array_equal(there.coef, here.coef) else 1)
    assert os.waitpid(child, 0)[1] == 0
