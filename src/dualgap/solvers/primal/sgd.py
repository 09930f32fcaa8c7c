"""Stochastic gradient descent as Zhang analyses it (ICML 2004; Algorithms 2.1 and 5.1), for every loss.

    w_t = w_{t-1} - eta_t S^-1 (lam w_{t-1} + phi'(<w_{t-1}, X_t>, Y_t) X_t)
    r_t = r_{t-1} + eta_t - A M^2 eta_t^2 / 2
    v_t = (r_{t-1} v_{t-1} + (r_t - r_{t-1}) w_{t-1}) / r_t          (the averaged model, if asked for)

with phi'^2 <= A phi + B and M^2 = max <x, S^-1 x>. ``weights=simple`` takes ``r_t = r_{t-1} + eta_t``, which
is the same at a constant eta. eta_t must stay below 2/(A M^2) where the mean is taken. The learning rate is
constant (Zhang's advice: small, and stop in time), eta0/t (1/(lam t) by default), eta0/sqrt(t), or Bottou's
eta0/(1 + lam eta0 t); eta0 is calibrated as in ``svmsgd.py`` where it is not given.

The preconditioner S is the identity, the mean squares of the features (``preconditioner=features``), a
positive diagonal, or a positive definite matrix. Unless it is the identity, the regulariser shrinks each
coordinate at its own pace: a step costs O(d), or O(d^2) with a matrix. The same code, with S = I, takes the
mean by its definition (``lazy=false``).

lam = 0 is allowed: few passes over the data regularise by themselves, above all with early stopping on
held-out rows (``fit(validation=...)``). There is no lower bound then but 0, and so no certificate worth its
name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.problem import Evaluation, Problem
from ...runtime.arrays import Floats, Words, canonical
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ...runtime.random import ORDERS, lay_out
from .descent import State, Walk, check_rate
from .options import constant_feature, one_of
from .rates import BOTTOU, INVERSE, RATES, Rate, make_rate
from .svmsgd import SvmSgd, calibrated

WEIGHTS = ("full", "simple")
IDENTITY, FEATURES = "identity", "features"


@dataclass(frozen=True)
class SGD(SvmSgd):
    """Stochastic gradient descent with a choice of learning rates and preconditioners."""

    learning_rate: str = field(default=BOTTOU, metadata={"help": f"one of {', '.join(RATES)}"})
    average: bool = field(
        default=False, metadata={"help": "hand back the mean of the iterates, weighted by r_t"}
    )
    weights: str = field(
        default="full", metadata={"help": "of the mean: full (Algorithm 5.1) or simple (eta_t)"}
    )
    T0: int = field(default=1, metadata={"help": "first step of the mean"})
    lazy: bool = field(
        default=True, metadata={"help": "take the mean row by row (false: by its definition, O(d) a step)"}
    )
    preconditioner: Any = field(
        default=IDENTITY,
        metadata={"help": "identity, features (their mean squares), or in Python a diagonal or a matrix"},
        compare=False,
    )

    name = "sgd"
    summary = (
        "stochastic gradient descent with a choice of learning rates, averaging and scaling, for every loss"
    )
    unregularised = True  # lam = 0 will do

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "learning_rate", RATES)
        one_of(self, "weights", WEIGHTS)
        if isinstance(self.preconditioner, str):
            one_of(self, "preconditioner", (IDENTITY, FEATURES))
        if self.T0 < 1:
            raise InputError(f"T0={self.T0!r} must be a step >= 1")
        if self.T0 > 1 and not self.average:
            raise InputError(f"T0={self.T0!r} goes with average=true; set that or leave T0 out")

    def check(self, problem: Problem, steps: float) -> None:
        """The preconditioner must fit, the mean begin before the run ends, and its weights be positive."""
        inverse = self.inverse(problem)
        if inverse.ndim == 2 and problem.bias.kind == "augmented":
            raise InputError("a preconditioner that is a matrix has no entry for the constant feature of "
                             "bias='augmented'; use bias='exact', or add a column of ones to X")  # fmt: skip
        if not self.average:
            return
        if steps <= self.T0:
            raise InputError(
                f"T0={self.T0} is beyond the run of {steps:.0f} steps; lower T0 or raise max_steps"
            )
        half = 0.5 * problem.loss.zhang_pairs[0][0] * self.longest(problem)
        most, eta = (1.0 / half if half > 0.0 else math.inf), self.rate(problem).at(1)
        if eta >= most:
            raise InputError(
                f"the first learning rate {eta:g} must be below 2/(A M^2) = {most:g}, or the mean has "
                "weights below 0; "
                "set eta0 below that, or average=false"
            )

    def rate(self, problem: Problem) -> Rate:
        """As asked for."""
        kind = self.learning_rate
        if kind == INVERSE and self.eta0 == 0.0 and problem.lam > 0.0:
            return make_rate(kind, 1.0 / problem.lam)
        eta0 = self.eta0 or calibrated(self, problem)
        half = 0.5 * problem.loss.zhang_pairs[0][0] * self.longest(problem) if self.average else 0.0
        if not self.eta0 and half > 0.0:
            eta0 = min(eta0, 0.5 / half)  # well below 2/(A M^2)
        return check_rate(make_rate(kind, eta0, 1.0, problem.lam * eta0), problem.lam)

    def mean_from(self, problem: Problem) -> float:
        """T0, where a mean is asked for."""
        return self.T0 if self.average else math.inf

    def discount(self, problem: Problem) -> float:
        """A M^2 / 2, for rho_t = eta_t - A M^2 eta_t^2 / 2."""
        if self.weights == "simple":
            return 0.0
        return 0.5 * problem.loss.zhang_pairs[0][0] * self.longest(problem)

    def longest(self, problem: Problem) -> float:
        """M^2; a weight multiplies its row's."""
        inverse = self.inverse(problem)
        square = problem.source.squared_norms
        if inverse.size:
            (part,) = problem.source.parts()
            square = _lengths(
                part.batch.rows, inverse.reshape(inverse.shape[0], -1), problem.source.n, problem.source.d
            )
        share = problem.source.weight * (problem.epoch_size / problem.total_weight)
        return float(np.max(share * (square + constant_feature(problem))))

    def inverse(self, problem: Problem) -> Floats:
        """S^-1: empty for the identity, else d numbers or d x d."""
        d = problem.source.d
        if isinstance(self.preconditioner, str):
            return np.zeros(0) if self.preconditioner == IDENTITY else 1.0 / _mean_squares(problem)
        given = np.asarray(self.preconditioner)
        if given.dtype.kind not in "iuf" or given.shape not in ((d,), (d, d)):
            raise InputError(
                f"preconditioner has shape {given.shape}; it must be {d} numbers, or {d} x {d}, one a column"
            )
        given = given.astype(np.float64)
        if given.ndim == 1:
            wrong = ~(np.isfinite(given) & (given > 0.0))
            if wrong.any():
                bad = int(np.argmax(wrong))
                raise InputError(f"preconditioner[{bad}] is {given[bad]:g}; it must be positive")
            return canonical(1.0 / given, np.float64)
        if not np.isfinite(given).all() or not np.allclose(given, given.T):
            raise InputError(
                "preconditioner is not symmetric and finite; it must be a symmetric positive definite matrix"
            )
        try:
            np.linalg.cholesky(given)
        except np.linalg.LinAlgError:
            raise InputError(
                "preconditioner is not positive definite; add a multiple of the identity"
            ) from None
        return canonical(np.linalg.inv(given), np.float64)

    def step(self, problem: Problem, state: State, budget: int, last: Evaluation | None) -> State:
        """Make that many steps."""
        inverse = self.inverse(problem)
        if self.lazy and not inverse.size:
            return super().step(problem, state, budget, last)
        (part,) = problem.source.parts()
        matrix = inverse.reshape(inverse.shape[0], -1) if inverse.size else np.ones((problem.source.d, 1))
        first = self.mean_from(problem)
        walk = _descend_by_definition(
            *part.batch[:3],
            problem.loss,
            problem.lam,
            problem.epoch_size / problem.total_weight,
            constant_feature(problem),
            self.bias_step if problem.bias.kind == "exact" else 0.0,
            matrix,
            state.v,
            state.u,
            state.slopes,
            state.looks,
            state.rows,
            state.picks,
            state.rng,
            state.walk,
            state.rate,
            ORDERS.index(self.order),
            int(first) if math.isfinite(first) else -1,
            self.discount(problem),
            state.walk.visits + budget,
        )
        return state._replace(walk=Walk(*walk))


def _mean_squares(problem: Problem) -> Floats:
    """Of the features, with a floor for those that are always 0."""
    (part,) = problem.source.parts()
    squares = np.zeros(problem.source.d)
    _add_squares(part.batch.rows, part.batch.weight, squares)
    squares /= problem.total_weight
    top = squares.max()
    return np.maximum(squares, 1e-12 * top if top > 0.0 else 1.0)


@kernel
def _add_squares(rows: Any, weight: Floats, squares: Floats) -> None:
    for i in range(weight.shape[0]):
        for k in range(rows.count(i)):
            column, value = rows.entry(i, k)
            squares[column] += weight[i] * value * value


@kernel
def _lengths(rows: Any, inverse: Floats, n: int, d: int) -> Floats:
    """``<x, S^-1 x>`` of every row."""
    found = np.zeros(n)
    dense = np.zeros(d)
    for i in range(n):
        total = 0.0
        if inverse.shape[1] == 1:
            for k in range(rows.count(i)):
                column, value = rows.entry(i, k)
                total += value * value * inverse[column, 0]
        else:
            dense[:] = 0.0
            rows.add(i, 1.0, dense)
            for k in range(rows.count(i)):
                column, value = rows.entry(i, k)
                total += value * np.dot(inverse[column], dense)
        found[i] = total
    return found


@kernel
def _descend_by_definition(
    rows: Any,
    y: Floats,
    weight: Floats,
    loss: Any,
    lam: float,
    ratio: float,
    constant: float,
    bias_step: float,
    inverse: Floats,
    w: Any,
    mean: Floats,
    slopes: Floats,
    looks: Any,
    present: Any,
    picks: Any,
    rng: Words,
    walk: Walk,
    rate: Rate,
    order: int,
    mean_from: int,
    discount: float,
    stop: int,
) -> Walk:
    """The algorithms as they are written, O(d) or O(d^2) a step; ``mean`` is the sum of rho_t w."""
    t, position, _, w_bias, b, _, mean_bias, r, visits, updates, entries = walk
    n, d = picks.shape[0], w.shape[0]
    averaged, kept = mean.shape[0] > 0, slopes.shape[0] > 0
    gradient = np.zeros(d)
    while visits < stop:
        if position < 0 or position >= n:
            position = 0
            lay_out(rng, order, present, picks)
        i = picks[position]
        position += 1
        visits += 1
        t += 1
        entries += rows.count(i)
        slope = loss.derivative(y[i], rows.dot(i, w) + w_bias + b)
        if kept:
            looks[i] += np.uint32(1)
            slopes[i] += (-slope - slopes[i]) * (2.0 / (looks[i] + 1.0))
        eta = rate.at(t)
        if averaged and t >= mean_from:
            rho = eta * (1.0 - discount * eta) if discount >= 0.0 else 1.0
            for j in range(d):
                mean[j] += rho * w[j]
            mean_bias += rho * (w_bias + b)
            r += rho
        push = ratio * weight[i] * slope
        for j in range(d):
            gradient[j] = lam * w[j]
        rows.add(i, push, gradient)
        if inverse.shape[1] == 1:
            for j in range(d):
                w[j] -= eta * inverse[j, 0] * gradient[j]
        else:
            for j in range(d):
                w[j] -= eta * np.dot(inverse[j], gradient)
        w_bias -= eta * (lam * w_bias + push * constant)
        b -= eta * bias_step * push
        if slope != 0.0:
            updates += 1
            entries += rows.count(i)
    return Walk(t, position, 1.0, w_bias, b, 0.0, mean_bias, r, visits, updates, entries)
