"""SGD-QN against its steps written out with dense vectors."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.core.bias import AugmentedBias, ExactBias, NoBias
from dualgap.core.problem import Point, Problem
from dualgap.data.sources import view
from dualgap.runtime.errors import InputError
from dualgap.solvers.primal.sgd_qn import SGDQN
from dualgap.solvers.primal.svmsgd import SvmSgd, calibrated
from support.problems import small_problem

BIASES = {"none": NoBias(), "augmented": AugmentedBias(0.7), "exact": ExactBias()}


problem = partial(small_problem, n=24, d=5, lam=0.05, seed=9, density=0.6, intercept=0.3)


class Written(NamedTuple):
    w: np.ndarray
    b: float
    B: np.ndarray
    secants: int


def written(task: Problem, steps: int, eta0: float, skip: int, bias_step: float) -> Written:
    """A constant feature is one more column, whose w is b/rho; a row without a slope leaves the secant to the
    next.
    """
    X, y, lam = task.source.rows.matrix, task.source.y, task.lam  # type: ignore[attr-defined]
    share = task.source.weight * (task.epoch_size / task.total_weight)
    rows = np.flatnonzero(task.source.weight)
    rho = task.bias.rho
    X = np.column_stack([X, np.full(len(y), rho)])
    w, b, B, due, secants = np.zeros(X.shape[1]), 0.0, np.full(X.shape[1], eta0), False, 0
    for t in range(1, steps + 1):
        i = rows[(t - 1) % rows.size]
        g = task.loss.derivative(y[i], float(X[i] @ w) + b)
        change = -share[i] * g * B * X[i]
        w = w + change
        if task.bias.kind == "exact":
            b -= share[i] * g * bias_step / (lam * (t + 1.0 / (lam * eta0)))
        if due and g != 0.0:
            later = task.loss.derivative(y[i], float(X[i] @ w) + b)
            there = X[i] != 0.0
            secant = np.full(X.shape[1], lam)  # of columns that the row does not have
            secant[there] += share[i] * (later - g) * X[i][there] / change[there]
            B = 1.0 / (1.0 / B + skip * np.clip(secant, 0.1 * lam, 100.0 * lam))
            due = False
            secants += 1
        if t % skip == 0:
            w = w - skip * lam * B * w
            due = True
    return Written(w[:-1], b + rho * w[-1], B, secants)


def run(solver: SGDQN, task: Problem, steps: int) -> Any:
    return solver.step(task, solver.start(task, None), steps, None)[0]


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "squared", "logistic"])
def test_as_written(loss: str) -> None:
    for bias, skip in itertools.product(BIASES, (1, 3, 8)):
        task = problem(loss, bias=BIASES[bias])
        solver = SGDQN(eta0=0.1, skip=skip, order="given", bias_step=0.3)
        state = run(solver, task, 150)
        assert state.model.skip == skip
        expected = written(task, 150, 0.1, skip, 0.3)
        assert expected.secants > 5
        np.testing.assert_allclose(state.model.B, expected.B[:-1], rtol=1e-9)
        if bias == "augmented":
            assert state.cursor.b_rate == pytest.approx(expected.B[-1], rel=1e-9)
        point = solver.point(task, state)
        np.testing.assert_allclose(point.w, expected.w, rtol=1e-9, atol=1e-11)
        assert point.b == pytest.approx(expected.b, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_rates_never_rise_and_secants_keep_within_their_bounds(loss: str) -> None:
    task = problem(loss)
    lam, solver = task.lam, SGDQN(eta0=0.3, skip=4, seed=1)
    state = solver.start(task, None)
    before, found = state.model.B.copy(), []
    for _ in range(300):
        state, _ = solver.step(task, state, 1, None)
        assert (before >= state.model.B).all()
        assert (state.model.B > 0.0).all()
        moved = before > state.model.B
        found.extend((1.0 / state.model.B[moved] - 1.0 / before[moved]) / state.model.skip)
        before = state.model.B.copy()
    secants = np.array(found)
    assert secants.min() >= 0.1 * lam * (1.0 - 1e-9)
    assert secants.max() <= 100.0 * lam * (1.0 + 1e-9)
    assert np.unique(np.round(secants / lam, 6)).size > 1


def test_the_default_skip_spreads_the_shrinking_over_a_sixteenth_of_the_time() -> None:
    task = problem(lam=1e-5, density=0.2)
    X: Any = sp.csr_matrix(task.source.rows.matrix)  # type: ignore[attr-defined]
    sparse = Problem(view(X, task.source.y), task.loss, task.lam)
    assert SGDQN(eta0=0.1).start(sparse, None).model.skip == round(16 * X.shape[0] * X.shape[1] / X.nnz)
    assert SGDQN(eta0=0.1).start(task, None).model.skip == 16


def test_shrinking_never_turns_w_round() -> None:
    """Between two shrinkings there are so few steps that no coordinate changes its sign by shrinking."""
    for lam in (0.01, 0.5, 3.0):
        for eta0 in (0.01, 1.0 / lam):
            state = SGDQN(eta0=eta0).start(problem(lam=lam), None)
            assert state.model.skip * lam * eta0 <= 0.5 or state.model.skip == 1


@pytest.mark.parametrize("order", ["given", "permutation"])
def test_the_first_rate_is_svmsgds(order: str) -> None:
    task = problem()
    eta0 = calibrated(SvmSgd(seed=3, order=order), task)
    assert eta0 * task.lam <= 1.0
    assert (eta0 == SGDQN(seed=3, order=order).start(task, None).model.B).all()


def test_rates_of_columns_that_rows_do_not_have_fall_too() -> None:
    """By lam a step: a column that is in few rows keeps no rate of long ago."""
    task = problem(density=0.3)
    solver = SGDQN(eta0=0.1, skip=4)
    state = run(solver, task, 4000)
    slowest = 1.0 / (1.0 / 0.1 + 0.1 * task.lam * 4000)  # if each secant met its lower bound
    assert state.model.B.max() <= slowest


def test_a_warm_start_begins_there() -> None:
    task = problem(bias=AugmentedBias(1.0))
    point = Point(np.arange(5.0), 0.75, None)
    solver = SGDQN(eta0=0.1)
    begun = solver.point(task, solver.start(task, point))
    assert np.array_equal(begun.w, point.w)
    assert begun.b == 0.75


def test_float32_makes_the_same_steps_but_for_rounding() -> None:
    task = problem()
    short, long = (run(SGDQN(eta0=0.1, skip=4, precision=p), task, 200) for p in ("float32", "float64"))
    assert short.model.w.dtype == short.model.B.dtype == np.float32
    np.testing.assert_allclose(short.model.w, long.model.w, atol=1e-5)
    np.testing.assert_allclose(short.model.B, long.model.B, rtol=1e-5)
    assert SGDQN(precision="float32").point(task, short).w.dtype == np.float64


@pytest.mark.parametrize("bias", BIASES)
def test_it_gets_to_the_optimum(bias: str) -> None:
    task = problem(n=150)
    outcome = dualgap.fit(
        task.source.rows.matrix,
        task.source.y,
        lam=0.05,
        bias=bias,
        solver="sgd-qn",
        tol=0.02,
        max_epochs=1000,  # type: ignore[attr-defined]
        bias_step=1.0,
    )
    assert outcome.converged


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"eta0": -1.0}, "eta0=-1.0 must be a finite number >= 0"),
        ({"eta0": 11.0}, "eta0=11 must be at most 1/lam = 10"),
        ({"skip": -1}, "skip=-1 must be a whole number >= 0"),
        ({"order": "up"}, "order='up' must be one of given, permutation, random"),
        ({"precision": "half"}, "precision='half' must be one of float64, float32"),
        ({"bias_step": -1.0}, "bias_step=-1.0"),
        ({"polish": -3}, "polish=-3"),
    ],
)
def test_bad_options(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as error:
        dualgap.fit(np.eye(3), np.array([1, -1, 1]), lam=0.1, solver="sgd-qn", **options)
    assert "\n" not in str(error.value)
