"""Results of threads are merged in the order of their parts, whoever comes first."""

from __future__ import annotations

import random
import time

from dualgap.runtime.threads import OrderedMerge, in_threads


def test_results_are_merged_in_order_as_they_come() -> None:
    merged = OrderedMerge(lambda left, right: f"({left} {right})")
    for number in (1, 0, 3):
        merged.add(number, str(number))
    assert merged.total == "(0 1)"  # 3 waits for 2
    merged.add(2, "2")
    assert merged.total == "(((0 1) 2) 3)"


def test_threads_make_no_difference() -> None:
    rng = random.Random(0)
    delays = [rng.random() / 500 for _ in range(20)]
    found = []
    for threads in (1, 4):
        merged = OrderedMerge(lambda left, right: [*left, *right])

        def visit(k: int, merged: OrderedMerge[list[int]] = merged) -> None:
            time.sleep(delays[k])
            merged.add(k, [k])

        in_threads(visit, list(range(20)), threads)
        found.append(merged.total)
    assert found == [list(range(20))] * 2
