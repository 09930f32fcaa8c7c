"""The flagship against reference optima, LIBLINEAR, exact solutions, and its own plain variant."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, lsq_linear, milp, minimize
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC, LinearSVR

import dualgap
from dualgap.core.losses import LOSSES
from dualgap.core.problem import Point
from dualgap.solvers.dual.gap_estimate import GapEstimate
from dualgap.solvers.dual.shrinking import ABSENT, EPOCHS_LEFT, SHRUNK
from support.problems import linear_data

dcd = import_module("dualgap.solvers.dual.dcd")


toy = partial(linear_data, n=80, d=6, seed=1)


# Reference optima in C-form, no bias, with a relative error of at most 2e-9; allow 5e-9 for their rounding.
OPTIMA = [
    ("a9a", 123, 0.1, 1149.904133, 40),
    ("a9a", 123, 1.0, 11433.8077, 105),
    ("w8a", 300, 0.1, 755.113416, 30),
    ("w8a", 300, 1.0, 6604.88662, 110),
]


@pytest.fixture(scope="module")
def load(data_folder: Path):  # type: ignore[no-untyped-def]
    found: dict[str, tuple[sp.csr_matrix, np.ndarray]] = {}

    def read(name: str, width: int) -> tuple[sp.csr_matrix, np.ndarray]:
        path = data_folder / f"{name}.svm.bz2"
        if not path.exists():
            pytest.skip(f"{path} is missing")
        if name not in found:
            found[name] = load_svmlight_file(str(path), n_features=width, zero_based=False)
        return found[name]

    return read


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(("name", "width", "C", "optimum", "epochs"), OPTIMA)
def test_reference_optima(load, name: str, width: int, C: float, optimum: float, epochs: float) -> None:  # type: ignore[no-untyped-def]
    X, y = load(name, width)
    outcome = dualgap.fit(X, y, solver="dcd", C=C, tol=1e-6)
    primal, dual, *_ = outcome.certificate
    slack = 5e-9 * optimum
    assert outcome.converged
    assert outcome.certificate.form == "J"
    assert dual <= optimum + slack
    assert optimum - slack <= primal <= (1 + 2e-6) * optimum
    assert outcome.trace[-1].epochs <= epochs, "the algorithm has become slower"


@pytest.mark.data
def test_shrinking_saves_most_of_the_work(load) -> None:  # type: ignore[no-untyped-def]
    X, y = load("w8a", 300)
    shrunk = dualgap.fit(X, y, solver="dcd", C=1.0, tol=1e-4)
    plain = dualgap.fit(X, y, solver="dcd", C=1.0, tol=1e-4, shrinking=False)
    assert shrunk.converged
    assert plain.converged
    assert shrunk.trace[-1].entries * 5 < plain.trace[-1].entries


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("loss", "theirs"), [("hinge", "hinge"), ("squared-hinge", "squared_hinge")])
def test_against_liblinear_svm(loss: str, theirs: str, C: float) -> None:
    X, y = toy()
    model = LinearSVC(loss=theirs, C=C, fit_intercept=False, dual=True, tol=1e-10, max_iter=10_000_000).fit(
        X, y
    )
    outcome = dualgap.fit(X, y, solver="dcd", loss=loss, C=C, tol=1e-9, max_epochs=200_000)
    value = 0.5 * np.sum(model.coef_**2) + C * sum(
        LOSSES[loss]().value(t, s) for t, s in zip(y, X @ model.coef_[0], strict=True)
    )
    assert outcome.converged
    assert value == pytest.approx(outcome.certificate.primal, rel=1e-7)
    np.testing.assert_allclose(outcome.coef, model.coef_[0], atol=1e-3)


@pytest.mark.slow
def test_against_liblinear_logistic() -> None:
    X, y = toy()
    model = LogisticRegression(
        C=2.0, fit_intercept=False, solver="newton-cg", tol=1e-12, max_iter=10_000
    ).fit(X, y)
    outcome = dualgap.fit(X, y, solver="dcd", loss="logistic", C=2.0, tol=1e-12)
    np.testing.assert_allclose(outcome.coef, model.coef_[0], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "theirs"),
    [
        ("epsilon-insensitive:epsilon=0.3", "epsilon_insensitive"),
        ("squared-epsilon-insensitive:epsilon=0.3", "squared_epsilon_insensitive"),
    ],
)
def test_against_liblinear_regression(loss: str, theirs: str) -> None:
    X, y = toy(regression=True)
    model = LinearSVR(
        epsilon=0.3, loss=theirs, C=0.5, fit_intercept=False, dual=True, tol=1e-10, max_iter=10_000_000
    )
    model.fit(X, y)
    outcome = dualgap.fit(X, y, solver="dcd", loss=loss, C=0.5, tol=1e-9, max_epochs=200_000)
    assert outcome.converged
    np.testing.assert_allclose(outcome.coef, model.coef_, atol=2e-4)


@pytest.mark.slow
def test_least_squares_is_the_root_of_its_normal_equations() -> None:
    X, y = toy(regression=True)
    lam = 0.05
    outcome = dualgap.fit(X, y, solver="dcd", loss="squared", lam=lam, tol=1e-12)
    exact = np.linalg.solve(2 * X.T @ X / len(y) + lam * np.eye(X.shape[1]), 2 * X.T @ y / len(y))
    np.testing.assert_allclose(outcome.coef, exact, rtol=1e-5)
    ridge = Ridge(alpha=len(y) * lam / 2, fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(outcome.coef, ridge.coef_, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss", ["smooth-hinge:gamma=0.5", "modified-huber", "huber:threshold=0.7", "logistic"]
)
def test_smooth_losses_against_a_general_minimiser(loss: str) -> None:
    chosen = dualgap.core.losses.make_loss(loss)
    X, y = toy(regression=chosen.task == "regression")
    lam = 0.02

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        scores = X @ w
        value = np.mean([chosen.value(t, s) for t, s in zip(y, scores, strict=True)])
        slopes = np.array([chosen.derivative(t, s) for t, s in zip(y, scores, strict=True)])
        return value + lam / 2 * w @ w, X.T @ slopes / len(y) + lam * w

    found = minimize(
        objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"ftol": 1e-16, "gtol": 1e-12}
    )
    outcome = dualgap.fit(X, y, solver="dcd", loss=loss, lam=lam, tol=1e-10, max_epochs=100_000)
    assert outcome.converged
    assert found.fun == pytest.approx(outcome.certificate.primal, rel=1e-9)
    np.testing.assert_allclose(outcome.coef, found.x, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "absolute", "epsilon-insensitive:epsilon=0.2"])
def test_boxed_losses_against_an_exact_qp(loss: str) -> None:
    """The dual of a boxed loss is a least-squares problem with bounds, which scipy solves by an active-set
    method.

    With beta = p - q, p and q in the box, max y'(p - q) - eps 1'(p + q) - |X'(p - q)|^2 / (2 lam N) is, but
    for a constant, min |A v - r|^2 for the Cholesky factor of a slightly regularised Hessian; the tiny ridge
    changes the optimum by less than the tolerance below.
    """
    chosen = dualgap.core.losses.make_loss(loss)
    regression = chosen.task == "regression"
    X, y = toy(n=30, d=4, regression=regression)
    lam, n = 0.05, len(y)
    epsilon = getattr(chosen, "epsilon", 0.0)
    if regression:
        design, gain = np.hstack([X.T, -X.T]), np.concatenate([y - epsilon, -y - epsilon])
    else:
        design, gain = X.T * y, np.ones(n)
    hessian = design.T @ design / (lam * n) + 1e-9 * np.eye(gain.size)
    factor = np.linalg.cholesky(hessian)
    exact = lsq_linear(
        factor.T, np.linalg.solve(factor, gain), bounds=(0, 1), method="bvls", tol=1e-14, max_iter=10_000
    )
    v = exact.x
    optimum = (gain @ v - v @ (design.T @ (design @ v)) / (2 * lam * n)) / n
    outcome = dualgap.fit(X, y, solver="dcd", loss=loss, lam=lam, tol=1e-9, max_epochs=1_000_000)
    assert outcome.converged
    assert outcome.certificate.primal == pytest.approx(optimum, rel=1e-7)


def test_hard_case_where_the_optimum_is_a_linear_program() -> None:
    """As lam -> 0 least absolute deviations tends to a linear program, solved here by an independent code."""
    X, y = toy(n=25, d=3, regression=True)
    n, d = X.shape
    cost = np.concatenate([np.zeros(d), np.full(n, 1 / n)])
    rows = np.block([[X, -np.eye(n)], [-X, -np.eye(n)]])
    bounds = Bounds(np.concatenate([np.full(d, -np.inf), np.zeros(n)]), np.inf)
    program = milp(cost, constraints=LinearConstraint(rows, ub=np.concatenate([y, -y])), bounds=bounds)
    outcome = dualgap.fit(X, y, solver="dcd", loss="absolute", lam=1e-4, tol=1e-7, max_epochs=1_000_000)
    w = outcome.coef
    assert outcome.converged
    assert (
        program.fun
        <= outcome.certificate.primal
        <= program.fun + 1e-4 / 2 * (np.abs(program.x[:d]) ** 2).sum() * 1.001
    )
    assert np.mean(np.abs(X @ w - y)) >= program.fun - 1e-12


def test_augmented_bias_is_a_constant_column() -> None:
    X, y = toy()
    with_column = np.hstack([X, np.full((len(y), 1), 2.0)])
    apart = dualgap.fit(X, y, solver="dcd", C=1.0, tol=1e-10, bias="augmented", rho=2.0)
    inside = dualgap.fit(with_column, y, C=1.0, tol=1e-10)
    assert apart.certificate.primal == pytest.approx(inside.certificate.primal, rel=1e-9)
    assert apart.intercept == pytest.approx(2.0 * inside.coef[-1], abs=1e-4)


@pytest.mark.parametrize("kind", ["C", "lam"])
def test_weights_are_multiplicities(kind: str) -> None:
    X, y = toy(n=40)
    weight = np.random.default_rng(0).integers(0, 4, size=len(y)).astype(float)
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    how = {"C": 0.7} if kind == "C" else {"lam": 0.03}
    weighted = dualgap.fit(X, y, solver="dcd", sample_weight=weight, tol=1e-10, **how)
    written_out = dualgap.fit(X[repeated], y[repeated], tol=1e-10, **how)
    assert weighted.certificate.primal == pytest.approx(written_out.certificate.primal, rel=1e-9)
    np.testing.assert_allclose(weighted.coef, written_out.coef, atol=1e-4)


def test_a_row_of_weight_zero_is_absent_bit_for_bit() -> None:
    X, y = toy(n=40)
    weight = np.ones(len(y))
    weight[::3] = 0
    kept = weight > 0
    with_zeros = dualgap.fit(X, y, solver="dcd", C=1.0, tol=1e-6, sample_weight=weight)
    without = dualgap.fit(X[kept], y[kept], C=1.0, tol=1e-6)
    np.testing.assert_allclose(with_zeros.coef, without.coef, rtol=1e-12)
    assert np.all(with_zeros.dual[~kept] == 0)


def test_pg_tol_stops_by_the_range_of_projected_gradients() -> None:
    X, y = toy()
    loose = dualgap.fit(X, y, solver="dcd", C=1.0, tol=0.0, pg_tol=1e-2, record_every=80, max_epochs=100_000)
    tight = dualgap.fit(X, y, solver="dcd", C=1.0, tol=0.0, pg_tol=1e-5, record_every=80, max_epochs=100_000)
    assert loose.reason.name == tight.reason.name == "pg_tol"
    assert tight.certificate.relative_gap < loose.certificate.relative_gap
    # at the end no row wants to move by more than pg_tol
    score = X @ tight.coef
    violation = [
        LOSSES["hinge"]().dual_subdifferential(t, s, a) for t, s, a in zip(y, score, tight.dual, strict=True)
    ]
    assert max(max(left, -right) for left, right in violation) <= 1e-4


def test_same_seed_same_bits_other_seed_other_path() -> None:
    X, y = toy()
    first, again, other = (
        dualgap.fit(X, y, solver="dcd", C=1.0, tol=1e-4, seed=seed, record_every=80) for seed in (1, 1, 2)
    )
    assert first.coef.tobytes() == again.coef.tobytes()
    assert first.dual.tobytes() == again.dual.tobytes()
    assert [r.certificate for r in first.trace] == [r.certificate for r in again.trace]
    assert other.coef.tobytes() != first.coef.tobytes()


def test_how_the_work_is_cut_makes_no_difference() -> None:
    from dualgap.core.problem import Problem
    from dualgap.data.sources import view
    from dualgap.solvers.dual.dcd import DCD

    X, y = toy()
    problem = Problem(view(X, y), LOSSES["hinge"](), 0.01)
    solver = DCD(seed=5)

    def run(budgets: list[int]) -> object:
        state = solver.start(problem, None)
        for budget in budgets:
            end = state.counts.visits + budget
            while state.counts.visits < end:
                state, _ = solver.step(problem, state, end - state.counts.visits, None)
        return state

    from support.states import assert_same

    rng = np.random.default_rng(0)
    cuts = np.diff(
        np.concatenate([[0], np.sort(rng.choice(np.arange(1, 4000), size=900, replace=False)), [4000]])
    )
    whole, pieces = run([4000]), run([int(cut) for cut in cuts])
    assert_same(whole.at(paused=False), pieces.at(paused=False))


def words(n: int = 4000, d: int = 800, seed: int = 3) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows of a few frequent and many rare columns, of length 1, with labels that a tenth of them
    contradicts.
    """
    rng = np.random.default_rng(seed)
    columns = (d * rng.random((n, 20)) ** 3).astype(int)
    X = sp.csr_matrix((np.ones(20 * n), columns.ravel(), np.arange(0, 20 * n + 1, 20)), shape=(n, d))
    X.sum_duplicates()
    X = sp.csr_matrix(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))))
    y = np.sign(X @ rng.normal(size=d))
    return X, np.where(rng.random(n) < 0.1, -y, y)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_a_first_epoch_sees_ahead(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = words()

    def gap() -> float:
        return dualgap.fit(
            X, y, solver="dcd", loss=loss, C=0.05, tol=0, max_epochs=2
        ).certificate.relative_gap

    ahead = gap()
    monkeypatch.setattr(dcd, "_foresight", lambda problem: 0.0)
    assert ahead < 0.9 * gap()


def test_foresight_is_for_cold_starts_and_their_first_epoch() -> None:
    X, y = words(500)
    cold = dualgap.fit(X, y, solver="dcd", C=0.05, tol=0, max_epochs=0.5)
    assert cold.run.state.sweeps.cursor.foresight > 0
    warm = dualgap.fit(
        X, y, solver="dcd", C=0.06, tol=0, max_epochs=0.5, warm=Point(cold.coef, 0.0, cold.dual)
    )
    assert warm.run.state.sweeps.cursor.foresight == 0
    later = dualgap.fit(X, y, solver="dcd", C=0.05, tol=0, max_epochs=1.5)
    assert later.run.state.sweeps.cursor.foresight == 0


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_estimates_of_the_gap_are_of_the_right_size(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = words()
    ratios: list[float] = []
    corrected = GapEstimate.corrected

    def seen(estimate: GapEstimate, total: float, news: Any) -> GapEstimate:
        if estimate.gap < np.inf:
            ratios.append(total * (news.primal - news.dual) / estimate.gap)
        return corrected(estimate, total, news)

    monkeypatch.setattr(GapEstimate, "corrected", seen)
    for C in (0.05, 1.0):
        dualgap.fit(X, y, solver="dcd", loss=loss, C=C, tol=1e-6)
    assert len(ratios) >= 3
    assert min(ratios) > 0.02
    assert max(ratios) < 20


@pytest.mark.parametrize("trust", [1e-9, 1e9])
def test_an_estimate_never_decides(trust: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates that are much too small cost certificates, those much too large cost visits: the proof is as
    good.
    """
    X, y = words()
    monkeypatch.setattr(
        GapEstimate, "corrected", lambda self, total, news: self._replace(correction=trust, tol=np.inf)
    )
    outcome = dualgap.fit(X, y, solver="dcd", C=1.0, tol=1e-4)
    assert outcome.converged
    best = dualgap.fit(X, y, solver="dcd", C=1.0, tol=1e-8).certificate
    assert outcome.certificate.dual <= best.primal
    assert best.primal <= outcome.certificate.primal <= (1 + 1e-4) * best.primal


@pytest.mark.parametrize("budget", [1, 7, 1000, 5003])
def test_active_rows_are_those_that_are_not_shrunk(budget: int) -> None:
    X, y = words(1500)
    weight = np.ones(1500)
    weight[::11] = 0.0
    task = dualgap.fit(X, y, sample_weight=weight, solver="dcd", C=0.3, tol=0, max_epochs=0.01)
    problem, solver = task.problem, task.solver
    state = solver.start(problem, None)
    for _ in range(min(40_000 // budget, 3000)):
        state, _ = solver.step(problem, state, budget, None)
        sweeps, cursor = state.sweeps, state.sweeps.cursor
        here = sweeps.active_rows[: cursor.active]
        here = here[sweeps.cooldown[here] != SHRUNK]
        assert sorted(here) == np.flatnonzero(sweeps.cooldown < ABSENT).tolist()
        assert here.size == cursor.active - cursor.shrunk
        scheduled = sweeps.schedule[: cursor.scheduled]
        assert np.unique(scheduled).size == scheduled.size
        if cursor.position >= 0:  # rows that are still to be visited have cooled down
            assert np.all(sweeps.cooldown[scheduled[cursor.position :]] & EPOCHS_LEFT == 0)


def test_a_shrunk_row_that_a_scan_passes_over_is_optimal() -> None:
    """Its score cannot have changed enough since the anchor."""
    X, y = toy(n=3000, d=20)
    task = dualgap.fit(X, y, solver="dcd", C=0.01, tol=0, max_epochs=0.01)
    problem, solver = task.problem, task.solver
    state, passed = solver.start(problem, None), 0
    for _ in range(60):
        before = state.counts.visits
        state, _ = solver.step(problem, state, 20_000, None)
        sweeps = state.sweeps
        shrunk = sweeps.cooldown == SHRUNK
        moved = np.linalg.norm(state.w - sweeps.anchor)
        safe = shrunk & (sweeps.slack - moved * np.sqrt(problem.source.squared_norms) > 1e-6)  # float32
        scores = X @ state.w
        slopes = [
            problem.loss.dual_subdifferential(y[i], scores[i], state.beta[i]) for i in np.flatnonzero(safe)
        ]
        assert all(low < 0.0 < high for low, high in slopes)
        passed += int(safe.sum())
        if state.counts.visits == before:
            break
    assert passed > 0
