"""Stochastic gradient descent against its two algorithms written out, and against the theorems proved of
them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import dualgap
from dualgap.core.bias import AugmentedBias, ExactBias, NoBias
from dualgap.core.losses import LOSSES, make_loss
from dualgap.core.problem import Point, Problem
from dualgap.data.sources import view
from dualgap.runtime.errors import InputError
from dualgap.solvers import SOLVERS, can_have, can_train
from dualgap.solvers.primal.descent import last_iterate
from dualgap.solvers.primal.preconditioner import inverse_of
from dualgap.solvers.primal.rates import RATES
from dualgap.solvers.primal.sgd import SGD
from support.problems import small_problem

BIASES = {"none": NoBias(), "augmented": AugmentedBias(0.7), "exact": ExactBias()}
FEW = ("hinge", "squared", "logistic")


problem = partial(small_problem, n=24, d=4, lam=0.1, seed=0, density=0.8, intercept=0.3)


def dense(task: Problem) -> np.ndarray:
    rows: Any = task.source.rows  # type: ignore[attr-defined]
    return np.asarray(rows.matrix)


def shares(task: Problem) -> np.ndarray:
    """What multiplies the loss of each row."""
    return task.source.weight * (task.epoch_size / task.total_weight)


def longest(task: Problem, inverse: np.ndarray | None = None) -> float:
    """M^2, with the constant feature where there is one."""
    X = dense(task)
    square = np.einsum("ij,jk,ik->i", X, np.eye(X.shape[1]) if inverse is None else inverse, X)
    return float(np.max(shares(task) * (square + task.bias.rho**2)))


class Written(NamedTuple):
    """The models of the algorithms as they are written, before each step and at the end."""

    w: list[np.ndarray]
    b: list[float]
    mean: np.ndarray
    mean_b: float


def written(
    task: Problem,
    order: Any,
    eta: Any,
    *,
    inverse: np.ndarray | None = None,
    bias_step: float = 0.01,
    A: float = 0.0,
    T0: int = 1,
    start: tuple[np.ndarray, float] | None = None,
) -> Written:
    """Algorithms 2.1 and 5.1, with dense vectors; a bias that is not regularised steps by a part of eta."""
    X, y, share = dense(task), task.source.y, shares(task)
    S_inverse = np.eye(X.shape[1]) if inverse is None else inverse
    square = longest(task, inverse)
    w, b = (np.zeros(X.shape[1]), 0.0) if start is None else start
    mean, mean_b, r = np.zeros_like(w), 0.0, 0.0
    ws, bs = [w], [b]
    for t, i in enumerate(order, 1):
        gradient = share[i] * task.loss.derivative(y[i], X[i] @ w + b)
        if t >= T0:
            r_before, r = r, r + eta(t) - A * square * eta(t) ** 2 / 2
            mean = r_before / r * mean + (r - r_before) / r * w
            mean_b = r_before / r * mean_b + (r - r_before) / r * b
        w = w - eta(t) * S_inverse @ (task.lam * w + gradient * X[i])
        if task.bias.kind == "augmented":
            b = b - eta(t) * (task.lam * b + gradient * task.bias.rho**2)
        elif task.bias.kind == "exact":
            b = b - eta(t) * bias_step * gradient
        ws.append(w)
        bs.append(b)
    return Written(ws, bs, mean, mean_b)


def formula(kind: str, eta0: float, lam: float) -> Any:
    return {
        "constant": lambda t: eta0,
        "inverse": lambda t: eta0 / t,
        "sqrt": lambda t: eta0 / math.sqrt(t),
        "bottou": lambda t: eta0 / (1.0 + lam * eta0 * t),
    }[kind]


def in_order(task: Problem, steps: int) -> list[int]:
    """The rows of order=given."""
    rows = np.flatnonzero(task.source.weight)
    return [int(rows[t % rows.size]) for t in range(steps)]


def run(solver: SGD, task: Problem, steps: int, warm: Point | None = None) -> Any:
    return solver.step(task, solver.start(task, warm), steps, None)[0]


def last(state: Any) -> tuple[np.ndarray, float]:
    """The last iterate, whatever the solver hands back."""
    return last_iterate(state)


def assert_close(found: Any, expected: Any, rtol: float = 1e-10) -> None:
    size = max(1e-3, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=rtol * size)


class TestAsWritten:
    @pytest.mark.parametrize("loss", LOSSES)
    def test_every_loss_rate_and_bias(self, loss: str) -> None:
        for kind, bias in itertools.product(RATES, BIASES):
            task = problem(loss, bias=BIASES[bias])
            steps = 2 * task.epoch_size + 5
            A = task.loss.zhang_pairs[0][0]
            solver = SGD(eta0=0.01, learning_rate=kind, average=True, order="given", bias_step=0.3, T0=4)
            state = run(solver, task, steps)
            expected = written(
                task, in_order(task, steps), formula(kind, 0.01, task.lam), bias_step=0.3, A=A, T0=4
            )
            assert_close(last(state)[0], expected.w[-1])
            assert_close(last(state)[1], expected.b[-1])
            point = solver.point(task, state)
            assert_close(point.w, expected.mean)
            assert_close(point.b, expected.mean_b)

    def test_the_default_rate_is_bottous_and_the_default_inverse_rate_is_pegasos(self) -> None:
        task = problem()
        steps = 2 * task.epoch_size
        found = last(run(SGD(eta0=0.3, order="given"), task, steps))[0]
        assert_close(found, written(task, in_order(task, steps), formula("bottou", 0.3, task.lam)).w[-1])
        found = last(run(SGD(learning_rate="inverse", order="given"), task, steps))[0]
        assert_close(found, written(task, in_order(task, steps), lambda t: 1.0 / (task.lam * t)).w[-1])

    @pytest.mark.parametrize("order", ["permutation", "random"])
    def test_the_order_is_that_of_the_picks(self, order: str) -> None:
        task, solver = problem(), SGD(eta0=0.2, order=order, seed=5)
        state, picks = solver.start(task, None), []
        for _ in range(3):
            state, _ = solver.step(task, state, task.epoch_size, None)
            picks.append(state.order.picks.copy())
        assert len({tuple(epoch) for epoch in picks}) == 3
        assert all(set(epoch) <= set(np.flatnonzero(task.source.weight)) for epoch in picks)
        if order == "permutation":
            assert all(sorted(epoch) == sorted(picks[0]) for epoch in picks)
        expected = written(task, np.concatenate(picks), formula("bottou", 0.2, task.lam))
        assert_close(last(state)[0], expected.w[-1])

    @pytest.mark.slow
    def test_sparse_rows_make_the_same_steps(self) -> None:
        for preconditioner in ("features", np.diag([1.0, 2.0, 3.0, 4.0]) + 0.1):
            solver = SGD(eta0=0.05, average=True, preconditioner=preconditioner)
            points = []
            for layout in (np.asarray, sp.csr_matrix):
                task = problem(layout=layout, bias=ExactBias())
                points.append(solver.point(task, run(solver, task, 100)))
            assert_close(points[1].w, points[0].w)
            assert_close(points[1].b, points[0].b)

    def test_a_warm_start_begins_there(self) -> None:
        for bias in BIASES:
            task = problem(bias=BIASES[bias])
            start = (np.array([1.0, -2.0, 0.5, 0.25]), 0.0 if bias == "none" else 0.4)
            state = run(SGD(eta0=0.1, order="given"), task, 40, Point(*start, None))
            expected = written(task, in_order(task, 40), formula("bottou", 0.1, task.lam), start=start)
            assert_close(last(state)[0], expected.w[-1])
            assert_close(last(state)[1], expected.b[-1])


class TestPreconditioner:
    S = np.array([[2.0, 0.3, 0.0, 0.1], [0.3, 1.0, 0.2, 0.0], [0.0, 0.2, 0.5, 0.1], [0.1, 0.0, 0.1, 3.0]])

    @pytest.mark.slow
    @pytest.mark.parametrize("loss", FEW)
    def test_against_the_algorithm(self, loss: str) -> None:
        diagonal = np.array([0.5, 2.0, 1.0, 8.0])
        for bias, given_S in itertools.product(BIASES, ("features", diagonal, self.S)):
            task = problem(loss, bias=BIASES[bias])
            X, c = dense(task), task.source.weight
            if isinstance(given_S, str):
                inverse = np.diag(1.0 / (c @ (X * X) / c.sum()))
            elif given_S.ndim == 1:
                inverse = np.diag(1.0 / given_S)
            elif bias != "augmented":
                inverse = np.linalg.inv(given_S)
            else:
                continue
            A, steps = task.loss.zhang_pairs[0][0], 2 * task.epoch_size + 3
            solver = SGD(eta0=0.01, learning_rate="sqrt", average=True, order="given", preconditioner=given_S)
            state = run(solver, task, steps)
            eta = formula("sqrt", 0.01, task.lam)
            expected = written(task, in_order(task, steps), eta, inverse=inverse, A=A)
            assert_close(last(state)[0], expected.w[-1])
            assert_close(last(state)[1], expected.b[-1])
            point = solver.point(task, state)
            assert_close(point.w, expected.mean)
            assert_close(point.b, expected.mean_b)

    def test_the_identity_changes_nothing(self) -> None:
        task = problem()
        plain = last(run(SGD(eta0=0.2), task, 100))[0]
        for same in (np.ones(4), np.eye(4), [1, 1, 1, 1]):
            assert_close(last(run(SGD(eta0=0.2, preconditioner=same), task, 100))[0], plain)

    def test_it_undoes_a_scaling_of_the_columns_without_a_regulariser(self) -> None:
        """With S = D^2 and lam = 0 the steps on X D are those on X: w D is unchanged."""
        X, scale = np.random.default_rng(3).normal(size=(20, 3)), np.array([100.0, 1.0, 0.01])
        y = np.where(X[:, 0] + X[:, 1] > 0, 1, -1)
        common: dict[str, Any] = {"lam": 0.0, "solver": "sgd", "eta0": 0.1, "max_epochs": 3, "order": "given"}
        plain = dualgap.fit(X, y, **common)
        scaled = dualgap.fit(X * scale, y, preconditioner=scale**2, **common)
        assert_close(scaled.coef * scale, plain.coef)

    def test_columns_that_are_always_zero_do_no_harm(self) -> None:
        X = np.random.default_rng(3).normal(size=(40, 3))
        X[:, 1] = 0.0
        y = np.where(X[:, 0] + X[:, 2] > 0, 1, -1)
        outcome = dualgap.fit(X, y, lam=0.1, solver="sgd", eta0=0.1, preconditioner="features", max_epochs=20)
        assert outcome.coef[1] == 0.0
        assert outcome.certificate.primal < outcome.problem.value_at_zero

    @pytest.mark.parametrize(
        ("given_S", "complaint"),
        [
            (np.ones(3), r"preconditioner has shape \(3,\); it must be 4 numbers, or 4 x 4"),
            (np.ones((4, 3)), r"shape \(4, 3\)"),
            (np.ones((4, 4, 4)), r"shape \(4, 4, 4\)"),
            (["a", "b", "c", "d"], "it must be 4 numbers"),
            (np.array([1.0, 0.0, 1.0, 1.0]), r"preconditioner\[1\] is 0; it must be positive"),
            (np.array([1.0, 1.0, -2.0, 1.0]), r"preconditioner\[2\] is -2"),
            (np.array([1.0, 1.0, 1.0, np.inf]), r"preconditioner\[3\] is inf"),
            (np.array([np.nan, 1.0, 1.0, 1.0]), r"preconditioner\[0\] is nan"),
            (np.triu(np.ones((4, 4))), "preconditioner is not symmetric"),
            (np.ones((4, 4)), "preconditioner is not positive definite"),
            (-np.eye(4), "preconditioner is not positive definite"),
            (np.diag([1.0, 1.0, 1.0, np.inf]), "preconditioner"),
            (np.full((4, 4), np.nan), "preconditioner"),
            ("squares", "preconditioner='squares' is none of identity, features, and no file"),
        ],
    )
    def test_bad_ones(self, given_S: Any, complaint: str) -> None:
        X, y = np.random.default_rng(0).normal(size=(8, 4)), np.array([1, -1] * 4)
        with pytest.raises(InputError, match=complaint) as error:
            dualgap.fit(X, y, lam=0.1, solver="sgd", eta0=0.1, preconditioner=given_S)
        assert "\n" not in str(error.value)

    def test_from_a_file(self, tmp_path: Path) -> None:
        X, y = np.random.default_rng(0).normal(size=(8, 4)), np.array([1, -1] * 4)
        common: dict[str, Any] = {"lam": 0.1, "solver": "sgd", "eta0": 0.1, "max_epochs": 3}
        for given_S in (np.array([1.0, 2.0, 3.0, 4.0]), self.S):
            expected = dualgap.fit(X, y, preconditioner=given_S, **common).coef
            np.save(tmp_path / "S.npy", given_S)
            np.savetxt(tmp_path / "S.txt", given_S, fmt="%.17g")
            for name in ("S.npy", "S.txt"):
                found = dualgap.fit(X, y, preconditioner=str(tmp_path / name), **common)
                assert np.array_equal(found.coef, expected)

    def test_from_a_file_that_changes_or_is_none(self, tmp_path: Path) -> None:
        file = tmp_path / "S.txt"
        file.write_text("1\n2\n")
        assert inverse_of(str(file), problem(d=2)).tolist() == [[1.0], [0.5]]
        file.write_text("1\n2.5\n")
        assert inverse_of(file, problem(d=2)).tolist() == [[1.0], [0.4]]
        file.write_text("one\ntwo\n")
        with pytest.raises(
            InputError, match=r"S.txt is neither an array of NumPy \(.npy\) nor text with numbers"
        ):
            inverse_of(file, problem(d=2))
        np.save(tmp_path / "S.npy", np.array([{}], dtype=object), allow_pickle=True)
        with pytest.raises(InputError, match=r"S.npy is neither"):
            inverse_of(tmp_path / "S.npy", problem(d=2))
        with pytest.raises(InputError, match="and no file"):
            inverse_of(str(tmp_path), problem(d=2))
        file.write_text("4")
        assert inverse_of(file, problem(d=1)).tolist() == [[0.25]]

    def test_a_matrix_has_no_entry_for_a_constant_feature(self) -> None:
        X, y = np.random.default_rng(0).normal(size=(8, 4)), np.array([1, -1] * 4)
        with pytest.raises(InputError, match="constant feature"):
            dualgap.fit(X, y, lam=0.1, solver="sgd", preconditioner=self.S, bias="augmented")


class TestMeans:
    @pytest.mark.parametrize("loss", FEW)
    def test_the_lazy_mean_is_the_mean_by_its_definition(self, loss: str) -> None:
        for kind, bias, T0 in itertools.product(RATES, BIASES, (1, 30)):
            task = problem(loss, bias=BIASES[bias])
            points = []
            for lazy in (True, False):
                solver = SGD(eta0=0.01, learning_rate=kind, average=True, T0=T0, lazy=lazy, seed=3)
                points.append(solver.point(task, run(solver, task, 120)))
            assert_close(points[0].w, points[1].w, 1e-12)
            assert_close(points[0].b, points[1].b, 1e-12)

    @pytest.mark.parametrize("bias", BIASES)
    @pytest.mark.parametrize(("lam", "eta0", "kind"), [(5.0, 0.1, "constant"), (2.0, 0.5, "sqrt")])
    def test_also_where_w_is_rescaled_many_times(self, bias: str, lam: float, eta0: float, kind: str) -> None:
        """The scale s of w = s v halves with every step, or nearly: v takes it in again and again."""
        task, points = problem(lam=lam, bias=BIASES[bias]), []
        for lazy in (True, False):
            solver = SGD(eta0=eta0, learning_rate=kind, average=True, lazy=lazy)
            points.append(solver.point(task, run(solver, task, 1500)))
        assert_close(points[0].w, points[1].w)
        assert_close(points[0].b, points[1].b)

    def test_float32_does_not_spoil_a_mean_that_is_rescaled(self) -> None:
        task, points = problem(lam=1.0), []
        for precision in ("float32", "float64"):
            solver = SGD(eta0=0.1, learning_rate="constant", average=True, precision=precision)
            points.append(solver.point(task, run(solver, task, 1000)))
        assert_close(points[0].w, points[1].w, 1e-3)

    @pytest.mark.parametrize("bias", BIASES)
    def test_a_first_step_that_erases_w_keeps_the_mean(self, bias: str) -> None:
        """1/(lam t) multiplies w by 0 in its first step; the mean has seen what it was."""
        task = problem(bias=BIASES[bias])
        start = (np.array([5.0, -3.0, 2.0, 1.0]), 0.0 if bias == "none" else 0.75)
        eta = formula("inverse", 1.0 / task.lam, task.lam)
        expected = written(task, in_order(task, 60), eta, start=start)
        for lazy in (True, False):
            solver = SGD(learning_rate="inverse", average=True, weights="simple", lazy=lazy, order="given")
            for steps in (1, 2, 60):
                state = run(solver, task, steps, Point(*start, None))
                part = written(task, in_order(task, steps), eta, start=start)
                assert_close(solver.point(task, state).w, part.mean)
                assert_close(solver.point(task, state).b, part.mean_b)
            assert_close(last(state)[0], expected.w[-1])

    @pytest.mark.parametrize("loss", ["squared", "hinge", "squared-hinge"])
    def test_full_and_simple_weights_agree_at_a_constant_rate_only(self, loss: str) -> None:
        task = problem(loss)
        apart = []
        for kind in ("constant", "sqrt"):
            full, simple = (
                solver.point(task, run(solver, task, 90)).w
                for solver in (
                    SGD(eta0=0.01, learning_rate=kind, average=True, weights=weights)
                    for weights in ("full", "simple")
                )
            )
            apart.append(float(np.abs(full - simple).max() / np.abs(full).max()))
        assert apart[0] <= 1e-12
        assert (apart[1] > 1e-4) == (task.loss.zhang_pairs[0][0] > 0.0)

    def test_before_its_first_step_a_mean_is_the_last_iterate(self) -> None:
        task, solver = problem(), SGD(eta0=0.1, average=True, T0=50)
        state = run(solver, task, 49)
        assert np.array_equal(solver.point(task, state).w, last(state)[0])
        state, _ = solver.step(task, state, 1, None)
        before = last(run(solver, task, 49))[0]
        assert_close(solver.point(task, state).w, before)  # the mean of one iterate, the one before the step

    @pytest.mark.parametrize("loss", ["squared", "squared-hinge", "squared-epsilon-insensitive"])
    def test_rates_that_make_negative_weights_are_refused_with_the_value(self, loss: str) -> None:
        for bias, preconditioner in itertools.product(("none", "augmented"), ("identity", np.full(4, 0.5))):
            task = problem(loss, lam=0.01, bias=BIASES[bias])
            inverse = np.eye(4) if isinstance(preconditioner, str) else 2.0 * np.eye(4)
            most = 2.0 / (task.loss.zhang_pairs[0][0] * longest(task, inverse))
            short, long = (
                SGD(average=True, learning_rate="sqrt", preconditioner=preconditioner, eta0=most * factor)
                for factor in (0.9999, 1.0001)
            )
            short.check(task, 100)
            with pytest.raises(
                InputError, match=rf"must be below 2/\(A M\^2\) = {most:g}, or weights='full'"
            ):
                long.check(task, 100)
            for harmless in ({"average": False}, {"weights": "simple"}, {"learning_rate": "constant"}):
                replace(long, **harmless).check(task, 100)

    def test_that_is_looked_at_before_a_run(self) -> None:
        task = problem("squared")
        with pytest.raises(InputError, match=r"must be below 2/\(A M\^2\)"):
            dualgap.fit(
                dense(task), task.source.y, loss="squared", lam=0.01, solver="sgd", average=True, eta0=5.0
            )

    def test_a_rate_that_the_solver_chose_itself_is_not_refused(self) -> None:
        for seed in range(4):
            SGD(average=True).check(problem("squared", lam=0.01, seed=seed), 100)


class TestWithoutRegulariser:
    @pytest.mark.parametrize("loss", FEW)
    def test_there_is_no_bound_but_0(self, loss: str) -> None:
        for bias in BIASES:
            task = problem(loss, lam=0.0, bias=BIASES[bias])
            outcome = dualgap.fit(
                dense(task),
                task.source.y,
                sample_weight=task.source.weight,
                loss=loss,
                lam=0.0,
                bias=bias,
                rho=0.7,
                solver="sgd",
                eta0=0.01,
                order="given",
                max_epochs=3,
                tol=1.0,
            )
            assert outcome.certificate.form == "mean"
            assert all(record.certificate.dual == 0.0 for record in outcome.trace)
            assert outcome.dual is None
            assert not outcome.converged
            assert outcome.reason.name == "max_epochs"
            scores = dense(task) @ outcome.coef + outcome.intercept
            values = [task.loss.value(y, p) for y, p in zip(task.source.y, scores, strict=True)]
            assert outcome.certificate.primal == pytest.approx(np.average(values, weights=task.source.weight))
            expected = written(task, in_order(task, 3 * task.epoch_size), formula("constant", 0.01, 0.0))
            assert_close(last(outcome.run.state)[0], expected.w[-1])
            assert_close(last(outcome.run.state)[1], expected.b[-1])

    def test_a_dual_point_proves_nothing(self) -> None:
        task = problem(lam=0.0)
        for beta in (task.source.y, np.zeros(task.source.n), 0.5 * task.source.y):
            for bias in BIASES.values():
                evaluated = task.with_bias(bias).evaluate(Point(np.zeros(4), 0.0, beta))
                assert (evaluated.dual, evaluated.dual_error) == (0.0, 0.0)

    def test_a_loss_of_0_is_the_optimum_and_is_said_to_be(self) -> None:
        X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
        outcome = dualgap.fit(X, [1, 1, -1], lam=0.0, solver="sgd", eta0=0.5, max_epochs=100)
        assert outcome.certificate.primal == 0.0
        assert outcome.reason.name == "gap"

    @pytest.mark.parametrize(
        "name", [name for name, solver in SOLVERS.items() if not solver.capabilities.unregularised]
    )
    def test_the_others_refuse_it_in_one_line(self, name: str) -> None:
        X, y = np.eye(4), np.array([1, -1, 1, -1])
        losses = "hinge", "smooth-hinge", "multinomial"
        loss = next(loss for loss in losses if can_train(SOLVERS[name], loss))
        bias = "none" if can_have(SOLVERS[name], "none") else "exact"
        with pytest.raises(InputError, match="lam=0") as error:
            dualgap.fit(X, y, lam=0.0, solver=name, loss=loss, bias=bias)
        assert "\n" not in str(error.value)
        assert "sgd, perceptron" in str(error.value)

    def test_the_plan_can_be_asked_for(self) -> None:
        lines = dualgap.plan(np.eye(4), np.array([1, -1, 1, -1]), lam=0.0, solver="sgd")
        assert any("sgd" in line for line in lines)

    @pytest.mark.parametrize("lam", [-1.0, math.nan, math.inf])
    def test_less_than_0_is_refused(self, lam: float) -> None:
        with pytest.raises(InputError, match="lam="):
            dualgap.fit(np.eye(4), np.array([1, -1, 1, -1]), lam=lam, solver="sgd")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"eta0": -0.1}, "eta0=-0.1 must be a finite number >= 0"),
        ({"eta0": math.nan}, "eta0=nan"),
        (
            {"eta0": 10.5, "learning_rate": "constant"},
            "eta0=10.5 makes a first step of 10.5; it must be at most 1/lam",
        ),
        ({"eta0": 10.5, "learning_rate": "inverse"}, "at most 1/lam = 10"),
        ({"eta0": 10.5, "learning_rate": "sqrt"}, "at most 1/lam = 10"),
        ({"learning_rate": "fast"}, "learning_rate='fast' must be one of constant, inverse, sqrt, bottou"),
        ({"weights": "half"}, "weights='half' must be one of full, simple"),
        ({"order": "sideways"}, "order='sideways' must be one of given, permutation, random"),
        ({"precision": "float16"}, "precision='float16' must be one of float64, float32"),
        ({"T0": 0}, "T0=0 must be a whole number >= 1"),
        ({"T0": 5}, "T0=5 goes with average=true"),
        ({"average": True, "T0": 101, "max_visits": 100}, "T0=101 is beyond the run of 100 steps"),
        ({"average": True, "T0": 100, "max_epochs": 2}, "T0=100 is beyond the run of 16 steps"),
        ({"bias_step": -1.0}, "bias_step=-1.0"),
        ({"polish": -1}, "polish=-1"),
        ({"average": "maybe"}, "option average='maybe' of solver 'sgd' must be of type bool"),
        ({"eta": 0.1}, "solver 'sgd' has no option 'eta'"),
    ],
)
def test_bad_options(options: dict[str, Any], complaint: str) -> None:
    X, y = np.random.default_rng(0).normal(size=(8, 4)), np.array([1, -1] * 4)
    with pytest.raises(InputError, match=complaint) as error:
        dualgap.fit(X, y, solver="sgd", lam=0.1, **options)
    assert "\n" not in str(error.value)


# What Zhang proves. A run is a sequence of rows and models: before each step, and after the last.


class Steps(NamedTuple):
    rows: list[int]
    w: list[np.ndarray]
    mean: np.ndarray


def watched(solver: SGD, task: Problem, steps: int) -> Steps:
    state = solver.start(task, None)
    rows, models = [], [last(state)[0]]
    for _ in range(steps):
        state, _ = solver.step(task, state, 1, None)
        rows.append(int(state.order.picks[state.cursor.position - 1]))
        models.append(last(state)[0])
    return Steps(rows, models, solver.point(task, state).w)


def losses_of(task: Problem, rows: Any, w: np.ndarray) -> np.ndarray:
    X, y = dense(task), task.source.y
    return np.array([task.loss.value(y[i], float(X[i] @ w)) for i in rows])


def mean_loss(task: Problem, w: np.ndarray) -> float:
    return float(losses_of(task, range(task.source.n), w).mean())


def least(task: Problem, lam: float) -> tuple[float, np.ndarray]:
    """Nearly the minimum over w of the mean loss + lam/2 |w|^2, and the w."""
    X, y = dense(task), task.source.y

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        scores = X @ w
        slopes = np.array([task.loss.derivative(*pair) for pair in zip(y, scores, strict=True)])
        return mean_loss(task, w) + 0.5 * lam * float(w @ w), X.T @ slopes / len(y) + lam * w

    found = minimize(objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 50})
    return float(found.fun), np.asarray(found.x)


class TestEveryRun:
    @settings(deadline=None, max_examples=60)
    @given(
        loss=st.sampled_from(sorted(LOSSES)),
        lam=st.sampled_from([0.0, 0.01, 1.0]),
        share=st.floats(1e-3, 1.0),
        seed=st.integers(0, 2**32 - 1),
        spread=st.sampled_from([0.1, 1.0, 30.0]),
    )
    def test_inequality_5(self, loss: str, lam: float, share: float, seed: int, spread: float) -> None:
        task = problem(loss, n=6, d=3, lam=lam, seed=seed)
        eta = min(share / lam, 2.0) if lam > 0.0 else 2.0 * share
        self.check(task, SGD(eta0=eta, learning_rate="constant", seed=seed % 7), np.eye(3), spread)

    @settings(deadline=None, max_examples=30)
    @given(
        loss=st.sampled_from(FEW),
        whole=st.booleans(),
        share=st.floats(1e-3, 1.0),
        seed=st.integers(0, 2**32 - 1),
    )
    def test_inequality_5_with_a_preconditioner(
        self, loss: str, whole: bool, share: float, seed: int
    ) -> None:
        task, rng = problem(loss, n=6, d=3, lam=0.1, seed=seed), np.random.default_rng(seed)
        root = rng.normal(size=(3, 3))
        S = root @ root.T + 0.1 * np.eye(3) if whole else np.diag(rng.uniform(0.1, 10.0, size=3))
        solver = SGD(eta0=share, learning_rate="sqrt", preconditioner=S if whole else np.diag(S))
        self.check(task, solver, S, 1.0)

    @staticmethod
    def check(task: Problem, solver: SGD, S: np.ndarray, spread: float) -> None:
        X, y, share, lam = dense(task), task.source.y, shares(task), task.lam
        inverse, rng = np.linalg.inv(S), np.random.default_rng(1)
        steps = 12
        seen, rate = watched(solver, task, steps), solver.rate(task)

        def whole_loss(w: np.ndarray, i: int) -> float:
            return float(share[i] * task.loss.value(y[i], float(X[i] @ w)) + 0.5 * lam * (w @ w))

        for t in range(1, steps + 1):
            i, before, after = seen.rows[t - 1], seen.w[t - 1], seen.w[t]
            eta, slope = rate.at(t), share[i] * task.loss.derivative(y[i], float(X[i] @ before))
            x_length, w_length = (math.sqrt(v @ inverse @ v) for v in (X[i], before))
            for w in (np.zeros(3), before, after, *(spread * rng.normal(size=(4, 3)))):
                near, far = (after - w) @ S @ (after - w), (before - w) @ S @ (before - w)
                square = eta**2 * (lam * w_length + abs(slope) * x_length) ** 2
                fall = 2.0 * eta * (whole_loss(before, i) - whole_loss(w, i))
                assert near - far <= square - fall + 1e-12 * (near + far + square + abs(fall) + 1.0)

    @settings(deadline=None, max_examples=40)
    @given(loss=st.sampled_from(sorted(LOSSES)), share=st.floats(0.01, 3.0), seed=st.integers(0, 2**32 - 1))
    def test_theorem_5_1(self, loss: str, share: float, seed: int) -> None:
        """The regret of the whole run, for each pair (A, B) of the loss and whatever w it is compared
        with.
        """
        task = problem(loss, n=7, d=3, lam=0.0, seed=seed, weighted=False)
        square = longest(task)
        eta, T = share / square, 4 * task.epoch_size
        seen = watched(SGD(eta0=eta, learning_rate="constant", order="given"), task, T)
        assert seen.rows == in_order(task, T)
        suffered = np.mean([losses_of(task, [i], w)[0] for i, w in zip(seen.rows, seen.w, strict=False)])
        best = least(task, 1.0 / (eta * T))[0]
        rng = np.random.default_rng(seed)
        for w in (*(scale * rng.normal(size=3) for scale in (0.1, 1.0, 10.0)), seen.w[-1], seen.mean):
            best = min(best, mean_loss(task, w) + float(w @ w) / (2.0 * eta * T))
        for A, B in task.loss.zhang_pairs:
            bound = best + 0.5 * eta * B * square
            assert (1.0 - 0.5 * eta * A * square) * suffered <= bound + 1e-12 * (1.0 + abs(suffered))

    @settings(deadline=None, max_examples=40)
    @given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 12), d=st.integers(1, 4))
    def test_the_mistake_bound_of_section_5_1(self, seed: int, n: int, d: int) -> None:
        rng = np.random.default_rng(seed)
        X, star = rng.normal(size=(n, d)), rng.normal(size=d)
        star /= np.abs(X @ star).min()  # y <w, x> >= 1 for every row
        task = Problem(view(X, np.sign(X @ star)), make_loss("smooth-hinge:gamma=1"), 0.0)
        square = longest(task)
        seen = watched(SGD(eta0=0.5 / square, learning_rate="constant", order="random"), task, 10 * n)
        pairs = list(zip(seen.rows, seen.w, strict=False))
        suffered = sum(losses_of(task, [i], w)[0] for i, w in pairs)
        mistakes = sum(task.source.y[i] * (X[i] @ w) <= 0.0 for i, w in pairs)
        assert mistakes <= 2.0 * suffered * (1.0 + 1e-12)
        assert 2.0 * suffered <= 4.0 * square * float(star @ star) * (1.0 + 1e-12)


class TestOnTheMean:
    """Expectations are over rows drawn with replacement, so Q is the mean loss over the rows; seeds are
    fixed.
    """

    @staticmethod
    def runs(task: Problem, T: int, count: int, **options: Any) -> tuple[list[Steps], Any]:
        solvers = [SGD(order="random", average=True, seed=seed, **options) for seed in range(count)]
        return [watched(solver, task, T) for solver in solvers], solvers[0].rate(task)

    @pytest.mark.parametrize("loss", ["hinge", "squared", "huber"])
    @pytest.mark.parametrize("kind", ["constant", "sqrt"])
    def test_theorem_5_2(self, loss: str, kind: str) -> None:
        task, T = problem(loss, n=12, d=3, lam=0.0, weighted=False), 50
        A, B = task.loss.zhang_pairs[0]
        square = longest(task)
        seen, rate = self.runs(task, T, 25, eta0=0.4 / square, learning_rate=kind)
        etas = np.array([rate.at(t) for t in range(1, T + 1)])
        shares_of_r = etas - 0.5 * A * square * etas**2
        r, sigma = shares_of_r.sum(), np.square(etas).sum()
        averaged = [mean_loss(task, steps.mean) for steps in seen]
        between = [shares_of_r @ [mean_loss(task, w) for w in steps.w[:-1]] / r for steps in seen]
        assert all(low <= high * (1.0 + 1e-12) for low, high in zip(averaged, between, strict=True))
        factor = 1.0 + 0.5 * sigma * A * square / r
        bound = factor * least(task, 1.0 / (r * factor))[0] + 0.5 * sigma * B * square / r
        assert np.mean(between) <= bound

    @pytest.mark.parametrize("loss", ["hinge", "squared"])
    def test_inequality_7(self, loss: str) -> None:
        """As printed, which for A > 0 is a little more than follows: 1 + eta A M^2/2 stands for 1/(1 - eta A
        M^2/2).
        """
        task, T = problem(loss, n=30, d=3, lam=0.0, weighted=False, noise=2.0), 4000
        A, B = task.loss.zhang_pairs[0]
        square = longest(task)
        eta = 0.3 / square
        reached = []
        for seed in range(6):
            solver = SGD(order="random", average=True, seed=seed, eta0=eta, learning_rate="constant")
            reached.append(mean_loss(task, solver.point(task, run(solver, task, T)).w))
        best = least(task, 1e-9)[0]
        assert best * (1.0 - 1e-6) <= np.mean(reached)
        assert np.mean(reached) <= (1.0 + 0.5 * eta * A * square) * best + 0.5 * eta * B * square

    @pytest.mark.parametrize("loss", ["hinge", "logistic", "smooth-hinge", "absolute"])
    def test_theorem_5_3(self, loss: str) -> None:
        """Of the last iterate, for the losses that have a pair with A = 0."""
        task, T = problem(loss, n=12, d=3, lam=0.0, weighted=False), 60
        (B,) = (B for A, B in task.loss.zhang_pairs if A == 0.0)
        eta, square = 0.05, longest(task)
        seen, _ = self.runs(task, T, 25, eta0=eta, learning_rate="constant")
        bound = least(task, 1.0 / (T * eta))[0] + eta * (1.5 + math.log(T + 1.0)) * B * square
        assert np.mean([mean_loss(task, steps.w[-1]) for steps in seen]) <= bound

    @pytest.mark.parametrize("loss", ["squared", "squared-hinge", "smooth-hinge"])
    @pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
    def test_theorem_6_1(self, loss: str, share: float) -> None:
        """Of the distance to the optimum, at every step of the runs."""
        lam, T = 0.2, 80
        task = problem(loss, n=12, d=3, lam=lam, weighted=False)
        (A,) = (A for A, B in task.loss.zhang_pairs if B == 0.0)
        square = longest(task)
        assert 2.0 * lam <= A * square
        eta = share / (A * square)
        slower = eta * (1.0 - eta * A * square)
        assert 0.0 <= slower <= 1.0 / lam
        least_value, star = least(task, lam)
        seen, _ = self.runs(task, T, 25, eta0=eta, learning_rate="constant")
        C = 2.0 * A * least_value * square
        for t in range(0, T + 1, 8):
            kept = (1.0 - lam * slower) ** t
            rest = eta * C * (1.0 - kept * (1.0 - lam * slower)) / (lam * (1.0 - eta * A * square))
            distance = np.mean([np.sum((steps.w[t] - star) ** 2) for steps in seen])
            assert distance <= kept * float(star @ star) + rest


@pytest.mark.parametrize("weights", ["full", "simple"])
def test_figure_1_can_be_run(weights: str) -> None:
    """Averaged least squares at eta = 0.002 on rows of 0 and 1, whose A M^2 / 2 is above 500."""
    rng = np.random.default_rng(0)
    X = (rng.random((60, 2000)) < 0.15).astype(float)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    assert 0.002 * 4.0 * (X**2).sum(axis=1).max() > 2.0
    common: dict[str, Any] = {"solver": "sgd", "loss": "squared", "lam": 0.0, "output": "last"}
    outcome = dualgap.fit(X, y, paper="zhang-2004-averaged", weights=weights, max_epochs=5, **common)
    assert outcome.certificate.primal < 0.5


class TestPairs:
    def test_the_pair_decides_on_the_weights(self) -> None:
        """The smoothed hinge has (0, 1) and (2/gamma, 0)."""
        task = problem("smooth-hinge")
        steps, order = 30, in_order(task, 30)
        for pair, (A, _) in enumerate(task.loss.zhang_pairs, 1):
            solver = SGD(eta0=0.02, learning_rate="sqrt", average=True, order="given", pair=pair)
            expected = written(task, order, lambda t: 0.02 / math.sqrt(t), A=A)
            assert_close(solver.point(task, run(solver, task, steps)).w, expected.mean)
        assert len({A for A, _ in task.loss.zhang_pairs}) == 2

    def test_one_that_is_not_there(self) -> None:
        with pytest.raises(
            InputError, match=r"pair=2 is none of the pairs \(A, B\) of 'hinge': 1: \(0.0, 1.0\)"
        ):
            SGD(pair=2, eta0=0.1).check(problem(), 100)
        with pytest.raises(InputError, match="pair=0 must be a whole number >= 1"):
            SGD(pair=0)


class TestRandomStopping:
    def test_it_is_an_iterate_of_the_same_run(self) -> None:
        for T0 in (1, 20):
            task = problem()
            solver = SGD(eta0=0.2, learning_rate="constant", random=True, T0=T0, seed=4)
            state, plain = solver.start(task, None), replace(solver, random=False, T0=1)
            iterates = [last(run(plain, task, t))[0] for t in range(81)]
            chosen = []
            for t in range(1, 81):
                state, _ = solver.step(task, state, 1, None)
                w = solver.point(task, state).w
                chosen.append(next(k for k in range(81) if np.array_equal(iterates[k], w)))
                assert chosen[-1] <= t
            assert min(chosen[T0 - 1 :]) >= T0
            assert len(set(chosen[T0:])) > 1

    def test_every_step_is_as_likely(self) -> None:
        task, counts = problem(n=6), np.zeros(8)
        plain = SGD(eta0=0.1, learning_rate="constant", order="given")
        iterates = [last(run(plain, task, t))[0] for t in range(9)]
        for seed in range(800):
            solver = replace(plain, random=True, seed=seed)
            w = solver.point(task, run(solver, task, 8)).w
            counts[next(k for k in range(1, 9) if np.array_equal(iterates[k], w)) - 1] += 1
        assert counts.sum() == 800
        assert np.abs(counts - 100).max() < 45  # 4.8 standard deviations

    def test_budgets_make_no_difference(self) -> None:
        task, solver = problem("logistic"), SGD(eta0=0.2, random=True, preconditioner="features", seed=2)
        whole, state = run(solver, task, 90), solver.start(task, None)
        while state.counts.visits < 90:
            state, _ = solver.step(task, state, min(7, 90 - state.counts.visits), None)
        assert np.array_equal(solver.point(task, whole).w, solver.point(task, state).w)

    def test_it_excludes_a_mean(self) -> None:
        with pytest.raises(InputError, match="average and random exclude each other"):
            SGD(average=True, random=True)
        with pytest.raises(InputError, match="T0=3 goes with average=true or random=true"):
            SGD(T0=3)
