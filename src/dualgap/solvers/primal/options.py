"""Options that several solvers of the primal problem share."""

from __future__ import annotations

from typing import Any

from ...runtime.options import option

PRECISIONS = ("float64", "float32")
BIASES = ("none", "augmented", "exact")  # of all these solvers


def precision_option() -> Any:
    """The option ``precision``."""
    return option(
        "float64",
        "of the model while training: float64 or float32 (a mean takes float64)",
        choices=PRECISIONS,
    )


def bias_step_option() -> Any:
    """The option ``bias_step``: how long the papers make the step of a bias that is not regularised."""
    return option(0.01, "with bias=exact: the bias's step as a part of that of w", low=0)


def duals_option() -> Any:
    """The option ``duals``."""
    return option(True, "keep a number a row for a dual point (false: less memory, no bound)")


def eta0_option(otherwise: str = "the best on 1,000 rows") -> Any:
    """The option ``eta0``, which is chosen by the solver where it is 0."""
    return option(0.0, f"the first learning rate (0: {otherwise})", low=0)
