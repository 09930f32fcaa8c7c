"""Where a dual solver begins."""

from __future__ import annotations

import math

import numpy as np

from ...core.problem import Point, Problem
from ...runtime.arrays import Floats


def dual_start(problem: Problem, warm: Point | None) -> tuple[Floats, float, Floats]:
    """w(beta), b(beta) and beta: 0, or the dual point of a warm start where it is one of this problem."""
    source = problem.source
    w, b, beta = np.zeros(source.d), problem.bias.centre, np.zeros(source.n)
    if warm is not None and warm.beta is not None:
        evaluated = problem.evaluate(Point(w, b, warm.beta))
        if math.isfinite(evaluated.dual):
            return evaluated.w_of_dual, evaluated.b, np.array(warm.beta, dtype=np.float64)
    return w, b, beta
