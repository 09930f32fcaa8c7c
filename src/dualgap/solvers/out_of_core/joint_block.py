"""Block minimisation for joint problems of K classes: load a block of rows, ascend the dual over it, load the
next (Yu, Hsieh, Chang and Lin, KDD 2010, with the steps of ``joint/dual.py``).

    maximise  D(beta) = -1/N sum_i c_i phi*(-beta_i) - lam/2 |W(beta)|_F^2 + bias term

All duals, (n, K) of them, are in memory, and W = W(beta). A block is as many neighbouring chunks as the
memory budget has room for; blocks come in a random order, another one every pass. When a pass begins, W, b
and the duals are copied, and every chunk is evaluated at that point as it goes by: so a certificate costs no
reading, and lags one pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.evaluation import StreamingEvaluation
from ...core.geometry import DualGeometry
from ...core.joint.problem import JointProblem
from ...core.problem import Evaluation, Point
from ...data.chunks import OnDisk
from ...data.rows import Batch
from ...data.sources import Part
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.options import option
from ...runtime.threads import blas_threads
from ...training.solver import AnySolver, Capabilities, Solver, Status, Steps
from ...training.states import Extent, Numbers, invariant, state_class
from ...training.stopping import Reason, broken
from ..joint import dual
from ..joint.active import Sweeps
from ..joint.dual import JointDual
from ..joint.sweeps import Work, sweep
from .engine import damaged
from .sample import joined

DUAL_COPIES = 3  # beside the duals themselves: those being evaluated, those just evaluated, the best so far

Matrix = Annotated[Floats, Numbers(shape=(None, None))]


@state_class
class Frozen(NamedTuple):
    """The point that a pass evaluates: a copy, made when the pass began; empty where it evaluates none."""

    w: Matrix
    b: Floats
    beta: Matrix

    @classmethod
    def empty(cls, classes: int) -> Frozen:
        """For a pass that evaluates no point."""
        return cls(np.zeros((0, classes)), np.zeros(classes), np.zeros((0, classes)))


@state_class
class State(NamedTuple):
    """W = W(beta) and b = b(beta) at all times."""

    w: Floats
    b: Floats
    beta: Floats
    frozen: Frozen
    pass_number: int = 0
    block: int = 0  # blocks of that pass, so far
    counts: Counts = Counts()


@invariant(State)
def _check(state: State, extent: Extent) -> Iterator[tuple[bool, str]]:
    sizes = state.frozen.w.shape[0], state.frozen.beta.shape[0]
    yield sizes in ((0, 0), (extent.d, extent.n)), "frozen is no point of this problem"


@dataclass(frozen=True)
class JointBlock(Solver[State]):
    """Block minimisation, all classes of a row at once."""

    seed: int = option(0, "seed of the random order")
    # measured with a quarter of the rows in memory: more sweeps save no passes
    inner: int = option(3, "sweeps over the rows in memory before others are loaded", low=1)
    cache: float = option(
        0.0, "rows to keep in memory: a number, or a share below 1 (0: what the memory budget allows)", low=0
    )
    max_passes: int = option(0, "end after so many passes over the data (0: no limit)", low=0)

    name = "joint-block"
    summary = (
        "block minimisation for K classes at once: all duals of a row in one step; for data beyond memory"
    )
    capabilities = Capabilities(
        losses=("multinomial", "crammer-singer"), from_disk=True, own_stops=("max_passes",)
    )

    def resolved(self, problem: JointProblem) -> AnySolver:
        """``joint-dual`` where all rows are in memory."""
        return JointDual(seed=self.seed) if problem.source.in_memory else self

    def check(self, problem: JointProblem, visits: float) -> None:
        """The memory budget must have room for a chunk."""
        self.blocks(problem)

    def blocks(self, problem: JointProblem) -> list[Any]:
        """The chunks of each block."""
        source = problem.source
        assert isinstance(source, OnDisk)
        feed, most = source.feed, float(source.n)
        if self.cache > 0:
            most = self.cache * source.n if self.cache < 1 else self.cache
        longest = math.ceil(source.n / feed.chunks)  # rows of a chunk, about
        if source.memory_budget is not None:
            fixed = 2 * feed.chunk_bytes + 8 * problem.classes * (DUAL_COPIES * source.n + 5 * source.d)
            entry = feed.dense_bytes or 4 + feed.value_bytes
            each = 2 * source.nnz / source.n * entry + 40  # chunks, and the block that is made of them
            room = (source.memory_budget - fixed) / each
            if room < longest:
                raise InputError(
                    f"memory_budget={source.memory_budget} is too little for these data: give at least "
                    f"{math.ceil(fixed + longest * each)} bytes; from disk, {fixed:.0f} go into what is "
                    "being read and working copies of duals and weights, and "
                    f"{each:.0f} into each row in memory"
                )
            most = min(most, room)
        count = min(feed.chunks, math.ceil(feed.chunks / max(1, int(most / longest))))
        return np.array_split(np.arange(feed.chunks), count)

    def start(self, problem: JointProblem, warm: Point | None) -> State:
        """Begin at beta = 0, or at the dual point of a warm start."""
        source, K = problem.source, problem.classes
        w, b, beta = np.zeros((source.d, K)), np.zeros(K), np.zeros((source.n, K))
        if warm is not None and warm.beta is not None:
            found = problem.evaluate(Point(w, b, warm.beta))
            if math.isfinite(found.dual):
                w, b, beta = found.w_of_dual, np.array(found.b), np.array(warm.beta, dtype=np.float64)
        return State(w, b, beta, Frozen.empty(K))

    def point(self, problem: JointProblem, state: State) -> Point:
        """W(beta), b(beta) and beta."""
        return Point(state.w, state.b, state.beta)

    def opened(self, problem: JointProblem, state: State) -> AbstractContextManager[Steps[State]]:
        """With the evaluation under way, of which a resumed run reads the rows again."""
        return self._opened(problem, state)

    @contextmanager
    def _opened(self, problem: JointProblem, state: State) -> Iterator[Steps[State]]:
        with blas_threads(1):
            yield _Opened(self, problem, state)

    def step(
        self, problem: JointProblem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Some blocks, with an evaluation of its own; a run that is `opened` keeps it."""
        with self.opened(problem, state) as steps:
            return steps.step(problem, state, budget, news)


class _Opened:
    """The steps of a run, with the evaluation under way."""

    def __init__(self, solver: JointBlock, problem: JointProblem, state: State) -> None:
        source: Any = problem.source
        self._solver, self._source, self._blocks = solver, source, solver.blocks(problem)
        if state.block >= len(self._blocks):
            raise damaged(f"block is {state.block}, of {len(self._blocks)}")
        self._under_way: StreamingEvaluation | None = None
        if state.block:
            self._begin(problem, state.frozen)
            for chunks in self._order(state.pass_number)[: state.block]:
                for k in chunks:
                    self._see(source.load(int(k)))

    def step(
        self, problem: JointProblem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Blocks until the budget is spent, or a pass is complete."""
        ended: Reason | None = None
        evaluated, stop = None, state.counts.visits + budget
        while ended is None and evaluated is None and state.counts.visits < stop:
            if 0 < self._solver.max_passes <= state.pass_number:
                most = self._solver.max_passes
                ended = Reason("max_passes", f"max_passes={most} passes have been made")
                break
            try:
                state, evaluated = self._block(problem, state)
            except InputError as error:
                ended = broken(str(error))
        passes = state.pass_number + state.block / len(self._blocks)
        return state, Status(ended=ended, evaluated=evaluated, measures={"passes": passes})

    def _block(self, problem: JointProblem, state: State) -> tuple[State, tuple[Point, Evaluation] | None]:
        """Load the next block, evaluate it, and ascend over it."""
        if state.block == 0:
            known = state.pass_number == 0 and not state.beta.any()  # the zero point is evaluated already
            frozen = Frozen.empty(problem.classes)
            if not known:
                frozen = Frozen(state.w.copy(), state.b.copy(), state.beta.copy())
            state = state._replace(frozen=frozen)
            self._begin(problem, frozen)
        parts = []
        for k in self._order(state.pass_number)[state.block]:
            parts.append(self._loaded(int(k)))
            self._see(parts[-1])
        state = self._ascended(problem, state, parts)
        evaluated = None
        state = state._replace(block=state.block + 1)
        if state.block == len(self._blocks):
            if self._under_way is not None:
                evaluated = self._under_way.point, self._under_way.evaluation()
            self._under_way = None
            state = state._replace(pass_number=state.pass_number + 1, block=0)
        return state, evaluated

    def _ascended(self, problem: JointProblem, state: State, parts: list[Part]) -> State:
        """The state after some sweeps over a block, in an order that its place in the run decides."""
        span = slice(parts[0].span.start, parts[-1].span.stop)
        batches = [part.batch for part in parts]
        arrays = (
            np.concatenate([getattr(batch, name) for batch in batches])
            for name in ("y", "weight", "squared_norms")
        )
        batch = Batch(joined([batch.rows for batch in batches]), *arrays)
        place = np.random.SeedSequence([self._solver.seed, state.pass_number, state.block])
        sweeps = Sweeps.of(batch.weight, problem.classes, int(place.generate_state(1)[0]))
        if not sweeps.cursor.active:
            return state
        rows = dual.State(state.w, state.b, state.beta[span], np.zeros(0), 0.0, 0, sweeps)
        geometry = DualGeometry(problem.scale, 0.0, problem.bias_rate)
        work, stop = Work.of(problem.classes, by_class=False), self._solver.inner * sweeps.cursor.active
        cursor = sweep(batch, problem.loss, geometry, rows, work, stop, False)
        done = zip(state.counts, cursor.counts, strict=True)
        return state._replace(counts=Counts(*(before + more for before, more in done)))

    def _loaded(self, k: int) -> Part:
        """A chunk; whatever a source of chunks raises becomes an InputError."""
        try:
            found: Part = self._source.load(k)
            return found
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"{self._source.feed.name}: cannot be read on: {error!r}") from error

    def _order(self, pass_number: int) -> list[Any]:
        """The blocks of a pass, in a random order."""
        order = np.random.default_rng([self._solver.seed, pass_number]).permutation(len(self._blocks))
        return [self._blocks[k] for k in order]

    def _begin(self, problem: JointProblem, frozen: Frozen) -> None:
        self._under_way = problem.streaming_evaluation(Point(*frozen)) if frozen.w.size else None

    def _see(self, part: Part) -> None:
        if self._under_way is not None:
            self._under_way.add(part)
