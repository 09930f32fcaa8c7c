"""P and D with bounds on the rounding errors of the pass that computed them.

A certificate is about P and D with the rows, targets, weights and lam exactly as given, and with N the exact
sum of the weights. The code divides by ``total_weight``, a float within two units of N (``sums.Total``); the
bounds allow for that. Where a caller gives C, lam is the float 1 / (C total_weight), and 1 / (lam N) is
within five units of C; the bounds hold for J with the caller's C as well.

How each bound arises:

- A score of k products errs by at most ``gamma(k + 2) (|w| |x_i| + |b|)``, by Cauchy and Schwarz. The loss is
  convex, so that moves it by at most that much times its steepest slope within the interval.
- ``sum c beta x`` over the m rows of a part errs, as a vector, by at most ``gamma(m + 2) sum c |beta| |x|``
  in length; parts are merged with compensation. ``lam/2 |w|^2`` then errs by ``lam |w| error + lam/2
  error^2``.
- With a free bias, weak duality needs ``z = 0``, and rounding leaves a z that is almost 0. For every (w, b)
at
  least as good as the all-zero model ``|b| <= intercept_bound``, so the dual value less ``|z|
  intercept_bound`` is a lower bound on P over all of them.
- Formulas of losses and conjugates err by a few units of their largest term; compensated totals by less than
  that.
- What is left (total_weight for N, products, quotients, the change of form, the C of a caller) is less than
  32 units of each term of P and D. It is most in ``lam/2 |w(beta)|^2``, where N and C count twice: below 28.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..data.rows import Batch
from ..runtime.arrays import Floats
from ..runtime.jit import inner, kernel
from ..runtime.sums import COMPENSATED, UNIT, norm, two_sum
from .losses import Loss

# More than all that can be lost where products of numbers between 1e-100 and 1e100 fall below the smallest
# float.
VANISHED = 1e-200
SMALLEST = 5e-324  # the smallest float: a product that vanishes loses less


class Constants(NamedTuple):
    """The numbers in P and D that do not depend on the point."""

    n: int
    lam: float
    total_weight: float
    centre: float  # of the penalty on b, strength/2 (b - centre)^2
    strength: float  # infinite without a bias, 0 for a free one


class Compensated(NamedTuple):
    """A sum, and what rounding has lost of it."""

    total: float
    lost: float

    @property
    def value(self) -> float:
        """The sum with what was lost."""
        return self.total + self.lost


class Sums(NamedTuple):
    """What some of the rows add to an evaluation."""

    loss: Compensated  # sum c phi
    loss_error: float
    conjugate: Compensated  # sum c phi*(-beta)
    conjugate_error: float
    balance: Compensated  # sum c beta
    mass: float  # sum c |beta|
    length: float  # sum c |beta| |x|


def added(a: Compensated, b: Compensated) -> Compensated:
    """Two compensated sums together."""
    total, lost = two_sum(a.total, b.total)
    return Compensated(total, a.lost + b.lost + lost)


def merged(a: Sums, b: Sums) -> Sums:
    """The sums over the rows of both."""
    return Sums(
        loss=added(a.loss, b.loss),
        loss_error=a.loss_error + b.loss_error,
        conjugate=added(a.conjugate, b.conjugate),
        conjugate_error=a.conjugate_error + b.conjugate_error,
        balance=added(a.balance, b.balance),
        mass=a.mass + b.mass,
        length=a.length + b.length,
    )


def primal_value(constants: Constants, sums: Sums, length: float, b: float) -> tuple[float, float]:
    """P and a bound on its error, from the sum of the losses and ``length = |w|``."""
    weight, strength = constants.total_weight, constants.strength
    shift = b - constants.centre
    penalty = 0.0 if strength == np.inf else 0.5 * strength * shift * shift
    if strength == np.inf and b != 0.0:
        return np.inf, 0.0  # NoBias: such a point is not feasible
    ridge = 0.5 * constants.lam * length * length
    mean = sums.loss.value / weight
    value = ridge + penalty + mean
    error = sums.loss_error / weight + 32.0 * UNIT * (ridge + penalty + mean) + VANISHED
    return (value, error) if np.isfinite(value + error) else (np.inf, 0.0)  # not finite, or not sure to be


def dual_value(
    constants: Constants, sums: Sums, moment: Floats, moment_error: float, intercept_bound: float
) -> tuple[float, float]:
    """D and a bound on its error, from ``moment = sum c beta x`` and the length of its error."""
    weight, strength, centre = constants.total_weight, constants.strength, constants.centre
    if not np.isfinite(sums.conjugate.total):
        return -np.inf, 0.0
    if constants.lam == 0.0:
        return 0.0, 0.0
    conjugate = sums.conjugate.value / weight
    length = norm(moment / weight)  # the square of the moment itself might vanish or overflow
    ridge = 0.5 * length * length / constants.lam
    length_error = moment_error / weight + 2.0 * COMPENSATED * length
    ridge_error = (length * length_error + 0.5 * length_error * length_error) / constants.lam

    z = sums.balance.value / weight
    z_error = (COMPENSATED * sums.mass + constants.n * SMALLEST) / weight
    if strength == np.inf:
        push = pull = term_error = 0.0
    elif strength == 0.0:
        push = pull = 0.0
        if sums.mass > 0.0 and not np.isfinite(intercept_bound):
            return -np.inf, 0.0
        term_error = (abs(z) + z_error) * intercept_bound if sums.mass > 0.0 else 0.0
    else:
        push, pull = centre * z, z * z / (2.0 * strength)
        if abs(z) < 1e-140:  # its square might vanish, and the strength may be as small
            pull = z / (2.0 * strength) * z
        term_error = z_error * (abs(centre) + (abs(z) + z_error) / strength)

    value = -conjugate - ridge - push - pull
    size = abs(conjugate) + ridge + abs(push) + pull
    if sums.mass == 0.0:
        return 0.0, 0.0
    error = sums.conjugate_error / weight + ridge_error + term_error + 32.0 * UNIT * size + VANISHED
    return (value, error) if np.isfinite(value + error) else (-np.inf, 0.0)


def intercept_bound(batch: Batch, loss: Loss, constants: Constants, level: float) -> float:
    """A bound on ``|b|`` over all (w, b) with P(w, b) <= level under a free bias, from the losses alone.

    There ``lam/2 |w|^2 <= level``, so a score lies within ``length |x_i|`` of b. Rows whose loss rises there
    add up to more than N level once b is large enough, on either side: doubling finds such a b. The bound is
    infinite where the losses do not bound b (one class only), or the level is infinite.
    """
    if not np.isfinite(level):
        return np.inf
    worst = 1.001 * level * constants.total_weight
    length = float(np.sqrt(2.002 * level / constants.lam))
    _, y, weight, squared_norms = batch
    few = loss.task == "classification" and not loss.offset
    kinds = kinds_of_rows(y, weight, squared_norms) if few else None

    def total(sign: float, bound: float) -> float:
        if kinds is None:
            return float(losses_beyond(y, weight, squared_norms, loss, length, sign, bound))
        return sum(c * loss_beyond(label, q, loss, length, sign, bound) for label, c, q in kinds)

    bound = 1.0
    for sign in (1.0, -1.0):
        while bound < 1e300 and not total(sign, bound) >= worst:
            bound *= 2.0
    return bound if bound < 1e300 else np.inf


def kinds_of_rows(y: Floats, weight: Floats, squared_norms: Floats) -> list[tuple[float, float, float]]:
    """The label, the total weight and the largest squared length of rows that have the same label and lengths
    that differ by less than a factor of sqrt(2): a few kinds that stand for all rows in `intercept_bound`,
    where a score may be taken lower than it is.
    """
    octave = np.frexp(squared_norms)[1]
    kind = 2 * (octave - octave.min()) + (y > 0.0)
    total, longest = np.bincount(kind, weights=weight), np.zeros(int(kind.max()) + 1)
    np.maximum.at(longest, kind, squared_norms)
    return [
        (1.0 if k % 2 else -1.0, float(total[k]), float(longest[k])) for k in np.flatnonzero(total).tolist()
    ]


@inner
def loss_beyond(y: float, squared_norm: float, loss: Any, length: float, sign: float, bound: float) -> float:
    """A lower bound on the loss of a row where ``sign b >= bound`` and ``|w| <= length``; 0 where it does not
    rise that way.

    The score is taken a little lower than it is, for the rounding errors of score and loss.
    """
    away = 1.001 * length * math.sqrt(squared_norm)
    score = sign * (bound - away - 8.0 * UNIT * (1.0 + bound + away + abs(y)))
    return loss.value(y, score) if sign * loss.derivative(y, score) > 0.0 else 0.0


@kernel
def losses_beyond(
    y: Floats, weight: Floats, squared_norms: Floats, loss: Any, length: float, sign: float, bound: float
) -> float:
    """A lower bound on the total loss where ``sign b >= bound`` and ``|w| <= length``."""
    total = 0.0
    for i in range(y.shape[0]):
        if weight[i] > 0.0:
            total += weight[i] * loss_beyond(y[i], squared_norms[i], loss, length, sign, bound)
    return total
