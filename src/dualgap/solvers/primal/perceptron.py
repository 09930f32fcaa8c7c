"""The perceptron (Rosenblatt 1962): plain, averaged, with a margin, voted.

    w <- w + y x   if  y <w, x> <= margin

It is stochastic gradient descent on the hinge loss in the limit of an infinite learning rate, up to the
length of w (Zhang, ICML 2004, section 7.2): in w/eta the hinge's margin of 1 becomes 1/eta -> 0. It has no
lam and minimises no objective; its certificate says how far its model is from being the SVM's. The averaged
perceptron (Freund and Schapire 1999; Collins 2002) hands back the mean of all iterates.

The voted perceptron lets every iterate vote, with as many votes as it survived visits. That is no linear
model: ``coef`` is then the averaged one, and ``vote`` predicts with all of them, from the list of mistakes
and the training rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from ...core.geometry import PrimalGeometry
from ...core.losses import Loss
from ...core.problem import Point, Problem
from ...data.fetching import fetch_ahead
from ...data.rows import as_rows, row_count
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ...runtime.options import option
from ...runtime.random import GIVEN
from ...training.solver import Preset
from ...training.states import Extent, GrowingNaturals, GrowingRowNumbers, Position, invariant, state_class
from .descent import Descent
from .norma import hinge_up_to
from .rates import CONSTANT, Rate, make_rate
from .state import State, begin_epoch
from .zhang import perceptron_promises

if TYPE_CHECKING:
    from ...training.outcome import Result


@state_class
class Ballot(NamedTuple):
    """The iterates of the voted perceptron, described by the mistakes that made them."""

    w: Floats
    u: Floats  # the sum of the iterates is visits w - u
    mistakes: GrowingRowNumbers  # int64; the first ``used`` count
    born: GrowingNaturals  # int64: the visits at which they were made

    def doubled(self) -> Ballot:
        """With room for twice as many mistakes."""
        room = np.zeros_like(self.mistakes)
        return self._replace(
            mistakes=np.concatenate([self.mistakes, room]), born=np.concatenate([self.born, room])
        )


@state_class
class BallotCursor(NamedTuple):
    """Where the voted perceptron stands."""

    position: Position = -1
    b: float = 0.0
    u_bias: float = 0.0
    used: int = 0  # mistakes in the list
    counts: Counts = Counts()


@invariant(State)
def _check(state: State[Any, Any], extent: Extent) -> Iterator[tuple[bool, str]]:
    if isinstance(state.model, Ballot):
        room = state.model.mistakes.size
        yield 1 <= room == state.model.born.size, "model.born and model.mistakes differ in size"
        yield state.cursor.used <= room, "cursor.used is beyond model.mistakes"


@dataclass(frozen=True)
class Perceptron(Descent):
    """The perceptron."""

    margin: float = option(0.0, "rows with a margin of at most this cause an update", low=0)
    averaged: bool = option(False, "hand back the mean of all iterates")
    voted: bool = option(False, "keep all mistakes, so that all iterates can vote (small data)")

    name = "perceptron"
    summary = "the perceptron: plain, averaged, with a margin or voted; it minimises no objective"
    capabilities = Descent.capabilities._replace(losses=("hinge",), offsets=False, unregularised=True)
    papers: ClassVar[Mapping[str, Preset]] = {
        "rosenblatt-1962": Preset(
            "Rosenblatt (1962)",
            {"order": GIVEN, "bias_step": 1.0},
            "With bias=exact a threshold is learned too.",
        ),
        "freund-1999": Preset(
            "Freund and Schapire (1999), figure 1", {"order": GIVEN, "voted": True}, "Rows as they come."
        ),
        "collins-2002": Preset(
            "Collins (2002), averaged parameters", {"order": GIVEN, "averaged": True}, "Rows as they come."
        ),
        "zhang-2004": Preset(
            "Zhang (2004), figure 2", {"averaged": True}, "The plain perceptron there is the default."
        ),
    }

    def check_together(self) -> None:
        """Votes exclude some options."""
        if self.voted and self.averaged:
            raise InputError(
                "averaged and voted exclude each other; the voted perceptron's coef is the averaged one"
            )
        if self.voted and self.precision != "float64":
            raise InputError(f"voted goes with precision='float64' only, not {self.precision!r}")

    def descended(self, problem: Problem) -> tuple[Loss, PrimalGeometry]:
        """The hinge with this margin and no regulariser; a margin met exactly is a mistake."""
        return hinge_up_to(self.margin), problem.primal_geometry(self.bias_step)._replace(lam=0.0)

    def plan(self, problem: Problem, tol: float) -> list[str]:
        """The bound on its updates."""
        return perceptron_promises(problem, self.margin)

    def rate(self, problem: Problem) -> Rate:
        """Always 1."""
        return make_rate(CONSTANT, 1.0)

    def mean_from(self, problem: Problem) -> float:
        """From the first step on, if at all."""
        return 1 if self.averaged else math.inf

    @property
    def keeps_duals(self) -> bool:
        """The voted perceptron has no dual point of its own."""
        return self.duals and not self.voted

    def begin(self, problem: Problem, warm: Point | None) -> tuple[Any, Any]:
        """Model and cursor at w = 0, or, but for the voted perceptron, at the model of a warm start."""
        if not self.voted:
            return super().begin(problem, warm)
        w, room = np.zeros(problem.source.d), np.zeros(1024, dtype=np.int64)
        return Ballot(w, w.copy(), room, room.copy()), BallotCursor()

    def visit(self, problem: Problem, loss: Loss, geometry: PrimalGeometry, state: Any, stop: int) -> Any:
        """Make steps until ``stop`` rows have been visited in all."""
        if not self.voted:
            return super().visit(problem, loss, geometry, state, stop)
        batch = problem.source.batch
        while state.counts.visits < stop:
            if state.cursor.used == state.model.mistakes.size:
                state = state._replace(model=state.model.doubled())
            state = state._replace(cursor=_collect(batch, self.margin, geometry, state, self.how, stop))
        return state

    def model_of(self, state: Any) -> tuple[Floats, float]:
        """The last iterate, or the mean of all."""
        if not self.voted:
            return super().model_of(state)
        steps, cursor = max(state.counts.visits, 1), state.cursor
        return state.model.w - state.model.u / steps, float(cursor.b - cursor.u_bias / steps)

    def for_stream(self) -> Self:
        """Votes need the training rows again."""
        if self.voted:
            raise InputError(
                "voted needs the training rows again, and a stream keeps none; use averaged=True"
            )
        return super().for_stream()


def vote(outcome: Result, X: Any) -> Floats:
    """The votes of all iterates on the rows of X: the part for +1 less the part for -1."""
    solver, problem = outcome.solver, outcome.problem
    if not isinstance(solver, Perceptron) or not solver.voted:
        raise InputError("vote needs the outcome of solver='perceptron' with voted=True")
    rows, d, _ = as_rows(X)
    if d != problem.source.d:
        raise InputError(f"X has {d} columns, the model {problem.source.d}; they must be equally many")
    state: State[Ballot, BallotCursor] = outcome.run.state
    used, visits = state.cursor.used, state.counts.visits
    lived = np.diff(np.append(state.model.born[:used], visits))
    geometry = problem.primal_geometry(solver.bias_step)
    votes = np.zeros(row_count(rows))
    _count_votes(rows, problem.source.batch, geometry, d, state.model.mistakes[:used], lived, votes)
    return votes / max(visits, 1)


@kernel
def _collect(batch: Any, margin: float, geometry: Any, state: Any, how: int, stop: int) -> BallotCursor:
    """Visits up to number ``stop``, or until the list of mistakes is full."""
    rows, y, weight, _ = batch
    _, weight_scale, rho2, bias_step = geometry
    gain = rho2 + bias_step  # one of them is 0
    model, order, _, cursor = state
    picks, n = order.picks, order.picks.shape[0]
    w, u, mistakes, born = model
    position, b, u_bias, used, counts = cursor
    visits, updates, entries = counts
    while visits < stop and used < mistakes.shape[0]:
        if position < 0 or position >= n:
            position = begin_epoch(order, how, position < 0)
        fetch_ahead(batch, picks, position, n)
        i = picks[position]
        position += 1
        entries += rows.count(i)
        if y[i] * (rows.dot(i, w) + b) <= margin:
            push = weight_scale * weight[i] * y[i]
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
    return BallotCursor(position, b, u_bias, used, Counts(visits, updates, entries))


@kernel
def _count_votes(
    rows: Any, batch: Any, geometry: Any, d: int, mistakes: Any, lived: Any, votes: Floats
) -> None:
    """Score every row by every iterate in turn; each votes once for every visit that it survived."""
    _, y, weight, _ = batch
    _, weight_scale, rho2, bias_step = geometry
    gain = rho2 + bias_step
    dense = np.zeros(d)
    for row in range(votes.shape[0]):
        for j in range(d):
            dense[j] = 0.0
        rows.add(row, 1.0, dense)
        score = 0.0
        for k in range(mistakes.shape[0]):
            i = mistakes[k]
            score += weight_scale * weight[i] * y[i] * (batch.rows.dot(i, dense) + gain)
            votes[row] += lived[k] if score > 0.0 else (-lived[k] if score < 0.0 else 0)
