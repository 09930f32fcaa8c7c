"""NORMA: online gradient descent with a margin (Kivinen, Smola and Williamson, IEEE TSP 2004), for the hinge
loss.

    w <- (1 - eta_t lam) w + eta_t y x [y <w, x> <= margin],    eta_t = eta0 / sqrt(t), eta0 or eta0 / t

and the model is the mean of the iterates, as their regret bound is one on the mean. With a margin of 1 it
minimises the SVM's objective; other margins are for predicting online. A margin met exactly is an update.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.geometry import PrimalGeometry
from ...core.losses import Hinge, Loss
from ...core.problem import Problem
from ...runtime.options import option
from ...runtime.random import GIVEN
from ...training.solver import Preset
from .descent import Averaged, check_rate
from .options import eta0_option
from .rates import CONSTANT, INVERSE, SQRT, Rate, make_rate


@dataclass(frozen=True)
class Norma(Averaged):
    """Online gradient descent with a margin."""

    margin: float = option(1.0, "rows with a margin of at most this cause an update", low=0)
    learning_rate: str = option(
        SQRT,
        "sqrt (eta0/sqrt(t), by the regret bound), constant (for targets that drift) or inverse (eta0/t)",
        choices=(SQRT, CONSTANT, INVERSE),
    )
    eta0: float = eta0_option("as the regret bound has it for one epoch; 1/lam for learning_rate=inverse")

    name = "norma"
    summary = (
        "online gradient descent with a margin and steps that fall as 1/sqrt(t), averaged, for the hinge loss"
    )
    papers: ClassVar[Mapping[str, Preset]] = {
        "kivinen-2004": Preset(
            "Kivinen, Smola and Williamson (2004), theorem 4",
            {"order": GIVEN, "tstart": 1},
            "It learns online, in one pass over the rows as they come; the bound is on the mean of all.",
        )
    }
    capabilities = Averaged.capabilities._replace(losses=("hinge",), offsets=False)

    def descended(self, problem: Problem) -> tuple[Loss, PrimalGeometry]:
        """The hinge with this margin; one met exactly is an update."""
        return hinge_up_to(self.margin), problem.primal_geometry(self.bias_step)

    def rate(self, problem: Problem) -> Rate:
        """As asked for, from the step that balances the two terms of the regret bound for |w| = 1/sqrt(lam);
        a constant one is that of 1/sqrt(t) after an epoch.
        """
        kind, lam = self.learning_rate, problem.lam
        longest = math.sqrt(float(problem.source.squared_norms.max())) or 1.0
        eta0 = 1.0 / (math.sqrt(lam) * longest)
        if kind == CONSTANT:
            eta0 /= math.sqrt(problem.epoch_size)
        eta0 = self.eta0 or (1.0 / lam if kind == INVERSE else min(eta0, 1.0 / lam))
        return check_rate(make_rate(kind, eta0), lam)


def hinge_up_to(margin: float) -> Loss:
    """The hinge loss whose slope is not 0 at the margin itself: that of the next larger float."""
    cls: type[Any] = Hinge
    hinge: Loss = cls(math.nextafter(margin, math.inf))
    return hinge
