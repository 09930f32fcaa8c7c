"""Rows that come in chunks, as often as they are asked for: from a file, from arrays, from anything
restartable.

A feed knows the totals of all its rows and loads any of its chunks. ``Reader`` goes over a feed pass after
pass, on a thread of its own or step by step, and hands its chunks over as blocks of a problem.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from ..runtime.arrays import Floats, canonical
from ..runtime.errors import InputError
from .rows import Batch, Dense, Rows, sparse_rows, squared_lengths, squares
from .sources import Part, View, check_weights, digest_of
from .words import Names

T = TypeVar("T")

AHEAD = 3  # chunks that may wait to be taken


class Chunk(NamedTuple):
    """A contiguous batch of rows as a feed loads it; ``y`` are its labels, or codes for them (`Origin`)."""

    rows: Rows
    y: Floats
    weight: Floats | None  # None: 1 each
    span: slice


class Origin(NamedTuple):
    """What a file says of its rows besides the rows; the fields are those of `Table`."""

    zero_based: bool | None = None
    feature_names: tuple[str, ...] | None = None
    digests: tuple[str, ...] | None = None
    label_names: Names = None  # what the labels of chunks stand for, where these are codes


class Feed(Protocol):
    """Rows in chunks, each of which can be loaded again and again."""

    @property
    def name(self) -> str: ...  # for messages
    @property
    def n(self) -> int: ...
    @property
    def d(self) -> int: ...
    @property
    def nnz(self) -> int: ...
    @property
    def value_bytes(self) -> int: ...
    @property
    def dense_bytes(self) -> int: ...  # of an entry of dense rows, as they are held; 0 where rows are sparse
    @property
    def labels(self) -> list[tuple[float, float]] | None: ...  # or codes, with total weights, if they are few
    @property
    def total_weight(self) -> float: ...  # and those of labels: within two units (see `sums.Total`)
    @property
    def epoch_size(self) -> int: ...  # rows of positive weight
    @property
    def chunks(self) -> int: ...
    @property
    def chunk_bytes(self) -> int: ...  # of the largest one
    @property
    def origin(self) -> Origin: ...
    @property
    def steady(self) -> bool: ...  # a chunk that has been loaded once is sure to be the same again
    def load(self, k: int, first: bool) -> Chunk: ...  # first: it has not been loaded before, so look closely
    def labelled(self, k: int) -> tuple[Floats, Floats | None]: ...  # labels and weights alone


class OnDisk:
    """A source whose rows are not all in memory. Labels become targets as chunks are loaded."""

    in_memory = False

    def __init__(
        self,
        feed: Feed,
        targets: Callable[[Floats], Floats] = lambda labels: labels,
        *,
        memory_budget: int | None,
        d: int | None = None,
        models: int = 1,
        threads: int = 1,
    ) -> None:
        self.threads = threads  # for what solvers do with rows that are in memory; reading has its own
        self.models = models  # that are trained at once, each with its share of a budget
        self.feed, self.targets, self.memory_budget = feed, targets, memory_budget
        # of targets that come by for the first time
        self.check: Callable[[Floats, int], None] = lambda y, first: None
        self.n, self.d, self.nnz = feed.n, d or feed.d, feed.nnz  # a model may have further columns
        self.total_weight, self.epoch_size = feed.total_weight, feed.epoch_size
        self._seen = np.zeros(feed.chunks, dtype=bool)

    @cached_property
    def target_weights(self) -> list[tuple[float, float]] | None:
        """The total weights of the targets, from those of the labels where the feed knows them."""
        if self.feed.labels is None:
            return None
        y = self.targets(np.array([label for label, _ in self.feed.labels]))
        return [(float(target), weight) for target, (_, weight) in zip(y, self.feed.labels, strict=True)]

    @cached_property
    def digest(self) -> str:
        """A digest of the totals; the rows themselves are checked when they are read."""
        return digest_of(
            (self.n, self.d, self.nnz, self.total_weight, self.epoch_size, *(self.target_weights or ()))
        )

    @property
    def weight(self) -> Floats:
        """NaN for every row: weights are not in memory. (A regularised bias never reads them.)"""
        return np.broadcast_to(np.nan, self.n)

    @property
    def y(self) -> Floats:
        """Not in memory."""
        raise self._not_in_memory()

    @property
    def squared_norms(self) -> Floats:
        """Not in memory."""
        raise self._not_in_memory()

    @staticmethod
    def _not_in_memory() -> InputError:
        return InputError(
            "this solver needs all rows in memory; cached-loops, block, selective-block, streamed-newton and "
            "joint-block do not"
        )

    @property
    def batch(self) -> Batch:
        """Not in memory."""
        raise self._not_in_memory()

    def load(self, k: int) -> Part:
        """A chunk as a part of the source; checksum and targets are checked the first time."""
        first = not (self._seen[k] and self.feed.steady)
        chunk = self.feed.load(k, first)
        y = canonical(self.targets(chunk.y), np.float64)
        if first:
            try:
                squared_norms = squared_lengths(chunk.rows, self.d, chunk.span.start)
            except InputError as error:
                raise InputError(f"{self.feed.name}: {error}") from None
            self.check(y, chunk.span.start)
            if chunk.weight is not None:
                check_weights(chunk.weight, f"{self.feed.name}: weight", chunk.span.start)
            self._seen[k] = True
        else:
            squared_norms = canonical(squares(chunk.rows, y.size), np.float64)
        weight = np.ones(y.size) if chunk.weight is None else chunk.weight
        return Part(Batch(chunk.rows, y, canonical(weight, np.float64), squared_norms), chunk.span)

    def parts(self) -> Iterator[Part]:
        """All rows, chunk by chunk, in their order."""
        for k in range(self.feed.chunks):
            yield self.load(k)

    def reduce(self, visit: Callable[[Part], T], merge: Callable[[T, T], T]) -> T:
        """One pass over the file."""
        parts = self.parts()
        total = visit(next(parts))
        for part in parts:
            total = merge(total, visit(part))
        return total


class Piece(NamedTuple):
    """A chunk that has been read, as a part of the source."""

    part: Part
    number: int  # of the pass
    position: int  # in that pass
    last: bool

    @property
    def first(self) -> bool:
        """Whether it is the first of its pass."""
        return self.position == 0


class Reader:
    """Reads the chunks of a feed, pass after pass, in the order ``order(pass number)``; ``close`` ends its
    thread.

    ``seen(piece)`` is called for every part on the reader's own thread, before it is handed over. With
    ``lockstep`` there is no thread: a chunk is read when it is asked for. With ``waits=False`` the thread
    reads on where nobody takes what it has read, and drops the oldest of it.
    """

    def __init__(
        self,
        load: Callable[[int], Part],
        order: Callable[[int], Any],
        *,
        at: tuple[int, int] = (0, 0),
        lockstep: bool = False,
        waits: bool = True,
        seen: Callable[[Piece], None] = lambda piece: None,
    ) -> None:
        self._load, self._order, self._seen, self._waits = load, order, seen, waits
        self._pieces = self._read(*at)
        self._queue: queue.Queue[Piece | BaseException] = queue.Queue(AHEAD)
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        if not lockstep:
            self._thread = threading.Thread(target=self._run, name="dualgap-reader", daemon=True)
            self._thread.start()

    def take(self, wait: bool) -> Piece | None:
        """The next chunk; None if it has not been read yet and ``wait`` is false. Errors of the thread are
        raised here.
        """
        if self._thread is None:
            return next(self._pieces)
        try:
            found = self._queue.get(timeout=60.0) if wait else self._queue.get_nowait()
        except queue.Empty:
            if wait and not self._thread.is_alive():
                raise InputError("the reader has died without a word; start the run anew") from None
            return None
        if isinstance(found, BaseException):
            raise found
        return found

    def close(self) -> None:
        """End the thread, whatever it is doing."""
        self._closed.set()
        while self._thread is not None and self._thread.is_alive():
            try:
                self._queue.get_nowait()  # it may be waiting for a place
            except queue.Empty:
                self._thread.join(0.01)
        self._thread = None

    def _read(self, number: int, position: int) -> Iterator[Piece]:
        while True:
            order = self._order(number)
            for k in range(position, len(order)):
                piece = Piece(self._load(int(order[k])), number, k, k == len(order) - 1)
                self._seen(piece)
                yield piece
            number, position = number + 1, 0

    def _run(self) -> None:
        try:
            for piece in self._pieces:
                self._put(piece)
                if self._closed.is_set():
                    return
        except BaseException as error:
            self._put(error)

    def _put(self, item: Piece | BaseException) -> None:
        while not self._closed.is_set():
            try:
                self._queue.put(item, timeout=0.1 if self._waits else 0.0)
            except queue.Full:
                if not self._waits:
                    self._drop()
                continue
            return

    def _drop(self) -> None:
        with contextlib.suppress(queue.Empty):
            self._queue.get_nowait()


class FromMemory:
    """A feed of rows that are in memory: for small data, for tests, and for comparisons."""

    name = "memory"
    origin = Origin()
    steady = True
    dense_bytes = 0

    def __init__(self, source: View, rows: int | None = None) -> None:
        self._source = source
        self.n, self.d, self.nnz = source.n, source.d, source.nnz
        stored = source.rows.matrix if isinstance(source.rows, Dense) else source.rows.values
        self.value_bytes = max(4, stored.itemsize)  # chunks are CSR, which has no float16
        self.labels = None
        self.total_weight, self.epoch_size = source.total_weight, source.epoch_size
        self._step = rows or max(1, min(source.n, 300_000 * source.n // max(source.nnz, 1)))
        self.chunks = -(-source.n // self._step)
        self.chunk_bytes = 0

    def load(self, k: int, first: bool) -> Chunk:
        """Views of the arrays, or a sparse copy of dense rows."""
        source = self._source
        span = slice(k * self._step, min((k + 1) * self._step, self.n))
        return Chunk(
            sparse_rows(source.rows, span.start, span.stop), source.y[span], source.weight[span], span
        )

    def labelled(self, k: int) -> tuple[Floats, Floats | None]:
        """Labels and weights of a chunk."""
        chunk = self.load(k, False)
        return chunk.y, chunk.weight
