"""Block minimisation, plain and selective: fill the memory, optimise what is there, go on to the next block.

``block`` (Yu, Hsieh, Chang and Lin, KDD 2010): the rows are split into blocks that fit into memory. Each in
turn, in a random order every pass, is loaded and swept a few times by dual coordinate descent; then it is
dropped.

``selective-block`` (Chang and Roth, KDD 2011): part of the memory keeps informative rows of earlier blocks,
which are swept together with the new block. A row is informative if it is not satisfied with slack; when
there are more than fit, those with the most slack leave, and among the others chance decides.

Both wait for the disk while they load, as they are published; ``cached-loops`` does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...runtime.errors import InputError
from ...training.stopping import Reason
from . import engine as out_of_core
from .engine import Engine, State


@dataclass(frozen=True)
class BlockMinimisation:
    """Block minimisation."""

    seed: int = field(default=0, metadata={"help": "seed of the random order"})
    cache: float = field(
        default=0.0,
        metadata={
            "help": "rows to keep in memory: a number, or a share below 1 (0: what the memory budget allows)"
        },
    )
    inner: int = field(
        default=10, metadata={"help": "sweeps over the rows in memory before others are loaded"}
    )

    name = "block"
    summary = "block minimisation: load a block of rows, optimise it, load the next; for data beyond memory"
    from_disk = True
    _keep: ClassVar[float] = 0.0  # share of the memory for rows of earlier blocks

    def __post_init__(self) -> None:
        if not (np.isfinite(self.cache) and self.cache >= 0):
            raise InputError(f"cache={self.cache!r} must be a number of rows or a share of them, >= 0")
        if self.inner < 1:
            raise InputError(f"inner={self.inner!r} must be a number of sweeps >= 1")

    @property
    def epochs_a_pass(self) -> int:
        return math.ceil(self.inner / (1.0 - self._keep))

    def check(self, problem: Problem, steps: float) -> None:
        """The memory budget must have room for a few rows."""
        out_of_core.capacity(problem, self.cache)

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Nothing in memory yet."""
        return out_of_core.begin(problem, warm, self.seed, out_of_core.capacity(problem, self.cache))

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """Visit so many rows; when the sweeps over a block are done, load the next one."""
        engine = out_of_core.resume(problem, state, last, lockstep=True, order=self._order(problem, state))
        state = state._replace(progress=state.progress._replace(b=engine.b))
        stop = state.progress.visits + budget
        while state.progress.visits < stop and not engine.evaluated:
            if state.progress.owed <= 0:
                try:
                    state = self._load(engine, state)
                except InputError as error:
                    engine.failure = str(error)
                    break
                if (
                    engine.evaluated
                ):  # before further visits: where a run sees it must not depend on the budgets
                    break
            before = state.progress
            state = out_of_core.train(problem, engine, state, min(stop - before.visits, before.owed), False)
            owed = before.owed - (state.progress.visits - before.visits)
            state = state._replace(progress=state.progress._replace(owed=owed))
        return state

    def _order(self, problem: Problem, state: State) -> Any:
        """Blocks of neighbouring chunks, in a random order every pass."""

        def order(number: int) -> Any:
            chunks = out_of_core.feed_of(problem).chunks
            count = max(1, math.ceil(problem.source.n / max(1.0, (1.0 - self._keep) * state.ids.size)))
            blocks = np.array_split(np.arange(chunks), min(count, chunks))
            shuffled = np.random.default_rng([self.seed, number]).permutation(len(blocks))
            return np.concatenate([blocks[k] for k in shuffled])

        return order

    def _load(self, engine: Engine, state: State) -> State:
        """Make room, and fill it with rows that come next; they may be fewer where a pass ends."""
        ring = engine.ring
        size = self._select(engine, state)
        state = state._replace(progress=state.progress._replace(size=size, position=-1))
        new = 0
        while True:
            piece = engine.next_piece(wait=True)
            assert piece is not None  # it was waited for
            row = state.progress.row
            count = ring.fits(piece.part, row, state.progress.size)
            while count == 0 and new == 0 and size > 0:  # what was kept is in the way of a long row
                size = ring.evict(out_of_core.shuffled(state, size)[: -(-size // 2)], size)
                state = state._replace(progress=state.progress._replace(size=size))
                count = ring.fits(piece.part, row, size)
            if count == 0 and new == 0:
                count = 1  # a single row larger than the ring: the ring knows what to say
            if count == 0:
                break
            size = ring.insert(piece.part, row, row + count, state.progress.size)
            state = engine.advanced(state, piece, count, size, 0)
            new += count
            if piece.last and state.progress.row == 0:
                break
        owed = self.inner * state.progress.size
        return engine.noted(state._replace(progress=state.progress._replace(owed=owed)))

    def _select(self, engine: Engine, state: State) -> int:
        """Evict what is not kept for the next block; how many rows stay."""
        ring, size = engine.ring, state.progress.size
        stay = min(size, int(self._keep * ring.slots))
        places = out_of_core.shuffled(state, size)
        if 0 < stay < size:
            places = np.argpartition(-ring.slack[state.order[:size]], size - stay - 1)
        return ring.evict(places[: size - stay], size)

    def point(self, problem: Problem, state: State) -> Point:
        """The pair w(beta), beta."""
        return Point(state.w, state.progress.b, state.beta)

    def evaluated(self, problem: Problem, state: State) -> tuple[Point, Evaluation] | None:
        """An evaluation that rode on a pass over the data, if one has been completed."""
        return out_of_core.evaluated(problem, state)

    def figures(self, problem: Problem, state: State) -> dict[str, float]:
        """For the records: passes over the data."""
        return out_of_core.figures(problem, state)

    def shift_bias(self, state: State, centre: float) -> tuple[State, float]:
        """The same duals under a bias whose centre moves to the present one."""
        return out_of_core.shift_bias(state, centre)

    def recompute_primal(self, problem: Problem, state: State) -> State:
        """w(beta) computed anew, so that rounding errors do not pile up."""
        return out_of_core.recompute_primal(problem, state)

    def failure(self, problem: Problem) -> str | None:
        """What the Reader stumbled over."""
        return out_of_core.failure(problem)

    def close(self, problem: Problem) -> None:
        """End the Reader."""
        out_of_core.close(problem)

    def finished(self, state: State) -> Reason | None:
        """It never knows."""
        return None


@dataclass(frozen=True)
class SelectiveBlockMinimisation(BlockMinimisation):
    """Block minimisation with a cache of informative rows."""

    name = "selective-block"
    summary = "block minimisation that keeps informative rows of earlier blocks; for data beyond memory"
    _keep: ClassVar[float] = 0.5
