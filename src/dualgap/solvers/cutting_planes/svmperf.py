"""SVMperf: the 1-slack cutting-plane method for the hinge loss (Joachims, KDD 2006; Joachims, Finley and Yu,
MLJ 2009).

One round: take the tangent of the mean loss at the present w as a new cut, solve the master problem over all
cuts, go to its solution. The violation of the newest cut, R(w) less the height of the highest cut before it,
falls to 0; the paper's epsilon is where it may stop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats
from ...runtime.errors import InputError
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


class State(NamedTuple):
    """The cuts, and the solution of the master problem over them."""

    cuts: Cuts
    w: Floats
    b: float
    violation: float  # of the newest cut
    counts: Counts

    @property
    def paused(self) -> bool:
        """Every round ends with a point worth evaluating."""
        return True


@dataclass(frozen=True)
class SVMperf:
    """The 1-slack cutting-plane method."""

    epsilon: float = field(
        default=0.0, metadata={"help": "also stop when the newest cut is violated by at most this (0: never)"}
    )

    name = "svmperf"
    summary = "1-slack cutting planes, for the hinge loss"
    losses = ("hinge",)
    package = "daqp"
    own_stops = ("epsilon",)  # options that end a run by a rule of its own

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0):
            raise InputError(
                f"epsilon={self.epsilon!r} must be a finite number >= 0 (0 switches the rule off)"
            )

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at w = 0, or at the warm start, without cuts."""
        w = np.zeros(problem.source.d) if warm is None else np.array(warm.w, dtype=np.float64)
        b = problem.bias.centre if warm is None else float(warm.b)
        return State(no_cuts(problem.source.n, problem.source.d), w, b, math.inf, Counts())

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """One round: a cut at the present point, and the master problem."""
        score = scores(problem, state.w, state.b)
        violation = mean_loss(problem, score) - slack(state.cuts, state.w, state.b)
        cuts = solve_master(problem, add_cut(problem, state.cuts, score))
        w, b = master_point(problem, cuts)
        counts = Counts(
            state.counts.visits + problem.epoch_size,
            state.counts.updates + 1,
            state.counts.entries + 2 * problem.source.nnz,
        )
        return State(cuts, w, b, violation, counts)

    def point(self, problem: Problem, state: State) -> Point:
        """The master's solution, and the dual point behind its multipliers."""
        return Point(state.w, state.b, dual_point(problem, state.cuts))

    def shift_bias(self, state: State, centre: float) -> tuple[State, float]:
        """The same cuts under a bias whose centre moves to the present one."""
        return state._replace(b=2.0 * state.b - centre), state.b

    def finished(self, state: State) -> Reason | None:
        """The paper's rule, where it is asked for; or there are no new cuts."""
        if self.epsilon == 0.0 or state.violation > self.epsilon:
            return exhausted(state.cuts)
        return Reason(
            "epsilon", f"the newest cut is violated by {state.violation:.3g} <= epsilon={self.epsilon:g}"
        )
