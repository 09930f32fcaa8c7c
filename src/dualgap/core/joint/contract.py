"""The contract of a joint loss ``phi(s, y)`` of K scores a row.

Conventions
-----------
``s = W^T x + b`` has one score for each of K >= 2 classes, ``y`` is the number of the row's class, 0 to
K - 1. Every joint loss is convex in s, its infimum is 0, it does not change if all scores grow by the same
amount, and ``phi(s, y) >= s_k - s_y`` for every k: on the last two rests the bound on a free intercept.

A dual point is a row of K numbers, ``beta = e_y - p`` with p in the simplex: -beta is a subgradient of the
loss. So beta_k <= 0 for k != y, and beta_y = -sum of the others, the *mass* of the row, is at most 1. What is
stored as beta_y is never read: floats cannot satisfy that equation, and the mass is computed from the others.

A loss is a ``NamedTuple`` whose fields are its parameters, decorated with ``joint_loss_type``.

Methods, which kernels may call; arrays are rows of K numbers
--------------------------------------------------------------
``row_loss(y, scores, off)``
    phi, and a bound on the sum of the |slopes| of phi at all points whose scores differ by ``off`` at most.
    The value errs by a relative ``gamma(K + 16)`` at most, but for what the scores' own errors make of it;
    for the differences of scores and for exp, 8 units of 1 + 2 max |s| are to be part of ``off``.
``row_gradient(y, scores, out)``
    p - e_y, the gradient, or a subgradient, into ``out``.
``row_dual(y, beta, mass)``
    -phi*(-beta), which is never negative, for a feasible row.
``row_dual_error(mass, value, error)``
    A bound on the error of that value, where every beta_k may be off by a relative ``error``.
``row_step(y, scores, beta, curvature, out)``
    The dual step: the p that maximises ``-phi*(p - e_y) + <s, p> - curvature/2 |p - (e_y - beta)|^2``, into
    ``out``.
``row_idle(y, scores, beta, out)``
    How many classes are not idle, at least 1; ``out_k`` is 1 where class k is idle, else 0: p_k is 0, and a
    dual step leaves it so. Where all K are in use ``out`` need not be filled.
``row_at_zero(classes)``
    phi(0, y), which is the same for every y.

Constants
---------
``name``, ``task`` ("classes"), ``summary``
    For registry and help.
``smoothness``
    A bound on the second derivative along any direction of length 1; infinite where there is none.
``probabilistic``
    phi is minus the logarithm of the probability exp(s_y) / sum_k exp(s_k) of y.
``hard``, ``hard_margin``, ``positive``, ``below_one``, ``offset``, ``zhang_pairs``
    As in `core.losses.contract`; no joint loss has any of them.
"""

from __future__ import annotations

import math
from typing import Any, Protocol, TypeVar

from ...runtime.arrays import Floats
from ...runtime.jit import inner, kernel_type
from ...runtime.sums import gamma
from ..losses.contract import JOINT

C = TypeVar("C", bound=type)

_CONSTANTS: dict[str, Any] = {
    "task": JOINT,
    "smoothness": math.inf,
    "probabilistic": False,
    "hard": False,
    "hard_margin": None,
    "positive": (),
    "below_one": (),
    "offset": False,
    "zhang_pairs": (),
}


class JointLoss(Protocol):
    """What joint problems and solvers may ask of a loss; see the head of this file."""

    @property
    def name(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def smoothness(self) -> float: ...
    @property
    def probabilistic(self) -> bool: ...
    @property
    def hard(self) -> bool: ...
    def row_loss(self, y: int, scores: Floats, off: float) -> tuple[float, float]: ...
    def row_gradient(self, y: int, scores: Floats, out: Floats) -> None: ...
    def row_dual(self, y: int, beta: Floats, mass: float) -> float: ...
    def row_dual_error(self, mass: float, value: float, error: float) -> float: ...
    def row_step(self, y: int, scores: Floats, beta: Floats, curvature: float, out: Floats) -> None: ...
    def row_idle(self, y: int, scores: Floats, beta: Floats, out: Floats) -> int: ...
    def row_at_zero(self, classes: int) -> float: ...
    def _asdict(self) -> dict[str, Any]: ...


def joint_loss_type(cls: C) -> C:
    """Let kernels call the methods of a joint loss, and give it the constants that most have in common."""
    for name, value in _CONSTANTS.items():
        if name not in vars(cls):
            setattr(cls, name, value)
    return kernel_type(cls)


@inner
def mass_of(y: int, beta: Floats) -> float:
    """The mass of a dual row: minus the sum of beta_k over k != y. Infinite where the row is not feasible.

    A mass above 1 by no more than rounding is 1: `mass_error` allows for it.
    """
    total = 0.0
    for k in range(beta.shape[0]):
        if k != y:
            if not beta[k] <= 0.0:
                return math.inf
            total -= beta[k]
    if total <= 1.0:
        return total
    return 1.0 if total <= 1.0 + 2.0 * gamma(beta.shape[0] + 2.0) else math.inf


@inner
def mass_error(classes: float) -> float:
    """A relative error that covers what rounding leaves open of a dual row.

    The floats beta_k, k != y, stand for a row that is feasible exactly: themselves, times a factor just below
    1 where their exact sum exceeds 1. A computed mass of at most 1 is off by ``gamma(K)``, and one that was
    cut off at 1 by ``2 gamma(K + 2) + gamma(K)``: so each beta_k, and the mass, is that of the exact row
    within a relative ``4 gamma(K + 2)``.
    """
    return 4.0 * gamma(classes + 2.0)
