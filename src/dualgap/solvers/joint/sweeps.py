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
    by_class: bool  # W is stored as (K, d): for dense rows, whose products with each class are then fast

    @classmethod
    def of(cls, classes: int, by_class: bool) -> Work:
        """For K classes."""
        numbers = np.empty((4, classes))
        return cls(numbers[0], numbers[1], numbers[2], numbers[3], np.empty(classes, np.int64), by_class)


@inner
def read_row(rows: Any, i: Any, state: Any, work: Work) -> int:
    """Scores and duals of a row's active classes; how many they are."""
    w, b, beta, listed, classes = state.w, state.b, state.beta, state.sweeps.listed, state.sweeps.classes
    scores, before = work.scores, work.before
    if work.by_class:
        whole = listed[i] == 0
        size = b.shape[0] if whole else int(listed[i])
        for a in range(size):
            k = a if whole else int(classes[i, a])
            scores[a], before[a] = rows.dot(i, w[k]) + b[k], beta[i, k]
        return int(size)
    if listed[i] == 0:
        size = b.shape[0]
        for k in range(size):
            scores[k], before[k] = b[k], beta[i, k]
        for e in range(rows.count(i)):
            j, x = rows.entry(i, e)
            for k in range(size):
                scores[k] += x * w[j, k]
        return int(size)
    size = int(listed[i])
    for a in range(size):
        k = classes[i, a]
        scores[a], before[a] = b[k], beta[i, k]
    for e in range(rows.count(i)):
        j, x = rows.entry(i, e)
        for a in range(size):
            scores[a] += x * w[j, classes[i, a]]
    return size


@inner
def add_row(rows: Any, i: Any, geometry: Any, state: Any, size: int, work: Work) -> int:
    """``W += scale x_i change^T`` and ``b += bias_rate change`` over the classes that moved, ``work.change``
    of the row's ``size`` active ones; the entries of W that are written.
    """
    scale, _, bias_rate = geometry
    w, b, listed, classes = state.w, state.b, state.sweeps.listed, state.sweeps.classes
    change, moved, some = work.change, work.moved, 0
    whole = listed[i] == 0
    if work.by_class:
        for a in range(size):
            if change[a] != 0.0:
                k = a if whole else int(classes[i, a])
                rows.add(i, scale * change[a], w[k])
                b[k] += bias_rate * change[a]
                some += 1
        return int(rows.count(i) * some)
    for a in range(size):
        some += 1 if change[a] != 0.0 else 0
    if whole and some * GATHERED > size:  # of all classes, in order
        for e in range(rows.count(i)):
            j, x = rows.entry(i, e)
            for k in range(size):
                w[j, k] += scale * x * change[k]
        for k in range(size):
            b[k] += bias_rate * change[k]
        return int(rows.count(i) * size)
    some = 0
    for a in range(size):
        if change[a] != 0.0:
            moved[some] = a if whole else classes[i, a]
            change[some] = change[a]
            some += 1
    for e in range(rows.count(i)):
        j, x = rows.entry(i, e)
        for a in range(some):
            w[j, moved[a]] += scale * x * change[a]
    for a in range(some):
        b[moved[a]] += bias_rate * change[a]
    return int(rows.count(i) * some)


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
    beta, sweeps = state.beta, state.sweeps
    lists = Lists(sweeps.active_rows, sweeps.schedule, sweeps.cooldown, sweeps.rng)
    schedule, cooldown, listed, classes = sweeps.schedule, sweeps.cooldown, sweeps.listed, sweeps.classes
    active, shrunk, scheduled, position, paused, solved, gains, counts, estimate = sweeps.cursor
    gained, since, usual = gains
    visits, updates, entries = counts
    tol, dual, tally, tallied, gap, known, correction = estimate
    scores, before, change, idle = work.scores, work.before, work.change, work.idle
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
            size = read_row(rows, i, state, work)
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
            mass = length = 0.0
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
                updates += 1
                entries += add_row(rows, i, geometry, state, size, work)
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
                dual = dual_value(y, weight, loss, beta, state.w, scale)
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
