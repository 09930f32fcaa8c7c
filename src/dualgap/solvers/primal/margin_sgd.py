"""SGD-r, SGD-s and SGD-m: stochastic gradient descent on the SVM as a perceptron with a growing margin, which
knows how accurate it is (Panagiotakopoulos and Tsampouka, ICANN 2013). The steps are in
``growing_margin.py``.

SGD-s presents the patterns in epochs, each in a fresh order. Over T complete epochs pattern k is a margin
error I_k <= T times, so ``beta_k = I_k / T`` obeys the box and ``w = w(beta)``: a dual point for free, from
which Proposition 2 has the lower bound ``C M/T - |w|^2/2`` by the number M of margin errors alone. The
paper's stopping rule compares it with an estimate of the primal value, made of the scores that were needed
anyway; only if the two are within f times ``epsilon`` is the primal value itself computed. Certificates of
this package stop a run as well, at the gap asked for.

SGD-m is SGD-s with multiple updates at the price of one inner product. In some epochs every pattern is
presented l times in a row, and Proposition 3 tells from the first inner product how many of these are margin
errors. Such an epoch counts as l: t grows by n l, T by l, and all relations still hold. The paper has l = 5
in epochs with 0 < T mod 9 < 5, epochs counted from 1.

SGD-r draws patterns at random; it is Pegasos with k = 1 and no projection. Drawn with replacement, a pattern
may be a margin error more often than t/n times, so that the counters leave the box (they obey it in the
limit, footnote 4): clipped, they still make a dual point, which a few dual sweeps improve.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...core.problem import Evaluation, Point, Problem
from ...runtime.options import option
from ...runtime.random import GIVEN, PERMUTATION, RANDOM
from ...training.solver import Capabilities, Preset, Solver, Status
from ...training.stopping import Reason
from ..order import Order
from .growing_margin import Cursor, Manner, State, present
from .options import BIASES, bias_step_option, duals_option, precision_option
from .polishing import Polished, polish_option
from .state import FIXED, ORDERS

PAPER, AUTHORS = "panagiotakopoulos-2013", "Panagiotakopoulos and Tsampouka (2013)"
NO_BIAS = "There is no bias."


@dataclass(frozen=True)
class MarginSGD(Solver[State]):
    """Stochastic gradient descent as a perceptron with a growing margin."""

    seed: int = option(0, "seed of the random order")
    precision: str = precision_option()
    duals: bool = duals_option()
    bias_step: float = bias_step_option()

    capabilities = Capabilities(losses=("hinge",), offsets=False, biases=BIASES)

    @property
    def relative_accuracy(self) -> tuple[float, float]:
        """Where the paper's rule stops, and how close the estimate must be before the primal value is
        computed.
        """
        return 0.0, 1.0

    @property
    def order_of_epochs(self) -> str:
        """The order in which patterns are presented."""
        return RANDOM

    def multiplicity(self, epoch: int) -> int:
        """How often a pattern is presented in a row in that epoch, counted from 1."""
        return 1

    def manner(self, epoch: int) -> Manner:
        """How patterns are presented in that epoch, counted from 1."""
        epsilon, f = self.relative_accuracy
        return Manner(ORDERS.index(self.order_of_epochs), False, self.multiplicity(epoch), epsilon * f)

    def start(self, problem: Problem, warm: Point | None) -> State:
        """Begin at a = 0: with its first step 1/(lam t) the method forgets where it began."""
        source = problem.source
        a = np.zeros(source.d, dtype=self.precision)
        errors = np.zeros(source.n if self.duals else 0, dtype=np.int32)
        return State(a, errors, Order.of(source.batch, self.seed), Cursor(), math.inf)

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        """Present patterns until the budget is spent or the paper's rule holds."""
        geometry, batch = problem.primal_geometry(self.bias_step), problem.source.batch
        if news is not None:  # |a|^2 anew, so that rounding errors do not accumulate
            state = _with_square(state, geometry.rho2)
        stop = state.counts.visits + budget
        epsilon = self.relative_accuracy[0]
        if math.isfinite(state.accurate):  # a run that is resumed, perhaps with a finer epsilon
            state = state._replace(accurate=self._accuracy(problem, state))
            state = state._replace(accurate=state.accurate if state.accurate <= epsilon else math.inf)
        while state.counts.visits < stop and not math.isfinite(state.accurate):
            manner = self.manner(state.cursor.epoch + 1)
            cursor = present(batch, problem.loss, geometry, state, manner, stop)
            state = state._replace(cursor=cursor)
            if cursor.promising:
                found = self._accuracy(problem, state)
                accurate = found if found <= epsilon else math.inf
                state = state._replace(accurate=accurate, cursor=cursor._replace(promising=False))
        return state, Status(ended=self._ended(state))

    def _accuracy(self, problem: Problem, state: State) -> float:
        """The relative gap of the present point; without counters the dual value is that of Proposition 2."""
        point, cursor = self.point(problem, state), state.cursor
        if point.beta is not None:
            return problem.certify(point).relative_gap
        if problem.bias.free:  # the proposition has no such bias
            return math.inf
        half = 0.5 * cursor.sums.r / (problem.lam * cursor.t**2)
        dual = problem.loss.margin * cursor.sums.M / cursor.t - half
        return problem.evaluate(point).primal / dual - 1.0 if dual > 0.0 else math.inf

    def _ended(self, state: State) -> Reason | None:
        """The paper's rule."""
        if state.accurate > self.relative_accuracy[0]:
            return None
        return Reason("epsilon", f"relative accuracy {state.accurate:.3g} reached, as asked for by epsilon")

    def point(self, problem: Problem, state: State) -> Point:
        """w = a/(lam t), and the counters as a dual point, clipped in the middle of an epoch."""
        cursor = state.cursor
        if cursor.t == 0:
            return Point(np.zeros(problem.source.d), cursor.b, None)
        theta = problem.lam * cursor.t
        beta = None
        if self.duals:
            beta = problem.source.y * np.minimum(state.errors * (problem.epoch_size / cursor.t), 1.0)
        return Point(state.a.astype(np.float64) / theta, cursor.a_bias / theta + cursor.b, beta)


@dataclass(frozen=True)
class SGDr(Polished, MarginSGD):
    """Patterns drawn at random."""

    polish: int = polish_option()

    name = "sgd-r"
    summary = (
        "stochastic gradient descent as a perceptron, on rows drawn at random, for the hinge loss; pegasos "
        "with k = 1 and no projection makes the same steps"
    )
    papers: ClassVar[Mapping[str, Preset]] = {PAPER: Preset(f"{AUTHORS}, Table 2", {}, NO_BIAS)}


@dataclass(frozen=True)
class SGDs(MarginSGD):
    """Patterns in epochs, with relative accuracy."""

    order: str = option(
        PERMUTATION,
        "permutation (a fresh one each epoch, as in the paper), fixed (one for all epochs) or given",
        choices=(PERMUTATION, FIXED, GIVEN),
    )
    epsilon: float = option(0.0, "also stop by the paper's rule, at this relative accuracy (0: never)", low=0)
    f: float = option(
        1.2, "compute the primal value once its estimate is within f times epsilon; any f >= 1", low=1
    )

    name = "sgd-s"
    summary = "stochastic gradient descent in epochs as a perceptron, with a dual point for free; hinge"
    capabilities = MarginSGD.capabilities._replace(in_epochs=True, own_stops=("epsilon", "f"))
    papers: ClassVar[Mapping[str, Preset]] = {
        PAPER: Preset(
            f"{AUTHORS}, Table 2",
            {},
            f"{NO_BIAS} A run stops by epsilon, which depends on the data (0.105 for Adult at C = 1). Table "
            "1 has epsilon=1e-5 and a large f.",
        )
    }

    @property
    def order_of_epochs(self) -> str:
        """As asked for."""
        return self.order

    @property
    def relative_accuracy(self) -> tuple[float, float]:
        """epsilon and f."""
        return self.epsilon, self.f


@dataclass(frozen=True)
class SGDm(SGDs):
    """Patterns in epochs, some of them several times in a row."""

    times: int = option(5, "presentations in a row in an epoch with multiple updates: l", low=1)
    cycle: int = option(9, "length of the cycle of epochs with and without them", low=1)
    below: int = option(5, "multiple updates in epoch T where 0 < T mod cycle < below", low=1)
    splitting: bool = option(
        False, "for comparison: multiple updates first, then all the shrinking (footnote 6)"
    )

    name = "sgd-m"
    summary = "sgd-s with multiple updates at the price of one inner product, for the hinge loss"
    papers: ClassVar[Mapping[str, Preset]] = {
        PAPER: Preset(
            f"{AUTHORS}, Table 2",
            {},
            f"{NO_BIAS} A run stops by epsilon, which depends on the data (0.33 for Adult at C = 1).",
        ),
        f"{PAPER}-table-8": Preset(
            f"{AUTHORS}, Table 8",
            {"precision": "float32"},
            "The other programs of that table get the rows in the order of the first epoch: order=fixed with "
            "the same seed, or dualgap.solvers.order.first_permutation.",
        ),
    }

    def multiplicity(self, epoch: int) -> int:
        """l in the epochs that have it."""
        return self.times if 0 < epoch % self.cycle < self.below else 1

    def manner(self, epoch: int) -> Manner:
        """With multiple updates as asked for."""
        return super().manner(epoch)._replace(splitting=self.splitting)


def _with_square(state: State, rho2: float) -> State:
    """The state with |a|^2 computed anew; a_bias is rho times the coordinate of the constant feature rho."""
    cursor = state.cursor
    square = float(np.dot(state.a, state.a.astype(np.float64)))
    constant = cursor.a_bias**2 / rho2 if rho2 > 0.0 else 0.0
    return state._replace(cursor=cursor._replace(sums=cursor.sums._replace(r=square + constant)))
