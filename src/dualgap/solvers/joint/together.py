"""Dual coordinate descent for the K problems of one-vs-rest, a row and all its classes at a time.

    P_k(w, b) = lam/2 |w|^2 + r(b) + 1/N sum_i c_i phi(<w, x_i> + b, +1 where y_i = k, else -1)

The problems have the rows in common: a visit reads a row once and moves its duals in all problems in which
they are not firmly at a bound (`active`; for the step see `solvers.dual.dcd`). After some epochs all classes
are evaluated in one pass (`core.several`); those within the gap asked for are done, and the others go on. A
class that is not done in ``ROUNDS`` rounds is left to a run of its own, which begins where this one ends.

Classes are trained in groups, which depend on their number alone: a group's weights stay in the caches, and
threads share the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...core.geometry import DualGeometry
from ...core.problem import Evaluation, Point, Problem
from ...core.several import evaluate_together
from ...data.rows import Dense
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.jit import kernel
from ...runtime.threads import in_threads
from ..dual.shrinking import ABSENT, SHRUNK
from ..dual.shrinking_sweeps import Lists, schedule_epoch
from ..exact_bias import prox_strength
from .active import Cursor, Sweeps
from .sweeps import Work, add_row, read_row

GROUP = 32  # classes that are trained together, at most
ROUNDS, MAX_EPOCHS = 10, 100  # evaluations at most, and epochs before each
FIRST_EPOCHS = 5  # before the first one
LEAST, MOST = 0.3, 2.0  # entries read and written before each of the others, for each that it reads
SHIFT = 0.3  # by which free intercepts may move before all rows are looked at again
AIM = 0.7  # of the gap asked for: what the classes are expected to have at the next evaluation


class Class(NamedTuple):
    """Where a class is when the rounds are over."""

    point: Point
    found: Evaluation | None  # of that point, where its gap is small enough


class State(NamedTuple):
    """The classes of a group; w is (d, K), or for dense rows (K, d)."""

    w: Floats
    b: Floats
    beta: Floats
    sweeps: Sweeps


def trained_together(
    problems: Sequence[Problem],
    codes: Any,
    tol: float,
    seed: int,
    threads: int,
    interrupted: Callable[[], bool] = lambda: False,
) -> list[Class]:
    """Points of all problems, the k-th of which tells the rows with code k from the others."""
    count = max(2, -(-len(problems) // GROUP))
    edges = [len(problems) * k // count for k in range(count + 1)]
    groups = [
        _Group(problems[low:high], codes - low, tol, seed, interrupted)
        for low, high in pairwise(edges)
        if high > low
    ]
    return [found for some in in_threads(_Group.trained, groups, threads) for found in some]


def evaluated(problems: Sequence[Problem], points: Sequence[Point], codes: Any, tol: float) -> list[Class]:
    """The points with their evaluations, those whose relative gap is at most ``tol``."""
    classes = []
    for first in range(0, len(problems), GROUP):
        some = slice(first, first + GROUP)
        for problem, point, found in zip(
            problems[some],
            points[some],
            evaluate_together(problems[some], points[some], codes - first),
            strict=True,
        ):
            classes.append(Class(point, found if _gap(problem, found) <= tol else None))
    return classes


def _gap(problem: Problem, found: Evaluation) -> float:
    return problem.certificate(found.primal, found.primal_error, found.dual, found.dual_error).relative_gap


@dataclass(frozen=True, eq=False)
class _Group:
    """Some of the problems, on the same rows."""

    problems: Sequence[Problem]
    codes: Any
    tol: float
    seed: int
    interrupted: Callable[[], bool]

    def trained(self) -> list[Class]:
        """All rounds."""
        first, count = self.problems[0], len(self.problems)
        source, free = first.source, first.bias.free
        sweeps = Sweeps.of(source.weight, count, self.seed)
        by_class = isinstance(source.batch.rows, Dense)
        w = np.zeros((count, source.d) if by_class else (source.d, count))
        state = State(w, np.zeros(count), np.zeros((source.n, count)), sweeps)
        mu = prox_strength(first) if free else 0.0
        rate = 1.0 / (mu * first.total_weight) if free else first.bias_rate
        geometry = DualGeometry(first.scale, 0.0, rate)
        done, work = np.zeros(count, dtype=np.bool_), Work.of(count, by_class)
        centre, opened = np.zeros(count), np.zeros(count)
        known: list[Evaluation | None] = [None] * count
        ended: dict[int, Point] = {}
        gaps: list[tuple[float, float]] = []
        for at in range(ROUNDS):
            entries = state.sweeps.cursor.counts.entries
            needed = _needed(gaps, self.tol)
            if needed > MOST * (ROUNDS - at) and at > 2:
                break  # the classes need other methods, which their own runs may take
            needed = min(max(needed, LEAST), MOST)
            enough = entries + needed * source.nnz * np.count_nonzero(~done)
            for epoch in range(MAX_EPOCHS if at else FIRST_EPOCHS):
                if self.interrupted() or (epoch and at and state.sweeps.cursor.counts.entries > enough):
                    break
                cursor = sweep_classes(source.batch, self.codes, first.loss, geometry, state, work, done)
                state = state._replace(sweeps=state.sweeps._replace(cursor=cursor))
                if free:
                    way = state.b - centre
                    centre[...] = state.b
                    state.b[...] += way
                    if np.abs(state.b - opened)[~done].max() > SHIFT:
                        state = state._replace(sweeps=state.sweeps.reopened())
                        opened[...] = state.b
            state, gap = self._evaluated(state, done, known, ended)
            spent = (state.sweeps.cursor.counts.entries - entries) / (source.nnz * done.size)
            gaps.append((spent, gap))
            opened[...] = state.b
            if done.all() or self.interrupted():
                break
        points = [ended.get(k) or self._point(state, k) for k in range(count)]
        return [Class(point, found) for point, found in zip(points, known, strict=True)]

    def _point(self, state: State, k: int) -> Point:
        return Point(self._weights(state, k).copy(), float(state.b[k]), state.beta[:, k].copy())

    def _weights(self, state: State, k: int) -> Floats:
        by_class = isinstance(self.problems[0].source.batch.rows, Dense)
        found: Floats = state.w[k] if by_class else state.w[:, k]
        return found

    def _evaluated(
        self, state: State, done: Any, known: list[Evaluation | None], ended: dict[int, Point]
    ) -> tuple[State, float]:
        """Evaluate the classes that are not done; the scores of those that go on say what is active. The
        other result is the mean of their gaps.
        """
        left = np.flatnonzero(~done)
        points = [self._point(state, int(k)) for k in left]
        places = np.full(int(max(self.codes.max(), done.size)) + 1, -1)
        places[left] = np.arange(left.size)
        positive = places[np.where(self.codes < 0, -1, self.codes)]
        some = [self.problems[int(k)] for k in left]
        scores, left_gaps = np.zeros(state.beta.shape), [self.tol]
        for k, problem, point, found in zip(
            left.tolist(), some, points, evaluate_together(some, points, positive), strict=True
        ):
            gap = _gap(problem, found)
            if gap <= self.tol:
                done[k], known[k], ended[k] = True, found, point
            elif not problem.bias.free:
                self._weights(state, k)[...] = found.w_of_dual
                state.b[k] = found.b
            if gap > self.tol:
                left_gaps.append(min(gap, 1.0))
            scores[:, k] = found.scores
        idle = np.empty(done.size)
        loss = self.problems[0].loss
        active = restore_classes(self.codes, loss, scores, state.beta, state.sweeps, done, idle)
        mean = float(np.exp(np.log(left_gaps[1:] or left_gaps).mean()))
        return state._replace(sweeps=state.sweeps.at(active=active, shrunk=0)), mean


def _needed(gaps: list[tuple[float, float]], tol: float) -> float:
    """Entries until the next evaluation, for each that it reads: as many as the gap asked for takes if gaps
    go on falling as they did. ``gaps`` are entries and mean gaps of the rounds so far.
    """
    if len(gaps) < 2:
        return MOST / 2.0
    (_, before), (spent, now) = gaps[-2:]
    fall = np.log(before / now)
    return float(spent * np.log(now / (AIM * tol)) / fall) if fall > 0.0 else np.inf


@kernel
def restore_classes(
    codes: Any, loss: Any, scores: Floats, beta: Floats, sweeps: Any, done: Any, idle: Floats
) -> int:
    """Make the rows active that have a dual which is not firmly at a bound, with these classes; how many."""
    active_rows, cooldown = sweeps.active_rows, sweeps.cooldown
    listed, classes = sweeps.listed, sweeps.classes
    active = 0
    for i in range(codes.shape[0]):
        if cooldown[i] == ABSENT:
            continue
        left = 0
        for k in range(beta.shape[1]):
            idle[k] = 1.0
            if not done[k]:
                low, high = loss.dual_subdifferential(
                    1.0 if k == codes[i] else -1.0, scores[i, k], beta[i, k]
                )
                idle[k] = 1.0 if low < 0.0 < high else 0.0
            left += 1 if idle[k] == 0.0 else 0
        if left == 0:
            cooldown[i] = SHRUNK
            continue
        if cooldown[i] == SHRUNK:
            cooldown[i] = 0
        active_rows[active] = i
        active += 1
        listed[i] = 0
        if left <= classes.shape[1]:
            listed[i] = left
            left = 0
            for k in range(beta.shape[1]):
                if idle[k] == 0.0:
                    classes[i, left] = k
                    left += 1
    return active


@kernel
def sweep_classes(
    batch: Any, codes: Any, loss: Any, geometry: Any, state: Any, work: Any, done: Any
) -> Cursor:
    """One epoch over the active rows and their active classes; a first one shrinks nothing."""
    rows, _, weight, squared_norms = batch
    scale, _, bias_rate = geometry
    beta, sweeps = state.beta, state.sweeps
    lists = Lists(sweeps.active_rows, sweeps.schedule, sweeps.cooldown, sweeps.rng)
    schedule, cooldown, listed, classes = sweeps.schedule, sweeps.cooldown, sweeps.listed, sweeps.classes
    active, _, _, _, _, _, gains, counts, estimate = sweeps.cursor
    visits, updates, entries = counts
    scores, before, change, idle = work.scores, work.before, work.change, work.idle
    active, scheduled = schedule_epoch(lists, active, 1)
    first, shrunk = visits == 0, 0
    for position in range(scheduled):
        i = np.int64(schedule[position])
        c, count = weight[i], rows.count(i)
        size = read_row(rows, i, state, work)
        whole = listed[i] == 0
        visits += 1
        entries += count * size
        q = c * (scale * squared_norms[i] + bias_rate)
        left, some = 0, False
        for a in range(size):
            k = a if whole else np.int64(classes[i, a])
            change[a], idle[a] = 0.0, 1.0
            if done[k]:
                continue
            label = 1.0 if k == codes[i] else -1.0
            low, high = loss.dual_subdifferential(label, scores[a], before[a])
            if low < 0.0 < high:
                continue
            idle[a] = 0.0
            left += 1
            projected = high if high < 0.0 else (low if low > 0.0 else 0.0)
            if projected != 0.0:
                best = loss.dual_prox(label, scores[a], before[a], q)
                change[a] = c * (best - before[a])
                beta[i, k] = best
                some |= change[a] != 0.0
        if some:
            updates += 1
            entries += add_row(rows, i, geometry, state, size, work)
        if first:
            continue
        if left == 0:
            cooldown[i] = SHRUNK
            shrunk += 1
            continue
        if left <= classes.shape[1] and left < size:
            left = 0
            for a in range(size):
                if idle[a] == 0.0:
                    classes[i, left] = a if whole else classes[i, a]
                    left += 1
            listed[i] = left
    return Cursor(
        active,
        shrunk,
        scheduled,
        -1,
        False,
        active == shrunk,
        gains,
        Counts(visits, updates, entries),
        estimate,
    )
