"""The perceptron (Rosenblatt 1962): plain, averaged, with a margin, voted.

    w <- w + y x   if  y <w, x> <= margin

It is stochastic gradient descent on the hinge loss in the limit of an infinite learning rate, up to the
length of w (Zhang, ICML 2004, section 7.2): in w/eta the hinge's margin of 1 becomes 1/eta -> 0. It has no
lam and minimises no objective; its certificate says how far its model is from being the SVM's. The averaged
perceptron (Freund and Schapire 1999; Collins 2002) hands back the mean of all iterates.

The voted perceptron lets every iterate vote, with as many votes as it survived presentations. That is no
linear model: ``coef`` is then the averaged one, and ``vote`` predicts with all of them, from the list of
mistakes and the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.losses import Loss
from ...core.problem import Evaluation, Point, Problem
from ...data.rows import as_rows, row_count
from ...runtime.arrays import Floats, Words
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ...runtime.random import ORDERS, generator, lay_out
from ...runtime.counts import Counts
from .descent import Descent
from .norma import at_most
from .options import constant_feature, not_negative
from .rates import CONSTANT, Rate, make_rate

if TYPE_CHECKING:
    from ...training.loop import Outcome


class Ballot(NamedTuple):
    """The iterates of the voted perceptron, told by the mistakes that made them."""

    w: Floats
    u: Floats  # the sum of the iterates is visits w - u
    mistakes: Any  # int64: the rows; the first ``used`` count
    born: Any  # int64: the steps at which they were made
    rows: Any  # uint32, of positive weight
    picks: Any  # uint32: the rows of an epoch
    rng: Words
    position: int
    b: float
    u_bias: float
    used: int
    counts: Counts
    paused: bool = False

    @property
    def grows(self) -> bool:
        """The lists do."""
        return True


@dataclass(frozen=True)
class Perceptron(Descent):
    """The perceptron."""

    margin: float = field(
        default=0.0, metadata={"help": "rows with a margin of at most this cause an update"}
    )
    averaged: bool = field(default=False, metadata={"help": "hand back the mean of all iterates"})
    voted: bool = field(
        default=False, metadata={"help": "keep all mistakes, so that all iterates can vote (small data)"}
    )

    name = "perceptron"
    summary = "the perceptron: plain, averaged, with a margin or voted; it minimises no objective"
    losses = ("hinge",)
    unregularised = True  # lam = 0 will do

    def __post_init__(self) -> None:
        super().__post_init__()
        not_negative(self, "margin")
        if self.voted and self.averaged:
            raise InputError(
                "averaged and voted exclude each other; the voted perceptron's coef is the averaged one"
            )
        if self.voted and self.precision != "float64":
            raise InputError(f"voted goes with precision='float64' only, not {self.precision!r}")

    def descended(self, problem: Problem) -> tuple[Loss, float]:
        """The hinge with this margin and no regulariser; a tie is a mistake."""
        return at_most(self.margin), 0.0

    def rate(self, problem: Problem) -> Rate:
        """Always 1."""
        return make_rate(CONSTANT, 1.0)

    def mean_from(self, problem: Problem) -> float:
        """From the first step on, if at all."""
        return 1 if self.averaged else float("inf")

    def start(self, problem: Problem, warm: Point | None) -> Any:
        """Begin at w = 0, or, but for the voted perceptron, at the model of a warm start."""
        if not self.voted:
            return super().start(problem, warm)
        rows = np.flatnonzero(problem.source.weight).astype(np.uint32)
        w, list_ = np.zeros(problem.source.d), np.zeros(1024, dtype=np.int64)
        rng = generator(self.seed)
        return Ballot(w, w.copy(), list_, list_.copy(), rows, rows.copy(), rng, -1, 0.0, 0.0, 0, Counts())

    def step(self, problem: Problem, state: Any, budget: int, last: Evaluation | None) -> Any:
        """Make that many steps."""
        if not self.voted:
            return super().step(problem, state, budget, last)
        (part,) = problem.source.parts()
        stop = state.counts.visits + budget
        gain = self.bias_step if problem.bias.kind == "exact" else constant_feature(problem)
        while state.counts.visits < stop:
            if state.used == state.mistakes.size:  # the list is full: twice as long
                longer = np.zeros_like(state.mistakes)
                state = state._replace(
                    mistakes=np.concatenate([state.mistakes, longer]),
                    born=np.concatenate([state.born, longer]),
                )
            ballot: Ballot = state
            position, b, u_bias, used, *counts = _collect(
                part.batch.rows,
                part.batch.y,
                part.batch.weight,
                self.margin,
                problem.epoch_size / problem.total_weight,
                gain,
                *ballot[:11],
                ballot.counts.visits,
                ballot.counts.updates,
                ballot.counts.entries,
                ORDERS.index(self.order),
                stop,
            )
            state = state._replace(position=position, b=b, u_bias=u_bias, used=used, counts=Counts(*counts))
        return state

    def point(self, problem: Problem, state: Any) -> Point:
        """The last model or the mean."""
        if not self.voted:
            return super().point(problem, state)
        steps = max(state.counts.visits, 1)
        return Point(state.w - state.u / steps, float(state.b - state.u_bias / steps), None)


def vote(outcome: Outcome, X: Any) -> Floats:
    """The votes of all iterates on the rows of X: the part for +1 less the part for -1."""
    state: Any = outcome.state.solver
    if not isinstance(state, Ballot):
        raise InputError("vote needs the outcome of solver='perceptron' with voted=True")
    rows, d, _ = as_rows(X)
    problem: Any = outcome.problem
    if d != problem.source.d:
        raise InputError(f"X has {d} columns, the model {problem.source.d}; they must be equally many")
    gain = outcome.solver.bias_step if problem.bias.kind == "exact" else constant_feature(problem)  # type: ignore[attr-defined]
    votes = np.zeros(row_count(rows))
    _count_votes(
        rows, problem.source.rows, problem.source.y, problem.source.weight,
        problem.epoch_size / problem.total_weight, gain, d, state.mistakes[: state.used],
        np.append(state.born[: state.used], state.counts.visits), votes,
    )  # fmt: skip
    return votes / max(state.counts.visits, 1)


@kernel
def _collect(
    rows: Any,
    y: Floats,
    weight: Floats,
    margin: float,
    ratio: float,
    gain: float,
    w: Floats,
    u: Floats,
    mistakes: Any,
    born: Any,
    present: Any,
    picks: Any,
    rng: Words,
    position: int,
    b: float,
    u_bias: float,
    used: int,
    visits: int,
    updates: int,
    entries: int,
    order: int,
    stop: int,
) -> tuple[int, float, float, int, int, int, int]:
    """Presentations up to number ``stop``, or until the list of mistakes is full."""
    n = picks.shape[0]
    while visits < stop and used < mistakes.shape[0]:
        if position < 0 or position >= n:
            position = 0
            lay_out(rng, order, present, picks)
        i = picks[position]
        position += 1
        entries += rows.count(i)
        if y[i] * (rows.dot(i, w) + b) <= margin:
            push = ratio * weight[i] * y[i]
            rows.add(i, push, w)
            b += push * gain
            rows.add(i, push * (visits + 1), u)  # the iterates of all steps so far did not have it
            u_bias += push * gain * (visits + 1)
            mistakes[used] = i
            born[used] = visits + 1
            used += 1
            updates += 1
            entries += 2 * rows.count(i)
        visits += 1
    return position, b, u_bias, used, visits, updates, entries


@kernel
def _count_votes(
    rows: Any,
    trained: Any,
    y: Floats,
    weight: Floats,
    ratio: float,
    gain: float,
    d: int,
    mistakes: Any,
    born: Any,
    votes: Floats,
) -> None:
    """Score every row by every iterate in turn; each votes once for every presentation it survived."""
    dense = np.zeros(d)
    for row in range(votes.shape[0]):
        dense[:] = 0.0
        rows.add(row, 1.0, dense)
        score = 0.0
        for k in range(mistakes.shape[0]):
            i = mistakes[k]
            score += ratio * weight[i] * y[i] * (trained.dot(i, dense) + gain)
            lived = born[k + 1] - born[k]
            votes[row] += lived if score > 0.0 else (-lived if score < 0.0 else 0)
