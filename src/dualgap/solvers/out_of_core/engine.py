"""What solvers of data beyond memory share: duals and w in memory, rows in a ring, and a Trainer that sweeps
the ring.

    maximise  D(beta) = -1/N sum_i c_i phi*(-beta_i) - lam/2 |w(beta)|^2 + bias term

over the coordinates of the rows at hand, one at a time and exactly, as ``dcd`` does; a Reader brings other
rows (``feeds.py``). The certificate of a frozen point rides on the Reader's passes: every row goes by once in
each of them.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from ...core.evaluation import Evaluation, Point, StreamingEvaluation
from ...core.problem import Problem
from ...data.chunks import AHEAD, Feed, FromMemory, OnDisk, Piece, Reader
from ...data.memory import training_bytes
from ...data.row_cache import ROOM, SLOT_BYTES, Ring
from ...data.sources import Source
from ...runtime.arrays import Floats, Offsets, Words
from ...runtime.errors import InputError
from ...runtime.jit import kernel, prefetch
from ...runtime.random import generator, shuffle
from ...training.loop import Counts
from ..dual.warm import dual_start

_FAR, _NEAR = 12, 5  # visits ahead at which a row's numbers, and then its entries, are fetched
_COLUMN_BYTES = 64  # of vectors of d numbers that a run needs at a time
_DUAL_COPIES = (
    3  # beside the duals themselves: those being evaluated, those just evaluated, and the best so far
)


class Progress(NamedTuple):
    """Where a run stands."""

    b: float
    size: int  # rows at hand
    position: int  # of the sweep over them; -1 before the next is shuffled
    epsilon: float  # a row satisfied by more than this may go
    new_epsilon: float  # the largest gradient of this sweep so far
    number: int  # of the pass over the data
    chunk: int  # of that pass that comes next
    row: int  # of that chunk that comes next
    owed: int  # visits before further rows are taken
    visits: int
    updates: int
    entries: int


class Frozen(NamedTuple):
    """The point that a pass over the data evaluates, as it was when the pass began; empty where it evaluates
    none.
    """

    w: Floats
    b: float
    beta: Floats
    number: int  # of the pass
    seen: int = 0  # chunks of that pass

    @property
    def grows(self) -> bool:
        """It is empty at first."""
        return True


class State(NamedTuple):
    """w = w(beta) at all times. The rows at hand are named by ``ids`` and not kept here: they are read
    again.
    """

    w: Floats
    beta: Floats
    ids: Offsets  # of the rows in the slots of the ring
    order: Any  # uint32: a permutation of the slots, those in use first
    slack: Floats  # by how much a row was satisfied when it was last seen; 0 if it is not
    rng: Words
    room: int  # entries that the ring holds, which decides when rows must leave; 0 before there is one
    frozen: Frozen
    progress: Progress

    @property
    def counts(self) -> Counts:
        """What the loop wants to know."""
        return Counts(self.progress.visits, self.progress.updates, self.progress.entries)

    @property
    def paused(self) -> bool:
        """No moment is better than another."""
        return False


def capacity(problem: Problem, cache: float) -> int:
    """How many rows to keep: a share or a number that the user gave, or what the memory budget has room
    for.
    """
    source = problem.source
    wanted = source.n
    if cache > 0:
        wanted = min(source.n, max(2, math.ceil(cache * source.n) if cache < 1 else int(cache)))
    if not isinstance(source, OnDisk) or source.memory_budget is None:
        return wanted
    feed = source.feed
    fixed = (AHEAD + 2) * feed.chunk_bytes + 8 * _DUAL_COPIES * source.n + (_COLUMN_BYTES - 24) * source.d
    each = ROOM * source.nnz / source.n * (4 + feed.value_bytes) + SLOT_BYTES
    rows = int((source.memory_budget - fixed) / each)
    if rows < 2:
        models = source.models
        needed = models * math.ceil(fixed + 2 * each)
        shared = f", shared by {models} models," if models > 1 else ""
        whole = training_bytes(source.n, source.d, source.nnz, feed.value_bytes)  # less, where data are tiny
        raise InputError(
            f"memory_budget={models * source.memory_budget}{shared} is too little for these data: give at "
            "least "
            f"{min(needed, whole)} bytes; from disk, {fixed:.0f} go into what is being read and working "
            "copies of "
            f"duals and weights, and {each:.0f} into each row in memory"
        )
    return min(wanted, rows)


def begin(problem: Problem, warm: Point | None, seed: int, rows: int) -> State:
    """No rows at hand, nothing read."""
    w, b, beta = dual_start(problem, warm)
    progress = Progress(b, 0, -1, 9.0, 0.0, 0, 0, 0, 0, 0, 0, 0)
    order = np.arange(rows, dtype=np.uint32)
    ids, slack = np.zeros(rows, dtype=np.int64), np.zeros(rows)
    return State(w, beta, ids, order, slack, generator(seed), 0, _nothing(-1), progress)


def _nothing(number: int) -> Frozen:
    return Frozen(np.zeros(0), 0.0, np.zeros(0), number)


class Engine:
    """The ring and the Reader of a run: what is not worth saving, as it can be made again from the state."""

    def __init__(
        self, problem: Problem, state: State, *, order: Any, lockstep: bool, waits: bool, rides: bool
    ) -> None:
        source: Any = problem.source
        self._on_disk = source if isinstance(source, OnDisk) else OnDisk(feed_of(problem), memory_budget=None)
        self._problem, self._state, self._rides = problem, state, rides
        self.evaluated: deque[tuple[Point, Evaluation]] = deque()
        self._passing: StreamingEvaluation | None = None
        self.failure: str | None = None
        self.b = state.progress.b
        self.piece: Piece | None = None
        mean = source.nnz / source.n
        feed = self._on_disk.feed
        dtype = np.float32 if feed.value_bytes == 4 else np.float64
        room = state.room or max(16, int(ROOM * mean * state.ids.size))
        self.ring = Ring(
            state.ids, state.order, state.slack, room, dtype, grows=self._on_disk.memory_budget is None
        )
        if state.progress.size:
            self._restore(state)
        progress = state.progress
        order = order or (lambda number: range(feed.chunks))
        self._frozen, self._lockstep = _nothing(-1), lockstep
        if lockstep and rides and state.frozen.number == progress.number:
            self._thaw(state.frozen, order(progress.number))
        self.reader = Reader(
            self._on_disk.load,
            order,
            at=(progress.number, progress.chunk),
            lockstep=lockstep,
            waits=waits,
            seen=self._evaluate,
        )

    def next_piece(self, *, wait: bool) -> Piece | None:
        """The chunk whose rows are being taken in, or the next one if it has come (or is worth waiting
        for).
        """
        if self.piece is None:
            try:
                self.piece = self.reader.take(wait)
            except InputError:
                raise
            except (
                Exception
            ) as error:  # whatever a source of chunks may raise: what has been learned is not lost
                raise InputError(f"{self._on_disk.feed.name}: cannot be read on: {error!r}") from error
        return self.piece

    def advanced(self, state: State, piece: Piece, rows: int, size: int, owed: int) -> State:
        """The state after so many rows of a chunk have been taken in; a new sweep begins."""
        progress = state.progress._replace(row=state.progress.row + rows, size=size, owed=owed, position=-1)
        if progress.row == piece.part.batch.y.shape[0]:
            self.piece = None
            number, chunk = (piece.number + 1, 0) if piece.last else (piece.number, piece.position + 1)
            progress = progress._replace(row=0, number=number, chunk=chunk)
        return self.noted(state._replace(progress=progress))

    def noted(self, state: State) -> State:
        """The state with what a resumed run needs to know of the ring and of the evaluation in passing.

        A reader on a thread of its own is ahead of the state: its evaluation is lost where a run is resumed.
        """
        frozen = self._frozen if self._lockstep else state.frozen
        return state._replace(room=self.ring.values.size, frozen=frozen)

    def close(self) -> None:
        """End the Reader."""
        self.reader.close()

    def _restore(self, state: State) -> None:
        """Read the rows at hand again, into their slots."""
        size = state.progress.size
        order, slack = state.order.copy(), state.slack.copy()
        slots = order[:size][np.argsort(state.ids[order[:size]])]
        wanted = state.ids[slots]
        state.order[:size] = slots  # they come in the order of their numbers
        count = 0
        for k in range(self._on_disk.feed.chunks):
            part = None
            while count < size and (part is None or wanted[count] < part.span.stop):
                part = part or self._on_disk.load(k)
                if wanted[count] >= part.span.stop:
                    break
                row = int(wanted[count]) - part.span.start
                count = self.ring.insert(part, row, row + 1, count)
        state.order[:], state.slack[:] = order, slack

    def _evaluate(self, piece: Piece) -> None:
        """On the Reader's thread: the certificate of the point as it was when the pass began."""
        if not self._rides:
            return
        if self._frozen.number == piece.number and piece.position < self._frozen.seen:
            return  # the run was resumed within this chunk
        if piece.first:
            state, number = self._state, piece.number
            fresh = number == 0 and not state.beta.any()
            self._freeze(_nothing(0) if fresh else Frozen(state.w.copy(), self.b, state.beta.copy(), number))
        self._frozen = self._frozen._replace(seen=piece.position + 1)
        if self._passing is not None:
            self._passing.add(piece.part)
            if piece.last:
                self.evaluated.append((self._passing.point, self._passing.evaluation()))
                self._passing = None

    def _freeze(self, frozen: Frozen) -> None:
        """Evaluate this point in the pass that has begun."""
        self._frozen = frozen
        point = Point(frozen.w, frozen.b, frozen.beta)
        self._passing = self._problem.streaming_evaluation(point) if frozen.w.size else None

    def _thaw(self, frozen: Frozen, order: Any) -> None:
        """Go on with the evaluation that was under way when the run ended: read again what it had seen."""
        self._freeze(frozen)
        if frozen.seen == len(order):
            self._passing = None  # it was complete
        if self._passing is not None:
            for k in order[: frozen.seen]:
                self._passing.add(self._on_disk.load(int(k)))


_engines: weakref.WeakKeyDictionary[Source, Engine] = weakref.WeakKeyDictionary()


def engine_of(problem: Problem, state: State, **options: Any) -> Engine:
    """The engine of a run under way, or one that goes on from the state."""
    engine = _engines.get(problem.source)
    if engine is None or engine._state.beta is not state.beta:
        close(problem)
        engine = _engines[problem.source] = Engine(problem, state, **options)
    return engine


def resume(
    problem: Problem,
    state: State,
    last: Evaluation | None,
    *,
    lockstep: bool,
    waits: bool = True,
    order: Any = None,
) -> Engine:
    """The engine, with w brought up to date by what an evaluation has computed anew."""
    resident = problem.source.in_memory
    lockstep = lockstep or resident
    engine = engine_of(problem, state, order=order, lockstep=lockstep, waits=waits, rides=not resident)
    engine.b = state.progress.b
    if last is not None:
        state.w[:], engine.b = last.w_of_dual, last.b
    return engine


def evaluated(problem: Problem, state: Any) -> tuple[Point, Evaluation] | None:
    """An evaluation that rode on a pass over the data, if one has been completed."""
    engine = _engines.get(problem.source)
    if engine is None or not engine.evaluated:
        return None
    return engine.evaluated.popleft()


def feed_of(problem: Problem) -> Feed:
    """Where the chunks come from."""
    source: Any = problem.source
    return source.feed if isinstance(source, OnDisk) else FromMemory(source)


def failure(problem: Problem) -> str | None:
    """What the Reader stumbled over."""
    engine = _engines.get(problem.source)
    return None if engine is None else engine.failure


def figures(problem: Problem, state: Any) -> dict[str, float]:
    """Passes over the data so far."""
    if not isinstance(state, State):
        return {}
    return {"passes": state.progress.number + state.progress.chunk / feed_of(problem).chunks}


def recompute_primal(problem: Problem, state: State) -> State:
    """w(beta) computed anew."""
    w, b = problem.model_of(state.beta, state.progress.b)
    state.w[:] = w
    return state._replace(progress=state.progress._replace(b=b))


def shift_bias(state: State, centre: float) -> tuple[State, float]:
    """The same duals under a bias whose centre moves to the present one."""
    b = state.progress.b
    return state._replace(progress=state.progress._replace(b=2.0 * b - centre)), b


def shuffled(state: State, size: int) -> Any:
    """Put the rows at hand into random order; their places."""
    shuffle(state.rng, state.order, size)
    return np.arange(size)


def close(problem: Problem) -> None:
    """End what runs for a problem."""
    engine = _engines.pop(problem.source, None)
    if engine is not None:
        engine.close()


def train(problem: Problem, engine: Engine, state: State, budget: int, evicting: bool) -> State:
    """Let the Trainer visit so many rows at hand; with ``evicting`` those that are satisfied enough leave."""
    ring, size = engine.ring, state.progress.size
    progress = Progress(
        *_train(
            ring.rows,
            ring.y,
            ring.weight,
            ring.squared_norms,
            ring.ids,
            ring.slack,
            problem.loss,
            problem.scale,
            problem.bias_rate,
            state.w,
            state.beta,
            state.order,
            state.rng,
            state.progress,
            evicting,
            budget,
        )
    )
    if progress.size < size:
        ring.count_evicted(state.order[progress.size : size])
    engine.b = progress.b
    return state._replace(progress=progress)


@kernel
def _train(
    rows: Any,
    y: Floats,
    weight: Floats,
    squared_norms: Floats,
    ids: Offsets,
    slack: Floats,
    loss: Any,
    scale: float,
    bias_rate: float,
    w: Floats,
    beta: Floats,
    order: Any,
    rng: Words,
    progress: Progress,
    evicting: bool,
    budget: int,
) -> Progress:
    """Visit rows at hand, in sweeps of random order, until the budget is spent or none is left.

    For the row in a slot, with q = c (scale |x|^2 + bias_rate) and s = <w, x> + b:
        beta' = argmax -phi*(-beta') - s (beta' - beta) - q/2 (beta' - beta)^2
        w += scale c (beta' - beta) x,    b += bias_rate c (beta' - beta)
    A row that sits at a bound or kink with slack above epsilon is satisfied. Dual cached loops lets it go;
    epsilon is the largest gradient of the sweep before, and falls by 0.9 at every visit while the ring is
    nine tenths full.
    """
    b, size, position, epsilon, new_epsilon, number, chunk, row, owed, visits, updates, entries = progress
    stop = visits + budget
    crowded = 0.9 * order.shape[0]
    while visits < stop and size > 0:
        if position < 0 or position >= size:
            if position >= size:
                epsilon, new_epsilon = new_epsilon, 0.0
            position = 0
            shuffle(rng, order, size)
        while position < size and visits < stop:
            if position + _FAR < size:
                ahead = order[position + _FAR]
                rows.prefetch_offsets(2 * ahead)
                prefetch(ids, ahead)
                prefetch(y, ahead)
                prefetch(weight, ahead)
                prefetch(squared_norms, ahead)
            if position + _NEAR < size:
                near = order[position + _NEAR]
                rows.prefetch_row(2 * near)
                prefetch(beta, ids[near])
            if evicting and size > crowded:
                epsilon *= 0.9
            slot = order[position]
            i = ids[slot]
            score = rows.dot(2 * slot, w) + b
            visits += 1
            entries += rows.count(2 * slot)
            left, right = loss.dual_subdifferential(y[slot], score, beta[i])
            satisfied = min(right, -left)
            if evicting and satisfied > epsilon:
                size -= 1
                order[position], order[size] = order[size], order[position]
                continue
            slack[slot] = max(satisfied, 0.0)
            projected = right if right < 0.0 else (left if left > 0.0 else 0.0)
            new_epsilon = max(new_epsilon, abs(projected), slack[slot] if slack[slot] < np.inf else 0.0)
            if projected != 0.0:
                q = weight[slot] * (scale * squared_norms[slot] + bias_rate)
                best = loss.dual_prox(y[slot], score, beta[i], q)
                move = weight[slot] * (best - beta[i])
                if move != 0.0:
                    beta[i] = best
                    rows.add(2 * slot, scale * move, w)
                    b += bias_rate * move
                    updates += 1
                    entries += rows.count(2 * slot)
            position += 1
    return Progress(
        b, size, position, epsilon, new_epsilon, number, chunk, row, owed, visits, updates, entries
    )
