"""Views of stored rows, and passes over them by several threads."""

from __future__ import annotations

import itertools
import os
import threading
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.data.sources import Part, View, view
from dualgap.runtime import threads
from dualgap.runtime.errors import InputError
from support.problems import linear_data


def rows(n: int = 60_000, d: int = 40, threads: int = 1) -> View:
    return view(*linear_data(n, d, seed=0), threads=threads)


def spans(source: View) -> list[tuple[int, int]]:
    return source.reduce(lambda part: [(part.span.start, part.span.stop)], lambda a, b: a + b)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_parts_come_in_order_whoever_visits_them(threads: int) -> None:
    found = spans(rows(threads=threads))
    assert found == spans(rows())
    assert len(found) % 2 == 0
    assert (found[0][0], found[-1][1]) == (0, 60_000)
    assert all(a[1] == b[0] for a, b in itertools.pairwise(found))


def test_this_thread_and_another_share_the_work() -> None:
    both = threading.Barrier(2, timeout=30)  # nobody takes a second part before the other has taken a first

    def visit(part: Part) -> set[str]:
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
    def visit(part: Part) -> int:
        if (part.span.start == 0) == (where == "first"):
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


def test_a_view_shares_the_stored_rows() -> None:
    source = rows(40, 5)
    other = source.with_targets(-source.y).with_weight(np.arange(40.0))
    assert other.data is source.data
    np.testing.assert_array_equal(other.y, -source.y)
    assert (other.n, other.d, other.nnz, other.epoch_size) == (40, 5, source.nnz, 39)
    assert other.total_weight == 780.0
    np.testing.assert_array_equal(source.weight, 1.0)  # the first view is as it was
    for stored in (source, source.data):
        again = view(stored, other.y, other.weight)
        assert again.data is source.data
        assert again.digest == other.digest


def test_a_batch_is_all_rows_and_a_head_the_first_ones() -> None:
    source = rows(40, 5)
    (part,) = source.parts()
    assert part.span == slice(0, 40)
    for left, right in zip(part.batch, source.batch, strict=True):
        assert left is right
    head = source.data.head(7)
    assert (head.n, head.d, head.nnz) == (7, 5, 35)
    np.testing.assert_array_equal(head.squared_norms, source.squared_norms[:7])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda source: source.with_targets(np.ones(3)), "y has 3 entries and X has 40 rows"),
        (lambda source: source.with_targets(np.full(40, np.nan)), r"y\[0\] is nan"),
        (lambda source: source.with_weight(np.ones((40, 1))), "sample_weight has shape"),
        (lambda source: source.with_weight(np.full(40, -1.0)), r"sample_weight\[0\] is -1"),
        (lambda source: source.with_weight(np.zeros(40)), "all sample weights are zero"),
    ],
)
def test_targets_and_weights_of_a_view_are_checked(change: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        change(rows(40, 5))
