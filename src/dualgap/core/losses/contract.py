"""The contract of a loss ``phi(score, y)``: conventions, methods and constants.

Conventions
-----------
``score = <w, x> + b``. Classification losses take ``y`` in {-1, +1}, regression losses any real ``y``. Every
loss is convex in the score, and its infimum over scores is 0 for every y: hence phi*(0) = 0, D(0) = 0, and
rows whose dual variable is 0 add nothing to the dual value.

The dual variable ``beta`` of a row is signed: ``-beta`` is a subgradient of the loss, so that ``w(beta) =
1/(lam N) sum c beta x`` for classification and regression alike. For classification ``a = y beta >= 0`` is
the usual dual variable divided by its bound C c.

A loss is a ``NamedTuple`` whose fields are its parameters (numbers >= 0), decorated with ``loss_type``.

Methods, which kernels may call
-------------------------------
``value(y, score)``
    phi.
``derivative(y, score)``
    phi', a subgradient at kinks; which one is stated in the class.
``curvature(y, score)``
    phi''; where it jumps, the larger of the two values; 0 for piecewise linear losses.
``conjugate(y, beta)``
    phi*(-beta) = sup over scores of (-beta score - phi); infinite where beta is infeasible.
``dual_bounds(y)``
    The interval of feasible beta: where phi*(-beta) is finite. It contains 0.
``dual_prox(y, score, beta, curvature)``
    The dual step: the ``b`` that maximises ``-phi*(-b) - score (b - beta) - curvature/2 (b - beta)^2``. It
    returns the new value and not the difference, because ``beta + (b - beta)`` may miss a bound by a rounding
    error, and the dual value of an infeasible point is minus infinity.
``dual_subdifferential(y, score, beta)``
    The left and right derivative of the negated dual along ``a`` (classification) or ``beta`` (regression),
    per unit of weight: the ``G`` of Hsieh et al. (ICML 2008), infinite beyond a bound. ``beta`` is optimal
    iff left <= 0 <= right.

Constants
---------
``name``, ``task`` ("classification" or "regression"), ``summary``
    For registry and help.
``lipschitz``, ``smoothness``
    Bounds on |phi'| and |phi''|, infinite where there are none.
``zhang_pairs``
    All (A, B) with ``phi'^2 <= A phi + B`` that Zhang (ICML 2004, section 4) gives or that follow at once.
``margin``
    The loss is 0 if and only if ``y score >= margin``: infinite for the logistic loss, NaN for regression.
``quadratic``
    phi'' is the same everywhere.
``hard``
    phi takes the value infinity: a primal point may be infeasible.
``hard_margin``
    What the loss becomes at C = infinity, or None where that is no loss of ours.
``probabilistic``
    phi is minus the logarithm of the probability 1 / (1 + exp(-y score)) of y.
``positive``
    The parameters that must be > 0, because they divide or bound; the others may be 0.
``below_one``
    The parameters that must be < 1.
``offset``
    Targets are ``y + i o``: rows have offsets (``offsets.WithOffsets``).

For Python alone ---------------- ``ramps(y)`` A loss made of lines and parabolas, as a sum: phi = sum of
    ``max over low <= beta <= high of beta (at - score) - bend/2 beta^2``, for an array of targets; bounds
    may be infinite. Other losses have none.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol, TypeVar

from ...runtime.arrays import Floats
from ...runtime.jit import kernel_type

C = TypeVar("C", bound=type)

JOINT = "classes"  # the task of joint losses of K scores a row, which have a contract of their own

_DEFAULTS: dict[str, Any] = {
    "margin": math.nan,
    "quadratic": False,
    "hard": False,
    "hard_margin": None,
    "probabilistic": False,
    "positive": (),
    "below_one": (),
    "offset": False,
    "ramps": None,
}


class Ramp(NamedTuple):
    """``max over low <= beta <= high of beta (at - score) - bend/2 beta^2``, for every row."""

    at: Floats
    low: Floats
    high: Floats
    bend: float = 0.0


def _no_ramps(self: Any, y: Floats) -> tuple[Ramp, ...]:
    """The loss is not made of lines and parabolas."""
    return ()


class Loss(Protocol):
    """What problems and solvers may ask of a loss; see the head of this file."""

    @property
    def name(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def lipschitz(self) -> float: ...
    @property
    def smoothness(self) -> float: ...
    @property
    def zhang_pairs(self) -> tuple[tuple[float, float], ...]: ...
    @property
    def margin(self) -> float: ...
    @property
    def quadratic(self) -> bool: ...
    @property
    def hard(self) -> bool: ...
    @property
    def hard_margin(self) -> Loss | None: ...
    @property
    def probabilistic(self) -> bool: ...
    @property
    def positive(self) -> tuple[str, ...]: ...
    @property
    def below_one(self) -> tuple[str, ...]: ...
    @property
    def offset(self) -> bool: ...
    def value(self, y: float, score: float) -> float: ...
    def derivative(self, y: float, score: float) -> float: ...
    def curvature(self, y: float, score: float) -> float: ...
    def conjugate(self, y: float, beta: float) -> float: ...
    def dual_bounds(self, y: float) -> tuple[float, float]: ...
    def dual_prox(self, y: float, score: float, beta: float, curvature: float) -> float: ...
    def dual_subdifferential(self, y: float, score: float, beta: float) -> tuple[float, float]: ...
    def ramps(self, y: Floats) -> tuple[Ramp, ...]: ...
    def _asdict(self) -> dict[str, Any]: ...


def loss_type(cls: C) -> C:
    """Let kernels call the methods of a loss, and give it the constants that most losses have in common."""
    for name, value in _DEFAULTS.items():
        if name not in vars(cls):
            setattr(cls, name, _no_ramps if name == "ramps" else value)
    return kernel_type(cls)
