"""Newton's method: optima of others, few passes, products and samples of H, the search along a step, a free
bias.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression

import dualgap
from dualgap.core.bias import AugmentedBias, ExactBias, NoBias
from dualgap.core.losses import LOSSES, smoothed_curvature, smoothed_dual
from dualgap.core.problem import Point, Problem
from dualgap.data.sources import view
from dualgap.solvers.second_order.direct import Hessians
from dualgap.solvers.second_order.quadratic import Quadratic
from dualgap.solvers.second_order.smoothed_losses import (
    Direction,
    Smoothing,
    duals,
    fitted_bias,
    line_search,
)
from support.states import assert_same

AS_IT_IS = Smoothing(0.0, np.zeros(0))  # no smoothing
BIASES = [NoBias(), AugmentedBias(2.0), ExactBias()]
SMOOTH = [name for name, loss in LOSSES.items() if np.isfinite(loss().smoothness)]
every_loss = pytest.mark.parametrize("loss", SMOOTH)
every_bias = pytest.mark.parametrize("bias", BIASES, ids=lambda bias: bias.kind)


def arrays(loss: str, n: int = 60, d: int = 5, seed: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    target = X @ rng.normal(size=d) + 0.4 + rng.normal(size=n)
    y = np.where(target > 0, 1.0, -1.0) if LOSSES[loss].task == "classification" else target
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.0], size=n)


def setting(loss: str, bias: Any = BIASES[0], lam: float = 0.02, **shape: int) -> Problem:
    X, y, weight = arrays(loss, **shape)
    return Problem(view(sp.csr_matrix(X), y, weight), LOSSES[loss](), lam, bias)


def hessian(problem: Problem, X: np.ndarray, quadratic: Quadratic) -> np.ndarray:
    ones = np.full((X.shape[0], 1), quadratic.lift)
    wide = np.hstack([X, ones])
    return wide.T @ (quadratic.h[:, None] * wide) + np.diag(quadratic.ridge)


@pytest.mark.slow
@every_loss
@every_bias
def test_it_ends_at_the_optimum_that_a_general_method_finds(loss: str, bias: Any) -> None:
    problem = setting(loss, bias)
    X, y, weight = arrays(loss)
    outcome = dualgap.fit(
        X, y, loss=loss, lam=0.02, bias=bias, sample_weight=weight, solver="newton", tol=1e-11
    )
    assert outcome.converged

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        w, b = point[:-1], 0.0 if isinstance(bias, NoBias) else float(point[-1])
        strength = problem.bias.strength(problem.lam) if bias.kind == "augmented" else 0.0
        pairs = list(zip(y.tolist(), (X @ w + b).tolist(), strict=True))
        values = np.array([problem.loss.value(*pair) for pair in pairs])
        slopes = weight * np.array([problem.loss.derivative(*pair) for pair in pairs]) / weight.sum()
        gradient = np.append(problem.lam * w + X.T @ slopes, strength * b + slopes.sum())
        gradient[-1] *= not isinstance(bias, NoBias)
        return 0.01 * w @ w + 0.5 * strength * b * b + weight @ values / weight.sum(), gradient

    found = minimize(
        objective, np.zeros(6), jac=True, method="L-BFGS-B", options={"ftol": 0.0, "gtol": 1e-12}
    )
    assert outcome.certificate.primal == pytest.approx(found.fun, rel=1e-10)
    np.testing.assert_allclose(outcome.coef, found.x[:-1], atol=1e-5)
    assert outcome.intercept == pytest.approx(found.x[-1] if bias.kind != "none" else 0.0, abs=1e-5)


def test_logistic_regression_with_an_intercept() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8))
    y = np.where(X @ rng.normal(size=8) + 1.0 + 2.0 * rng.normal(size=400) > 0, 1, -1)
    peer = LogisticRegression(C=3.0, solver="newton-cholesky", tol=1e-12).fit(X, y)
    outcome = dualgap.fit(X, y, loss="logistic", C=3.0, bias="exact", solver="newton", tol=1e-12)
    np.testing.assert_allclose(outcome.coef, peer.coef_[0], atol=1e-7)
    assert outcome.intercept == pytest.approx(peer.intercept_[0], abs=1e-7)


@every_bias
def test_least_squares_is_one_step(bias: Any) -> None:
    """With H over all rows as its own stand-in, the first step ends at the closed form."""
    X, y, weight = arrays("squared")
    outcome = dualgap.fit(
        X, y, loss="squared", lam=0.02, bias=bias, sample_weight=weight, solver="newton", tol=1e-11
    )
    assert outcome.converged
    assert outcome.trace[-1].updates == 1
    share = weight / weight.sum()
    wide = np.hstack([X, np.ones((60, 1))])
    ridge = np.full(6, 0.02)
    ridge[-1] = {"none": 1e30, "augmented": 0.02 / 4.0, "exact": 0.0}[bias.kind]
    exact = np.linalg.solve(
        2.0 * wide.T @ (share[:, None] * wide) + np.diag(ridge), 2.0 * wide.T @ (share * y)
    )
    np.testing.assert_allclose([*outcome.coef, outcome.intercept], exact, atol=1e-10)


@every_loss
def test_every_step_is_evaluated_once_and_begins_with_what_that_found(loss: str) -> None:
    X, y, _ = arrays(loss, n=500, d=20)
    outcome = dualgap.fit(X, y, loss=loss, solver="newton", tol=1e-8)
    assert outcome.converged
    assert [record.updates for record in outcome.trace] == list(range(1, len(outcome.trace) + 1))
    gaps = [record.certificate.gap for record in outcome.trace]
    assert gaps == sorted(gaps, reverse=True)
    solver: Any = outcome.solver
    state = solver.set_target(solver.start(outcome.problem, None), outcome.run.state.tol)
    for _ in outcome.trace:  # without evaluations it makes its own gradients
        state, _ = solver.step(outcome.problem, state, 1, None)
    assert state.counts.entries == outcome.trace[-1].entries + (len(outcome.trace) - 1) * X.size
    np.testing.assert_allclose(state.w, outcome.coef, rtol=1e-9, atol=1e-11)


def tall() -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20_000, 20)) @ np.diag(np.logspace(0, -2, 20)) @ rng.normal(size=(20, 20))
    return X, np.where(X @ rng.normal(size=20) + rng.normal(size=20_000) > 0, 1.0, -1.0)


def wide() -> tuple[Any, np.ndarray]:
    """Rows like texts: frequent and rare columns, rows of length 1."""
    rng = np.random.default_rng(5)
    columns = np.minimum(rng.zipf(1.3, size=(3000, 40)) - 1, 19_999)
    X = sp.csr_matrix(
        (rng.random(columns.size), columns.ravel(), np.arange(0, columns.size + 1, 40)), (3000, 20_000)
    )
    X.sum_duplicates()
    X = sp.diags(1.0 / np.sqrt(X.multiply(X).sum(axis=1).A1)) @ X
    return X, np.where(X @ rng.normal(size=20_000) > 0.0, 1.0, -1.0)


# (data, loss, C, passes to 1e-2 and to 1e-4): some 1.2 times what it takes. Factors of dense rows count as
# the entries that passes over these would read meanwhile, five times as many as over sparse ones.
CEILINGS = [
    (tall, "logistic", 1.0, 30, 34),
    (tall, "squared-hinge", 1.0, 29, 29),
    (tall, "squared", 1.0, 14, 14),
    (wide, "logistic", 1.0, 44, 58),
    (wide, "logistic", 10.0, 70, 88),
    (wide, "squared-hinge", 1.0, 46, 54),
    (wide, "squared", 1.0, 48, 66),
]


def passes(X: Any, y: np.ndarray, gap: float, **options: Any) -> float:
    """All entries read, those of evaluations (a dot and an add) too, as a multiple of the entries there
    are.
    """
    outcome = dualgap.fit(X, y, solver="newton", tol=gap, **options)
    assert outcome.converged
    return outcome.trace[-1].entries / outcome.problem.source.nnz + 2 * len(outcome.trace)


@pytest.mark.slow
@pytest.mark.parametrize(("data", "loss", "C", "loose", "tight"), CEILINGS)
def test_few_passes(data: Any, loss: str, C: float, loose: float, tight: float) -> None:
    X, y = data()
    assert passes(X, y, 1e-2, loss=loss, C=C) <= loose
    assert passes(X, y, 1e-4, loss=loss, C=C) <= tight


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "ceiling"), [("logistic", 36), ("squared-hinge", 53), ("squared", 40)])
def test_few_passes_over_a9a(data_folder: Path, loss: str, ceiling: float) -> None:
    X, y = load_svmlight_file(str(data_folder / "a9a.svm.bz2"), n_features=123)
    assert passes(X, y, 1e-4, loss=loss, C=1.0) <= ceiling


def test_threads_make_no_difference() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60_000, 40))
    y = np.where(X[:, 0] + rng.normal(size=60_000) > 0, 1.0, -1.0)
    one, two = (dualgap.fit(X, y, loss="logistic", solver="newton", threads=threads) for threads in (1, 2))
    assert len(one.problem.source._edges) > 2  # several parts
    assert_same(one.run, two.run)


@every_bias
def test_a_run_goes_on_from_any_step(tmp_path: Path, bias: Any) -> None:
    """Right after an evaluation, which it is told again, and between two of them."""
    X, y, weight = arrays("logistic", n=300, d=12)
    for schedule in ({}, {"record_every": 900}):
        common: dict[str, Any] = dict(
            loss="logistic", solver="newton", bias=bias, sample_weight=weight, tol=0.0, **schedule
        )
        whole = dualgap.fit(X, y, max_visits=2500, **common)
        for steps in (1, 600, 1200):
            part = dualgap.fit(X, y, max_visits=steps, **common)
            assert part.trace[-1].updates < whole.trace[-1].updates
            dualgap.save_state(tmp_path / "run.npz", part)
            rest = dualgap.fit(
                X, y, max_visits=2500, resume=dualgap.load_state(tmp_path / "run.npz"), **common
            )
            assert_same(whole.run, rest.run)


@pytest.mark.slow
@every_loss
@every_bias
def test_products_and_the_whole_sample_are_those_of_the_hessian(loss: str, bias: Any) -> None:
    problem, (X, _, _) = setting(loss, bias), arrays(loss)
    rng = np.random.default_rng(0)
    w = rng.normal(size=5)
    quadratic = Quadratic(problem, AS_IT_IS, X @ w, 50, Hessians.of(problem))
    H = hessian(problem, X, quadratic)
    p = rng.normal(size=6)
    scores, product = quadratic.product(p)
    np.testing.assert_allclose(product, H @ p, atol=1e-14)
    quadratic.complete(p, scores)
    np.testing.assert_allclose(scores, X @ p[:-1] + quadratic.lift * p[-1], atol=1e-14)
    np.testing.assert_allclose(H @ quadratic.sampled(quadratic.curved)(p), p, atol=1e-9)


@pytest.mark.parametrize("dense", [False, True])
def test_a_sample_stands_for_all_rows(dense: bool) -> None:
    """Rows that differ greatly in h: a sample of a tenth is as large as asked for, and close to H."""
    problem, (X, y, weight) = setting("logistic", n=20_000), arrays("logistic", n=20_000)
    if dense:
        problem = Problem(view(X, y, weight), problem.loss, problem.lam, problem.bias)
    quadratic = Quadratic(
        problem, AS_IT_IS, X @ np.array([8.0, 0.0, -3.0, 0.0, 0.0]), 50, Hessians.of(problem)
    )
    assert quadratic.curved > 10_000
    stride = quadratic.stride(1000)
    large = quadratic.h >= stride
    assert pytest.approx(large.sum() + quadratic.h[~large].sum() / stride, rel=0.05) == 1000
    H = hessian(problem, X, quadratic)
    solve = quadratic.sampled(1000)
    ratios = np.linalg.eigvals(np.column_stack([solve(column) for column in H.T])).real
    assert ratios.min() > 0.7
    assert ratios.max() < 1.4


@every_loss
@pytest.mark.parametrize("scale", [1e-6, 0.02, 1.0, 30.0, 1e7])
def test_the_search_along_a_step_goes_down_to_where_it_is_flat(loss: str, scale: float) -> None:
    problem, (X, _, _) = setting(loss, AugmentedBias(1.5)), arrays(loss)
    rng = np.random.default_rng(4)
    strength = problem.bias.strength(problem.lam)
    for _ in range(10):
        w, b = rng.normal(size=5) * rng.choice([0.1, 3.0]), float(rng.normal())
        found = problem.evaluate(Point(w, b, duals(problem, AS_IT_IS, X @ w + b)))
        gradient = np.append(problem.lam * (w - found.w_of_dual), strength * (b - found.b))
        v = -scale * gradient * rng.uniform(0.2, 2.0, size=6)
        along = X @ v[:-1] + v[-1]
        pull = np.append(problem.lam * v[:-1], strength * v[-1])
        first, drift = float(gradient @ v), float(pull @ np.append(w, b))
        direction = Direction(along, first, drift, float(pull @ v))
        step = line_search(problem, AS_IT_IS, found.scores, direction)
        to, b_to = w + step * v[:-1], b + step * float(v[-1])
        there = problem.evaluate(Point(to, b_to, duals(problem, AS_IT_IS, X @ to + b_to)))
        slope = problem.lam * (to - there.w_of_dual) @ v[:-1] + strength * (b_to - there.b) * v[-1]
        assert there.primal < found.primal
        assert abs(slope) <= 0.1001 * abs(first)


@every_loss
@pytest.mark.parametrize("off", [0.0, 50.0, -1e4])
def test_a_free_bias_is_fitted_exactly(loss: str, off: float) -> None:
    problem, (X, _, weight) = setting(loss, ExactBias()), arrays(loss)
    scores = X @ np.array([1.0, -0.5, 0.0, 2.0, 0.3]) + off
    share = weight * duals(problem, AS_IT_IS, scores + fitted_bias(problem, AS_IT_IS, scores))
    assert abs(share.sum()) <= 1e-10 * np.abs(share).sum()
    assert fitted_bias(setting(loss), AS_IT_IS, scores) == 0.0


def test_one_class_alone_does_not_tie_the_bias_down() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    outcome = dualgap.fit(
        X,
        np.where(np.arange(30) < 29, 1.0, -1.0),
        loss="logistic",
        bias="exact",
        sample_weight=(np.arange(30) < 29).astype(float),
        solver="newton",
        max_epochs=20,
    )
    assert math.isfinite(outcome.intercept)
    assert outcome.certificate.primal <= 1e-6


@every_loss
def test_it_recovers_from_a_start_far_away(loss: str) -> None:
    """All logistic rows are saturated there: no curvature at all."""
    X, y, _ = arrays(loss)
    far = Point(np.full(5, 1e4), 0.0, None)
    assert dualgap.fit(X, y, loss=loss, C=1.0, solver="newton", tol=1e-9, warm=far, max_epochs=200).converged


@pytest.mark.parametrize("C", [1e-8, 1e4, 1e8])
@every_loss
def test_weak_and_strong_regularisers(loss: str, C: float) -> None:
    X, y, _ = arrays(loss)
    assert dualgap.fit(
        X, y, loss=loss, C=C, bias="augmented", solver="newton", tol=1e-8, max_epochs=300
    ).converged


def test_a_warm_start_at_the_optimum_is_done() -> None:
    X, y, _ = arrays("logistic")
    first = dualgap.fit(X, y, loss="logistic", solver="newton", tol=1e-10)
    again = dualgap.fit(X, y, loss="logistic", solver="newton", tol=1e-9, warm=Point(first.coef, 0.0, None))
    assert again.converged
    assert again.trace[-1].updates == 0


KINKS = ["hinge", "absolute", "epsilon-insensitive:epsilon=0.2"]


@pytest.mark.slow
@pytest.mark.parametrize("loss", KINKS)
@every_bias
def test_kinks_are_smoothed_away_and_come_back(loss: str, bias: Any) -> None:
    """To an accuracy at which no fixed smoothing would do, and to the optimum that another solver proves
    too.
    """
    X, y, weight = arrays(loss.split(":")[0])
    common = {"loss": loss, "lam": 0.02, "bias": bias, "sample_weight": weight}
    outcome = dualgap.fit(X, y, solver="newton", tol=1e-10, max_epochs=200, **common)
    other = dualgap.fit(X, y, solver="dcd", tol=1e-7, max_epochs=100_000, **common)
    assert outcome.converged
    assert other.converged
    slack = 1e-12 * outcome.certificate.primal
    assert other.certificate.dual - slack <= outcome.certificate.primal
    assert outcome.certificate.dual - slack <= other.certificate.primal
    assert outcome.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-7)


@pytest.mark.parametrize("name", ["hinge", "absolute", "epsilon-insensitive"])
@pytest.mark.parametrize("seed", range(20))
def test_the_smoothed_slope_and_curvature_are_those_of_the_envelope(name: str, seed: int) -> None:
    """phi_gamma(s) = max over b of -b s - phi*(-b) - gamma/2 (b - centre)^2, by a grid and by differences."""
    rng, loss = np.random.default_rng(seed), LOSSES[name]()
    gamma, y, score = (
        float(rng.uniform(0.2, 3.0)),
        float(rng.choice([-1.0, 1.0])),
        float(rng.normal(scale=2.0)),
    )
    low, high = loss.dual_bounds(y)
    centre = np.array([float(np.clip(rng.normal(), low, high))])

    def value(b: float) -> float:
        return -b * score - loss.conjugate(y, b) - gamma / 2 * (b - float(centre[0])) ** 2

    dual = smoothed_dual(loss, gamma, centre, 0, y, score)
    assert low <= dual <= high
    assert value(dual) >= max(value(b) for b in np.linspace(low, high, 1001)) - 1e-12
    step = 1e-6
    ahead, behind = (smoothed_dual(loss, gamma, centre, 0, y, score + e) for e in (step, -step))
    moves = abs(ahead - dual) > 1e-9, abs(dual - behind) > 1e-9
    if moves[0] == moves[1]:  # else there is a bound or kink just here
        bend = (behind - ahead) / (2 * step)
        assert smoothed_curvature(loss, gamma, centre, 0, y, score) == pytest.approx(bend, rel=1e-6)


def test_tall_data_take_a_few_passes_whatever_C_is() -> None:
    """Coordinate descent needs thousands where C is large: this is what the solver is for."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 10)) * np.geomspace(1.0, 0.05, 10)
    y = np.where(X @ rng.normal(size=10) + rng.normal(size=4000) > 0, 1.0, -1.0)
    for C, passes in ((0.1, 60), (10.0, 80), (1000.0, 110)):
        outcome = dualgap.fit(X, y, C=C, solver="newton", tol=1e-6)
        assert outcome.converged
        assert outcome.trace[-1].entries <= passes * X.size


def test_a_dual_warm_start_is_where_the_smoothing_is_centred() -> None:
    X, y, _ = arrays("hinge", n=400, d=8)
    first = dualgap.fit(X, y, C=1.0, solver="dcd", tol=1e-3)
    cold = dualgap.fit(X, y, C=1.0, solver="newton", tol=1e-8)
    warm = dualgap.fit(X, y, C=1.0, solver="newton", tol=1e-8, warm=Point(first.coef, 0.0, first.dual))
    assert warm.converged
    assert warm.trace[-1].updates < cold.trace[-1].updates


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
@every_bias
def test_columns_that_depend_on_each_other(loss: str, bias: Any) -> None:
    """A time stamp, twice, beside columns of size 1: the sampled Hessian has no Cholesky factors in
    float64.
    """
    rng = np.random.default_rng(1)
    stamp = 1.7e9 + rng.integers(0, 10**7, 2000)
    X = np.c_[rng.normal(size=2000), stamp, rng.normal(size=2000), stamp]
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=2000) > 0, 1, -1)
    outcome = dualgap.fit(X, y, loss=loss, C=1.0, bias=bias, solver="newton", max_epochs=100)
    assert np.isfinite(outcome.certificate.gap)
    scaled = dualgap.fit(X / [1.0, 1e9, 1.0, 1e9], y, loss=loss, C=1.0, bias=bias, solver="newton", tol=1e-8)
    assert scaled.converged


def test_a_warm_start_with_a_bias_for_a_problem_without_one() -> None:
    X, y, _ = arrays("logistic")
    cold = dualgap.fit(X, y, loss="logistic", C=10.0, solver="newton", tol=1e-6)
    warm = dualgap.fit(
        X, y, loss="logistic", C=10.0, solver="newton", tol=1e-6, warm=Point(0.1 * cold.coef, 0.7, None)
    )
    assert warm.converged
    assert warm.trace[-1].updates <= cold.trace[-1].updates + 1


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("loss", ["hinge", "absolute", "epsilon-insensitive"])
def test_small_problems_of_large_C_are_solved_by_default(loss: str, seed: int) -> None:
    """Coordinates alone may take more than the 1000 epochs that are allowed by default."""
    X, y, _ = arrays(loss, n=57, d=5, seed=seed)
    assert dualgap.fit(X, y, loss=loss, C=100.0, tol=1e-6).converged


@pytest.mark.parametrize("gap", [1e-2, 1e-6])
def test_least_squares_takes_one_step_to_the_gap_asked_for(gap: float) -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(3000, 400)) * (rng.random((3000, 400)) < 0.5)
    y = X @ rng.normal(size=400) + rng.normal(size=3000)
    outcome = dualgap.fit(X, y, loss="squared", solver="newton", C=10.0, tol=gap)
    assert outcome.converged
    assert len(outcome.trace) == 1
    assert outcome.certificate.relative_gap > 1e-3 * gap  # and no products beyond it
