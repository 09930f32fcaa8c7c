"""ASGD: averaged stochastic gradient descent (Bottou, after Xu 2011), for every loss.

    eta_t = eta0 / (1 + lam eta0 t)^0.75,    the model is the plain mean of the iterates from step ``tstart``
    on

Polyak and Juditsky (1992): steps that fall more slowly than 1/t, averaged, are as good asymptotically as the
best matrix of learning rates. eta0 is calibrated as in ``svmsgd.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...core.problem import Problem
from ...runtime.errors import InputError
from .svmsgd import SvmSgd


@dataclass(frozen=True)
class ASGD(SvmSgd):
    """Averaged stochastic gradient descent."""

    tstart: int = field(default=0, metadata={"help": "first step of the average (0: after one epoch)"})

    name = "asgd"
    summary = "averaged stochastic gradient descent with a calibrated learning rate, for every loss"
    power = 0.75

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tstart < 0:
            raise InputError(f"tstart={self.tstart!r} must be a number of steps >= 0 (0: after one epoch)")

    def mean_from(self, problem: Problem) -> float:
        """As asked for, or after an epoch."""
        return self.tstart or problem.epoch_size + 1
