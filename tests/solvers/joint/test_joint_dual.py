"""``joint-dual``: every visit raises the dual value, and W and b are those of the duals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.core.bias import AugmentedBias, Bias, ExactBias, NoBias
from dualgap.core.joint.losses import CrammerSinger, Multinomial
from dualgap.core.joint.problem import JointProblem
from dualgap.core.problem import Point
from dualgap.data.sources import view
from dualgap.solvers.joint.dual import JointDual, State
from support.states import assert_same

BIASES: list[Bias] = [NoBias(), AugmentedBias(0.7), ExactBias()]

every_loss = pytest.mark.parametrize("loss", [Multinomial(), CrammerSinger()], ids=lambda loss: loss.name)
every_bias = pytest.mark.parametrize("bias", BIASES, ids=lambda bias: bias.kind)


def problem_of(loss: Any, bias: Bias, n: int = 40, K: int = 4) -> JointProblem:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 5)) * (rng.random((n, 5)) < 0.7)
    X[7] = 0.0
    y = np.append(np.arange(K), rng.integers(0, K, n - K)).astype(float)
    weight = np.append(np.ones(K), rng.choice([0.0, 1.0, 0.5, 3.0], n - K))
    return JointProblem(view(sp.csr_array(X), y, weight), loss, 0.02, bias, classes=K)


def stepped(problem: JointProblem, visits: int, budget: int) -> State:
    solver = JointDual(seed=2)
    state = solver.start(problem, None)
    while state.counts.visits < visits:
        state, _ = solver.step(problem, state, min(budget, visits - state.counts.visits), None)
    return state


@every_loss
@every_bias
def test_budgets_make_no_difference(loss: Any, bias: Bias) -> None:
    problem = problem_of(loss, bias)
    assert_same(stepped(problem, 173, 173), stepped(problem, 173, 7))


@every_loss
@pytest.mark.parametrize("bias", BIASES[:2], ids=lambda bias: bias.kind)
def test_every_visit_raises_the_dual_value(loss: Any, bias: Bias) -> None:
    problem, solver = problem_of(loss, bias), JointDual(seed=2)
    state, before = solver.start(problem, None), 0.0
    for _ in range(120):
        state, _ = solver.step(problem, state, 1, None)
        found = problem.evaluate(solver.point(problem, state))
        assert found.dual >= before - 1e-12
        assert state.w == pytest.approx(found.w_of_dual, abs=1e-12)
        if bias.kind == "augmented":
            assert state.b == pytest.approx(found.b, abs=1e-12)
        before = found.dual
    assert before > 0.0
    assert np.abs(state.beta.sum(axis=1)).max() < 1e-15
    assert not state.beta[problem.source.weight == 0.0].any()


@every_loss
def test_under_a_free_bias_b_is_the_centre_and_the_balance_of_the_duals(loss: Any) -> None:
    problem = problem_of(loss, ExactBias())
    state = stepped(problem, 333, 20)
    z = problem.source.weight @ state.beta / problem.total_weight
    assert state.b == pytest.approx(state.centre + z / state.mu, abs=1e-10)
    long = stepped(problem, 40_000, 5000)
    z = problem.source.weight @ long.beta / problem.total_weight
    assert np.abs(z).max() < 1e-3
    gap = problem.certify(Point(long.w, long.b, long.beta)).relative_gap
    assert gap < 1e-2


def clouds(n: int = 300, d: int = 8, K: int = 24) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    y = np.append(np.arange(K), rng.integers(0, K, n - K))
    return rng.normal(size=(K, d))[y] + 0.4 * rng.normal(size=(n, d)), y


def test_idle_classes_are_those_that_a_step_leaves_at_0() -> None:
    loss, rng = CrammerSinger(), np.random.default_rng(0)
    idle, found = np.empty(6), 0
    for _ in range(300):
        p = rng.random(6) * (rng.random(6) < 0.4)
        p = p / p.sum() if p.any() else np.eye(6)[2]
        scores, q, y = rng.normal(size=6), rng.choice([0.01, 0.3, 4.0]), int(rng.integers(6))
        beta = np.eye(6)[y] - p
        beta[y] = -(beta.sum() - beta[y])
        left = loss.row_idle(y, scores, beta, idle)
        assert left == 6 - idle.sum() >= 1
        out = np.empty(6)
        loss.row_step(y, scores, beta, q, out)
        assert not out[idle == 1.0].any()
        if left == 1:
            assert np.abs(out - p).max() < 1e-12
        found += int(idle.sum())
    assert found > 300


def test_few_classes_of_a_row_are_read_where_few_matter() -> None:
    X, y = clouds()
    outcome = dualgap.fit(X, y, loss="crammer-singer", C=1.0, solver="joint-dual", tol=1e-4)
    assert outcome.converged
    last = outcome.trace[-1]
    per_visit = last.entries / (last.visits * X.shape[1])  # of 24 classes read, and some written
    assert per_visit < 10.0


@every_bias
def test_without_news_all_classes_come_back(bias: Bias) -> None:
    problem = problem_of(CrammerSinger(), bias, n=60, K=9)
    solver = JointDual(seed=2)
    state, listed, statuses = solver.set_target(solver.start(problem, None), 1e-9), 0, set()
    for _ in range(10_000):
        state, status = solver.step(problem, state, 20, None)
        statuses.add(status.evaluate)
        listed = max(listed, int(np.count_nonzero(state.sweeps.listed)))
    assert listed > 0
    assert "convenient" in statuses or bias.free
    assert problem.certify(solver.point(problem, state)).relative_gap < 1e-6


@every_bias
def test_a_class_that_was_dropped_wrongly_is_restored_by_an_evaluation(bias: Bias) -> None:
    problem = problem_of(CrammerSinger(), bias, n=60, K=9)
    solver, state = JointDual(seed=2), stepped(problem, 240, 240)
    state.sweeps.listed[:] = 1  # of every row its own class alone
    state.sweeps.classes[:, 0] = problem.source.y
    news = problem.evaluate(solver.point(problem, state))
    state, _ = solver.step(problem, state, 1, news)
    wanted = [
        problem.loss.row_idle(int(label), scores, beta, np.empty(9))
        for label, scores, beta in zip(problem.source.y, news.scores, state.beta, strict=True)
    ]
    room, active = state.sweeps.classes.shape[1], state.sweeps.active_rows[: state.sweeps.cursor.active]
    for i in active:
        assert wanted[i] > 1
        assert state.sweeps.listed[i] == 0 or wanted[i] - 1 <= state.sweeps.listed[i] <= room
    present = np.flatnonzero(problem.source.weight)
    assert {int(i) for i in present if wanted[i] > 1} <= {int(i) for i in active}


def test_a_start_at_duals_that_are_not_feasible_is_one_at_0() -> None:
    problem = problem_of(Multinomial(), NoBias())
    wrong = np.ones((40, 4))
    state = JointDual().start(problem, Point(np.zeros((5, 4)), np.zeros(4), wrong))
    assert not state.beta.any()


def test_the_solver_has_its_options() -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    with pytest.raises(dualgap.InputError, match="has no option 'shrinking'"):
        dualgap.fit(X, y, loss="multinomial", solver="joint-dual", shrinking=True)
    options: dict[str, Any] = {"loss": "multinomial", "max_visits": 150, "tol": 0.0, "output": "last"}
    options["solver"] = "joint-dual"
    one, two = (dualgap.fit(X, y, seed=seed, **options) for seed in (0, 1))
    assert not np.array_equal(one.coef, two.coef)
