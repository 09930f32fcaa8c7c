"""A better lower bound for solvers that have only a rough dual point: a few dual sweeps from the best one
known.

The slopes of the loss at a primal solver's w make a dual point that proves little (a gap of 22% on a9a and
1630% on w8a for a w within 1e-5 of the optimum); counters and running means are better, and some sweeps of
dual coordinate ascent from there are what a run can stop by. They cost about three passes over the data each,
count as certifying, and only ever improve the bound: the model is the solver's own.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from ...core.problem import Point, Problem
from ...runtime.arrays import Floats
from ...runtime.errors import InputError
from ..dual.sdca import SDCA
from ..proximal import centred, prox_strength


def polish_option(sweeps: int = 1) -> Any:
    """The option ``polish``."""
    return field(
        default=sweeps,
        metadata={"help": "dual sweeps at each certificate, for a better lower bound (0: none)"},
    )


class Polished:
    """For solvers with the option ``polish``."""

    polish: int

    def check_polish(self) -> None:
        """A number of sweeps."""
        if self.polish < 0:
            raise InputError(f"polish={self.polish!r} must be a number of sweeps >= 0")

    def improve_dual(self, problem: Problem, beta: Floats, b: float, visits: int) -> Floats | None:
        """A dual point at least as good as beta; the order of the sweeps is another one at every number of
        visits.
        """
        if self.polish == 0 or problem.lam == 0.0:
            return None
        if problem.bias.kind == "exact":
            problem = centred(problem, b, prox_strength(problem))
        ascent = SDCA(seed=visits)
        state = ascent.start(problem, Point(beta[:0], b, beta))
        polished: Floats = ascent.step(problem, state, self.polish * problem.epoch_size, None).beta
        return polished
