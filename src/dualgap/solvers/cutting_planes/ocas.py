"""OCAS: cutting planes with an exact line search and a better choice of cut (Franc and Sonnenburg, ICML
2008).

The master problem's solution alone is a poor primal point. OCAS keeps the best point so far and, each round,

1. solves the master problem: w_cp;
2. moves the best point to the minimum of P on the ray from it through w_cp, found exactly from the sorted
   breakpoints at which rows cross the margin;
3. takes the next cut not at w_cp but at ``(1 - MIX) w_best + MIX w_cp``, where P is lower.

Scores are linear in w, so one pass for those of w_cp is enough: all others are interpolated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ...runtime.counts import Counts
from ...training.stopping import Reason
from .master import (
    Cuts,
    add_cut,
    dual_point,
    exhausted,
    master_point,
    mean_loss,
    no_cuts,
    scores,
    slack,
    solve_master,
)

MIX = 0.1
# of a step, in units of the way to the master's solution: it multiplies the rounding error of that way
FARTHEST = 1e6


class State(NamedTuple):
    """The cuts, the best point with its scores, and the scores at which the next cut is taken."""

    cuts: Cuts
    w: Floats
    b: float
    best: Floats  # scores of the best point
    next: Floats  # scores of the point of the next cut
    primal: float  # P at the best point, for the solver's own rules only
    lower: float  # the master's value, likewise
    counts: Counts

    @property
    def paused(self) -> bool:
        """Every round ends with a point worth evaluating."""
        return True


@dataclass(frozen=True)
class OCAS:
    """The optimised cutting-plane algorithm."""

    r: float = field(
        default=0.0,
        metadata={"help": "also stop when P is within this fraction of the master's bound (0: never)"},
    )
    q: float = field(
        default=0.0, metadata={"help": "also stop when P (mean form) is at most this (0: never)"}
    )

    name = "ocas"
    summary = "cutting planes with an exact line search, for the hinge loss"
    losses = ("hinge",)
    package = "daqp"
    own_stops = ("r", "q")  # options that end a run by a rule of its own

    def __post_init__(self) -> None:
        for key in ("r", "q"):
            value = getattr(self, key)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"{key}={value!r} must be a finite number >= 0 (0 switches the rule off)")

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at w = 0, or at the warm start, without cuts."""
        n, d = problem.source.n, problem.source.d
        w = np.zeros(d) if warm is None else np.array(warm.w, dtype=np.float64)
        b = problem.bias.centre if warm is None else float(warm.b)
        score = scores(problem, w, b)
        return State(no_cuts(n, d), w, b, score, score, math.inf, -math.inf, Counts())

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """One round: cut, master problem, line search."""
        cuts, entries = add_cut(problem, state.cuts, state.next), 2 * problem.source.nnz
        if cuts.known > 0:  # as svmperf does: that one is new unless the master's solution is the optimum
            cuts = add_cut(problem, state.cuts, scores(problem, *master_point(problem, state.cuts)))
            entries += problem.source.nnz
        cuts = solve_master(problem, cuts)
        w_cp, b_cp = master_point(problem, cuts)
        score_cp = scores(problem, w_cp, b_cp)
        step = line_search(problem, state.w, w_cp, state.b, b_cp, state.best, score_cp)
        w = state.w + step * (w_cp - state.w)
        b = state.b + step * (b_cp - state.b)
        best = state.best + step * (score_cp - state.best)
        counts = Counts(
            state.counts.visits + problem.epoch_size,
            state.counts.updates + 1,
            state.counts.entries + entries,
        )
        penalty = _penalty(problem, w, b)
        lower = _penalty(problem, w_cp, b_cp) + slack(cuts, w_cp, b_cp)
        primal = penalty + mean_loss(problem, best)
        return State(cuts, w, b, best, (1.0 - MIX) * best + MIX * score_cp, primal, lower, counts)

    def point(self, problem: Problem, state: State) -> Point:
        """The best point, and the dual point behind the master's multipliers."""
        return Point(state.w, state.b, dual_point(problem, state.cuts))

    def shift_bias(self, state: State, centre: float) -> tuple[State, float]:
        """The best point stays where it is; only the centre of the master's bias moves, and that is the
        problem's.
        """
        return state, state.b

    def finished(self, state: State) -> Reason | None:
        """The paper's rules, where they are asked for; or there are no new cuts."""
        if self.r > 0.0 and state.primal - state.lower <= self.r * abs(state.primal):
            return Reason("r", f"P is within r={self.r:g} of the bound of the master problem")
        if state.primal <= self.q:
            return Reason("q", f"P = {state.primal:.6g} is at most q={self.q:g}")
        return exhausted(state.cuts)


def line_search(
    problem: Problem, w: Floats, w_to: Floats, b: float, b_to: float, score: Floats, score_to: Floats
) -> float:
    """The k >= 0 that minimises P at ``w + k (w_to - w)``: its derivative is piecewise linear and rises.

    Between two breakpoints, the k at which a row's margin is exactly m, the derivative is a line of slope
    ``lam |w_to - w|^2``; at a breakpoint it jumps by the row's ``c |score_to - score| / N``.
    """
    source, margin, total = problem.source, problem.loss.margin, problem.total_weight
    strength = problem.bias.strength(problem.lam)
    toward, toward_b = w_to - w, b_to - b
    stiffness = 0.0 if strength == np.inf else strength
    curvature = problem.lam * float(toward @ toward) + stiffness * toward_b**2
    drift = problem.lam * float(w @ toward) + stiffness * (b - problem.bias.centre) * toward_b
    at, jumps = np.empty(source.n), np.empty(source.n)
    count, losing = _breakpoints(source.y, source.weight, score, score_to, margin, at, jumps)
    start = drift - losing / total
    if start >= 0.0:
        return 0.0
    step: float = _zero(at[:count], jumps[:count], start, curvature, total)
    return min(step, FARTHEST) if np.isfinite(step) else 1.0


@kernel
def _breakpoints(
    y: Floats, weight: Floats, score: Floats, score_to: Floats, margin: float, at: Floats, jumps: Floats
) -> tuple[int, float]:
    """Where rows begin or cease to lose, N times the jumps there; their number, and N times the pull of the
    losing.
    """
    count, losing = 0, 0.0
    for i in range(y.shape[0]):
        short = margin - y[i] * score[i]  # loses where positive
        rate = y[i] * (score_to[i] - score[i])  # how fast that shrinks
        pull = weight[i] * rate
        if short > 0.0 or (short == 0.0 and rate < 0.0):
            losing += pull
        if short * rate > 0.0 and pull != 0.0:
            at[count] = short / rate
            jumps[count] = abs(pull)
            count += 1
    return count, losing


@kernel
def _zero(at: Floats, jumps: Floats, level: float, curvature: float, total: float) -> float:
    """Where ``level + curvature k + (jumps up to k) / N`` reaches 0 from below; by selection, in linear
    time.
    """
    first, last = 0, at.shape[0]
    while first < last:
        pivot = at[first + (last - first) // 2]
        low, here, high = first, first, last  # smaller, equal, unseen, larger
        smaller = equal = 0.0
        while here < high:
            if at[here] < pivot:
                smaller += jumps[here]
                at[low], at[here] = at[here], at[low]
                jumps[low], jumps[here] = jumps[here], jumps[low]
                low += 1
                here += 1
            elif at[here] > pivot:
                high -= 1
                at[high], at[here] = at[here], at[high]
                jumps[high], jumps[here] = jumps[here], jumps[high]
            else:
                equal += jumps[here]
                here += 1
        before = level + curvature * pivot + smaller / total
        if before >= 0.0:
            last = low
        elif before + equal / total >= 0.0:
            return float(pivot)
        else:
            level += (smaller + equal) / total
            first = high
    return -level / curvature if curvature > 0.0 else np.inf


def _penalty(problem: Problem, w: Floats, b: float) -> float:
    strength = problem.bias.strength(problem.lam)
    ridge = 0.5 * problem.lam * float(w @ w)
    return ridge if strength == np.inf else ridge + 0.5 * strength * (b - problem.bias.centre) ** 2
