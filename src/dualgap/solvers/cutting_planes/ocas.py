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
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ...core.problem import Point, Problem
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.jit import kernel
from ...runtime.options import option
from ...training.solver import Preset
from ...training.states import Extended, state_class
from ...training.stopping import Reason
from .cutting_plane import ABILITIES, CuttingPlane, after_round, primal_start
from .master import Cuts, add_cut, master_point, mean_loss, no_cuts, scores, slack, solve_master

MIX = 0.1
# the longest step, in units of the way to the master's solution: it multiplies the rounding error of that way
MAX_STEP = 1e6


@state_class
class Scored(NamedTuple):
    """A primal point and the scores of all rows at it."""

    w: Floats
    b: float
    scores: Floats

    def towards(self, other: Scored, step: float) -> Scored:
        """The point ``step`` times as far as the other one."""
        return Scored(
            self.w + step * (other.w - self.w),
            self.b + step * (other.b - self.b),
            self.scores + step * (other.scores - self.scores),
        )


@state_class
class State(NamedTuple):
    """The cuts, the best point with its scores, and the scores at which the next cut is taken."""

    cuts: Cuts
    best: Scored
    next: Floats  # scores of the point of the next cut
    primal: Extended = math.inf  # P at the best point, for the solver's own rules only
    lower: Extended = -math.inf  # the master's value, likewise
    counts: Counts = Counts()

    @property
    def w(self) -> Floats:
        """That of the best point."""
        return self.best.w

    @property
    def b(self) -> float:
        """That of the best point."""
        return self.best.b


@dataclass(frozen=True)
class OCAS(CuttingPlane[State]):
    """The optimised cutting-plane algorithm."""

    r: float = option(0.0, "also stop when P is within this fraction of the master's bound (0: never)", low=0)
    q: float = option(
        0.0, "also stop when J = |w|^2/2 + C sum of losses is at most this, as in the paper (0: never)", low=0
    )
    q_mean: float = option(
        0.0, "also stop when P = lam/2 |w|^2 + mean of losses is at most this (0: never)", low=0
    )

    name = "ocas"
    summary = "cutting planes with an exact line search, for the hinge loss"
    capabilities = ABILITIES._replace(own_stops=("r", "q", "q_mean"))
    papers: ClassVar[Mapping[str, Preset]] = {
        "franc-2008": Preset(
            "Franc and Sonnenburg (2008), OCAS",
            {"r": 0.01},
            "r=0.01 is the program's default. With q=1.01*J, J being the optimum in C-form, it is as in "
            "tables 3, 5 and 7 of Panagiotakopoulos and Tsampouka (2013).",
        )
    }

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at w = 0, or at the warm start, without cuts."""
        w, b = primal_start(problem, warm)
        score = scores(problem, w, b)
        return State(no_cuts(problem.source.n, problem.source.d), Scored(w, b, score), score)

    def round(self, problem: Problem, state: State) -> State:
        """A cut, the solution of the master problem, and a line search towards it."""
        cuts, entries = add_cut(problem, state.cuts, state.next), 2 * problem.source.nnz
        if cuts.known > 0:  # as svmperf does: that one is new unless the master's solution is the optimum
            cuts = add_cut(problem, state.cuts, scores(problem, *master_point(problem, state.cuts)))
            entries += problem.source.nnz
        cuts = solve_master(problem, cuts)
        w, b = master_point(problem, cuts)
        master = Scored(w, b, scores(problem, w, b))
        best = state.best.towards(master, line_search(problem, state.best, master))
        return State(
            cuts,
            best,
            next=(1.0 - MIX) * best.scores + MIX * master.scores,
            primal=_penalty(problem, best) + mean_loss(problem, best.scores),
            lower=_penalty(problem, master) + slack(cuts, w, b),
            counts=after_round(problem, state.counts, entries),
        )

    def own_rule(self, problem: Problem, state: State) -> Reason | None:
        """P is near enough to the master's bound, or small enough."""
        if self.r > 0.0 and state.primal - state.lower <= self.r * abs(state.primal):
            return Reason("r", f"P is within r={self.r:g} of the bound of the master problem")
        value = state.primal / problem.lam  # J, in C-form
        if value <= self.q:
            return Reason("q", f"J = {value:.6g} is at most q={self.q:g}")
        if state.primal <= self.q_mean:
            return Reason("q_mean", f"P = {state.primal:.6g} is at most q_mean={self.q_mean:g}")
        return None

    def shift_bias(self, state: State, centre: float) -> tuple[State, float]:
        """The best point stays where it is; only the centre of the master's bias moves, and that is the
        problem's.
        """
        return state, state.b


def line_search(problem: Problem, start: Scored, end: Scored) -> float:
    """The k >= 0 that minimises P at ``start + k (end - start)``: its derivative is piecewise linear and
    rises.

    Between two breakpoints, the k at which a row's margin is exactly m, the derivative is a line of slope
    ``lam |w_end - w_start|^2``; at a breakpoint it jumps by the row's ``c |score_end - score_start| / N``.
    """
    source, total = problem.source, problem.total_weight
    strength = problem.bias.strength(problem.lam)
    stiffness = 0.0 if strength == np.inf else strength
    toward, toward_b = end.w - start.w, end.b - start.b
    curvature = problem.lam * float(toward @ toward) + stiffness * toward_b**2
    drift = problem.lam * float(start.w @ toward) + stiffness * (start.b - problem.bias.centre) * toward_b
    at, jumps = np.empty(source.n), np.empty(source.n)
    count, losing = _breakpoints(
        source.y, source.weight, start.scores, end.scores, problem.loss.margin, at, jumps
    )
    slope = drift - losing / total
    if slope >= 0.0:
        return 0.0
    step: float = _zero(at[:count], jumps[:count], slope, curvature, total)
    return min(step, MAX_STEP) if np.isfinite(step) else 1.0


@kernel
def _breakpoints(
    y: Floats, weight: Floats, score: Floats, score_to: Floats, margin: float, at: Floats, jumps: Floats
) -> tuple[int, float]:
    """The k at which a row's loss becomes or ceases to be positive, and c |rate| there.

    Returns their number, and the sum of c times the rate at which the losses fall that are positive at k = 0.
    """
    count, losing = 0, 0.0
    for i in range(y.shape[0]):
        short = margin - y[i] * score[i]  # the loss, where positive
        rate = y[i] * (score_to[i] - score[i])  # how fast that falls
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


def _penalty(problem: Problem, point: Scored) -> float:
    """lam/2 |w|^2 and that of the bias."""
    strength = problem.bias.strength(problem.lam)
    ridge = 0.5 * problem.lam * float(point.w @ point.w)
    return ridge if strength == np.inf else ridge + 0.5 * strength * (point.b - problem.bias.centre) ** 2
