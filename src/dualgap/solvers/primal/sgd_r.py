"""SGD-r: the same perceptron with a growing margin, on patterns drawn at random (Panagiotakopoulos and
Tsampouka 2013).

It is Pegasos with k = 1 and no projection. Drawn with replacement, a pattern may be a margin error more often
than t/n times, so that the counters leave the box (they obey it in the limit, footnote 4): clipped, they
still make a dual point, which a few dual sweeps improve.
"""

from __future__ import annotations

from dataclasses import dataclass

from .polishing import Polished, polish_option
from .sgd_s import REPLACE, MarginErrors


@dataclass(frozen=True)
class SGDr(MarginErrors, Polished):
    """SGD-s with random selection."""

    polish: int = polish_option()

    name = "sgd-r"
    summary = "stochastic gradient descent as a perceptron, on rows drawn at random, for the hinge loss"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_polish()

    @property
    def flags(self) -> int:
        """Rows with replacement."""
        return REPLACE
