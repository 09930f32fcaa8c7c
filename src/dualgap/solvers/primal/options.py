"""What the solvers of the primal problem have in common: options, checks, and what a kind of bias means to
them.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any

import numpy as np

from ...core.problem import Problem
from ...runtime.errors import InputError

PRECISIONS = ("float64", "float32")
BIASES = ("none", "augmented", "exact")


def precision_option() -> Any:
    """The option ``precision``."""
    return field(
        default="float64",
        metadata={"help": "of the model while training: float64 or float32 (a mean takes float64)"},
    )


def bias_step_option() -> Any:
    """The option ``bias_step``: the papers' step for a bias that is not regularised, as a part of the step
    for w.
    """
    return field(default=0.01, metadata={"help": "with bias=exact: the bias's step as a part of that of w"})


def duals_option() -> Any:
    """The option ``duals``."""
    return field(
        default=True, metadata={"help": "keep a number a row for a dual point (false: less memory, no bound)"}
    )


def rebound(problem: Problem, state: Any) -> Any:
    """A solver's state for the rows of another problem, which are presented as they come; no duals are
    kept.
    """
    rows = np.flatnonzero(problem.source.weight).astype(np.uint32)
    return state._replace(rows=rows, picks=rows.copy(), walk=state.walk._replace(position=-1))


def not_negative(solver: Any, *names: str) -> None:
    """Those options must be numbers >= 0."""
    for name in names:
        value = getattr(solver, name)
        if not (math.isfinite(value) and value >= 0):
            raise InputError(f"{name}={value!r} must be a finite number >= 0")


def one_of(solver: Any, name: str, values: tuple[str, ...]) -> None:
    """That option must be one of some words."""
    value = getattr(solver, name)
    if value not in values:
        raise InputError(f"{name}={value!r} must be one of {', '.join(values)}")


def constant_feature(problem: Problem) -> float:
    """The square of the constant feature behind a regularised bias: a step by x moves b by that; 0 without
    one.
    """
    return problem.bias.rho * problem.bias.rho
