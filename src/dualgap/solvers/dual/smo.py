"""Sequential minimal optimisation (Platt 1998) with a free bias, for the hinge loss on linear data.

Working sets of two rows: the first wants to go up most, the second is chosen by second-order information
(Fan, Chen and Lin, JMLR 2005). The problem, its symbols and shrinking: ``working_set.py``.

A pair step counts as two visits, though it reads all active rows twice: see ``decomposition.py``. Where none
changes a dual variable in float64, though the gradients were just computed anew, the run ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.problem import Evaluation, Problem
from ...runtime.jit import kernel
from ...runtime.options import option
from ...training.solver import Status
from .decomposition import SHRINKING_HELP
from .working_set import (
    FALL,
    READS,
    SHRINK_PERIOD,
    Box,
    Extremes,
    State,
    WorkingSetSolver,
    box_of,
    extremes_of,
    most_violating,
    move_pair,
    pair_step,
    restore_all,
    seems_inseparable,
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
    summary = "sequential minimal optimisation (pairs, second-order choice), with the true bias"

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
            extremes = extremes_of(state, *most_violating(state, box, 1))
            state = state.at(threshold=FALL * max(extremes.violation, 0.0))
        while state.counts.visits < end and not (restored or state.cursor.stuck) and reads < READS:
            rows, cursor = state.active_rows, state.cursor
            left = math.ceil((end - state.counts.visits) / 2)
            affordable = max(1, (READS - reads) // (2 * max(rows.size, 1)))
            allowed = min(SHRINK_PERIOD - cursor.steps, left, affordable)
            limits = cursor.threshold, allowed
            highest, lowest, done, entries = _pairs(batch, problem.scale, box, rows, state.variables, limits)
            reads += 2 * done * rows.size
            extremes = Extremes(highest, lowest)
            state = state.counted(2 * done, done, entries).at(
                violation=extremes.violation,
                bias=extremes.middle,
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


@kernel
def _pairs(
    batch: Any, scale: float, box: Any, active: Any, variables: Any, limits: Any
) -> tuple[float, float, int, int]:
    """Pair steps while they move anything; the largest g up, the smallest g down, steps, entries.

    ``limits`` are the violation at which to stop, and the largest number of steps. The first row wants to go
    up most. The second is the one whose pair raises the dual most, (g_i - g_j)^2 divided by the curvature
    scale |x_i - x_j|^2, which needs the inner products of all active rows with x_i; one more pass brings
    their gradients up to date.
    """
    rows, _, _, squared_norms = batch
    low, high = box
    v, w, gradient = variables
    threshold, allowed = limits
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
        if i < 0 or highest - lowest <= threshold or done == allowed:
            return highest, lowest, done, entries
        rows.add(i, 1.0, scattered)
        j = -1
        gain = best = 0.0
        for p in range(active.shape[0]):
            k = active[p]
            products[p] = rows.dot(k, scattered)
            entries += rows.count(k)
            difference = highest - gradient[k]
            if v[k] > low[k] and difference > 0.0:
                curvature = max(scale * (squared_norms[i] + squared_norms[k] - 2.0 * products[p]), 1e-300)
                if difference * difference / curvature > gain:
                    gain = difference * difference / curvature
                    j = k
                    best = curvature
        rows.add(i, -1.0, scattered)
        if j < 0:
            return highest, lowest, done, entries
        step = pair_step(highest - gradient[j], best, v[i], high[i], v[j], low[j])
        v_i, v_j = v[i], v[j]
        move_pair(v, i, j, step, box)
        if v[i] == v_i and v[j] == v_j:  # below the resolution of float64
            return highest, lowest, done, entries
        rows.add(i, scale * step, w)
        rows.add(j, -scale * step, w)
        rows.add(j, 1.0, scattered)
        for p in range(active.shape[0]):
            k = active[p]
            gradient[k] -= scale * step * (products[p] - rows.dot(k, scattered))
            entries += rows.count(k)
        rows.add(j, -1.0, scattered)
        done += 1
