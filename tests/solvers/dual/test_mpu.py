"""The margin perceptron with unlearning: what every update must hold, and that it gets anywhere."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.core.bias import AugmentedBias, NoBias
from dualgap.core.problem import Problem
from dualgap.runtime.errors import InputError
from dualgap.solvers.dual.mpu import FINEST, MPU
from support.problems import small_problem, whole_weights

problem = partial(
    small_problem, n=30, d=4, lam=0.02, seed=8, empty_row=True, noise=0.7, weights=whole_weights
)


def dual_value(task: Problem, counters: np.ndarray, M: int) -> Fraction:
    """D in exact arithmetic (no bias), in units of 1/N."""
    source, N = task.source, Fraction(task.total_weight)
    X = source.rows.matrix  # type: ignore[union-attr]
    share = [
        Fraction(c) * Fraction(int(k), M) * Fraction(y)
        for c, k, y in zip(source.weight, counters, source.y, strict=True)
    ]
    moment = [
        sum((s * Fraction(x) for s, x in zip(share, X[:, j], strict=True)), Fraction(0))
        for j in range(X.shape[1])
    ]
    linear = sum((abs(s) for s in share), Fraction(0))
    return linear / N - sum((v * v for v in moment), Fraction(0)) / (2 * Fraction(task.lam) * N * N)


@pytest.mark.slow
@pytest.mark.parametrize("multiplicity", [1, 3, 0])
def test_every_update_raises_the_dual_and_counters_stay_in_their_box(multiplicity: int) -> None:
    task, solver = problem(n=14, largest=3), MPU(delta=0.5, multiplicity=multiplicity, seed=1)
    state = solver.start(task, None)
    before, updates = dual_value(task, state.counters, state.M), 0
    for _ in range(150):
        state, _ = solver.step(task, state, 1, None)
        assert state.counters.dtype == np.int32
        assert state.counters.min() >= 0
        assert state.counters.max() <= state.M
        now = dual_value(task, state.counters, state.M)
        if state.counts.updates > updates:
            assert now > before
            updates = state.counts.updates
        else:
            assert now == before
        before = now


@pytest.mark.parametrize("bias", [NoBias(), AugmentedBias(1.0)])
def test_at_its_end_no_single_update_raises_the_dual(bias: Any) -> None:
    task, solver = problem(bias=bias), MPU(delta=0.3)
    state = solver.start(task, None)
    while not state.cursor.settled:
        state, _ = solver.step(task, state, 1000, None)
        assert state.counts.visits < 100_000
    point = solver.point(task, state)
    reached = task.evaluate(point).dual
    for i in np.flatnonzero(task.source.weight):
        for change in (-1, 1):
            counter = state.counters[i] + change
            if 0 <= counter <= state.M:
                beta = point.beta.copy()
                beta[i] = task.source.y[i] * counter / state.M
                assert task.evaluate(point._replace(beta=beta)).dual <= reached + 1e-13


def test_many_updates_at_once_are_single_ones_in_a_row() -> None:
    """The price of one inner product buys what presenting the row again and again would do, one update each
    time.
    """
    task = problem(n=12, lam=0.005)
    M = 64
    q = task.curvatures / M
    rng = np.random.default_rng(0)
    for _ in range(300):
        i = int(rng.integers(12))
        if task.source.weight[i] == 0.0:
            continue
        counters = rng.integers(0, M + 1, size=12)
        beta = task.source.y * counters / M
        w, _ = task.model_of(beta, 0.0)
        x, y = task.source.rows.matrix[i], task.source.y[i]  # type: ignore[union-attr]
        literal, score = int(counters[i]), float(x @ w)
        while True:
            short = 1.0 - y * score
            if short > q[i] / 2 and literal < M:
                literal, score = literal + 1, score + y * q[i]
            elif short < -q[i] / 2 and literal > 0:
                literal, score = literal - 1, score - y * q[i]
            else:
                break
        state = MPU(delta=1.0).start(task, None)
        state.counters[:] = counters
        state.w[:] = w
        state = state._replace(M=M, rows=np.array([i], dtype=np.uint32))
        after, _ = MPU(delta=1.0).step(task, state, 1, None)
        assert after.counters[i] == literal
        assert after.counts.visits == 1


def test_a_finer_quantum_keeps_the_duals() -> None:
    task, solver = problem(), MPU(delta=1.0)
    state = solver.start(task, None)
    while not state.cursor.settled:
        state, _ = solver.step(task, state, 1000, None)
    M, beta = state.M, solver.point(task, state).beta
    state, _ = solver.step(task, state, 1, None)
    assert state.M == 4 * M
    assert np.count_nonzero(solver.point(task, state).beta != beta) <= 1


@pytest.mark.parametrize("target", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("delta", [1.0, 0.01])
def test_any_delta_stop_is_reached(target: float, delta: float) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(150, 5))
    y = np.where(X @ rng.normal(size=5) + rng.normal(size=150) > 0, 1, -1)
    outcome = dualgap.fit(
        X, y, C=0.3, solver="mpu", tol=0.0, delta=delta, delta_stop=target, max_epochs=20_000
    )
    assert outcome.reason.name == "delta_stop"
    assert outcome.certificate.relative_gap <= target


def test_it_ends_by_itself_at_the_finest_quantum() -> None:
    X, y = np.array([[1.0], [-1.0], [0.3]]), np.array([1, -1, -1])
    outcome = dualgap.fit(X, y, C=0.7, solver="mpu", tol=0.0, max_epochs=10**6)
    assert outcome.reason.name == "finest quantum"
    assert outcome.certificate.relative_gap <= 1e-8
    assert 4 * outcome.run.state.M > FINEST


@pytest.mark.slow
def test_float32_trains_and_float64_certifies() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 20)).astype(np.float32)
    y = np.where(X @ rng.normal(size=20) + rng.normal(size=400) > 0, 1, -1)
    outcomes = [dualgap.fit(X, y, C=0.1, solver="mpu", precision=p, tol=1e-4) for p in ("float32", "float64")]
    assert [outcome.run.state.w.dtype for outcome in outcomes] == [np.float32, np.float64]
    for outcome in outcomes:
        assert outcome.converged
        assert outcome.coef.dtype == np.float64
    low = max(outcome.certificate.dual for outcome in outcomes)
    assert all(outcome.certificate.primal <= low * (1 + 3e-4) for outcome in outcomes)


def test_a_warm_start_is_rounded_to_the_quantum() -> None:
    task = problem()
    beta = task.source.y * np.linspace(0.0, 1.0, task.source.n)
    point = dualgap.Point(np.zeros(task.source.d), 0.0, beta)
    solver = MPU(delta=0.01)
    state = solver.start(task, point)
    assert np.abs(solver.point(task, state).beta - beta).max() <= 0.5 / state.M
    np.testing.assert_allclose(state.w, task.evaluate(solver.point(task, state)).w_of_dual, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"delta": 0.0}, "delta=0.0 must be a positive number"),
        ({"delta_stop": -1.0}, "delta_stop=-1.0"),
        ({"multiplicity": -1}, "multiplicity=-1"),
        ({"mini_epochs": -2}, "mini_epochs=-2"),
        ({"precision": "half"}, "precision='half' must be one of float64, float32"),
        ({"delta_stop": 0.1, "bias": "exact"}, "give the run a tol instead"),
        ({"loss": "logistic"}, "cannot train with the loss 'logistic'"),
    ],
)
def test_bad_options(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        dualgap.fit(np.eye(3), np.array([1, -1, 1]), solver="mpu", **options)


def test_the_quantum_follows_delta() -> None:
    task = problem()
    for delta in (1.0, 0.1, 1e-3):
        M = MPU(delta=delta).start(task, None).M
        longest = float(task.curvatures.max())
        assert longest / M <= delta
        assert M == 1 or longest / (M / 2) > delta
        assert math.log2(M).is_integer()
