"""A bias that is not regularised, for any solver that can move its bias: the proximal point method on b.

    minimise P(w, b)  over w and b,  with no penalty on b

by solving, one after the other, the problems with the penalty ``mu/2 (b - centre)^2``, each centred at the
bias that the one before ended with (Rockafellar, SIAM J. Control Optim. 1976). On the dual side that is the
method of multipliers for the constraint ``z = 1/N sum c beta = 0``: the inner problem has ``b(beta) = centre
+ z / mu``, and moving the centre to it adds ``z / mu`` to b once more. The inner solver keeps its duals, and
the centre moves after every epoch of visits: waiting until an inner problem is solved takes longer.

How firmly the centre holds is measured and said in ``proximal.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ..core.problem import Evaluation, Point, Problem
from ..training.loop import Counts
from ..training.stopping import Reason
from .proximal import centred, prox_strength


class State(NamedTuple):
    """The inner solver's state, and the centre of its bias."""

    inner: Any
    centre: float
    mu: float
    moved: int  # visits when the centre last moved

    @property
    def counts(self) -> Counts:
        """Those of the inner solver."""
        counts: Counts = self.inner.counts
        return counts

    @property
    def paused(self) -> bool:
        """Where the inner solver pauses."""
        return bool(self.inner.paused)


@dataclass(frozen=True)
class FreeBias:
    """A solver for problems with a free bias, made of one for problems with a centred bias."""

    inner: Any

    @property
    def name(self) -> str:
        """The inner solver's: how the bias is found is no choice of the user's."""
        return str(self.inner.name)

    @property
    def summary(self) -> str:
        """The inner solver's."""
        return str(self.inner.summary)

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at the bias of the warm start, or at 0."""
        centre, mu = 0.0 if warm is None else float(warm.b), prox_strength(problem)
        return State(self.inner.start(centred(problem, centre, mu), warm), centre, mu, 0)

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """Let the inner solver work, at most until the centre is to move; then move it."""
        end = state.moved + problem.epoch_size * getattr(self.inner, "epochs_a_pass", 1)
        budget = min(budget, end - state.counts.visits)
        held, inner = centred(problem, state.centre, state.mu), state.inner
        if last is not None:  # its w(beta) is that of a scaled beta, and of no use
            if hasattr(self.inner, "recompute_primal"):
                inner = self.inner.recompute_primal(held, inner)
            if hasattr(self.inner, "notice"):
                inner = self.inner.notice(held, inner, last)
        inner = self.inner.step(held, inner, budget, None)
        state = state._replace(inner=inner)
        if state.counts.visits < end and self.inner.finished(inner) is None:
            return state
        inner, b = self.inner.shift_bias(inner, state.centre)
        return State(inner, b, state.mu, state.counts.visits)

    def point(self, problem: Problem, state: State) -> Point:
        """The inner solver's point."""
        point: Point = self.inner.point(problem, state.inner)
        return point

    def finished(self, state: State) -> Reason | None:
        """The end of an inner problem is not the end."""
        return None

    def check(self, problem: Problem, steps: float) -> None:
        """The inner solver's options may not suit the data."""
        check = getattr(self.inner, "check", None)
        if check is not None:
            check(centred(problem, 0.0, prox_strength(problem)), steps)

    def close(self, problem: Problem) -> None:
        """What the inner solver has open."""
        if hasattr(self.inner, "close"):
            self.inner.close(problem)

    def plan(self, problem: Problem, tol: float) -> list[str]:
        """The theory of the inner solvers has a regularised bias or none."""
        return [
            "bias=exact: a sequence of problems with a regularised bias; no bound on the number of steps is "
            "known"
        ]


def can_wrap(solver: type[Any]) -> bool:
    """Whether a solver can move its bias."""
    return hasattr(solver, "shift_bias")
