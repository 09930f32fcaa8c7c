"""SvmSgd: Bottou's stochastic gradient descent, version 2, for every loss.

    eta_t = eta0 / (1 + lam eta0 t)

which is 1/(lam (t + t0)) with ``t0 = 1/(lam eta0)``: late steps are those of Pegasos, early ones no longer
than eta0. Unless it is given, eta0 is found on the first 1,000 rows of the order asked for: from 1 it is
doubled or halved as long as the objective after one pass over them falls. Bottou's programs take rows as
they come, the same way in every epoch, and assume that they have been shuffled: that is ``order=fixed``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...core.problem import Point, Problem
from ...data.rows import as_matrix
from ...data.sources import View, view
from ...runtime.arrays import canonical
from ...runtime.errors import InputError
from ...runtime.random import GIVEN
from ...training.solver import Preset
from ..order import Order
from .descent import Descent, check_rate
from .options import eta0_option
from .rates import BOTTOU, Rate, make_rate
from .state import FIXED, begin_epoch

SAMPLE = 1000  # rows on which eta0 is tried


@dataclass(frozen=True)
class SvmSgd(Descent):
    """Bottou's stochastic gradient descent."""

    eta0: float = eta0_option()

    name = "svmsgd"
    summary = "Bottou's stochastic gradient descent with a calibrated learning rate, for every loss"
    power: ClassVar[float] = 1.0
    papers: ClassVar[Mapping[str, Preset]] = {
        "bottou-2010": Preset(
            "Bottou (2010), svmsgd of sgd-2.0; Table 8 of Panagiotakopoulos and Tsampouka (2013)",
            {"order": FIXED, "precision": "float32"},
            "The program takes shuffled rows as they come (order=given); order=fixed shuffles them once.",
        )
    }

    def rate(self, problem: Problem) -> Rate:
        """``eta0 / (1 + lam eta0 t)^power``."""
        eta0 = self.eta0 or calibrated(self, problem)
        return check_rate(make_rate(BOTTOU, eta0, self.power, problem.lam * eta0), problem.lam)


def calibrated(solver: SvmSgd, problem: Problem) -> float:
    """The eta0 whose pass over the first rows ends with the smallest objective, among powers of 2."""
    sample = _sample(solver, problem)

    def cost(eta0: float) -> float:
        trial = replace(solver, order=GIVEN, duals=False, eta0=eta0)
        try:
            state, _ = trial.step(sample, trial.start(sample, None), sample.epoch_size, None)
        except InputError:  # too large for lam
            return math.inf
        w, b = trial.model_of(state)
        value = sample.evaluate(Point(w, b, None)).primal
        return value if value < sample.value_at_zero else math.inf  # no better than w = 0: too long a step

    # beyond it the rate is 1/(lam t)
    most = min(2.0**40, 1.0 / problem.lam if problem.lam > 0.0 else math.inf)
    best = min(1.0, most)
    least = cost(best)
    factor = 2.0 if cost(2.0 * best) < least else 0.5
    while best > 2.0**-40 and factor * best <= most:
        value = cost(factor * best)
        if not (value < least or math.isinf(least)):
            break
        best, least = factor * best, value
    if math.isinf(least):  # no step helps on these rows, which may be empty or all alike
        return min(most, 1.0 / max(problem.max_squared_norm, 1e-12))
    return best


def _sample(solver: SvmSgd, problem: Problem) -> Problem:
    """The problem of the first rows alone, in the order in which the solver will visit them."""
    source = problem.source
    assert isinstance(source, View)
    order = Order.of(source.batch, solver.seed)
    begin_epoch(order, solver.how, True)
    first = order.picks[:SAMPLE].astype(np.int64)
    rows = as_matrix(source.rows, source.d)[first]
    y = source.y[first]
    part = replace(view(rows, y.real, source.weight[first]), y=canonical(y, y.dtype))  # y may have offsets
    return Problem(part, problem.loss, problem.lam, problem.bias)
