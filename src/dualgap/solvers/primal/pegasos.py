"""Pegasos: projected stochastic subgradient descent on the SVM (Shalev-Shwartz, Singer and Srebro, ICML
2007).

    step t = 1, 2, ...:  A: k rows drawn at random, A+: those with y <w, x> < 1
    w <- (1 - 1/t) w + 1/(lam t k) sum over A+ of y x
    w <- min(1, 1/(sqrt(lam) |w|)) w                           (projection, if asked for)

w is kept as ``s v``: a step costs the entries of its batch, never O(d). s takes in the shrinking and the
projection, and v takes in s before it vanishes. |w|^2 follows from the inner products at hand and is computed
anew every so often, so that it does not drift. The first step multiplies w by 0, so a random start is
forgotten at once. A margin of exactly 1 is no update. A weight multiplies its row's term by c n/N.

Random stopping (section 3.3 of the study that this follows): for a t drawn from 1..T, with probability 1/2 at
least,

    f(w_t) <= f(w*) + 42 c ln(T/delta) / (lam T)

with c = (sqrt(lam) + R)^2 with projection and 4 R^2 without, R = max |x| >= 1 and lam <= 1/4.
``stop_within=T`` draws t, runs that far, and looks whether a certificate proves as much; if not, it begins
anew with another t.

Counters of the updates that each row caused make a dual point once they are clipped to the box.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats, Words
from ...runtime.errors import InputError
from ...runtime.jit import kernel, prefetch
from ...runtime.random import below, generator, resample, shuffle
from ...runtime.counts import Counts
from ...training.stopping import Reason
from ..dual import averaging
from ..dual.averaging import AVERAGE, LAST, Suffix
from .options import BIASES, bias_step_option, constant_feature, duals_option, not_negative, one_of
from .polishing import Polished, polish_option

REPLACEMENT, DISTINCT, EPOCHS = SAMPLINGS = ("replacement", "distinct", "epochs")
ZERO, BALL = STARTS = ("zero", "ball")
SMALLEST, SMALLEST_OF_MEAN = 1e-9, 1e-4  # of s, before v takes it in
REFRESH = 1_000_000  # row visits, or 10 d, after which |w|^2 is computed anew
_FAR, _NEAR = 12, 5  # rows ahead at which a row's numbers, and then its entries, are fetched
DELTA = 0.5  # of the bound: the theorem's probability is 1/2


class Walk(NamedTuple):
    """Where the solver stands; w = s v."""

    steps: int
    t: int  # steps that count for the learning rate
    position: int  # in the rows laid out; -1: lay out more
    s: float
    square: float  # |w|^2, the constant feature included
    v_bias: float  # the constant feature's part of v
    b: float  # a bias that is not regularised
    past: float  # the sum of all w so far is past v + u
    u_bias: float
    refreshed: int  # visits when the square was last computed anew
    visits: int
    updates: int
    entries: int


class State(NamedTuple):
    """w = s v."""

    v: Floats
    u: Floats  # empty where no average is asked for
    errors: Any  # int32: updates caused by each row; empty where no duals are kept
    rows: Any  # uint32, of positive weight
    picks: Any  # uint32: rows laid out for some batches
    rng: Words
    walk: Walk
    suffix: Suffix
    before: Counts  # of attempts given up
    stop_at: int  # the step at which this attempt ends; -1: it does not
    bound: float  # what it has to prove
    attempt: int
    accepted: bool
    paused: bool = False

    @property
    def counts(self) -> Counts:
        """What the loop wants to know."""
        walk = self.walk
        now = (walk.visits, walk.updates, walk.entries)
        return Counts(*(then + more for then, more in zip(self.before, now, strict=True)))


@dataclass(frozen=True)
class Pegasos(Polished):
    """Projected stochastic subgradient descent."""

    seed: int = field(default=0, metadata={"help": "seed of the random rows"})
    k: int = field(default=1, metadata={"help": "rows in a batch"})
    projection: bool = field(
        default=False, metadata={"help": "project w into the ball of radius 1/sqrt(lam)"}
    )
    sampling: str = field(
        default=REPLACEMENT,
        metadata={
            "help": "replacement, distinct (k different rows), or epochs (a fresh order, cut into batches)"
        },
    )
    first_w: str = field(
        default=ZERO, metadata={"help": "zero, or ball: random inside the ball (the first step erases it)"}
    )
    skip_lossless: bool = field(
        default=False, metadata={"help": "do not advance t where a batch has no loss"}
    )
    output: str = field(
        default=LAST, metadata={"help": "last, average (of the models from step T0 on) or random (one)"}
    )
    T0: int = field(
        default=0,
        metadata={"help": "first step of the average or the random choice (0: about half of the run)"},
    )
    stop_within: int = field(
        default=0,
        metadata={
            "help": "stop at a random step of the first so many, and try again if it is bad (0: do not)"
        },
    )
    duals: bool = duals_option()
    bias_step: float = bias_step_option()
    polish: int = polish_option()

    name = "pegasos"
    summary = "projected stochastic subgradient descent with batches of k rows, for the hinge loss"
    losses = ("hinge",)
    biases = BIASES

    def __post_init__(self) -> None:
        self.check_polish()
        if self.k < 1:
            raise InputError(f"k={self.k!r} must be a number of rows >= 1")
        if self.stop_within < 0:
            raise InputError(
                f"stop_within={self.stop_within!r} must be a number of steps >= 0 (0: no random stopping)"
            )
        one_of(self, "sampling", SAMPLINGS)
        one_of(self, "first_w", STARTS)
        not_negative(self, "bias_step")
        averaging.check_output(self.output, self.T0)
        if self.stop_within and self.output != LAST:
            raise InputError(
                f"stop_within={self.stop_within} is a random choice of its own; leave out "
                f"output={self.output!r}"
            )

    def check(self, problem: Problem, steps: float) -> None:
        """What can be wrong with the options once the data and the length of the run are known."""
        if self.k > problem.epoch_size:
            raise InputError(f"k={self.k} is more than the {problem.epoch_size} rows there are; lower k")
        averaging.check_T0(self.T0, steps / self.k, f"steps of {self.k} rows")
        if self.stop_within * self.k > steps:
            raise InputError(
                f"stop_within={self.stop_within} is beyond the run of {steps / self.k:.0f} steps; lower it "
                "or raise "
                "max_steps or max_epochs"
            )

    def plan(self, problem: Problem, tol: float) -> list[str]:
        """What the theory promises, in words."""
        T = self.stop_within or 100 * problem.epoch_size
        if problem.lam > 0.25 or self.sampling == EPOCHS or self.skip_lossless:
            return [
                "pegasos: its bound is for lam <= 1/4, rows drawn anew for every step, and a t that always "
                "advances"
            ]
        lines = [
            f"pegasos: at a step drawn from the first {T:,}, the objective is with probability 1/2 or more "
            "within "
            f"{excess_bound(problem, T, self.projection):.3g} of its minimum, in mean form"
        ]
        if problem.bias.kind == "exact":
            return [*lines, "that is without a bias: for bias=exact no bound is known"]
        return lines

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at 0, or inside the ball."""
        source = problem.source
        rows = np.flatnonzero(source.weight).astype(np.uint32)
        rng = generator(self.seed)
        v, square = np.zeros(source.d), 0.0
        if self.first_w == BALL:
            direction = np.random.default_rng(self.seed)
            v = direction.normal(size=source.d)
            v *= direction.random() ** (1.0 / source.d) / (math.sqrt(problem.lam) * float(np.linalg.norm(v)))
            square = float(np.dot(v, v))
        picks = np.zeros(self.k * max(1, rows.size // self.k), dtype=np.uint32)
        u = np.zeros(source.d if self.output == AVERAGE else 0)
        errors = np.zeros(source.n if self.duals else 0, dtype=np.int32)
        suffix = averaging.begin(self.output, self.T0, source.d + 1, math.ceil(rows.size / self.k))
        walk = Walk(0, 0, -1, 1.0, square, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0)
        bound = excess_bound(problem, self.stop_within, self.projection) if self.stop_within else 0.0
        state = State(v, u, errors, rows, picks, rng, walk, suffix, Counts(), -1, bound, 0, False)
        return self._draw_stop(state) if self.stop_within else state

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """Make whole steps until the budget is spent."""
        (part,) = problem.source.parts()
        if not self.stop_within:  # it may have been asked for in a run that goes on here
            state = state._replace(stop_at=-1, accepted=False)
        end = state.walk.steps + max(1, math.ceil(budget / self.k))
        if state.stop_at >= 0:
            end = min(end, state.stop_at)
        while state.walk.steps < end:
            stop = int(min(end, averaging.next_event(self.output, state.suffix, state.walk.steps)))
            walk = _walk(
                *part.batch,
                problem.loss.margin,
                problem.lam,
                problem.epoch_size / problem.total_weight,
                constant_feature(problem),
                self.bias_step if problem.bias.kind == "exact" else 0.0,
                state.v,
                state.u,
                state.errors,
                state.rows,
                state.picks,
                state.rng,
                state.walk,
                self.k,
                SAMPLINGS.index(self.sampling),
                self.projection,
                self.skip_lossless,
                stop,
            )
            state = state._replace(walk=Walk(*walk))
            if stop < end or stop == averaging.next_event(self.output, state.suffix, stop - 1):
                now, total = _model(state), _total(state)
                suffix = averaging.turn(self.output, self.T0, state.suffix, stop, now, total, state.rng)
                state = state._replace(suffix=suffix)
        return self._stop_or_retry(problem, state) if state.walk.steps == state.stop_at else state

    def point(self, problem: Problem, state: State) -> Point:
        """The model that is asked for, and the counters as a dual point."""
        model = averaging.offered(self.output, state.suffix, state.walk.steps, _model(state), _total(state))
        if model is None:
            model = _model(state)
        beta = None
        if self.duals and state.walk.t > 0:
            share = np.minimum(state.errors * (problem.epoch_size / (state.walk.t * self.k)), 1.0)
            beta = problem.source.y * share
        return Point(model[:-1], float(model[-1]), beta)

    def finished(self, state: State) -> Reason | None:
        """Random stopping."""
        if not state.accepted:
            return None
        tries = "attempt" if state.attempt == 1 else "attempts"
        return Reason(
            "random stop",
            f"stopped at step {state.stop_at:,}, drawn from {self.stop_within:,}, after {state.attempt} "
            f"{tries}: "
            f"proven to be within {state.bound:.3g} of the minimum, in mean form",
        )

    def _draw_stop(self, state: State) -> State:
        return state._replace(stop_at=1 + below(state.rng, self.stop_within), attempt=state.attempt + 1)

    def _stop_or_retry(self, problem: Problem, state: State) -> State:
        """Accept this model, if its certificate is good enough, or begin anew."""
        point = self.point(problem, state)
        rough = np.zeros(problem.source.n) if point.beta is None else point.beta
        polished = self.improve_dual(problem, rough, point.b, state.counts.visits)
        if polished is not None:
            point = point._replace(beta=polished)
        if problem.certify(point).gap <= state.bound:
            return state._replace(accepted=True)
        state.v[:] = 0.0
        state.errors[:] = 0
        walk = Walk(0, 0, -1, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0)
        return self._draw_stop(state._replace(before=state.counts, walk=walk))


def excess_bound(problem: Problem, T: int, projection: bool) -> float:
    """``42 c ln(T/delta) / (lam T)``."""
    square = problem.source.squared_norms + constant_feature(problem)
    R = float(np.max(problem.source.weight * (problem.epoch_size / problem.total_weight) * np.sqrt(square)))
    R = max(R, 1.0)  # the theorem has it so
    c = (math.sqrt(problem.lam) + R) ** 2 if projection else 4.0 * R * R
    return 42.0 * c * math.log(max(T, 3) / DELTA) / (problem.lam * max(T, 3))


def _model(state: State) -> Floats:
    """w and b in one vector."""
    walk = state.walk
    return np.append(walk.s * state.v, walk.s * walk.v_bias + walk.b)


def _total(state: State) -> Floats:
    """The sum of the models of all steps so far, the present one left out."""
    walk = state.walk
    if not state.u.size:
        return state.u
    return np.append(walk.past * state.v + state.u, walk.past * walk.v_bias + walk.u_bias)


@kernel
def _walk(
    rows: Any,
    y: Floats,
    weight: Floats,
    squared_norms: Floats,
    margin: float,
    lam: float,
    ratio: float,
    constant: float,
    bias_step: float,
    v: Floats,
    u: Floats,
    errors: Any,
    present: Any,
    picks: Any,
    rng: Words,
    walk: Walk,
    k: int,
    sampling: int,
    projection: bool,
    skip_lossless: bool,
    stop: int,
) -> Walk:
    """Steps up to number ``stop``; samplings are numbered as in SAMPLINGS."""
    steps, t, position, s, square, v_bias, b, past, u_bias, refreshed, visits, updates, entries = walk
    averaged, counted = u.shape[0] > 0, errors.shape[0] > 0
    hits = np.empty(k, dtype=np.uint32)
    inner = np.empty(k)
    while steps < stop:
        if position < 0 or position + k > picks.shape[0]:
            position = 0
            if sampling == 0:
                resample(rng, present, picks)
            elif sampling == 2:
                shuffle(rng, present, present.shape[0])
                picks[:] = present[: picks.shape[0]]
        if sampling == 1:  # k different rows
            position = 0
            for j in range(k):
                other = j + below(rng, present.shape[0] - j)
                present[j], present[other] = present[other], present[j]
                picks[j] = present[j]
        found = 0
        for j in range(position, position + k):
            if j + _FAR < picks.shape[0]:
                ahead = picks[j + _FAR]
                rows.prefetch_offsets(ahead)
                prefetch(y, ahead)
                prefetch(weight, ahead)
                if counted:
                    prefetch(errors, ahead)
            if j + _NEAR < picks.shape[0]:
                rows.prefetch_row(picks[j + _NEAR])
            i = picks[j]
            entries += rows.count(i)
            score = s * (rows.dot(i, v) + v_bias)
            if y[i] * (score + b) < margin:
                hits[found] = i
                inner[found] = score
                found += 1
        position += k
        steps += 1
        visits += k
        if averaged:
            past += s
            u_bias += b
        if found == 0 and skip_lossless:
            continue
        t += 1
        if t == 1:  # the first step forgets where it began
            if averaged:
                u += past * v
                u_bias += past * v_bias
                past = 0.0
            v[:] = 0.0
            s, square, v_bias = 1.0, 0.0, 0.0
            inner[:found] = 0.0
        else:
            shrink = 1.0 - 1.0 / t
            s *= shrink
            square *= shrink * shrink
            inner[:found] *= shrink
        rate = 1.0 / (lam * t * k)
        gross = square
        for j in range(found):
            i = hits[j]
            push = rate * ratio * weight[i] * y[i]
            if projection:
                if j > 0:  # the rows before it have moved w
                    inner[j] = s * (rows.dot(i, v) + v_bias)
                    entries += rows.count(i)
                square += push * (2.0 * inner[j] + push * (squared_norms[i] + constant))
                gross = max(gross, square)
            move = push / s
            rows.add(i, move, v)
            v_bias += move * constant
            entries += rows.count(i)
            if averaged:
                rows.add(i, -past * move, u)
                u_bias -= past * move * constant
                entries += rows.count(i)
            if counted:
                errors[i] += 1
            b += bias_step * push
            updates += 1
        if projection:
            if (
                visits - refreshed >= max(REFRESH, 10 * v.shape[0]) or square < 1e-6 * gross
            ):  # rows that cancel
                refreshed = visits
                square = s * s * (np.dot(v, v) + (v_bias * v_bias / constant if constant > 0.0 else 0.0))
            if lam * square > 1.0:
                s /= math.sqrt(lam * square)
                square = 1.0 / lam
        if s < (SMALLEST_OF_MEAN if averaged else SMALLEST):
            if averaged:  # or else past v + u would cancel
                u += past * v
                u_bias += past * v_bias
                past = 0.0
            v *= s
            v_bias *= s
            s = 1.0
    return Walk(steps, t, position, s, square, v_bias, b, past, u_bias, refreshed, visits, updates, entries)
