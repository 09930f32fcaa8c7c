"""The losses of the checker and their conjugates, written anew from their definitions, in exact numbers.

``conjugate`` is phi*(-beta) = sup_s (-beta s - phi(s, y)); None where it is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Protocol

DIGITS = 80
MARGIN = Fraction(1, 10**70)  # far more than a few errors of 80 digits
ONE = Fraction(1)


@dataclass(frozen=True)
class Interval:
    """All numbers between two."""

    low: Fraction
    high: Fraction

    @classmethod
    def at(cls, number: Fraction) -> Interval:
        """A number that is known."""
        return cls(number, number)

    def __add__(self, number: Fraction) -> Interval:
        return Interval(self.low + number, self.high + number)

    def __rmul__(self, factor: Fraction) -> Interval:
        assert factor >= 0
        return Interval(factor * self.low, factor * self.high)

    def distance(self, number: Fraction) -> Fraction:
        """How far a number lies outside."""
        return max(self.low - number, number - self.high, Fraction(0))


class Described(Protocol):
    """What tells a loss."""

    @property
    def loss(self) -> str: ...
    @property
    def parameters(self) -> dict[str, float]: ...


def value(claim: Described, y: Fraction, score: Fraction) -> Interval:
    """phi(score, y)."""
    kind, p = claim.loss, {name: Fraction(number) for name, number in claim.parameters.items()}
    if kind == "logistic":
        return _softplus(-y * score)
    short, off = 1 - y * score, abs(score - y)
    if kind == "hinge":
        found = max(Fraction(0), p["margin"] - y * score)
    elif kind == "smooth-hinge":
        gamma = p["gamma"]
        found = Fraction(0) if short <= 0 else short**2 / (2 * gamma) if short <= gamma else short - gamma / 2
    elif kind == "squared-hinge":
        found = p["scale"] * max(Fraction(0), short) ** 2
    elif kind == "modified-huber":
        found = p["scale"] * (max(Fraction(0), short) ** 2 if y * score >= -1 else -4 * y * score)
    elif kind == "squared":
        found = p["scale"] * off**2
    elif kind == "huber":
        bend = p["threshold"]
        found = off**2 if off <= bend else 2 * bend * off - bend**2
    elif kind == "absolute":
        found = off
    elif kind == "quantile":
        below, above = _slopes(p["quantile"])
        found = max(below * (y - score), above * (score - y))
    elif kind == "epsilon-insensitive":
        found = max(Fraction(0), off - p["epsilon"])
    elif kind == "squared-epsilon-insensitive":
        found = max(Fraction(0), off - p["epsilon"]) ** 2
    else:
        raise ValueError(f"the checker does not know the loss {kind!r}")
    return Interval.at(found)


def conjugate(claim: Described, y: Fraction, beta: Fraction) -> Interval | None:
    """phi*(-beta), or None for infinity."""
    kind, p = claim.loss, {name: Fraction(number) for name, number in claim.parameters.items()}
    a = y * beta  # for classification, where y = -1 or +1
    if kind == "logistic":
        return _minus_entropy(a) if 0 <= a <= 1 else None
    bound: Fraction | None = None  # of a or |beta|
    if kind == "hinge":
        found, bound = -p["margin"] * a, ONE
    elif kind == "smooth-hinge":
        found, bound = p["gamma"] * a**2 / 2 - a, ONE
    elif kind == "squared-hinge":
        found = a**2 / (4 * p["scale"]) - a
    elif kind == "modified-huber":
        found, bound = a**2 / (4 * p["scale"]) - a, 4 * p["scale"]
    elif kind == "squared":
        found = beta**2 / (4 * p["scale"]) - y * beta
    elif kind == "huber":
        found, bound = beta**2 / 4 - y * beta, 2 * p["threshold"]
    elif kind == "absolute":
        found, bound = -y * beta, ONE
    elif kind == "quantile":
        below, above = _slopes(p["quantile"])
        return Interval.at(-y * beta) if -above <= beta <= below else None
    elif kind == "epsilon-insensitive":
        found, bound = p["epsilon"] * abs(beta) - y * beta, ONE
    elif kind == "squared-epsilon-insensitive":
        found = beta**2 / 4 + p["epsilon"] * abs(beta) - y * beta
    else:
        raise ValueError(f"the checker does not know the loss {kind!r}")
    one_sided = kind in ("hinge", "smooth-hinge", "squared-hinge", "modified-huber")
    if one_sided and a < 0:
        return None
    if bound is not None and abs(beta) > bound:
        return None
    return Interval.at(found)


def _slopes(quantile: Fraction) -> tuple[Fraction, Fraction]:
    """The slopes of the quantile loss below and above the target: the second is a float64, by definition."""
    return quantile, Fraction(1.0 - float(quantile))


def _softplus(m: Fraction) -> Interval:
    """ln(1 + exp(m)).

    Decimal's exp and ln are rounded correctly, so each of the few operations errs by less than 1e-79 of its
    result; the result of the logarithm is below 1.
    """
    part = max(m, Fraction(0))
    size = abs(m)
    if size > 1000:  # exp(-1000) < 1e-434
        return Interval(part, part + Fraction(1, 10**434))
    with localcontext() as context:
        context.prec = DIGITS
        small = (-decimal(size)).exp()
        if size > 100:  # x - x^2 / 2 <= ln(1 + x) <= x, for logarithms near 1 lose digits
            x = Fraction(small)
            off = x * Fraction(1, 10**70)
            return Interval(part + x - x * x / 2 - off, part + x + off)
        rest = Fraction((1 + small).ln())
    return Interval(part + rest - MARGIN, part + rest + MARGIN)


def _minus_entropy(a: Fraction) -> Interval:
    """a ln a + (1 - a) ln(1 - a), 0 at both ends. Arguments and logarithms are off by less than 1e-77."""
    if a in (0, 1):
        return Interval.at(Fraction(0))
    with localcontext() as context:
        context.prec = DIGITS
        rest = 1 - a
        found = a * Fraction(decimal(a).ln()) + rest * Fraction(decimal(rest).ln())
    return Interval(found - MARGIN, found + MARGIN)


def decimal(number: Fraction) -> Decimal:
    """A number to the digits of the context."""
    return Decimal(number.numerator) / Decimal(number.denominator)
