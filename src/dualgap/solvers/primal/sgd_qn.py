"""SGD-QN: stochastic gradient descent with a diagonal of learning rates (Bordes, Bottou and Gallinari, JMLR
2009).

    w <- w - B phi'(<w, x>) x                          (B diagonal; only the entries of x change)
    every ``skip`` steps:   w <- w - skip lam B w, and on the next row with a slope g, which its step
    makes g':   r_j = clip(lam + (g' - g) x_j / (change of w_j), 0.1 lam, 100 lam)
                B_j <- 1/(1/B_j + skip r_j)

r_j is a secant: the change of the gradient over the change of w. As (change of w_j) is -B_j g x_j, it is
``lam + (g - g')/(B_j g)``; in columns that the row does not have only the regulariser bends, and r_j = lam.
So every rate falls at least about as fast as 1/(lam t). Without that, rates of rare columns stay where they
were: to 1% of the optimum at C = 1, from eta0 = 1/8, a9a takes 27 to 42 epochs and w8a 16 to 20, and would
take 70 to 76 and 50 to 53 (39 and 39 in Table 8 of Panagiotakopoulos and Tsampouka 2013). The version with
the bounds on r_j is the one after the erratum of 2010. B begins at eta0 = 1/(lam t0), that of ``svmsgd.py``
unless it is given (by steps with secants the choice is less sure: few secants fall into one pass). ``skip``
is 16 n d / nnz by default, so that the shrinking, which costs O(d), takes a 16th of the time. The program of
2009 takes shuffled rows as they come (``order=fixed``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from ...core.geometry import PrimalGeometry
from ...core.losses import Loss
from ...core.problem import Point, Problem
from ...data.fetching import fetch_ahead
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ...runtime.options import option
from ...training.solver import Preset
from ...training.states import (
    Extent,
    Fixed,
    FixedCount,
    Natural,
    NotNegative,
    Numbers,
    Position,
    Reals,
    invariant,
    state_class,
)
from .options import eta0_option, precision_option
from .row_by_row import RowByRow
from .slopes import note_slope
from .state import FIXED, State, begin_epoch
from .svmsgd import SvmSgd, calibrated


@state_class
class Model(NamedTuple):
    """The weights and their learning rates."""

    w: Reals  # float64 or float32
    B: Annotated[Any, Numbers(0.0)]  # float64 or float32
    skip: FixedCount
    eta0: Fixed


@state_class
class Cursor(NamedTuple):
    """Where the solver stands."""

    position: Position
    until: Natural  # steps until w shrinks
    secant: bool  # the next row with a slope updates B
    b: float
    b_rate: NotNegative  # the learning rate of the constant feature, per unit of it
    counts: Counts


@invariant(State)
def _check(state: State[Any, Any], extent: Extent) -> Iterator[tuple[bool, str]]:
    if isinstance(state.model, Model):
        yield state.cursor.until <= state.model.skip, "cursor.until is beyond model.skip"


class Manner(NamedTuple):
    """How steps are made."""

    how: int  # the order
    t0: float  # a bias that is not regularised has the learning rate bias_step/(lam (t + t0))


@dataclass(frozen=True)
class SGDQN(RowByRow[Model, Cursor]):
    """A diagonal of learning rates from secants."""

    eta0: float = eta0_option()
    skip: int = option(0, "steps between two shrinkings (0: 16 n d / nonzeros)", low=0)
    precision: str = precision_option()

    name = "sgd-qn"
    summary = "stochastic gradient descent with a diagonal of learning rates from secants, for every loss"
    papers: ClassVar[Mapping[str, Preset]] = {
        "bordes-2010": Preset(
            "Bordes, Bottou, Gallinari, Chang and Smith (2010), the erratum to SGD-QN (2009)",
            {"order": FIXED, "precision": "float32"},
            "The program takes shuffled rows as they come (order=given); order=fixed shuffles them once. It "
            "tries t0 = 1, 10, 100... on a tenth of the rows, for as many epochs as the run will have; here "
            "eta0 = 1/(lam t0) is found by one pass over 1,000 rows.",
        )
    }

    def begin(self, problem: Problem, warm: Point | None) -> tuple[Model, Cursor]:
        """Model and cursor at w = 0, or at the model of a warm start."""
        source, lam = problem.source, problem.lam
        eta0 = self.eta0 or calibrated(SvmSgd(seed=self.seed, order=self.order), problem)
        if eta0 * lam > 1.0:
            raise InputError(f"eta0={eta0:g} must be at most 1/lam = {1.0 / lam:g}")
        most = max(1, int(0.5 / (eta0 * lam)))  # shrinking must not change the sign of w
        skip = self.skip or min(max(1, round(16 * source.n * source.d / max(source.nnz, 1))), most)
        if skip > 2 * most:
            raise InputError(
                f"skip={skip} shrinks w too much at once at eta0={eta0:g}; it must be at most {2 * most}"
            )
        w = np.zeros(source.d, dtype=self.precision)
        if warm is not None:
            w[:] = warm.w
        B = np.full(source.d, eta0, dtype=self.precision)
        b = 0.0 if warm is None else float(warm.b)
        return Model(w, B, skip, eta0), Cursor(-1, skip, False, b, eta0, Counts())

    def visit(
        self, problem: Problem, loss: Loss, geometry: PrimalGeometry, state: State[Model, Cursor], stop: int
    ) -> State[Model, Cursor]:
        """Make steps until ``stop`` rows have been visited in all."""
        manner = Manner(self.how, 1.0 / (problem.lam * state.model.eta0))
        return state._replace(cursor=_descend(problem.source.batch, loss, geometry, state, manner, stop))

    def model_of(self, state: State[Model, Cursor]) -> tuple[Floats, float]:
        """The last iterate."""
        return state.model.w.astype(np.float64), state.cursor.b


@kernel
def _slower(rate: float, change: float, lam: float, skip: int) -> float:
    """``1/(1/B + skip r)`` with ``r = lam + change/B`` within its bounds, ``change = (g - g')/g``."""
    r = min(max(lam + change / rate, 0.1 * lam), 100.0 * lam)
    return rate / (1.0 + skip * r * rate)


@kernel
def _descend(batch: Any, loss: Any, geometry: Any, state: Any, manner: Any, stop: int) -> Cursor:
    """Steps up to visit number ``stop``, as at the head of this file."""
    rows, y, weight, _ = batch
    lam, weight_scale, rho2, bias_step = geometry
    model, order, means, cursor = state
    picks = order.picks
    w, B, skip, _ = model
    how, t0 = manner
    position, until, secant, b, b_rate, counts = cursor
    visits, updates, entries = counts
    n, kept = picks.shape[0], means.slopes.shape[0] > 0
    while visits < stop:
        if position < 0 or position >= n:
            position = begin_epoch(order, how, position < 0)
        fetch_ahead(batch, picks, position, n)
        i = picks[position]
        position, visits = position + 1, visits + 1
        count = rows.count(i)
        entries += count
        slope = loss.derivative(y[i], rows.dot(i, w) + b)
        if kept:
            note_slope(means, i, -slope)
        if slope != 0.0:
            push = -weight_scale * weight[i] * slope
            for k in range(count):
                column, value = rows.entry(i, k)
                w[column] += push * B[column] * value
            b += push * (b_rate * rho2 + bias_step / (lam * (visits + t0)))
            updates += 1
            entries += count
        if secant and slope != 0.0:
            change = (slope - loss.derivative(y[i], rows.dot(i, w) + b)) / slope
            for k in range(count):
                column, value = rows.entry(i, k)
                if value != 0.0:
                    B[column] = -_slower(B[column], change, lam, skip)  # the sign: done
            for j in range(B.shape[0]):
                B[j] = -B[j] if B[j] < 0.0 else B[j] / (1.0 + skip * lam * B[j])
            b_rate = _slower(b_rate, change, lam, skip)
            entries += 2 * count
            secant = False
        until -= 1
        if until == 0:
            until = skip
            secant = True
            for j in range(w.shape[0]):
                w[j] -= skip * lam * B[j] * w[j]
            if rho2 > 0.0:
                b -= skip * lam * b_rate * b
    return Cursor(position, until, secant, b, b_rate, Counts(visits, updates, entries))
