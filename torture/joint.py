"""Proves certificates of joint problems of K classes anew, in exact rational arithmetic. Like the checker it
shares no code with the library.

    P(W, b) = s (1/2 |W|^2 + r(b)) + t sum_i c_i phi(W^T x_i + b, y_i)
    D(beta) = -t sum_i c_i phi*(-beta_i) - s (1/2 |W(beta)|^2 + r*(z)),   W(beta) = t/s sum_i c_i x_i beta_i^T

A dual row stands for e_y - p with p in the simplex. Its numbers beta_k, k != y, say what it is: beta_y is
minus their sum. Where that is above 1 by rounding, the row is divided by it; where a free bias needs a mean
of 0, all p are mixed with one point, so that it is 0 exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction
from math import isfinite

from .checker import Claim, Exact, Numbers, infinite_faults, total, value_faults
from .losses import DIGITS, MARGIN, Interval, decimal

Row = list[Fraction]
ROUNDING = Fraction(1, 10**9)  # more than rounding can make of a mass of 1


@dataclass(frozen=True)
class JointClaim(Claim):
    """A claim about a joint problem: ``w`` has d rows of K numbers, ``b`` K, ``beta`` n rows of K; y are the
    numbers of classes.
    """

    classes: int = 2


def faults(claim: JointClaim) -> list[str]:
    """What is wrong with a claim, in sentences; an empty list is a proof that it is true."""
    point = [*(x for row in claim.w for x in row), *claim.b, *(x for row in claim.beta or () for x in row)]
    if not all(map(isfinite, point)):
        return ["the point has a number that is not finite"]
    if not all(map(isfinite, (claim.primal, claim.dual, claim.rounding))):
        return infinite_faults(claim)
    found = [] if claim.rounding >= 0.0 else [f"the rounding bound {claim.rounding!r} is negative"]
    if claim.bias == "none" and any(claim.b):
        found.append(f"there is no bias, and b is {claim.b!r}")
    for i, row in enumerate(claim.beta or ()):
        if claim.weight[i] > 0.0 and _dual_row(row, int(claim.y[i])) is None:
            return [*found, f"dual row {i} is {row!r}: its conjugate is infinite"]
    return [*found, *value_faults(claim, evaluate(claim))]


def evaluate(claim: JointClaim) -> Exact:
    """P(W, b), D(beta) and P(0), from the rows."""
    data = Numbers.of(claim)
    nothing = [Fraction(0)] * claim.classes
    at_zero = [data.t * c * loss(claim.loss, 0, nothing) for c in data.weight if c]
    return Exact(_primal(claim, data), _dual(claim, data), total(at_zero))


def _primal(claim: JointClaim, data: Numbers) -> Interval:
    w = [[Fraction(x) for x in row] for row in claim.w]
    b = [Fraction(x) for x in claim.b]
    norm = sum((x * x for row in w for x in row), Fraction(0))
    if claim.bias == "augmented":
        norm += sum(x * x for x in b) / Fraction(claim.rho) ** 2
    losses = []
    for row, y, c in zip(data.rows, data.y, data.weight, strict=True):
        if c:
            scores = [sum((w[j][k] * x for j, x in row), b[k]) for k in range(claim.classes)]
            losses.append(data.t * c * loss(claim.loss, int(y), scores))
    return total(losses) + data.s * norm / 2


def _dual(claim: JointClaim, data: Numbers) -> Interval:
    if claim.beta is None:
        return Interval.at(Fraction(0))
    labels = [int(y) for y in data.y]
    found = [_dual_row(row, y) for row, y in zip(claim.beta, labels, strict=True)]
    duals = [[Fraction(0)] * claim.classes if row is None else row for row in found]  # of weight 0
    if claim.bias == "exact":
        duals = _balanced(duals, labels, data.weight)
    moment = [[Fraction(0)] * claim.classes for _ in claim.w]
    balance = [Fraction(0)] * claim.classes
    conjugates = []
    for row, y, c, dual in zip(data.rows, labels, data.weight, duals, strict=True):
        if not c:
            continue
        conjugates.append(data.t * c * gain(claim.loss, y, dual))
        for k, beta in enumerate(dual):
            balance[k] += c * beta
            for j, x in row:
                moment[j][k] += c * beta * x
    norm = sum((x * x for line in moment for x in line), Fraction(0))
    if claim.bias == "augmented":
        norm += Fraction(claim.rho) ** 2 * sum(x * x for x in balance)
    return total(conjugates) + -(data.t * data.t / data.s * norm / 2)


def _dual_row(given: Sequence[float], y: int) -> Row | None:
    """The feasible row that a stored one stands for; None where there is none."""
    others = [Fraction(0) if k == y else -Fraction(x) for k, x in enumerate(given)]
    mass = sum(others, Fraction(0))
    if min(others) < 0 or mass > 1 + ROUNDING:
        return None
    if mass > 1:
        others, mass = [x / mass for x in others], Fraction(1)
    return [mass if k == y else -x for k, x in enumerate(others)]


def _balanced(duals: list[Row], labels: list[int], weight: list[Fraction]) -> list[Row]:
    """Dual rows whose weighted sum is 0: with beta = e_y - p, all p are mixed with one q of the simplex."""
    classes, N = len(duals[0]), sum(weight, Fraction(0))
    z, shares = [Fraction(0)] * classes, [Fraction(0)] * classes
    for c, y, row in zip(weight, labels, duals, strict=True):
        shares[y] += c / N
        z = [off + c * beta / N for off, beta in zip(z, row, strict=True)]
    pairs = list(zip(shares, z, strict=True))
    t = max(1 - share / (share - off) if off < 0 else Fraction(0) for share, off in pairs)
    if t == 0:
        return duals
    q = [share + (1 - t) / t * off for share, off in pairs]
    return [
        [(1 - t) * beta + t * ((k == y) - q[k]) for k, beta in enumerate(row)]
        for row, y in zip(duals, labels, strict=True)
    ]


def loss(kind: str, y: int, scores: Row) -> Interval:
    """phi(s, y)."""
    if kind == "crammer-singer":
        return Interval.at(max((k != y) + s - scores[y] for k, s in enumerate(scores)))
    if kind != "multinomial":
        raise ValueError(f"the checker does not know the joint loss {kind!r}")
    top = max(scores)
    with localcontext() as context:
        context.prec = DIGITS
        raised = [Fraction((-decimal(min(top - s, Fraction(1000)))).exp()) for s in scores]
        rest = Fraction(decimal(sum(raised, Fraction(0))).ln())  # exp(-1000) for what is less: below 1e-434
    return Interval(top - scores[y] + rest - MARGIN, top - scores[y] + rest + MARGIN)


def gain(kind: str, y: int, beta: Row) -> Interval:
    """-phi*(-beta) of a feasible row: the entropy of p, or 1 - p_y."""
    p = [(k == y) - x for k, x in enumerate(beta)]
    if kind == "crammer-singer":
        return Interval.at(1 - p[y])
    with localcontext() as context:
        context.prec = DIGITS
        found = -sum((x * Fraction(decimal(x).ln()) for x in p if x not in (0, 1)), Fraction(0))
    return Interval(found - MARGIN, found + MARGIN)
