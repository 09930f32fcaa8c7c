"""Stochastic dual coordinate ascent (Shalev-Shwartz and Zhang, JMLR 2013; SDCA and SDCA-Perm), for every
loss.

    pick a row i;   beta_i <- argmax over beta_i of D(beta);   w <- w + 1/(lam N) c_i (change of beta_i) x_i

An epoch is n picks, laid out beforehand, so that rows can be fetched ahead of time. ``order`` says how:

- ``random``: uniformly, with replacement, as in Algorithm 1;
- ``permutation``: a fresh permutation each epoch (SDCA-Perm);
- ``cyclic``: one random permutation for the whole run;
- ``importance``: with replacement, row i with probability in proportion to ``1 + q_i/gamma``, q_i the
  curvature of the dual along beta_i and |phi''| <= 1/gamma (gamma = 1 for a loss with kinks; Zhao and Zhang,
  ICML 2015);
- ``gaps``: with replacement, half of the picks in proportion to the rows' shares in the duality gap at the
  last certificate, which costs nothing extra, and half uniformly (after Perekrestenko, Cevher and Jaggi,
  AISTATS 2017).

The theory (section 2.4 of the study that this follows) has a number of steps after which the expected gap is
at most epsilon, for the hinge loss and L = max |x_i|:

    T = T0 + n + L^2 / (lam epsilon),    T0 = max(0, ceil(n log(0.5 lam n / L^2))) + 4 L^2 / (lam epsilon)

for the mean of the iterates from step T0 on, or one of them drawn at random; a larger T0 makes T larger by as
much. From T0 on the dual value of the last iterate is expected to be within epsilon/2 of its maximum
(``bound=dual``). For other Lipschitz losses L^2 in the last terms becomes the squared width of the box of
beta times max |x_i|^2 (4 L^2 where the loss has slopes of both signs). For a loss with |phi''| <= 1/gamma no
averaging is needed: ``T = (n + R) log((n + R) P(0) / epsilon)`` with ``R = max |x_i|^2 / (lam gamma)`` for
the gap of any iterate from there on, and ``(n + R) log(2 P(0) / epsilon)`` for half of it in the dual. A
weight multiplies its row's loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ...runtime.options import option
from ...training.solver import Capabilities, Preset, Solver, Status
from ...training.states import state_class
from ...training.stopping import Reason
from . import averaging
from .averaging import AVERAGE, ITERATES, LAST, Suffix
from .ordered_sweeps import (
    GAPS,
    IMPORTANCE,
    ORDERS,
    PERMUTATION,
    RANDOM,
    OrderedSweeper,
    Sweeps,
    make_alias,
)
from .start import dual_start
from .sweeper import Subproblem

GAP, DUAL = BOUNDS = ("gap", "dual")


@state_class
class State(NamedTuple):
    """w = w(beta) and b = b(beta) at all times."""

    w: Floats
    beta: Floats
    sweeps: Sweeps
    suffix: Suffix

    @property
    def counts(self) -> Counts:
        """Work done so far."""
        return self.sweeps.cursor.counts

    @property
    def total(self) -> Floats:
        """The sum of the duals of all steps so far, the present one left out; empty where no mean is asked
        for.
        """
        total, touched = self.sweeps.sums
        return total + self.beta * (self.counts.visits - touched) if total.size else total

    def with_b(self, b: float) -> State:
        """The same with another bias."""
        return self._replace(sweeps=self.sweeps._replace(cursor=self.sweeps.cursor._replace(b=b)))


@dataclass(frozen=True)
class SDCA(Solver[State]):
    """Stochastic dual coordinate ascent."""

    seed: int = option(0, "seed of the random order")
    order: str = option(
        PERMUTATION,
        "random, permutation (fresh each epoch), cyclic (one), importance (length), gaps (shares in it)",
        choices=ORDERS,
    )
    iterate: str = option(
        LAST, "last, average (of the duals from step T0 on) or random (one)", choices=ITERATES
    )
    T0: int = option(0, averaging.T0_HELP, low=0)
    epsilon: float = option(
        0.0,
        "also stop after the theory's number of steps for an expected gap of epsilon, mean form (0: never)",
        low=0,
    )
    bound: str = option(
        GAP,
        "what epsilon bounds: gap, or dual (epsilon/2 the distance from its maximum)",
        choices=BOUNDS,
    )

    name = "sdca"
    summary = "stochastic dual coordinate ascent in five orders, with averaging, for every loss"
    capabilities = Capabilities(moves_bias=True, own_stops=("epsilon", "bound"))
    papers: ClassVar[Mapping[str, Preset]] = {
        "shalev-shwartz-2013": Preset(
            "Shalev-Shwartz and Zhang (2013), procedure SDCA",
            {"order": RANDOM, "iterate": AVERAGE},
            "T0 is about half of the run unless given; iterate=random is its other output.",
        ),
        "shalev-shwartz-2013-perm": Preset(
            "Shalev-Shwartz and Zhang (2013), procedure SDCA-Perm", {"order": PERMUTATION, "iterate": AVERAGE}
        ),
    }

    def check_together(self) -> None:
        """Averages and bounds go with some orders only."""
        averaging.check_iterate(self.iterate, self.T0)
        if self.order == GAPS and self.iterate != LAST:
            raise InputError(
                f"order='gaps' draws by the gaps of the last iterate; iterate={self.iterate!r} needs another"
            )
        if self.epsilon > 0 and self.order != RANDOM:
            raise InputError(
                f"epsilon={self.epsilon:g} is a bound for order='random' only; set that or leave it out"
            )

    def check(self, problem: Problem, visits: float) -> None:
        """Averages must begin before the run ends; a bound on the gap may be one on some iterates only."""
        averaging.check_T0(self.T0, min(visits, self._bound(problem)[1]))
        if self.epsilon == 0.0 or self.bound == DUAL:
            return
        least = iteration_bound(problem, self.epsilon).T0
        if least is not None and self.iterate == LAST:
            raise InputError(
                f"epsilon={self.epsilon:g} is for the {problem.loss.name} loss a bound on the averaged "
                "iterate or on a random one; set iterate='average' or iterate='random' too, or bound='dual'"
            )
        if least is not None and 0 < self.T0 < least:
            raise InputError(
                f"T0={self.T0} is too early for the bound of epsilon={self.epsilon:g}, which needs T0 >= "
                f"{least}; raise T0, or leave it out"
            )

    def plan(self, problem: Problem, tol: float) -> list[str]:
        """The iteration bounds, in words."""
        epsilon = self.epsilon or tol * problem.value_at_zero
        T0, T, dual = iteration_bound(problem, epsilon)
        what = "the last iterate"
        if T0 is not None:
            what = "one of the iterates, at random," if self.iterate == RANDOM else "the mean of the iterates"
            what = f"{what} from step T0={T0:,.0f} on"
        share = "" if self.epsilon else f" ({tol:g} of the objective at w = 0)"
        return [
            f"sdca, order=random: {T:,.0f} steps ({T / problem.epoch_size:,.0f} epochs) suffice for {what} "
            f"to have an expected gap of {epsilon:.3g}{share}, in mean form",
            f"after {dual:,.0f} steps the dual value is expected within {epsilon / 2:.3g} of its maximum",
            "the certificate usually proves that gap much earlier; other orders have no such bound",
        ]

    @property
    def _sweeper(self) -> OrderedSweeper:
        return OrderedSweeper(self.order, self.iterate == AVERAGE)

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at beta = 0, or at the dual point of a warm start."""
        w, b, beta = dual_start(problem, warm)
        sweeps = self._sweeper.begin(problem.source.batch, b, self.seed, problem.source.d)
        rows = sweeps.order.rows
        if self.order == IMPORTANCE:
            sweeps = sweeps._replace(alias=make_alias(_importance(problem, rows)))
        T0, _ = self._bound(problem)
        return State(w, beta, sweeps, averaging.begin(self.iterate, T0, beta.size, rows.size))

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Make that many steps; the windows of averages begin on the way."""
        if news is not None:
            if self.iterate == LAST:  # w(beta) as the evaluation computed it
                state.w[:] = news.w_of_dual
                state = state.with_b(news.b)
            else:
                state = self.recompute_primal(problem, state)
            state = self.take_news(problem, state, news)
        T0, T = self._bound(problem)
        now = state.counts.visits
        end = int(min(now + budget, max(T, now + 1)))
        while now < end:
            stop = int(min(end, averaging.next_event(self.iterate, state.suffix, now)))
            w, beta, sweeps = state.w, state.beta, state.sweeps
            sweeps = self._sweeper.sweep(Subproblem.of(problem), w, beta, sweeps, stop - now)
            now, state = stop, state._replace(sweeps=sweeps)
            if stop < end or stop == averaging.next_event(self.iterate, state.suffix, stop - 1):
                rng = sweeps.order.rng
                suffix = averaging.turn(self.iterate, T0, state.suffix, now, beta, state.total, rng)
                state = state._replace(suffix=suffix)
        return state, Status(ended=self._ended(state.counts.visits, T))

    def _ended(self, visits: int, T: float) -> Reason | None:
        """The iteration bound, where it is asked for."""
        if visits < T:
            return None
        promise = f"an expected gap of epsilon={self.epsilon:g}"
        if self.bound == DUAL:
            promise = f"the dual value to be expected within epsilon/2={self.epsilon / 2:g} of its maximum"
        return Reason("epsilon", f"{visits:,} steps made, enough for {promise}, in mean form")

    def point(self, problem: Problem, state: State) -> Point:
        """The pair w(beta), beta of the iterate that is asked for."""
        b = state.sweeps.cursor.b
        beta = averaging.offered(self.iterate, state.suffix, state.counts.visits, state.beta, state.total)
        if beta is None:
            return Point(state.w, b, state.beta)
        beta = averaging.clipped(problem, beta)
        return Point(*problem.model_of(beta, b), beta)

    def shift_bias(self, state: State, centre: float) -> tuple[State, float]:
        """The same duals under a bias whose centre moves to the present one."""
        b = state.sweeps.cursor.b
        return state.with_b(2.0 * b - centre), b

    def recompute_primal(self, problem: Problem, state: State) -> State:
        """w(beta) computed anew, so that rounding errors do not accumulate."""
        w, b = problem.model_of(state.beta, state.sweeps.cursor.b)
        state.w[:] = w
        return state.with_b(b)

    def take_news(self, problem: Problem, state: State, news: Evaluation) -> State:
        """Draw by the rows' shares in the gap as it is now."""
        if self.order != GAPS:
            return state
        source = problem.source
        shares = _gaps(source.y, source.weight, problem.loss, news.scores, state.beta)[
            state.sweeps.order.rows
        ]
        total, uniformly = float(shares.sum()), 1.0 / shares.size
        chances = 0.5 * shares / total + 0.5 * uniformly if total > 0.0 else np.full_like(shares, uniformly)
        return state._replace(sweeps=state.sweeps._replace(alias=make_alias(chances)))

    def _bound(self, problem: Problem) -> tuple[int, float]:
        """T0 and T that hold for this run."""
        if self.epsilon == 0.0:
            return self.T0, math.inf
        T0, T, dual = iteration_bound(problem, self.epsilon)
        if self.bound == DUAL:
            return self.T0, dual
        if T0 is None and self.iterate == LAST:
            return 0, T
        if T0 is None:  # each iterate from T on will do, so a mean of them, or one at random
            T0, T = T, T + problem.epoch_size
        return max(self.T0, T0), T + max(0, self.T0 - T0)


class IterationBound(NamedTuple):
    """Steps after which expectations are small, in mean form."""

    T0: int | None  # from which on iterates are averaged, or one of them is drawn; None: the last will do
    T: int  # the gap is at most epsilon
    dual: int  # the dual value of the last iterate is at most epsilon/2 below its maximum


def iteration_bound(problem: Problem, epsilon: float) -> IterationBound:
    """The steps that the theory asks for; see the head of this file."""
    loss, n, lam = problem.loss, problem.epoch_size, problem.lam
    strength = problem.bias.strength(lam)
    constant = lam / strength if strength > 0.0 else 0.0  # the square of the constant feature behind the bias
    share = problem.source.weight * (n / problem.total_weight)  # what a weight multiplies the loss by
    square = problem.source.squared_norms + constant
    if math.isfinite(loss.smoothness):
        condition = n + float(np.max(share * square)) * loss.smoothness / lam
        gap, dual = (
            max(1, math.ceil(condition * math.log(max(factor * problem.value_at_zero / epsilon, 1.0))))
            for factor in (condition, 2.0)
        )
        return IterationBound(None, gap, dual)
    low, high = loss.dual_bounds(1.0)
    longest = float(np.max(share**2 * square))  # max |x|^2
    L2, width2 = loss.lipschitz**2 * longest, (high - low) ** 2 * longest
    early = max(0, math.ceil(n * math.log(0.5 * lam * n / L2))) if L2 > 0.0 else 0
    tail = width2 / (lam * epsilon)
    T0 = early + math.ceil(4.0 * tail)
    return IterationBound(T0, early + n + math.ceil(5.0 * tail), max(1, T0))


def _importance(problem: Problem, rows: Any) -> Floats:
    """Probabilities of rows: in proportion to what the theory adds to 1 for a row's curvature."""
    smoothness = problem.loss.smoothness if math.isfinite(problem.loss.smoothness) else 1.0
    weight: Floats = 1.0 + smoothness * problem.curvatures[rows]
    weight /= weight.sum()
    return weight


@kernel
def _gaps(y: Floats, weight: Floats, loss: Any, scores: Floats, beta: Floats) -> Floats:
    """Each row's share in the gap: phi(s) + phi*(-beta) + s beta, which is never negative but by rounding."""
    shares = np.zeros(y.shape[0])
    for i in range(y.shape[0]):
        if weight[i] > 0.0:
            gap = loss.value(y[i], scores[i]) + loss.conjugate(y[i], beta[i]) + scores[i] * beta[i]
            shares[i] = weight[i] * max(gap, 0.0)
    return shares
