"""Stochastic gradient descent as Zhang analyses it (ICML 2004; Algorithms 2.1 and 5.1), for every loss.

    w_t = w_{t-1} - eta_t S^-1 (lam w_{t-1} + phi'(<w_{t-1}, X_t>, Y_t) X_t)
    r_t = r_{t-1} + eta_t - A M^2 eta_t^2 / 2
    v_t = (r_{t-1} v_{t-1} + (r_t - r_{t-1}) w_{t-1}) / r_t          (the averaged model, if asked for)

with phi'^2 <= A phi + B and M^2 = max <x, S^-1 x>. ``weights=simple`` takes ``r_t = r_{t-1} + eta_t``, which
is the same at a constant eta. With the full weights and a rate that falls, eta_t must stay below 2/(A M^2):
beyond that weights are negative, and a mean may be worse than all it is made of. Elsewhere only theorem 5.2
is at stake, which promises nothing of longer steps. ``random=true`` hands back one of the iterates instead
(``random_stopping.py``). The learning rate is constant (Zhang's advice: small, and stop in time), eta0/t
(1/(lam t) by default), eta0/sqrt(t), or Bottou's eta0/(1 + lam eta0 t); eta0 is calibrated as in
``svmsgd.py`` where it is not given.

The preconditioner S is the identity, the mean squares of the features (``preconditioner=features``), a
positive diagonal, or a positive definite matrix, from an array or a file. Unless it is the identity, the
regulariser shrinks each coordinate at its own pace: a step costs O(d), or O(d^2) with a matrix. The same
code, with S = I, takes the mean by its definition (``lazy=false``).

lam = 0 is allowed: few passes over the data regularise by themselves, above all with early stopping on
held-out rows (``fit(validation=...)``). There is no lower bound then but 0, and so no certificate worth its
name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

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
from ..dual.averaging import check_T0
from . import random_stopping, zhang
from .descent import Cursor, Model, check_rate
from .preconditioner import FEATURES, IDENTITY, inverse_of, squared_lengths
from .rates import BOTTOU, CONSTANT, INVERSE, RATES, Rate, make_rate
from .slopes import note_slope
from .state import State, begin_epoch
from .svmsgd import SvmSgd, calibrated

FULL, SIMPLE = WEIGHTS = ("full", "simple")


@dataclass(frozen=True)
class SGD(SvmSgd):
    """Stochastic gradient descent with a choice of learning rates and preconditioners."""

    learning_rate: str = option(BOTTOU, f"one of {', '.join(RATES)}", choices=RATES)
    average: bool = option(False, "hand back the mean of the iterates, weighted by r_t")
    weights: str = option(FULL, "of the mean: full (Algorithm 5.1) or simple (eta_t)", choices=WEIGHTS)
    random: bool = option(False, "hand back one of the iterates, drawn at random: random stopping")
    T0: int = option(1, "first step of the mean or of the random choice", low=1)
    pair: int = option(1, "which of the loss's pairs (A, B), phi'^2 <= A phi + B, full weights take", low=1)
    lazy: bool = option(True, "take the mean row by row (false: by its definition, O(d) a step)")
    preconditioner: Any = option(  # noqa: RUF009  (a field)
        IDENTITY,
        "identity, features (their mean squares), or a diagonal or matrix: a file (.npy, text) or an array",
        compare=False,
    )

    name = "sgd"
    summary = (
        "stochastic gradient descent with a choice of learning rates, averaging and scaling, for every loss"
    )
    capabilities = SvmSgd.capabilities._replace(unregularised=True)
    papers: ClassVar[Mapping[str, Preset]] = {
        "zhang-2004": Preset(
            "Zhang (2004), section 7",
            {"learning_rate": CONSTANT, "eta0": 0.002},
            "There lam = 0, rows are binary and of 10,000 columns, and a run is stopped early.",
        ),
        "zhang-2004-averaged": Preset(
            "Zhang (2004), section 7, averaged: Algorithm 5.1",
            {"learning_rate": CONSTANT, "eta0": 0.002, "average": True, "weights": SIMPLE},
            "At a constant rate both kinds of weights are the same.",
        ),
    }

    def check_together(self) -> None:
        """T0 is that of a mean or of a random choice, and these exclude each other."""
        if self.T0 > 1 and not (self.average or self.random):
            raise InputError(f"T0={self.T0!r} goes with average=true or random=true; set one or leave T0 out")
        if self.average and self.random:
            raise InputError("average and random exclude each other; leave one of them out")

    def check(self, problem: Problem, visits: float) -> None:
        """The preconditioner must fit, the mean begin before the run ends, and its weights be positive."""
        geometry = problem.primal_geometry(self.bias_step)
        if inverse_of(self.preconditioner, problem).shape[1] > 1 and geometry.rho2 > 0.0:
            raise InputError(
                "a preconditioner that is a matrix has no entry for the constant feature of "
                "bias='augmented'; use bias='exact', or add a column of ones to X"
            )
        pairs = problem.loss.zhang_pairs
        if self.pair > len(pairs):
            known = ", ".join(f"{number}: {pair}" for number, pair in enumerate(pairs, 1))
            raise InputError(
                f"pair={self.pair} is none of the pairs (A, B) of {problem.loss.name!r}: {known}"
            )
        if self.average or self.random:
            check_T0(self.T0, visits)
        if not self.discounts:
            return
        half = self._half(problem)
        most, eta = (1.0 / half if half > 0.0 else math.inf), self.rate(problem).at(1)
        if eta >= most:
            raise InputError(
                f"the first learning rate {eta:g} must be below 2/(A M^2) = {most:g}, or weights='full' are "
                "below 0 at first and the mean may be anything; set eta0 below that, or weights='simple'"
            )

    def plan(self, problem: Problem, tol: float) -> list[str]:
        """Zhang's theorems."""
        inverse = inverse_of(self.preconditioner, problem)
        lengths = squared_lengths(problem, inverse)
        return zhang.promises(problem, self.rate(problem), lengths, not inverse.size, tol)

    def rate(self, problem: Problem) -> Rate:
        """As asked for."""
        kind = self.learning_rate
        if kind == INVERSE and self.eta0 == 0.0 and problem.lam > 0.0:
            return make_rate(kind, 1.0 / problem.lam)
        eta0 = self.eta0 or calibrated(self, problem)
        half = self._half(problem) if self.discounts else 0.0
        if not self.eta0 and half > 0.0:
            eta0 = min(eta0, 0.5 / half)  # well below 2/(A M^2)
        return check_rate(make_rate(kind, eta0, 1.0, problem.lam * eta0), problem.lam)

    def mean_from(self, problem: Problem) -> float:
        """T0, where a mean is asked for."""
        return self.T0 if self.average else math.inf

    def discount(self, problem: Problem) -> float:
        """A M^2 / 2, for rho_t = eta_t - A M^2 eta_t^2 / 2."""
        return self._half(problem) if self.discounts else 0.0

    @property
    def discounts(self) -> bool:
        """Whether A M^2 has a say in the mean; at a constant rate the weights are all the same."""
        return self.average and self.weights == FULL and self.learning_rate != CONSTANT

    def _half(self, problem: Problem) -> float:
        """A M^2 / 2; a weight multiplies the squared length of its row."""
        geometry = problem.primal_geometry(self.bias_step)
        square = squared_lengths(problem, inverse_of(self.preconditioner, problem))
        share = problem.source.weight * geometry.weight_scale
        A, _ = problem.loss.zhang_pairs[self.pair - 1]
        return 0.5 * A * float(np.max(share * (square + geometry.rho2)))

    def begin(self, problem: Problem, warm: Point | None) -> tuple[Any, Cursor]:
        """Model and cursor at w = 0, or at the model of a warm start."""
        model, cursor = super().begin(problem, warm)
        return (random_stopping.begin(model, self.T0, self.seed) if self.random else model), cursor

    def visit(
        self, problem: Problem, loss: Loss, geometry: PrimalGeometry, state: State[Any, Cursor], stop: int
    ) -> State[Any, Cursor]:
        """Make steps until ``stop`` rows have been visited in all, and draw iterates if asked for."""
        steps = partial(self._steps, problem, loss, geometry)
        return random_stopping.visit(state, self.T0, stop, steps) if self.random else steps(state, stop)

    def model_of(self, state: State[Any, Cursor]) -> tuple[Floats, float]:
        """The mean, the iterate that is drawn, or the last one."""
        return random_stopping.model_of(state) if self.random else super().model_of(state)

    def _steps(
        self, problem: Problem, loss: Loss, geometry: PrimalGeometry, state: State[Model, Cursor], stop: int
    ) -> State[Model, Cursor]:
        inverse = inverse_of(self.preconditioner, problem)
        if self.lazy and not inverse.size:
            return super().visit(problem, loss, geometry, state, stop)
        if not inverse.size:
            inverse = np.ones((problem.source.d, 1))
        manner, batch = self.manner(problem), problem.source.batch
        return state._replace(
            cursor=_descend_by_definition(batch, loss, geometry, inverse, state, manner, stop)
        )

    def for_stream(self) -> Self:
        """Refuse what depends on rows still to come."""
        if self.discounts:
            raise InputError(
                "weights='full' depends on the longest of all rows, which a stream does not know; "
                "use weights='simple'"
            )
        if isinstance(self.preconditioner, str) and self.preconditioner == FEATURES:
            raise InputError("preconditioner='features' depends on all rows; give a diagonal or a matrix")
        return super().for_stream()


@kernel
def _descend_by_definition(
    batch: Any, loss: Any, geometry: Any, inverse: Floats, state: Any, manner: Any, stop: int
) -> Cursor:
    """The algorithms as they are written, O(d) or O(d^2) a step, with s = 1: w is v, and u the sum of rho_t
    w.
    """
    rows, y, weight, _ = batch
    lam, weight_scale, rho2, bias_step = geometry
    model, order, means, cursor = state
    picks = order.picks
    w, mean, rate = model
    how, mean_from, discount = manner
    position, _, w_bias, b, _, mean_bias, r, counts = cursor
    visits, updates, entries = counts
    d, averaged = w.shape[0], mean.shape[0] > 0
    gradient = np.zeros(d)
    n, kept = picks.shape[0], means.slopes.shape[0] > 0
    while visits < stop:
        if position < 0 or position >= n:
            position = begin_epoch(order, how, position < 0)
        fetch_ahead(batch, picks, position, n)
        i = picks[position]
        position, visits = position + 1, visits + 1
        entries += rows.count(i)
        slope = loss.derivative(y[i], rows.dot(i, w) + w_bias + b)
        if kept:
            note_slope(means, i, -slope)
        eta = rate.at(visits)
        if averaged and visits >= mean_from:
            rho = eta * (1.0 - discount * eta) if discount >= 0.0 else 1.0
            for j in range(d):
                mean[j] += rho * w[j]
            mean_bias += rho * (w_bias + b)
            r += rho
        push = weight_scale * weight[i] * slope
        for j in range(d):
            gradient[j] = lam * w[j]
        rows.add(i, push, gradient)
        if inverse.shape[1] == 1:
            for j in range(d):
                w[j] -= eta * inverse[j, 0] * gradient[j]
        else:
            for j in range(d):
                w[j] -= eta * np.dot(inverse[j], gradient)
        w_bias -= eta * (lam * w_bias + push * rho2)
        b -= eta * bias_step * push
        if slope != 0.0:
            updates += 1
            entries += rows.count(i)
    return Cursor(position, 1.0, w_bias, b, 0.0, mean_bias, r, Counts(visits, updates, entries))
