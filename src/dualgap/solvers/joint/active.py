"""The active rows of `joint-dual`, and the active classes of each.

Where a loss has duals that are exactly 0 (Crammer-Singer), few classes of a row matter: those with p_k > 0,
and those whose scores are near. A visit reads the scores of the row's active classes alone, and drops those
that sit firmly at 0 (`JointLoss.row_idle`), as LIBLINEAR's -s 4 does (Keerthi et al., KDD 2008). A row of
which one class is left does not move and is removed from the active rows. Rows and classes come back when an
evaluation, which computes all scores anyway, finds that they matter, and all of them do where the gap of the
active ones has fallen tenfold and no evaluation comes.

A row's list of active classes has room for a quarter of all: with more, reading all of them in order is as
fast. Rows that gain little cool down, as those of `dcd` do (`solvers.dual.shrinking`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...core.problem import Evaluation
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.jit import kernel
from ...runtime.random import generator
from ...training.states import Extent, Generator, Naturals, Position, RowNumbers, invariant, state_class
from ..dual.gap_estimate import GapEstimate
from ..dual.shrinking import ABSENT, SHRUNK
from ..dual.shrinking_sweeps import Gains, Lists

GATHERED = 4  # up to one class in so many is read by itself; more are read with all others, in order


@state_class
class Cursor(NamedTuple):
    """Where the sweeps stand; see `solvers.dual.shrinking_sweeps`."""

    active: int  # length of the part of ``active_rows`` in use; rows shrunk in this epoch are still in it
    shrunk: int = 0  # rows shrunk in this epoch
    scheduled: int = 0  # length of the part of ``schedule`` in use
    position: Position = -1  # the next one; -1 before an epoch is scheduled
    paused: bool = False  # the gap asked for seems reached
    solved: bool = False  # the gap of the active rows has fallen far, or none of them is left
    gains: Gains = Gains()
    counts: Counts = Counts()
    estimate: GapEstimate = GapEstimate()


@state_class
class Sweeps(NamedTuple):
    """The active rows, and their active classes."""

    active_rows: RowNumbers  # uint32; the first ``cursor.active`` count
    schedule: RowNumbers  # uint32; the rows that this epoch visits, shuffled
    cooldown: Naturals  # uint8; see `solvers.dual.shrinking`
    listed: Naturals  # uint16 or uint32; how many classes a row's list has, its own first; 0: all are active
    classes: Naturals  # of the same type; the lists, a row each
    rng: Generator
    cursor: Cursor

    @classmethod
    def of(cls, weight: Floats, classes: int, seed: int) -> Sweeps:
        """All rows of positive weight, with all classes."""
        rows = np.flatnonzero(weight).astype(np.uint32)
        room = min(max(classes // GATHERED, 2), classes - 1)
        small = np.uint16 if classes <= 1 << 16 else np.uint32
        cooldown = np.where(weight > 0.0, 0, ABSENT).astype(np.uint8)
        lists = np.zeros(weight.size, small), np.zeros((weight.size, room), small)
        return cls(rows, rows.copy(), cooldown, *lists, generator(seed), Cursor(rows.size))

    @property
    def lists(self) -> Lists:
        """Those of rows."""
        return Lists(self.active_rows, self.schedule, self.cooldown, self.rng)

    def at(self, **changes: Any) -> Sweeps:
        """The same with other values in the cursor."""
        return self._replace(cursor=self.cursor._replace(**changes))

    def reopened(self) -> Sweeps:
        """All rows and classes are active again."""
        self.listed[:] = 0
        self.cooldown[self.cooldown == SHRUNK] = 0
        rows = np.flatnonzero(self.cooldown != ABSENT)
        self.active_rows[...] = rows
        estimate = self.cursor.estimate._replace(known=np.inf)
        return self.at(active=rows.size, shrunk=0, scheduled=0, position=-1, solved=False, estimate=estimate)

    def informed(self, y: Floats, loss: Any, beta: Floats, total_weight: float, news: Evaluation) -> Sweeps:
        """With the rows and classes active that the scores of an evaluation ask for; an epoch under way goes
        on with the rows still to come.
        """
        cursor = self.cursor
        estimate = cursor.estimate.corrected(total_weight, news)
        if cursor.gains.since == 0:  # nothing is shrunk in a first epoch
            return self.at(estimate=estimate)
        idle = np.empty(beta.shape[1])
        active = restore(y, loss, news.scores, beta, self, idle)
        position, scheduled = cursor.position, cursor.scheduled
        if position >= 0:
            coming = self.schedule[position:scheduled]
            coming = coming[self.cooldown[coming] != SHRUNK]
            position, scheduled = 0, coming.size
            self.schedule[:scheduled] = coming
        return self.at(
            active=active, shrunk=0, scheduled=scheduled, position=position, solved=False, estimate=estimate
        )


@invariant(Sweeps)
def _check(sweeps: Sweeps, extent: Extent) -> Iterator[tuple[bool, str]]:
    cursor, room = sweeps.cursor, sweeps.active_rows.size
    yield cursor.active <= room, "cursor.active is beyond active_rows"
    yield cursor.shrunk <= cursor.active, "cursor.shrunk is more than are active"
    yield cursor.scheduled <= room, "cursor.scheduled is beyond schedule"
    yield cursor.position <= cursor.scheduled, "cursor.position is beyond what is scheduled"
    rows = sweeps.active_rows[: cursor.active]
    yield extent.distinct_rows(rows), "active_rows has a row twice, or one of weight 0"
    absent = sweeps.cooldown == ABSENT
    fits = extent.weight is None or np.array_equal(absent, extent.weight == 0.0)
    yield fits, "cooldown does not fit the weights"
    yield bool((sweeps.listed <= sweeps.classes.shape[1]).all()), "listed is beyond the lists"
    yield bool((sweeps.classes < extent.size_of("K")).all()), "classes has a class that there is not"


@kernel
def restore(y: Floats, loss: Any, scores: Floats, beta: Floats, sweeps: Any, idle: Floats) -> int:
    """Make the rows active that can move, with their classes that are not idle, and only those; how many."""
    active_rows, cooldown, listed, classes = (
        sweeps.active_rows,
        sweeps.cooldown,
        sweeps.listed,
        sweeps.classes,
    )
    active = 0
    for i in range(y.shape[0]):
        if cooldown[i] == ABSENT:
            continue
        label = int(y[i])
        left = loss.row_idle(label, scores[i], beta[i], idle)
        if left == 1:
            cooldown[i] = SHRUNK
            continue
        if cooldown[i] == SHRUNK:
            cooldown[i] = 0
        active_rows[active] = i
        active += 1
        listed[i] = 0
        if left < classes.shape[1]:
            classes[i, 0] = label
            kept = 1
            for k in range(beta.shape[1]):
                if k != label and idle[k] == 0.0:
                    classes[i, kept] = k
                    kept += 1
            listed[i] = kept
    return active
