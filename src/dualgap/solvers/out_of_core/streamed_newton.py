"""Steps of second order for rows beyond memory: every pass over the disk evaluates one point and brings the
gradient there, and the next point is the minimum of a model of P on a sample of rows in memory.

With beta_i = -phi'(score_i), which a pass computes as it goes by, the gradient at (w, b) is lam (w - w(beta))
and P - D(beta) = |gradient|^2 / (2 lam): so the certificate of a point and its gradient are one pass. The
step from there is made in memory (``local_steps.py``). Where P has risen instead, the run goes back to the
best point, and steps become shorter (mu).

Rows are sampled in the first pass, as many as the memory budget allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.evaluation import StreamingEvaluation
from ...core.problem import AnyProblem, Evaluation, Point
from ...data.chunks import AHEAD, OnDisk, Piece, Reader
from ...data.shared import Shared
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.options import option
from ...runtime.threads import blas_threads
from ...training.solver import AnySolver, Capabilities, Solver, Status, Steps
from ...training.states import Extended, NotNegative, Numbers, state_class
from ...training.stopping import Reason, broken
from ..joint.rows import MOST_COLUMNS
from .engine import damaged
from .local_steps import Place, Strengths, local_minimum, sample_minimum
from .sample import Gathering, Sample

LOSSES = ("logistic", "squared-hinge", "smooth-hinge", "modified-huber", "squared", "huber", "multinomial")
SHORTER, LONGER = 8.0, 0.25  # factors of mu where P has risen, and where it has fallen
FIRST_MU = 1.0  # in units of lam, or of the mean squared length of a row over d
MOST_SAMPLED = 4  # at most a part of all rows: one in so many, ...
ROWS_PER_COLUMN = 64  # ... or as many for each column
LEAST_PER_COLUMN = 8  # rows of a sample that tells the curvature


@state_class
class Anchor(NamedTuple):
    """The best point so far, its value, and the gradient there."""

    w: Floats
    b: Annotated[float, Numbers(several=True)]
    value: Extended  # infinite before there is one
    g: Floats
    gb: Annotated[float, Numbers(several=True)]


@state_class
class State(NamedTuple):
    """The point that the present pass evaluates, where the pass stands, and the point to go on from."""

    w: Floats
    b: Annotated[float, Numbers(several=True)]
    anchor: Anchor
    mu: NotNegative
    pass_number: int = 0
    chunk: int = 0  # chunks of that pass, so far
    due: bool = False  # a step from the anchor is due, before the next pass
    counts: Counts = Counts()


@dataclass(frozen=True)
class StreamedNewton(Solver[State]):
    """Steps of second order on a sample, gradients and certificates by passes over the disk."""

    seed: int = option(0, "seed of the sample of rows")
    sample: float = option(
        0.0, "rows to keep in memory: a number, or a share below 1 (0: what the memory budget allows)", low=0
    )
    max_passes: int = option(0, "end after so many passes over the data (0: no limit)", low=0)

    name = "streamed-newton"
    summary = (
        "steps of second order on rows kept in memory, gradients by passes over the disk; for smooth losses "
        "and many dense rows beyond memory"
    )
    capabilities = Capabilities(losses=LOSSES, from_disk=True, own_stops=("max_passes",))

    def resolved(self, problem: AnyProblem) -> AnySolver:
        """Newton's method in memory where all rows are there."""
        if not problem.source.in_memory:
            return self
        if problem.scores_per_row:
            from ..joint.newton import JointNewton

            return JointNewton(seed=self.seed)
        from ..second_order.newton import Newton

        return Newton()

    def check(self, problem: AnyProblem, visits: float) -> None:
        """The memory budget must have room for a sample."""
        self.room(problem)

    def room(self, problem: AnyProblem) -> int:
        """The number of rows in the sample."""
        source = problem.source
        assert isinstance(source, OnDisk)
        n, wanted = source.n, max(source.n // MOST_SAMPLED, min(source.n, ROWS_PER_COLUMN * source.d))
        if self.sample > 0:
            wanted = min(n, max(2, math.ceil(self.sample * n) if self.sample < 1 else int(self.sample)))
        if source.memory_budget is None:
            return wanted
        fixed, each = _bytes(problem, source)
        rows = int((source.memory_budget - fixed) / each)
        if rows >= 2:
            return min(wanted, rows)
        raise InputError(
            f"memory_budget={source.memory_budget} is too little for these data: give at least "
            f"{math.ceil(fixed + 2 * each)} bytes; from disk, {fixed:.0f} go into what is being read, "
            "working copies of duals and weights and a matrix of the columns, and "
            f"{each:.0f} into each row in memory"
        )

    def suits(self, problem: AnyProblem) -> bool:
        """Whether rows are dense, and as many of them fit into memory as their curvature takes to know."""
        source = problem.source
        if problem.loss.name not in LOSSES or problem.bias.kind not in self.capabilities.biases:
            return False
        if not source.feed.dense_bytes or source.d > MOST_COLUMNS:
            return False
        try:
            return bool(self.room(problem) >= min(source.n, LEAST_PER_COLUMN * source.d))
        except InputError:
            return False

    def start(self, problem: AnyProblem, warm: Point | None) -> State:
        """Begin at 0, or at the warm start."""
        shape = problem.scores_per_row
        w, b = np.zeros((problem.source.d, *shape)), _intercepts(np.zeros(shape))
        anchor = Anchor(w.copy(), b, math.inf, np.zeros_like(w), _intercepts(np.zeros(shape)))
        if warm is not None:
            w = np.array(warm.w, dtype=np.float64)
            b = _intercepts(np.array(warm.b)) if problem.bias.kind != "none" else b
        return State(w, b, anchor, 0.0)

    def point(self, problem: AnyProblem, state: State) -> Point:
        """The point that is being evaluated; its duals are known when the pass is complete."""
        return Point(state.w, state.b, None)

    def rows_per_iteration(self, problem: AnyProblem) -> int:
        """As many as conjugate gradients need."""
        return 0

    def opened(self, problem: AnyProblem, state: State) -> AbstractContextManager[Steps[State]]:
        """With the sample, read again where a run is resumed, and a Reader."""
        return self._opened(problem, state)

    @contextmanager
    def _opened(self, problem: AnyProblem, state: State) -> Iterator[Steps[State]]:
        engine = Engine(self, problem, state)
        try:
            with blas_threads(1):
                yield engine
        finally:
            engine.close()

    def step(
        self, problem: AnyProblem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """One step with a sample and a Reader of its own; a run that is `opened` keeps them."""
        with self.opened(problem, state) as steps:
            return steps.step(problem, state, budget, news)


class Engine:
    """What a run has open: the Reader, the evaluation under way, and the sample."""

    def __init__(self, solver: StreamedNewton, problem: AnyProblem, state: State) -> None:
        source: Any = problem.source
        if state.chunk >= source.feed.chunks:
            raise damaged(f"chunk is {state.chunk}, of {source.feed.chunks} chunks")
        self._solver, self._problem, self._source = solver, problem, source
        self._sample: Sample | None = None
        self._gathering: Gathering | None = None
        self._under_way: StreamingEvaluation | None = None
        again = source.feed.chunks if state.pass_number > 0 or state.due else state.chunk
        if again:
            self._gathering = Gathering(problem, solver.room(problem), solver.seed)
        if state.chunk:
            self._under_way = problem.streaming_slopes(state.w, state.b)
        for k in range(again):  # what had been read when the run was put away
            part = source.load(k)
            self._gather(part, k == source.feed.chunks - 1)
            if k < state.chunk and self._under_way is not None:
                self._under_way.add(part)
        self._reader = Reader(
            source.load,
            lambda pass_number: range(source.feed.chunks),
            at=(state.pass_number, state.chunk),
            lockstep=isinstance(source.feed, Shared),
        )

    def close(self) -> None:
        """End the Reader."""
        self._reader.close()

    def step(
        self, problem: AnyProblem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """A step in memory where one is due; then rows are evaluated, up to the end of a pass at most."""
        ended: Reason | None = None
        evaluated = None
        if state.due:
            state = self._moved(state)
        stop = state.counts.visits + budget
        if 0 < self._solver.max_passes <= state.pass_number:
            ended = Reason("max_passes", f"max_passes={self._solver.max_passes} passes have been made")
        while ended is None and evaluated is None and state.counts.visits < stop:
            try:
                piece = self._next()
            except InputError as error:
                ended = broken(str(error))
                break
            state, evaluated = self._seen(state, piece)
        passes = state.pass_number + state.chunk / self._source.feed.chunks
        return state, Status(ended=ended, evaluated=evaluated, measures={"passes": passes})

    def _next(self) -> Piece:
        try:
            piece = None
            while piece is None:
                piece = self._reader.take(True)
            return piece
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"{self._source.feed.name}: cannot be read on: {error!r}") from error

    def _seen(self, state: State, piece: Piece) -> tuple[State, tuple[Point, Evaluation] | None]:
        """The state after the rows of a chunk were evaluated, and the evaluation if it is complete."""
        if piece.first:
            self._under_way = self._problem.streaming_slopes(state.w, state.b)
            if self._sample is None:
                room = self._solver.room(self._problem)
                self._gathering = Gathering(self._problem, room, self._solver.seed)
        assert self._under_way is not None
        self._gather(piece.part, piece.last)
        self._under_way.add(piece.part)
        state = _counted(state, piece.part.batch.y.size)
        if not piece.last:
            return state._replace(chunk=piece.position + 1), None
        point, found = self._under_way.point, self._under_way.evaluation()
        self._under_way = None
        return self._judged(state, found)._replace(chunk=0, pass_number=piece.number + 1, due=True), (
            point,
            found,
        )

    def _gather(self, part: Any, last: bool) -> None:
        if self._gathering is not None:
            self._gathering.add(part)
            if last:
                self._sample, self._gathering = self._gathering.sample(), None

    def _judged(self, state: State, found: Evaluation) -> State:
        """The state with a new anchor where P has fallen, else with a larger mu."""
        problem, anchor = self._problem, state.anchor
        if not found.primal < anchor.value:
            least = max(FIRST_MU * problem.lam, 1e-3 * problem.value_at_zero)
            return state._replace(mu=max(SHORTER * state.mu, least))
        ridge = problem.bias.strength(problem.lam)
        g = problem.lam * (state.w - found.w_of_dual)
        gb = (0.0 if ridge == np.inf else ridge) * (np.asarray(state.b) - found.b)
        mu = LONGER * state.mu if state.mu > problem.lam else 0.0
        return state._replace(anchor=Anchor(state.w, state.b, found.primal, g, _intercepts(gb)), mu=mu)

    def _moved(self, state: State) -> State:
        """The state at the minimum of the model of P about the anchor."""
        assert self._sample is not None
        problem, anchor = self._problem, state.anchor
        K = int(np.prod(problem.scores_per_row))
        place = Place(anchor.w.reshape(-1, K), np.array(anchor.b, dtype=np.float64).reshape(K))
        gradient = Place(anchor.g.reshape(-1, K), np.array(anchor.gb, dtype=np.float64).reshape(K))
        strengths = Strengths(problem.lam, problem.bias.strength(problem.lam), state.mu)
        if place.w.any():
            (w, b), read = local_minimum(self._sample, place, gradient, strengths)
        else:  # so far from the optimum the gradient of all rows says less than the losses of some
            (w, b), read = sample_minimum(self._sample, place, strengths)
        shape = problem.scores_per_row
        state = state._replace(w=w.reshape(anchor.w.shape), b=_intercepts(b.reshape(shape)), due=False)
        return _counted(state, read)


def _intercepts(b: Any) -> Any:
    """K intercepts, or one as a float."""
    return np.ascontiguousarray(b, dtype=np.float64) if np.ndim(b) else float(b)


def _counted(state: State, visits: int) -> State:
    counts = state.counts
    return state._replace(
        counts=Counts(counts.visits + visits, counts.updates, counts.entries + visits * state.w.size)
    )


def _bytes(problem: AnyProblem, source: OnDisk) -> tuple[float, float]:
    """What a run takes whatever the sample, and what a row of the sample takes."""
    feed, K = source.feed, int(np.prod(problem.scores_per_row))
    columns = 8 * (12 * source.d * K + (4 * source.d**2 if feed.dense_bytes and source.d <= 2048 else 0))
    fixed = (AHEAD + 2) * feed.chunk_bytes + 2 * 8 * K * source.n + columns
    entry = feed.dense_bytes or 4 + feed.value_bytes
    return fixed, source.nnz / source.n * entry + 32 * K + 40
