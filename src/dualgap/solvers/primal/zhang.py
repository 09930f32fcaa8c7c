"""What Zhang's theorems (ICML 2004) promise of stochastic gradient descent, for ``plan``.

A loss has constants with phi'^2 <= A phi + B, and M^2 = max <x, S^-1 x>. Rows with weights c (their mean is
1) have c phi for a loss, so A M^2 stands for A max c <x, S^-1 x>, and B M^2 for B max c^2 <x, S^-1 x>.

With w_0 = 0 and lam = 0, after T steps, where Q is the mean loss:

- 5.1, in epochs of any order, at a constant eta: ``(1 - eta A M^2/2) mean of the losses met <= P + eta B
  M^2/2``, P the minimum of ``Q(w) + |w|^2/(2 eta T)``: early stopping is a regulariser with lam = 1/(eta T).
- 5.2, rows drawn at random, any rates: ``E Q(mean) <= inf ((1 + s) Q(w) + |w|^2/(2 r)) + sigma^2 B M^2/(2
  r)`` with ``sigma^2 = sum eta_t^2, r = sum eta_t - A M^2 sigma^2/2, s = sigma^2 A M^2/(2 r)``. The same
  holds for one of the iterates at random. At a constant eta that is 5.1's bound. (Inequality 7 of the paper
  has 1 + eta A M^2/2 where 1/(1 - eta A M^2/2) follows.)
- 5.3, for a pair with A = 0: ``E Q(w_T) <= P + eta (3/2 + ln(T + 1)) B M^2``.
- eta = epsilon/K and T = |w|^2 K / epsilon^2 steps, ``K = (A (Q(0) + epsilon) + B) M^2``, suffice for ``E
  Q(mean) <= Q(w) + epsilon``, whichever w with Q(w) <= Q(0): put them into 5.2.
- A loss with B = 0, at eta = 1/(A M^2), on rows that some w separates without loss: 5.1 bounds the sum of the
  losses met by ``A M^2 |w|^2``, and each mistake has one of phi(0) at least.

With lam > 0 and S = I, at a constant eta, 6.1 bounds the distance to the solution w*:

    E |w_T - w*|^2 <= q^T |w*|^2 + eta K (1 - q^(T+1)) / (lam (1 - eta A M^2))

with q = 1 - lam eta (1 - eta A M^2) and K = 2 (A P(w*) + B) M^2. It asks for 2 lam <= A M^2, which excludes A
= 0. But a loss is not negative, so a pair holds with any larger A as well: A M^2 = 2 lam will do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...core.losses import Loss
from ...core.problem import Problem
from ...runtime.arrays import Floats
from .rates import CONSTANT, RATES, Rate

AFTER = 1, 10, 100  # epochs for which numbers are given
_GRID = 4000  # points between which a sum over steps is bounded


class Pair(NamedTuple):
    """Constants of a loss on some rows."""

    A: float  # as the loss has them
    B: float
    AM2: float
    BM2: float


class Regret(NamedTuple):
    """A bound of the form ``factor (minimum at lam) + extra``."""

    factor: float
    lam: float
    extra: float


def pairs_of(problem: Problem, lengths: Floats) -> list[Pair]:
    """The pairs of the loss, for rows with these ``<x, S^-1 x>``."""
    geometry = problem.primal_geometry(0.0)
    share = problem.source.weight * geometry.weight_scale
    square = lengths + geometry.rho2
    once, twice = float(np.max(share * square)), float(np.max(share**2 * square))
    return [Pair(A, B, A * once, B * twice) for A, B in problem.loss.zhang_pairs]


def averaged(pair: Pair, rate: Rate, T: int) -> Regret | None:
    """Theorem 5.2 after T steps; None where r_T is not positive."""
    total, squares = _sums(rate, T)
    r = total - 0.5 * pair.AM2 * squares
    if r <= 0.0:
        return None
    factor = 1.0 + 0.5 * squares * pair.AM2 / r
    return Regret(factor, 1.0 / (r * factor), 0.5 * squares * pair.BM2 / r)


def last(pair: Pair, eta: float, T: int) -> Regret:
    """Theorem 5.3 after T steps, for a pair with A = 0."""
    return Regret(1.0, 1.0 / (eta * T), eta * (1.5 + math.log(T + 1.0)) * pair.BM2)


def steps_for(pair: Pair, at_zero: float, epsilon: float) -> tuple[float, float]:
    """The eta, and the T for |w| = 1, with which 5.2 promises a loss within epsilon of that of w."""
    K = pair.AM2 * (at_zero + epsilon) + pair.BM2
    return epsilon / K, K / epsilon**2


def distance(pair: Pair, eta: float, lam: float, T: int, square: float, value: float) -> float:
    """Theorem 6.1 after T steps, for |w*|^2 <= square and P(w*) <= value; infinite where eta is too large."""
    AM2 = max(pair.AM2, 2.0 * lam)
    rest = 1.0 - eta * AM2
    if rest <= 0.0 or lam * eta * rest > 1.0:
        return math.inf
    q = 1.0 - lam * eta * rest
    K = 2.0 * (AM2 * value + pair.BM2)
    return float(q**T * square + eta * K * (1.0 - q ** (T + 1)) / (lam * rest))


def mistakes(pair: Pair, loss: Loss) -> float | None:
    """The mistakes, for |w*| = 1, that 5.1 allows at eta = 1/(A M^2) on rows that w* fits without loss."""
    if pair.B > 0.0 or loss.task != "classification" or not math.isfinite(loss.margin):
        return None
    return pair.AM2 / loss.value(1.0, 0.0)


def promises(problem: Problem, rate: Rate, lengths: Floats, identity: bool, tol: float) -> list[str]:
    """What the theorems say of a run of ``sgd``, in sentences."""
    if problem.bias.free:
        return [
            "sgd: Zhang's theorems are without a bias, or with bias=augmented; for bias=exact none is known"
        ]
    pairs = pairs_of(problem, lengths)
    if not any(pair.AM2 or pair.BM2 for pair in pairs):
        return ["sgd: all rows are empty, and no step moves w"]
    told = ", ".join(f"A M^2 = {pair.AM2:.4g} and B M^2 = {pair.BM2:.4g}" for pair in pairs)
    lines = [f"sgd: phi'^2 <= A phi + B with (A, B) = {shown_pairs(problem.loss)}, on these rows {told}"]
    if problem.lam > 0.0:
        return [*lines, *_regularised(problem, rate, pairs, identity)]
    norm = "" if identity else ", with <w, S w> for |w|^2"
    legend = f"P(C) is the minimum at C, in mean form{norm}: a run that is stopped early is a regularised one"
    return [*lines, legend, *_unregularised(problem, rate, pairs, tol)]


def shown_pairs(loss: Loss) -> str:
    """The pairs (A, B) of a loss, as text."""
    return " or ".join(f"({A:g}, {B:g})" for A, B in loss.zhang_pairs)


def _unregularised(problem: Problem, rate: Rate, pairs: list[Pair], tol: float) -> list[str]:
    """Theorems 5.1 to 5.3, the number of steps for an accuracy, and the bound on mistakes."""
    n, constant = problem.epoch_size, RATES[rate.kind] == CONSTANT
    lines = []
    for pair in pairs:
        bounds = [averaged(pair, rate, epochs * n) for epochs in AFTER]
        of = f"theorem 5.2, (A, B) = ({pair.A:g}, {pair.B:g}), order=random"
        if None in bounds:
            lines.append(
                f"{of}: the learning rate {rate.at(1):g} is too large; below 2/(A M^2) = "
                f"{2.0 / pair.AM2:.4g} there is a bound"
            )
            continue
        shown = _listed([_said(bound, problem) for bound in bounds if bound is not None])
        lines.append(
            f"{of}: the mean of the iterates (average=true), or one of them (random=true), has an expected "
            f"loss of at most {shown}"
        )
        if constant:
            lines.append("theorem 5.1: in epochs of any order that bounds the mean loss of rows when visited")
        if constant and pair.A == 0.0:
            more = _listed([_said(last(pair, rate.eta0, epochs * n), problem) for epochs in AFTER])
            lines.append(f"theorem 5.3: the last iterate has an expected loss of at most {more}")
    epsilon = tol * problem.value_at_zero
    if epsilon > 0.0:
        best = min(pairs, key=lambda pair: steps_for(pair, problem.value_at_zero, epsilon)[1])
        eta, T = steps_for(best, problem.value_at_zero, epsilon)
        lines.append(
            f"for a mean within {epsilon:.3g} ({tol:g} of the loss at w = 0) of the loss of any w no worse "
            f"than 0: a constant eta of {eta:.3g} and {T:.4g} |w|^2 steps ({T / n:.4g} |w|^2 epochs), which "
            "grow as 1/epsilon^2"
        )
    return [*lines, *_mistakes(problem, pairs)]


def _mistakes(problem: Problem, pairs: list[Pair]) -> list[str]:
    for pair in pairs:
        most = mistakes(pair, problem.loss)
        if most is not None:
            return [
                f"if some w* has y <w*, x> >= {problem.loss.margin:g} for every row, a constant eta of "
                f"1/(A M^2) = {1.0 / pair.AM2:.4g} makes at most {most:.4g} |w*|^2 mistakes in all"
            ]
    return []


def _regularised(problem: Problem, rate: Rate, pairs: list[Pair], identity: bool) -> list[str]:
    """Theorem 6.1."""
    if RATES[rate.kind] != CONSTANT or not identity:
        return [
            "for lam > 0 theorem 6.1 bounds the distance to the solution, with learning_rate=constant and no "
            "preconditioner only; at lam = 0 theorems 5.1 to 5.3 bound the loss"
        ]
    value, lam, n = problem.value_at_zero, problem.lam, problem.epoch_size
    square = 2.0 * value / lam  # lam/2 |w*|^2 <= P(w*) <= P(0)
    bounds = [
        min(distance(pair, rate.eta0, lam, epochs * n, square, value) for pair in pairs) for epochs in AFTER
    ]
    if not math.isfinite(bounds[0]):
        least = min(max(pair.AM2, 2.0 * lam) for pair in pairs)
        return [f"theorem 6.1 needs a learning rate below 1/(A M^2) = {1.0 / least:.4g}; it is {rate.eta0:g}"]
    shown = _listed([f"{bound:.4g}" for bound in bounds])
    return [
        f"theorem 6.1, order=random: |w - w*|^2, w* the solution, is expected to be at most {shown}; it "
        f"begins with |w*|^2 <= {square:.4g} (2/lam times the objective at w = 0)"
    ]


def _said(bound: Regret, problem: Problem) -> str:
    factor = "" if bound.factor == 1.0 else f"{bound.factor:.6g} "
    extra = "" if bound.extra == 0.0 else f" + {bound.extra:.4g}"
    return f"{factor}P({1.0 / (bound.lam * problem.total_weight):.4g}){extra}"


def _listed(values: list[str]) -> str:
    """Values with the epochs after which they hold."""
    known = (f"{value} after {epochs:,}" for epochs, value in zip(AFTER, values, strict=True))
    return f"{', '.join(known)} epochs"


def _sums(rate: Rate, T: int) -> tuple[float, float]:
    """The sum of eta_t, and of its squares, over t = 1..T; where eta_t falls, from below and from above."""
    if RATES[rate.kind] == CONSTANT:
        return rate.eta0 * T, rate.eta0**2 * T
    ends = np.unique(np.ceil(np.geomspace(1.0, T, _GRID)))  # rates are alike between them
    counts = np.diff(ends, prepend=0.0)
    begins = ends - counts + 1.0
    low = np.array([rate.at(int(t)) for t in ends])
    high = np.array([rate.at(int(t)) for t in begins])
    return float(counts @ low), float(counts @ high**2)


def perceptron_promises(problem: Problem, margin: float) -> list[str]:
    """The bound on the updates of a perceptron (Novikoff; Freund and Schapire), with this margin.

    An update adds c y x: <w, w*> grows by c at least less c (1 - y <w*, x>)+, and |w|^2 by c (c |x|^2 + 2
    margin) at most. So the sum U of c over updates has ``U - L <= sqrt(U K) |w*|``, K the largest of the
    brackets and L the sum of c times the hinge losses of w* at the updates, whence sqrt(U) <= sqrt(K) |w*| +
    sqrt(L).
    """
    if problem.bias.free:
        return [
            "perceptron: its bound is without a bias, or with bias=augmented; for bias=exact none is known"
        ]
    geometry = problem.primal_geometry(0.0)
    share = problem.source.weight * geometry.weight_scale
    K = float(np.max(share * (problem.source.squared_norms + geometry.rho2))) + 2.0 * margin
    return [
        f"perceptron: if some w* has y <w*, x> >= 1 for every row, it makes at most {K:.4g} |w*|^2 updates, "
        "in any order (a weighted row counts by its weight over the mean weight)",
        f"otherwise at most (sqrt({K:.4g}) |w*| + sqrt(L))^2, where L is the sum of the hinge losses of any "
        "w* at the updates",
        "it is sgd on the hinge loss with eta -> infinity, up to the length of w (Zhang 2004, section 5.3); "
        "it minimises no objective",
    ]
