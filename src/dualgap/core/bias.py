"""The kinds of bias. Each adds a penalty ``r(b)`` to the objective and the matching term to the dual.

With ``z = 1/N sum_i c_i beta_i`` the dual gains ``min_b (r(b) - z b)``:

============================  =========================  =====================  ============================
kind                          r(b)                       best b                 term of the dual
============================  =========================  =====================  ============================
``NoBias``                    b = 0                      0                      0
``Centred(centre, strength)`` strength/2 (b - centre)^2  centre + z / strength  -centre z - z^2 / (2 strength)
``AugmentedBias(rho)``        Centred(0, lam / rho^2)    rho^2 z / lam          -rho^2 z^2 / (2 lam)
``ExactBias``                 0                          any, and z must be 0   0 where z = 0, else -inf (*)
============================  =========================  =====================  ============================

(*) ``bounds.dual_value`` is a lower bound also for a z that is 0 up to rounding.

``AugmentedBias(rho)`` is the constant feature ``rho`` of Panagiotakopoulos and Tsampouka (section 2). Every
kind but the exact one is a case of Centred, so a dual solver need not know the kind: it starts b at
``centre`` and adds ``rate * c_i * step`` with each dual step, where ``rate = 1 / (N strength)`` (0 for
NoBias). A free bias is found by solving a sequence of centred problems (the proximal point method,
``solvers/free_bias.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..runtime.arrays import Floats
from ..runtime.checks import number, shown
from ..runtime.errors import InputError, nearest
from ..runtime.sums import total_of


class Bias(Protocol):
    """The kind of bias: its penalty r(b) and its constraint on the duals."""

    @property
    def kind(self) -> str: ...
    @property
    def centre(self) -> float: ...  # where b is while beta = 0
    @property
    def rho(self) -> float: ...  # the constant feature behind b; 0 without one
    @property
    def free(self) -> bool: ...  # b is not regularised
    def strength(self, lam: float) -> float: ...
    def feasible(self, beta: Floats, weight: Floats) -> Floats: ...


@dataclass(frozen=True)
class NoBias:
    """The score is ``<w, x>``."""

    kind = "none"
    centre = 0.0
    rho = 0.0
    free = False

    def strength(self, lam: float) -> float:
        """Infinite: b = 0."""
        return np.inf

    def feasible(self, beta: Floats, weight: Floats) -> Floats:
        """All dual points are feasible; returned unchanged."""
        return beta


@dataclass(frozen=True)
class AugmentedBias:
    """A constant feature of value rho, regularised like the others."""

    rho: float = 1.0
    kind = "augmented"
    centre = 0.0
    free = False

    def __post_init__(self) -> None:
        if not 1e-100 <= self.rho <= 1e100:
            raise InputError(
                f"rho={self.rho!r} must lie between 1e-100 and 1e100 (use bias='none' to have no bias)"
            )

    def strength(self, lam: float) -> float:
        """``b = rho w_0`` with ``lam/2 w_0^2`` in the objective."""
        return lam / self.rho**2

    def feasible(self, beta: Floats, weight: Floats) -> Floats:
        """All dual points are feasible; returned unchanged."""
        return beta


@dataclass(frozen=True)
class Centred:
    """``mu/2 (b - centre)^2``: one step of the proximal point method for a free bias."""

    centre: float
    mu: float
    kind = "centred"
    rho = 0.0
    free = False

    def strength(self, lam: float) -> float:
        """mu, whatever lam is."""
        return self.mu

    def feasible(self, beta: Floats, weight: Floats) -> Floats:
        """All dual points are feasible; returned unchanged."""
        return beta


@dataclass(frozen=True)
class ExactBias:
    """A bias that is not regularised. Dual points must satisfy ``sum_i c_i beta_i = 0``."""

    kind = "exact"
    centre = 0.0
    rho = 0.0
    free = True

    def strength(self, lam: float) -> float:
        """0: there is no penalty on b."""
        return 0.0

    def feasible(self, beta: Floats, weight: Floats) -> Floats:
        """Scale the positive or the negative part of beta down until the weighted sum vanishes.

        Feasible for every loss, since the dual bounds contain 0.
        """
        share = weight * beta
        up, down = total_of(share[share > 0]), -total_of(share[share < 0])
        if up == down:
            return beta
        sign, factor = (1.0, down / up) if up > down else (-1.0, up / down)
        return np.where(sign * beta > 0, beta * factor, beta)


BIASES = ("none", "augmented", "exact")  # as a user names them


def make_bias(kind: str | Bias, rho: float = 1.0) -> Bias:
    """A bias from its name on the command line."""
    if isinstance(kind, NoBias | AugmentedBias | Centred | ExactBias):
        return kind
    rho = number("rho", rho, zero=True)
    if not isinstance(kind, str):
        raise InputError(f"bias={shown(kind)} must be 'none', 'augmented' or 'exact'")
    if kind == "none":
        return NoBias()
    if kind == "augmented":
        return AugmentedBias(rho)
    if kind == "exact":
        return ExactBias()
    raise InputError(f"unknown bias {shown(kind)}; {nearest(kind, BIASES)}")
