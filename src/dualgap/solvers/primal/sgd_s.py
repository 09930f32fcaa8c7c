"""SGD-s: stochastic gradient descent that knows how accurate it is (Panagiotakopoulos and Tsampouka, ICANN
2013).

With the step 1/(lam (t + 1)) the update of the SVM's stochastic gradient descent is, in terms of ``a = lam t
w``, that of a perceptron whose margin threshold grows with the number t of presentations (equations 5 to 7):

    a <- a + y_k   if  a.y_k <= lam t;    t <- t + 1      (y_k stands for the pattern y_k x_k; a tie is an
    update)

Shrinking w costs nothing. Over T complete epochs, each in a fresh order, pattern k is a margin error I_k <= T
times, so ``beta_k = I_k / T`` obeys the box and ``w = w(beta)``: a dual point for free, from which
Proposition 2 has the lower bound ``C M/T - |w|^2/2`` by the number M of margin errors alone. The paper's
stopping rule compares it with an estimate of the primal value, made of the scores that were needed anyway;
only if the two are within f times ``epsilon`` is the primal value itself computed. Certificates of this
package stop a run as well, at the gap asked for.

A weight multiplies its row's update, y_k by c_k n/N; the relations above hold with it. Presenting a pattern
several times in a row is SGD-m's business (``sgd_m.py``), whose kernel this is.
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
from ...runtime.random import generator, resample, shuffle
from ...runtime.counts import Counts
from ...training.stopping import Reason
from .options import (
    PRECISIONS,
    bias_step_option,
    constant_feature,
    duals_option,
    not_negative,
    one_of,
    precision_option,
)

_FAR, _NEAR = 12, 5  # looks ahead at which a row's numbers, and then its entries, are fetched
SHUFFLE, REPLACE, SPLIT = 1, 2, 4  # flags of the kernel


class March(NamedTuple):
    """Where the solver stands; the paper's symbols."""

    t: int  # presentations, repeated ones included
    T: int  # complete epochs, an epoch of multiplicity l counting as l
    epoch: int  # complete epochs as they are
    position: int  # the next pattern of this one; -1 before it is ordered
    M: float  # margin errors, each times its weight
    r: float  # |a|^2, the constant feature included
    L: float  # losses of this epoch as they were met
    a_bias: float  # the constant feature's part of a
    b: float  # a bias that is not regularised
    promising: bool  # the cheap estimate has met f epsilon
    visits: int
    updates: int
    entries: int


class State(NamedTuple):
    """w = a / (lam t); beta = I / T at the end of an epoch."""

    a: Any  # float64 or float32
    errors: Any  # int32: I
    picks: Any  # uint32: the patterns of an epoch
    rows: Any  # uint32: all of positive weight
    rng: Words
    march: March
    accurate: float  # the relative accuracy at which the paper's rule stopped; infinite if it did not
    paused: bool = False

    @property
    def counts(self) -> Counts:
        """What the loop wants to know."""
        return Counts(self.march.visits, self.march.updates, self.march.entries)


@dataclass(frozen=True)
class MarginErrors:
    """What SGD-r, SGD-s and SGD-m share."""

    seed: int = field(default=0, metadata={"help": "seed of the random order"})
    precision: str = precision_option()
    duals: bool = duals_option()
    bias_step: float = bias_step_option()

    losses = ("hinge",)
    biases = ("none", "augmented", "exact")

    def __post_init__(self) -> None:
        not_negative(self, "bias_step")
        one_of(self, "precision", PRECISIONS)

    @property
    def flags(self) -> int:
        """How an epoch is ordered, and how multiple updates are made."""
        return SHUFFLE

    @property
    def relative_accuracy(self) -> tuple[float, float]:
        """Where the paper's rule stops, and how close the estimate must be before it looks."""
        return 0.0, 1.0

    def multiplicity(self, epoch: int) -> int:
        """How often a pattern is presented in a row in that epoch, counted from 1."""
        return 1

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at a = 0: with its first step 1/(lam t) the method forgets where it began."""
        rows = np.flatnonzero(problem.source.weight).astype(np.uint32)
        march = March(0, 0, 0, -1, 0.0, 0.0, 0.0, 0.0, 0.0, False, 0, 0, 0)
        a = np.zeros(problem.source.d, dtype=self.precision)
        errors = np.zeros(problem.source.n if self.duals else 0, dtype=np.int32)
        return State(a, errors, rows.copy(), rows, generator(self.seed), march, math.inf)

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """Present patterns until the budget is spent, or the estimate calls for a look at the primal
        value.
        """
        (part,) = problem.source.parts()
        if last is not None:  # |a|^2 anew: rounding errors do not pile up
            square = float(np.dot(state.a, state.a.astype(np.float64)))
            state = state._replace(
                march=state.march._replace(r=square + _constant_part(problem, state.march))
            )
        stop = state.march.visits + budget
        epsilon, f = self.relative_accuracy
        if state.accurate > epsilon:  # a run that goes on, with a finer epsilon
            state = state._replace(accurate=math.inf)
        while state.march.visits < stop and not math.isfinite(state.accurate):
            march = _present(
                *part.batch,
                problem.loss.margin,
                problem.lam,
                problem.epoch_size / problem.total_weight,
                constant_feature(problem),
                self.bias_step if problem.bias.kind == "exact" else 0.0,
                *state[:5],
                state.march,
                self.multiplicity(state.march.epoch + 1),
                self.flags,
                epsilon * f,
                stop,
            )
            state = state._replace(march=March(*march))
            if state.march.promising:
                found = self._accuracy(problem, state)
                accurate = found if found <= epsilon else math.inf
                state = state._replace(accurate=accurate, march=state.march._replace(promising=False))
        return state

    def _accuracy(self, problem: Problem, state: State) -> float:
        """The relative gap of the present point; without counters the dual value is that of Proposition 2."""
        point, march = self.point(problem, state), state.march
        if point.beta is not None:
            return problem.certify(point).relative_gap
        if problem.bias.kind == "exact":  # the proposition has no such bias
            return math.inf
        half = 0.5 * march.r / (problem.lam * march.t**2)
        dual = problem.loss.margin * march.M / march.t - half
        return problem.evaluate(point).primal / dual - 1.0 if dual > 0.0 else math.inf

    def point(self, problem: Problem, state: State) -> Point:
        """w = a/(lam t), and the counters as a dual point, clipped in the middle of an epoch."""
        march = state.march
        if march.t == 0:
            return Point(np.zeros(problem.source.d), march.b, None)
        theta = problem.lam * march.t
        beta = None
        if self.duals:
            beta = problem.source.y * np.minimum(state.errors * (problem.epoch_size / march.t), 1.0)
        return Point(state.a.astype(np.float64) / theta, march.a_bias / theta + march.b, beta)

    def finished(self, state: State) -> Reason | None:
        """The paper's rule."""
        if state.accurate > self.relative_accuracy[0]:
            return None
        return Reason("epsilon", f"relative accuracy {state.accurate:.3g} reached, as asked for by epsilon")


@dataclass(frozen=True)
class SGDs(MarginErrors):
    """Stochastic gradient descent in epochs, with relative accuracy."""

    epsilon: float = field(
        default=0.0, metadata={"help": "also stop by the paper's rule, at this relative accuracy (0: never)"}
    )
    f: float = field(
        default=1.2, metadata={"help": "compute the primal value once its estimate is within f times epsilon"}
    )

    name = "sgd-s"
    summary = "stochastic gradient descent in epochs as a perceptron, with a dual point for free; hinge"
    in_epochs = True

    def __post_init__(self) -> None:
        super().__post_init__()
        not_negative(self, "epsilon")
        if not (math.isfinite(self.f) and self.f >= 1.0):
            raise InputError(f"f={self.f!r} must be a number >= 1 (the paper has 1.2)")

    @property
    def relative_accuracy(self) -> tuple[float, float]:
        """epsilon and f."""
        return self.epsilon, self.f


def _constant_part(problem: Problem, march: March) -> float:
    """The square of a's component along the constant feature."""
    square = constant_feature(problem)
    return march.a_bias**2 / square if square > 0.0 else 0.0


@kernel
def margin_errors(P: float, times: int, lam: float, q: float) -> int:
    """Proposition 3: of ``times`` presentations in a row, how many are margin errors; P = a.y - lam t, q =
    |y|^2.

    Where a free bias has pushed the threshold the other way (lam <= 0) the presentations are gone through one
    by one.
    """
    if lam > 0.0:
        if (times - 1) * lam < P:
            return 0
        return int(min(float(times), math.floor(((times - 1) * lam - P) / max(q, lam)) + 1.0))
    found = 0
    for _ in range(times):
        if P <= 0.0:
            P += q
            found += 1
        P -= lam
    return found


@kernel
def _present(
    rows: Any,
    y: Floats,
    weight: Floats,
    squared_norms: Floats,
    margin: float,
    lam: float,
    ratio: float,
    constant: float,
    bias_step: float,
    a: Any,
    errors: Any,
    picks: Any,
    present: Any,
    rng: Words,
    march: March,
    times: int,
    flags: int,
    target: float,
    stop: int,
) -> March:
    """Patterns up to visit number ``stop``, or to the end of an epoch."""
    t, T, epoch, position, M, r, L, a_bias, b, promising, visits, updates, entries = march
    n, counted = picks.shape[0], errors.shape[0] > 0
    if position < 0:
        position = 0
        L = 0.0
        if flags & REPLACE:
            resample(rng, present, picks)
        elif flags & SHUFFLE:
            shuffle(rng, picks, n)
    while position < n and visits < stop:
        if position + _FAR < n:
            ahead = picks[position + _FAR]
            rows.prefetch_offsets(ahead)
            if counted:
                prefetch(errors, ahead)
            prefetch(y, ahead)
            prefetch(weight, ahead)
            prefetch(squared_norms, ahead)
        if position + _NEAR < n:
            rows.prefetch_row(picks[position + _NEAR])
        i = picks[position]
        position += 1
        visits += 1
        entries += rows.count(i)
        share = ratio * weight[i]  # what a weight multiplies a pattern's update by
        q = share * (squared_norms[i] + constant)
        p = y[i] * (rows.dot(i, a) + a_bias)
        aim = margin - y[i] * b
        theta = lam * t
        if flags & SPLIT:
            behind = theta * aim - p  # repeated updates first, then all the shrinking
            few = int(min(float(times), math.floor(behind / q) + 1.0)) if q > 0.0 else times
            caused = few if behind >= 0.0 else 0
        else:
            caused = margin_errors(p - theta * aim, times, lam * aim, q)
        if p <= theta * aim:
            L += share * (aim - p / theta) if t > 0 else share * aim
        if caused > 0:
            if counted:
                errors[i] += caused
            move = caused * share * y[i]
            rows.add(i, move, a)
            a_bias += move * constant
            r += caused * share * (2.0 * p + caused * q)
            M += caused * share
            updates += 1
            entries += rows.count(i)
            if bias_step > 0.0:
                b += bias_step * move / (lam * (t + 1.0))
        t += times
    if position == n:
        position = -1
        T += times
        epoch += 1
        theta = lam * t
        half = 0.5 * lam * r / (theta * theta)
        primal = half + L / n
        dual = margin * M / t - half
        promising = primal - dual <= target * dual and target > 0.0
    return March(t, T, epoch, position, M, r, L, a_bias, b, promising, visits, updates, entries)
