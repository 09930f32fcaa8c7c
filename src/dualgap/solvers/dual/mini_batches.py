"""The steps of accelerated mini-batch SDCA (``asdca.py``, which has the symbols), on one thread or several.

A step draws a batch, computes the scores of its rows, moves their duals, and adds the moves to v and h.
Several threads share out the rows of a batch for the scores, and v and h for the additions, so that every sum
is added up in the same order and the result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...core.geometry import DualGeometry
from ...core.losses import Loss
from ...data.rows import Batch
from ...runtime.arrays import Floats, Words
from ...runtime.counts import Counts
from ...runtime.jit import kernel
from ...runtime.random import below
from ...training.states import (
    Extent,
    FixedCount,
    Generator,
    Naturals,
    NotNegative,
    RowNumbers,
    Share,
    invariant,
    state_class,
)

MIN_SIGMA = 1e-100  # below this, sigma is multiplied into h
AHEAD = 4  # rows of a batch by which their entries are prefetched


@state_class
class Lagging(NamedTuple):
    """The running mean of the duals, updated for a row only when its dual changes.

    ``mix[i]`` is the mean as of step ``touched[i]``, ``total[i]`` the sum of its values at the steps before.
    """

    mix: Floats
    touched: Naturals  # int64
    total: Floats  # empty where no average is asked for


@state_class
class Pace(NamedTuple):
    """The constants of a step."""

    m: FixedCount  # rows in a batch
    theta: Share
    gamma: NotNegative  # of the smoothing; 0 for a smooth loss


@state_class
class Cursor(NamedTuple):
    """The scalars of w = v + sigma h and b = v_bias + sigma h_bias, and the work done."""

    v_bias: float
    h_bias: float = 0.0
    sigma: Share = 1.0
    steps: int = 0
    counts: Counts = Counts()


@state_class
class Iterate(NamedTuple):
    """v = w(beta) and w = v + sigma h = w(mix) at all times."""

    v: Floats
    h: Floats
    beta: Floats
    lagging: Lagging
    rows: RowNumbers  # uint32; those of positive weight, the last batch first
    rng: Generator
    pace: Pace
    cursor: Cursor

    @property
    def up_to_date(self) -> tuple[Floats, Floats]:
        """The running mean of the duals at this step, and the sum of its values at all steps before."""
        mix, touched, total = self.lagging
        waited = self.cursor.steps - touched
        left = (1.0 - self.pace.theta) ** waited
        off = mix - self.beta
        if total.size:
            total = total + waited * self.beta + off * ((1.0 - left) / self.pace.theta)
        return self.beta + left * off, total


@invariant(Iterate)
def _check(iterate: Iterate, extent: Extent) -> Iterator[tuple[bool, str]]:
    yield iterate.pace.m <= iterate.rows.size, "pace.m is more rows than there are"
    yield iterate.pace.theta > 0.0, "pace.theta is 0"
    yield (
        int(iterate.lagging.touched.max(initial=0)) <= iterate.cursor.steps,
        "lagging.touched is in the future",
    )


@kernel
def run_batches(batch: Any, loss: Any, geometry: Any, state: Any, stop: int) -> Cursor:
    """Steps of an `Iterate` until ``stop`` are made."""
    v, h, beta, lagging, rows, rng, pace, cursor = state
    m, theta, _ = pace
    picks, targets, moves = rows[:m], np.empty(m), np.empty(m)
    while cursor.steps < stop:
        cursor = begin_step(rng, rows, h, pace, cursor)
        entries = set_targets(batch, loss, v, h, pace, cursor, picks, targets)
        updates = move_duals(batch.weight, beta, lagging, theta, cursor.steps, picks, targets, moves)
        entries += add_moves(batch.rows, picks, moves, geometry.scale, v)
        if theta < 1.0:
            entries += add_moves(batch.rows, picks, moves, -geometry.scale / cursor.sigma, h)
        cursor = end_step(pace, cursor, geometry.bias_rate, moves, updates, entries)
    return cursor  # type: ignore[no-any-return]


@dataclass(frozen=True)
class InThreads:
    """What `run_batches` does, with several threads."""

    pool: ThreadPoolExecutor
    threads: int

    def __call__(self, batch: Batch, loss: Loss, geometry: DualGeometry, state: Iterate, stop: int) -> Cursor:
        """Steps until ``stop`` are made."""
        v, h, beta, lagging, rows, rng, pace, cursor = state
        m, theta, _ = pace
        picks, targets, moves = rows[:m], np.empty(m), np.empty(m)
        shares = [slice(*edge) for edge in pairwise(m * k // self.threads for k in range(self.threads + 1))]
        while cursor.steps < stop:
            cursor = begin_step(rng, rows, h, pace, cursor)
            score = partial(set_targets, batch, loss, v, h, pace, cursor)
            entries = self._total(partial(score, picks[share], targets[share]) for share in shares)
            updates = move_duals(batch.weight, beta, lagging, theta, cursor.steps, picks, targets, moves)
            add = partial(add_moves, batch.rows, picks, moves)
            sums = [partial(add, geometry.scale, v), partial(add, -geometry.scale / cursor.sigma, h)]
            entries += self._total(sums if theta < 1.0 else sums[:1])
            cursor = end_step(pace, cursor, geometry.bias_rate, moves, updates, entries)
        return cursor

    def _total(self, tasks: Iterable[Callable[[], int]]) -> int:
        """The sum of what some kernels return, run at the same time."""
        return sum(self.pool.map(lambda task: task(), tasks))


@kernel
def begin_step(rng: Words, rows: Any, h: Floats, pace: Any, cursor: Any) -> Cursor:
    """Draw a random batch, each equally likely, to the front of the rows; keep sigma in range.

    Before sigma vanishes it is multiplied into h. At theta = 1 h is 0 at once, and w = v.
    """
    m, theta, _ = pace
    draw(rng, rows, m)
    if cursor.sigma >= MIN_SIGMA and theta < 1.0:
        return cursor  # type: ignore[no-any-return]
    factor = cursor.sigma if theta < 1.0 else 0.0
    h *= factor
    h_bias = cursor.h_bias * cursor.sigma if theta < 1.0 else 0.0
    return Cursor(cursor.v_bias, h_bias, 1.0, cursor.steps, cursor.counts)


@kernel
def draw(rng: Words, rows: Any, m: int) -> None:
    """Bring m rows at random to the front."""
    for k in range(m):
        other = k + below(rng, rows.shape[0] - k)
        rows[k], rows[other] = rows[other], rows[k]


@kernel
def set_targets(
    batch: Any, loss: Any, v: Floats, h: Floats, pace: Any, cursor: Any, picks: Any, targets: Floats
) -> int:
    """``targets_k = -phi'(<u, x_k>)`` for the rows picked, u = v + (1 - theta) sigma h; the entries read.

    phi is the smoothed loss where gamma > 0.
    """
    rows, y, _, _ = batch
    _, theta, gamma = pace
    v_bias, h_bias = cursor.v_bias, cursor.h_bias
    factor = (1.0 - theta) * cursor.sigma
    entries = 0
    for k in range(picks.shape[0]):
        if k + AHEAD < picks.shape[0]:
            rows.prefetch_rows(picks[k + AHEAD], picks[k + AHEAD])
        i = picks[k]
        score = rows.dot(i, v) + v_bias + factor * (rows.dot(i, h) + h_bias)
        low, high = loss.dual_bounds(y[i])
        targets[k] = min(max(loss.dual_prox(y[i], score, 0.0, gamma), low), high)
        entries += 2 * rows.count(i)
    return entries


@kernel
def move_duals(
    weight: Floats, beta: Floats, lagging: Any, theta: float, step: int, picks: Any, targets: Floats,
    moves: Floats,
) -> int:  # fmt: skip
    """``beta_k += theta (targets_k - beta_k)``; ``moves_k`` is c_k times that. Returns how many changed.

    The running mean of a row is brought up to this step before its dual changes.
    """
    mix, touched, total = lagging
    updates = 0
    for k in range(picks.shape[0]):
        i = picks[k]
        change = theta * (targets[k] - beta[i])
        moves[k] = weight[i] * change
        if change == 0.0:
            continue
        waited = step - touched[i]
        left = (1.0 - theta) ** waited
        off = mix[i] - beta[i]
        if total.shape[0] > 0:
            total[i] += waited * beta[i] + off * ((1.0 - left) / theta)
        mix[i] = beta[i] + left * off
        touched[i] = step
        beta[i] += change
        updates += 1
    return updates


@kernel
def add_moves(rows: Any, picks: Any, moves: Floats, factor: float, vector: Floats) -> int:
    """``vector += factor sum_k moves_k x_k``; the entries read."""
    entries = 0
    for k in range(picks.shape[0]):
        if k + AHEAD < picks.shape[0]:
            rows.prefetch_rows(picks[k + AHEAD], picks[k + AHEAD])
        if moves[k] != 0.0:
            rows.add(picks[k], factor * moves[k], vector)
            entries += rows.count(picks[k])
    return entries


@kernel
def end_step(pace: Any, cursor: Any, bias_rate: float, moves: Floats, updates: int, entries: int) -> Cursor:
    """The biases, sigma and the counts after a step."""
    m, theta, _ = pace
    push = bias_rate * moves.sum()
    h_bias = cursor.h_bias - push / cursor.sigma if theta < 1.0 else 0.0
    sigma = cursor.sigma * (1.0 - theta) if theta < 1.0 else 1.0
    visits, updated, read = cursor.counts
    counts = Counts(visits + m, updated + updates, read + entries)
    return Cursor(cursor.v_bias + push, h_bias, sigma, cursor.steps + 1, counts)
