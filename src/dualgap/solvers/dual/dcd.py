"""Dual coordinate descent with shrinking, for every loss: the flagship.

    maximise  D(beta) = -1/N sum_i c_i phi*(-beta_i) - lam/2 |w(beta)|^2 + bias term

one coordinate at a time, exactly (Hsieh, Chang, Lin, Keerthi and Sundararajan, ICML 2008, Algorithm 1 and 3;
Shalev-Shwartz and Zhang, JMLR 2013). w = w(beta) and b = b(beta) are kept up to date, so a step costs the
entries of one row. An epoch visits the active rows in a fresh random order: cyclic order is hopeless, and
shuffled blocks of 512 neighbours cost 3 to 18 times the passes on real files, whose neighbours are alike.
Groups of four, where rows are short, hardly cost any, and what belongs to a row (dual, label, weight, length,
offset) is fetched once for all four.

With G the slope of the negated dual along a coordinate (left and right derivative where it has a kink), PG is
its projection, 0 where the row is optimal.

Guesses. At w = w(beta) the duality gap is a sum over rows, 1/N sum_i c_i (phi(s_i) + phi*(-beta_i) + beta_i
s_i), so visits tell what it is about: every fourth is looked at, and some hundreds make a guess. Rows that
have left or rest are not in it, and those just visited have no gap for the moment; each evaluation says by
which factor the last guess was wrong. Where the guess says that the gap asked for is reached, the solver
pauses to be evaluated. A guess never counts as more than that.

Shrinking. A row that a visit finds at a bound or kink with its slopes pointing firmly there (left < 0 <
right) leaves the active rows at once. It comes back when an evaluation, which computes the scores of all rows
anyway, finds that it is no longer optimal. Where the gap of the active rows has fallen tenfold and no
evaluation comes, the solver looks at the others itself, in the order in which they lie in memory, but for
those whose slopes cannot have changed sign: a score moves by at most |x| |w - anchor|, the anchor being the w
of the last look at all rows. On data of few columns that leaves few to read, on text it does not help. The
rule of Hsieh et al. brings all rows back every so often, and lets them go an epoch later: twice the work on
text.

Resting. A visit that gains less than visits did on average in the epoch before makes the row rest for 1
epoch, then 3, 7... up to 31, until a visit gains as much as others again. (The frequencies of Glasmachers and
Dogan, ACML 2013, adapt to the gains more smoothly; powers of two need one byte a row.) Where C is large most
active rows lie between their bounds and hardly move: resting saves half to three quarters of the work to 1e-4
there. An epoch begins by going through the active rows for those that are awake, and shuffles only these:
often they are one in twenty.

Foresight. In a first epoch w is the sum of the few rows seen so far: scores are much too small, and where C
is small row after row steps to its upper bound, to come back in later epochs. The t rows seen are as good a
sample as any, so w counts as n/t times as long, which makes a step one of the problem that has these t rows
alone (Modified-SGD of Shalev-Shwartz and Zhang, which prepares the duals for SDCA). Where C is large, that
problem would have hardly any regularisation while t is small; so the factor is (1 + r)/(t/n + r), with r = C
|x|^2 of the average row, times the largest curvature of the loss if that is below 1.
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
from ...runtime.random import generator, shuffle_groups
from ...training.loop import Counts
from ...training.stopping import Reason
from .warm import dual_start

_FAR, _NEAR, _NEXT = (
    12,
    5,
    1,
)  # visits ahead at which a row's numbers, its entries, its part of w are asked for
_GROUP, _SHORT = 4, 150  # neighbours that are visited together where rows have so many entries or fewer
_FEW = 8192  # or fewer rows stay in the cache, and go alone
_SURE = 1.0 - 1e-6  # slack is kept in float32, and must not be rounded up
_WINDOW = 256  # rows that a guess is made of, if there are as many
_TRUST = 2.0  # gap over guess, until an evaluation says more
_FORESIGHT = 20.0  # 1/r at most
_SOLVED = 0.1  # part to which the gap of active rows falls before the others are worth a look

# One byte a row: how many epochs it still rests (5 bits), how long it does so at a time (3 bits above them);
# or GONE.
_RESTS, _LONGEST = 31, 5
_GONE, _ABSENT = 255, 254  # has left for now; has weight 0


class Guess(NamedTuple):
    """What visits tell of the duality gap. Values are N times those of the problem in mean form."""

    tol: float = 0.0  # the relative gap asked for; 0: none
    worth: float = 0.0  # the dual value when it was last computed; 0 before
    tally: float = 0.0  # gaps of the rows looked at since the last guess
    tallied: int = 0  # their number
    gap: float = math.inf  # the last guess of the active rows' gap; infinite where there is none
    known: float = math.inf  # their gap when rows last came back; infinite where it is not known yet
    trust: float = _TRUST  # the gap that an evaluation found, over the guess before it


class Sweep(NamedTuple):
    """Where the solver stands, between rows of an epoch or between epochs."""

    b: float
    active: int  # the first so many rows of the order take part, but for those that left in this epoch
    left: int = 0  # so many did
    awake: int = 0  # the first so many of the epoch's turns are taken; other active rows rest
    position: int = -1  # the next turn; -1 before an epoch is shuffled
    scanned: int = -1  # how many rows a look at those that have left has passed; -1 when there is none
    anchor: float = math.nan  # the bias of the anchor; NaN before there is one
    gained: float = 0.0  # by the visits of this epoch so far
    begun: int = 0  # visits when the epoch began
    usual: float = 0.0  # gain of a visit in the epoch before
    foresight: float = 0.0  # 1/r in a first epoch, 0 otherwise
    asked: bool = False  # the solver has paused since it last looked at rows that had left
    paused: bool = (
        False  # the gap asked for seems reached, or the active rows are solved and others worth a look
    )
    settled: bool = False  # an evaluation found all rows within pg_tol, or none is left to move
    epochs: int = 0
    visits: int = 0
    updates: int = 0
    entries: int = 0
    guess: Guess = Guess()


class State(NamedTuple):
    """w = w(beta) at all times."""

    w: Any  # float64
    beta: Any  # float64
    # uint32; the active rows come first, mostly as they lie in memory; what comes after them is of no use
    order: Any
    turns: Any  # uint32; the rows that this epoch visits, shuffled
    rest: Any  # uint8
    # float32; by how much the score at the anchor of a row that has left may change before it comes back
    slack: Any
    anchor: Any  # float64; w when all rows were last looked at
    rng: Any  # the generator's words
    sweep: Sweep

    @property
    def counts(self) -> Counts:
        """What the loop wants to know."""
        return Counts(self.sweep.visits, self.sweep.updates, self.sweep.entries)

    @property
    def paused(self) -> bool:
        """A good moment to evaluate."""
        return self.sweep.paused

    @property
    def hopeful(self) -> bool:
        """Whether the gap asked for seems to be reached."""
        guess = self.sweep.guess
        return guess.trust * guess.gap <= guess.tol * guess.worth


@dataclass(frozen=True)
class DCD:
    """Dual coordinate descent."""

    seed: int = field(default=0, metadata={"help": "seed of the random order"})
    shrinking: bool = field(
        default=True,
        metadata={"help": "leave rows out that sit firmly at a bound, rest those that gain little"},
    )
    pg_tol: float = field(
        default=0.0,
        metadata={"help": "also stop when the projected gradients of all rows range within this (0: never)"},
    )

    name = "dcd"
    summary = "dual coordinate descent with shrinking: fast to any accuracy, for every loss"
    own_stops = ("pg_tol",)  # options that end a run by a rule of its own

    def __post_init__(self) -> None:
        if not (math.isfinite(self.pg_tol) and self.pg_tol >= 0):
            raise InputError(f"pg_tol={self.pg_tol!r} must be a finite number >= 0 (0 switches the rule off)")

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at beta = 0, or at the dual point of a warm start."""
        w, b, beta = dual_start(problem, warm)
        source = problem.source
        absent = source.weight == 0.0
        here = np.arange(source.n, dtype=np.uint32)
        if source.epoch_size < source.n:
            here = here[~absent]
        rest = absent * np.uint8(_ABSENT)
        foresight = 0.0 if beta.any() else _foresight(problem)
        sweep = Sweep(b, here.size, foresight=foresight)
        slack = np.zeros(source.n, dtype=np.float32)
        return State(
            w, beta, here, np.zeros_like(here), rest, slack, np.zeros_like(w), generator(self.seed), sweep
        )

    def aim(self, state: State, tol: float) -> State:
        """Pause where a relative gap of ``tol`` seems to be reached."""
        return state._replace(sweep=state.sweep._replace(guess=state.sweep.guess._replace(tol=tol)))

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """Visit rows until the budget is spent or those that are active are as good as solved."""
        (part,) = problem.source.parts()
        if last is not None:  # w(beta), computed anew: rounding errors do not pile up
            state.w[:] = last.w_of_dual
            state = self.notice(problem, state._replace(sweep=state.sweep._replace(b=last.b)), last)
            if state.sweep.settled:
                return state
        sweep = _sweep(
            *part.batch,
            problem.loss,
            problem.scale,
            problem.bias.centre,
            problem.bias_rate,
            *state[:8],
            state.sweep,
            self.shrinking,
            _group(problem),
            budget,
        )
        return state._replace(sweep=Sweep(*sweep))

    def notice(self, problem: Problem, state: State, last: Evaluation) -> State:
        """Call back the rows that an evaluation found wanting, and only those.

        An epoch under way goes on with the rows still to come, and no row leaves in a first one: how often a
        run is evaluated must not decide where it gets to.
        """
        sweep, source = state.sweep, problem.source
        state.anchor[:] = last.w_of_dual
        duals = state.beta, state.order, state.rest, state.slack
        shrinking = self.shrinking and sweep.foresight == 0.0
        active, high, low = _recall(source.y, last.scores, problem.loss, *duals, shrinking)
        settled = bool(high - low <= self.pg_tol)
        position, awake = sweep.position, sweep.awake
        if position >= 0:
            coming = state.turns[position:awake]
            coming = coming[state.rest[coming] != _GONE]
            position, awake = 0, coming.size
            state.turns[:awake] = coming
        sweep = sweep._replace(active=active, left=0, awake=awake, position=position, scanned=-1, asked=False)
        sweep = sweep._replace(settled=settled, anchor=last.b)
        sweep = sweep._replace(guess=_corrected(sweep.guess, source.total_weight, last))
        return state._replace(sweep=sweep)

    def point(self, problem: Problem, state: State) -> Point:
        """The pair w(beta), beta."""
        return Point(state.w, state.sweep.b, state.beta)

    def shift_bias(self, state: State, centre: float) -> tuple[State, float]:
        """The same duals under a bias whose centre moves to the present one."""
        sweep = state.sweep  # rows that were all optimal are looked at again at once
        moved = sweep._replace(b=2.0 * sweep.b - centre, asked=sweep.asked or sweep.settled, settled=False)
        return state._replace(sweep=moved), sweep.b

    def recompute_primal(self, problem: Problem, state: State) -> State:
        """w(beta) computed anew, so that rounding errors do not pile up."""
        w, b = problem.model_of(state.beta, state.sweep.b)
        state.w[:] = w
        return state._replace(sweep=state.sweep._replace(b=b))

    def finished(self, state: State) -> Reason | None:
        """The optional rule on projected gradients; or nothing is left to do."""
        if not state.sweep.settled:
            return None
        if self.pg_tol == 0.0:
            return Reason("optimal", "no row can be improved any further in float64")
        return Reason("pg_tol", f"the projected gradients of all rows range within pg_tol={self.pg_tol:g}")


def _corrected(guess: Guess, total: float, last: Evaluation) -> Guess:
    """What an evaluation says of the last guess."""
    found = total * (last.primal - last.dual)
    trust = guess.trust
    if 0.0 < found < math.inf and 0.0 < guess.gap < math.inf:
        trust = min(max(found / guess.gap, 0.5), 10.0)  # a guess of a few hundred rows is no better than that
    return Guess(guess.tol, total * last.dual, known=found, trust=trust)


def _group(problem: Problem) -> int:
    """How many neighbours are visited together."""
    return _GROUP if problem.source.nnz <= _SHORT * problem.source.n else 1


def _foresight(problem: Problem) -> float:
    """1/r for the average row, within bounds."""
    source = problem.source
    curvature = problem.mean_square / (problem.lam * source.epoch_size) + problem.bias_rate
    r = min(1.0, problem.loss.smoothness) * curvature
    return min(1.0 / r, _FORESIGHT) if r > 0.0 else _FORESIGHT


@kernel
def _projected(left: float, right: float) -> float:
    """PG: the slope that is not yet 0 or blocked by a bound."""
    return right if right < 0.0 else (left if left > 0.0 else 0.0)


@kernel
def _longer_rest(byte: Any) -> int:
    """The byte of a row that is to rest for twice as long as the last time."""
    level = min(np.int64(byte) >> 5, _LONGEST - 1) + 1  # type: ignore[operator]
    return (level << 5) + (1 << level) - 1


@kernel
def _sweep(
    rows: Any,
    y: Floats,
    weight: Floats,
    squared_norms: Floats,
    loss: Any,
    scale: float,
    centre: float,
    bias_rate: float,
    w: Floats,
    beta: Floats,
    order: Any,
    turns: Any,
    rest: Any,
    slack: Any,
    anchor: Floats,
    rng: Words,
    sweep: Sweep,
    shrinking: bool,
    group: int,
    budget: int,
) -> Sweep:
    """Epochs over the active rows, until ``budget`` rows are visited or the active rows are as good as
    solved.

    For row i with q = c_i (scale |x_i|^2 + bias_rate), the curvature of the dual along beta_i per unit of
    c_i/N:
        beta_i' = argmax -phi*(-beta') - s (beta' - beta_i) - q/2 (beta' - beta_i)^2,   s = <w, x_i> + b
        w += scale c_i (beta_i' - beta_i) x_i,    b += bias_rate c_i (beta_i' - beta_i)
    In a first epoch w, b - centre and q count as ``longer`` times as long, and no row leaves.
    """
    (
        b,
        active,
        left,
        awake,
        position,
        scanned,
        anchor_b,
        gained,
        begun,
        usual,
        foresight,
        asked,
        _,
        settled,
    ) = sweep[:14]
    epochs, visits, updates, entries, guess = sweep[14:]
    tol, worth, tally, tallied, gap, known, trust = guess
    paused = solved = False
    stop = visits + budget
    while visits < stop and not paused:
        if scanned >= 0:
            if math.isnan(anchor_b):
                anchor_b = b
                anchor[:] = w
            scanned, active, seen, read = _scan(
                rows,
                y,
                squared_norms,
                loss,
                b,
                w,
                beta,
                order,
                rest,
                slack,
                anchor,
                anchor_b,
                active,
                scanned,
                stop - visits,
            )
            visits += seen
            begun += seen
            entries += read
            if scanned >= 0:
                break
            settled = active == 0
            if settled:
                break
        if position < 0:
            active, awake = _wake(order, active, rest, turns)
            position = left = 0
            shuffle_groups(rng, turns, awake, group if awake > _FEW else 1)
        while position < awake and visits < stop and not (paused or solved):
            if position + _FAR < awake:
                ahead = turns[position + _FAR]
                rows.prefetch_offsets(ahead)
                prefetch(beta, ahead)
                prefetch(y, ahead)
                prefetch(weight, ahead)
                prefetch(squared_norms, ahead)
            if position + _NEAR < awake:
                rows.prefetch_row(turns[position + _NEAR])
            if position + _NEXT < awake:
                rows.prefetch_weights(turns[position + _NEXT], w)
            i = turns[position]
            position += 1
            score = rows.dot(i, w) + b
            visits += 1
            entries += rows.count(i)
            longer = 1.0
            if foresight > 0.0:
                longer = (1.0 + foresight) / (1.0 + foresight * visits / active)
                score = centre + longer * (score - centre)
            elif visits & 3 == 0:
                tally += weight[i] * (
                    loss.value(y[i], score) + loss.conjugate(y[i], beta[i]) + beta[i] * score
                )
                tallied += 1
                if tallied >= max(active >> 6, min(active, _WINDOW)):
                    gap = tally / tallied * (active - left)
                    tally, tallied = 0.0, 0
                    paused = trust * gap <= tol * worth
                    if known < np.inf:
                        solved = gap <= _SOLVED * known
                    else:
                        known = gap
            low, high = loss.dual_subdifferential(y[i], score, beta[i])
            if shrinking and foresight == 0.0 and low < 0.0 < high:
                rest[i] = _GONE
                slack[i] = 0.0
                left += 1
                continue
            projected = _projected(low, high)
            gain = 0.0
            if projected != 0.0:
                q = longer * weight[i] * (scale * squared_norms[i] + bias_rate)
                best = loss.dual_prox(y[i], score, beta[i], q)
                move = weight[i] * (best - beta[i])
                if move != 0.0:
                    gain = abs(projected * move)
                    beta[i] = best
                    rows.add(i, scale * move, w)
                    b += bias_rate * move
                    updates += 1
                    entries += rows.count(i)
            if shrinking:
                gained += gain
                rest[i] = _longer_rest(rest[i]) if gain < usual else 0
        if position >= awake:
            position = -1
            foresight = 0.0
            epochs += 1
            if tol > 0.0 and 2 * (visits - begun) > y.shape[0]:
                worth = _worth(loss, scale, y, weight, beta, w)
            if visits > begun:
                usual = gained / (visits - begun)
                gained, begun = 0.0, visits
        if solved or active == left:
            solved = False
            if asked and shrinking:
                asked = False
                scanned = 0
                known = np.inf
                active, position = _stay(order, active, rest), -1
                left = 0
            else:
                asked = paused = True
    return Sweep(
        b,
        active,
        left,
        awake,
        position,
        scanned,
        anchor_b,
        gained,
        begun,
        usual,
        foresight,
        asked,
        paused,
        settled,
        epochs,
        visits,
        updates,
        entries,
        Guess(tol, worth, tally, tallied, gap, known, trust),
    )


@kernel
def _stay(order: Any, active: int, rest: Any) -> int:
    """Take rows that have left out of the order; how many stay."""
    kept = 0
    for k in range(active):
        i = order[k]
        if rest[i] != _GONE:
            order[kept] = i
            kept += 1
    return kept


@kernel
def _wake(order: Any, active: int, rest: Any, turns: Any) -> tuple[int, int]:
    """The same, and fill in the rows whose rest is over; how many stay, and how many of them are awake."""
    kept = awake = 0
    for k in range(active):
        i = order[k]
        if rest[i] == _GONE:
            continue
        order[kept] = i
        kept += 1
        if rest[i] & _RESTS > 0:
            rest[i] -= 1
        else:
            turns[awake] = i
            awake += 1
    return kept, awake


@kernel
def _worth(loss: Any, scale: float, y: Floats, weight: Floats, beta: Floats, w: Floats) -> float:
    """N D(beta) but for the bias, roughly: plain sums."""
    total = 0.0
    for i in range(y.shape[0]):
        total -= weight[i] * loss.conjugate(y[i], beta[i])
    square = 0.0
    for j in range(w.shape[0]):
        square += w[j] * w[j]
    return total - 0.5 / scale * square


@kernel
def _scan(
    rows: Any,
    y: Floats,
    squared_norms: Floats,
    loss: Any,
    b: float,
    w: Floats,
    beta: Floats,
    order: Any,
    rest: Any,
    slack: Any,
    anchor: Floats,
    anchor_b: float,
    active: int,
    first: int,
    budget: int,
) -> tuple[int, int, int, int]:
    """Call back the rows that have left and should not have, in the order of the data; read those it may be
    true of.

    Returns where it stopped (-1: at the end), how many rows are active now, and the rows and entries it read.
    """
    away = 0.0
    for j in range(w.shape[0]):
        away += (w[j] - anchor[j]) ** 2
    shift = abs(b - anchor_b)
    seen = read = 0
    for i in range(first, y.shape[0]):
        spare = slack[i] - shift
        if rest[i] != _GONE or (
            spare > 0.0 and spare * spare > away * squared_norms[i]
        ):  # by Cauchy and Schwarz
            continue
        if seen == budget:
            return i, active, seen, read
        left, right = loss.dual_subdifferential(y[i], rows.dot(i, w) + b, beta[i])
        seen += 1
        read += rows.count(i)
        if left < 0.0 < right:
            slack[i] = _SURE * min(-left, right) - shift - np.sqrt(away * squared_norms[i])
        else:
            rest[i] = 0
            order[active] = i
            active += 1
    return -1, active, seen, read


@kernel
def _recall(
    y: Floats, scores: Floats, loss: Any, beta: Floats, order: Any, rest: Any, slack: Any, shrinking: bool
) -> tuple[int, float, float]:
    """Activate the rows that are not firmly at a bound or kink, and only those; how many, and the range of
    all PG.
    """
    high, low = 0.0, 0.0
    active = 0
    for i in range(y.shape[0]):
        if rest[i] == _ABSENT:
            continue
        left, right = loss.dual_subdifferential(y[i], scores[i], beta[i])
        projected = _projected(left, right)
        high = max(high, projected)
        low = min(low, projected)
        if shrinking and left < 0.0 < right:
            rest[i] = _GONE
            slack[i] = _SURE * min(-left, right)
            continue
        if rest[i] == _GONE:
            rest[i] = 0
        order[active] = i
        active += 1
    return active, high, low
