"""SvmSgd: Bottou's stochastic gradient descent, version 2, for every loss.

    eta_t = eta0 / (1 + lam eta0 t)

which is 1/(lam (t + t0)) with ``t0 = 1/(lam eta0)``: late steps are those of Pegasos, early ones no longer
than eta0. Unless it is given, eta0 is found on the first 1,000 rows: from 1 it is doubled or halved as long
as the objective after one pass over them falls. Rows are assumed to come in random order (``order=given``
leaves them as they are).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from ...core.problem import Point, Problem
from ...data.sources import View
from ...runtime.errors import InputError
from ...runtime.random import GIVEN
from .descent import Descent, check_rate
from .options import eta0_option
from .rates import BOTTOU, Rate, make_rate

SAMPLE = 1000  # rows on which eta0 is tried


@dataclass(frozen=True)
class SvmSgd(Descent):
    """Bottou's stochastic gradient descent."""

    eta0: float = eta0_option()

    name = "svmsgd"
    summary = "Bottou's stochastic gradient descent with a calibrated learning rate, for every loss"
    power: ClassVar[float] = 1.0

    def rate(self, problem: Problem) -> Rate:
        """``eta0 / (1 + lam eta0 t)^power``."""
        eta0 = self.eta0 or calibrated(self, problem)
        return check_rate(make_rate(BOTTOU, eta0, self.power, problem.lam * eta0), problem.lam)


def calibrated(solver: SvmSgd, problem: Problem) -> float:
    """The eta0 whose pass over the first rows ends with the smallest objective, among powers of 2."""
    sample = _head(problem, SAMPLE)

    def cost(eta0: float) -> float:
        trial = replace(solver, eta0=eta0, order=GIVEN, duals=False)
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


def _head(problem: Problem, count: int) -> Problem:
    """The problem of the first rows alone, unless all of them have weight 0."""
    source = problem.source
    assert isinstance(source, View)
    last = min(count, source.n)
    if last == source.n or not source.weight[:last].any():
        return problem
    head = View(source.data.head(last), source.y[:last], source.weight[:last])
    return Problem(head, problem.loss, problem.lam, problem.bias)
