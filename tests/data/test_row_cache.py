"""The ring of rows against a plain dictionary of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualgap.data.row_cache import RowCache
from dualgap.data.rows import CSR, Batch
from dualgap.data.sources import Part
from dualgap.runtime.errors import InputError

SLOTS = 6


def part_of(
    lengths: list[int], first: int, weight: list[float], dtype: Any = np.float64, before: int = 3
) -> Part:
    """Rows of those lengths, each entry told apart from all others; a part need not begin where its arrays
    do.
    """
    n, total = len(lengths), sum(lengths)
    starts = before + np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    serial = 1000.0 * first + np.arange(before + total)
    columns = (np.arange(before + total) * 7 + first).astype(np.uint32)
    numbers = first + np.arange(n)
    y, squared_norms = numbers + 0.25, numbers + 0.5
    span = slice(first, first + n)
    rows = CSR(serial.astype(dtype), columns, starts)
    return Part(Batch(rows, y, np.array(weight, dtype=float), squared_norms), span)


def ring_of(entries: int, *, grows: bool, slots: int = SLOTS, dtype: Any = np.float64) -> RowCache:
    order = np.arange(slots, dtype=np.uint32)
    ids, slack = np.zeros(slots, dtype=np.int64), np.zeros(slots)
    return RowCache(ids, order, slack, entries, dtype, n=1000, grows=grows)


def expected_row(part: Part, i: int) -> tuple[Any, ...]:
    rows: Any = part.batch.rows
    entries = slice(rows.starts[i], rows.starts[i + 1])
    return (
        rows.values[entries].tolist(),
        rows.columns[entries].tolist(),
        float(part.batch.y[i]),
        float(part.batch.weight[i]),
        float(part.batch.squared_norms[i]),
    )


def held(ring: RowCache, size: int) -> dict[int, tuple[Any, ...]]:
    """What the ring holds, by the numbers of the rows."""
    rows, found = ring.rows, {}
    for slot in ring.order[:size].tolist():
        part = slice(rows.starts[2 * slot], rows.starts[2 * slot + 1])
        found[int(ring.ids[slot])] = (
            rows.values[part].tolist(),
            rows.columns[part].tolist(),
            float(ring.y[slot]),
            float(ring.weight[slot]),
            float(ring.squared_norms[slot]),
        )
    return found


operations = st.lists(
    st.one_of(
        st.tuples(
            st.just("insert"),
            st.lists(st.tuples(st.integers(0, 6), st.sampled_from([0.0, 1.0, 2.5])), min_size=1, max_size=8),
        ),
        st.tuples(st.just("evict"), st.integers(0, 2**SLOTS - 1)),
        st.tuples(st.just("leave"), st.integers(0, 2**SLOTS - 1)),
        st.tuples(st.just("shuffle"), st.integers(0, 100)),
    ),
    max_size=25,
)


@pytest.mark.slow
@given(operations, st.booleans(), st.sampled_from([np.float32, np.float64]))
def test_any_sequence_keeps_the_rows_that_are_present(operations: Any, grows: bool, dtype: Any) -> None:
    ring, size, model = ring_of(11, grows=grows, dtype=dtype), 0, {}
    number = 0
    for name, argument in operations:
        if name == "insert":
            lengths, weights = [length for length, _ in argument], [weight for _, weight in argument]
            part = part_of(lengths, number, weights, dtype)
            count = ring.fits(part, 0, size)
            if grows and count == 0 and size < SLOTS:
                count = 1
            size = ring.insert(part, 0, count, size) if count else size
            model |= {number + i: expected_row(part, i) for i in range(count) if weights[i]}
            number += len(lengths)
        elif name == "shuffle":
            np.random.default_rng(argument).shuffle(ring.order[:size])
        else:
            places = np.array([k for k in range(size) if argument >> k & 1], dtype=np.int64)
            for slot in ring.order[places]:
                del model[int(ring.ids[slot])]
            if name == "evict":
                size = ring.evict(places, size)
            else:  # as the Trainer does it: behind the others, and told afterwards
                stay = np.setdiff1d(np.arange(size), places)
                ring.order[:size] = ring.order[np.concatenate([stay, places])]
                ring.count_evicted(ring.order[stay.size : size])
                size = stay.size
        assert held(ring, size) == model
        assert ring.live == sum(len(row[0]) for row in model.values())
        assert sorted(ring.order) == list(range(SLOTS))
        assert ring.live <= ring.head <= ring.values.size


@given(
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from([0.0, 1.0])), min_size=1, max_size=10),
    st.integers(0, 9),
    st.lists(st.integers(0, 4), max_size=SLOTS),
)
def test_fits_is_the_largest_number_that_goes_in(
    rows: list[tuple[int, float]], first: int, already: list[int]
) -> None:
    ring, size = ring_of(12, grows=False), 0
    if already:
        there = part_of(already, 100, [1.0] * len(already))
        size = ring.insert(there, 0, ring.fits(there, 0, 0), 0)
    first = min(first, len(rows) - 1)
    lengths = [length for length, _ in rows]
    part = part_of(lengths, 0, [weight for _, weight in rows])
    count = ring.fits(part, first, size)
    assert 0 <= count <= min(len(rows) - first, SLOTS)
    taken = [length for length, weight in rows[first : first + count] if weight]  # others take no room
    assert sum(taken) <= 12 - ring.live
    assert len(taken) <= SLOTS - size
    if first + count < len(rows) and count < SLOTS:  # one more would be too much: for the arena, or the slots
        length, weight = rows[first + count]
        assert weight
        assert sum(taken) + length > 12 - ring.live or len(taken) == SLOTS - size
    before = held(ring, size)
    assert before.items() <= held(ring, ring.insert(part, first, first + count, size)).items()


def test_holes_are_closed_when_the_head_meets_the_end() -> None:
    ring = ring_of(10, grows=False)
    first = part_of([4, 3, 3], 0, [1.0] * 3)
    size = ring.insert(first, 0, 3, 0)
    size = ring.evict(np.array([1]), size)
    assert (ring.head, ring.live) == (10, 7)
    second = part_of([3], 50, [1.0])
    size = ring.insert(second, 0, 1, size)
    assert (ring.head, ring.live, size) == (10, 10, 3)
    assert held(ring, size) == {
        0: expected_row(first, 0),
        2: expected_row(first, 2),
        50: expected_row(second, 0),
    }


def test_a_row_longer_than_the_budget_is_refused_with_its_numbers() -> None:
    ring = ring_of(10, grows=False)
    part = part_of([2, 11], 40, [1.0, 1.0])
    size = ring.insert(part, 0, 1, 0)
    assert ring.fits(part, 1, size) == 0
    with pytest.raises(InputError, match=r"row 41 has 11 entries.*budget"):
        ring.insert(part, 1, 2, size)
    assert held(ring, size) == {40: expected_row(part, 0)}  # those that were there still are


def test_an_arena_that_may_grow_does() -> None:
    ring = ring_of(4, grows=True)
    part = part_of([3, 50, 2], 0, [1.0] * 3)
    size = 0
    for i in range(3):
        size = ring.insert(part, i, i + 1, size)
    assert ring.values.size >= 55
    assert ring.values.dtype == np.float64
    assert ring.columns.dtype == np.uint32
    assert held(ring, size) == {i: expected_row(part, i) for i in range(3)}


def test_new_rows_have_no_slack_yet() -> None:
    ring = ring_of(20, grows=False)
    ring.slack[:] = 5.0
    size = ring.insert(part_of([1, 2], 0, [1.0, 1.0]), 0, 2, 0)
    assert ring.slack[ring.order[:size]].tolist() == [0.0, 0.0]
    assert ring.slack[ring.order[size:]].tolist() == [5.0] * (SLOTS - 2)


def test_a_row_that_is_there_is_passed_over_and_enters_again_once_it_has_left() -> None:
    ring, part = ring_of(10, grows=False), part_of([2, 3, 4], 0, [1.0] * 3)
    size = ring.insert(part, 0, 2, 0)
    ring.slack[ring.order[:size]] = 5.0
    assert ring.fits(part, 0, size) == 3  # only the last one needs room
    size = ring.insert(part, 0, 3, size)
    assert (size, ring.live) == (3, 9)
    assert ring.slack[ring.order[:size]].tolist() == [5.0, 5.0, 0.0]  # what is known of a row stays known
    gone = int(ring.ids[ring.order[0]])
    size = ring.evict(np.array([0]), size)
    size = ring.insert(part, 0, 3, size)
    assert sorted(ring.ids[ring.order[:size]]) == [0, 1, 2]
    assert int(ring.ids[ring.order[size - 1]]) == gone
