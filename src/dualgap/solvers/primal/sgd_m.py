"""SGD-m: SGD-s with multiple updates at the price of one inner product (Panagiotakopoulos and Tsampouka,
ICANN 2013).

In some epochs every pattern is presented l times in a row. Proposition 3 tells from the first inner product
how many of these are margin errors. Such an epoch counts as l: t grows by n l, T by l, and all that
``sgd_s.py`` says still holds. The paper has l = 5 in epochs with 0 < T mod 9 < 5, epochs counted from 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...runtime.errors import InputError
from .sgd_s import SHUFFLE, SPLIT, SGDs


@dataclass(frozen=True)
class SGDm(SGDs):
    """SGD-s with multiple updates."""

    times: int = field(
        default=5, metadata={"help": "presentations in a row in an epoch with multiple updates: l"}
    )
    cycle: int = field(default=9, metadata={"help": "length of the cycle of epochs with and without them"})
    below: int = field(
        default=5, metadata={"help": "multiple updates in epoch T where 0 < T mod cycle < below"}
    )
    splitting: bool = field(
        default=False,
        metadata={"help": "for comparison: multiple updates first, then all the shrinking (footnote 6)"},
    )

    name = "sgd-m"
    summary = "sgd-s with multiple updates at the price of one inner product, for the hinge loss"

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("times", "cycle", "below"):
            if getattr(self, key) < 1:
                raise InputError(f"{key}={getattr(self, key)!r} must be at least 1")

    def multiplicity(self, epoch: int) -> int:
        """l in the epochs that have it."""
        return self.times if 0 < epoch % self.cycle < self.below else 1

    @property
    def flags(self) -> int:
        """A fresh order each epoch, and how multiple updates are made."""
        return SHUFFLE | (SPLIT if self.splitting else 0)
