"""Implicit updates: the lecture's three cases, the proximal equation of every loss, and the dual coordinate
step.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualgap
from dualgap.core.bias import AugmentedBias, ExactBias, NoBias
from dualgap.core.losses import LOSSES, make_loss
from dualgap.core.problem import Point, Problem
from dualgap.data.sources import view
from dualgap.runtime.errors import InputError
from dualgap.solvers.primal.implicit import Implicit
from support.problems import small_problem

BIASES = {"none": NoBias(), "augmented": AugmentedBias(0.7), "exact": ExactBias()}


problem = partial(small_problem, n=20, d=4, lam=0.1, seed=6, empty_row=True, intercept=0.3)


def matrix(task: Problem) -> np.ndarray:
    rows: Any = task.source.rows  # type: ignore[attr-defined]
    return np.asarray(rows.matrix)


def lecture(w: np.ndarray, x: np.ndarray, y: float, eta: float, lam: float) -> tuple[np.ndarray, int]:
    """The implicit update of the hinge as the lecture has it, case by case."""
    m, square = y * (w @ x), x @ x
    if 1.0 + eta * lam < m:
        gamma, case = 0.0, 1
    elif m < 1.0 + eta * lam - eta * square:
        gamma, case = 1.0, 2
    else:
        gamma, case = (1.0 + eta * lam - m) / (eta * square), 3
    return (w + gamma * eta * y * x) / (1.0 + eta * lam), case


def test_the_three_cases_of_the_lecture() -> None:
    task = problem(weighted=False, lam=0.3)
    X, y, seen = matrix(task)[1:], task.source.y[1:], set()
    task = Problem(view(X, y), task.loss, task.lam)
    for eta in (0.0, 0.02, 0.5, 20.0):
        solver = Implicit(eta=eta, order="given")
        state, w = solver.start(task, None), np.zeros(4)
        for t in range(1, 121):
            i = (t - 1) % len(y)
            w, case = lecture(w, X[i], y[i], eta or 1.0 / (task.lam * t), task.lam)
            state, _ = solver.step(task, state, 1, None)
            np.testing.assert_allclose(solver.point(task, state).w, w, rtol=1e-11, atol=1e-13)
            after = y[i] * (X[i] @ w)
            assert {1: after > 1.0, 2: after < 1.0, 3: math.isclose(after, 1.0)}[case]
            seen.add(case)
    assert seen == {1, 2, 3}


@pytest.mark.parametrize("loss", LOSSES)
def test_the_proximal_equation_is_solved_to_1e_12(loss: str) -> None:
    """The a of a step is a slope of the loss where the step ends; on the first look it is the row's mean
    slope.
    """
    for bias in BIASES:
        task = problem(loss, bias=BIASES[bias])
        X, y, lam = matrix(task), task.source.y, task.lam
        share = task.source.weight * (task.epoch_size / task.total_weight)
        gain = {"none": 0.0, "augmented": 0.49, "exact": 0.2}[bias]
        for eta in (0.0, 0.3, 1e3):
            solver = Implicit(eta=eta, order="given", bias_step=0.2)
            state = solver.start(task, None)
            for t, i in enumerate(np.flatnonzero(task.source.weight), 1):
                w, b, _ = solver.point(task, state)
                state, _ = solver.step(task, state, 1, None)
                a, (w_new, b_new, _) = state.means.slopes[i], solver.point(task, state)
                step = eta or 1.0 / (lam * t)
                mu = 1.0 / (1.0 + step * lam)
                np.testing.assert_allclose(
                    w_new, mu * (w + step * share[i] * a * X[i]), rtol=1e-11, atol=1e-12
                )
                kept = b if bias == "exact" else mu * b
                pushed = step * share[i] * a * gain * (1.0 if bias == "exact" else mu)
                assert b_new == pytest.approx(kept + pushed, rel=1e-11, abs=1e-12)
                score = float(X[i] @ w_new) + b_new
                left, right = task.loss.dual_subdifferential(y[i], score, a)
                size = 1e-12 * (1.0 + abs(score) + abs(y[i]))
                if loss == "logistic":
                    assert abs(a + task.loss.derivative(y[i], score)) <= 1e-12
                elif X[i].any() or gain > 0.0:
                    assert left <= size
                    assert right >= -size


@pytest.mark.parametrize("loss", LOSSES)
def test_a_first_epoch_without_shrinking_is_one_of_dual_coordinate_ascent(loss: str) -> None:
    """With eta = 1/(lam n): every row is met at a dual of 0, and the losses' dual steps make the same w."""
    for bias in (NoBias(), AugmentedBias(0.7)):
        task = problem(loss, bias=bias)
        X, y, c = matrix(task), task.source.y, task.source.weight
        q, scale, bias_rate = task.curvatures, task.scale, task.bias_rate if bias.kind == "augmented" else 0.0
        beta, w, b = np.zeros(task.source.n), np.zeros(4), 0.0
        for i in np.flatnonzero(c):
            beta[i] = task.loss.dual_prox(y[i], float(X[i] @ w) + b, 0.0, q[i])
            w = w + scale * c[i] * beta[i] * X[i]
            b += bias_rate * c[i] * beta[i]
        solver = Implicit(eta=1.0 / (task.lam * task.epoch_size), shrinking=False, order="given")
        state, _ = solver.step(task, solver.start(task, None), task.epoch_size, None)
        point = solver.point(task, state)
        np.testing.assert_allclose(point.beta, beta, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(point.w, w, rtol=1e-9, atol=1e-11)
        assert point.b == pytest.approx(b, rel=1e-9, abs=1e-11)
        np.testing.assert_allclose(task.model_of(point.beta, 0.0)[0], point.w, rtol=1e-9, atol=1e-11)


@settings(deadline=None, max_examples=60)
@given(
    loss=st.sampled_from(["hinge", "squared", "logistic", "epsilon-insensitive"]),
    eta=st.floats(1e-3, 1e3),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_step_minimises_what_it_is_said_to(loss: str, eta: float, seed: int) -> None:
    """1/2 |w - w_t|^2 + eta (lam/2 |w|^2 + loss) is nowhere smaller than where the step ends."""
    rng = np.random.default_rng(seed)
    x, before, y = rng.normal(size=(1, 3)), 3.0 * rng.normal(size=3), float(rng.choice([-1.0, 1.0]))
    task, lam = Problem(view(x, np.array([y])), make_loss(loss), 0.5), 0.5
    solver = Implicit(eta=eta)
    after = solver.point(task, solver.step(task, solver.start(task, Point(before, 0.0, None)), 1, None)[0]).w

    def objective(w: np.ndarray) -> float:
        own = task.loss.value(y, float(x[0] @ w))
        return 0.5 * float((w - before) @ (w - before)) + eta * (0.5 * lam * float(w @ w) + own)

    least = objective(after)
    for size in (1e-6, 1e-3, 1.0):
        for _ in range(5):
            assert objective(after + size * rng.normal(size=3)) >= least * (1.0 - 1e-12)
    assert objective(before) >= least * (1.0 - 1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared", "squared-hinge"])
def test_no_step_is_too_long(loss: str) -> None:
    """In the limit of eta the loss stands against lam/2 |w|^2 alone: each step ends at the optimum of its
    row.
    """
    task = problem(loss, weighted=False)
    X, y = matrix(task), task.source.y
    for eta in (1e12, 1e100, 1e290):
        solver = Implicit(eta=eta, order="given")
        state = solver.start(task, None)
        for i in range(task.source.n):
            state, _ = solver.step(task, state, 1, None)
            a = task.loss.dual_prox(y[i], 0.0, 0.0, float(X[i] @ X[i]) / task.lam)
            np.testing.assert_allclose(solver.point(task, state).w, a * X[i] / task.lam, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bias", ["none", "augmented", "exact"])
def test_it_gets_to_the_optimum(bias: str) -> None:
    task = problem(n=60)
    outcome = dualgap.fit(
        matrix(task), task.source.y, sample_weight=task.source.weight, lam=0.1, bias=bias, solver="implicit",
        tol=0.01, max_epochs=500, bias_step=1.0,
    )  # fmt: skip
    assert outcome.converged


def test_shrinking_takes_v_in_before_it_vanishes() -> None:
    """With eta lam = 9 the scale falls tenfold with every step."""
    task = problem(lam=0.9, weighted=False)
    X, y = matrix(task), task.source.y
    solver, w = Implicit(eta=10.0, order="given"), np.zeros(4)
    state, _ = solver.step(task, solver.start(task, None), 200, None)
    for t in range(200):
        i = t % len(y)
        w = w / 10.0 if not X[i].any() else lecture(w, X[i], y[i], 10.0, 0.9)[0]
    np.testing.assert_allclose(solver.point(task, state).w, w, rtol=1e-9)
    assert 1e-11 < state.cursor.s <= 1.0


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"eta": -0.5}, "eta=-0.5 must be a finite number >= 0"),
        ({"eta": math.inf}, "eta=inf"),
        ({"bias_step": -1.0}, "bias_step=-1.0"),
        ({"order": "up"}, "order='up' must be one of given, permutation, random"),
        ({"polish": -1}, "polish=-1"),
        ({"lam": 0.0}, "lam=0"),
        ({"precision": "float32"}, "no option 'precision'"),
    ],
)
def test_bad_options(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        dualgap.fit(np.eye(3), np.array([1, -1, 1]), solver="implicit", **options)
