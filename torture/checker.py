"""Proves certificates anew in exact rational arithmetic. It shares no code with the library: it imports
nothing of it, and is given numbers only.

Every float is a rational number, so scores, w(beta), P and D are computed without any rounding, from

    P(w, b) = s (1/2 |w|^2 + r(b)) + t sum_i c_i phi(<w, x_i> + b, y_i)
    D(beta) = -t sum_i c_i phi*(-beta_i) - s (1/2 |w(beta)|^2 + r*(z)),
    w(beta) = t/s sum_i c_i beta_i x_i,    z = t/s sum_i c_i beta_i

with s = 1, t = C (the C-form), or s = lam, t = 1 / sum c (the mean form). A regularised bias has
r(b) = b^2 / (2 rho^2), r*(z) = rho^2 z^2 / 2. A bias that is not regularised needs z = 0, which floats
satisfy almost: the checker makes a dual point for which it holds exactly, and takes its value for the bound.

The logistic loss is not rational. It is enclosed between two rational numbers (``losses.py``), some 70
digits apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isfinite
from typing import Any, NamedTuple

from .losses import Interval, conjugate, value

ULP = Fraction(1, 2**52)
SLACK = 8 * ULP  # what is computed in a few float operations from claimed numbers may differ by so much
TRIVIAL_SHARE = Fraction(1e-6)  # where the optimum is 0, the gap is measured against this part of P(0)


@dataclass(frozen=True)
class Claim:
    """A problem, a point and what is claimed of it."""

    rows: Sequence[Sequence[tuple[int, float]]]  # (column, value) of each stored entry
    y: Sequence[float]  # -1 and +1 for classification
    weight: Sequence[float]
    loss: str
    parameters: dict[str, float]
    form: str  # "J": C is given, "mean": lam is
    strength: float  # C or lam
    bias: str  # "none", "augmented", "exact"
    rho: float
    w: Sequence[Any]  # numbers; in a joint problem rows of them (see joint.py)
    b: Any
    beta: Sequence[Any] | None  # None: the claimed bound is that of beta = 0
    primal: float
    dual: float
    gap: float
    relative_gap: float
    rounding: float
    history: Sequence[tuple[float, float, float]] = field(default=())  # primal, dual, rounding, on the way


@dataclass(frozen=True)
class Exact:
    """What the checker finds; P and D as enclosures."""

    primal: Interval
    dual: Interval
    at_zero: Interval
    zero: bool = False  # the optimum is 0


def faults(claim: Claim) -> list[str]:
    """What is wrong with a claim, in sentences; an empty list is a proof that it is true."""
    if not all(isfinite(number) for number in (*claim.w, claim.b, *(claim.beta or ()))):
        return ["the point has a number that is not finite"]
    if not all(isfinite(number) for number in (claim.primal, claim.dual, claim.rounding)):
        return infinite_faults(claim)
    found = [] if claim.rounding >= 0.0 else [f"the rounding bound {claim.rounding!r} is negative"]
    if claim.bias == "none" and claim.b != 0.0:
        found.append(f"there is no bias, and b is {claim.b!r}")
    wrong = _infeasible(claim)
    if wrong:
        return [*found, wrong]
    exact = evaluate(claim)
    return [*found, *value_faults(claim, exact)]


def infinite_faults(claim: Claim) -> list[str]:
    """A run that has found no finite value claims nothing, and says so: its gap is infinite."""
    if claim.gap != inf or claim.relative_gap != inf:
        return [f"a value is not finite, and the gap claimed is {claim.gap!r}"]
    return []


def _infeasible(claim: Claim) -> str:
    for i, (y, beta) in enumerate(zip(claim.y, claim.beta or (), strict=False)):
        if claim.weight[i] > 0.0 and conjugate(claim, Fraction(y), Fraction(beta)) is None:
            return f"dual {i} is {beta!r}: the conjugate of the {claim.loss} loss at y = {y!r} is infinite"
    return ""


class Numbers(NamedTuple):
    """The data of a claim as exact numbers, and the factors s and t of its form."""

    rows: list[list[tuple[int, Fraction]]]
    y: list[Fraction]
    weight: list[Fraction]
    s: Fraction
    t: Fraction

    @classmethod
    def of(cls, claim: Claim) -> Numbers:
        weight = [Fraction(c) for c in claim.weight]
        given = Fraction(claim.strength)
        s, t = (Fraction(1), given) if claim.form == "J" else (given, 1 / sum(weight, Fraction(0)))
        rows = [[(j, Fraction(x)) for j, x in row] for row in claim.rows]
        return cls(rows, [Fraction(label) for label in claim.y], weight, s, t)


def evaluate(claim: Claim) -> Exact:
    """P(w, b), D(beta) and P(0), from the rows."""
    data = Numbers.of(claim)
    at_zero = (
        data.t * c * value(claim, y, Fraction(0)) for c, y in zip(data.weight, data.y, strict=True) if c
    )
    found = total(at_zero)
    return Exact(_primal(claim, data), _dual(claim, data), found, _optimum_is_zero(claim, found))


def _primal(claim: Claim, data: Numbers) -> Interval:
    w, b = [Fraction(number) for number in claim.w], Fraction(claim.b)
    norm = sum((number * number for number in w), Fraction(0))
    if claim.bias == "augmented":
        norm += (b / Fraction(claim.rho)) ** 2
    losses = []
    for row, y, c in zip(data.rows, data.y, data.weight, strict=True):
        if c:
            score = sum((w[j] * x for j, x in row), b)
            losses.append(data.t * c * value(claim, y, score))
    return total(losses) + data.s * norm / 2


def _dual(claim: Claim, data: Numbers) -> Interval:
    if claim.beta is None:
        return Interval(Fraction(0), Fraction(0))  # every loss has the infimum 0
    share = [c * Fraction(beta) for c, beta in zip(data.weight, claim.beta, strict=True)]
    if claim.bias == "exact":
        share = _balanced(share)
    moment = [Fraction(0)] * len(claim.w)
    conjugates = []
    for row, y, c, part in zip(data.rows, data.y, data.weight, share, strict=True):
        if part:
            star = conjugate(claim, y, part / c)
            assert star is not None  # as feasible as before: only smaller
            conjugates.append(data.t * c * star)
            for j, x in row:
                moment[j] += part * x
    norm = sum((number * number for number in moment), Fraction(0))
    if claim.bias == "augmented":
        norm += (Fraction(claim.rho) * sum(share, Fraction(0))) ** 2
    summed, ridge = total(conjugates), data.t * data.t / data.s * norm / 2
    return Interval(-summed.high - ridge, -summed.low - ridge)


def _balanced(share: list[Fraction]) -> list[Fraction]:
    """The same with sum 0: the larger side, of positive or of negative numbers, is scaled down."""
    up = sum((part for part in share if part > 0), Fraction(0))
    down = -sum((part for part in share if part < 0), Fraction(0))
    if up == down:
        return share
    sign, factor = (1, down / up) if up > down else (-1, up / down)
    return [part * factor if sign * part > 0 else part for part in share]


def total(terms: Iterable[Interval]) -> Interval:
    """The sum of numbers that are enclosed."""
    low = high = Fraction(0)
    for term in terms:
        low, high = low + term.low, high + term.high
    return Interval(low, high)


def value_faults(claim: Claim, exact: Exact) -> list[str]:
    """What is wrong with the values claimed, where those of the point are known."""
    return [*_errors(claim, exact), *_gap_faults(claim, exact), *_history_faults(claim, exact)]


def _errors(claim: Claim, exact: Exact) -> list[str]:
    """The rounding bound covers the errors of both values together."""
    primal, dual, rounding = Fraction(claim.primal), Fraction(claim.dual), Fraction(claim.rounding)
    primal_off, dual_off = exact.primal.distance(primal), exact.dual.distance(dual)
    found = []
    if primal_off > rounding:
        found.append(f"the primal value is off by {float(primal_off):.3g}, more than {claim.rounding:.3g}")
    if dual_off > rounding:
        found.append(f"the dual value is off by {float(dual_off):.3g}, more than {claim.rounding:.3g}")
    if not found and primal_off + dual_off > rounding:
        found.append(f"together the values are off by more than {claim.rounding:.3g}")
    return found


def _gap_faults(claim: Claim, exact: Exact) -> list[str]:
    """The gap is what its parts make it, and bounds the true one; so does the relative gap."""
    found = []
    primal, dual, gap, rounding = (
        Fraction(number) for number in (claim.primal, claim.dual, claim.gap, claim.rounding)
    )
    if exact.dual.low > exact.primal.high:
        found.append("weak duality is broken: the checker itself is wrong")
    if gap < exact.primal.low - exact.dual.high - SLACK * abs(primal):
        found.append(f"the gap {claim.gap!r} is less than that of the exact values")
    if abs(gap - (primal - dual + rounding)) > SLACK * max(abs(primal), abs(dual), rounding):
        found.append(f"the gap {claim.gap!r} is not primal - dual + rounding")
    zero = dual <= rounding and exact.zero
    if not isfinite(claim.relative_gap):
        if claim.dual > claim.rounding:
            found.append("the relative gap is infinite for D > 0")
        if zero and exact.at_zero.high > 0 and len({*_present(claim)}) == 1:
            found.append("the relative gap is infinite, and the optimum is 0, as equal targets tell")
        return found
    relative = Fraction(claim.relative_gap)
    allowed = []  # between which values it may lie: how the rounding is shared between P and D is not told
    if dual > 0:
        allowed.append((gap / dual, gap / (dual - rounding) if dual > rounding else None))
    if zero:
        base = TRIVIAL_SHARE * exact.at_zero.high
        solved = gap == 0 or (primal <= rounding and gap <= 2 * rounding)
        allowed += [(Fraction(0), Fraction(0))] if solved else [(gap / base, gap / base)] if base else []
    if not any(
        low * (1 - SLACK) <= relative and (high is None or relative <= high * (1 + SLACK))
        for low, high in allowed
    ):
        found.append(f"the relative gap {claim.relative_gap!r} is not the gap over the dual value")
    return found


def _present(claim: Claim) -> list[Fraction]:
    return [Fraction(y) for y, c in zip(claim.y, claim.weight, strict=True) if c > 0.0]


def _optimum_is_zero(claim: Claim, at_zero: Interval) -> bool:
    """Whether w = 0 leaves no loss with some b: then, and with lam > 0 only then, the optimum is 0."""
    if at_zero.high == 0:
        return True
    if claim.bias != "exact":
        return False
    targets = _present(claim)
    low, high = min(targets), max(targets)
    return low == high or all(value(claim, y, (low + high) / 2).high == 0 for y in (low, high))


def _history_faults(claim: Claim, exact: Exact) -> list[str]:
    """Every value on the way is on its side of the exact bounds of the end."""
    found = []
    for k, (primal, dual, rounding) in enumerate(claim.history):
        if isfinite(primal) and Fraction(primal) + Fraction(rounding) < exact.dual.low:
            found.append(f"record {k}: the primal value {primal!r} is below the exact lower bound")
        if isfinite(dual) and Fraction(dual) - Fraction(rounding) > exact.primal.high:
            found.append(f"record {k}: the dual value {dual!r} is above the exact objective")
    return found
