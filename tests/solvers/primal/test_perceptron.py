"""The perceptron in its four forms."""

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
from dualgap.core.losses import make_loss
from dualgap.core.problem import Problem
from dualgap.data.sources import view
from dualgap.runtime.errors import InputError
from dualgap.solvers.primal.perceptron import Perceptron, vote
from dualgap.solvers.primal.sgd import SGD
from support.problems import small_problem

BIASES = {"none": NoBias(), "augmented": AugmentedBias(2.0), "exact": ExactBias()}


def uneven(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.resize([0.0, 0.5, 1.5, 1.0, 0.25, 1.75], n)  # mean 1 over the rows that are there


# whole numbers, so that all sums are exact and ties are ties
problem = partial(
    small_problem,
    n=30,
    d=4,
    lam=0.1,
    seed=2,
    largest=2,
    empty_row=True,
    noise=1.5,
    weighted=False,
    weights=uneven,
)


def run(solver: Any, task: Problem, steps: int) -> Any:
    return solver.step(task, solver.start(task, None), steps, None)[0]


def written(
    task: Problem, steps: int, margin: float = 0.0, gain: float = 0.0
) -> tuple[np.ndarray, np.ndarray, int]:
    """All (w, b) of the perceptron in the order of the rows, before each step and at the end; and its
    mistakes.
    """
    X, y, c = task.source.rows.matrix, task.source.y, task.source.weight  # type: ignore[attr-defined]
    rows, ws, bs, mistakes = np.flatnonzero(c), [np.zeros(X.shape[1])], [0.0], 0
    for t in range(steps):
        i = rows[t % rows.size]
        mistake = y[i] * (X[i] @ ws[-1] + bs[-1]) <= margin
        mistakes += mistake
        ws.append(ws[-1] + mistake * c[i] * y[i] * X[i])
        bs.append(bs[-1] + mistake * c[i] * y[i] * gain)
    return np.array(ws), np.array(bs), mistakes


def gain_of(bias: str, bias_step: float) -> float:
    return {"none": 0.0, "augmented": 4.0, "exact": bias_step}[bias]


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("margin", [0.0, 1.0, 3.0])
class TestAsWritten:
    def test_plain(self, bias: str, weighted: bool, margin: float) -> None:
        task = problem(bias=BIASES[bias], weighted=weighted)
        solver = Perceptron(order="given", margin=margin, bias_step=0.25)
        ws, bs, mistakes = written(task, 100, margin, gain_of(bias, 0.25))
        state = run(solver, task, 100)
        point = solver.point(task, state)
        assert np.array_equal(point.w, ws[-1])
        assert point.b == bs[-1]
        assert state.counts.updates == mistakes

    def test_averaged_is_the_mean_of_the_iterates_before_each_step(
        self, bias: str, weighted: bool, margin: float
    ) -> None:
        """In its published form w - u/T, where u adds up t y x over the mistakes, and by definition."""
        task = problem(bias=BIASES[bias], weighted=weighted)
        solver = Perceptron(order="given", margin=margin, averaged=True, bias_step=0.25)
        T = 100
        ws, bs, _ = written(task, T, margin, gain_of(bias, 0.25))
        u = sum(t * (ws[t] - ws[t - 1]) for t in range(1, T + 1))
        point = solver.point(task, run(solver, task, T))
        np.testing.assert_allclose(point.w, ws[-1] - u / T, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(point.w, ws[:-1].mean(axis=0), rtol=1e-13, atol=1e-13)
        assert point.b == pytest.approx(bs[:-1].mean(), rel=1e-12, abs=1e-12)

    def test_voted_has_the_averaged_model_and_the_same_mistakes(
        self, bias: str, weighted: bool, margin: float
    ) -> None:
        task = problem(bias=BIASES[bias], weighted=weighted)
        averaged, voted = (
            Perceptron(margin=margin, bias_step=0.25, seed=3, averaged=flag, voted=not flag)
            for flag in (True, False)
        )
        left, right = run(averaged, task, 100), run(voted, task, 100)
        a, b = averaged.point(task, left), voted.point(task, right)
        np.testing.assert_allclose(b.w, a.w, rtol=1e-13, atol=1e-13)
        assert b.b == pytest.approx(a.b, rel=1e-12, abs=1e-12)
        assert left.counts.updates == right.counts.updates == right.cursor.used
        assert left.counts.visits == right.counts.visits == 100


class TestVote:
    @pytest.mark.parametrize("bias", BIASES)
    def test_every_iterate_votes_once_for_every_row_it_was_shown(self, bias: str) -> None:
        task = problem(weighted=True)
        X, y, c = task.source.rows.matrix, task.source.y, task.source.weight  # type: ignore[attr-defined]
        outcome = dualgap.fit(
            X,
            y,
            sample_weight=c,
            lam=0.1,
            bias=bias,
            rho=2.0,
            solver="perceptron",
            voted=True,
            order="given",
            max_visits=90,
            max_epochs=None,
            tol=0.0,
            bias_step=0.25,
        )
        ws, bs, _ = written(task, 90, 0.0, gain_of(bias, 0.25))
        new = np.random.default_rng(0).integers(-3, 4, size=(50, 4)).astype(float)
        expected = np.mean([np.sign(new @ w + b) for w, b in zip(ws[:-1], bs[:-1], strict=True)], axis=0)
        np.testing.assert_allclose(vote(outcome, new), expected, atol=1e-12)

    def test_more_mistakes_than_the_list_had_room_for(self) -> None:
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(40, 3)), rng.choice([-1, 1], size=40)
        outcome = dualgap.fit(
            X, y, lam=0.1, solver="perceptron", voted=True, max_visits=3000, max_epochs=None, tol=0.0
        )
        state: Any = outcome.run.state
        assert state.cursor.used > 1024
        assert (np.diff(state.model.born[: state.cursor.used]) > 0).all()
        i = state.model.mistakes[: state.cursor.used]
        np.testing.assert_allclose((y[i, None] * X[i]).sum(axis=0), state.model.w, rtol=1e-9)
        assert (np.abs(vote(outcome, X)) <= 1.0).all()

    def test_errors(self) -> None:
        X, y = np.eye(3), np.array([1, -1, 1])
        plain = dualgap.fit(X, y, solver="perceptron", max_epochs=1)
        with pytest.raises(InputError, match="voted=True"):
            vote(plain, X)
        voted = dualgap.fit(X, y, solver="perceptron", voted=True, max_epochs=1)
        with pytest.raises(InputError, match="X has 2 columns, the model 3"):
            vote(voted, X[:, :2])


class TestLimitOfSGD:
    """A tie, y <w, x> = 0, is a mistake: in w/eta the hinge's margin 1/eta is above 0 however large eta
    is.
    """

    @pytest.mark.parametrize("order", ["given", "permutation", "random"])
    @pytest.mark.parametrize("averaged", [False, True])
    def test_on_whole_numbers_any_rate_above_1_is_the_limit(self, order: str, averaged: bool) -> None:
        task = problem(bias=AugmentedBias(1.0))
        perceptron = Perceptron(order=order, averaged=averaged)
        expected = perceptron.point(task, run(perceptron, task, 150))
        free = Problem(task.source, task.loss, 0.0, task.bias)
        for eta in (2.0, 2.0**20, 2.0**200):
            sgd = SGD(eta0=eta, learning_rate="constant", order=order, average=averaged)
            point = sgd.point(free, run(sgd, free, 150))
            np.testing.assert_allclose(point.w / eta, expected.w, rtol=1e-13, atol=1e-13)
            assert point.b / eta == pytest.approx(expected.b, abs=1e-12)

    def test_on_real_numbers_a_large_rate_is_the_limit(self) -> None:
        rng = np.random.default_rng(5)
        X, y = rng.normal(size=(40, 3)), rng.choice([-1.0, 1.0], size=40)
        task = Problem(view(X, y), make_loss("hinge"), 0.0)
        expected = run(Perceptron(), task, 200)
        state = run(SGD(eta0=2.0**60, learning_rate="constant"), task, 200)
        assert state.counts.updates == expected.counts.updates
        np.testing.assert_allclose(state.model.v * 2.0**-60, expected.model.v, rtol=1e-12)

    def test_a_margin_is_that_of_the_hinge_at_rate_1(self) -> None:
        task = problem()
        expected = run(Perceptron(margin=3.0), task, 150)
        hinge = Problem(task.source, make_loss("hinge:margin=3.5"), 0.0)  # whole numbers: <= 3 is < 3.5
        assert np.array_equal(
            run(SGD(eta0=1.0, learning_rate="constant"), hinge, 150).model.v, expected.model.v
        )


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 15), d=st.integers(1, 4), voted=st.booleans())
def test_the_mistake_bound(seed: int, n: int, d: int, voted: bool) -> None:
    """At most (R/gamma)^2 mistakes in all, whatever the order, where some w of length 1 has margin gamma."""
    rng = np.random.default_rng(seed)
    X, star = rng.normal(size=(n, d)), rng.normal(size=d)
    star /= np.linalg.norm(star)
    X += 0.1 * np.sign(X @ star)[:, None] * star
    task = Problem(view(X, np.sign(X @ star)), make_loss("hinge"), 0.1)
    gamma, R = np.abs(X @ star).min(), math.sqrt(task.source.squared_norms.max())
    solver = Perceptron(order="random", voted=voted, seed=seed % 11)
    state = run(solver, task, 500)
    assert state.counts.updates <= (R / gamma) ** 2 * (1.0 + 1e-12)


def test_on_separable_rows_it_ends_with_a_model_that_makes_no_mistakes() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 3))
    y = np.where(X @ [1.0, 2.0, -1.0] > 0, 1, -1)
    X += 0.1 * y[:, None] * np.array([1.0, 2.0, -1.0])
    outcome = dualgap.fit(X, y, lam=0.0, solver="perceptron", max_epochs=100)
    state: Any = outcome.run.state
    assert (y * (X @ state.model.v) > 0.0).all()
    assert outcome.certificate.dual == 0.0


def test_it_claims_no_more_than_its_certificate() -> None:
    task = problem()
    outcome = dualgap.fit(
        task.source.rows.matrix,
        task.source.y,
        lam=0.1,
        solver="perceptron",
        averaged=True,
        max_epochs=30,
        tol=1e-3,
    )
    assert not outcome.converged
    certificate = outcome.certificate
    best = dualgap.fit(task.source.rows.matrix, task.source.y, lam=0.1, tol=1e-8).certificate  # type: ignore[attr-defined]
    assert certificate.dual <= best.primal
    assert best.dual <= certificate.primal


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"margin": -1.0}, "margin=-1.0 must be a finite number >= 0"),
        ({"voted": True, "averaged": True}, "averaged and voted exclude each other"),
        ({"voted": True, "precision": "float32"}, "voted goes with precision='float64' only"),
        ({"order": "no"}, "order='no' must be one of"),
        ({"loss": "squared-hinge"}, "cannot train with the loss 'squared-hinge'"),
        ({"eta0": 1.0}, "no option 'eta0'"),
    ],
)
def test_bad_options(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        dualgap.fit(np.eye(3), np.array([1, -1, 1]), solver="perceptron", **options)
