"""The perceptron (Rosenblatt 1962): plain, averaged, with a margin.

    w <- w + y x   if  y <w, x> <= margin

It is stochastic gradient descent on the hinge loss in the limit of an infinite learning rate, up to the length of w
(Zhang, ICML 2004, section 7.2): in w/eta the hinge's margin of 1 becomes 1/eta -> 0. It has no lam and minimises no
objective; its certificate says how far its model is from being the SVM's. The averaged perceptron (Freund and Schapire
1999; Collins 2002) hands back the mean of all iterates.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..losses import Loss
from ..problem import Problem
from .descent import CONSTANT, RATES, Descent, Rate
from .norma import at_most
from .primal import not_negative


@dataclass(frozen=True)
class Perceptron(Descent):
    """The perceptron."""

    margin: float = field(default=0.0, metadata={"help": "rows with a margin of at most this cause an update"})
    averaged: bool = field(default=False, metadata={"help": "hand back the mean of all iterates"})

    name = "perceptron"
    meaning = "the perceptron: plain, averaged or with a margin; it minimises no objective"
    losses = ("hinge",)

    def __post_init__(self) -> None:
        super().__post_init__()
        not_negative(self, "margin")

    def descended(self, problem: Problem) -> tuple[Loss, float]:
        """The hinge with this margin and no regulariser; a tie is a mistake."""
        return at_most(self.margin), 0.0

    def rate(self, problem: Problem) -> Rate:
        """Always 1."""
        return Rate(RATES.index(CONSTANT), 1.0, 1.0, 0.0)

    def mean_from(self, problem: Problem) -> float:
        """From the first step on, if at all."""
        return 1 if self.averaged else float("inf")
