"""``joint-newton``: the optimum of every kind of problem, whatever the threads, and runs that go on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import dualgap
from dualgap.core.bias import AugmentedBias, Bias, ExactBias, NoBias
from dualgap.core.joint.losses import Multinomial
from dualgap.core.joint.problem import JointProblem
from dualgap.core.problem import Point
from dualgap.data.sources import view
from dualgap.solvers.joint.newton import JointNewton, coarsest
from dualgap.solvers.joint.preconditioner import Preconditioner
from dualgap.solvers.joint.rows import JointRows

every_bias = pytest.mark.parametrize(
    "bias", [NoBias(), AugmentedBias(0.7), ExactBias()], ids=lambda bias: bias.kind
)


def blobs(n: int, d: int = 5, K: int = 4, seed: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.append(np.arange(K), rng.integers(0, K, n - K))
    return rng.normal(size=(n, d)) * np.linspace(0.3, 2.0, d) + rng.normal(size=(K, d))[y] + 1.0, y


def problem_of(bias: Bias, n: int = 300, rows: Any = np.asarray) -> JointProblem:
    X, y = blobs(n)
    weight = np.append(np.ones(4), np.random.default_rng(5).choice([0.0, 1.0, 0.5, 3.0], n - 4))
    return JointProblem(view(rows(X), y.astype(float), weight), Multinomial(), 0.01, bias, classes=4)


def fitted(X: Any, y: Any, **arguments: Any) -> dualgap.Outcome:
    return dualgap.fit(X, y, loss="multinomial", solver="joint-newton", **arguments)


@every_bias
@pytest.mark.parametrize("rows", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_the_product_with_the_hessian_is_the_difference_of_gradients(bias: Bias, rows: Any) -> None:
    problem = problem_of(bias, 60, rows)
    all_rows = JointRows.of(problem)
    rng = np.random.default_rng(1)
    w, b, v, vb = (rng.normal(size=shape) for shape in ((5, 4), 4, (5, 4), 4))
    p = all_rows.probabilities(all_rows.scores(w, b))
    found = all_rows.hessian(p, np.ones(all_rows.n, dtype=bool), v, vb)
    step = 1e-5
    after, _ = all_rows.gradient(all_rows.scores(w + step * v, b + step * vb))
    before, _ = all_rows.gradient(all_rows.scores(w - step * v, b - step * vb))
    assert found.moment == pytest.approx((after.moment - before.moment) / (2 * step), abs=1e-8)
    assert found.by_class == pytest.approx((after.by_class - before.by_class) / (2 * step), abs=1e-8)


@pytest.mark.parametrize("ridge", [0.0, 0.3, np.inf])
def test_the_preconditioner_inverts_a_hessian_whose_classes_spread_alike(ridge: float) -> None:
    rng = np.random.default_rng(2)
    d, K, lam = 4, 3, 0.05
    root = rng.normal(size=(d, d))
    sigma, a, means = root @ root.T, rng.random(K) + 0.2, rng.normal(size=(d, K))
    values, vectors = np.linalg.eigh(sigma)
    apply = Preconditioner(vectors, values, a, means).applied(lam, ridge)
    g, gb = rng.normal(size=(d, K)), rng.normal(size=K)
    v, vb = apply(g, gb)
    for k in range(K):
        mean = np.append(means[:, k], 1.0)
        block = a[k] * np.outer(mean, mean)
        block[:d, :d] += a[k] * sigma + lam * np.eye(d)
        if ridge == np.inf:
            assert vb[k] == 0.0
            assert block[:d, :d] @ v[:, k] == pytest.approx(g[:, k])
        else:
            block[d, d] += ridge
            assert block @ np.append(v[:, k], vb[k]) == pytest.approx(np.append(g[:, k], gb[k]))


@every_bias
@pytest.mark.parametrize("rows", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_it_reaches_the_optimum_of_joint_dual(bias: Bias, rows: Any) -> None:
    X, y = blobs(300)
    weight = np.random.default_rng(5).choice([0.5, 1.0, 3.0], 300)
    told: dict[str, Any] = {"C": 0.5, "bias": bias.kind, "sample_weight": weight, "loss": "multinomial"}
    newton = dualgap.fit(rows(X), y, solver="joint-newton", tol=1e-9, **told)
    dual = dualgap.fit(rows(X), y, solver="joint-dual", tol=1e-5, **told)
    assert newton.converged
    assert dual.converged
    assert newton.certificate.primal <= dual.certificate.primal
    assert newton.certificate.dual >= dual.certificate.dual
    assert newton.coef == pytest.approx(dual.coef, abs=1e-2)


def test_the_model_is_scikit_learns() -> None:
    X, y = blobs(400)
    ours = fitted(X, y, C=2.0, bias="exact", tol=1e-10)
    theirs = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(X, y)
    assert ours.coef == pytest.approx(theirs.coef_, abs=1e-4)
    assert ours.intercept - ours.intercept.mean() == pytest.approx(
        theirs.intercept_ - theirs.intercept_.mean(), abs=1e-4
    )


def test_float32_rows_are_good_for_more_than_their_precision() -> None:
    X, y = blobs(300)
    found = fitted(X.astype(np.float32), y, C=10.0, bias="exact", tol=1e-9)
    assert found.converged


def test_half_precision_rows_are_those_of_single_precision() -> None:
    X, y = blobs(20_000)
    half = X.astype(np.float16)
    one, two = (fitted(rows, y, C=1.0, bias="exact") for rows in (half, half.astype(np.float32)))
    assert np.array_equal(one.coef, two.coef)
    assert one.certificate == two.certificate


def test_samples_come_first_where_rows_are_many() -> None:
    X, y = blobs(40_000)
    found = fitted(X, y, C=1.0, bias="exact")
    assert coarsest(found.problem) == 1
    assert found.converged
    assert found.epochs < 40


def test_threads_make_no_difference() -> None:
    X, y = blobs(20_000)
    one, two = (fitted(X, y, C=1.0, bias="exact", threads=threads) for threads in (1, 2))
    assert np.array_equal(one.coef, two.coef)
    assert np.array_equal(one.dual, two.dual)
    assert one.certificate == two.certificate


@every_bias
def test_a_run_is_resumed_bit_for_bit(bias: Bias) -> None:
    X, y = blobs(20_000)
    told: dict[str, Any] = {"C": 3.0, "bias": bias.kind, "tol": 1e-8}
    whole = fitted(X, y, **told)
    for visits in (4000, 40_000, 100_000):
        part = fitted(X, y, max_visits=visits, **told)
        assert part.epochs < whole.epochs
        resumed = fitted(X, y, resume=part, **told)
        assert np.array_equal(resumed.coef, whole.coef)
        assert resumed.certificate == whole.certificate


def test_a_warm_start_needs_no_samples() -> None:
    X, y = blobs(20_000)
    first = fitted(X, y, C=1.0)
    again = fitted(X, y, C=1.0, warm=first, tol=1e-8)
    cold = fitted(X, y, C=1.0, tol=1e-8)
    assert again.converged
    assert again.epochs < cold.epochs


def test_free_intercepts_leave_no_balance() -> None:
    problem = problem_of(ExactBias())
    solver = JointNewton()
    state, news = solver.set_target(solver.start(problem, None), 1e-10), None
    for _ in range(12):
        state, _ = solver.step(problem, state, 1, news)
        point = solver.point(problem, state)
        news = problem.evaluate(point)
    assert isinstance(point, Point)
    assert point.beta is not None
    assert np.abs(problem.source.weight @ point.beta).max() / problem.total_weight < 1e-12
    assert problem.certify(point).relative_gap < 1e-9


def test_a_run_that_has_nothing_left_to_gain_ends() -> None:
    """Rows without entries: the intercepts are all there is, and they are found before the first step."""
    X, y = np.zeros((8, 3)), np.arange(8) % 3
    outcome = fitted(X, y, bias="exact", lam=0.04, tol=0.0, max_epochs=30)
    assert outcome.certificate.relative_gap <= 1e-7
    shares = np.bincount(y) / 8
    assert outcome.certificate.primal == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-7)
