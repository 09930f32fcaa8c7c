"""Pegasos against its pseudo-code, its outputs, random stopping, numbers at the edge, and the polish of its
dual.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chisquare

import dualgap
from dualgap.core.bias import AugmentedBias, ExactBias, NoBias
from dualgap.core.losses import make_loss
from dualgap.core.problem import Point, Problem
from dualgap.data.sources import view
from dualgap.runtime import jit
from dualgap.runtime.errors import InputError
from dualgap.solvers.primal import pegasos
from dualgap.solvers.primal.margin_sgd import SGDr
from dualgap.solvers.primal.pegasos import SAMPLINGS, Pegasos, excess_bound
from support.problems import linear_data, small_problem
from support.states import assert_same

data = partial(linear_data, n=20, d=4, seed=6)


def uneven(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.random.default_rng(2).choice([0.5, 1.0, 3.0], size=n)


problem = partial(small_problem, n=20, d=4, lam=0.02, seed=6, noise=1.0, weighted=False, weights=uneven)


def model(state: Any) -> np.ndarray:
    """w and b."""
    cursor = state.cursor
    return np.append(cursor.scaled.s * state.model.v, cursor.scaled.s * cursor.scaled.v_bias + cursor.b)


class Literal:
    """The pseudo-code with dense vectors; a constant feature is one more column, the last."""

    def __init__(self, task: Problem, solver: Pegasos) -> None:
        source = task.source
        self.rho = task.bias.rho
        self.X = np.column_stack([source.rows.matrix, np.full(source.n, self.rho)])  # type: ignore[attr-defined]
        self.y, self.share = source.y, source.weight * task.epoch_size / task.total_weight
        self.lam, self.solver = task.lam, solver
        self.bias_step = solver.bias_step if task.bias.kind == "exact" else 0.0
        self.w, self.b, self.t = np.zeros(self.X.shape[1]), 0.0, 0
        self.errors = np.zeros(source.n, dtype=int)

    def step(self, batch: np.ndarray) -> None:
        k = len(batch)
        hit = [i for i in batch if self.y[i] * (self.X[i] @ self.w + self.b) < 1.0]
        eta = 1.0 / (self.lam * (self.t + 1))
        self.t += 1 if hit or not self.solver.skip_lossless else 0
        push = self.share[hit] * self.y[hit]
        self.w = (1.0 - eta * self.lam) * self.w + eta / k * (push @ self.X[hit])
        self.b += self.bias_step * eta / k * push.sum()
        np.add.at(self.errors, hit, 1)
        if self.solver.projection:
            self.w = min(1.0, 1.0 / (math.sqrt(self.lam) * max(np.linalg.norm(self.w), 1e-300))) * self.w

    @property
    def model(self) -> np.ndarray:
        return np.append(self.w[:-1], self.rho * self.w[-1] + self.b)


def compare(task: Problem, solver: Pegasos, steps: int) -> tuple[Any, Literal, list[np.ndarray]]:
    """Both, step by step, on the rows that the solver draws."""
    literal, state, batches = Literal(task, solver), solver.start(task, None), []
    for _ in range(steps):
        state, _ = solver.step(task, state, solver.k, None)
        cursor = state.cursor
        batches.append(state.order.picks[cursor.position - solver.k : cursor.position].copy())
        literal.step(batches[-1])
        scale = np.abs(literal.model).max()
        np.testing.assert_allclose(model(state), literal.model, rtol=1e-9, atol=1e-11 * scale)
        assert cursor.t == literal.t
        assert list(state.model.errors) == list(literal.errors)
        if solver.projection:
            assert cursor.scaled.square == pytest.approx(literal.w @ literal.w, rel=1e-9)
            assert math.sqrt(task.lam * (literal.w @ literal.w)) <= 1.0 + 1e-12
    assert state.counts.visits == steps * solver.k
    assert state.counts.updates == literal.errors.sum()
    return state, literal, batches


@pytest.mark.slow
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_the_pseudo_code(k: int, projection: bool, sampling: str) -> None:
    solver = Pegasos(k=k, projection=projection, sampling=sampling, seed=1)
    compare(problem(), solver, 60)


@pytest.mark.parametrize("bias", [NoBias(), AugmentedBias(0.7), ExactBias()], ids=lambda bias: bias.kind)
@pytest.mark.parametrize("k", [1, 6])
def test_the_pseudo_code_with_weights_and_biases(bias: Any, k: int) -> None:
    task = problem(bias=bias, weighted=True)
    for projection in (False, True):
        _, literal, _ = compare(task, Pegasos(k=k, projection=projection, bias_step=0.1, seed=2), 80)
        assert (literal.model[-1] != 0.0) == (bias.kind != "none")


@pytest.mark.parametrize("projection", [False, True])
def test_a_batch_without_loss_may_not_count(projection: bool) -> None:
    task = problem(noise=0.0, lam=1e-4)
    state, _, _ = compare(task, Pegasos(skip_lossless=True, projection=projection, seed=1), 120)
    assert 1 < state.cursor.t < state.cursor.steps == 120


def test_batches_that_do_not_count_leave_the_objective_as_it_is() -> None:
    """Without the shrinking, which a held t leaves as it is, w would be several times too long."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = np.where(X @ np.ones(5) > 0, 1.0, -1.0)
    common: dict[str, Any] = {"lam": 0.01, "tol": 0.0, "max_visits": 60_000, "output": "last"}
    least = dualgap.fit(X, y, lam=0.01, tol=1e-4).certificate.primal
    for options in ({"k": 1}, {"k": 5}):
        found = dualgap.fit(X, y, solver="pegasos", skip_lossless=True, **common, **options)
        assert found.certificate.primal <= 1.1 * least


class TestStart:
    def test_a_start_of_its_own_seed(self) -> None:
        """Rows come by the seed, the start by first_seed."""
        task = problem()
        starts = [
            Pegasos(seed=seed, first_w="ball", first_seed=first).start(task, None)
            for seed, first in ((1, 7), (2, 7), (1, 8), (7, -1))
        ]
        v = [state.model.v for state in starts]
        assert np.array_equal(v[0], v[1])
        assert np.array_equal(v[0], v[3])
        assert not np.array_equal(v[0], v[2])
        assert np.array_equal(starts[0].order.rng, starts[2].order.rng)
        assert not np.array_equal(starts[0].order.rng, starts[1].order.rng)

    def test_t0_keeps_the_start(self) -> None:
        task, solver = problem(), Pegasos(first_w="ball", t0=3, seed=2)
        state = solver.start(task, None)
        literal = Literal(task, solver)
        literal.w, literal.t = np.append(state.model.v, 0.0), 3
        assert np.abs(literal.w).max() > 0.0
        for _ in range(10):
            state, _ = solver.step(task, state, 1, None)
            literal.step(state.order.picks[state.cursor.position - 1 : state.cursor.position])
        np.testing.assert_allclose(model(state), literal.model, rtol=1e-9)

    @pytest.mark.parametrize("bias", [NoBias(), AugmentedBias(0.7), ExactBias()], ids=lambda bias: bias.kind)
    def test_a_warm_start_is_not_erased(self, bias: Any) -> None:
        task = problem(bias=bias)
        b = 0.0 if bias.kind == "none" else 0.25
        warm = Point(np.array([1.0, -2.0, 0.5, 3.0]), b, None)
        state = Pegasos(k=3).start(task, warm)
        assert state.cursor.t == state.ahead == 67  # ten epochs of 20 rows
        np.testing.assert_allclose(model(state), np.append(warm.w, b))
        expected = warm.w @ warm.w + (b**2 / 0.49 if bias.kind == "augmented" else 0.0)
        assert state.cursor.scaled.square == pytest.approx(expected)
        assert Pegasos(t0=50).start(task, warm).cursor.t == 50
        after, _ = Pegasos(k=3).step(task, state, 3, None)
        literal = Literal(task, Pegasos(k=3))
        rho = bias.rho
        literal.w, literal.t = np.append(warm.w, b / rho if rho else 0.0), 67
        literal.b = 0.0 if rho else b
        literal.step(after.order.picks[after.cursor.position - 3 : after.cursor.position])
        np.testing.assert_allclose(model(after), literal.model, rtol=1e-9)

    def test_a_warm_run_begins_where_another_ended(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 5))
        y = np.where(X @ np.ones(5) + rng.normal(size=300) > 0, 1.0, -1.0)
        first = dualgap.fit(X, y, lam=0.01, tol=1e-3)
        common: dict[str, Any] = {"lam": 0.01, "tol": 0.0, "max_visits": 300, "output": "last", "seed": 3}
        warm, cold = (
            dualgap.fit(X, y, solver="pegasos", warm=start, **common).certificate.primal
            for start in (first, None)
        )
        assert warm < cold

    def test_a_warm_run_goes_on_bit_for_bit(self, tmp_path: Path) -> None:
        X, y = data()
        warm = Point(np.ones(X.shape[1]), 0.0, None)
        common: dict[str, Any] = {"lam": 0.03, "solver": "pegasos", "tol": 0.0, "max_epochs": None}
        long = dualgap.fit(X, y, max_visits=300, warm=warm, **common)
        dualgap.save_state(tmp_path / "run.npz", dualgap.fit(X, y, max_visits=77, warm=warm, **common))
        resumed = dualgap.fit(X, y, max_visits=300, resume=dualgap.load_state(tmp_path / "run.npz"), **common)
        assert_same(long.run.state, resumed.run.state)

    def test_random_stopping_has_no_t0(self) -> None:
        with pytest.raises(InputError, match="t0=5 does not go with stop_within=60"):
            Pegasos(t0=5, stop_within=60)
        assert Pegasos(stop_within=60).start(problem(), Point(np.ones(4), 0.0, None)).cursor.t == 0


class TestSampling:
    def test_epochs_show_every_row_once(self) -> None:
        _, _, batches = compare(problem(), Pegasos(k=5, sampling="epochs"), 12)
        epochs = [tuple(np.concatenate(batches[first : first + 4])) for first in (0, 4, 8)]
        assert all(sorted(rows) == list(range(20)) for rows in epochs)
        assert len(set(epochs)) == 3

    def test_rows_left_over_at_the_end_of_an_epoch_are_others_each_time(self) -> None:
        _, _, batches = compare(problem(), Pegasos(k=6, sampling="epochs"), 30)
        over = [{*range(20)}.difference(*batches[first : first + 3]) for first in range(0, 30, 3)]
        assert all(len(rows) == 2 for rows in over)
        assert len(set.union(*over)) > 5

    @pytest.mark.parametrize("sampling", ["replacement", "distinct"])
    def test_rows_are_drawn_uniformly(self, sampling: str) -> None:
        task, solver = problem(), Pegasos(k=7, sampling=sampling, seed=3)
        state, batches = solver.start(task, None), []
        for _ in range(1500):
            state, _ = solver.step(task, state, 7, None)
            batches.append(state.order.picks[state.cursor.position - 7 : state.cursor.position].copy())
        distinct = sum(len(set(batch)) == 7 for batch in batches)
        assert distinct == 1500 if sampling == "distinct" else 0 < distinct < 1000
        assert chisquare(np.bincount(np.concatenate(batches), minlength=20)).pvalue > 1e-4
        assert chisquare(np.bincount([batch[0] for batch in batches], minlength=20)).pvalue > 1e-4

    def test_rows_that_are_fetched_ahead_exist(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With distinct rows only one batch is laid out; what stands behind it is fetched too."""
        task = problem()
        monkeypatch.setattr(np, "empty", lambda shape, dtype=float: np.full(shape, 2**32 - 1, dtype=dtype))
        state = Pegasos(k=2, sampling="distinct").start(task, None)
        monkeypatch.undo()
        assert state.order.picks.max() < 20


class TestEquivalences:
    def test_all_rows_without_projection_are_the_subgradient_method(self) -> None:
        task = problem(weighted=True)
        X, y, c = task.source.rows.matrix, task.source.y, task.source.weight / task.total_weight  # type: ignore[attr-defined]
        solver, w = Pegasos(k=20, sampling="distinct"), np.zeros(4)
        state = solver.start(task, None)
        for t in range(1, 200):
            slope = task.lam * w - (c * y * (y * (X @ w) < 1.0)) @ X
            w = w - slope / (task.lam * t)
            state, _ = solver.step(task, state, 20, None)
            np.testing.assert_allclose(model(state)[:-1], w, rtol=1e-10, atol=1e-12)

    def test_then_whole_weights_are_rows_repeated(self) -> None:
        X, y = data()
        weight = np.arange(20) % 4
        here = Problem(view(X, y, weight), make_loss("hinge"), 0.05)
        there = Problem(view(np.repeat(X, weight, axis=0), np.repeat(y, weight)), make_loss("hinge"), 0.05)
        ends = []
        for task in (here, there):
            solver = Pegasos(k=task.epoch_size, sampling="distinct")
            ends.append(model(solver.step(task, solver.start(task, None), 300 * solver.k, None)[0]))
        np.testing.assert_allclose(ends[0], ends[1], rtol=1e-9)

    @pytest.mark.parametrize("bias", [NoBias(), AugmentedBias(2.0), ExactBias()], ids=lambda bias: bias.kind)
    def test_single_rows_without_projection_are_sgd_r(self, bias: Any) -> None:
        task = problem(bias=bias, weighted=True)
        left, right = Pegasos(seed=8), SGDr(seed=8)
        ours, theirs = left.start(task, None), right.start(task, None)
        for budget in (1, 19, 500, 1480):
            (ours, _), (theirs, _) = (
                left.step(task, ours, budget, None),
                right.step(task, theirs, budget, None),
            )
            assert np.array_equal(ours.model.errors, theirs.errors)
            for mine, other in zip(left.point(task, ours), right.point(task, theirs), strict=True):
                np.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-12)

    def test_they_differ_at_a_margin_of_1(self) -> None:
        """After one step w = 1, and the only row has a margin of exactly 1: an update for SGD-r, none for
        Pegasos.
        """
        task = Problem(view(np.array([[1.0]]), np.ones(1)), make_loss("hinge"), 1.0)
        for solver, counters, w in (
            (Pegasos(), [1, 1, 2], [1.0, 0.5, 2 / 3]),
            (SGDr(), [1, 2, 3], [1.0, 1.0, 1.0]),
        ):
            state: Any = solver.start(task, None)
            for count, value in zip(counters, w, strict=True):
                state, _ = solver.step(task, state, 1, None)
                point = solver.point(task, state)
                assert (state.model if isinstance(solver, Pegasos) else state).errors[0] == count
                assert point.w[0] == pytest.approx(value, rel=1e-15)

    def test_a_random_start_is_erased_by_the_first_step(self) -> None:
        for options in ({}, {"projection": True}, {"iterate": "average"}):
            task = problem()
            inside, zero = (Pegasos(first_w=first, seed=3, **options) for first in ("ball", "zero"))
            state = inside.start(task, None)
            assert 0.0 < np.linalg.norm(model(state)) <= 1.0 / math.sqrt(task.lam)
            before = model(state).copy()
            (state, _), (other, _) = (
                inside.step(task, state, 1, None),
                zero.step(task, zero.start(task, None), 1, None),
            )
            # the row's loss may be 0 inside the ball, but then w is 0 after it
            assert np.array_equal(model(state), model(other)) or not model(state).any()
            if "iterate" in options:
                np.testing.assert_allclose(
                    inside.point(task, state).w, (before + model(state))[:-1] / 2, rtol=1e-12
                )

    def test_starts_fill_the_ball(self) -> None:
        task = problem(d=2)
        radius = [
            np.linalg.norm(Pegasos(first_w="ball", seed=seed).start(task, None).model.v)
            for seed in range(300)
        ]
        share = np.square(radius) * task.lam  # uniform where points are, in two dimensions
        assert chisquare(np.histogram(share, bins=5, range=(0.0, 1.0))[0]).pvalue > 1e-4


def iterates(solver: Pegasos, task: Problem, steps: int) -> tuple[list[np.ndarray], Any]:
    state = solver.start(task, None)
    found = [model(state)]
    for _ in range(steps):
        state, _ = solver.step(task, state, 1, None)
        found.append(model(state))
    return found, state


class TestOutputs:
    @pytest.mark.parametrize("T0", [0, 1, 33])
    @pytest.mark.parametrize("bias", [NoBias(), AugmentedBias(0.7), ExactBias()], ids=lambda bias: bias.kind)
    def test_an_average_is_the_mean_over_its_window(self, bias: Any, T0: int) -> None:
        task, solver = (
            problem(bias=bias, weighted=True),
            Pegasos(k=3, iterate="average", T0=T0, seed=1, first_w="ball"),
        )
        found, state = iterates(solver, task, 230)
        start = state.suffix.now.began
        assert start == T0 or (T0 == 0 and 0.25 * 230 <= start <= 0.5 * 230)
        point = solver.point(task, state)
        np.testing.assert_allclose(
            np.append(point.w, point.b), np.mean(found[start:], axis=0), rtol=1e-10, atol=1e-12
        )

    @pytest.mark.parametrize("lam", [1e-2, 1e-4, 1e-6])
    def test_an_average_survives_projections(self, lam: float) -> None:
        """They make s fall by orders of magnitude a step, and v takes it in again and again."""
        task, solver = problem(lam=lam), Pegasos(projection=True, iterate="average", T0=100)
        found, state = iterates(solver, task, 500)
        expected = np.mean(found[100:], axis=0)[:-1]
        np.testing.assert_allclose(solver.point(task, state).w, expected, atol=1e-5 * np.abs(expected).max())

    def test_before_its_window_it_offers_the_last_model(self) -> None:
        task, solver = problem(), Pegasos(iterate="average", T0=50)
        found, state = iterates(solver, task, 30)
        assert np.array_equal(solver.point(task, state).w, found[-1][:-1])

    def test_a_random_model_is_one_of_the_window_each_equally_likely(self) -> None:
        task, where = problem(lam=0.01), []
        for seed in range(200):
            solver = Pegasos(iterate="random", T0=10, seed=seed)
            found, state = iterates(solver, task, 19)
            kept = solver.point(task, state).w
            same = [t for t in range(10, 20) if np.array_equal(found[t][:-1], kept)]
            assert len(same) == 1
            where += same
        assert chisquare(np.bincount(where, minlength=20)[10:]).pvalue > 1e-4

    def test_a_random_model_without_T0_is_one_of_the_second_half_or_so(self) -> None:
        task, solver = problem(), Pegasos(iterate="random", seed=5)
        found, state = iterates(solver, task, 400)
        (when,) = (t for t in range(401) if np.array_equal(found[t][:-1], solver.point(task, state).w))
        assert when >= state.suffix.now.began >= 100


class TestNumbers:
    @pytest.mark.parametrize("k", [1, 4])
    def test_the_norm_does_not_drift(self, k: int) -> None:
        task, solver = problem(lam=1e-4, bias=AugmentedBias(3.0)), Pegasos(k=k, projection=True)
        state = solver.start(task, None)
        for _ in range(5):
            state, _ = solver.step(task, state, 300_000 if jit.compiled else 1500, None)
            cursor = state.cursor
            true = cursor.scaled.s**2 * (state.model.v @ state.model.v + (cursor.scaled.v_bias / 3.0) ** 2)
            assert cursor.scaled.square == pytest.approx(true, rel=1e-9)
            assert task.lam * true <= 1.0 + 1e-9

    @pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
    @pytest.mark.parametrize("lam", [1e-2, 1e-8])
    def test_w_is_in_the_ball_where_the_rows_of_a_batch_cancel(self, lam: float, size: float) -> None:
        X = np.array([[size, 0.3], [-size, 0.4], [size, -1.0], [-size, 0.5]])
        task, solver = (
            Problem(view(X, np.ones(4)), make_loss("hinge"), lam),
            Pegasos(k=4, projection=True),
        )
        state = solver.start(task, None)
        for _ in range(30):
            state, _ = solver.step(task, state, 4, None)
            assert math.sqrt(lam) * np.linalg.norm(model(state)) <= 1.0 + 1e-6

    def test_a_tiny_scale_is_taken_in(self) -> None:
        """At a first step of 1/lam the projection makes s smaller than SMALLEST, and v goes on from s = 1."""
        X, y = data()
        task = Problem(view(1e5 * X, y), make_loss("hinge"), 1e-10)
        solver = Pegasos(projection=True, seed=4)
        after, _ = solver.step(task, solver.start(task, None), 1, None)
        assert after.cursor.scaled.s == 1.0
        assert np.linalg.norm(after.model.v) == pytest.approx(1.0 / math.sqrt(task.lam), rel=1e-12)
        compare(task, solver, 60)

    @pytest.mark.parametrize("options", [{}, {"projection": True}, {"k": 8, "projection": True}])
    def test_data_like_covertype_at_large_C(self, options: dict[str, Any]) -> None:
        """Columns of metres beside columns of zeros and ones, as they come: where others broke."""
        rng = np.random.default_rng(9)
        n = 3000 if jit.compiled else 150
        metres = rng.normal([2959.0, 156.0, 1980.0], [280.0, 112.0, 1325.0], size=(n, 3))
        X = np.column_stack([metres, rng.random((n, 5)) < 0.2])
        y = np.where(metres[:, 0] + 400.0 * X[:, 3] + 200.0 * rng.normal(size=n) > 3000.0, 1.0, -1.0)
        for scale in (1.0, 1e-3):
            outcome = dualgap.fit(scale * X, y, C=10.0, solver="pegasos", tol=0.0, max_epochs=10, **options)
            state = outcome.run.state
            assert np.isfinite(state.model.v).all()
            assert 0.0 < state.cursor.scaled.s <= 1.0
            assert math.isfinite(outcome.certificate.gap)
            if "projection" in options:
                assert np.linalg.norm(model(state)) <= (1.0 + 1e-9) / math.sqrt(outcome.problem.lam)

    @pytest.mark.slow
    @pytest.mark.parametrize("projection", [False, True])
    def test_a_step_costs_the_entries_of_its_row_whatever_d_is(self, projection: bool) -> None:
        rng = np.random.default_rng(0)
        small = sp.random(60, 10_000, density=5e-4, format="csr", random_state=rng)
        y, solver, counts = rng.choice([-1.0, 1.0], size=60), Pegasos(projection=projection), []
        for d in (10_000, 10_000_000):
            X = sp.csr_matrix((small.data, small.indices, small.indptr), shape=(60, d))
            task = Problem(view(X, y), make_loss("hinge"), 0.01)
            counts.append(solver.step(task, solver.start(task, None), 300, None)[0].counts)
        assert counts[0] == counts[1]
        assert counts[0].entries <= 2 * 300 * int(np.diff(small.indptr).max())


class TestRandomStopping:
    def test_the_bound(self) -> None:
        X = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]])
        y, T, lam = np.array([1.0, -1.0, 1.0]), 500, 0.01
        task = Problem(view(X, y), make_loss("hinge"), lam)
        tail = math.log(T / 0.5) / (lam * T)
        assert excess_bound(task, T, False) == pytest.approx(42 * 4 * 25 * tail)
        assert excess_bound(task, T, True) == pytest.approx(42 * (0.1 + 5.0) ** 2 * tail)
        augmented = Problem(task.source, task.loss, lam, AugmentedBias(12.0))
        assert excess_bound(augmented, T, False) == pytest.approx(42 * 4 * 169 * tail)

    def test_the_bound_is_for_rows_of_length_1_at_least(self) -> None:
        """R >= 1 is an assumption of the theorem; 1 bounds shorter rows too."""
        X, y = 1e-3 * np.eye(3), np.array([1.0, -1.0, 1.0])
        task = Problem(view(X, y), make_loss("hinge"), 0.01)
        assert excess_bound(task, 500, False) == pytest.approx(42 * 4 * math.log(1000) / 5)

    def test_delta_is_an_option(self) -> None:
        X, y = data(n=60)
        task = problem(n=60, lam=0.05)
        assert excess_bound(task, 800, False, 0.01) == pytest.approx(
            excess_bound(task, 800, False) * math.log(800 / 0.01) / math.log(800 / 0.5)
        )
        told: dict[str, Any] = {"lam": 0.05, "solver": "pegasos", "stop_within": 800, "delta": 0.01}
        outcome = dualgap.fit(X, y, tol=0.0, **told)
        assert outcome.run.state.attempt.bound == excess_bound(outcome.problem, 800, False, 0.01)
        assert "delta = 0.01" in "\n".join(dualgap.plan(X, y, **told))

    def test_the_plan_says_it(self) -> None:
        X, y = data()
        task = problem(lam=0.05)
        text = "\n".join(dualgap.plan(X, y, solver="pegasos", lam=0.05, stop_within=4321))
        assert "4,321" in text
        assert f"{excess_bound(task, 4321, False):.3g}" in text
        text = "\n".join(dualgap.plan(X, y, solver="pegasos", lam=0.05, projection=True))
        assert f"{excess_bound(task, 2000, True):.3g}" in text

    def test_the_step_is_drawn_uniformly(self) -> None:
        task = problem()
        stops = [Pegasos(stop_within=10, seed=seed).start(task, None).attempt.stop_at for seed in range(400)]
        assert set(stops) == set(range(1, 11))
        assert chisquare(np.bincount(stops)[1:]).pvalue > 1e-4

    @pytest.mark.parametrize(
        "options", [{}, {"k": 4, "projection": True}, {"bias": "exact"}, {"duals": False}]
    )
    def test_a_model_is_accepted_if_its_certificate_proves_the_bound(self, options: dict[str, Any]) -> None:
        X, y = data(n=60)
        outcome = dualgap.fit(X, y, lam=0.05, solver="pegasos", tol=0.0, stop_within=800, seed=3, **options)
        state = outcome.run.state
        assert outcome.reason.name == "random stop"
        assert (
            outcome.certificate.gap
            <= state.attempt.bound
            == excess_bound(outcome.problem, 800, "k" in options)
        )
        assert state.cursor.steps == state.attempt.stop_at <= 800
        assert f"step {state.attempt.stop_at:,}, drawn from 800, after 1 attempt: " in outcome.reason.message

    def test_a_bad_model_is_tried_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        bound = 0.06
        monkeypatch.setattr(pegasos, "excess_bound", lambda *_: bound)
        task, solver = problem(n=60, lam=0.05), Pegasos(stop_within=200, seed=1)
        state, stops = solver.start(task, None), []
        while not state.attempt.accepted:
            assert state.attempt.number == len(stops) + 1 < 100
            assert state.cursor.steps == 0
            last = Literal(task, solver)
            stops.append(state.attempt.stop_at)
            for _ in range(stops[-1]):
                state, status = solver.step(task, state, 1, None)
                if state.cursor.steps > 0:  # else it has begun anew
                    last.step(state.order.picks[state.cursor.position - 1 : state.cursor.position])
            assert state.counts.visits == sum(stops)
        assert len(stops) > 1
        # nothing is left of the attempts before
        np.testing.assert_allclose(model(state), last.model, rtol=1e-9)
        assert np.array_equal(state.model.errors, last.errors)
        point = solver.point(task, state)
        better = solver.improve_dual(task, point.beta, point.b, state.counts.visits)
        assert task.certify(point._replace(beta=better)).gap <= bound
        assert f"after {len(stops)} attempts" in status.ended.message

    def test_where_the_bound_is_impossible_a_limit_ends_the_run(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pegasos, "excess_bound", lambda *_: 0.0)
        X, y = data()
        outcome = dualgap.fit(X, y, lam=0.05, solver="pegasos", tol=0.0, stop_within=30, max_epochs=20)
        assert outcome.reason.name == "max_epochs"
        assert outcome.run.state.attempt.number > 5
        assert outcome.trace[-1].visits == 400


OPTIONS: list[dict[str, Any]] = [
    {},
    {"k": 3, "projection": True, "sampling": "distinct", "skip_lossless": True},
    {"iterate": "average", "projection": True},
    {"first_w": "ball", "first_seed": 3, "t0": 5, "iterate": "average"},
    {"k": 3, "iterate": "random", "sampling": "epochs"},
    {"iterate": "random", "T0": 11},
    {"stop_within": 60},
]


@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda options: "-".join(map(str, options.values())) or "plain"
)
def test_budgets_make_no_difference(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pegasos, "excess_bound", lambda *_: 0.0)
    task, ends = problem(bias=AugmentedBias(0.5), weighted=True), []
    solver = Pegasos(seed=9, **options)
    for size in (1, 7, 1000):
        state = solver.start(task, None)
        state.order.picks[:] = 0
        while state.counts.visits < 420:
            state, _ = solver.step(task, state, min(size, 420 - state.counts.visits), None)
        ends.append(state)
    assert_same(ends[0], ends[1])
    assert_same(ends[0], ends[2])
    assert ends[0].attempt.number > 5 or "stop_within" not in options


@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda options: "-".join(map(str, options.values())) or "plain"
)
@pytest.mark.parametrize("bias", ["none", "exact"])
def test_a_resumed_run_is_the_same(
    options: dict[str, Any], bias: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pegasos, "excess_bound", lambda *_: 0.0)
    X, y = data()
    common: dict[str, Any] = {
        "lam": 0.03,
        "solver": "pegasos",
        "bias": bias,
        "tol": 0.0,
        "max_epochs": None,
        **options,
    }
    long = dualgap.fit(X, y, max_visits=1033, **common)
    dualgap.save_state(tmp_path / "run.npz", dualgap.fit(X, y, max_visits=517, **common))
    resumed = dualgap.fit(X, y, max_visits=1033, resume=dualgap.load_state(tmp_path / "run.npz"), **common)
    assert_same(long.run.state, resumed.run.state)
    assert long.certificate == resumed.certificate


class TestDualPoints:
    @pytest.mark.parametrize("skip", [False, True])
    @pytest.mark.parametrize("sampling", SAMPLINGS)
    def test_without_projection_counters_make_w_up_to_clipping(self, sampling: str, skip: bool) -> None:
        task = problem(weighted=True, lam=0.3)
        solver = Pegasos(k=2, sampling=sampling, skip_lossless=skip, seed=1)
        state, _ = solver.step(task, solver.start(task, None), 2000, None)
        share = state.model.errors * 20 / (2 * state.cursor.steps)
        if not skip:  # where t is held, late steps are longer
            w, _ = task.model_of(task.source.y * share, 0.0)
            np.testing.assert_allclose(w, model(state)[:-1], rtol=1e-10)
        point = solver.point(task, state)
        np.testing.assert_allclose(point.beta, task.source.y * np.minimum(share, 1.0), rtol=1e-14)
        assert (state.cursor.t < state.cursor.steps) == skip
        assert math.isfinite(task.evaluate(point).dual)

    @pytest.mark.parametrize("solver", [Pegasos(polish=1), Pegasos(polish=3), SGDr(polish=1)])
    @pytest.mark.parametrize("bias", [NoBias(), AugmentedBias(2.0)], ids=lambda bias: bias.kind)
    def test_a_polished_dual_is_at_least_as_good(self, solver: Any, bias: Any) -> None:
        task, reached = problem(bias=bias, weighted=True), []
        rng = np.random.default_rng(0)
        for beta in (np.zeros(20), rng.random(20), np.ones(20)):
            start = task.source.y * beta
            before = start.copy()
            polished = solver.improve_dual(task, start, 0.0, 77)
            assert np.array_equal(start, before)
            values = [task.evaluate(Point(np.zeros(4), 0.0, point)).dual for point in (start, polished)]
            assert values[1] >= values[0] - 1e-14
            assert np.array_equal(polished, solver.improve_dual(task, start, 0.0, 77))
            assert not np.array_equal(polished, solver.improve_dual(task, start, 0.0, 78))
            reached.append(values[1])
        assert min(reached) > 0.0

    def test_more_sweeps_polish_more(self) -> None:
        task = problem()
        values = [
            task.evaluate(
                Point(np.zeros(4), 0.0, Pegasos(polish=sweeps).improve_dual(task, np.zeros(20), 0.0, 1))
            ).dual
            for sweeps in (1, 4, 16)
        ]
        assert values == sorted(set(values))

    @pytest.mark.parametrize("name", ["pegasos", "sgd-r"])
    @pytest.mark.parametrize("bias", ["none", "augmented", "exact"])
    def test_a_certificate_does_not_depend_on_who_made_the_dual(self, name: str, bias: str) -> None:
        X, y = data(n=60)
        gaps = {}
        for polish in (0, 2):
            outcome = dualgap.fit(
                X, y, lam=0.05, solver=name, bias=bias, tol=0.0, polish=polish, max_epochs=20
            )
            assert outcome.dual_origin == ("polish" if polish else "solver")
            found = outcome.problem.certify(Point(outcome.coef, outcome.intercept, outcome.dual))
            assert found.gap == pytest.approx(outcome.certificate.gap, abs=2 * found.rounding)
            gaps[polish] = found.gap
        assert gaps[2] < gaps[0]

    def test_the_origin_is_that_of_the_dual_handed_back(self) -> None:
        X, y = data()
        common: dict[str, Any] = {
            "lam": 0.05,
            "solver": "pegasos",
            "tol": 0.0,
            "max_visits": 50,
            "max_epochs": None,
        }
        plain, polished = (dualgap.fit(X, y, polish=sweeps, **common) for sweeps in (0, 1))
        point = plain.solver.point(plain.problem, plain.run.state)
        assert np.array_equal(plain.dual, point.beta)
        assert np.array_equal(
            polished.dual, polished.solver.improve_dual(polished.problem, point.beta, 0.0, 50)
        )  # type: ignore[attr-defined]

    def test_a_polish_that_gains_nothing_is_not_named(self) -> None:
        """Where every row is at its bound the counters are the best dual point there is."""
        X, y = data()
        outcome = dualgap.fit(
            X, y, lam=1e3, solver="pegasos", sampling="epochs", tol=0.0, max_visits=40, max_epochs=None
        )
        assert np.array_equal(outcome.dual, y)
        assert outcome.dual_origin == "solver"

    def test_no_polish_and_no_counters_leave_no_dual(self) -> None:
        X, y = data()
        assert Pegasos(polish=0).improve_dual(problem(), np.zeros(20), 0.0, 1) is None
        outcome = dualgap.fit(X, y, lam=0.05, solver="pegasos", duals=False, polish=0, tol=0.0, max_epochs=5)
        assert outcome.dual is None
        assert outcome.dual_origin == "none"
        assert outcome.run.state.model.errors.size == 0
        assert dualgap.fit(X, y, lam=0.05, solver="pegasos", duals=False, tol=0.05).converged


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"k": 0}, "k=0 must be a whole number >= 1"),
        ({"k": 4}, "k=4 is more than the 3 rows there are"),
        ({"k": 3, "sample_weight": [1, 0, 1]}, "k=3 is more than the 2 rows there are"),
        ({"sampling": "none"}, "sampling='none' must be one of replacement, distinct, epochs"),
        ({"first_w": "one"}, "first_w='one' must be one of zero, ball"),
        ({"iterate": "mean"}, "iterate='mean' must be one of last, average, random"),
        ({"T0": -1}, "T0=-1"),
        ({"T0": 5}, "T0=5 goes with iterate=average"),
        (
            {"k": 2, "iterate": "average", "T0": 251, "max_visits": 500},
            "T0=251 is beyond the run of 250 steps of 2 rows",
        ),
        ({"stop_within": -1}, "stop_within=-1 must be a whole number >= 0"),
        ({"stop_within": 9000}, "stop_within=9000 is beyond the run of 3000 steps"),
        ({"k": 2, "stop_within": 2000}, "stop_within=2000 is beyond the run of 1500 steps"),
        ({"stop_within": 5, "iterate": "average"}, "leave out iterate='average'"),
        ({"stop_within": 50}, "a bound for lam <= 1/4 only, and lam = 0.333333"),
        ({"stop_within": 2}, "stop_within=2 must be at least 3"),
        ({"stop_within": 50, "sampling": "epochs"}, "leave out sampling='epochs'"),
        ({"stop_within": 50, "skip_lossless": True}, "a t that always advances"),
        ({"delta": 0.0}, "delta=0.0 must be a finite number from 1e-12 to 1"),
        ({"polish": -1}, "polish=-1 must be a whole number >= 0"),
        ({"bias_step": math.nan}, "bias_step=nan must be a finite number >= 0"),
        ({"precision": "float32"}, "solver 'pegasos' has no option 'precision'"),
        ({"loss": "squared-hinge"}, "cannot train with the loss 'squared-hinge'"),
        ({"lam": 0.0}, "lam=0.0 must be positive for solver 'pegasos'"),
    ],
)
def test_bad_options(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        dualgap.fit(np.eye(3), np.array([1, -1, 1]), solver="pegasos", **options)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_last_step_of_a_run_may_be_the_first_of_its_window() -> None:
    X, y = np.eye(3), np.array([1, -1, 1])
    outcome = dualgap.fit(X, y, solver="pegasos", k=2, iterate="average", T0=250, max_visits=500, tol=0.0)
    assert outcome.run.state.cursor.steps == 250


@pytest.mark.parametrize("options", [{"lam": 0.3}, {"sampling": "epochs"}, {"skip_lossless": True}])
def test_no_bound_is_stated_where_the_theorem_has_none(options: dict[str, Any]) -> None:
    X, y = np.eye(4), np.array([1, -1, 1, -1])
    text = "\n".join(dualgap.plan(X, y, solver="pegasos", **{"lam": 0.1, **options}))
    assert "its bound is for lam <= 1/4" in text
    assert "probability" not in text
