"""Newton's method for the multinomial loss, by products of matrices.

    minimise  P(W, b) = lam/2 |W|_F^2 + r(b) + 1/N sum_i c_i phi(s_i, y_i),    s_i = W^T x_i + b

With beta_i = e_y - p_i, p_i the probabilities of row i, the gradient by W is lam (W - W(beta)), and
P(W) - D(beta) is |gradient|^2 / (2 lam). A step solves ``H v = -gradient`` by conjugate gradients under a
`Preconditioner` until the gap that the residual predicts is a small part of the present one, and goes along v
to where P hardly falls any more: scores are linear, so that search needs no product. Products leave out rows
that are all but certain of their class, together ``UNCURVED`` of all curvature, and take a sample of the
others where these are very many. A free bias is fitted anew from the scores when a step ends.

The first steps are made on a sample of rows, and then on larger ones: far from the optimum the rows agree on
where to go (Byrd, Chin, Neveitt and Nocedal, SIAM J. Optim. 2011, take samples for the Hessian alone).

Products are made in the precision of the rows, so a gradient in float32 is good for a relative gap of some
1e-5. A step that begins with an evaluation has its gradient, which is that of float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.joint.problem import JointProblem
from ...core.problem import Evaluation, Point
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.options import option
from ...runtime.threads import blas_threads
from ...training.solver import Capabilities, Solver, Status, Steps
from ...training.states import Extended, Extent, Numbers, invariant, state_class
from .preconditioner import Preconditioner
from .rows import JointRows, softmax
from .steps import fitted_intercepts, step_length

FINER = 8  # times as many rows has the next larger sample
LEAST_ROWS, LEAST_PER_CLASS = 2048, 16  # of a sample
LEVEL_ENDS = 0.1  # a step on a sample that gains less than this part of P is the last one
UNCURVED = 0.1  # of all curvature is left out of products
HESSIAN_ROWS, HESSIAN_SHARE = 50_000, 0.5  # of a product at most: that many rows, or this times d K
FORCING = 0.03  # what conjugate gradients leave of the squared gradient, in the preconditioner's norm
SURE = 0.7  # of the gap asked for: where a gradient predicts less, the point is worth an evaluation
PREDICTED = 0.3  # of the gap asked for: where the residual predicts less, conjugate gradients end
MAX_PRODUCTS = 60
STALE = 0.5  # a preconditioner made where P was higher by this part is made anew
MAX_FITS = 6  # steps in which free intercepts are fitted before an evaluation


@state_class
class State(NamedTuple):
    """The point, the scores of all rows there (once all rows take part), and the preconditioner in use."""

    w: Floats
    b: Floats
    scores: Annotated[Floats, Numbers(shape=("n", "K"))]
    preconditioner: Preconditioner
    made_at: Extended  # P where it was made; infinite before
    level: int  # the present sample has n / FINER^level rows
    counts: Counts = Counts()
    tol: float = 0.0  # the relative gap asked for; 0: none


@invariant(State)
def _check(state: State, extent: Extent) -> Iterator[tuple[bool, str]]:
    yield state.level <= extent.epoch_size.bit_length(), "level is that of a sample without rows"


class Slope(NamedTuple):
    """P and its gradient at a point, and the probabilities there."""

    value: float
    g: Floats
    gb: Floats
    p: Floats


@dataclass(frozen=True)
class JointNewton(Solver[State]):
    """Truncated Newton for K classes."""

    seed: int = option(0, "seed of the samples of rows")

    name = "joint-newton"
    summary = "Newton's method for K classes at once, by products of matrices; for dense rows"
    capabilities = Capabilities(
        losses=("multinomial",),
        biases=("none", "augmented", "exact"),
        estimates_gap=True,
        evaluation_cost=6.0,  # float64, and logarithms of all duals
    )

    def rows_per_iteration(self, problem: JointProblem) -> int:
        """As many as conjugate gradients need."""
        return 0

    def start(self, problem: JointProblem, warm: Point | None) -> State:
        """Begin at 0 with a sample of rows, or at the warm start with all of them."""
        source, K = problem.source, problem.classes
        rows = JointRows.of(problem)
        level = 0 if warm is not None else coarsest(problem)
        w, b = np.zeros((source.d, K)), np.zeros(K)
        scores = np.zeros((source.n, K), dtype=rows.dtype)
        if warm is not None:
            w, b = np.array(warm.w, dtype=np.float64), np.array(warm.b, dtype=np.float64)
            b = b if problem.bias.strength(problem.lam) < np.inf else np.zeros(K)
            with blas_threads(1):
                scores = rows.scores(w, b)
        return State(w, b, scores, Preconditioner.none(source.d, K, rows.full), np.inf, level)

    def fresh_like(self, problem: JointProblem, state: State) -> State:
        """A first state; the shapes are those of every state."""
        return self.start(problem, None)

    def set_target(self, state: State, tol: float) -> State:
        """Take no more products than a relative gap of ``tol`` needs."""
        return state._replace(tol=tol)

    def opened(self, problem: JointProblem, state: State) -> AbstractContextManager[Steps[State]]:
        """With the sample of rows at hand; parts of a product have one thread of BLAS each."""
        return self._opened(problem)

    @contextmanager
    def _opened(self, problem: JointProblem) -> Iterator[Steps[State]]:
        with blas_threads(1):
            yield _Opened(self, {})

    def step(
        self, problem: JointProblem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """One step of Newton's method, whatever the budget."""
        with blas_threads(1):
            return self.step_on(self.sample(problem, state.level), problem, state, news)

    def sample(self, problem: JointProblem, level: int) -> JointRows:
        """The rows of a level."""
        rows = JointRows.of(problem)
        if level == 0:
            return rows
        present = np.flatnonzero(problem.source.weight)
        count = max(present.size // FINER**level, 1)
        picks = np.random.default_rng([self.seed, level]).choice(present, count, replace=False)
        return rows.some(np.sort(picks))

    def step_on(
        self, rows: JointRows, problem: JointProblem, state: State, news: Evaluation | None
    ) -> tuple[State, Status]:
        """A step on some rows, or all."""
        ridge, whole = problem.bias.strength(problem.lam), state.level == 0
        scores = state.scores if whole else rows.scores(state.w, state.b)
        visits = 0 if whole else rows.n
        if whole and news is not None:
            scores = news.scores.astype(rows.dtype, copy=False)
        found = _slope(rows, problem, state, scores, ridge, news if whole else None)
        visits += rows.n if not whole or news is None else 0
        gap = _gap(found.g, found.gb, problem.lam, ridge)
        if whole and news is None and gap <= SURE * state.tol * found.value:
            return _counted(state, visits), Status("target_expected")
        if found.value < (1.0 - STALE) * state.made_at or state.made_at == np.inf:
            state = state._replace(preconditioner=Preconditioner.of(rows, found.p), made_at=found.value)
        v, vb, reached, products = _direction(rows, problem, state, found, ridge)
        along = rows.scores(v, vb)
        t, value = _search(rows, problem, state, scores, along, (v, vb, found))
        w, b = state.w + t * v, state.b + t * vb
        scores = scores + rows.dtype(t) * along
        visits += products + rows.n
        if whole and ridge == 0.0:
            shift = fitted_intercepts(rows, scores, MAX_FITS if reached else 1)
            b += shift
            scores += shift.astype(rows.dtype)
        state = _counted(state._replace(w=w, b=b), visits)
        if whole:
            expected = reached and t == 1.0
            return state._replace(scores=scores), Status("target_expected" if expected else "no")
        if found.value - value > LEVEL_ENDS * value:
            return state, Status()
        state = state._replace(level=state.level - 1)
        if state.level == 0:
            state = _counted(state, problem.source.n)
            state = state._replace(scores=JointRows.of(problem).scores(w, b))
        return state, Status()

    def point(self, problem: JointProblem, state: State) -> Point:
        """The point, and the duals that its scores ask for."""
        rows = JointRows.of(problem)
        if state.level > 0:
            with blas_threads(1):
                scores = rows.scores(state.w, state.b)
        else:
            scores = state.scores
        beta = scores.astype(np.float64)
        for first in range(0, rows.n, 4096):
            block = slice(first, first + 4096)
            softmax(beta[block].copy(), rows.y[block], beta[block])
        np.negative(beta, out=beta)
        beta[np.arange(rows.n), rows.y] += 1.0
        return Point(state.w, state.b, beta)


@dataclass(frozen=True)
class _Opened:
    """The steps of a run, with the sample that they are made on."""

    solver: JointNewton
    samples: dict[int, JointRows]

    def step(
        self, problem: JointProblem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """As `JointNewton.step`."""
        if state.level not in self.samples:
            self.samples.clear()
            self.samples[state.level] = self.solver.sample(problem, state.level)
        return self.solver.step_on(self.samples[state.level], problem, state, news)


def coarsest(problem: JointProblem) -> int:
    """The level of the first sample."""
    least, level = max(LEAST_ROWS, LEAST_PER_CLASS * problem.classes), 0
    while problem.epoch_size // FINER ** (level + 1) >= least:
        level += 1
    return level


def _counted(state: State, visits: int) -> State:
    """The state after so many more rows were read."""
    K, d = state.b.size, state.w.shape[0]
    counts = state.counts
    return state._replace(
        counts=Counts(counts.visits + visits, counts.updates + 1, counts.entries + visits * K * d)
    )


def _slope(
    rows: JointRows,
    problem: JointProblem,
    state: State,
    scores: Floats,
    ridge: float,
    news: Evaluation | None,
) -> Slope:
    """P and its gradient, from an evaluation if there is one: that is exact, and costs nothing."""
    lam, w, b = problem.lam, state.w, state.b
    if news is not None:
        p = rows.probabilities(scores)
        gb = np.zeros_like(b) if ridge in (0.0, np.inf) else ridge * (b - news.b)
        return Slope(news.primal, lam * (w - news.w_of_dual), gb, p)
    found, p = rows.gradient(scores)
    value = found.value + 0.5 * lam * float(np.vdot(w, w))
    gb = np.zeros_like(b)
    if ridge < np.inf:
        value += 0.5 * ridge * float(b @ b)
        gb = found.by_class + ridge * b
    return Slope(value, found.moment + lam * w, gb, p)


def _gap(g: Floats, gb: Floats, lam: float, ridge: float) -> float:
    """P - D where the gradient is g; a free bias is fitted, and leaves nothing."""
    found = 0.5 * float(np.vdot(g, g)) / lam
    return found + (0.5 * float(gb @ gb) / ridge if 0.0 < ridge < np.inf else 0.0)


def _direction(
    rows: JointRows, problem: JointProblem, state: State, found: Slope, ridge: float
) -> tuple[Floats, Floats, bool, int]:
    """``-H^-1 gradient`` by conjugate gradients; whether what is left predicts the gap asked for; rows
    read.
    """
    lam, p = problem.lam, found.p
    precondition = state.preconditioner.applied(lam, ridge)
    curved, factor = _curved(rows, p)
    read = max(int(np.count_nonzero(curved)), 1)
    x, xb = np.zeros_like(found.g), np.zeros_like(found.gb)
    r, rb = -found.g, -found.gb
    z, zb = precondition(r, rb)
    v, vb = z, zb
    size = first = float(np.vdot(r, z) + rb @ zb)
    target = PREDICTED * state.tol * found.value if state.level == 0 else 0.0
    reached, count = False, 0
    while count < MAX_PRODUCTS and size > 0.0 and not reached:
        count += 1
        product = rows.hessian(p, curved, v, vb)
        hv = factor * product.moment + lam * v
        hb = np.zeros_like(vb) if ridge == np.inf else factor * product.by_class + ridge * vb
        step = size / float(np.vdot(v, hv) + vb @ hb)
        x, xb = x + step * v, xb + step * vb
        r, rb = r - step * hv, rb - step * hb
        reached = _gap(r, rb, lam, ridge) <= target
        z, zb = precondition(r, rb)
        last, size = size, float(np.vdot(r, z) + rb @ zb)
        if size <= FORCING * first:
            break
        v, vb = z + size / last * v, zb + size / last * vb
    return x, xb, reached, count * read


def _curved(rows: JointRows, p: Floats) -> tuple[Any, float]:
    """Which rows take part in products, all but the flattest, or a sample of these, and the factor of the
    products that makes up for a sample.
    """
    curvature = (1.0 - np.einsum("ik,ik->i", p, p)) * rows.share
    order = np.argsort(curvature, kind="stable")
    total = np.cumsum(curvature[order], dtype=np.float64)
    curved = np.ones(rows.n, dtype=bool)
    curved[order[: int(np.searchsorted(total, UNCURVED * total[-1]))]] = False
    picks, most = np.flatnonzero(curved), max(HESSIAN_ROWS, int(HESSIAN_SHARE * rows.d * rows.classes))
    if picks.size <= most:
        return curved, 1.0
    every = -(-picks.size // most)
    sample = np.zeros(rows.n, dtype=bool)
    sample[picks[::every]] = True
    return sample, float(curvature[curved].sum() / curvature[sample].sum())


def _search(
    rows: JointRows,
    problem: JointProblem,
    state: State,
    scores: Floats,
    along: Floats,
    direction: tuple[Floats, Floats, Slope],
) -> tuple[float, float]:
    """A step length at which P hardly falls any more, and P there."""
    v, vb, found = direction
    lam, ridge = problem.lam, problem.bias.strength(problem.lam)
    pull, bend = lam * float(np.vdot(state.w, v)), lam * float(np.vdot(v, v))
    start = lam * float(np.vdot(state.w, state.w))
    if 0.0 < ridge < np.inf:
        pull, bend = pull + ridge * float(state.b @ vb), bend + ridge * float(vb @ vb)
        start += ridge * float(state.b @ state.b)

    def at(t: float) -> tuple[float, float]:
        loss, slope = rows.along(scores, along, t)
        return loss + 0.5 * start + t * pull + 0.5 * t * t * bend, slope + pull + t * bend

    return step_length(at, found.value, float(np.vdot(found.g, v) + found.gb @ vb))
