"""Accelerated mini-batch stochastic dual coordinate ascent (Shalev-Shwartz and Zhang, NIPS 2013), for every
loss.

Step t, with v = w(beta) (the gradient of g* at the mean dual), on a random batch I of m rows:

    u = (1 - theta) w + theta v
    beta_i <- (1 - theta) beta_i - theta phi_i'(<u, x_i>)   for i in I
    w <- (1 - theta) w + theta v                            with the new v

w is a running mean of the v's, so w = w(mix) for the same running mean of the duals, ``mix <- (1 - theta) mix
+ theta beta``: that is the pair to certify. No step costs O(d) or O(n): w is kept as ``v + sigma h`` with
sigma = (1 - theta)^t, and a change of v by a multiple of a row changes h by that multiple over -sigma; the
mix of a row that has not changed for k steps is ``beta + (1 - theta)^k (mix - beta)``.

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

Where C is large that is slow: on a9a and w8a at C = 1 a gap of 1% takes more than 30 seconds, as the theory
has it. ``accelerated-sdca`` gets there in 13 and 57 epochs.

Large batches run in threads (``mini_batches.py``); the result does not depend on their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from ...core.geometry import DualGeometry
from ...core.losses import Loss
from ...core.problem import Evaluation, Point, Problem
from ...data.rows import Batch
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.options import option
from ...runtime.random import generator
from ...training.solver import Capabilities, Preset, Solver, Status, Steps
from ...training.states import state_class
from . import averaging
from .averaging import AVERAGE, LAST, Suffix
from .mini_batches import Cursor, InThreads, Iterate, Lagging, Pace, run_batches
from .start import dual_start

STAGE_FACTOR = 4.0  # gamma is divided by this from stage to stage
STAGE_LENGTH = 3.0  # times 1/theta epochs, after which a stage counts as solved
REFRESH = 64  # epochs after which v and w are computed anew from the duals
WORTH_THREADS = 400_000  # entries in a batch from which on threads pay

Run: TypeAlias = Callable[[Batch, Loss, DualGeometry, Iterate, int], Cursor]  # steps until so many are made


@state_class
class State(NamedTuple):
    """The iterate, the windows of averages, and when it was last smoothed less and computed anew."""

    iterate: Iterate
    suffix: Suffix
    staged: int = 0  # the step at which gamma last fell
    refreshed: int = 0  # the step at which v and w were last computed anew

    @property
    def counts(self) -> Counts:
        """Work done so far."""
        return self.iterate.cursor.counts

    @property
    def steps(self) -> int:
        """Batches so far."""
        return self.iterate.cursor.steps

    def at(self, **changes: Any) -> State:
        """The same with other values in the cursor."""
        cursor = self.iterate.cursor._replace(**changes)
        return self._replace(iterate=self.iterate._replace(cursor=cursor))


@dataclass(frozen=True)
class ASDCA(Solver[State]):
    """Accelerated mini-batch SDCA."""

    seed: int = option(0, "seed of the random batches")
    m: int = option(0, "rows in a batch (0: as many as cost nothing in theory)", low=0)
    theta: str = option("theory", "the step, a number in (0, 1], or theory")
    gamma: str = option(
        "auto", "for losses with kinks: how far to round them, or auto: less and less to the gap"
    )
    iterate: str = option(LAST, "last, or average (of the models from step T0 on)", choices=(LAST, AVERAGE))
    T0: int = option(0, "first step of the average (0: about half of the run, whenever it ends)", low=0)

    name = "asdca"
    summary = "accelerated mini-batch SDCA, for smooth losses, and for the others by smoothing them"
    capabilities = Capabilities(moves_bias=True)
    papers: ClassVar[Mapping[str, Preset]] = {
        "shalev-shwartz-2013": Preset(
            "Shalev-Shwartz and Zhang (2013), ASDCA, on the smoothed hinge of the study that this follows",
            {"m": 8, "gamma": "1"},
            "theta is that of its theory; the study has batches of 8, and 2 on its largest data. For a "
            "smooth loss leave gamma out. The objective is that of the loss asked for.",
        )
    }

    def check_together(self) -> None:
        """T0 goes with an average; theta and gamma are words or numbers in range."""
        averaging.check_iterate(self.iterate, self.T0)
        theta, gamma = (
            number_or_word("theta", self.theta, "theory"),
            number_or_word("gamma", self.gamma, "auto"),
        )
        if theta is not None and not 0.0 < theta <= 1.0:
            raise InputError(f"theta={self.theta} must lie in (0, 1], or be 'theory'")
        if gamma is not None and not (math.isfinite(gamma) and gamma > 0.0):
            raise InputError(f"gamma={self.gamma} must be a positive number, or 'auto'")

    def check(self, problem: Problem, visits: float) -> None:
        """A batch has at most all rows; smooth losses are not smoothed; averages begin before the end."""
        if self.m > problem.epoch_size:
            raise InputError(f"m={self.m} is more than the {problem.epoch_size} rows there are; lower m")
        if self.gamma != "auto" and math.isfinite(problem.loss.smoothness):
            raise InputError(
                f"gamma={self.gamma} smooths a loss, and {problem.loss.name!r} is smooth; leave gamma out"
            )
        m = self._pace(problem).m
        averaging.check_T0(self.T0, visits / m, f"steps of {m} rows")

    def plan(self, problem: Problem, tol: float) -> list[str]:
        """The rate of the theory, and what the smoothing leaves."""
        m, theta, gamma = self._pace(problem)
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

    def rows_per_iteration(self, problem: Problem) -> int:
        """A batch."""
        return self._pace(problem).m

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at beta = 0, or at the dual point of a warm start."""
        v, b, beta = dual_start(problem, warm)
        pace = self._pace(problem)
        rows = np.flatnonzero(problem.source.weight).astype(np.uint32)
        total = np.zeros(beta.size if self.iterate == AVERAGE else 0)
        lagging = Lagging(beta.copy(), np.zeros(beta.size, dtype=np.int64), total)
        suffix = averaging.begin(self.iterate, self.T0, beta.size, math.ceil(rows.size / pace.m))
        rng = generator(self.seed)
        return State(Iterate(v, np.zeros_like(v), beta, lagging, rows, rng, pace, Cursor(b)), suffix)

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Make whole steps until the budget is spent, on one thread."""
        return self.step_by(run_batches, problem, state, budget, news)

    def step_by(
        self, run: Run, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Make whole steps until the budget is spent; the windows of averages begin on the way."""
        m = state.iterate.pace.m
        if news is not None:
            state = self.take_news(problem, state, news)
            if (state.steps - state.refreshed) * m >= REFRESH * problem.epoch_size:
                state = self.recompute_primal(problem, state)
        end = state.steps + max(1, math.ceil(budget / m))
        while state.steps < end:
            stop = int(min(end, averaging.next_event(self.iterate, state.suffix, state.steps)))
            iterate = state.iterate
            cursor = run(problem.source.batch, problem.loss, problem.dual_geometry, iterate, stop)
            iterate = iterate._replace(cursor=cursor)
            state = state._replace(iterate=iterate)
            if stop == state.suffix.mark:
                mix, total = iterate.up_to_date
                suffix = averaging.turn(self.iterate, self.T0, state.suffix, stop, mix, total, iterate.rng)
                state = state._replace(suffix=suffix)
        return state, Status()

    def opened(self, problem: Problem, state: State) -> AbstractContextManager[Steps[State]]:
        """With threads, where there are several and a batch is large enough to be worth it."""
        source, m = problem.source, state.iterate.pace.m
        if source.threads > 1 and m * source.nnz >= WORTH_THREADS * source.n:
            return _opened(self, source.threads)
        return nullcontext(self)

    def point(self, problem: Problem, state: State) -> Point:
        """w and the dual it is made of, of the iterate that is asked for."""
        v, h, cursor = state.iterate.v, state.iterate.h, state.iterate.cursor
        mix, total = state.iterate.up_to_date
        beta = averaging.offered(self.iterate, state.suffix, state.steps, mix, total)
        if beta is not None:
            beta = averaging.clipped(problem, beta)
            return Point(*problem.model_of(beta, cursor.v_bias), beta)
        b = cursor.v_bias + cursor.sigma * cursor.h_bias
        return Point(v + cursor.sigma * h, b, averaging.clipped(problem, mix))

    def shift_bias(self, state: State, centre: float) -> tuple[State, float]:
        """The same duals under a bias whose centre moves to the present one."""
        b = state.iterate.cursor.v_bias  # b(beta): that of the model lags behind it
        return state.at(v_bias=2.0 * b - centre), b

    def recompute_primal(self, problem: Problem, state: State) -> State:
        """v and w computed anew from the duals, so that rounding errors do not accumulate."""
        iterate, cursor = state.iterate, state.iterate.cursor
        v, v_bias = problem.model_of(iterate.beta, cursor.v_bias)
        w, b = problem.model_of(iterate.up_to_date[0], cursor.v_bias + cursor.sigma * cursor.h_bias)
        state = state._replace(iterate=iterate._replace(v=v, h=w - v), refreshed=state.steps)
        return state.at(sigma=1.0, v_bias=v_bias, h_bias=b - v_bias)

    def take_news(self, problem: Problem, state: State, news: Evaluation) -> State:
        """Smooth less once the smoothing, and not the distance to its optimum, makes up the gap."""
        iterate = state.iterate
        m, theta, gamma = iterate.pace
        if gamma == 0.0 or self.gamma != "auto":
            return state
        gap, bound = news.primal - news.dual, left_by_smoothing(problem.loss, gamma)
        settled = (state.steps - state.staged) * m * theta >= STAGE_LENGTH * problem.epoch_size
        if gap > 2.0 * bound or (gap > 0.1 * bound and not settled):
            return state
        mix, total = iterate.up_to_date  # as of this step: the mean now runs at another pace
        lagging = Lagging(mix, np.full_like(iterate.lagging.touched, state.steps), total)
        gamma /= STAGE_FACTOR
        theta = number_or_word("theta", self.theta, "theory") or theta_of_theory(problem, gamma, m)
        iterate = iterate._replace(lagging=lagging, pace=Pace(m, theta, gamma))
        return state._replace(iterate=iterate, staged=state.steps)

    def _pace(self, problem: Problem) -> Pace:
        """m, theta and gamma to begin with."""
        gamma = (
            0.0
            if math.isfinite(problem.loss.smoothness)
            else number_or_word("gamma", self.gamma, "auto") or 1.0
        )
        G = _conditioning(problem, gamma)
        m = self.m or int(min(max(G, 1.0 / G), problem.epoch_size))
        return Pace(
            m, number_or_word("theta", self.theta, "theory") or theta_of_theory(problem, gamma, m), gamma
        )


@contextmanager
def _opened(solver: ASDCA, threads: int) -> Iterator[Steps[State]]:
    with ThreadPoolExecutor(threads) as pool:
        yield _Threaded(solver, InThreads(pool, threads))


@dataclass(frozen=True)
class _Threaded:
    """The steps of the solver, on several threads."""

    solver: ASDCA
    run: InThreads

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """As `ASDCA.step`."""
        return self.solver.step_by(self.run, problem, state, budget, news)


def theta_of_theory(problem: Problem, gamma: float, m: int) -> float:
    """The largest theta for which the rate is proven."""
    G = _conditioning(problem, gamma)
    return 0.25 * min(1.0, math.sqrt(G / m), G, math.pow(G * G / m, 1.0 / 3.0))


def left_by_smoothing(loss: Loss, gamma: float) -> float:
    """How far the smoothed loss may lie below the loss."""
    low, high = loss.dual_bounds(1.0)
    return 0.5 * gamma * max(low * low, high * high)


def _conditioning(problem: Problem, gamma: float) -> float:
    """G = gamma lam N / max c_i |x_i|^2."""
    return (gamma or 1.0 / problem.loss.smoothness) / max(float(problem.curvatures.max()), 1e-12)


def number_or_word(name: str, text: str, word: str) -> float | None:
    """An option that is a number, or the word for leaving it open (None)."""
    if text == word:
        return None
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{name}={text!r} must be a number or {word!r}") from None
