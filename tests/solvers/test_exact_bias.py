"""A bias that is not regularised: against SVC, against exact solutions, and where the bias is not unique."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, minimize
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC

import dualgap
from dualgap.core.bias import ExactBias
from dualgap.core.losses import LOSSES
from dualgap.core.problem import Point, Problem
from dualgap.data.sources import view
from support.problems import off_centre


def objective(X: np.ndarray, y: np.ndarray, C: float, w: np.ndarray, b: float) -> float:
    return 0.5 * w @ w + C * np.maximum(0, 1 - y * (X @ w + b)).sum()


def allowed_bias(X: np.ndarray, y: np.ndarray, w: np.ndarray, slack: float) -> tuple[float, float]:
    """The b that minimise the mean hinge loss at this w, widened by slack."""
    edges = np.sort(y - X @ w)  # where a row's margin is exactly 1
    values = [np.maximum(0, 1 - y * (X @ w + b)).sum() for b in edges]
    best = [b for b, v in zip(edges, values, strict=True) if v <= min(values) * (1 + 1e-12)]
    return min(best) - slack, max(best) + slack


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_against_svc(C: float) -> None:
    X, y = off_centre()
    model = SVC(kernel="linear", C=C, tol=1e-10).fit(X, y)
    outcome = dualgap.fit(X, y, C=C, bias="exact", tol=1e-9, max_epochs=1_000_000)
    assert outcome.converged
    theirs = objective(X, y, C, model.coef_[0], model.intercept_[0])
    # SVC stops a little short
    assert outcome.certificate.dual <= theirs <= outcome.certificate.primal * (1 + 1e-5)
    low, high = allowed_bias(X, y, outcome.coef, slack=1e-3)
    assert low <= outcome.intercept <= high
    assert abs(np.sum(outcome.dual)) <= 1e-12 * np.abs(outcome.dual).sum()


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(("name", "width"), [("a9a", 123), ("w8a", 300)])
def test_against_svc_on_real_data(data_folder: Path, name: str, width: int) -> None:
    path = data_folder / f"{name}.svm.bz2"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    X, y = load_svmlight_file(str(path), n_features=width, zero_based=False)
    X, y = X[:5000], y[:5000]
    model = SVC(kernel="linear", tol=1e-8).fit(X, y)
    w, b = model.coef_.toarray()[0], model.intercept_[0]
    outcome = dualgap.fit(X, y, C=1.0, bias="exact", tol=1e-6, max_epochs=5000)
    primal, dual, *_ = outcome.certificate
    assert outcome.converged
    theirs = objective(X, y, 1.0, w, b)
    assert dual <= theirs * (1 + 1e-9)
    assert primal == pytest.approx(theirs, rel=1e-5)
    low, high = allowed_bias(X, y, w, slack=0.02)
    assert low <= outcome.intercept <= high


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_against_a_general_qp_solver(seed: int) -> None:
    """min 1/2 |w|^2 + C sum xi, y (X w + b) >= 1 - xi, xi >= 0, by scipy's trust-region method."""
    X, y = off_centre(n=14, d=3, seed=seed)
    n, d = X.shape
    C = 0.7
    rows = np.hstack([y[:, None] * X, y[:, None], np.eye(n)])
    bounds = Bounds(np.concatenate([np.full(d + 1, -np.inf), np.zeros(n)]), np.inf)
    found = minimize(
        lambda v: 0.5 * v[:d] @ v[:d] + C * v[d + 1 :].sum(),
        np.concatenate([np.zeros(d + 1), np.ones(n)]),
        jac=lambda v: np.concatenate([v[:d], [0.0], np.full(n, C)]),
        method="SLSQP",
        bounds=bounds,
        constraints=LinearConstraint(rows, lb=1.0),
        options={"ftol": 1e-14, "maxiter": 2000},
    )
    outcome = dualgap.fit(X, y, C=C, bias="exact", tol=1e-9, max_epochs=1_000_000)
    assert outcome.converged
    assert found.fun == pytest.approx(outcome.certificate.primal, rel=1e-6)


def test_against_unregularised_intercepts_of_other_losses() -> None:
    X, y = off_centre()
    target = X[:, 0] * 2 + 5 + np.random.default_rng(0).normal(size=len(y))
    logistic = LogisticRegression(C=2.0, solver="newton-cg", tol=1e-12, max_iter=10_000).fit(X, y)
    ours = dualgap.fit(X, y, loss="logistic", C=2.0, bias="exact", tol=1e-11, max_epochs=100_000)
    np.testing.assert_allclose(ours.coef, logistic.coef_[0], rtol=1e-4)
    assert ours.intercept == pytest.approx(logistic.intercept_[0], rel=1e-4)
    ridge = Ridge(alpha=1.5).fit(X, target)
    ours = dualgap.fit(X, target, loss="squared", C=1 / 3.0, bias="exact", tol=1e-11, max_epochs=100_000)
    np.testing.assert_allclose(ours.coef, ridge.coef_, rtol=1e-4)
    assert ours.intercept == pytest.approx(ridge.intercept_, rel=1e-4)


DEGENERATE = {
    "one class all at the bound": ([[0.0], [0.1], [0.2], [5.0]], [1, 1, 1, -1]),
    "twins with opposite labels": ([[1.0], [1.0], [-2.0], [-2.0]], [1, -1, 1, -1]),
    "any bias of an interval": ([[-1.0], [1.0], [3.0], [-3.0]], [-1, 1, 1, -1]),
    "all rows empty": ([[0.0], [0.0], [0.0]], [1, -1, 1]),
    "one row a class": ([[2.0, 1.0], [-1.0, 0.5]], [1, -1]),
    "far from the origin": ([[30.0], [31.0], [32.0], [33.0]], [-1, -1, 1, 1]),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_degenerate_problems_close_their_gap(name: str, C: float) -> None:
    X, y = (np.array(part, dtype=float) for part in DEGENERATE[name])
    outcome = dualgap.fit(X, y, C=C, bias="exact", tol=1e-5, max_epochs=300_000)
    assert outcome.converged, outcome.reason
    best = min(
        objective(X, y, C, np.array([u] * X.shape[1]), b)
        for u in np.linspace(-2, 2, 41)
        for b in np.concatenate([y - X @ np.array([u] * X.shape[1]), [0.0]])
    )
    assert outcome.certificate.dual - outcome.certificate.rounding <= best


def test_a_constant_target_is_fitted_exactly() -> None:
    X, _ = off_centre()
    outcome = dualgap.fit(
        X, np.full(len(X), 7.0), loss="squared", C=1.0, bias="exact", tol=1e-3, max_epochs=100_000
    )
    assert outcome.converged
    assert outcome.intercept == pytest.approx(7.0, abs=1e-3)
    np.testing.assert_allclose(outcome.coef, 0.0, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_the_dual_bound_holds_for_every_bias(loss: str) -> None:
    """No dual value of any beta exceeds the objective of any (w, b), wherever b goes."""
    rng = np.random.default_rng(5)
    X, y = off_centre(n=20)
    cls = LOSSES[loss]()
    if cls.task == "regression":
        y = X[:, 0] * 3 + 40
    problem = Problem(view(X, y), cls, 0.1, ExactBias())
    lowest = dualgap.fit(
        X, y, loss=loss, lam=0.1, bias="exact", tol=1e-8, max_epochs=100_000
    ).certificate.primal
    for _ in range(50):
        beta = np.array(
            [
                -cls.derivative(t, s)
                for t, s in zip(y, rng.normal(size=20) * 10 + rng.choice([0, 40]), strict=True)
            ]
        )
        found = problem.evaluate(Point(rng.normal(size=4), 1e3 * rng.normal(), beta * rng.random()))
        assert found.dual - found.dual_error <= lowest
        assert found.dual_error <= 1e-6 * (1 + abs(found.dual))
        assert found.primal >= lowest * (1 - 1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_intercept_bound_is_a_bound(loss: str) -> None:
    """Outside it no point is as good as the all-zero one."""
    rng = np.random.default_rng(5)
    X, y = off_centre(n=20)
    cls = LOSSES[loss]()
    if cls.task == "regression":
        y = X[:, 0] * 3 + 40
    problem = Problem(view(X, y), cls, 0.1, ExactBias())
    bound = problem.intercept_bound
    assert np.isfinite(bound)
    for _ in range(200):
        w = rng.normal(size=4) * np.exp(rng.normal() * 2)
        b = bound * (1 + np.exp(3 * rng.normal())) * rng.choice([-1, 1])
        assert problem.evaluate(Point(w, b, None)).primal >= problem.value_at_zero


def test_one_class_leaves_the_bias_untied() -> None:
    problem = Problem(view([[1.0], [2.0]], [1.0, 1.0]), LOSSES["hinge"](), 0.1, ExactBias())
    assert problem.intercept_bound == np.inf


@pytest.mark.parametrize(
    ("solver", "option"),
    [
        ("dcd", "pg_tol"),
        ("sdca", "epsilon"),
        ("mpu", "delta_stop"),
        ("svmperf", "epsilon"),
        ("ocas", "r"),
        ("ocas", "q"),
    ],
)
def test_rules_of_the_inner_solver_are_refused_and_not_ignored(solver: str, option: str) -> None:
    X, y = np.array([[1.0], [-1.0], [0.5]]), np.array([1, -1, -1])
    extra = {"order": "random", "iterate": "average"} if solver == "sdca" else {}
    with pytest.raises(dualgap.InputError, match=f"{option}=0.1 does not go with bias='exact'"):
        dualgap.fit(X, y, solver=solver, bias="exact", **{option: 0.1}, **extra)
    assert (
        dualgap.fit(X, y, solver=solver, bias="augmented", **{option: 0.1}, **extra).reason.name
        != "max_epochs"
    )
