"""The margin perceptron with unlearning (Panagiotakopoulos and Tsampouka, ICML 2010), for the hinge loss.

A reconstruction from what later papers say of it; the text of the paper itself was not at hand. A perceptron
that counts: ``I_k`` updates were caused by row k, and the model is

    w = 1/(lam N) sum_k c_k beta_k x_k,    beta_k = y_k I_k / M,    0 <= I_k <= M,

so that M updates fill a row's box (in the paper's terms ``M = C b`` with a margin threshold b, a = b w, duals
I_k/b). A row that falls short of its margin learns (I_k rises by 1), one that exceeds it unlearns (I_k falls
by 1), each only where the dual rises by it: with ``q = c_k |x_k|^2 / (lam N M)``, where ``|margin - y_k s| >
q/2``. Every update raises the dual by a least amount and the counters have finitely many values, so a run
ends by itself, with every margin within q/2 of what optimality asks for. ``delta`` sets that quantum: M is
the least power of 2 with q <= delta for all rows. If the gap is not met by then, M is multiplied and the run
goes on from the same duals.

A score is worth several updates: presenting the row again and again until the dual would fall makes the
number of updates the nearest integer to ``(margin - y s)/q``, which is one addition to w. After an epoch over
all rows come mini-epochs over the active ones, those that moved or whose counter is neither 0 nor M.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...runtime.arrays import Floats, Words
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.jit import kernel, prefetch
from ...runtime.random import generator, shuffle
from ...training.stopping import Reason
from .start import dual_start

FINEST = 2**30  # counters are 32-bit numbers
REFINE = 4  # factor of M when no row can move any more
PRECISIONS = ("float64", "float32")
_FAR, _NEAR = 12, 5  # visits ahead at which a row's numbers, and then its entries, are fetched


class Epoch(NamedTuple):
    """Where the solver stands."""

    b: float
    position: int  # the next row of the epoch; -1 before it is shuffled
    minis: int  # mini-epochs made since the last full one; -1: this is a full one
    active: int  # rows in the active set
    moved: int  # updates in this epoch
    settled: bool  # a full epoch had none
    visits: int
    updates: int
    entries: int


class State(NamedTuple):
    """w = w(beta), beta = y counter / M."""

    w: Any  # float64 or float32
    counters: Any  # int32
    M: int
    order: Any  # uint32; rows of positive weight
    members: Any  # uint32; the first ``active`` of them are the active set
    rng: Words
    epoch: Epoch
    relative_gap: float  # at the last certificate

    @property
    def counts(self) -> Counts:
        """What the loop wants to know."""
        return Counts(self.epoch.visits, self.epoch.updates, self.epoch.entries)

    @property
    def paused(self) -> bool:
        """Nothing moves at this quantum."""
        return self.epoch.settled


@dataclass(frozen=True)
class MPU:
    """The margin perceptron with unlearning."""

    seed: int = field(default=0, metadata={"help": "seed of the random order"})
    delta: float = field(
        default=0.1, metadata={"help": "the quantum: rows are learned to a margin of about this first"}
    )
    delta_stop: float = field(
        default=0.0,
        metadata={"help": "also stop at this measured relative gap (0: only at the gap of the run)"},
    )
    multiplicity: int = field(
        default=0,
        metadata={"help": "updates that one look at a row may cause, at most (0: as many as raise the dual)"},
    )
    mini_epochs: int = field(
        default=10, metadata={"help": "epochs over the active rows between two over all rows"}
    )
    precision: str = field(default="float64", metadata={"help": "of w while training: float64 or float32"})

    name = "mpu"
    summary = "the margin perceptron with unlearning (a reconstruction), for the hinge loss"
    losses = ("hinge",)
    own_stops = ("delta_stop",)  # options that end a run by a rule of its own

    def __post_init__(self) -> None:
        if not (math.isfinite(self.delta) and self.delta > 0):
            raise InputError(f"delta={self.delta!r} must be a positive number (0.1 or so)")
        if not (math.isfinite(self.delta_stop) and self.delta_stop >= 0):
            raise InputError(
                f"delta_stop={self.delta_stop!r} must be a finite number >= 0 (0 switches the rule off)"
            )
        for key in ("multiplicity", "mini_epochs"):
            if getattr(self, key) < 0:
                raise InputError(f"{key}={getattr(self, key)!r} must be a whole number >= 0")
        if self.precision not in PRECISIONS:
            raise InputError(f"precision={self.precision!r} must be one of {', '.join(PRECISIONS)}")

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin with counters at 0, or near the dual point of a warm start."""
        _, _, beta = dual_start(problem, warm)
        M = _quantum(problem, self.delta)
        counters = np.rint(np.abs(beta) * M).astype(np.int32)
        order = np.flatnonzero(problem.source.weight).astype(np.uint32)
        epoch = Epoch(problem.bias.centre, -1, -1, 0, 0, False, 0, 0, 0)
        w = np.zeros(problem.source.d, dtype=self.precision)
        state = State(w, counters, M, order, order.copy(), generator(self.seed), epoch, math.inf)
        return self.recompute_primal(problem, state) if beta.any() else state

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """Visit rows until the budget is spent or nothing moves any more; then refine the quantum."""
        (part,) = problem.source.parts()
        if last is not None:
            state.w[:] = last.w_of_dual
            found = problem.certificate(last.primal, last.primal_error, last.dual, last.dual_error)
            state = state._replace(epoch=state.epoch._replace(b=last.b), relative_gap=found.relative_gap)
        if state.epoch.settled:
            if REFINE * state.M <= FINEST:
                state.counters[:] *= REFINE
                state = state._replace(M=REFINE * state.M)
            state = state._replace(epoch=state.epoch._replace(settled=False))
        epoch = _learn(
            *part.batch,
            problem.loss.margin,
            problem.scale,
            problem.bias_rate,
            *state[:6],
            state.epoch,
            self.multiplicity or state.M,
            self.mini_epochs,
            budget,
        )
        return state._replace(epoch=Epoch(*epoch))

    def point(self, problem: Problem, state: State) -> Point:
        """The pair w(beta), beta."""
        beta = problem.source.y * (state.counters / state.M)
        return Point(state.w.astype(np.float64), state.epoch.b, beta)

    def shift_bias(self, state: State, centre: float) -> tuple[State, float]:
        """The same duals under a bias whose centre moves to the present one."""
        b = state.epoch.b
        return state._replace(epoch=state.epoch._replace(b=2.0 * b - centre)), b

    def recompute_primal(self, problem: Problem, state: State) -> State:
        """w(beta) computed anew, so that rounding errors do not pile up."""
        w, b = problem.model_of(problem.source.y * (state.counters / state.M), state.epoch.b)
        state.w[:] = w
        return state._replace(epoch=state.epoch._replace(b=b))

    def finished(self, state: State) -> Reason | None:
        """The measured gap is small enough, or no finer quantum can be counted."""
        if state.relative_gap <= self.delta_stop:
            return Reason("delta_stop", f"the relative gap {state.relative_gap:.3g} is at most delta_stop")
        if state.epoch.settled and REFINE * state.M > FINEST:
            return Reason(
                "finest quantum", "no row can be improved any further by the finest quantum there is"
            )
        return None


def _quantum(problem: Problem, delta: float) -> int:
    """The least power of 2 M with q <= delta for all rows: multiplied by 4 and so on it ends at the
    finest.
    """
    needed = min(max(float(problem.curvatures.max()) / delta, 1.0), float(FINEST))
    return 1 << math.ceil(math.log2(needed))


@kernel
def _learn(
    rows: Any,
    y: Floats,
    weight: Floats,
    squared_norms: Floats,
    margin: float,
    scale: float,
    bias_rate: float,
    w: Any,
    counters: Any,
    M: int,
    order: Any,
    members: Any,
    rng: Words,
    epoch: Epoch,
    multiplicity: int,
    mini_epochs: int,
    budget: int,
) -> Epoch:
    """Full epochs and mini-epochs until ``budget`` rows are visited or a full epoch moves nothing."""
    b, position, minis, active, moved, settled, visits, updates, entries = epoch
    stop = visits + budget
    while visits < stop and not settled:
        full = minis < 0
        rest = order if full else members
        count = order.shape[0] if full else active
        if position < 0:
            position = 0
            moved = 0
            shuffle(rng, rest, count)
            if full:
                active = 0
        while position < count and visits < stop:
            if position + _FAR < count:
                ahead = rest[position + _FAR]
                rows.prefetch_offsets(ahead)
                prefetch(counters, ahead)
                prefetch(y, ahead)
                prefetch(weight, ahead)
                prefetch(squared_norms, ahead)
            if position + _NEAR < count:
                rows.prefetch_row(rest[position + _NEAR])
            i = rest[position]
            position += 1
            visits += 1
            entries += rows.count(i)
            short = margin - y[i] * (rows.dot(i, w) + b)
            q = weight[i] * (scale * squared_norms[i] + bias_rate) / M
            # the number of updates that raises the dual most; an empty row goes straight to its bound
            best = (
                min(max(short / q, -float(M)), float(M))
                if q > 0.0
                else (float(M) if short > 0.0 else -float(M))
            )
            change = math.ceil(best - 0.5) if best > 0.0 else math.floor(best + 0.5)
            change = min(max(change, -multiplicity), multiplicity)
            counter = int(counters[i])
            change = min(max(change, -counter), M - counter)
            if change != 0:
                counter += change
                counters[i] = counter
                move = weight[i] * y[i] * change / M
                rows.add(i, scale * move, w)
                b += bias_rate * move
                moved += 1
                updates += 1
                entries += rows.count(i)
            if full and (change != 0 or 0 < counter < M):
                members[active] = i
                active += 1
        if position < count:
            break
        position = -1
        if full and moved == 0:
            settled = True
        elif active == 0 or mini_epochs == 0 or (not full and (moved == 0 or minis + 1 >= mini_epochs)):
            minis = -1
        else:
            minis = 0 if full else minis + 1
    return Epoch(b, position, minis, active, moved, settled, visits, updates, entries)
