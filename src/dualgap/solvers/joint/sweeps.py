"""Visits of `joint-dual`: the steps of rows over their active classes (`active`), with an estimate of the gap
from what they see (`solvers.dual.gap_estimate`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...data.fetching import FAR, NEAR
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.jit import inner, kernel
from ..dual.gap_estimate import WINDOW, GapEstimate
from ..dual.shrinking import LEVELS, SHRUNK
from ..dual.shrinking_sweeps import SOLVED, Gains, Lists, schedule_epoch
from .active import GATHERED, Cursor


class Work(NamedTuple):
    """Room for what a visit computes."""

    scores: Floats
    before: Floats
    change: Floats
    idle: Floats
    moved: Any  # int64

    @classmethod
    def of(cls, classes: int) -> Work:
        """For K classes."""
        numbers = np.empty((4, classes))
        return cls(numbers[0], numbers[1], numbers[2], numbers[3], np.empty(classes, np.int64))


@inner
def read_row(
    rows: Any, i: Any, w: Floats, b: Floats, beta: Floats, size: int, classes: Any, work: Work
) -> int:
    """Scores and duals of a row's active classes, all where ``size`` is 0; how many they are."""
    scores, before = work.scores, work.before
    if size == 0:
        size = b.shape[0]
        for k in range(size):
            scores[k], before[k] = b[k], beta[i, k]
        for e in range(rows.count(i)):
            j, x = rows.entry(i, e)
            for k in range(size):
                scores[k] += x * w[j, k]
        return size
    for a in range(size):
        k = classes[i, a]
        scores[a], before[a] = b[k], beta[i, k]
    for e in range(rows.count(i)):
        j, x = rows.entry(i, e)
        for a in range(size):
            scores[a] += x * w[j, classes[i, a]]
    return size


@inner
def add_row(rows: Any, i: Any, scale: float, w: Any, size: int, moved: Any, change: Floats) -> Any:
    """``W += scale x_i change^T`` over the classes that moved, ``size`` of them; the classes written for each
    entry.
    """
    count = w.shape[1]
    if size * GATHERED > count and change.shape[0] == count:  # of all classes, in order
        for e in range(rows.count(i)):
            j, x = rows.entry(i, e)
            for k in range(count):
                w[j, k] += scale * x * change[k]
        return count
    for e in range(rows.count(i)):
        j, x = rows.entry(i, e)
        for a in range(size):
            w[j, moved[a]] += scale * x * change[a]
    return size


@inner
def keep_classes(i: Any, label: int, own: int, size: int, sweeps: Any, idle: Floats) -> None:
    """Drop the idle ones of a row's active classes, but for its own, where the list has room for the rest."""
    listed, classes = sweeps.listed, sweeps.classes
    before, kept = listed[i], 1
    for a in range(size):
        kept += 1 if a != own and idle[a] == 0.0 else 0
    if kept > classes.shape[1]:
        return
    listed[i] = kept
    kept = 1
    for a in range(size):
        if a != own and idle[a] == 0.0:
            classes[i, kept] = a if before == 0 else classes[i, a]
            kept += 1
    classes[i, 0] = label


@inner
def dual_value(y: Floats, weight: Floats, loss: Any, beta: Floats, w: Floats, scale: float) -> float:
    """N D(beta) but for the bias, roughly: plain sums."""
    dual = 0.0
    for i in range(y.shape[0]):
        label = int(y[i])
        if beta[i, label] > 0.0:
            mass = beta[i, label] if beta[i, label] < 1.0 else 1.0
            dual += weight[i] * loss.row_dual(label, beta[i], mass)
    square = 0.0
    for j in range(w.shape[0]):
        for k in range(w.shape[1]):
            square += w[j, k] * w[j, k]
    return dual - 0.5 / scale * square


@kernel
def sweep(batch: Any, loss: Any, geometry: Any, state: Any, work: Any, stop: int, by_epochs: bool) -> Cursor:
    """Epochs over the active rows, until ``stop`` rows are visited, the gap asked for seems reached, that of
    the active rows has fallen to SOLVED times what it was when rows were last restored, or, ``by_epochs``, an
    epoch ends.
    """
    rows, y, weight, squared_norms = batch
    scale, _, bias_rate = geometry
    w, b, beta, sweeps = state.w, state.b, state.beta, state.sweeps
    lists = Lists(sweeps.active_rows, sweeps.schedule, sweeps.cooldown, sweeps.rng)
    schedule, cooldown, listed, classes = sweeps.schedule, sweeps.cooldown, sweeps.listed, sweeps.classes
    active, shrunk, scheduled, position, paused, solved, gains, counts, estimate = sweeps.cursor
    gained, since, usual = gains
    visits, updates, entries = counts
    tol, dual, tally, tallied, gap, known, correction = estimate
    scores, before, change, idle, moved = work
    paused = solved = False
    while True:
        if position < 0:
            position = shrunk = 0
            active, scheduled = schedule_epoch(lists, active, 1)
        window = active if active < WINDOW else WINDOW if active >> 6 < WINDOW else active >> 6
        end = position + stop - visits
        end = end if end < scheduled else scheduled
        while position < end:
            ahead = schedule[position + FAR if position + FAR < scheduled else scheduled - 1]
            near = schedule[position + NEAR if position + NEAR < scheduled else scheduled - 1]
            rows.prefetch_rows(ahead, near)
            i = np.int64(schedule[position])
            position += 1
            visits += 1
            label, c, count = int(y[i]), weight[i], rows.count(i)
            whole = listed[i] == 0
            size = read_row(rows, i, w, b, beta, listed[i], classes, work)
            own = label if whole else 0
            entries += count * size
            at, dual_row = scores[:size], before[:size]
            if visits & 3 == 0:
                value, _ = loss.row_loss(own, at, 0.0)
                value -= loss.row_dual(own, dual_row, before[own] if before[own] < 1.0 else 1.0)
                for a in range(size):
                    value += before[a] * scores[a]
                tally += c * value
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
            left = loss.row_idle(own, at, dual_row, idle[:size]) if since > 0 else size
            if left == 1:
                cooldown[i] = SHRUNK
                shrunk += 1
                continue
            q = c * (scale * squared_norms[i] + bias_rate)
            loss.row_step(own, at, dual_row, q, change[:size])
            mass, length, some = 0.0, 0.0, 0
            for a in range(size):
                if a != own:
                    mass += change[a]
                    move = -change[a] - before[a]
                    length += move * move
                    beta[i, a if whole else classes[i, a]] = -change[a]
                    change[a] = c * move
            change[own] = c * (mass - before[own])
            beta[i, label] = mass
            if length > 0.0:
                for a in range(size):
                    if change[a] != 0.0:
                        moved[some] = a if whole else classes[i, a]
                        some += 1
                wide = whole and some * GATHERED > size
                if not wide:
                    some = 0
                    for a in range(size):
                        if change[a] != 0.0:
                            change[some] = change[a]
                            some += 1
                span = size if wide else some
                updates += 1
                entries += count * add_row(rows, i, scale, w, some, moved, change[:span])
                for a in range(span):
                    b[a if wide else moved[a]] += bias_rate * change[a]
            if left < size:
                keep_classes(i, label, own, size, sweeps, idle)
            gain = c * q * length
            gained += gain
            level = (cooldown[i] >> 5) + 1  # twice as long as the last time
            level = level if level < LEVELS else LEVELS
            cooldown[i] = (level << 5) + (1 << level) - 1 if gain < usual else 0
        over = position >= scheduled
        if over:
            position = -1
            if tol > 0.0 and 2 * (visits - since) > y.shape[0]:
                dual = dual_value(y, weight, loss, beta, w, scale)
            if visits > since:
                usual = gained / (visits - since)
                gained, since = 0.0, visits
        solved = solved or active == shrunk
        if solved or paused or visits >= stop or (over and by_epochs):
            break
    return Cursor(
        active,
        shrunk,
        scheduled,
        position,
        paused,
        solved,
        Gains(gained, since, usual),
        Counts(visits, updates, entries),
        GapEstimate(tol, dual, tally, tallied, gap, known, correction),
    )
