"""Accelerated mini-batch SDCA against a literal transcription of its algorithm."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.core.bias import AugmentedBias
from dualgap.core.losses import LOSSES, SmoothHinge, make_loss
from dualgap.core.problem import Problem
from dualgap.data.sources import view
from dualgap.runtime.errors import InputError
from dualgap.runtime.jit import compiled
from dualgap.runtime.random import generator
from dualgap.solvers.dual.asdca import ASDCA, left_by_smoothing, theta_of_theory
from dualgap.solvers.dual.mini_batches import draw
from support import matrix
from support.problems import small_problem, whole_weights

problem = partial(small_problem, n=30, d=6, lam=0.05, seed=4, density=0.7, weights=whole_weights)


def literal(
    task: Problem, solver: ASDCA, steps: int
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray, np.ndarray]:
    """Algorithm 2, dense, as it is written: all w, all mixtures of the duals, and the last v and beta."""
    source, N = task.source, task.total_weight
    m, theta, gamma = solver._pace(task)
    X = source.rows.matrix  # type: ignore[union-attr]
    smooth = SmoothHinge(gamma) if gamma else task.loss  # type: ignore[arg-type]
    order, rng = np.flatnonzero(source.weight).astype(np.uint32), generator(solver.seed)
    beta, mix, w = np.zeros(source.n), np.zeros(source.n), np.zeros(source.d)
    v = np.zeros(source.d)
    all_w, all_mix = [w], [mix]
    for _ in range(steps):
        u = (1 - theta) * w + theta * v
        draw(rng, order, m)
        beta = beta.copy()
        for i in order[:m]:
            beta[i] = (1 - theta) * beta[i] - theta * smooth.derivative(source.y[i], float(X[i] @ u))
        v = X.T @ (source.weight * beta) / (task.lam * N)
        w = (1 - theta) * w + theta * v
        mix = (1 - theta) * mix + theta * beta
        all_w.append(w)
        all_mix.append(mix)
    return all_w, all_mix, v, beta


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss", ["smooth-hinge", "logistic", "squared", "squared-hinge", "huber", "modified-huber"]
)
@pytest.mark.parametrize(
    "options", [{"m": 1}, {"m": 7}, {"m": 26, "theta": "0.3"}, {"m": 3, "theta": "1"}, {}]
)
def test_it_is_the_algorithm_of_the_paper(loss: str, options: dict[str, Any]) -> None:
    task, solver = problem(loss), ASDCA(seed=6, **options)
    steps = 40 if options.get("theta") == "1" else 300  # theta = 1 diverges
    all_w, all_mix, v, beta = literal(task, solver, steps)
    state = solver.start(task, None)
    while state.steps < steps:
        state, _ = solver.step(task, state, 5 * state.iterate.pace.m, None)
    point = solver.point(task, state)
    size = 1.0 + np.abs(v).max()
    np.testing.assert_allclose(state.iterate.v, v, rtol=1e-9, atol=1e-10 * size)
    np.testing.assert_allclose(state.iterate.beta, beta, rtol=1e-9, atol=1e-10 * (1.0 + np.abs(beta).max()))
    np.testing.assert_allclose(point.w, all_w[steps], rtol=1e-9, atol=1e-10 * size)
    np.testing.assert_allclose(
        state.iterate.up_to_date[0], all_mix[steps], rtol=1e-9, atol=1e-10 * (1.0 + np.abs(beta).max())
    )


@pytest.mark.slow
def test_the_hinge_enters_through_the_smoothed_hinge() -> None:
    task, solver = problem("hinge"), ASDCA(m=5, gamma="0.5", seed=2)
    all_w, _all_mix, *_ = literal(task, solver, 100)
    state, _ = solver.step(task, solver.start(task, None), 500, None)
    assert state.steps == 100
    np.testing.assert_allclose(solver.point(task, state).w, all_w[100], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("T0", [0, 13])
def test_average_by_definition(T0: int) -> None:
    task, solver = problem("logistic"), ASDCA(m=4, iterate="average", T0=T0, seed=3)
    all_w, all_mix, *_ = literal(task, solver, 120)
    state = solver.start(task, None)
    while state.steps < 120:
        state, _ = solver.step(task, state, 3 * state.iterate.pace.m, None)
    start = T0 or state.suffix.now.began
    point = solver.point(task, state)
    np.testing.assert_allclose(point.beta, np.mean(all_mix[start:], axis=0), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(point.w, np.mean(all_w[start:], axis=0), rtol=1e-10, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_w_is_the_model_of_its_mixed_dual(loss: str) -> None:
    task, solver = problem(loss, bias=AugmentedBias(1.5)), ASDCA(m=4)
    state, last = solver.start(task, None), None
    for _ in range(30):
        state, _ = solver.step(task, state, 40, last)
        point = solver.point(task, state)
        last = task.evaluate(point)
        assert math.isfinite(last.dual)
        np.testing.assert_allclose(last.w_of_dual, point.w, rtol=1e-9, atol=1e-11)
        assert last.b == pytest.approx(point.b, rel=1e-9, abs=1e-11)
        v, v_bias = task.model_of(state.iterate.beta, 0.0)
        np.testing.assert_allclose(state.iterate.v, v, rtol=1e-9, atol=1e-11)
        assert state.iterate.cursor.v_bias == pytest.approx(v_bias, rel=1e-9, abs=1e-11)


def test_long_runs_do_not_drift() -> None:
    task, solver = problem("squared"), ASDCA(m=9, theta="0.2")
    state, last = solver.start(task, None), None
    for _ in range(40):
        state, _ = solver.step(task, state, 40 * task.epoch_size, last)
        last = task.evaluate(solver.point(task, state))
    np.testing.assert_allclose(solver.point(task, state).w, last.w_of_dual, rtol=1e-12, atol=1e-14)
    assert state.refreshed > 0


@pytest.mark.slow
def test_threads_change_nothing() -> None:
    rng = np.random.default_rng(1)
    X = sp.random(4000, 300, density=0.4, random_state=1, format="csr")
    y = np.where(X @ rng.normal(size=300) > 0, 1, -1)
    ends = [
        dualgap.fit(
            X, y, C=1e-3, loss="logistic", solver="asdca", m=4000, tol=0.0, max_epochs=40, threads=threads
        )
        for threads in (1, 2, 3)
    ]
    for other in ends[1:]:
        assert np.array_equal(other.coef, ends[0].coef)
        assert np.array_equal(other.dual, ends[0].dual)


@pytest.mark.parametrize("loss", ["hinge", "absolute", "epsilon-insensitive"])
def test_smoothing_less_and_less_reaches_the_gap(loss: str) -> None:
    task = problem(loss)
    source = task.source
    X = source.rows.matrix  # type: ignore[union-attr]
    outcome = dualgap.fit(
        X,
        source.y,
        lam=task.lam,
        loss=loss,
        sample_weight=source.weight,
        solver="asdca",
        tol=2e-2,
        max_epochs=50_000,
    )
    assert outcome.converged
    assert outcome.run.state.iterate.pace.gamma < 1.0


@pytest.mark.skipif(not compiled, reason="tens of thousands of epochs are for compiled code")
@pytest.mark.parametrize("bias", ["none", "augmented"])
def test_the_hinge_to_a_thousandth_at_C_1(bias: str) -> None:
    X, y, weight = matrix.data(matrix.Case("asdca", "hinge", "dense", "float64", bias), 60, 8)
    outcome = dualgap.fit(
        X, y, C=1.0, solver="asdca", bias=bias, sample_weight=weight, tol=1e-3, max_epochs=30_000
    )
    assert outcome.converged


def test_a_fixed_gamma_leaves_what_the_plan_says_at_most() -> None:
    task = problem("hinge")
    X = task.source.rows.matrix  # type: ignore[union-attr]
    common: dict[str, Any] = {"lam": task.lam, "sample_weight": task.source.weight}
    best = dualgap.fit(X, task.source.y, tol=1e-8, **common).certificate.primal
    rounded = dualgap.fit(X, task.source.y, solver="asdca", gamma="0.5", tol=1e-9, max_epochs=3000, **common)
    bound = left_by_smoothing(task.loss, 0.5)
    assert bound == 0.25
    assert 1e-6 < rounded.certificate.primal - best <= bound
    assert "0.25" in "\n".join(dualgap.plan(X, task.source.y, solver="asdca", gamma="0.5", **common))


def test_theta_of_the_theory() -> None:
    X = np.array([[3.0, 0.0], [0.0, 4.0]])
    task = Problem(view(X, np.array([1.0, -1.0])), make_loss("smooth-hinge:gamma=0.5"), 2.0)
    G = 0.5 * 2.0 * 2 / 16.0
    assert theta_of_theory(task, 0.0, 2) == pytest.approx(
        0.25 * min(1, math.sqrt(G / 2), G, G ** (2 / 3) / 2 ** (1 / 3))
    )


@pytest.mark.slow
def test_the_rate_of_the_theory_holds() -> None:
    """The dual distance falls at least by (1 - theta m / n) a step, on the mean over seeds."""
    task = problem("smooth-hinge", lam=0.5)
    X = task.source.rows.matrix  # type: ignore[union-attr]
    best = dualgap.fit(
        X, task.source.y, loss="smooth-hinge", lam=0.5, sample_weight=task.source.weight, tol=1e-12
    ).certificate.primal
    m = 3
    theta = theta_of_theory(task, 0.0, m)
    steps = round(6.0 * task.epoch_size / (theta * m))
    off = []
    for seed in range(10):
        solver = ASDCA(m=m, seed=seed)
        state, _ = solver.step(task, solver.start(task, None), steps * m, None)
        off.append(task.evaluate(solver.point(task, state)).primal - best)
    assert np.mean(off) <= math.exp(-6.0) * 4.0 * task.value_at_zero


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"m": 4}, "m=4 is more than the 3 rows there are"),
        ({"m": -1}, "m=-1"),
        ({"theta": 0.0}, r"theta=0.0 must lie in \(0, 1\]"),
        ({"theta": 1.5}, r"theta=1.5 must lie in \(0, 1\]"),
        ({"theta": "much"}, "theta='much' must be a number or 'theory'"),
        ({"gamma": -1}, "gamma=-1 must be a positive number"),
        ({"gamma": 0.5, "loss": "logistic"}, "'logistic' is smooth; leave gamma out"),
        ({"iterate": "random"}, "iterate='random' must be one of last, average"),
        (
            {"iterate": "average", "T0": 600, "max_visits": 500, "m": 1},
            "T0=600 is beyond the run of 500 steps",
        ),
        ({"C": math.inf, "bias": "exact"}, "cannot train with the loss 'hard-margin'"),
    ],
)
def test_bad_options(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        dualgap.fit(np.eye(3), np.array([1, -1, 1]), solver="asdca", **options)
