"""Evaluations of several problems in one pass are those of each by itself, up to bounded rounding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dualgap.core.bias import make_bias
from dualgap.core.losses import make_loss
from dualgap.core.problem import Point, Problem
from dualgap.core.several import evaluate_together
from dualgap.data.sources import view

N, D, K = 300, 7, 4


def problems_of(loss: str, bias: str, sparse: bool) -> tuple[list[Problem], Any]:
    rng = np.random.default_rng(1)
    X: Any = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.6)
    codes = rng.integers(0, K, N)
    rows = view(
        sp.csr_array(X) if sparse else X.astype(np.float32), codes.astype(float), rng.random(N).round(1)
    )
    kind = make_bias(bias, 0.8)
    return [
        Problem(rows.with_targets(np.where(codes == k, 1.0, -1.0)), make_loss(loss), 0.01, kind)
        for k in range(K)
    ], codes


def points_of(problems: list[Problem], seed: int = 2) -> list[Point]:
    rng = np.random.default_rng(seed)
    return [
        Point(rng.normal(size=D), 0.0 if one.bias.kind == "none" else 0.3, rng.random(N) * one.source.y)
        for one in problems
    ]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("bias", ["none", "augmented", "exact"])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_each_value_is_that_of_the_problem_within_both_bounds(loss: str, bias: str, sparse: bool) -> None:
    problems, codes = problems_of(loss, bias, sparse)
    points = points_of(problems)
    together = evaluate_together(problems, points, codes)
    for problem, point, found in zip(problems, points, together, strict=True):
        alone = problem.evaluate(point)
        closer = problem.evaluate(point, compensated=True)
        for other in (alone, closer):
            assert abs(found.primal - other.primal) <= found.primal_error + other.primal_error
            assert abs(found.dual - other.dual) <= found.dual_error + other.dual_error
        assert 0.0 < found.primal_error < 3.0 * alone.primal_error < 1e-9
        assert 0.0 < found.dual_error < 3.0 * alone.dual_error < 1e-9
        assert found.scores == pytest.approx(alone.scores, abs=1e-12)
        assert found.w_of_dual == pytest.approx(alone.w_of_dual, abs=1e-12)
        assert found.b == pytest.approx(alone.b, abs=1e-12)


def test_rows_of_no_class_are_negative_everywhere() -> None:
    problems, codes = problems_of("hinge", "none", False)
    points = points_of(problems)
    some = evaluate_together(problems[2:], points[2:], codes - 2)
    every = evaluate_together(problems, points, codes)
    assert [one.primal for one in some] == pytest.approx([one.primal for one in every[2:]], abs=1e-12)


def test_duals_that_are_not_feasible_have_no_value() -> None:
    problems, codes = problems_of("hinge", "none", False)
    points = points_of(problems)
    points[1].beta[3] *= -1.0  # type: ignore[index]
    found = evaluate_together(problems, points, codes)
    assert found[1].dual == -np.inf
    assert np.isfinite(found[0].dual)


def test_problems_have_the_same_values_where_they_are_the_same() -> None:
    (one, two, *_), _ = problems_of("hinge", "none", False)
    assert one.has_values_of(replace(one))
    assert not one.has_values_of(two)
    assert not one.has_values_of(replace(one, lam=0.02))
    assert not one.has_values_of(replace(one, loss=make_loss("logistic")))
    assert not one.has_values_of(replace(one, source=one.source.with_weight(np.ones(N))))
    assert not one.has_values_of(problems_of("hinge", "none", False)[0][0])  # a copy of the rows
