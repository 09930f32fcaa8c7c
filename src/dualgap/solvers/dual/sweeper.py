"""The layer below dual solvers: visiting rows of a batch and improving their dual variables, one at a time.

``dcd`` sweeps all rows, with shrinking (`ShrinkingSweeper`); dual sweeps that improve the lower bound of a
primal solver visit all of them in random order (`OrderedSweeper` of ``sdca``); solvers of rows on disk sweep
those in the cache (`CacheSweeper`). w need not be w(beta) of these rows alone: others may have contributed to
it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

from ...core.geometry import DualGeometry
from ...core.losses import Loss
from ...core.problem import Problem
from ...data.rows import Batch
from ...runtime.arrays import Floats

S = TypeVar("S")


class Subproblem(NamedTuple):
    """The rows at hand, with the loss and how dual steps move the model."""

    batch: Batch
    loss: Loss
    geometry: DualGeometry

    @classmethod
    def of(cls, problem: Problem) -> Subproblem:
        """All rows of a problem in memory."""
        return cls(problem.source.batch, problem.loss, problem.dual_geometry)


class DualSweeper(Protocol[S]):
    """Coordinate ascent over the rows at hand: for row i, with s = <w, x_i> + b and q its curvature,

        beta_i' = argmax -phi*(-beta') - s (beta' - beta_i) - q/2 (beta' - beta_i)^2
        w += scale c_i (beta_i' - beta_i) x_i,    b += bias_rate c_i (beta_i' - beta_i)

    w and beta are changed in place; b is part of the state.
    """

    def begin(self, batch: Batch, b: float, seed: int, d: int) -> S:
        """The state before the first visit."""
        ...

    def sweep(self, rows: Subproblem, w: Floats, beta: Floats, state: S, budget: int) -> S:
        """Make at most ``budget`` visits."""
        ...
