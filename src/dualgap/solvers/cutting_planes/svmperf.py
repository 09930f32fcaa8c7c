"""SVMperf: the 1-slack cutting-plane method for the hinge loss (Joachims, KDD 2006; Joachims, Finley and Yu,
MLJ 2009).

One round: take the tangent of the mean loss at the present w as a new cut, solve the master problem over all
cuts, go to its solution. The violation of the newest cut, R(w) less the height of the highest cut before it,
falls to 0; the paper's epsilon is where it may stop. The program SVMperf counts losses in percent, and so do
tables of its epsilon: 0.7 there is 0.007 of the mean loss (``epsilon_percent=0.7``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ...core.problem import Point, Problem
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.options import option
from ...training.solver import Preset
from ...training.states import Extended, state_class
from ...training.stopping import Reason
from .cutting_plane import ABILITIES, CuttingPlane, after_round, primal_start
from .master import Cuts, add_cut, master_point, mean_loss, no_cuts, scores, slack, solve_master


@state_class
class State(NamedTuple):
    """The cuts, and the solution of the master problem over them."""

    cuts: Cuts
    w: Floats
    b: float
    violation: Extended = math.inf  # of the newest cut
    counts: Counts = Counts()


@dataclass(frozen=True)
class SVMperf(CuttingPlane[State]):
    """The 1-slack cutting-plane method."""

    epsilon: float = option(
        0.0, "also stop when the newest cut is violated by at most this part of 1 (0: never)", low=0
    )
    epsilon_percent: float = option(
        0.0, "the same in percent, as the program SVMperf and tables of its epsilon have it", low=0
    )

    name = "svmperf"
    summary = "1-slack cutting planes, for the hinge loss"
    capabilities = ABILITIES._replace(own_stops=("epsilon", "epsilon_percent"))
    papers: ClassVar[Mapping[str, Preset]] = {
        "joachims-2006": Preset("Joachims (2006), section 5", {"epsilon": 0.001}, "It has no bias."),
        "panagiotakopoulos-2013": Preset(
            "Panagiotakopoulos and Tsampouka (2013), tables 3, 5 and 7",
            {"epsilon_percent": 0.7},
            "0.7 is for Adult at C = 1, to within 1% of the optimum; each data set and C has its own there.",
        ),
    }

    def check_together(self) -> None:
        """One scale at a time."""
        if self.epsilon > 0.0 and self.epsilon_percent > 0.0:
            raise InputError(
                f"epsilon={self.epsilon:g} and epsilon_percent={self.epsilon_percent:g} are two scales of "
                "one rule; give one of them"
            )

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at w = 0, or at the warm start, without cuts."""
        return State(no_cuts(problem.source.n, problem.source.d), *primal_start(problem, warm))

    def round(self, problem: Problem, state: State) -> State:
        """A cut at the present point, and the solution of the master problem."""
        score = scores(problem, state.w, state.b)
        violation = mean_loss(problem, score) - slack(state.cuts, state.w, state.b)
        cuts = solve_master(problem, add_cut(problem, state.cuts, score))
        w, b = master_point(problem, cuts)
        return State(cuts, w, b, violation, after_round(problem, state.counts, 2 * problem.source.nnz))

    def own_rule(self, problem: Problem, state: State) -> Reason | None:
        """The newest cut is violated by at most epsilon."""
        epsilon = self.epsilon or self.epsilon_percent / 100.0
        if epsilon == 0.0 or state.violation > epsilon:
            return None
        return Reason(
            "epsilon", f"the newest cut is violated by {state.violation:.3g} <= epsilon={epsilon:g}"
        )

    def shift_bias(self, state: State, centre: float) -> tuple[State, float]:
        """The same cuts under a bias whose centre moves to the present one."""
        return state._replace(b=2.0 * state.b - centre), state.b
