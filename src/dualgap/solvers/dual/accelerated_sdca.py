"""Accelerated proximal stochastic dual coordinate ascent (Shalev-Shwartz and Zhang, ICML 2014), for every
loss.

An outer loop in the manner of Nesterov around SDCA: problem t is the one asked for with kappa/2 |w - y|^2
added, which a sweep or two of SDCA nearly solves, as it is regularised by lam + kappa; then

    y <- w_t + momentum (w_t - w_{t-1}),    momentum = (1 - eta)/(1 + eta),   eta = sqrt(mu / (mu + kappa)),
    mu = lam/2,   kappa = R^2/(gamma N) - lam,   |phi''| <= 1/gamma.

With s = lam/(lam + kappa) the model of the inner problem is w = s w(beta) + (1 - s) y, and its dual steps are
those of SDCA with s times the scale: no vector but w and y is needed. beta is a dual point of the problem
asked for, whatever y is, so certificates need no word about the outer loop.

The paper has R = max |x| and draws rows at random; ``radius=mean`` (the mean square of |x|) and permutations
are much faster and just as certain, since nothing but a certificate ends a run. Epochs to a gap of 1%, hinge
loss, C = 1: 13 on a9a and 57 on w8a (``sdca`` 45 and 13; the paper's choices 17 and more than 400; ``asdca``
does not get there in 30 seconds). Logistic loss, C = 100, to 1e-4: 25 on a9a, where ``sdca`` is at 5% after
400.

A loss with a kink enters through its smoothing phi* + gamma/2 beta^2, whose gap ``gamma`` bounds (see
``asdca.py``): ``gamma=auto`` begins at 1 and halves it once the smoothing may make up the gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.geometry import DualGeometry
from ...core.problem import Evaluation, Point, Problem
from ...data.fetching import fetch_ahead, fetch_number
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ...runtime.options import option
from ...runtime.random import resample, shuffle
from ...training.solver import Capabilities, Preset, Solver, Status
from ...training.states import Extent, NotNegative, Position, invariant, state_class
from ..order import Order
from .asdca import left_by_smoothing, number_or_word
from .ordered_sweeps import PERMUTATION, RANDOM
from .start import dual_start

MEAN, MAX = RADII = ("mean", "max")
STAGE_FACTOR = 2.0  # gamma is divided by this from stage to stage
MIN_OUTER = 3  # outer steps of a stage at least


@state_class
class Cursor(NamedTuple):
    """Where the sweeps stand."""

    b: float
    position: Position = -1  # the next pick; -1 before an epoch is laid out
    counts: Counts = Counts()


@state_class
class Outer(NamedTuple):
    """The outer loop: its centre y, and the model that it had before; the last number of each is the bias."""

    centre: Floats
    last: Floats
    gamma: NotNegative  # of the smoothing; 0 for a smooth loss
    began: int = 0  # visits when the present inner problem began
    steps: int = 0  # since gamma last fell


@state_class
class State(NamedTuple):
    """w = s w(beta) + (1 - s) y at all times."""

    w: Floats
    beta: Floats
    order: Order
    cursor: Cursor
    outer: Outer

    @property
    def counts(self) -> Counts:
        """Work done so far."""
        return self.cursor.counts


@invariant(State)
def _check(state: State, extent: Extent) -> Iterator[tuple[bool, str]]:
    yield state.cursor.position <= state.order.rows.size, "cursor.position is beyond the picks"
    yield state.outer.centre.size == state.outer.last.size == extent.d + 1, "outer is none of this problem"
    yield state.outer.began <= state.cursor.counts.visits, "outer.began is in the future"


@dataclass(frozen=True)
class AcceleratedSDCA(Solver[State]):
    """Accelerated proximal SDCA."""

    seed: int = option(0, "seed of the random order")
    order: str = option(
        PERMUTATION,
        "permutation (fresh each epoch) or random, as in the paper",
        choices=(PERMUTATION, RANDOM),
    )
    radius: str = option(
        MEAN, "R^2 of kappa: the mean of |x|^2, or max, as in the paper's theory", choices=RADII
    )
    inner: float = option(1.0, "epochs of SDCA on each inner problem", low=0.01)
    gamma: str = option(
        "auto", "for losses with kinks: how far to round them, or auto: less and less to the gap"
    )

    name = "accelerated-sdca"
    summary = "SDCA within an accelerated proximal loop; the losses with kinks by smoothing them"
    capabilities = Capabilities(in_epochs=True)
    papers: ClassVar[Mapping[str, Preset]] = {
        "shalev-shwartz-2014": Preset(
            "Shalev-Shwartz and Zhang (2014), accelerated Prox-SDCA",
            {"order": RANDOM, "radius": MAX},
            "The paper solves inner problems to an accuracy that its theory asks for; here it is so many "
            "epochs (inner).",
        )
    }

    def check_together(self) -> None:
        """Gamma is a word or a positive number."""
        gamma = number_or_word("gamma", self.gamma, "auto")
        if gamma is not None and not (math.isfinite(gamma) and gamma > 0.0):
            raise InputError(f"gamma={self.gamma} must be a positive number, or 'auto'")

    def check(self, problem: Problem, visits: float) -> None:
        """Smooth losses are not smoothed."""
        if self.gamma != "auto" and math.isfinite(problem.loss.smoothness):
            raise InputError(
                f"gamma={self.gamma} smooths a loss, and {problem.loss.name!r} is smooth; leave gamma out"
            )

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at beta = 0, or at the dual point of a warm start, with the centre at w(beta)."""
        w, b, beta = dual_start(problem, warm)
        model = np.append(w, b)
        smooth = math.isfinite(problem.loss.smoothness)
        gamma = 0.0 if smooth else number_or_word("gamma", self.gamma, "auto") or 1.0
        order = Order.of(problem.source.batch, self.seed)
        return State(w, beta, order, Cursor(b), Outer(model, model.copy(), gamma))

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Visit rows until the budget is spent; the centre moves whenever an inner problem ends."""
        if news is not None:
            state = self._told(problem, state, news)
        source, length = problem.source, max(1, math.ceil(self.inner * problem.epoch_size))
        end = state.counts.visits + budget
        while state.counts.visits < end:
            outer = state.outer
            share, momentum = self._inner(problem, outer.gamma)
            scale, centre, bias_rate = problem.dual_geometry
            geometry = DualGeometry(share * scale, centre, share * bias_rate)
            stop = min(end, outer.began + length)
            cursor = _ascend(
                source.batch, problem.loss, geometry, state.w, state.beta, state, self.order == RANDOM, stop
            )
            state = state._replace(cursor=cursor)
            if cursor.counts.visits == outer.began + length:
                state = _with_momentum(state, share, momentum)
        return state, Status("convenient" if state.outer.began == end else "no")

    def point(self, problem: Problem, state: State) -> Point:
        """The model of the inner problem, and the duals behind it."""
        return Point(state.w, state.cursor.b, state.beta)

    def _inner(self, problem: Problem, gamma: float) -> tuple[float, float]:
        """s = lam/(lam + kappa), and the momentum."""
        gamma = gamma or 1.0 / problem.loss.smoothness
        square = problem.mean_square if self.radius == MEAN else problem.max_squared_norm
        curvature = square * problem.scale + problem.bias_rate  # R^2/(lam N)
        kappa = max(0.0, curvature / gamma - 1.0)  # in units of lam
        eta = math.sqrt(0.5 / (0.5 + kappa))
        return 1.0 / (1.0 + kappa), (1.0 - eta) / (1.0 + eta)

    def _told(self, problem: Problem, state: State, news: Evaluation) -> State:
        """w computed anew, so that rounding errors do not accumulate, and a smaller gamma where it is due."""
        outer = state.outer
        bound = left_by_smoothing(problem.loss, outer.gamma) if outer.gamma > 0.0 else 0.0
        settled = outer.steps >= MIN_OUTER and news.primal - news.dual <= bound
        if self.gamma == "auto" and settled:
            outer = outer._replace(gamma=outer.gamma / STAGE_FACTOR, steps=0)
        share, _ = self._inner(problem, outer.gamma)
        state.w[:] = share * news.w_of_dual + (1.0 - share) * outer.centre[:-1]
        b = share * news.b + (1.0 - share) * float(outer.centre[-1])
        return state._replace(outer=outer, cursor=state.cursor._replace(b=b))


def _with_momentum(state: State, share: float, momentum: float) -> State:
    """The state at the beginning of the next inner problem."""
    w, outer = np.append(state.w, state.cursor.b), state.outer
    centre = w + momentum * (w - outer.last)
    moved = w + (1.0 - share) * (centre - outer.centre)
    state.w[:] = moved[:-1]
    outer = Outer(centre, w, outer.gamma, state.counts.visits, outer.steps + 1)
    return state._replace(cursor=state.cursor._replace(b=float(moved[-1])), outer=outer)


@kernel
def _ascend(
    batch: Any, loss: Any, geometry: Any, w: Floats, beta: Floats, state: Any, random: bool, stop: int
) -> Cursor:
    """Steps of SDCA up to visit number ``stop``, on the loss smoothed by gamma:

    beta_i' = argmax -phi*(-beta') - gamma/2 beta'^2 - s (beta' - beta_i) - q/2 (beta' - beta_i)^2

    which is the dual step of phi from q beta_i/(q + gamma) at curvature q + gamma.
    """
    rows, y, weight, squared_norms = batch
    scale, _, bias_rate = geometry
    present, picks, rng = state.order
    gamma = state.outer.gamma
    b, position = state.cursor.b, state.cursor.position
    now, updates, entries = state.cursor.counts
    n = picks.shape[0]
    while now < stop:
        if position < 0 or position >= n:
            if random:
                resample(rng, present, picks)
            else:
                shuffle(rng, picks, n)
            position = 0
        fetch_ahead(batch, picks, position, n)
        fetch_number(beta, picks, position, n)
        i = picks[position]
        position += 1
        now += 1
        entries += rows.count(i)
        score = rows.dot(i, w) + b
        q = weight[i] * (scale * squared_norms[i] + bias_rate)
        origin = beta[i] * (q / (q + gamma)) if gamma > 0.0 else beta[i]
        best = loss.dual_prox(y[i], score, origin, q + gamma)
        move = weight[i] * (best - beta[i])
        if move != 0.0:
            beta[i] = best
            rows.add(i, scale * move, w)
            b += bias_rate * move
            updates += 1
            entries += rows.count(i)
    return Cursor(b, position, Counts(now, updates, entries))
