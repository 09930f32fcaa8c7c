"""An estimate of the duality gap from the visits of dual coordinate descent.

At w = w(beta) the gap is a sum over rows,

    1/N sum_i c_i (phi(s_i) + phi*(-beta_i) + beta_i s_i),

so visits are samples of it: every fourth is looked at, and WINDOW of them or more make an estimate. Shrunk
rows are not in it, rows that cool down are taken to be like the others, and those just visited have no gap
for the moment; each evaluation says by which factor the last estimate was wrong. The estimate decides when to
ask for an evaluation and when shrunk rows are worth another look. It never enters a value that is reported.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ...core.problem import Evaluation
from ...training.states import Extended, state_class

# samples of an estimate at least, or a 64th of the active rows, or all of them if they are fewer
WINDOW = 256
INITIAL_CORRECTION = 2.0
LEAST_CORRECTION, MOST_CORRECTION = 0.5, 10.0  # an estimate from a few hundred rows is no better than that


@state_class
class GapEstimate(NamedTuple):
    """What visits tell of the duality gap. Values are N times those of the problem in mean form."""

    tol: float = 0.0  # the relative gap asked for; 0: none
    dual: Extended = 0.0  # the dual value when it was last computed; 0 before
    tally: Extended = 0.0  # gaps of the rows looked at since the last estimate
    tallied: int = 0  # their number
    gap: Extended = math.inf  # the last estimate of the active rows' gap; infinite where there is none
    known: Extended = math.inf  # their gap when rows were last restored; infinite where it is not known yet
    correction: float = INITIAL_CORRECTION  # the gap that an evaluation found, over the estimate before it

    @property
    def expects_target(self) -> bool:
        """Whether the gap asked for is reached, by this estimate."""
        return self.correction * self.gap <= self.tol * self.dual

    def corrected(self, total_weight: float, found: Evaluation) -> GapEstimate:
        """The estimate after an evaluation."""
        gap = total_weight * (found.primal - found.dual)
        correction = self.correction
        if 0.0 < gap < math.inf and 0.0 < self.gap < math.inf:
            correction = min(max(gap / self.gap, LEAST_CORRECTION), MOST_CORRECTION)
        return GapEstimate(self.tol, total_weight * found.dual, known=gap, correction=correction)
