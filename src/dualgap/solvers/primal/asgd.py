"""ASGD: averaged stochastic gradient descent (Bottou, after Xu 2011), for every loss.

    eta_t = eta0 / (1 + lam eta0 t)^0.75,    the model is the plain mean of the iterates from ``tstart`` on

Polyak and Juditsky (1992): steps that fall more slowly than 1/t, averaged, are as good asymptotically as the
best matrix of learning rates. eta0 is calibrated as in ``svmsgd.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...training.solver import Preset
from .descent import Averaged
from .state import FIXED
from .svmsgd import SvmSgd


@dataclass(frozen=True)
class ASGD(Averaged, SvmSgd):
    """Averaged stochastic gradient descent."""

    name = "asgd"
    summary = "averaged stochastic gradient descent with a calibrated learning rate, for every loss"
    power = 0.75
    papers: ClassVar[Mapping[str, Preset]] = {
        "bottou-2012": Preset(
            "Bottou (2012), svmasgd of sgd-2.0, after Xu (2011)",
            {"order": FIXED},
            "The program takes shuffled rows as they come (order=given); order=fixed shuffles them once.",
        )
    }
