"""Decomposition and SMO: the pair step, the true bias, and the hard margin with its proof."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from sklearn.svm import SVC

import dualgap
from dualgap.cli.train import command as train
from dualgap.core.bias import make_bias
from dualgap.core.losses import LOSSES, make_loss
from dualgap.core.problem import Problem
from dualgap.data.sources import view
from dualgap.files import write_svmlight
from dualgap.solvers.dual import separability
from dualgap.solvers.dual.decomposition import Decomposition
from dualgap.solvers.dual.separability import decided, solve_program
from dualgap.solvers.dual.smo import SMO
from dualgap.solvers.dual.working_set import WorkingSetSolver, pair_step
from support.problems import off_centre
from support.states import assert_same

SOLVERS = ["decomposition", "smo"]


def test_the_pair_step_is_the_best_feasible_one() -> None:
    """Against a grid: the dual along v_i + t, v_j - t is a parabola."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        difference, curvature = rng.exponential(), rng.exponential() + 0.1
        v_i, v_j = rng.random(2)
        high_i, low_j = v_i + rng.exponential(), v_j - rng.exponential()
        step = pair_step(difference, curvature, v_i, high_i, v_j, low_j)
        grid = np.linspace(0.0, min(high_i - v_i, v_j - low_j), 2001)
        gain = difference * grid - 0.5 * curvature * grid**2
        assert 0.0 <= step <= grid[-1] + 1e-15
        assert difference * step - 0.5 * curvature * step**2 >= gain.max() - 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_against_svc(solver: str, C: float) -> None:
    X, y = off_centre()
    model = SVC(kernel="linear", C=C, tol=1e-10).fit(X, y)
    outcome = dualgap.fit(X, y, C=C, bias="exact", solver=solver, tol=1e-8, max_epochs=None, time_limit=60)
    w, b = model.coef_[0], model.intercept_[0]
    theirs = 0.5 * w @ w + C * np.maximum(0, 1 - y * (X @ w + b)).sum()
    assert outcome.converged
    assert outcome.certificate.dual <= theirs <= outcome.certificate.primal * (1 + 1e-5)
    np.testing.assert_allclose(outcome.coef, w, atol=1e-2)


@pytest.mark.parametrize("solver", SOLVERS)
def test_far_from_the_origin(solver: str) -> None:
    """Pairs see only differences of rows, so an offset of all rows costs nothing."""
    X = np.array([[1e4], [1e4 + 1], [1e4 + 2], [1e4 + 3]])
    outcome = dualgap.fit(X, [-1, -1, 1, 1], C=100.0, bias="exact", solver=solver, tol=1e-4)
    assert outcome.converged
    assert outcome.coef[0] == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_are_multiplicities(solver: str) -> None:
    X, y = off_centre(n=30)
    weight = np.random.default_rng(0).integers(0, 3, size=30)
    repeated = np.repeat(np.arange(30), weight)
    options = {"C": 0.5, "bias": "exact", "solver": solver, "tol": 1e-8, "max_epochs": None, "time_limit": 60}
    weighted = dualgap.fit(X, y, sample_weight=weight, **options)
    written_out = dualgap.fit(X[repeated], y[repeated], **options)
    assert weighted.certificate.primal == pytest.approx(written_out.certificate.primal, rel=1e-7)


@pytest.mark.parametrize("solver", [Decomposition(q=6), SMO()])
def test_sums_and_boxes_hold_and_cutting_the_work_makes_no_difference(solver: WorkingSetSolver) -> None:
    X, y = off_centre()
    problem = Problem(view(X, y), LOSSES["hinge"](), 0.01, dualgap.core.bias.ExactBias())

    def run(budget: int) -> object:
        state = solver.start(problem, None)
        ended = None
        while state.counts.visits < 6000 and ended is None:
            state, (_, ended, *_) = solver.step(problem, state, min(budget, 6000 - state.counts.visits), None)
            v, w, _ = state.variables
            assert abs(v.sum()) <= 1e-12
            assert np.all((v * y >= 0) & (v * y <= 1))
            np.testing.assert_allclose(w, problem.scale * X.T @ v, atol=1e-10)
        return state

    assert_same(run(6000), run(1))
    assert_same(run(6000), run(777))


@pytest.mark.parametrize("solver", SOLVERS)
def test_hard_margin(solver: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0.2, 1, -1)
    outcome = dualgap.fit(
        X, y, C=np.inf, bias="exact", solver=solver, tol=1e-6, max_epochs=None, time_limit=60
    )
    model = SVC(kernel="linear", C=1e10, tol=1e-8).fit(X, y)
    assert outcome.converged
    assert (y * (X @ outcome.coef + outcome.intercept)).min() >= 1.0
    assert outcome.certificate.primal == pytest.approx(0.5 * outcome.coef @ outcome.coef, rel=1e-9)
    assert outcome.certificate.primal == pytest.approx(0.5 * np.sum(model.coef_**2), rel=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_data_that_are_not_separable_are_reported_with_a_proof(solver: str) -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    outcome = dualgap.fit(
        X, [1, -1, 1, -1], C=np.inf, bias="exact", solver=solver, max_epochs=None, time_limit=60
    )
    assert outcome.reason.name == "not separable"
    assert not outcome.converged
    assert outcome.certificate.primal == np.inf
    # the proof: a combination of the rows of each class, almost the same point
    v = outcome.run.state.variables.v
    assert abs(v.sum()) <= 1e-6 * np.abs(v).sum()
    assert abs(v @ X[:, 0]) <= 1e-6 * 3.0 * np.abs(v).sum()


def test_auto_takes_the_hard_margin_to_a_solver_that_can() -> None:
    outcome = dualgap.fit([[0.0], [2.0]], [-1, 1], C=np.inf, bias="exact")
    assert outcome.solver.name == "decomposition"
    assert outcome.coef[0] == pytest.approx(1.0, rel=1e-6)
    assert outcome.intercept == pytest.approx(-1.0, rel=1e-6)


@pytest.mark.parametrize("C", [1.0, np.inf])
@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_may_leave_one_class_or_one_row(solver: str, C: float) -> None:
    """A constant score of the right sign fits such rows: the bias is free."""
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((12, 3)), np.where(np.arange(12) % 2, 1.0, -1.0)
    for weight in (y > 0, y < 0, np.arange(12) == 3):
        outcome = dualgap.fit(X, y, C=C, bias="exact", solver=solver, sample_weight=1.0 * weight)
        assert outcome.reason.name == "gap"
        assert outcome.certificate.primal == 0.0
        assert np.all(y[weight] * (X[weight] @ outcome.coef + outcome.intercept) >= 1.0)


@pytest.mark.parametrize(("solver", "options"), [("smo", {}), ("decomposition", {"q": 4})])
def test_the_default_limit_leaves_room_for_as_many_steps_as_there_are_rows(
    solver: str, options: dict[str, int]
) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 10))
    y = np.where(X @ rng.standard_normal(10) + rng.standard_normal(1500) > 0, 1.0, -1.0)
    outcome = dualgap.fit(X, y, bias="exact", solver=solver, **options)
    assert outcome.converged
    assert outcome.trace[-1].updates >= 1500


@pytest.mark.parametrize("solver", [Decomposition(), SMO()], ids=lambda solver: str(solver.name))
def test_a_solver_that_can_change_nothing_more_says_so(solver: WorkingSetSolver) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((9, 2)), np.where(np.arange(9) % 3, 1.0, -1.0)
    problem = Problem(view(X, y), make_loss("hinge"), 0.05, make_bias("exact", 1.0))
    state = solver.start(problem, None)
    for _ in range(300):
        state, status = solver.step(problem, state, 1000, None)
        if status.ended is not None:
            break
    assert status.ended is not None
    assert status.ended.name == "stalled"
    assert problem.certify(solver.point(problem, state)).relative_gap <= 1e-12
    visits = state.counts.visits
    assert solver.step(problem, state, 1000, None)[0].counts.visits == visits


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("solver", SOLVERS)
def test_without_a_bias_it_is_the_optimum_of_dcd(solver: str, C: float) -> None:
    X, y = off_centre()
    X[3] = 0.0  # an empty row
    outcome = dualgap.fit(X, y, C=C, solver=solver, tol=1e-7, max_epochs=None, time_limit=60)
    reference = dualgap.fit(X, y, C=C, solver="dcd", tol=1e-8)
    assert outcome.converged
    assert outcome.intercept == 0.0
    assert outcome.certificate.primal == pytest.approx(reference.certificate.primal, rel=2e-7)


@pytest.mark.parametrize("solver", [Decomposition(q=6), SMO()], ids=lambda solver: str(solver.name))
@pytest.mark.parametrize("loss", ["hinge", "hard-margin"])
def test_without_a_bias_cutting_the_work_makes_no_difference(solver: WorkingSetSolver, loss: str) -> None:
    """Also where the linear program of the hard margin is asked, in the tenth epoch."""
    X, y = off_centre(n=40)
    problem = Problem(view(X, y), LOSSES["hinge"](), 0.01)
    if loss == "hard-margin":
        hard = problem.loss.hard_margin
        assert hard is not None
        problem = Problem(view(X, y), hard, 0.01)

    def run(budget: int) -> object:
        state = solver.start(problem, None)
        ended = None
        while state.counts.visits < 1500 and ended is None:
            state, (_, ended, *_) = solver.step(problem, state, min(budget, 1500 - state.counts.visits), None)
        return state

    assert_same(run(1500), run(1))
    assert_same(run(1500), run(97))


@pytest.mark.parametrize("solver", SOLVERS)
def test_hard_margin_without_a_bias(solver: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0.0, 1, -1)
    outcome = dualgap.fit(X, y, C=np.inf, solver=solver, tol=1e-6, max_epochs=None, time_limit=60)
    assert outcome.converged
    assert (y * (X @ outcome.coef)).min() >= 1.0
    soft = dualgap.fit(X, y, C=1e7, tol=1e-7)
    assert outcome.certificate.primal == pytest.approx(soft.certificate.primal, rel=1e-4)


@pytest.mark.parametrize("bias", ["none", "exact"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_linear_program_decides_where_the_dual_grows_too_slowly(solver: str, bias: str) -> None:
    """Many rows of few columns, a third of the labels at random, as in a1a: no verdict in 1,000 epochs
    without it.
    """
    rng = np.random.default_rng(3)
    X = np.where(rng.random((300, 40)) < 0.3, 1.0, 0.0)
    y = np.where((X[:, 0] > 0) ^ (rng.random(300) < 0.3), 1.0, -1.0)
    outcome = dualgap.fit(X, y, C=np.inf, bias=bias, solver=solver)
    assert outcome.reason.name == "not separable", outcome.reason
    assert outcome.epochs < 20
    v = outcome.run.state.variables.v  # the proof: the rows of both classes meet, up to rounding
    assert np.all(v * y >= 0.0)
    assert np.linalg.norm(v @ X) <= 1e-9 * np.abs(v).sum()
    assert bias == "none" or abs(v.sum()) <= 1e-9 * np.abs(v).sum()


def test_the_linear_program_separates_classes_that_can_be() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 80))
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    weight = (rng.random(60) < 0.9).astype(float)
    hard = LOSSES["hinge"]().hard_margin
    assert hard is not None
    for matrix in (X, sp.csr_array(X)):
        for kind in ("none", "exact"):
            problem = Problem(view(matrix, y, weight), hard, 1 / 60, make_bias(kind, 1.0))
            ray, hyperplane = solve_program(problem)
            assert ray is None
            assert hyperplane is not None
            assert np.all((y * (X @ hyperplane[:-1] + hyperplane[-1]))[weight > 0] > 0.0)
            assert kind == "exact" or hyperplane[-1] == 0.0
            state = decided(problem, Decomposition().start(problem, None))
            assert problem.evaluate(Decomposition().point(problem, state)).primal < np.inf


def test_that_separability_is_not_decided_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(separability, "MAX_ENTRIES", 10)
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 30)), np.where(rng.random(200) < 0.5, 1.0, -1.0)
    outcome = dualgap.fit(X, y, C=np.inf, max_epochs=15)
    assert outcome.reason.name == "max_epochs"
    assert any("separable is not decided" in line for line in outcome.story)


def test_the_hard_margin_on_the_command_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0.2, 1.0, -1.0)
    file, model = tmp_path / "rows.svm", tmp_path / "rows.model"
    write_svmlight(file, X, y)
    runner = CliRunner()
    trained = runner.invoke(train, [str(file), "--C", "inf", "--bias", "exact", "-o", str(model)])
    assert trained.exit_code == 0, trained.output
    found = dualgap.Model.load(model)
    assert np.isinf(found.C)
    assert (y * (X @ found.coef.ravel() + found.intercept)).min() >= 1.0
    assert found.verify(X, y).verdict == "true"
    planned = runner.invoke(train, [str(file), "--C", "inf", "--bias", "exact", "--plan"])
    assert planned.exit_code == 0, planned.output
    assert "hard margin" in planned.output
