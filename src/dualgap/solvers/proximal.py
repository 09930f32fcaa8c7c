"""A free bias held by a prox_strength: the centred problems that stand in for one whose bias is not
regularised.

``mu/2 (b - centre)^2`` with ``mu = lam / (SHARE mean |x|^2)``: as if the bias were a feature with a small
part of a row's length. Measured on a9a, w8a and wikitox-bow at C = 1: shares of 0.01 to 0.1 need about
equally many epochs, 1 needs 1.5 times and 10 over 4 times as many. Where lam is large that would hold b too
firmly, as z = 1/N sum c beta is at most of the size of a slope of the loss: mu is at most FIRMEST times the
loss of the all-zero model over mean y^2, a slope over a score. (At C = 1e-4 on iris that turns thousands of
epochs into a handful. Letting mu adapt to the fall of z, as is often done, ran away.)
"""

from __future__ import annotations

import numpy as np

from ..core.bias import Centred
from ..core.problem import Problem

SHARE = 0.03
FIRMEST = 0.1


def centred(problem: Problem, centre: float, mu: float) -> Problem:
    """The problem with its bias held at the centre."""
    return problem.with_bias(Centred(centre, mu))


def prox_strength(problem: Problem) -> float:
    """How firmly: mu."""
    square = problem.mean_square
    target = problem.mean(np.square(problem.source.y))
    firmest = (
        FIRMEST * problem.value_at_zero / target if target > 0.0 and problem.value_at_zero > 0.0 else np.inf
    )
    return min(problem.lam / (SHARE * square if square > 0.0 else 1.0), firmest)
