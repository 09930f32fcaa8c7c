"""Sweeps over the active rows with shrinking, cool-down and an estimate of the gap: their state, and the
kernel that visits rows. `ShrinkingSweeper` calls it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...data.fetching import FAR, NEAR
from ...runtime.arrays import Floats, Words
from ...runtime.counts import Counts
from ...runtime.jit import inner, kernel, prefetch
from ...runtime.random import below
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
from .gap_estimate import WINDOW, GapEstimate
from .shrinking import (
    ABSENT,
    EPOCHS_LEFT,
    LEVELS,
    SHRUNK,
    Shrunk,
)

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
    """Where the sweeps stand, between visits or between epochs: what the kernel takes and hands back."""

    b: float
    active: int  # length of the part of ``active_rows`` in use; rows shrunk in this epoch are still in it
    shrunk: int = 0  # rows shrunk in this epoch
    scheduled: int = 0  # length of the part of ``schedule`` in use
    position: Position = -1  # the next one; -1 before an epoch is scheduled
    foresight: NotNegative = 0.0  # 1/r during a first epoch, else 0
    paused: bool = False  # the gap asked for seems reached, or the active rows are solved
    solved: bool = False  # the gap of the active rows has fallen far, or none of them is left
    gains: Gains = Gains()
    counts: Counts = Counts()
    estimate: GapEstimate = GapEstimate()


@state_class
class Search(NamedTuple):
    """What is known of the shrunk rows."""

    asked: bool = False  # an evaluation was asked for since rows were last restored
    settled: bool = False  # an evaluation found all rows within pg_tol, or none is left to move
    scanned: Position = -1  # how many rows a scan of the shrunk ones has passed; -1 when there is none
    anchor_b: Unknown = math.nan  # the bias of the anchor; NaN before there is one


@state_class
class Sweeps(NamedTuple):
    """The state of a `ShrinkingSweeper`."""

    active_rows: RowNumbers  # uint32; the first ``cursor.active`` count, mostly in the order of the data
    schedule: RowNumbers  # uint32; the rows that this epoch visits, shuffled
    cooldown: Naturals  # uint8; see shrinking.py
    # float32; how far a shrunk row's score may move from the anchor's, to stay so; 0 for others
    slack: ExtendedReals
    anchor: Floats  # w when all rows were last looked at
    rng: Generator
    cursor: Cursor
    search: Search = Search()

    @property
    def lists(self) -> Lists:
        """Those that visits read and change."""
        return Lists(self.active_rows, self.schedule, self.cooldown, self.rng)

    @property
    def shrunk(self) -> Shrunk:
        """Those that a look at the shrunk rows reads and changes."""
        return Shrunk(self.active_rows, self.cooldown, self.slack)

    def at(self, **changes: Any) -> Sweeps:
        """The same with other values in the cursor."""
        return self._replace(cursor=self.cursor._replace(**changes))

    def knowing(self, **changes: Any) -> Sweeps:
        """The same with other knowledge of the shrunk rows."""
        return self._replace(search=self.search._replace(**changes))


class Lists(NamedTuple):
    """What visits read and change; see `Sweeps`."""

    active_rows: Any
    schedule: Any
    cooldown: Any
    rng: Words


@invariant(Sweeps)
def _check(sweeps: Sweeps, extent: Extent) -> Iterator[tuple[bool, str]]:
    cursor, room = sweeps.cursor, sweeps.active_rows.size
    yield cursor.active <= room, "cursor.active is beyond active_rows"
    yield cursor.shrunk <= cursor.active, "cursor.shrunk is more than are active"
    yield cursor.scheduled <= room, "cursor.scheduled is beyond schedule"
    yield cursor.position <= cursor.scheduled, "cursor.position is beyond what is scheduled"
    yield sweeps.search.scanned <= extent.n, "search.scanned is beyond the rows"
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
    fits = sweeps.search.scanned < 0 or cursor.active + shrunk <= room
    yield fits, "cursor.active counts rows that are shrunk"


class Manner(NamedTuple):
    """How rows are visited."""

    shrinking: bool
    group: int  # neighbours that are visited together
    stop: int = 0  # visits at which it ends


@inner
def schedule_epoch(lists: Lists, active: int, group: int) -> tuple[int, int]:
    """Remove shrunk rows from the active ones, and schedule those that have cooled down, shuffled; how many
    are active, and how many scheduled.

    It knows neither the loss nor the layout of the rows, so it is compiled once for all of them.
    """
    active_rows, schedule, cooldown, rng = lists
    kept = scheduled = 0
    for k in range(active):
        row = active_rows[k]
        byte = cooldown[row]
        if byte != SHRUNK:
            active_rows[kept] = row
            kept += 1
            if byte & EPOCHS_LEFT > 0:
                cooldown[row] = byte - 1
            else:
                schedule[scheduled] = row
                scheduled += 1
    size = group if scheduled > FEW else 1
    last = scheduled // size  # shuffle groups of neighbours (Fisher and Yates)
    while last > 1:
        there = size * below(rng, last)
        last -= 1
        here = size * last
        for k in range(size):
            schedule[here + k], schedule[there + k] = schedule[there + k], schedule[here + k]
    return kept, scheduled


@kernel
def sweep(
    batch: Any, loss: Any, geometry: Any, w: Floats, beta: Floats, lists: Lists, cursor: Cursor, manner: Any
) -> Cursor:
    """Epochs over the active rows, until ``manner.stop`` rows are visited, the gap asked for seems reached,
    or the gap of the active rows has fallen to SOLVED times what it was when rows were last restored.

    For row i with q = c_i (scale |x_i|^2 + bias_rate), the curvature of the dual along beta_i per unit of
    c_i/N:
        beta_i' = argmax -phi*(-beta') - s (beta' - beta_i) - q/2 (beta' - beta_i)^2,   s = <w, x_i> + b
        w += scale c_i (beta_i' - beta_i) x_i,    b += bias_rate c_i (beta_i' - beta_i)
    In the first epoch of a cold start w, b - centre and q are multiplied by ``stretch``, and no row is
    shrunk.
    """
    rows, y, weight, squared_norms = batch
    scale, centre, bias_rate = geometry
    shrinking, group, stop = manner
    _, schedule, cooldown, _ = lists
    b, active, shrunk, scheduled, position, foresight, paused, solved, gains, counts, estimate = cursor
    gained, since, usual = gains
    visits, updates, entries = counts
    tol, dual, tally, tallied, gap, known, correction = estimate
    paused = solved = False
    while True:
        if position < 0:
            position = shrunk = 0
            active, scheduled = schedule_epoch(lists, active, group)
        window = active if active < WINDOW else WINDOW if active >> 6 < WINDOW else active >> 6
        end = position + stop - visits
        end = end if end < scheduled else scheduled
        while position < end:
            ahead = schedule[position + FAR if position + FAR < scheduled else scheduled - 1]
            prefetch(beta, ahead)
            prefetch(y, ahead)
            prefetch(weight, ahead)
            prefetch(squared_norms, ahead)
            near = schedule[position + NEAR if position + NEAR < scheduled else scheduled - 1]
            rows.prefetch_rows(ahead, near)
            i = np.int64(schedule[position])
            position += 1
            if position < scheduled:
                rows.prefetch_weights(np.int64(schedule[position]), w)
            label, c, before = y[i], weight[i], beta[i]
            count = rows.count(i)
            score = rows.dot(i, w) + b
            visits += 1
            entries += count
            stretch = 1.0
            if foresight > 0.0:
                stretch = (1.0 + foresight) / (1.0 + foresight * visits / active)
                score = centre + stretch * (score - centre)
            elif visits & 3 == 0:
                tally += c * (loss.value(label, score) + loss.conjugate(label, before) + before * score)
                tallied += 1
                if tallied >= window:
                    gap = tally / tallied * (active - shrunk)
                    tally, tallied = 0.0, 0
                    paused = correction * gap <= tol * dual
                    if known < np.inf:
                        solved = gap <= SOLVED * known
                    else:
                        known = gap
                    if paused or solved:
                        end = position  # with this visit
            low, high = loss.dual_subdifferential(label, score, before)
            if shrinking and foresight == 0.0 and low < 0.0 < high:
                cooldown[i] = SHRUNK
                shrunk += 1
                continue
            projected = high if high < 0.0 else (low if low > 0.0 else 0.0)  # PG
            gain = 0.0
            if projected != 0.0:
                q = stretch * c * (scale * squared_norms[i] + bias_rate)
                best = loss.dual_prox(label, score, before, q)
                move = c * (best - before)
                if move != 0.0:
                    gain = abs(projected * move)
                    beta[i] = best
                    rows.add(i, scale * move, w)
                    b += bias_rate * move
                    updates += 1
                    entries += count
            if shrinking:
                gained += gain
                level = (cooldown[i] >> 5) + 1  # twice as long as the last time
                level = level if level < LEVELS else LEVELS
                cooldown[i] = (level << 5) + (1 << level) - 1 if gain < usual else 0
        if position >= scheduled:
            position = -1
            foresight = 0.0
            if tol > 0.0 and 2 * (visits - since) > y.shape[0]:
                dual = 0.0  # N D(beta) but for the bias, roughly: plain sums
                for k in range(y.shape[0]):
                    dual -= weight[k] * loss.conjugate(y[k], beta[k])
                square = 0.0
                for k in range(w.shape[0]):
                    square += w[k] * w[k]
                dual -= 0.5 / scale * square
            if visits > since:
                usual = gained / (visits - since)
                gained, since = 0.0, visits
        solved = solved or active == shrunk
        if solved or paused or visits >= stop:
            break
    return Cursor(
        b,
        active,
        shrunk,
        scheduled,
        position,
        foresight,
        paused,
        solved,
        Gains(gained, since, usual),
        Counts(visits, updates, entries),
        GapEstimate(tol, dual, tally, tallied, gap, known, correction),
    )
