"""Learning rates of stochastic gradient descent, callable from kernels."""

from __future__ import annotations

import math
from typing import NamedTuple

from ...runtime.jit import kernel_type
from ...training.states import Fixed, FixedCount, state_class

CONSTANT, INVERSE, SQRT, BOTTOU = RATES = ("constant", "inverse", "sqrt", "bottou")


@state_class
@kernel_type
class Rate(NamedTuple):
    """eta_t: eta0, eta0/t, eta0/sqrt(t), or eta0/(1 + slowing t)^power, where Bottou has slowing = lam
    eta0.
    """

    kind: FixedCount  # as in RATES
    eta0: Fixed
    power: Fixed
    slowing: Fixed

    def at(self, t: int) -> float:
        """The learning rate of step t = 1, 2, ..."""
        if self.kind == 0:
            return self.eta0
        if self.kind == 1:
            return self.eta0 / t
        if self.kind == 2:
            return self.eta0 / math.sqrt(t)
        if self.power == 1.0:
            return self.eta0 / (1.0 + self.slowing * t)
        return self.eta0 * math.pow(1.0 + self.slowing * t, -self.power)


def make_rate(kind: str, eta0: float, power: float = 1.0, slowing: float = 0.0) -> Rate:
    """A rate by the name of its kind."""
    return Rate(RATES.index(kind), float(eta0), float(power), float(slowing))
