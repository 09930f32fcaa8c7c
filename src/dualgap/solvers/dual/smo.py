"""Sequential minimal optimisation (Platt 1998) with a free bias or none, for the hinge loss on linear data.

Working sets of two rows: the first wants to go up most, the second is chosen by second-order information
(Fan, Chen and Lin, JMLR 2005). The problem, its symbols and shrinking: ``working_set.py``.

A pair step counts as two visits, though it reads all active rows twice: see ``decomposition.py``. Where none
changes a dual variable in float64, though the gradients were just computed anew, the run ends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.problem import Evaluation, Problem
from ...runtime.jit import kernel
from ...runtime.options import option
from ...training.solver import Preset, Status
from .decomposition import SHRINKING_HELP
from .separability import decided, due_in, seems_inseparable
from .working_set import (
    FALL,
    READS,
    SHRINK_PERIOD,
    Box,
    Extremes,
    State,
    WorkingSetSolver,
    bias_of,
    box_of,
    extremes_of,
    most_violating,
    restore_all,
    shrink,
    status_of,
)


@dataclass(frozen=True)
class SMO(WorkingSetSolver):
    """Sequential minimal optimisation: working sets of two, the second row chosen by second-order
    information.
    """

    shrinking: bool = option(True, SHRINKING_HELP)

    name = "smo"
    summary = "sequential minimal optimisation (pairs, second-order choice), with the true bias or none"
    papers: ClassVar[Mapping[str, Preset]] = {
        "fan-2005": Preset(
            "Fan, Chen and Lin (2005), LIBSVM's choice of pairs",
            {},
            "The defaults are the paper's; Platt (1998) chose the second row by heuristics.",
        )
    }

    def rows_per_iteration(self, problem: Problem) -> int:
        """A pair."""
        return 2

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Pair steps until the budget is spent or all rows are restored."""
        batch, box = problem.source.batch, box_of(problem)
        end, reads, restored = state.counts.visits + budget, 0, False
        if state.cursor.threshold == math.inf:
            extremes = extremes_of(problem, state, *most_violating(state, box, 1))
            state = state.at(threshold=FALL * max(extremes.violation, 0.0))
        while state.counts.visits < end and not (restored or state.cursor.stuck) and reads < READS:
            rows, cursor = state.active_rows, state.cursor
            due = due_in(problem, state)
            if due == 0:
                state = decided(problem, state)
                break
            left = math.ceil(min(end - state.counts.visits, due) / 2)
            affordable = max(1, (READS - reads) // (2 * max(rows.size, 1)))
            allowed = min(SHRINK_PERIOD - cursor.steps, left, affordable)
            limits = _Limits(cursor.threshold, allowed, problem.bias.free)
            highest, lowest, done, entries = _pairs(batch, problem.scale, box, rows, state.variables, limits)
            reads += 2 * done * rows.size
            extremes = Extremes(highest, lowest)
            state = state.counted(2 * done, done, entries).at(
                violation=extremes.violation,
                bias=bias_of(problem, extremes),
                steps=cursor.steps + done,
                moved=cursor.moved or done > 0,
            )
            state, restored = _reviewed(problem, state, done < allowed)
            if state.cursor.steps == SHRINK_PERIOD:
                state = state.at(steps=0)
                if seems_inseparable(problem, state):
                    state = restore_all(problem, state)
                    break
                if self.shrinking:
                    state = _shrunk(state, box, extremes)
        return state, status_of(problem, state, restored=restored)


def _reviewed(problem: Problem, state: State, stopped: bool) -> tuple[State, bool]:
    """Restore all rows where the active ones are solved (the second value), or where no pair moves.

    ``stopped``: fewer steps were made than allowed. Where that happens right after all gradients were
    computed anew, the run ends.
    """
    cursor = state.cursor
    solved = cursor.violation <= cursor.threshold
    blocked = stopped and not solved
    if not cursor.moved and (cursor.violation <= state.resolution or blocked):
        return state.at(stuck=True), False
    if blocked:  # the gradients may have drifted
        return restore_all(problem, state.at(steps=0)), False
    if solved:
        return restore_all(problem, state.at(threshold=FALL * cursor.threshold, steps=0)), True
    return state, False


def _shrunk(state: State, box: Box, extremes: Extremes) -> State:
    """Without the rows that sit firmly at a bound."""
    v, _, gradient = state.variables
    return state.at(active=shrink(state.order, state.cursor.active, v, gradient, box, extremes))


class _Limits(NamedTuple):
    """Within which pair steps are made."""

    threshold: float  # of the violation
    allowed: int  # steps at most
    pairs: bool  # rows move in pairs only, as there is a bias


@kernel
def _pairs(
    batch: Any, scale: float, box: Any, active: Any, variables: Any, limits: Any
) -> tuple[float, float, int, int]:
    """Pair steps while they move anything; the largest g up, the smallest g down, steps, entries.

    Where there is no bias, -1 stands for the row x = 0, whose v has no bounds. The first row wants to go up
    most. The second is the one whose pair raises the dual most, (g_i - g_j)^2 divided by the curvature
    scale |x_i - x_j|^2, which needs the inner products of all active rows with x_i; one more pass brings
    their gradients up to date.
    """
    rows, _, _, squared_norms = batch
    low, high = box
    v, w, gradient = variables
    threshold, allowed, pairs = limits
    scattered = np.zeros(w.shape[0])
    products = np.empty(active.shape[0])
    entries = 0
    done = 0
    while True:
        i = -1
        highest, lowest = -np.inf, np.inf
        for k in active:
            if v[k] < high[k] and gradient[k] > highest:
                highest = gradient[k]
                i = k
            if v[k] > low[k] and gradient[k] < lowest:
                lowest = gradient[k]
        if not pairs:
            lowest = min(lowest, 0.0)
            if highest <= 0.0:
                i, highest = -1, 0.0
        if (i < 0 and pairs) or highest - lowest <= threshold or done == allowed:
            return highest, lowest, done, entries
        norm = 0.0
        if i >= 0:
            rows.add(i, 1.0, scattered)
            norm = squared_norms[i]
        j = -2
        gain = best = 0.0
        if i >= 0 and not pairs:
            j, best = -1, max(scale * norm, 1e-300)
            gain = highest * highest / best
        for p in range(active.shape[0]):
            k = active[p]
            products[p] = rows.dot(k, scattered)
            entries += rows.count(k)
            difference = highest - gradient[k]
            if v[k] > low[k] and difference > 0.0:
                curvature = max(scale * (norm + squared_norms[k] - 2.0 * products[p]), 1e-300)
                if difference * difference / curvature > gain:
                    gain = difference * difference / curvature
                    j = k
                    best = curvature
        if i >= 0:
            rows.add(i, -1.0, scattered)
        if j == -2:
            return highest, lowest, done, entries
        step = (highest - (gradient[j] if j >= 0 else 0.0)) / best
        step, moved = _move(v, i, j, step, box)
        if not moved:  # below the resolution of float64
            return highest, lowest, done, entries
        if i >= 0:
            rows.add(i, scale * step, w)
        if j >= 0:
            rows.add(j, -scale * step, w)
            rows.add(j, 1.0, scattered)
        for p in range(active.shape[0]):
            k = active[p]
            gradient[k] -= scale * step * (products[p] - rows.dot(k, scattered))
            entries += rows.count(k)
        if j >= 0:
            rows.add(j, -1.0, scattered)
        done += 1


@kernel
def _move(v: Any, i: int, j: int, step: float, box: Any) -> tuple[float, bool]:
    """``v_i`` goes up by the step and ``v_j`` down, or to the first bound; the step made, and whether either
    has changed. -1 stands for the row without bounds.
    """
    low, high = box
    if i >= 0:
        step = min(step, high[i] - v[i])
    if j >= 0:
        step = min(step, v[j] - low[j])
    moved = False
    if i >= 0:
        new = high[i] if step >= high[i] - v[i] else v[i] + step
        moved = new != v[i]
        v[i] = new
    if j >= 0:
        new = low[j] if step >= v[j] - low[j] else v[j] - step
        moved = moved or new != v[j]
        v[j] = new
    return step, moved
