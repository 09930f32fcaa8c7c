"""What training asks of a problem: sizes, an identity, the evaluation of points, certificates.

``Problem`` is the implementation for one score a row, ``JointProblem`` (``joint/problem.py``) the one beside
it for K scores a row.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from ..runtime.arrays import Floats
from .certificate import Certificate, Form
from .evaluation import Evaluation, Point


class Size(NamedTuple):
    """Numbers of rows, columns and stored entries."""

    n: int
    d: int
    nnz: int
    epoch_size: int  # rows of positive weight
    in_memory: bool  # all rows are in memory


class Identity(NamedTuple):
    """Loss, lam, bias and a digest of the data: a run is resumed only with the problem it was made for."""

    loss: str
    lam: float
    bias: str
    data: str


@runtime_checkable
class Objective(Protocol):
    """A convex problem that can evaluate primal and dual points."""

    @property
    def size(self) -> Size: ...
    @property
    def identity(self) -> Identity: ...
    def zero_point(self) -> tuple[Point, Evaluation]: ...
    def evaluate(self, point: Point) -> Evaluation: ...
    def feasible(self, beta: Floats) -> Floats: ...
    def certificate(
        self, primal: float, primal_error: float, dual: float, dual_error: float
    ) -> Certificate: ...
    def in_form(self, certificate: Certificate, form: Form) -> Certificate: ...
