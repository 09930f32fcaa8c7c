"""What the cutting-plane solvers share besides the master problem."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...training.solver import Capabilities, Solver, Status
from ...training.stopping import Reason
from .master import Cuts, dual_point, exhausted


class CutState(Protocol):
    """A primal point, and the cuts so far."""

    @property
    def cuts(self) -> Cuts: ...
    @property
    def w(self) -> Floats: ...
    @property
    def b(self) -> float: ...
    @property
    def counts(self) -> Counts: ...


S = TypeVar("S", bound=CutState)

ABILITIES = Capabilities(losses=("hinge",), offsets=False, moves_bias=True, package="daqp")


@dataclass(frozen=True)
class CuttingPlane(Solver[S]):
    """A solver that adds a cut a round and solves the master problem over all cuts.

    A step is one round, whatever the budget, and ends with a point worth evaluating.
    """

    def step(self, problem: Problem, state: S, budget: int, news: Evaluation | None) -> tuple[S, Status]:
        """One round."""
        state = self.round(problem, state)
        return state, Status("convenient", self.own_rule(problem, state) or exhausted(state.cuts))

    def rows_per_iteration(self, problem: Problem) -> int:
        """A round reads all rows."""
        return problem.epoch_size

    @abstractmethod
    def round(self, problem: Problem, state: S) -> S:
        """One cut more, and the solution of the master problem."""

    @abstractmethod
    def own_rule(self, problem: Problem, state: S) -> Reason | None:
        """The paper's rule for stopping, where it is asked for."""

    def point(self, problem: Problem, state: S) -> Point:
        """The solver's primal point, and the dual point behind the master's multipliers."""
        return Point(state.w, state.b, dual_point(problem, state.cuts))


def primal_start(problem: Problem, warm: Point | None) -> tuple[Floats, float]:
    """w = 0 and b at its centre, or those of the warm start."""
    if warm is None:
        return np.zeros(problem.source.d), problem.bias.centre
    return np.array(warm.w, dtype=np.float64), float(warm.b)


def after_round(problem: Problem, counts: Counts, entries: int) -> Counts:
    """The counts after a round that read so many entries: an epoch of visits and one update."""
    return Counts(counts.visits + problem.epoch_size, counts.updates + 1, counts.entries + entries)
