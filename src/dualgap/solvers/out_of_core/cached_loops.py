"""Dual cached loops (Matsushima, Vishwanathan and Smola, KDD 2012): a Reader and a Trainer, neither of which
waits.

The Reader streams rows from the disk, over and over. The Trainer sweeps the rows in memory. On a slow disk
the Trainer goes on sweeping while rows are awaited, until another sweep of the same few rows could not
matter. On a fast one the Reader is made to wait until every row that it brought has been paid for with
``sweeps`` visits: reading sooner would only read more often. ``sweeps=0`` lets it run (rows that nobody has
taken in time are then only certified). When memory is full, rows make room for those that come. Which ones
leave decides how often the data must be read:

- ``score`` (default): those that were satisfied with the most slack when they were last visited; a free row,
  or one that violates its condition, has no slack. Ties, and rows not yet visited, at random.
- ``threshold``: as published. The Trainer evicts a row that is satisfied by more than epsilon, the largest
  gradient of the sweep before (reset each sweep); epsilon falls by 0.9 at every visit while memory is nine
  tenths full. The Reader evicts at random what is still too much.
- ``random``: the Reader's random eviction alone.

Where all rows fit, nothing needs to leave, and the sweeps are those of ``dcd``, which lets rows rest instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...runtime.errors import InputError
from ...training.stopping import Reason
from ..dual.dcd import DCD
from ..dual.dcd import State as Whole
from . import engine as out_of_core
from .engine import Engine, State

_LEAVE = 8  # an eighth of the ring at least leaves at a time: moving what stays is work
_PORTION = 4  # a quarter of the ring at most is filled at a time
# sweeps over the same rows, none having come, after which the Trainer waits: they are as good as solved
_PATIENCE = 20


@dataclass(frozen=True)
class CachedLoops:
    """Dual cached loops."""

    seed: int = field(default=0, metadata={"help": "seed of the random order"})
    cache: float = field(
        default=0.0,
        metadata={
            "help": "rows to keep in memory: a number, or a share below 1 (0: what the memory budget allows)"
        },
    )
    sweeps: float = field(
        default=6.0,
        metadata={"help": "visits for every row that is read, at least (0: the reader never waits)"},
    )
    eviction: str = field(
        default="score",
        metadata={"help": "which rows make room: score (most slack), threshold (as published), random"},
    )
    lockstep: bool = field(
        default=False,
        metadata={"help": "read and train in turns, so that a seed gives the same model each time"},
    )

    name = "cached-loops"
    summary = (
        "dual cached loops: a reader streams rows, a trainer sweeps those in memory; for data beyond memory"
    )
    from_disk = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.cache) and self.cache >= 0):
            raise InputError(f"cache={self.cache!r} must be a number of rows or a share of them, >= 0")
        if not (np.isfinite(self.sweeps) and self.sweeps >= 0):
            raise InputError(f"sweeps={self.sweeps!r} must be a number of visits >= 0")
        if self.lockstep and self.sweeps == 0:
            raise InputError(
                "sweeps=0 lets the reader run ahead, which lockstep=true does not; give one of the two up"
            )
        if self.eviction not in ("score", "threshold", "random"):
            raise InputError(f"eviction={self.eviction!r} must be 'score', 'threshold' or 'random'")

    @property
    def _whole(self) -> DCD:
        return DCD(seed=self.seed)

    def check(self, problem: Problem, steps: float) -> None:
        """The memory budget must have room for a few rows."""
        out_of_core.capacity(problem, self.cache)

    def start(self, problem: Problem, warm: Point | None) -> Any:
        """Nothing in memory yet; or everything."""
        rows = out_of_core.capacity(problem, self.cache)
        if problem.source.in_memory and rows == problem.source.n:
            return self._whole.start(problem, warm)
        return out_of_core.begin(problem, warm, self.seed, rows)

    def step(self, problem: Problem, state: Any, budget: int, last: Evaluation | None) -> Any:
        """Visit so many rows, and take in those that have been read meanwhile."""
        if isinstance(state, Whole):
            return self._whole.step(problem, state, budget, last)
        waits = self.sweeps > 0
        engine = out_of_core.resume(problem, state, last, lockstep=self.lockstep, waits=waits)
        state = state._replace(progress=state.progress._replace(b=engine.b))
        stop = state.progress.visits + budget
        while state.progress.visits < stop and not engine.evaluated:
            progress = state.progress
            if progress.owed <= 0:
                try:
                    state = self._take_in(engine, state)
                except InputError as error:
                    engine.failure = str(error)
                    break
                if (
                    engine.evaluated
                ):  # before further visits: where a run sees it must not depend on the budgets
                    break
                progress = state.progress
            left = stop - progress.visits
            slice_ = min(left, progress.owed) if progress.owed > 0 else min(left, progress.size)
            state = out_of_core.train(problem, engine, state, slice_, self.eviction == "threshold")
            done = state.progress.visits - progress.visits
            owed = (
                progress.owed - done if state.progress.size else 0
            )  # below 0: visits while rows were awaited
            state = state._replace(progress=state.progress._replace(owed=owed))
        return state

    def _take_in(self, engine: Engine, state: State) -> State:
        """Put rows that have been read into memory; where none has come yet, there is enough to do
        without.
        """
        progress = state.progress
        piece = engine.next_piece(wait=-progress.owed >= _PATIENCE * progress.size)
        if piece is None:
            return state
        ring = engine.ring
        rows = piece.part.batch.y.shape[0] - progress.row
        most = min(rows, max(1, ring.slots // _PORTION))
        size = progress.size
        count = ring.fits(piece.part, progress.row, size)
        while size and count < most and (count == 0 or size == progress.size):
            size = self._make_room(engine, state, size, most)
            count = ring.fits(piece.part, progress.row, size)
        count = min(max(count, 1), most)
        size = ring.insert(piece.part, progress.row, progress.row + count, size)
        owed = int(np.ceil(self.sweeps * count))
        return engine.advanced(state, piece, count, size, owed)

    def _make_room(self, engine: Engine, state: State, size: int, rows: int) -> int:
        """Evict rows for so many new ones; how many stay."""
        ring = engine.ring
        leaving = min(size, max(rows - (ring.slots - size), ring.slots // _LEAVE, 1))
        places = out_of_core.shuffled(state, size)
        if self.eviction == "score" and leaving < size:
            slack = ring.slack[state.order[:size]]
            places = np.argpartition(-slack, leaving - 1)
        return ring.evict(places[:leaving], size)

    def point(self, problem: Problem, state: Any) -> Point:
        """The pair w(beta), beta."""
        b = state.sweep.b if isinstance(state, Whole) else state.progress.b
        return Point(state.w, b, state.beta)

    def evaluated(self, problem: Problem, state: Any) -> tuple[Point, Evaluation] | None:
        """An evaluation that rode on a pass over the data, if one has been completed."""
        return out_of_core.evaluated(problem, state)

    def figures(self, problem: Problem, state: Any) -> dict[str, float]:
        """For the records: passes over the data."""
        return out_of_core.figures(problem, state)

    def shift_bias(self, state: Any, centre: float) -> tuple[Any, float]:
        """The same duals under a bias whose centre moves to the present one."""
        if isinstance(state, Whole):
            return self._whole.shift_bias(state, centre)
        return out_of_core.shift_bias(state, centre)

    def recompute_primal(self, problem: Problem, state: Any) -> Any:
        """w(beta) computed anew, so that rounding errors do not pile up."""
        return (
            self._whole.recompute_primal(problem, state)
            if isinstance(state, Whole)
            else out_of_core.recompute_primal(problem, state)
        )

    def failure(self, problem: Problem) -> str | None:
        """What the Reader stumbled over."""
        return out_of_core.failure(problem)

    def close(self, problem: Problem) -> None:
        """End the Reader."""
        out_of_core.close(problem)

    def finished(self, state: Any) -> Reason | None:
        """Nothing is left to do where everything is in memory and optimal."""
        return self._whole.finished(state) if isinstance(state, Whole) else None
