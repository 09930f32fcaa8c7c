"""Compensated evaluations: their bounds against exact arithmetic, and runs that need them."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.core.bias import Bias, Centred, ExactBias, NoBias
from dualgap.core.compensated import two_product
from dualgap.core.losses import Hinge, SquaredHinge
from dualgap.core.problem import Evaluation, Point, Problem
from dualgap.data.chunks import FromMemory, OnDisk
from dualgap.data.sources import View, view
from support import exact

FORMS: dict[str, Any] = {
    "dense": lambda X: X,
    "csr32": lambda X: sp.csr_matrix(X.astype(np.float32)),
}


def test_a_product_and_its_error_are_exact() -> None:
    rng = np.random.default_rng(0)
    for a, b in rng.normal(size=(200, 2)) * 10.0 ** rng.integers(-40, 40, size=(200, 2)):
        product, error = two_product(float(a), float(b))
        assert Fraction(product) + Fraction(error) == Fraction(float(a)) * Fraction(float(b))


def cancelling_case(loss: Any, bias: Bias, form: Any) -> tuple[Any, Problem, Point]:
    """Rows whose large entries cancel in every score, and nearly in ``sum c beta x``."""
    rng, n, d = np.random.default_rng(1), 100, 60
    half = rng.normal(size=(n // 2, d // 2)) * 10.0 ** rng.integers(0, 5, size=d // 2)
    half = half.astype(np.float32).astype(np.float64)
    X = np.hstack([half, -half])
    X[:, 0] += rng.normal(size=n // 2).astype(np.float32)
    X = np.vstack([X, X + rng.normal(size=X.shape).astype(np.float32) * 1e-3])
    y = np.repeat([1.0, -1.0], n // 2) if loss.task == "classification" else rng.normal(size=n)
    w = np.tile(rng.normal(size=d // 2), 2)
    weight = rng.choice([0.0, 0.5, 1.0, 3.7], size=n)
    weight[:2] = 1.0
    beta = np.where(y > 0, 1.0, -1.0) * np.tile(rng.random(n // 2), 2)
    rows = form(X)
    b = 0.0 if bias.kind == "none" else 0.4
    return rows, Problem(view(rows, y, weight), loss, 0.03, bias), Point(w, b, beta)


def check(rows: Any, problem: Problem, point: Point, found: Evaluation) -> None:
    """The true values lie within the stated errors."""
    primal, dual = exact.primal(rows, problem, point.w, point.b), exact.dual(rows, problem, point.beta)
    assert dual is not None
    assert abs(Fraction(found.primal) - primal) <= Fraction(found.primal_error)
    assert abs(Fraction(found.dual) - dual) <= Fraction(found.dual_error)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("bias", [NoBias(), Centred(-1.3, 0.2)], ids=lambda bias: bias.kind)
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=lambda loss: loss.name)
def test_errors_are_bounded_and_far_smaller(loss: Any, bias: Bias, form: Any) -> None:
    rows, problem, point = cancelling_case(loss, bias, form)
    plain, found = problem.evaluate(point), problem.evaluate(point, compensated=True)
    check(rows, problem, point, plain)
    check(rows, problem, point, found)
    assert found.primal_error < 0.05 * plain.primal_error
    assert found.dual_error < 0.5 * plain.dual_error
    assert found.scores == pytest.approx(plain.scores, abs=1e-9)
    assert found.w_of_dual == pytest.approx(plain.w_of_dual, rel=1e-9, abs=1e-9)
    assert found.b == pytest.approx(plain.b)


def test_rows_in_chunks_are_evaluated_as_exactly() -> None:
    rows, problem, point = cancelling_case(Hinge(), NoBias(), FORMS["csr32"])
    source = problem.source
    assert isinstance(source, View)
    feed = OnDisk(FromMemory(source, rows=33), memory_budget=None)
    check(rows, problem, point, dataclasses.replace(problem, source=feed).evaluate(point, compensated=True))


def test_a_gap_below_the_rounding_of_plain_sums_is_proven() -> None:
    """Few rows of many large entries, separated by a short w: the optimum is small beside what scores of
    plain sums may err by.
    """
    rng, C = np.random.default_rng(0), 10.0
    X = np.floor(rng.random((30, 2000)) * 1000.0)
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    outcome = dualgap.fit(X, y, C=C, bias="exact", tol=1e-4)
    assert outcome.converged
    problem = Problem(view(X, y), Hinge(), 1.0 / (C * 30.0), ExactBias())
    point = Point(outcome.coef, outcome.intercept, outcome.dual)
    plain = problem.evaluate(point)
    assert plain.primal_error > 1e-4 * plain.dual  # no certificate of plain sums gets there
    assert outcome.model.verify(X, y).verdict == "true"
