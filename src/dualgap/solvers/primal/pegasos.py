"""Pegasos: projected stochastic subgradient descent on the SVM (Shalev-Shwartz, Singer and Srebro, ICML
2007).

    step t = 1, 2, ...:  A: k rows drawn at random, A+: those with y <w, x> < 1
    w <- (1 - 1/t) w + 1/(lam t k) sum over A+ of y x
    w <- min(1, 1/(sqrt(lam) |w|)) w                           (projection, if asked for)

The first step multiplies w by 0, so a random start is forgotten at once. With ``t0`` t begins at t0 + 1, so
that the start is kept; a warm start has the steps of ten epochs for t0. ``skip_lossless`` holds t where A+ is
empty, and w shrinks all the same: steps fall more slowly where few rows have a loss (Rupnik 2008, section
4.5). A margin of exactly 1 is no update. A weight multiplies its row's term by c n/N. The steps are in
``pegasos_steps.py``.

Random stopping (section 3.3 of a study of it and SDCA): for a t drawn from 1..T, T >= 3, with probability
1/2 at least,

    f(w_t) <= f(w*) + 42 c ln(T/delta) / (lam T)

where the rows that were drawn are no worse than in all but a share ``delta`` of the runs; with c = (sqrt(lam)
+ R)^2 with projection and 4 R^2 without, R = max |x| >= 1 and lam <= 1/4. ``stop_within=T`` draws t, runs
that far, and looks whether a certificate proves as much; if not, it begins anew with another t.

Counters of the updates that each row caused make a dual point once they are clipped to the box.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.options import option
from ...runtime.random import below, generator
from ...training.solver import Capabilities, Preset, Solver, Status
from ...training.states import Extent, NotNegative, Position, invariant, state_class
from ...training.stopping import Reason
from ..dual import averaging
from ..dual.averaging import AVERAGE, ITERATES, LAST, Suffix
from ..order import Order
from .options import BIASES, bias_step_option, duals_option
from .pegasos_steps import DISTINCT, EPOCHS, REPLACEMENT, SAMPLINGS, Cursor, Manner, Model, Scaled, make_steps
from .polishing import Polished, polish_option
from .row_by_row import intercepts

ZERO, BALL = STARTS = ("zero", "ball")
WARM_EPOCHS = 10  # that count as made before a warm start; with 1, the first steps are too long for it
DELTA = 0.5  # by default
LARGEST_LAM, SHORTEST = 0.25, 3  # lam and T for which the bound is proven


@state_class
class Attempt(NamedTuple):
    """A run up to a step drawn at random, one of those of random stopping."""

    number: int = 0
    stop_at: Position = -1  # the step at which it ends; -1: it does not
    bound: NotNegative = 0.0  # what it has to prove
    accepted: bool = False
    before: Counts = Counts()  # of attempts given up


@state_class
class State(NamedTuple):
    """w = s v."""

    model: Model
    order: Order  # its picks are the rows of some batches
    cursor: Cursor
    suffix: Suffix
    attempt: Attempt
    ahead: int  # what t began with

    @property
    def counts(self) -> Counts:
        """Work done so far, that of attempts given up included."""
        pairs = zip(self.attempt.before, self.cursor.counts, strict=True)
        return Counts(*(then + more for then, more in pairs))

    @property
    def weights(self) -> Floats:
        """The last w and b in one vector."""
        scaled = self.cursor.scaled
        return np.append(scaled.s * self.model.v, scaled.s * scaled.v_bias + self.cursor.b)

    @property
    def total(self) -> Floats:
        """The sum of the models of all steps so far, the present one left out; empty where no average is
        asked for.
        """
        v, u, _ = self.model
        if not u.size:
            return u
        past, u_bias = self.cursor.total
        return np.append(past * v + u, past * self.cursor.scaled.v_bias + u_bias)


@invariant(State)
def _check(state: State, extent: Extent) -> Iterator[tuple[bool, str]]:
    cursor = state.cursor
    yield cursor.position <= state.order.picks.size, "cursor.position is beyond the picks"
    yield cursor.t <= cursor.steps + state.ahead, "cursor.t is beyond the steps made"
    yield state.attempt.stop_at < 0 or cursor.steps <= state.attempt.stop_at, "attempt.stop_at is past"


@dataclass(frozen=True)
class Pegasos(Polished, Solver[State]):
    """Projected stochastic subgradient descent."""

    seed: int = option(0, "seed of the random rows")
    k: int = option(1, "rows in a batch", low=1)
    projection: bool = option(False, "project w into the ball of radius 1/sqrt(lam)")
    sampling: str = option(
        REPLACEMENT,
        "replacement, distinct (k different rows), or epochs (a fresh order, cut into batches)",
        choices=SAMPLINGS,
    )
    first_w: str = option(
        ZERO, "zero, or ball: random inside the ball (the first step erases it)", choices=STARTS
    )
    first_seed: int = option(-1, "seed of first_w=ball (-1: that of the rows)", low=-1)
    t0: int = option(
        0,
        "t begins after this, so that the start is not erased (0: after a warm start, 10 epochs)",
        low=0,
    )
    skip_lossless: bool = option(False, "hold t, and only shrink w, where a batch has no loss")
    iterate: str = option(
        LAST, "last, average (of the models from step T0 on) or random (one)", choices=ITERATES
    )
    T0: int = option(0, "first step of the average or the random choice (0: about half of the run)", low=0)
    stop_within: int = option(
        0, "stop at a random step of the first so many, and try again if it is bad (0: do not)", low=0
    )
    delta: float = option(
        DELTA, "of the bound of stop_within: the share of unlucky draws of rows left out", low=1e-12, high=1
    )
    duals: bool = duals_option()
    bias_step: float = bias_step_option()
    polish: int = polish_option()

    name = "pegasos"
    summary = (
        "projected stochastic subgradient descent with batches of k rows, for the hinge loss; by default "
        "there is no projection, and with k = 1 the steps are those of sgd-r; paper=true is Pegasos as "
        "published"
    )
    capabilities = Capabilities(losses=("hinge",), offsets=False, biases=BIASES, own_stops=("stop_within",))
    papers: ClassVar[Mapping[str, Preset]] = {
        "shalev-shwartz-2007": Preset(
            "Shalev-Shwartz, Singer and Srebro (2007), figure 1", {"projection": True}, "It has no bias."
        ),
        "shalev-shwartz-2011": Preset(
            "Shalev-Shwartz, Singer, Srebro and Cotter (2011), figures 1 and 2",
            {},
            "Batches (k) and the projection are variants there.",
        ),
        "rupnik-2008": Preset(
            "Rupnik (2008), section 4.3",
            {"k": 8000, "projection": True, "sampling": DISTINCT, "first_w": BALL},
            "lam is 0.0001, and there is no bias. skip_lossless=true is the variant of its section 4.5.",
        ),
    }

    def check_together(self) -> None:
        """Random stopping excludes other iterates."""
        averaging.check_iterate(self.iterate, self.T0)
        if self.stop_within and self.t0:
            raise InputError(
                f"t0={self.t0} does not go with stop_within={self.stop_within}; its bound is for t = 1, 2..."
            )
        if self.stop_within and self.iterate != LAST:
            raise InputError(
                f"stop_within={self.stop_within} is a random choice of its own; leave out "
                f"iterate={self.iterate!r}"
            )
        if 0 < self.stop_within < SHORTEST:
            raise InputError(
                f"stop_within={self.stop_within} must be at least {SHORTEST}, as its bound has it"
            )
        if self.stop_within and (self.sampling == EPOCHS or self.skip_lossless):
            raise InputError(
                f"stop_within={self.stop_within} has a bound for rows drawn anew for every step and a t that "
                "always advances only; leave out sampling='epochs' and skip_lossless"
            )

    def check(self, problem: Problem, visits: float) -> None:
        """A batch must have rows enough, and the run steps enough."""
        if self.k > problem.epoch_size:
            raise InputError(f"k={self.k} is more than the {problem.epoch_size} rows there are; lower k")
        averaging.check_T0(self.T0, visits / self.k, f"steps of {self.k} rows")
        if self.stop_within * self.k > visits:
            raise InputError(
                f"stop_within={self.stop_within} is beyond the run of {visits / self.k:.0f} steps; lower it "
                "or raise max_visits or max_epochs"
            )
        if self.stop_within and problem.lam > LARGEST_LAM:
            raise InputError(
                f"stop_within={self.stop_within} has a bound for lam <= 1/4 only, and lam = {problem.lam:g}; "
                "leave it out, or take a smaller lam (a larger C)"
            )

    def plan(self, problem: Problem, tol: float) -> list[str]:
        """The bound of random stopping."""
        T = self.stop_within or 100 * problem.epoch_size
        if problem.lam > LARGEST_LAM or self.sampling == EPOCHS or self.skip_lossless:
            return [
                "pegasos: its bound is for lam <= 1/4, rows drawn anew for every step, and a t that always "
                "advances"
            ]
        lines = [
            f"pegasos: at a step drawn from the first {T:,}, the objective is with probability 1/2 or more "
            f"within {excess_bound(problem, T, self.projection, self.delta):.3g} of its minimum, in mean "
            f"form, for all but a share delta = {self.delta:g} of the draws of rows"
        ]
        if problem.bias.free:
            return [*lines, "that is without a bias: for bias=exact no bound is known"]
        return lines

    def rows_per_iteration(self, problem: Problem) -> int:
        """A batch."""
        return self.k

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at the model of a warm start, at 0, or inside the ball."""
        source = problem.source
        rows = np.flatnonzero(source.weight).astype(np.uint32)
        v, v_bias, b, ahead = self._first_point(problem, warm)
        rho2 = problem.primal_geometry(0.0).rho2
        square = float(np.dot(v, v)) + (v_bias**2 / rho2 if rho2 > 0.0 else 0.0)
        u = np.zeros(source.d if self.iterate == AVERAGE else 0)
        errors = np.zeros(source.n if self.duals else 0, dtype=np.int32)
        picks = np.zeros(self.k * max(1, rows.size // self.k), dtype=np.uint32)
        suffix = averaging.begin(self.iterate, self.T0, source.d + 1, math.ceil(rows.size / self.k))
        bound = 0.0
        if self.stop_within:
            bound = excess_bound(problem, self.stop_within, self.projection, self.delta)
        state = State(
            Model(v, u, errors),
            Order(rows, picks, generator(self.seed)),
            Cursor(t=ahead, b=b, scaled=Scaled(v_bias=v_bias, square=square)),
            suffix,
            Attempt(bound=bound),
            ahead,
        )
        return self._draw_stop(state) if self.stop_within else state

    def _first_point(self, problem: Problem, warm: Point | None) -> tuple[Floats, float, float, int]:
        """w, the part of the intercept that shrinks, the part that does not, and t."""
        d = problem.source.d
        if warm is not None and not self.stop_within:
            ahead = self.t0 or math.ceil(WARM_EPOCHS * problem.epoch_size / self.k)
            return np.array(warm.w), *intercepts(problem, warm), ahead
        v = np.zeros(d)
        if self.first_w == BALL:
            direction = np.random.default_rng(self.seed if self.first_seed < 0 else self.first_seed)
            v = direction.normal(size=d)
            v *= direction.random() ** (1.0 / d) / (math.sqrt(problem.lam) * float(np.linalg.norm(v)))
        return v, 0.0, 0.0, self.t0

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Make whole steps until the budget is spent."""
        attempt = state.attempt._replace(accepted=False)  # what a run is resumed with is proven anew
        if not self.stop_within:  # the run that is resumed may have asked for it
            attempt = attempt._replace(stop_at=-1)
        state = state._replace(attempt=attempt)
        end, stop_at = state.cursor.steps + max(1, math.ceil(budget / self.k)), state.attempt.stop_at
        if stop_at >= 0:
            end = min(end, stop_at)
        batch, geometry = problem.source.batch, problem.primal_geometry(self.bias_step)
        manner = Manner(self.k, SAMPLINGS.index(self.sampling), self.projection, self.skip_lossless)
        while state.cursor.steps < end:
            stop = int(min(end, averaging.next_event(self.iterate, state.suffix, state.cursor.steps)))
            model, order, cursor = state.model, state.order, state.cursor
            cursor = make_steps(batch, problem.loss, geometry, model, order, cursor, manner, stop)
            state = state._replace(cursor=cursor)
            if stop < end or stop == averaging.next_event(self.iterate, state.suffix, stop - 1):
                now, total, rng = state.weights, state.total, order.rng
                suffix = averaging.turn(self.iterate, self.T0, state.suffix, stop, now, total, rng)
                state = state._replace(suffix=suffix)
        if state.cursor.steps == stop_at:
            state = self._stop_or_retry(problem, state)
        return state, Status(ended=self._ended(state))

    def point(self, problem: Problem, state: State) -> Point:
        """The model that is asked for, and the counters as a dual point."""
        cursor, last = state.cursor, state.weights
        model = averaging.offered(self.iterate, state.suffix, cursor.steps, last, state.total)
        if model is None:
            model = last
        beta = None
        if self.duals and cursor.steps > 0:
            share = np.minimum(state.model.errors * (problem.epoch_size / (cursor.steps * self.k)), 1.0)
            beta = problem.source.y * share
        return Point(model[:-1], float(model[-1]), beta)

    def _ended(self, state: State) -> Reason | None:
        """Random stopping."""
        attempt = state.attempt
        if not attempt.accepted:
            return None
        tries = "attempt" if attempt.number == 1 else "attempts"
        return Reason(
            "random stop",
            f"stopped at step {attempt.stop_at:,}, drawn from {self.stop_within:,}, after {attempt.number} "
            f"{tries}: proven to be within {attempt.bound:.3g} of the minimum, in mean form",
        )

    def _draw_stop(self, state: State) -> State:
        attempt = state.attempt
        stop_at = 1 + below(state.order.rng, self.stop_within)
        return state._replace(attempt=attempt._replace(stop_at=stop_at, number=attempt.number + 1))

    def _stop_or_retry(self, problem: Problem, state: State) -> State:
        """Accept this model, if its certificate is good enough, or begin anew."""
        point, attempt = self.point(problem, state), state.attempt
        rough = np.zeros(problem.source.n) if point.beta is None else point.beta
        polished = self.improve_dual(problem, rough, point.b, state.counts.visits)
        if polished is not None:
            point = point._replace(beta=polished)
        if problem.certify(point).gap <= attempt.bound:
            return state._replace(attempt=attempt._replace(accepted=True))
        state.model.v[:] = 0.0
        state.model.errors[:] = 0
        attempt = attempt._replace(before=state.counts)
        return self._draw_stop(state._replace(cursor=Cursor(), attempt=attempt))


def excess_bound(problem: Problem, T: int, projection: bool, delta: float = DELTA) -> float:
    """``42 c ln(T/delta) / (lam T)``."""
    geometry = problem.primal_geometry(0.0)
    length = np.sqrt(problem.source.squared_norms + geometry.rho2)
    R = float(np.max(problem.source.weight * geometry.weight_scale * length))
    R = max(R, 1.0)  # the theorem has it so
    c = (math.sqrt(problem.lam) + R) ** 2 if projection else 4.0 * R * R
    return 42.0 * c * math.log(max(T, SHORTEST) / delta) / (problem.lam * max(T, SHORTEST))
