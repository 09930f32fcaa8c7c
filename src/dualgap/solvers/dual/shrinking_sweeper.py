"""The `DualSweeper` of ``dcd``: sweeps over the active rows, and scans of the shrunk ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...data.rows import Batch
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.random import generator
from ...runtime.sums import sum_of_squares
from .shrinking import ABSENT, SHRUNK, Place, scan_shrunk
from .shrinking_sweeps import Cursor, Manner, Sweeps, sweep
from .sweeper import Subproblem


@dataclass(frozen=True)
class ShrinkingSweeper:
    """A `DualSweeper` with shrinking, cool-down and an estimate of the gap."""

    manner: Manner
    foresight: float = 0.0

    def begin(self, batch: Batch, b: float, seed: int, d: int) -> Sweeps:
        """All rows of positive weight are active."""
        absent = batch.weight == 0.0
        here = np.arange(absent.size, dtype=np.uint32)
        if absent.any():
            here = here[~absent]
        return Sweeps(
            active_rows=here,
            schedule=np.zeros_like(here),
            cooldown=absent * np.uint8(ABSENT),
            slack=np.zeros(absent.size, dtype=np.float32),
            anchor=np.zeros(d),
            rng=generator(seed),
            cursor=Cursor(b, here.size, foresight=self.foresight),
        )

    def sweep(self, rows: Subproblem, w: Floats, beta: Floats, state: Sweeps, budget: int) -> Sweeps:
        """Visit rows until the budget is spent, the gap asked for seems reached, or the active rows are
        solved. Shrunk rows are scanned where an evaluation was asked for and none came.
        """
        stop = state.cursor.counts.visits + budget
        state = state.at(paused=False) if state.cursor.paused else state
        manner = Manner(self.manner.shrinking, self.manner.group, stop)
        while state.cursor.counts.visits < stop and not state.cursor.paused:
            if state.search.scanned >= 0:
                state = scan(rows, w, beta, state, stop)
                if state.search.scanned >= 0 or state.search.settled:
                    break
            state = state._replace(cursor=sweep(*rows, w, beta, state.lists, state.cursor, manner))
            if state.cursor.solved and state.search.asked and manner.shrinking:
                state = begin_scan(state)
            elif state.cursor.solved:
                state = state.at(paused=True).knowing(asked=True)
        return state


def begin_scan(state: Sweeps) -> Sweeps:
    """The state before a scan of the shrunk rows."""
    here = state.active_rows[: state.cursor.active]
    here = here[state.cooldown[here] != SHRUNK]
    state.active_rows[: here.size] = here
    estimate = state.cursor.estimate._replace(known=math.inf)
    state = state.at(active=here.size, shrunk=0, position=-1, estimate=estimate)
    return state.knowing(asked=False, scanned=0)


def scan(rows: Subproblem, w: Floats, beta: Floats, state: Sweeps, stop: int) -> Sweeps:
    """Look at shrunk rows until ``stop`` visits are reached, and restore those that are not optimal."""
    cursor = state.cursor
    if math.isnan(state.search.anchor_b):
        state = state.knowing(anchor_b=cursor.b)
        state.anchor[:] = w
    visits, updates, entries = cursor.counts
    place = Place(
        b=cursor.b,
        away=sum_of_squares(w - state.anchor),
        shift=abs(cursor.b - state.search.anchor_b),
        first=state.search.scanned,
        budget=stop - visits,
    )
    found = scan_shrunk(rows, w, beta, state.shrunk, cursor.active, place)
    gains = cursor.gains._replace(since=cursor.gains.since + found.seen)
    counts = Counts(visits + found.seen, updates, entries + found.read)
    state = state.at(active=found.active, gains=gains, counts=counts)
    return state.knowing(scanned=found.next, settled=found.next < 0 and found.active == 0)
