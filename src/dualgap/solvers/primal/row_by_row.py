"""What solvers share that visit one row a step: order, dual point, start, and learning from a stream.

A solver adds a model (arrays that its kernel changes in place), a cursor (the numbers that its kernel
replaces) and the kernel. A weight c_i multiplies the loss of its row by weight_scale c_i (see
``core/geometry.py``).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Generic, Self

from ...core.geometry import PrimalGeometry
from ...core.losses import Loss
from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats
from ...runtime.options import option
from ...runtime.random import GIVEN, PERMUTATION
from ...training.solver import Capabilities, Solver, Status
from ..order import Order
from .options import BIASES, bias_step_option, duals_option
from .polishing import Polished, polish_option
from .slopes import SlopeMeans
from .state import ORDERS, C, M, State


@dataclass(frozen=True)
class RowByRow(Polished, Solver[State[M, C]], Generic[M, C]):
    """A solver that visits one row a step."""

    seed: int = option(0, "seed of the random order")
    order: str = option(
        PERMUTATION,
        "permutation (a fresh one each epoch), fixed (one for all), random (with replacement) or given",
        choices=ORDERS,
    )
    duals: bool = duals_option()
    bias_step: float = bias_step_option()
    polish: int = polish_option()

    capabilities = Capabilities(biases=BIASES, streams=True)

    # What a solver adds.

    @abstractmethod
    def begin(self, problem: Problem, warm: Point | None) -> tuple[M, C]:
        """Model and cursor at w = 0, or at the model of a warm start."""

    @abstractmethod
    def visit(
        self, problem: Problem, loss: Loss, geometry: PrimalGeometry, state: State[M, C], stop: int
    ) -> State[M, C]:
        """Make steps until ``stop`` rows have been visited in all."""

    @abstractmethod
    def model_of(self, state: State[M, C]) -> tuple[Floats, float]:
        """w and b."""

    def descended(self, problem: Problem) -> tuple[Loss, PrimalGeometry]:
        """The loss and the geometry of the steps: those of the problem."""
        return problem.loss, problem.primal_geometry(self.bias_step)

    @property
    def keeps_duals(self) -> bool:
        """Whether a dual point is made of slopes."""
        return self.duals

    # The contract.

    def start(self, problem: Problem, warm: Point | None) -> State[M, C]:
        """Begin at w = 0, or at the model of a warm start."""
        model, cursor = self.begin(problem, warm)
        means = SlopeMeans.of(problem.source.n if self.keeps_duals else 0)
        return State(model, Order.of(problem.source.batch, self.seed), means, cursor)

    def step(
        self, problem: Problem, state: State[M, C], budget: int, news: Evaluation | None
    ) -> tuple[State[M, C], Status]:
        """Visit that many rows."""
        loss, geometry = self.descended(problem)
        return self.visit(problem, loss, geometry, state, state.counts.visits + budget), Status()

    def point(self, problem: Problem, state: State[M, C]) -> Point:
        """The model, and the means of the slopes as a dual point."""
        w, b = self.model_of(state)
        return Point(w, b, state.means.dual_point(problem))

    def for_stream(self) -> Self:
        """The solver for rows that come one after another and are not kept; refuses options that need more
        than that.
        """
        return replace(self, order=GIVEN, duals=False)

    @property
    def how(self) -> int:
        """The order as kernels know it."""
        return ORDERS.index(self.order)


def intercepts(problem: Problem, warm: Point | None) -> tuple[float, float]:
    """The intercept to begin with, as the part that shrinks with w and the part that does not."""
    b = 0.0 if warm is None else float(warm.b)
    return (0.0, b) if problem.bias.free else (b, 0.0)
