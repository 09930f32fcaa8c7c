"""Feeds of chunks, the reader that goes over them, and sources whose rows stay where they are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dualgap.core.bias import NoBias
from dualgap.core.losses import make_loss
from dualgap.core.problem import Point, Problem
from dualgap.data.chunks import AHEAD, FromMemory, OnDisk, Reader
from dualgap.data.formats.feeds import ChunkFeed, StoreFeed
from dualgap.data.rows import CSR, Batch
from dualgap.data.sources import Part, view
from dualgap.files import Store, write_store
from dualgap.runtime.errors import InputError
from support.feeds import deadline, readers, small_batches
from support.problems import sparse_data


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with deadline():
        yield


data = partial(sparse_data, n=50, d=9, density=0.4, empty_row=3, weights=(0.0, 1.0, 2.0))


def numbered(k: int) -> Part:
    """A part of one row that says which one it is."""
    rows = CSR(np.array([float(k)]), np.zeros(1, dtype=np.uint32), np.array([0, 1]))
    batch = Batch(rows, np.array([float(k)]), np.ones(1), np.array([float(k * k)]))
    return Part(batch, slice(k, k + 1))


def orders(number: int) -> Any:
    return np.random.default_rng(number).permutation(4)


def taken(reader: Reader, count: int) -> list[tuple[int, int, int, bool, bool]]:
    found = []
    while len(found) < count:
        piece = reader.take(wait=True)
        assert piece is not None
        found.append((int(piece.part.batch.y[0]), piece.number, piece.position, piece.first, piece.last))
    reader.close()
    return found


@pytest.mark.parametrize("at", [(0, 0), (2, 3)])
def test_threaded_and_lockstep_give_the_same_pieces_in_the_order_of_each_pass(at: tuple[int, int]) -> None:
    number, position = at
    expected = []
    while len(expected) < 15:
        order = orders(number)
        for k in range(position, 4):
            expected.append((int(order[k]), number, k, k == 0, k == 3))
        number, position = number + 1, 0
    for lockstep in (True, False):
        assert taken(Reader(numbered, orders, at=at, lockstep=lockstep), 15) == expected[:15]


def test_every_part_is_seen_before_it_is_handed_over() -> None:
    for lockstep in (True, False):
        seen: list[int] = []
        reader = Reader(
            numbered, orders, lockstep=lockstep, seen=lambda piece, seen=seen: seen.append(piece.position)
        )
        for k in range(9):
            piece = reader.take(wait=True)
            assert piece is not None
            assert len(seen) > k
            assert seen[k] == piece.position
        reader.close()


def test_lockstep_reads_nothing_that_was_not_asked_for() -> None:
    loaded: list[int] = []

    def load(k: int) -> Part:
        loaded.append(k)
        return numbered(k)

    reader = Reader(load, orders, lockstep=True)
    assert loaded == []
    reader.take(wait=False)
    assert len(loaded) == 1


def test_a_reader_waits_when_nobody_takes() -> None:
    loaded: list[int] = []

    def load(k: int) -> Part:
        loaded.append(k)
        return numbered(k)

    reader = Reader(load, orders)
    until(lambda: len(loaded) == AHEAD + 1)
    time.sleep(0.2)
    assert len(loaded) == AHEAD + 1  # those that wait, and the one that finds no place
    reader.close()


@pytest.mark.parametrize("lockstep", [True, False])
@pytest.mark.parametrize(
    "error", [InputError("row 7 is bad"), OSError(5, "disk"), RuntimeError("odd"), MemoryError()]
)
def test_what_goes_wrong_is_raised_where_it_is_taken(error: Exception, lockstep: bool) -> None:
    def load(k: int) -> Part:
        if k == 2:
            raise error
        return numbered(k)

    reader = Reader(load, lambda number: range(4), lockstep=lockstep)
    for k in range(2):
        piece = reader.take(wait=True)
        assert piece is not None
        assert piece.part.batch.y[0] == k
    with pytest.raises(type(error)) as found:
        reader.take(wait=True)
    assert found.value is error
    reader.close()


def test_what_goes_wrong_in_what_is_seen_is_raised_too() -> None:
    def seen(piece: Any) -> None:
        raise ZeroDivisionError("in passing")

    reader = Reader(numbered, orders, seen=seen)
    with pytest.raises(ZeroDivisionError, match="in passing"):
        reader.take(wait=True)
    reader.close()


def until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.005)


def test_close_ends_a_thread_that_waits_for_a_place() -> None:
    before = len(readers())
    loaded: list[int] = []
    reader = Reader(lambda k: loaded.append(k) or numbered(k), orders)
    until(lambda: len(loaded) > AHEAD)
    reader.close()
    assert len(readers()) == before
    reader.close()  # twice is no harm


def test_close_ends_a_thread_that_has_an_error_to_tell() -> None:
    before = len(readers())

    def load(k: int) -> Part:
        raise RuntimeError("nobody listens")

    reader = Reader(load, orders)
    reader.close()
    assert len(readers()) == before


def test_close_waits_for_a_load_under_way_and_no_longer() -> None:
    gate = threading.Event()
    begun = threading.Event()

    def load(k: int) -> Part:
        begun.set()
        gate.wait()
        return numbered(k)

    reader = Reader(load, orders)
    begun.wait()
    assert reader.take(wait=False) is None  # not come yet, not waited for
    threading.Timer(0.2, gate.set).start()
    reader.close()


def test_chunks_from_memory_are_the_rows() -> None:
    X, y, weight = data()
    for matrix in (sp.csr_array(X), X, sp.csr_array(X.astype(np.float32)), X.astype(np.float32)):
        source = view(matrix, y, weight)
        feed = FromMemory(source, rows=7)
        assert (feed.chunks, feed.n, feed.d) == (8, 50, 9)
        assert feed.value_bytes == matrix.dtype.itemsize
        together = [feed.load(k, True) for k in range(feed.chunks)]
        assert [chunk.span for chunk in together] == [slice(k, min(k + 7, 50)) for k in range(0, 50, 7)]
        assert_rows(together, matrix, y, weight)


def assert_rows(chunks: list[Any], X: Any, y: Any, weight: Any) -> None:
    d = X.shape[1]
    dense = np.vstack(
        [
            sp.csr_array(
                (
                    chunk.rows.values[chunk.rows.starts[0] : chunk.rows.starts[-1]],
                    chunk.rows.columns[chunk.rows.starts[0] : chunk.rows.starts[-1]].astype(np.int64),
                    chunk.rows.starts - chunk.rows.starts[0],
                ),
                shape=(chunk.y.size, d),
            ).toarray()
            for chunk in chunks
        ]
    )
    np.testing.assert_array_equal(dense, X.toarray() if sp.issparse(X) else X)
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), y)
    shares = [np.ones(chunk.y.size) if chunk.weight is None else chunk.weight for chunk in chunks]
    np.testing.assert_array_equal(np.concatenate(shares), np.ones(y.size) if weight is None else weight)


@pytest.mark.parametrize("compression", [None, "lz4"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
def test_chunks_of_a_store_are_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str | None, dtype: str, weighted: bool
) -> None:
    small_batches(monkeypatch)
    X, y, weight = data()
    X = X.astype(np.float32)
    path = tmp_path / "rows.arrow"
    write_store(
        path, X, y, weight if weighted else None, keep_order=True, dtype=dtype, compression=compression
    )
    feed = StoreFeed(Store(path))
    assert feed.chunks > 3
    total = weight.sum() if weighted else 50
    present = np.count_nonzero(weight) if weighted else 50
    assert (feed.n, feed.d, feed.total_weight, feed.epoch_size) == (50, 9, total, present)
    assert feed.nnz == np.count_nonzero(X)
    for first in (True, False):
        chunks = [feed.load(k, first) for k in range(feed.chunks)]
        assert_rows(chunks, X.astype(dtype), y, weight if weighted else None)
        assert all(chunk.rows.values.dtype == dtype for chunk in chunks)
        sizes = [chunk.rows.values.nbytes + chunk.rows.columns.nbytes for chunk in chunks]
        assert max(sizes) <= feed.chunk_bytes
    labels = [feed.labelled(k) for k in range(feed.chunks)]
    np.testing.assert_array_equal(np.concatenate([label for label, _ in labels]), y)
    if weighted:
        np.testing.assert_array_equal(
            np.concatenate([share for _, share in labels if share is not None]), weight
        )
        assert feed.labels == [(label, weight[y == label].sum()) for label in (-1.0, 1.0)]


def test_rows_without_entries_and_batches_without_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_batches(monkeypatch, 60)
    X = np.zeros((12, 3))
    X[7, 1] = 2.0
    y = np.where(np.arange(12) % 2, 1.0, -1.0)
    path = tmp_path / "empty.arrow"
    write_store(path, X, y, keep_order=True)
    feed = StoreFeed(Store(path))
    assert_rows([feed.load(k, True) for k in range(feed.chunks)], X, y, None)


def test_a_damaged_batch_is_found_when_it_is_first_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_batches(monkeypatch)
    X, y, _ = data()
    path = tmp_path / "rows.arrow"
    write_store(path, X, y, keep_order=True)
    begin = StoreFeed(Store(path))._places[2][0]
    content = bytearray(path.read_bytes())
    content[begin + 20] ^= 1
    path.write_bytes(content)
    feed = StoreFeed(Store(path))
    for k in (0, 1, 3):
        feed.load(k, True)
    with pytest.raises(InputError, match=r"rows.arrow: batch 2 \(rows \d+ to \d+\) is damaged"):
        feed.load(2, True)


def test_a_store_that_is_touched_is_not_read_on(tmp_path: Path) -> None:
    X, y, _ = data()
    path = tmp_path / "rows.arrow"
    write_store(path, X, y)
    feed = StoreFeed(Store(path))
    feed.load(0, True)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 8)
    with pytest.raises(InputError, match=r"rows.arrow: the file was changed"):
        feed.load(0, False)


def test_a_feed_closes_its_file(tmp_path: Path) -> None:
    X, y, _ = data()
    path = tmp_path / "rows.arrow"
    write_store(path, X, y)
    store = Store(path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        feed = StoreFeed(store)
        feed.load(0, True)
        del feed
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def chunked(X: Any, y: Any, weight: Any = None, step: int = 8) -> Callable[[], Iterator[Any]]:
    def start() -> Iterator[Any]:
        for k in range(0, len(y), step):
            part = slice(k, k + step)
            yield (X[part], y[part]) if weight is None else (X[part], y[part], weight[part])

    return start


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["dense", "csr", "csc", "float32"])
def test_chunks_of_an_iterator(kind: str, weighted: bool) -> None:
    X, y, weight = data()
    start = chunked(X, y, weight if weighted else None)

    def typed() -> Iterator[Any]:
        make = {"dense": np.asarray, "csr": sp.csr_matrix, "csc": sp.csc_array, "float32": np.float32}[kind]
        for X, *rest in start():
            yield make(X), *rest

    feed = ChunkFeed(typed)
    assert (feed.n, feed.d, feed.chunks, feed.value_bytes) == (50, 9, 7, 4 if kind == "float32" else 8)
    assert feed.total_weight == (weight.sum() if weighted else 50)
    assert feed.epoch_size == (np.count_nonzero(weight) if weighted else 50)
    for order in (range(7), range(7), [3, 1, 1, 6, 0]):
        for k in order:
            part = slice(8 * k, min(8 * k + 8, 50))
            expected = X[part].astype(np.float32) if kind == "float32" else X[part]
            chunk = feed.load(k, False)
            assert chunk.span == part
            assert_rows([chunk], expected, y[part], weight[part] if weighted else None)


def test_entries_named_twice_are_summed_each_time() -> None:
    twice = sp.csr_matrix((np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    feed = ChunkFeed(lambda: iter([(twice.copy(), np.array([1.0, -1.0]))]))
    for first in (True, False):
        assert_rows([feed.load(0, first)], np.array([[0.0, 3.0], [5.0, 0.0]]), np.array([1.0, -1.0]), None)


def test_widths_of_chunks_may_differ_and_the_widest_counts() -> None:
    feed = ChunkFeed(lambda: iter([(np.ones((2, 1)), [1, -1]), (np.ones((1, 3)), [1])]), n_features=2)
    assert feed.d == 3
    assert ChunkFeed(lambda: iter([(np.ones((2, 1)), [1, -1])]), n_features=7).d == 7


def test_chunks_that_cannot_come_again_are_found_out() -> None:
    X, y, _ = data()
    once = chunked(X, y)()
    feed = ChunkFeed(lambda: once, name="my chunks")
    with pytest.raises(InputError, match="my chunks: ended at chunk 0, and had 7 before"):
        feed.load(0, True)


def changing(*versions: list[Any]) -> ChunkFeed:
    """A feed that yields something else each time it is begun."""
    count = iter(versions)
    return ChunkFeed(lambda: iter(next(count)), name="fickle")


GOOD = (np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param((np.eye(3, 4), GOOD[1][:3]), id="fewer rows"),
        pytest.param((np.eye(5, 4), np.ones(5)), id="more rows"),
        pytest.param((np.eye(4, 6), GOOD[1]), id="more columns"),
        pytest.param((GOOD[0], GOOD[1][:2]), id="too few labels"),
        pytest.param((GOOD[0], np.ones(9)), id="too many labels"),
        pytest.param((GOOD[0], GOOD[1], np.ones(2)), id="too few weights"),
        pytest.param((GOOD[0], GOOD[1], -np.ones(4)), id="negative weights"),
        pytest.param((GOOD[0], np.array([1.0, np.nan, 1.0, -1.0])), id="a label that is no number"),
    ],
)
def test_other_shapes_the_second_time_are_refused(other: Any) -> None:
    feed = changing([GOOD, GOOD], [GOOD, other])
    feed.load(0, True)
    with pytest.raises(InputError, match="fickle"):
        feed.load(1, True)


def test_other_values_the_second_time_are_looked_at() -> None:
    bad = GOOD[0].copy()
    bad[2, 1] = np.inf
    source = OnDisk(changing([GOOD, GOOD], [GOOD, (bad, GOOD[1])]), memory_budget=10**6)
    source.load(0)
    with pytest.raises(InputError, match="infinity at row 6, column 1"):
        source.load(1)


def test_other_weights_the_second_time_are_refused() -> None:
    feed = changing([(np.eye(2), [1, -1], [1.0, 2.0])], [(np.eye(2), [1, -1], [1.0, 2.0 + 1e-12])])
    problem = Problem(OnDisk(feed, memory_budget=10**6), make_loss("hinge"), 1.0)
    with pytest.raises(InputError, match=r"add up to 3.000000000001, and should to 3.0: a feed must"):
        problem.evaluate(Point(np.zeros(2), 0.0, None))


@pytest.mark.parametrize("bad", [1e-101, 5e-324, 1e101])
def test_extreme_weights_are_refused_wherever_they_come_from(bad: float, tmp_path: Path) -> None:
    rows = np.eye(3), np.array([1.0, -1.0, 1.0]), np.array([1.0, 1.0, bad])
    write_store(tmp_path / "rows.arrow", *rows, keep_order=True)
    source = OnDisk(StoreFeed(Store(tmp_path / "rows.arrow")), memory_budget=10**6)
    with pytest.raises(InputError, match=r"rows.arrow: weight\[2\] is .*; weights must be 0 or between"):
        source.load(0)
    feed = changing([(np.eye(3), [1, -1, 1], [1.0, 1.0, 1.0])], [rows])
    with pytest.raises(InputError, match=r"weight\[2\] is .*; weights must be 0 or between 1e-100 and 1e100"):
        OnDisk(feed, memory_budget=10**6).load(0)


def test_a_feed_without_rows_is_refused() -> None:
    with pytest.raises(InputError, match="no rows"):
        ChunkFeed(lambda: iter(()))
    with pytest.raises(InputError, match="none of positive weight"):
        ChunkFeed(lambda: iter([(np.eye(2), [1, -1], [0.0, 0.0])]))


def test_a_source_on_disk_is_the_source_in_memory() -> None:
    X, y, weight = data()
    whole = view(X, y, weight)
    source = OnDisk(FromMemory(whole, rows=7), memory_budget=10**6)
    assert (source.n, source.d, source.nnz, source.in_memory) == (50, 9, whole.nnz, False)
    batches = [part.batch for part in source.parts()]
    np.testing.assert_array_equal(
        np.concatenate([batch.squared_norms for batch in batches]), whole.squared_norms
    )
    np.testing.assert_array_equal(np.concatenate([batch.weight for batch in batches]), weight)
    rng = np.random.default_rng(1)
    for loss in ("hinge", "logistic", "squared"):
        there, here = (Problem(rows, make_loss(loss), 0.01, NoBias()) for rows in (source, whole))
        point = Point(rng.standard_normal(9), 0.0, 0.3 * y)
        left, right = there.certify(point), here.certify(point)
        assert abs(left.primal - right.primal) <= left.rounding
        assert abs(left.dual - right.dual) <= left.rounding
        assert there.value_at_zero == pytest.approx(here.value_at_zero, rel=1e-14)
        np.testing.assert_allclose(
            there.model_of(0.3 * y, 0.0)[0], here.model_of(0.3 * y, 0.0)[0], rtol=1e-12
        )


def test_targets_are_made_of_labels_and_checked_once() -> None:
    X, _, _ = data()
    labels = np.where(np.arange(50) % 3, 4.0, 8.0)
    feed = FromMemory(view(X, labels), rows=10)
    source = OnDisk(feed, lambda found: np.where(found == 8.0, 1.0, -1.0), memory_budget=10**6)
    checked: list[int] = []
    source.check = lambda y, first: checked.append(first)
    for _ in range(2):
        targets = np.concatenate([part.batch.y for part in source.parts()])
        np.testing.assert_array_equal(targets, np.where(labels == 8.0, 1.0, -1.0))
    assert checked == [0, 10, 20, 30, 40]


def test_weights_of_targets_follow_from_those_of_labels() -> None:
    feed = ChunkFeed(lambda: iter([(np.eye(3), [2.0, 5.0, 7.0], [1.0, 2.0, 4.0])]))
    source = OnDisk(feed, lambda found: np.where(found == 5.0, 1.0, -1.0), memory_budget=10**6)
    assert sorted(source.target_weights or []) == [(-1.0, 1.0), (-1.0, 4.0), (1.0, 2.0)]
    problem = Problem(source, make_loss("hinge"), 1.0, NoBias())
    assert problem.value_at_zero == 1.0


def test_many_labels_are_no_classes() -> None:
    feed = ChunkFeed(lambda: iter([(np.ones((1500, 1)), np.arange(1500.0))]))
    assert feed.labels is None
    assert OnDisk(feed, memory_budget=10**6).target_weights is None


def test_positions_of_pieces_come_from_the_order(tmp_path: Path) -> None:
    X, y, _ = data()
    source = OnDisk(FromMemory(view(X, y), rows=13), memory_budget=10**6)
    reader = Reader(source.load, lambda number: [2, 0, 3, 1], lockstep=True)
    pieces = [piece for piece in islice(iter(lambda: reader.take(wait=True), None), 4) if piece is not None]
    assert [piece.part.span.start for piece in pieces] == [26, 0, 39, 13]
    assert [piece.last for piece in pieces] == [False, False, False, True]
