"""When a run ends and how often it is certified: what ``fit`` takes in epochs, visits or iterations."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from .core.problem import Regularised
from .runtime.checks import number, shown, whole
from .runtime.errors import InputError
from .training.solver import AnySolver
from .training.stopping import (
    AbsoluteGapBelow,
    GapBelow,
    MaxEpochs,
    MaxVisits,
    Rules,
    TargetReached,
    TimeLimit,
)

UNITS = "visits", "epochs", "iterations"


class Limits(NamedTuple):
    """What is good enough besides the relative gap, and where a run ends at the latest."""

    max_epochs: float | None
    max_visits: int | None
    time_limit: float | None
    atol: float | None = None
    target: float | None = None

    def rules(self, tol: float, epoch_size: int) -> Rules:
        """Stop at the gap, at the objective, or at a limit."""
        rules = Rules((GapBelow(tol),))
        if self.atol is not None:
            rules = rules | AbsoluteGapBelow(number("atol", self.atol, zero=True))
        if self.target is not None:
            rules = rules | TargetReached(number("target", self.target, zero=True))
        if self.max_visits is not None:
            rules = rules | MaxVisits(whole("max_visits", self.max_visits, 1))
        if self.max_epochs is not None:
            rules = rules | MaxEpochs(number("max_epochs", self.max_epochs), epoch_size)
        if self.time_limit is not None:
            rules = rules | TimeLimit(number("time_limit", self.time_limit))
        return rules


def stall_visits(stall: Any, epoch_size: int) -> int | None:
    """Visits without progress after which a run has stalled: from epochs, "auto", or None for never."""
    if stall is None or (isinstance(stall, str) and stall == "none"):
        return None
    if isinstance(stall, str) and stall == "auto":
        return max(1000 * epoch_size, 200_000)  # on tiny data a thousand epochs are nothing
    if isinstance(stall, str):
        raise InputError(f"stall={shown(stall)} must be a number of epochs, 'auto', or None (never)")
    return math.ceil(min(number("stall", stall) * epoch_size, 2.0**62))


def parsed_period(record_every: Any) -> tuple[float, str]:
    """A number and its unit: of ``record_every=1000``, ``"1000 iterations"``, ``"0.5 epochs"``."""
    if not isinstance(record_every, str):
        return whole("record_every", record_every, 1), "visits"
    found = re.fullmatch(r"(\d+(?:\.\d*)?(?:e\d+)?|\.\d+)\s*([a-z]*)", record_every.strip())
    unit = "" if found is None else (found[2] or "visits").rstrip("s") + "s"
    count = 0.0 if found is None else float(found[1])
    if unit not in UNITS or not 0.0 < count < 2.0**62 or (unit != "epochs" and count != int(count)):
        raise InputError(
            f"record_every={shown(record_every)} must be a positive number of row visits, or a text such as "
            "'500 visits', '0.5 epochs' or '1000 iterations'"
        )
    return count, unit


def period_in_visits(record_every: Any, problem: Regularised, solver: AnySolver) -> int | None:
    """The visits of rows after each of which a certificate is asked for."""
    if record_every is None:
        return None
    count, unit = parsed_period(record_every)
    if unit == "epochs":
        count *= problem.epoch_size
    elif unit == "iterations":
        rows = solver.rows_per_iteration(problem)
        if rows == 0:
            raise InputError(
                f"record_every={shown(record_every)}: an iteration of {solver.name} is no fixed number of "
                "row visits; give a number of visits or epochs (a method of second order is certified in "
                "every iteration as it is)"
            )
        count *= rows
    return max(1, math.ceil(count))
