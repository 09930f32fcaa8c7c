"""Stochastic gradient descent as Zhang analyses it (ICML 2004; Algorithms 2.1 and 5.1), for every loss.

    w_t = w_{t-1} - eta_t (lam w_{t-1} + phi'(<w_{t-1}, X_t>, Y_t) X_t)
    r_t = r_{t-1} + eta_t - A M^2 eta_t^2 / 2
    v_t = (r_{t-1} v_{t-1} + (r_t - r_{t-1}) w_{t-1}) / r_t                      (the averaged model, if asked for)

with phi'^2 <= A phi + B and M = max |x|. ``weights=simple`` takes ``r_t = r_{t-1} + eta_t``, which is the same at a
constant eta. eta_t must stay below 2/(A M^2) where the mean is taken. The learning rate is constant (Zhang's advice:
small, and stop in time), eta0/t (1/(lam t) by default), eta0/sqrt(t), or Bottou's eta0/(1 + lam eta0 t); eta0 is
calibrated as in ``svmsgd.py`` where it is not given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ..errors import InputError
from ..problem import Problem
from .descent import BOTTOU, INVERSE, RATES, Rate, check_rate
from .primal import constant_feature, one_of
from .svmsgd import SvmSgd, calibrated

WEIGHTS = ("full", "simple")


@dataclass(frozen=True)
class SGD(SvmSgd):
    """Stochastic gradient descent with a choice of learning rates."""

    learning_rate: str = field(default=BOTTOU, metadata={"help": f"one of {', '.join(RATES)}"})
    average: bool = field(default=False, metadata={"help": "hand back the mean of the iterates, weighted by r_t"})
    weights: str = field(default="full", metadata={"help": "of the mean: full (Algorithm 5.1) or simple (eta_t)"})
    T0: int = field(default=1, metadata={"help": "first step of the mean"})

    name = "sgd"
    meaning = "stochastic gradient descent with a choice of learning rates and averaging, for every loss"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "learning_rate", RATES)
        one_of(self, "weights", WEIGHTS)
        if self.T0 < 1:
            raise InputError(f"T0={self.T0!r} must be a step >= 1")

    def check(self, problem: Problem, steps: float) -> None:
        """The mean must begin before the run ends, and its weights must be positive."""
        if not self.average:
            return
        if steps <= self.T0:
            raise InputError(f"T0={self.T0} is beyond the run of {steps:.0f} steps; lower T0 or raise max_steps")
        most, eta = math.inf, self.rate(problem).at(1)
        if self.discount(problem) > 0.0:
            most = 1.0 / self.discount(problem)
        if eta >= most:
            raise InputError(
                f"the first learning rate {eta:g} must be below 2/(A M^2) = {most:g}, or the mean has weights below 0; "
                "set eta0 below that, or average=false"
            )

    def rate(self, problem: Problem) -> Rate:
        """As asked for."""
        kind = RATES.index(self.learning_rate)
        if self.learning_rate == INVERSE and self.eta0 == 0.0:
            return Rate(kind, 1.0 / problem.lam, 1.0, 0.0)
        eta0 = self.eta0 or calibrated(self, problem)
        return check_rate(Rate(kind, eta0, 1.0, problem.lam * eta0), problem.lam)

    def mean_from(self, problem: Problem) -> float:
        """T0, where a mean is asked for."""
        return self.T0 if self.average else math.inf

    def discount(self, problem: Problem) -> float:
        """A M^2 / 2, for rho_t = eta_t - A M^2 eta_t^2 / 2."""
        if self.weights == "simple":
            return 0.0
        A = problem.loss.zhang_pairs[0][0]
        square = problem.source.norms + constant_feature(problem)
        share = problem.source.weight * (problem.present / problem.total_weight)
        return 0.5 * A * float(np.max(share * square))
