"""Implicit updates: stochastic gradient descent with the gradient taken where the step ends, for every loss.

    w' = w - eta (lam w' + phi'(<w', x>, y) x)
    so  w' = mu (w + eta a x),   mu = 1/(1 + eta lam),   a = -phi'(<w', x>)

Along x that is one equation for the new score p' = mu <w, x> + mu eta |x|^2 a: just the one that the dual
step of the loss solves from beta = 0 at the score mu <w, x> and the curvature mu eta |x|^2. For the hinge it
gives the three cases of the lecture: a = 0, a = y, and in between an a that puts the row exactly on its
margin. No step is too long: one that is infinitely long goes to the row's own optimum. Without shrinking (mu
= 1) and with eta = 1/(lam n), a first step on a row is the step of dual coordinate ascent.

eta is 1/(lam t), or constant. w is kept as ``s v``, as in ``descent.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.geometry import PrimalGeometry
from ...core.losses import Loss
from ...core.problem import Point, Problem
from ...data.fetching import fetch_ahead
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.jit import kernel
from ...runtime.options import option
from ...runtime.random import RANDOM
from ...training.solver import Preset
from ...training.states import Position, Positive, state_class
from .row_by_row import RowByRow, intercepts
from .slopes import note_slope
from .state import State, begin_epoch

SMALLEST = 1e-9  # of s, before v takes it in


@state_class
class Model(NamedTuple):
    """w = s v."""

    v: Floats


@state_class
class Cursor(NamedTuple):
    """Where the solver stands."""

    position: Position = -1
    s: Positive = 1.0
    v_bias: float = 0.0
    b: float = 0.0  # a bias that is not regularised
    counts: Counts = Counts()


class Manner(NamedTuple):
    """How steps are made."""

    how: int  # the order
    eta: float  # 0: 1/(lam t)
    shrinking: bool


@dataclass(frozen=True)
class Implicit(RowByRow[Model, Cursor]):
    """Implicit updates."""

    eta: float = option(0.0, "a constant step (0: 1/(lam t) in step t)", low=0)
    shrinking: bool = option(True, "regularise in every step (false: the losses alone)")

    name = "implicit"
    summary = "stochastic gradient descent with the gradient taken at the end of the step, for every loss"
    papers: ClassVar[Mapping[str, Preset]] = {
        "vishwanathan-2015": Preset(
            "Vishwanathan (2015), lecture on training support vector machines",
            {"order": RANDOM},
            "The step is 1/(lam t).",
        )
    }

    def begin(self, problem: Problem, warm: Point | None) -> tuple[Model, Cursor]:
        """Model and cursor at w = 0, or at the model of a warm start."""
        v = np.zeros(problem.source.d) if warm is None else np.array(warm.w, dtype=np.float64)
        v_bias, b = intercepts(problem, warm)
        return Model(v), Cursor(v_bias=v_bias, b=b)

    def visit(
        self, problem: Problem, loss: Loss, geometry: PrimalGeometry, state: State[Model, Cursor], stop: int
    ) -> State[Model, Cursor]:
        """Make steps until ``stop`` rows have been visited in all."""
        manner = Manner(self.how, self.eta, self.shrinking)
        return state._replace(cursor=_update(problem.source.batch, loss, geometry, state, manner, stop))

    def model_of(self, state: State[Model, Cursor]) -> tuple[Floats, float]:
        """The last iterate."""
        cursor = state.cursor
        return cursor.s * state.model.v, cursor.s * cursor.v_bias + cursor.b


@kernel
def _update(batch: Any, loss: Any, geometry: Any, state: Any, manner: Any, stop: int) -> Cursor:
    """Steps up to visit number ``stop``; with e = eta weight_scale c and s already multiplied by mu,

    a = argmax -phi*(-a) - a s (<v, x> + v_bias) - a b - q/2 a^2,   q = e (mu (|x|^2 + rho2) + bias_step)
    """
    rows, y, weight, squared_norms = batch
    lam, weight_scale, rho2, bias_step = geometry
    v = state.model.v
    order, means = state.order, state.means
    picks = order.picks
    how, constant_eta, shrinking = manner
    position, s, v_bias, b, counts = state.cursor
    visits, updates, entries = counts
    n, kept = picks.shape[0], means.slopes.shape[0] > 0
    while visits < stop:
        if position < 0 or position >= n:
            position = begin_epoch(order, how, position < 0)
        fetch_ahead(batch, picks, position, n)
        i = picks[position]
        position, visits = position + 1, visits + 1
        entries += rows.count(i)
        eta = constant_eta if constant_eta > 0.0 else 1.0 / (lam * visits)
        mu = 1.0 / (1.0 + eta * lam) if shrinking else 1.0
        length = eta * weight_scale * weight[i]
        s *= mu
        score = s * (rows.dot(i, v) + v_bias) + b
        a = loss.dual_prox(y[i], score, 0.0, length * (mu * (squared_norms[i] + rho2) + bias_step))
        if kept:
            note_slope(means, i, a)
        if a != 0.0:
            move = mu * length * a / s
            rows.add(i, move, v)
            v_bias += move * rho2
            b += bias_step * length * a
            updates += 1
            entries += rows.count(i)
        if s < SMALLEST:
            for j in range(v.shape[0]):
                v[j] *= s
            v_bias *= s
            s = 1.0
    return Cursor(position, s, v_bias, b, Counts(visits, updates, entries))
