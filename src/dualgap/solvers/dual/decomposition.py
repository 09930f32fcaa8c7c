"""Decomposition (Joachims 1999, the active-set method of SVM-light) with a free bias or none, for the hinge
loss on linear data.

Each round takes the q/2 rows that want to go up most and the q/2 that want to go down most, solves the
problem over them by pair steps on their q x q Gram matrix, then brings the gradients of the active rows up to
date in one pass: for linear data that costs their entries, and w replaces the kernel. The problem, its
symbols and shrinking: ``working_set.py``.

A round counts as visits of the rows of its working set, though it reads all active rows once: the number of
rounds needed grows with n, so an epoch is n rows moved, and ``entries`` counts what is read. Where a round
changes no dual variable in float64, though the gradients were just computed anew, the run ends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.problem import Evaluation, Problem
from ...runtime.arrays import Floats
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ...runtime.options import option
from ...training.solver import Preset, Status
from .separability import decided, due_in, seems_inseparable
from .working_set import (
    FALL,
    READS,
    Box,
    State,
    WorkingSetSolver,
    add_rows,
    bias_of,
    box_of,
    extremes_of,
    most_violating,
    move_pair,
    pair_step,
    restore_all,
    shrink,
    status_of,
)

INNER_TOLERANCE = 0.1  # of a working set, as a part of the violation
SHRINKING_HELP = "leave rows out for a while that sit firmly at a bound"


@dataclass(frozen=True)
class Decomposition(WorkingSetSolver):
    """The active-set method of SVM-light, for linear data."""

    q: int = option(40, "rows in the working set (even, at least 2)", low=2)
    shrinking: bool = option(True, SHRINKING_HELP)

    name = "decomposition"
    summary = (
        "working sets of q rows as in SVM-light, with the true bias, for the hinge loss and the hard margin"
    )
    papers: ClassVar[Mapping[str, Preset]] = {
        "joachims-1999": Preset(
            "Joachims (1999), SVM-light",
            {"q": 10},
            "SVM-light has q=10 unless told otherwise. With bias='none' it is the reference optimum of the "
            "Pegasos paper, with bias='exact' the SVM with a bias.",
        )
    }

    def check_together(self) -> None:
        """Half of the working set goes up, half of it down."""
        if self.q % 2:
            raise InputError(f"q={self.q!r} must be an even number of rows, at least 2")

    def rows_per_iteration(self, problem: Problem) -> int:
        """Up to q."""
        return 0

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Rounds until the budget is spent or all rows are restored."""
        box, end, reads, restored = box_of(problem), state.counts.visits + budget, 0, False
        while state.counts.visits < end and not (restored or state.cursor.stuck) and reads < READS:
            if due_in(problem, state) == 0:
                state = decided(problem, state)
                break
            reads += state.cursor.active
            state, restored = self._round(problem, state, box)
        return state, status_of(problem, state, restored=restored)

    def _round(self, problem: Problem, state: State, box: Box) -> tuple[State, bool]:
        """Solve the problem over one working set; whether the active rows are solved, and all restored."""
        up, down = most_violating(state, box, self.q // 2)
        extremes = extremes_of(problem, state, up, down)
        violation = extremes.violation
        state = state.at(violation=violation, bias=bias_of(problem, extremes))
        if state.cursor.threshold == math.inf:
            state = state.at(threshold=FALL * max(violation, 0.0))
        if not state.cursor.moved and violation <= state.resolution:
            return state.at(stuck=True), False
        if violation <= state.cursor.threshold:
            return restore_all(problem, state.at(threshold=FALL * state.cursor.threshold)), True
        v, w, gradient = state.variables
        working = np.unique(np.concatenate([up, down]))
        change = _solved(problem, box, working, INNER_TOLERANCE * violation, v, gradient)
        if change is None:
            return (restore_all(problem, state) if state.cursor.moved else state.at(stuck=True)), False
        w += change
        entries = _update_gradients(problem.source.batch.rows, state.active_rows, change, gradient)
        active = state.cursor.active
        if self.shrinking:
            active = shrink(state.order, active, v, gradient, box, extremes)
        state = state.counted(working.size, working.size, entries).at(active=active, moved=True)
        return (restore_all(problem, state) if seems_inseparable(problem, state) else state), False


def _solved(
    problem: Problem, box: Box, working: Any, tolerance: float, v: Floats, gradient: Floats
) -> Floats | None:
    """Solve the problem over a working set, in place, and return the change of w; None if nothing changes."""
    rows, d = problem.source.batch.rows, problem.source.d
    gram = np.empty((working.size, working.size))
    _gram(rows, working, np.zeros(d), gram)
    before = v[working]
    values, slope = before.copy(), gradient[working]
    own = Box(box.low[working], box.high[working])
    if problem.bias.free:
        _pair_steps(problem.scale * gram, own, tolerance, values, slope)
    else:  # with the row x = 0, whose v has no bounds
        more = Box(np.append(own.low, -np.inf), np.append(own.high, np.inf))
        gram, values, slope = np.pad(gram, (0, 1)), np.append(values, 0.0), np.append(slope, 0.0)
        _pair_steps(problem.scale * gram, more, tolerance, values, slope)
        values = values[:-1]
    if np.array_equal(values, before):
        return None
    change = np.zeros(d)
    add_rows(rows, working, values - before, problem.scale, change)
    v[working] = values
    return change


@kernel
def _pair_steps(gram: Floats, box: Any, tolerance: float, v: Floats, gradient: Floats) -> None:
    """Pair steps on a small Gram matrix (times scale) until no pair violates by more than the tolerance."""
    low, high = box
    size = v.shape[0]
    for _ in range(100 * size):
        i = -1
        for a in range(size):
            if v[a] < high[a] and (i < 0 or gradient[a] > gradient[i]):
                i = a
        if i < 0:
            return
        j = -1
        gain = 0.0
        for a in range(size):
            if v[a] > low[a] and gradient[i] - gradient[a] > tolerance:
                difference = gradient[i] - gradient[a]
                here = difference * difference / max(gram[i, i] + gram[a, a] - 2.0 * gram[i, a], 1e-300)
                if here > gain:
                    gain = here
                    j = a
        if j < 0:
            return
        curvature = max(gram[i, i] + gram[j, j] - 2.0 * gram[i, j], 1e-300)
        step = pair_step(gradient[i] - gradient[j], curvature, v[i], high[i], v[j], low[j])
        move_pair(v, i, j, step, box)
        for a in range(size):
            gradient[a] -= step * (gram[i, a] - gram[j, a])


@kernel
def _gram(rows: Any, working: Any, scattered: Floats, gram: Floats) -> None:
    """Inner products of the rows of a working set; ``scattered`` is a vector of zeros, and is one again."""
    for a in range(working.shape[0]):
        rows.add(working[a], 1.0, scattered)
        for b in range(a + 1):
            gram[a, b] = rows.dot(working[b], scattered)
            gram[b, a] = gram[a, b]
        rows.add(working[a], -1.0, scattered)


@kernel
def _update_gradients(rows: Any, active: Any, change: Floats, gradient: Floats) -> int:
    """``g_k -= <change, x_k>`` for the active rows; the entries read."""
    entries = 0
    for k in active:
        gradient[k] -= rows.dot(k, change)
        entries += rows.count(k)
    return entries
