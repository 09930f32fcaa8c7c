"""Accelerated mini-batch stochastic dual coordinate ascent (Shalev-Shwartz and Zhang, NIPS 2013), for every
loss.

Step t, with v = w(beta) (the gradient of g* at the mean dual), on a random batch I of m rows:

    u = (1 - theta) w + theta v
    beta_i <- (1 - theta) beta_i - theta phi_i'(<u, x_i>)   for i in I
    w <- (1 - theta) w + theta v                            with the new v

w is a running mean of the v's, so w = w(mix) for the same running mean of the duals, ``mix <- (1 - theta) mix
+ theta beta``: that is the pair to certify. Nothing costs O(d) or O(n) a step: w is kept as ``v + sigma h``
with sigma = (1 - theta)^t, and a change of v by a multiple of a row changes h by that multiple over -sigma;
the mix of a row left alone for k steps is ``beta + (1 - theta)^k (mix - beta)``.

theta, from the theory: with ``G = gamma lam N / max c_i |x_i|^2`` (the paper has |x_i| <= 1) and |phi''| <=
1/gamma,

    theta = 1/4 min(1, sqrt(G/m), G, G^(2/3) / m^(1/3))

and the gap falls by a factor of e in 1/theta epochs. Larger values often work, and may diverge. Unless given,
m is the largest batch for which the theory does not ask for a smaller theta: max(G, 1/G).

A loss with a kink enters through its smoothing ``phi_gamma* = phi* + gamma/2 beta^2`` (for the hinge, the
smoothed hinge). It lies at most ``gamma/2 max beta^2`` below the loss, and its optimum need not be any better
than that for the loss asked for. -phi_gamma'(s) is the dual step of the loss from beta = 0 at curvature
gamma. ``gamma=auto`` begins at 1 and divides by 4 once the smoothing makes up most of the gap: where the gap
is at most twice that bound and a stage has lasted 3/theta epochs, or at a tenth of the bound. Certificates
are those of the loss asked for.

Batches run in threads: they share out the rows for the scores, and v and h for the updates. The result is the
same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...core.losses import Loss
from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats, Words
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ...runtime.random import below, generator
from ...training.stopping import Reason
from . import averaging
from .averaging import AVERAGE, LAST, Suffix
from .start import dual_start

SMALLEST = 1e-100  # of sigma, before h takes it in
SHRINK = 4.0  # gamma is divided by this from stage to stage
SETTLED = 3.0  # times 1/theta epochs after which a stage counts as solved
REFRESH = 64  # epochs after which v and w are computed anew from the duals
WORTH = 400_000  # entries in a batch from which on threads pay


class Lagging(NamedTuple):
    """The dual behind w, row by row as of step ``touched``, and the sum of its values at the steps before
    that.
    """

    mix: Floats
    touched: Any  # int64
    total: Floats  # empty where no average is asked for


class Mean(NamedTuple):
    """w = v + sigma h, b = v_bias + sigma h_bias; and what was done."""

    sigma: float
    v_bias: float
    h_bias: float
    updates: int
    entries: int


class State(NamedTuple):
    """v = w(beta) and w = w(mix) at all times."""

    v: Floats
    h: Floats
    beta: Floats
    lagging: Lagging
    rows: Any  # uint32; those of positive weight, the last batch first
    rng: Words
    mean: Mean
    suffix: Suffix
    m: int
    theta: float
    gamma: float  # of the smoothing; 0 for a smooth loss
    steps: int
    staged: int  # the step at which gamma last fell
    refreshed: int  # the step at which v and w were last computed anew
    paused: bool = False

    @property
    def counts(self) -> Counts:
        """What the loop wants to know."""
        return Counts(self.m * self.steps, self.mean.updates, self.mean.entries)


@dataclass(frozen=True)
class ASDCA:
    """Accelerated mini-batch SDCA."""

    seed: int = field(default=0, metadata={"help": "seed of the random batches"})
    m: int = field(default=0, metadata={"help": "rows in a batch (0: as many as cost nothing in theory)"})
    theta: str = field(default="theory", metadata={"help": "the step, a number in (0, 1], or theory"})
    gamma: str = field(
        default="auto",
        metadata={"help": "for losses with kinks: how far to round them, or auto: less and less to the gap"},
    )
    output: str = field(default=LAST, metadata={"help": "last, or average (of the models from step T0 on)"})
    T0: int = field(
        default=0, metadata={"help": "first step of the average (0: about half of the run, whenever it ends)"}
    )

    name = "asdca"
    summary = "accelerated mini-batch SDCA, for smooth losses, and for the others by smoothing them"

    def __post_init__(self) -> None:
        averaging.check_output(self.output, self.T0, (LAST, AVERAGE))
        if self.m < 0:
            raise InputError(
                f"m={self.m!r} must be a number of rows >= 0 (0: as many as cost nothing in theory)"
            )
        theta, gamma = _number("theta", self.theta, "theory"), _number("gamma", self.gamma, "auto")
        if theta is not None and not 0.0 < theta <= 1.0:
            raise InputError(f"theta={self.theta} must lie in (0, 1], or be 'theory'")
        if gamma is not None and not (math.isfinite(gamma) and gamma > 0.0):
            raise InputError(f"gamma={self.gamma} must be a positive number, or 'auto'")

    def check(self, problem: Problem, steps: float) -> None:
        """What can be wrong with the options once the data and the length of the run are known."""
        if self.m > problem.epoch_size:
            raise InputError(f"m={self.m} is more than the {problem.epoch_size} rows there are; lower m")
        if self.gamma != "auto" and math.isfinite(problem.loss.smoothness):
            raise InputError(
                f"gamma={self.gamma} smooths a loss, and {problem.loss.name!r} is smooth; leave gamma out"
            )
        m, _, _ = self._constants(problem)
        averaging.check_T0(self.T0, steps / m, f"steps of {m} rows")

    def plan(self, problem: Problem, tol: float) -> list[str]:
        """What the theory promises, in words."""
        m, theta, gamma = self._constants(problem)
        rate = 1.0 / theta_of_theory(problem, gamma, m)
        lines = [
            f"asdca: batches of m={m} rows, theta={theta:.3g}",
            f"at the theta of the theory, the expected gap falls by a factor of e in {rate:,.0f} epochs",
        ]
        if gamma > 0.0:
            stages = ", and is divided by 4 as often as the gap asks for" if self.gamma == "auto" else ""
            bound = left_by_smoothing(problem.loss, gamma)
            lines.append(
                f"gamma={gamma:g} rounds the loss's kinks, which may leave a gap of {bound:.3g} in mean "
                f"form{stages}"
            )
        return lines

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at beta = 0, or at the dual point of a warm start."""
        v, b, beta = dual_start(problem, warm)
        m, theta, gamma = self._constants(problem)
        rows = np.flatnonzero(problem.source.weight).astype(np.uint32)
        total = np.zeros(beta.size if self.output == AVERAGE else 0)
        lagging = Lagging(beta.copy(), np.zeros(beta.size, dtype=np.int64), total)
        suffix = averaging.begin(self.output, self.T0, beta.size, math.ceil(rows.size / m))
        mean = Mean(1.0, b, 0.0, 0, 0)
        rng = generator(self.seed)
        return State(v, np.zeros_like(v), beta, lagging, rows, rng, mean, suffix, m, theta, gamma, 0, 0, 0)

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """Make whole steps until the budget is spent."""
        if last is not None:
            state = self.notice(problem, state, last)
            if (state.steps - state.refreshed) * state.m >= REFRESH * problem.epoch_size:
                state = self.recompute_primal(problem, state)
        end = state.steps + max(1, math.ceil(budget / state.m))
        with _workers(problem, state.m) as pool:
            while state.steps < end:
                stop = int(min(end, averaging.next_event(self.output, state.suffix, state.steps)))
                mean = _advance(problem, state, stop, pool)
                state = state._replace(mean=Mean(*mean), steps=stop)
                if stop == state.suffix.mark:
                    suffix = averaging.turn(
                        self.output, self.T0, state.suffix, stop, *_up_to_date(state), state.rng
                    )
                    state = state._replace(suffix=suffix)
        return state

    def point(self, problem: Problem, state: State) -> Point:
        """w and the dual it is made of, of the iterate that is asked for."""
        mix, total = _up_to_date(state)
        beta = averaging.offered(self.output, state.suffix, state.steps, mix, total)
        if beta is not None:
            beta = averaging.clipped(problem, beta)
            return Point(*problem.model_of(beta, state.mean.v_bias), beta)
        sigma, v_bias, h_bias, _, _ = state.mean
        return Point(state.v + sigma * state.h, v_bias + sigma * h_bias, averaging.clipped(problem, mix))

    def shift_bias(self, state: State, centre: float) -> tuple[State, float]:
        """The same duals under a bias whose centre moves to the present one."""
        b = state.mean.v_bias  # b(beta): that of the model lags behind it
        return state._replace(mean=state.mean._replace(v_bias=2.0 * b - centre)), b

    def recompute_primal(self, problem: Problem, state: State) -> State:
        """v and w computed anew from the duals, so that rounding errors do not pile up."""
        v, v_bias = problem.model_of(state.beta, state.mean.v_bias)
        w, b = problem.model_of(
            _up_to_date(state)[0], state.mean.v_bias + state.mean.sigma * state.mean.h_bias
        )
        mean = state.mean._replace(sigma=1.0, v_bias=v_bias, h_bias=b - v_bias)
        return state._replace(v=v, h=w - v, mean=mean, refreshed=state.steps)

    def finished(self, state: State) -> Reason | None:
        """Only a gap or a limit ends it."""
        return None

    def _constants(self, problem: Problem) -> tuple[int, float, float]:
        """m, theta and gamma to begin with."""
        gamma = 0.0 if math.isfinite(problem.loss.smoothness) else _number("gamma", self.gamma, "auto") or 1.0
        G = _conditioning(problem, gamma)
        m = self.m or int(min(max(G, 1.0 / G), problem.epoch_size))
        return m, _number("theta", self.theta, "theory") or theta_of_theory(problem, gamma, m), gamma

    def notice(self, problem: Problem, state: State, last: Evaluation) -> State:
        """Smooth less once the smoothing, and not the distance to its optimum, makes up the gap."""
        if state.gamma == 0.0 or self.gamma != "auto":
            return state
        gap, bound = last.primal - last.dual, left_by_smoothing(problem.loss, state.gamma)
        settled = (state.steps - state.staged) * state.m * state.theta >= SETTLED * problem.epoch_size
        if gap > 2.0 * bound or (gap > 0.1 * bound and not settled):
            return state
        mix, total = _up_to_date(state)  # as of this step: from here on the mean runs at another pace
        lagging = Lagging(mix, np.full_like(state.lagging.touched, state.steps), total)
        gamma = state.gamma / SHRINK
        theta = _number("theta", self.theta, "theory") or theta_of_theory(problem, gamma, state.m)
        return state._replace(lagging=lagging, gamma=gamma, theta=theta, staged=state.steps)


def theta_of_theory(problem: Problem, gamma: float, m: int) -> float:
    """The largest theta for which the rate is proven."""
    G = _conditioning(problem, gamma)
    return 0.25 * min(1.0, math.sqrt(G / m), G, math.pow(G * G / m, 1.0 / 3.0))


def left_by_smoothing(loss: Loss, gamma: float) -> float:
    """How far the smoothed loss may lie below the loss."""
    low, high = loss.dual_bounds(1.0)
    return 0.5 * gamma * max(low * low, high * high)


def _conditioning(problem: Problem, gamma: float) -> float:
    """G."""
    return (gamma or 1.0 / problem.loss.smoothness) / max(float(problem.curvatures.max()), 1e-12)


def _number(name: str, text: str, word: str) -> float | None:
    if text == word:
        return None
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{name}={text!r} must be a number or {word!r}") from None


def _up_to_date(state: State) -> tuple[Floats, Floats]:
    """The dual behind w at this step, and the sum of those of all steps before."""
    mix, touched, total = state.lagging
    waited = state.steps - touched
    left = (1.0 - state.theta) ** waited
    off = mix - state.beta
    if total.size:
        total = total + waited * state.beta + off * ((1.0 - left) / state.theta)
    return state.beta + left * off, total


@contextmanager
def _workers(problem: Problem, m: int) -> Iterator[ThreadPoolExecutor | None]:
    """Threads that end with the step, where a batch is large enough to be worth it."""
    threads = getattr(problem.source, "threads", 1)
    if threads > 1 and m * problem.source.nnz >= WORTH * problem.source.n:
        with ThreadPoolExecutor(threads) as pool:
            yield pool
    else:
        yield None


def _advance(problem: Problem, state: State, stop: int, pool: ThreadPoolExecutor | None) -> Mean:
    """Steps up to ``stop``."""
    (part,) = problem.source.parts()
    threads = getattr(problem.source, "threads", 1)
    run: Any = _batches if pool is None else partial(_threaded_batches, pool, threads)
    mean: Mean = run(
        *part.batch[:3],
        problem.loss,
        problem.scale,
        problem.bias_rate,
        *state[:7],
        state.m,
        state.theta,
        state.gamma,
        state.steps,
        stop,
    )
    return mean


def _threaded_batches(
    pool: ThreadPoolExecutor,
    threads: int,
    rows: Any,
    y: Floats,
    weight: Floats,
    loss: Any,
    scale: float,
    bias_rate: float,
    v: Floats,
    h: Floats,
    beta: Floats,
    lagging: Lagging,
    order: Any,
    rng: Words,
    mean: Mean,
    m: int,
    theta: float,
    gamma: float,
    now: int,
    stop: int,
) -> Mean:
    """What ``_batches`` does, with several threads."""
    targets, moves = np.empty(m), np.empty(m)
    edges = list(pairwise(m * k // threads for k in range(threads + 1)))
    for step in range(now, stop):
        mean = _settle(h, mean, theta)
        _pick(rng, order, m)

        def aim(edge: tuple[int, int], mean: Mean = mean) -> int:
            return _aim(
                rows, y, loss, v, h, mean, theta, gamma, order[edge[0] : edge[1]], targets[edge[0] : edge[1]]
            )

        entries = sum(pool.map(aim, edges))
        updates = _move(weight, beta, *lagging, order, targets, moves, theta, step)

        def add(which: tuple[float, Floats]) -> int:
            return _add(rows, order, moves, which[0], which[1])

        entries += sum(pool.map(add, [(scale, v), (-scale / mean.sigma, h)] if theta < 1.0 else [(scale, v)]))
        mean = _after(mean, moves, bias_rate, theta, updates, entries)
    return mean


@kernel
def _batches(
    rows: Any,
    y: Floats,
    weight: Floats,
    loss: Any,
    scale: float,
    bias_rate: float,
    v: Floats,
    h: Floats,
    beta: Floats,
    lagging: Lagging,
    order: Any,
    rng: Words,
    mean: Mean,
    m: int,
    theta: float,
    gamma: float,
    now: int,
    stop: int,
) -> Mean:
    """Steps ``now`` to ``stop``."""
    targets, moves = np.empty(m), np.empty(m)
    for step in range(now, stop):
        mean = _settle(h, mean, theta)
        _pick(rng, order, m)
        entries = _aim(rows, y, loss, v, h, mean, theta, gamma, order[:m], targets)
        updates = _move(
            weight, beta, lagging.mix, lagging.touched, lagging.total, order, targets, moves, theta, step
        )
        entries += _add(rows, order, moves, scale, v)
        if theta < 1.0:
            entries += _add(rows, order, moves, -scale / mean.sigma, h)
        mean = _after(mean, moves, bias_rate, theta, updates, entries)
    return mean


@kernel
def _settle(h: Floats, mean: Mean, theta: float) -> Mean:
    """Let h take sigma in before it vanishes; at theta = 1 it is 0 at once, and w = v."""
    if mean.sigma >= SMALLEST and theta < 1.0:
        return mean
    h *= mean.sigma if theta < 1.0 else 0.0
    return Mean(
        1.0, mean.v_bias, mean.h_bias * mean.sigma if theta < 1.0 else 0.0, mean.updates, mean.entries
    )


@kernel
def _pick(rng: Words, order: Any, m: int) -> None:
    """A random batch, each equally likely, in front."""
    for k in range(m):
        other = k + below(rng, order.shape[0] - k)
        order[k], order[other] = order[other], order[k]


@kernel
def _aim(
    rows: Any,
    y: Floats,
    loss: Any,
    v: Floats,
    h: Floats,
    mean: Mean,
    theta: float,
    gamma: float,
    batch: Any,
    targets: Floats,
) -> int:
    """``-phi'(<u, x_i>)`` for the rows of a batch, of the smoothed loss where gamma > 0."""
    factor = (1.0 - theta) * mean.sigma
    entries = 0
    for k in range(batch.shape[0]):
        if k + 4 < batch.shape[0]:
            rows.prefetch_row(batch[k + 4])
        i = batch[k]
        score = rows.dot(i, v) + mean.v_bias + factor * (rows.dot(i, h) + mean.h_bias)
        low, high = loss.dual_bounds(y[i])
        targets[k] = min(max(loss.dual_prox(y[i], score, 0.0, gamma), low), high)
        entries += 2 * rows.count(i)
    return entries


@kernel
def _move(
    weight: Floats,
    beta: Floats,
    mix: Floats,
    touched: Any,
    total: Floats,
    order: Any,
    targets: Floats,
    moves: Floats,
    theta: float,
    step: int,
) -> int:
    """The new duals of a batch; what lagged is brought up to the step before they take effect."""
    updates = 0
    for k in range(targets.shape[0]):
        i = order[k]
        change = theta * (targets[k] - beta[i])
        moves[k] = weight[i] * change
        if change == 0.0:
            continue
        waited = step - touched[i]
        left = (1.0 - theta) ** waited
        off = mix[i] - beta[i]
        if total.shape[0] > 0:
            total[i] += waited * beta[i] + off * ((1.0 - left) / theta)
        mix[i] = beta[i] + left * off
        touched[i] = step
        beta[i] += change
        updates += 1
    return updates


@kernel
def _add(rows: Any, order: Any, moves: Floats, factor: float, vector: Floats) -> int:
    """``vector += factor sum of moves_k x_k``."""
    entries = 0
    for k in range(moves.shape[0]):
        if k + 4 < moves.shape[0]:
            rows.prefetch_row(order[k + 4])
        if moves[k] != 0.0:
            rows.add(order[k], factor * moves[k], vector)
            entries += rows.count(order[k])
    return entries


@kernel
def _after(mean: Mean, moves: Floats, bias_rate: float, theta: float, updates: int, entries: int) -> Mean:
    """The biases and sigma after a step."""
    push = bias_rate * moves.sum()
    h_bias = mean.h_bias - push / mean.sigma if theta < 1.0 else 0.0
    sigma = mean.sigma * (1.0 - theta) if theta < 1.0 else 1.0
    return Mean(sigma, mean.v_bias + push, h_bias, mean.updates + updates, mean.entries + entries)
