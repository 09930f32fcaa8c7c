"""P(w, b) and D(beta) without rounding, from the very floats that the library was given.

Every finite float is a fraction, and every loss but the logistic is piecewise polynomial:
``fractions.Fraction`` then gives the true objective. The logistic loss comes from ``decimal`` with 90 digits.
The losses are written here from their definitions, not from the library's code.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

DIGITS = 90
INFINITE = None  # stands for an infinite conjugate; a Fraction cannot hold one

Conjugate = Callable[..., Fraction | None]


def _positive_part(number: Fraction) -> Fraction:
    return max(Fraction(0), number)


def _log(number: Fraction) -> Fraction:
    """ln of a positive number, to a relative 1e-60 even next to 1."""
    with localcontext() as context:
        context.prec = DIGITS
        off = number - 1
        if abs(off) < Fraction(1, 10**20):
            return off * (1 - off * (Fraction(1, 2) - off * (Fraction(1, 3) - off * Fraction(1, 4))))
        return Fraction((Decimal(number.numerator) / Decimal(number.denominator)).ln())


def _exp_of_minus(number: Fraction) -> Fraction:
    """exp(-number) for number >= 0; beyond 1e4 it is 0 for every purpose of float64."""
    if number > 10**4:
        return Fraction(0)
    with localcontext() as context:
        context.prec = DIGITS
        return Fraction((-Decimal(number.numerator) / Decimal(number.denominator)).exp())


def _logistic(margin: Fraction) -> Fraction:
    tail = _log(1 + _exp_of_minus(abs(margin)))
    return tail if margin >= 0 else tail - margin


def _entropy(a: Fraction) -> Fraction:
    return sum((share * _log(share) for share in (a, 1 - a) if share > 0), Fraction(0))


def _smooth_hinge(short: Fraction, gamma: Fraction) -> Fraction:
    return _positive_part(short) ** 2 / (2 * gamma) if short <= gamma else short - gamma / 2


def _huber(off: Fraction, threshold: Fraction) -> Fraction:
    return off**2 if off <= threshold else 2 * threshold * off - threshold**2


VALUES: dict[str, Callable[..., Fraction]] = {
    "hinge": lambda y, s, margin: _positive_part(margin - y * s),
    "smooth-hinge": lambda y, s, gamma: _smooth_hinge(1 - y * s, gamma),
    "squared-hinge": lambda y, s, scale: scale * _positive_part(1 - y * s) ** 2,
    "modified-huber": lambda y, s, scale: (
        scale * (_positive_part(1 - y * s) ** 2 if y * s >= -1 else -4 * y * s)
    ),
    "logistic": lambda y, s, unit: _logistic(y * s),
    "squared": lambda y, s, scale: scale * (s - y) ** 2,
    "huber": lambda y, s, threshold: _huber(abs(s - y), threshold),
    "absolute": lambda y, s, unit: abs(s - y),
    "quantile": lambda y, s, q: max(q * (y - s), Fraction(1.0 - float(q)) * (s - y)),
    "epsilon-insensitive": lambda y, s, epsilon: _positive_part(abs(s - y) - epsilon),
    "squared-epsilon-insensitive": lambda y, s, epsilon: _positive_part(abs(s - y) - epsilon) ** 2,
}


def _inside(bound: Fraction | None, a: Fraction, value: Fraction) -> Fraction | None:
    return value if a >= 0 and (bound is None or a <= bound) else INFINITE


CONJUGATES: dict[str, Conjugate] = {
    "hinge": lambda y, b, margin: _inside(Fraction(1), y * b, -margin * y * b),
    "smooth-hinge": lambda y, b, gamma: _inside(Fraction(1), y * b, gamma * b**2 / 2 - y * b),
    "squared-hinge": lambda y, b, scale: _inside(None, y * b, b**2 / (4 * scale) - y * b),
    "modified-huber": lambda y, b, scale: _inside(4 * scale, y * b, b**2 / (4 * scale) - y * b),
    "logistic": lambda y, b, unit: _entropy(y * b) if 0 <= y * b <= 1 else INFINITE,
    "squared": lambda y, b, scale: b**2 / (4 * scale) - y * b,
    "huber": lambda y, b, threshold: _inside(2 * threshold, abs(b), b**2 / 4 - y * b),
    "absolute": lambda y, b, unit: _inside(Fraction(1), abs(b), -y * b),
    "quantile": lambda y, b, q: -y * b if Fraction(float(q) - 1.0) <= b <= q else INFINITE,
    "epsilon-insensitive": lambda y, b, epsilon: _inside(Fraction(1), abs(b), epsilon * abs(b) - y * b),
    "squared-epsilon-insensitive": lambda y, b, epsilon: b**2 / 4 + epsilon * abs(b) - y * b,
}


def value(loss: Any, y: float, score: Fraction) -> Fraction:
    """phi(score, y)."""
    return VALUES[loss.name](Fraction(y), score, *map(Fraction, loss))


def conjugate(loss: Any, y: float, beta: float | Fraction) -> Fraction | None:
    """phi*(-beta), or INFINITE."""
    return CONJUGATES[loss.name](Fraction(y), Fraction(beta), *map(Fraction, loss))


def fractions(numbers: Any) -> list[Fraction]:
    """The floats as they are."""
    return [Fraction(float(number)) for number in numbers]


def entries(X: Any) -> list[list[tuple[int, Fraction]]]:
    """The rows of X as lists of (column, value)."""
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    return [[(j, Fraction(float(v))) for j, v in enumerate(row) if v != 0] for row in dense]


def _strength(bias: Any, lam: Fraction) -> Fraction | None:
    """The strength of a bias, None where b is fixed at 0, 0 where it is free."""
    if bias.kind == "none":
        return None
    if bias.kind == "exact":
        return Fraction(0)
    return lam / Fraction(bias.rho) ** 2 if bias.kind == "augmented" else Fraction(bias.mu)


def primal(X: Any, problem: Any, w: Any, b: float, lam: Fraction | None = None) -> Fraction:
    """P(w, b) of the problem, in memory, whose rows are those of X; with another lam, if one is given."""
    lam, weight = Fraction(problem.lam) if lam is None else lam, fractions(problem.source.weight)
    coefficients, intercept = fractions(w), Fraction(float(b))
    loss = sum(
        (
            c * value(problem.loss, y, intercept + sum((coefficients[j] * v for j, v in row), Fraction(0)))
            for row, y, c in zip(entries(X), problem.source.y, weight, strict=True)
            if c
        ),
        Fraction(0),
    )
    strength = _strength(problem.bias, lam)
    penalty = strength * (intercept - Fraction(problem.bias.centre)) ** 2 / 2 if strength is not None else 0
    return lam * sum(v * v for v in coefficients) / 2 + penalty + loss / sum(weight)


def dual(X: Any, problem: Any, beta: Any, lam: Fraction | None = None) -> Fraction | None:
    """D(beta), or None where it is minus infinity."""
    lam, weight = Fraction(problem.lam) if lam is None else lam, fractions(problem.source.weight)
    total, moment, balance = Fraction(0), [Fraction(0)] * X.shape[1], Fraction(0)
    for row, y, c, a in zip(entries(X), problem.source.y, weight, beta, strict=True):
        if not c:
            continue
        own = conjugate(problem.loss, y, a)
        if own is INFINITE:
            return None
        share = c * Fraction(float(a))
        total += c * own
        balance += share
        for j, v in row:
            moment[j] += share * v
    n = sum(weight)
    z, centre, strength = balance / n, Fraction(problem.bias.centre), _strength(problem.bias, lam)
    if strength == 0:
        return None if z else -total / n - sum(m * m for m in moment) / (2 * lam * n * n)
    term = -centre * z - z * z / (2 * strength) if strength is not None else 0
    return -total / n - sum(m * m for m in moment) / (2 * lam * n * n) + term
