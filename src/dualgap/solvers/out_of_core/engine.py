"""What a run on rows that are not all in memory has open: the cache of rows and the Reader that fills it.

Both can be made again from the state, so a checkpoint holds neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...data.chunks import Feed, FromMemory, OnDisk, Piece, Reader
from ...data.dense_row_cache import DENSE, DenseRowCache
from ...data.row_cache import ROOM, RowCache
from ...data.rows import Batch
from ...data.sources import Part
from ...runtime.errors import InputError
from ..dual.sweeper import Subproblem
from .cache_sweeper import CacheSweeper
from .passing import PassingEvaluation
from .state import Place, State

FEWEST_ENTRIES = 16  # that a cache has room for


class Reading(NamedTuple):
    """How chunks are read."""

    lockstep: bool  # when they are asked for, instead of ahead of time on a thread
    waits: bool = True  # the thread waits for what it has read to be taken, instead of dropping the oldest


def damaged(what: str) -> InputError:
    """The error where a state cannot have come from a run."""
    return InputError(f"resume: state.{what}: the run is damaged; resume another checkpoint, or start anew")


ChunkOrder = Callable[[int], Any]  # the chunks of a pass, by its number


def _in_chunks(source: Any) -> OnDisk:
    """Rows in memory as a source of chunks."""
    return OnDisk(FromMemory(source), memory_budget=None)


class Engine:
    """The cache and the Reader of a run.

    ``w``, ``beta`` and the arrays of ``sweeps`` are those of the state that it is made of: states that it is
    given later are that state, taken further.
    """

    def __init__(
        self,
        problem: Problem,
        state: State,
        reading: Reading,
        chunk_order: Callable[[Feed, int], ChunkOrder],
    ) -> None:
        source = problem.source
        self._source = source if isinstance(source, OnDisk) else _in_chunks(source)
        self.feed = self._source.feed
        self._check(state)
        order = chunk_order(self.feed, state.sweeps.ids.size)
        self._lockstep = reading.lockstep or source.in_memory
        self.piece: Piece | None = None  # whose rows are being taken in
        self._row = state.place.row  # of the next piece
        self.passing = None if source.in_memory else PassingEvaluation(problem, state)
        self.cache = self._empty_cache(state)
        if state.size:
            self._fill_again(state)
        pass_number, chunk, _ = state.place
        if self.passing is not None and self._lockstep and state.frozen.pass_number == pass_number:
            chunks = order(pass_number)
            seen = (self._source.load(int(k)) for k in chunks[: state.frozen.seen])
            self.passing.resume(state.frozen, seen, state.frozen.seen == len(chunks))
        self.reader = Reader(
            self._source.load,
            order,
            at=(pass_number, chunk),
            lockstep=self._lockstep,
            waits=reading.waits,
            seen=self._see,
        )

    def close(self) -> None:
        """End the Reader."""
        self.reader.close()

    def has_evaluation(self) -> bool:
        """Whether an evaluation is complete that the run has not been told of."""
        return self.passing is not None and bool(self.passing.complete)

    def next_evaluation(self) -> tuple[Point, Evaluation] | None:
        """The oldest evaluation that the run has not been told of, and its point."""
        return self.passing.complete.popleft() if self.passing is not None and self.passing.complete else None

    def passes(self, place: Place) -> float:
        """Passes over the data, up to that place."""
        return place.pass_number + place.chunk / self.feed.chunks

    def next_piece(self, *, wait: bool) -> Piece | None:
        """The chunk whose rows are being taken in, or the next one if it has come or is worth waiting for.

        Whatever a source of chunks raises becomes an InputError, so that a run ends with what it has learned.
        """
        if self.piece is None:
            try:
                self.piece = self.reader.take(wait)
            except InputError:
                raise
            except Exception as error:
                raise InputError(f"{self.feed.name}: cannot be read on: {error!r}") from error
            if self.piece is not None:
                row, self._row = self._row, 0
                if row >= self.piece.part.batch.y.shape[0]:
                    raise damaged(f"place.row is {row}, beyond its chunk")
        return self.piece

    def advanced(self, state: State, piece: Piece, rows: int, size: int, owed: int) -> State:
        """The state after so many rows of a chunk have been taken in; a new sweep begins."""
        place = state.place._replace(row=state.place.row + rows)
        if place.row == piece.part.batch.y.shape[0]:
            self.piece = None
            place = Place(piece.number + 1) if piece.last else Place(piece.number, piece.position + 1)
        return self.noted(state.at(size=size, position=-1, due=0)._replace(place=place, owed=owed))

    def noted(self, state: State) -> State:
        """The state with what a resumed run needs to know of the cache and of the evaluation in passing.

        A reader on a thread of its own is ahead of the state: its evaluation is lost where a run is resumed.
        """
        frozen = self.passing.frozen if self.passing is not None and self._lockstep else state.frozen
        return state._replace(room=self.cache.room, frozen=frozen)

    def train(self, problem: Problem, sweeper: CacheSweeper, state: State, budget: int) -> State:
        """Visit so many rows in the cache."""
        cache, size = self.cache, state.size
        batch = Batch(cache.rows, cache.y, cache.weight, cache.squared_norms)
        rows = Subproblem(batch, problem.loss, problem.dual_geometry)
        sweeps = sweeper.sweep(rows, state.w, state.beta, state.sweeps, budget)
        if sweeps.cursor.size < size:
            cache.count_evicted(sweeps.order[sweeps.cursor.size : size])
        self.tell_bias(sweeps.cursor.b)
        return state._replace(sweeps=sweeps)

    def tell_bias(self, b: float) -> None:
        """The bias is now b; a pass that begins evaluates it with w and beta."""
        if self.passing is not None:
            self.passing.b = b

    def _check(self, state: State) -> None:
        """Refuse the state of a resumed run that does not suit what is read."""
        if state.place.chunk >= self.feed.chunks:
            raise damaged(f"place.chunk is {state.place.chunk}, of {self.feed.chunks} chunks")
        longest = min(self._source.d, self._source.nnz)
        if state.room > max(FEWEST_ENTRIES, 2 * (state.sweeps.ids.size + 1) * longest):
            raise damaged(f"room is {state.room}, more than so many rows can need")

    def _see(self, piece: Piece) -> None:
        if self.passing is not None:
            self.passing.see(piece)

    def _empty_cache(self, state: State) -> RowCache:
        mean = self._source.nnz / self._source.n
        ids, slack, order = state.sweeps.ids, state.sweeps.slack, state.sweeps.order
        n = self._source.n
        if self.feed.dense_bytes:
            return DenseRowCache(ids, order, slack, DENSE[self.feed.dense_bytes], n=n, d=self.feed.d)
        dtype = np.float32 if self.feed.value_bytes == 4 else np.float64
        room = state.room or max(FEWEST_ENTRIES, int(ROOM * mean * ids.size))
        grows = self._source.memory_budget is None
        return RowCache(ids, order, slack, room, dtype, n=n, grows=grows)

    def _fill_again(self, state: State) -> None:
        """Read the rows that were in the cache of a run that is resumed, into their slots."""
        size, sweeps = state.size, state.sweeps
        order, slack = sweeps.order.copy(), sweeps.slack.copy()
        slots = order[:size][np.argsort(sweeps.ids[order[:size]])]
        sweeps.order[:size] = slots  # they come in the order of their numbers
        count = 0
        for part, row in self._found(sweeps.ids[slots]):
            count = self.cache.insert(part, row, row + 1, count)
        sweeps.order[:], sweeps.slack[:] = order, slack
        if count < size:
            raise damaged("sweeps.ids names rows of weight 0")

    def _found(self, wanted: Any) -> Iterator[tuple[Part, int]]:
        """Rows by their numbers, in ascending order: the part that each is in, and its place there."""
        count = 0
        for part in self._source.parts():
            while count < wanted.size and wanted[count] < part.span.stop:
                yield part, int(wanted[count]) - part.span.start
                count += 1
            if count == wanted.size:
                return
