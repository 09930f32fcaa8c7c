"""NORMA: online gradient descent with a margin (Kivinen, Smola and Williamson, IEEE TSP 2004), for the hinge
loss.

    w <- (1 - eta_t lam) w + eta_t y x [y <w, x> <= margin],    eta_t = eta0 / sqrt(t)

and the model is the mean of the iterates, as their regret bound is one on the mean. With a margin of 1 it
minimises the SVM's objective; other margins are for predicting online. A margin met exactly is an update.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ...core.losses import Hinge, Loss
from ...core.problem import Problem
from .descent import Descent, check_rate
from .options import not_negative
from .rates import SQRT, Rate, make_rate


@dataclass(frozen=True)
class Norma(Descent):
    """Online gradient descent with a margin."""

    margin: float = field(
        default=1.0, metadata={"help": "rows with a margin of at most this cause an update"}
    )
    eta0: float = field(
        default=0.0, metadata={"help": "the first learning rate (0: as the regret bound has it)"}
    )
    tstart: int = field(default=0, metadata={"help": "first step of the average (0: after one epoch)"})

    name = "norma"
    summary = (
        "online gradient descent with a margin and steps that fall as 1/sqrt(t), averaged, for the hinge loss"
    )
    losses = ("hinge",)

    def __post_init__(self) -> None:
        super().__post_init__()
        not_negative(self, "margin", "eta0", "tstart")

    def descended(self, problem: Problem) -> tuple[Loss, float]:
        """The hinge with this margin, a tie being an update: no number lies between the two margins."""
        return at_most(self.margin), problem.lam

    def rate(self, problem: Problem) -> Rate:
        """1/sqrt(t), from the step that balances the two terms of the regret bound for |w| = 1/sqrt(lam)."""
        longest = math.sqrt(float(problem.source.squared_norms.max())) or 1.0
        eta0 = self.eta0 or min(1.0 / (math.sqrt(problem.lam) * longest), 1.0 / problem.lam)
        return check_rate(make_rate(SQRT, eta0), problem.lam)

    def mean_from(self, problem: Problem) -> float:
        """As asked for, or after an epoch."""
        return self.tstart or problem.epoch_size + 1


def at_most(margin: float) -> Loss:
    """The hinge loss whose slope is not 0 at the margin itself."""
    cls: type[Any] = Hinge
    hinge: Loss = cls(math.nextafter(margin, math.inf))
    return hinge
