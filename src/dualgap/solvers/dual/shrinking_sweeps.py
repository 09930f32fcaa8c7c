"""Sweeps over the active rows with shrinking, cool-down and an estimate of the gap: the `DualSweeper` of
``dcd``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...data.fetching import fetch_ahead, fetch_number
from ...data.rows import Batch
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.jit import kernel
from ...runtime.random import generator, shuffle_groups
from ...training.states import (
    Extended,
    ExtendedReals,
    Extent,
    Generator,
    Naturals,
    NotNegative,
    Position,
    RowNumbers,
    Unknown,
    invariant,
    state_class,
)
from .gap_estimate import WINDOW, GapEstimate, dual_value
from .shrinking import (
    ABSENT,
    SHRUNK,
    longer_cooldown,
    projected_slope,
    remove_shrunk,
    scan_shrunk,
    schedule_epoch,
)
from .sweeper import Subproblem

FEW = 8192  # or fewer rows stay in the cache, and are visited one by one
SOLVED = 0.1  # part to which the gap of active rows falls before the others are worth a look


@state_class
class Gains(NamedTuple):
    """Gains of the dual value, to first order: what decides which rows cool down."""

    total: Extended = 0.0  # of this epoch's visits so far
    since: int = 0  # visits when this epoch began
    mean: Extended = 0.0  # of a visit, in the epoch before


@state_class
class Cursor(NamedTuple):
    """Where the sweeps stand, between visits or between epochs."""

    b: float
    active: int  # length of the part of ``active_rows`` in use; rows shrunk in this epoch are still in it
    shrunk: int = 0  # rows shrunk in this epoch
    scheduled: int = 0  # length of the part of ``schedule`` in use
    position: Position = -1  # the next one; -1 before an epoch is scheduled
    scanned: Position = -1  # how many rows a scan of the shrunk ones has passed; -1 when there is none
    anchor_b: Unknown = math.nan  # the bias of the anchor; NaN before there is one
    gains: Gains = Gains()
    foresight: NotNegative = 0.0  # 1/r during a first epoch, else 0
    asked: bool = False  # an evaluation was asked for since rows were last restored
    paused: bool = False  # the gap asked for seems reached, or the active rows are solved
    settled: bool = False  # an evaluation found all rows within pg_tol, or none is left to move
    counts: Counts = Counts()
    estimate: GapEstimate = GapEstimate()


@state_class
class Sweeps(NamedTuple):
    """The state of a `ShrinkingSweeper`."""

    active_rows: RowNumbers  # uint32; the first ``cursor.active`` count, mostly in the order of the data
    schedule: RowNumbers  # uint32; the rows that this epoch visits, shuffled
    cooldown: Naturals  # uint8; see shrinking.py
    slack: ExtendedReals  # float32; within this change of its score since the anchor a row stays shrunk
    anchor: Floats  # w when all rows were last looked at
    rng: Generator
    cursor: Cursor


@invariant(Sweeps)
def _check(sweeps: Sweeps, extent: Extent) -> Iterator[tuple[bool, str]]:
    cursor, room = sweeps.cursor, sweeps.active_rows.size
    yield cursor.active <= room, "cursor.active is beyond active_rows"
    yield cursor.shrunk <= cursor.active, "cursor.shrunk is more than are active"
    yield cursor.scheduled <= room, "cursor.scheduled is beyond schedule"
    yield cursor.position <= cursor.scheduled, "cursor.position is beyond what is scheduled"
    yield cursor.scanned <= extent.n, "cursor.scanned is beyond the rows"
    yield (
        extent.distinct_rows(sweeps.active_rows[: cursor.active]),
        "active_rows has a row twice, or one of weight 0",
    )
    absent = sweeps.cooldown == ABSENT
    yield (
        extent.weight is None or np.array_equal(absent, extent.weight == 0.0),
        "cooldown does not fit the weights",
    )
    shrunk = int(np.count_nonzero(sweeps.cooldown == SHRUNK))
    # a scan appends the rows that it restores
    yield cursor.scanned < 0 or cursor.active + shrunk <= room, "cursor.active counts rows that are shrunk"


class Manner(NamedTuple):
    """How rows are visited."""

    shrinking: bool
    group: int  # neighbours that are visited together


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
        solved.
        """
        cursor = sweep(*rows, w, beta, state, self.manner, budget)
        return state._replace(cursor=cursor)


@kernel
def sweep(
    batch: Any, loss: Any, geometry: Any, w: Floats, beta: Floats, state: Any, manner: Any, budget: int
) -> Cursor:
    """Epochs over the active rows, until ``budget`` rows are visited, the gap asked for seems reached, or the
    gap of the active rows has fallen to SOLVED times what it was when rows were last restored.

    For row i with q = c_i (scale |x_i|^2 + bias_rate), the curvature of the dual along beta_i per unit of
    c_i/N:
        beta_i' = argmax -phi*(-beta') - s (beta' - beta_i) - q/2 (beta' - beta_i)^2,   s = <w, x_i> + b
        w += scale c_i (beta_i' - beta_i) x_i,    b += bias_rate c_i (beta_i' - beta_i)
    In the first epoch of a cold start w, b - centre and q are multiplied by ``stretch``, and no row is
    shrunk.
    """
    rows, y, weight, squared_norms = batch
    scale, centre, bias_rate = geometry
    shrinking, group = manner
    active_rows, schedule, cooldown, slack = state.active_rows, state.schedule, state.cooldown, state.slack
    anchor, rng, cursor = state.anchor, state.rng, state.cursor
    b, active, shrunk, scheduled, position = (
        cursor.b,
        cursor.active,
        cursor.shrunk,
        cursor.scheduled,
        cursor.position,
    )
    scanned, anchor_b, foresight, asked = cursor.scanned, cursor.anchor_b, cursor.foresight, cursor.asked
    gained, since, usual = cursor.gains
    visits, updates, entries = cursor.counts
    tol, dual, tally, tallied, gap, known, correction = cursor.estimate
    settled = cursor.settled
    paused = solved = False
    stop = visits + budget
    while visits < stop and not paused:
        if scanned >= 0:
            if math.isnan(anchor_b):
                anchor_b = b
                anchor[:] = w
            place = (anchor_b, active, scanned)
            scanned, active, seen, read = scan_shrunk(batch, loss, w, beta, state, b, place, stop - visits)
            visits += seen
            since += seen
            entries += read
            if scanned >= 0:
                break
            settled = active == 0
            if settled:
                break
        if position < 0:
            active, scheduled = schedule_epoch(active_rows, active, cooldown, schedule)
            position = shrunk = 0
            shuffle_groups(rng, schedule, scheduled, group if scheduled > FEW else 1)
        while position < scheduled and visits < stop and not (paused or solved):
            fetch_ahead(batch, schedule, position, scheduled)
            fetch_number(beta, schedule, position, scheduled)
            if position + 1 < scheduled:
                rows.prefetch_weights(schedule[position + 1], w)
            i = schedule[position]
            position += 1
            score = rows.dot(i, w) + b
            visits += 1
            entries += rows.count(i)
            stretch = 1.0
            if foresight > 0.0:
                stretch = (1.0 + foresight) / (1.0 + foresight * visits / active)
                score = centre + stretch * (score - centre)
            elif visits & 3 == 0:
                tally += weight[i] * (
                    loss.value(y[i], score) + loss.conjugate(y[i], beta[i]) + beta[i] * score
                )
                tallied += 1
                if tallied >= max(active >> 6, min(active, WINDOW)):
                    gap = tally / tallied * (active - shrunk)
                    tally, tallied = 0.0, 0
                    paused = correction * gap <= tol * dual
                    if known < np.inf:
                        solved = gap <= SOLVED * known
                    else:
                        known = gap
            low, high = loss.dual_subdifferential(y[i], score, beta[i])
            if shrinking and foresight == 0.0 and low < 0.0 < high:
                cooldown[i] = SHRUNK
                slack[i] = 0.0
                shrunk += 1
                continue
            projected = projected_slope(low, high)
            gain = 0.0
            if projected != 0.0:
                q = stretch * weight[i] * (scale * squared_norms[i] + bias_rate)
                best = loss.dual_prox(y[i], score, beta[i], q)
                move = weight[i] * (best - beta[i])
                if move != 0.0:
                    gain = abs(projected * move)
                    beta[i] = best
                    rows.add(i, scale * move, w)
                    b += bias_rate * move
                    updates += 1
                    entries += rows.count(i)
            if shrinking:
                gained += gain
                cooldown[i] = longer_cooldown(cooldown[i]) if gain < usual else 0
        if position >= scheduled:
            position = -1
            foresight = 0.0
            if tol > 0.0 and 2 * (visits - since) > y.shape[0]:
                dual = dual_value(loss, scale, y, weight, beta, w)
            if visits > since:
                usual = gained / (visits - since)
                gained, since = 0.0, visits
        if solved or active == shrunk:
            solved = False
            if asked and shrinking:
                asked = False
                scanned = 0
                known = np.inf
                active, position = remove_shrunk(active_rows, active, cooldown), -1
                shrunk = 0
            else:
                asked = paused = True
    return Cursor(
        b=b,
        active=active,
        shrunk=shrunk,
        scheduled=scheduled,
        position=position,
        scanned=scanned,
        anchor_b=anchor_b,
        gains=Gains(gained, since, usual),
        foresight=foresight,
        asked=asked,
        paused=paused,
        settled=settled,
        counts=Counts(visits, updates, entries),
        estimate=GapEstimate(tol, dual, tally, tallied, gap, known, correction),
    )
