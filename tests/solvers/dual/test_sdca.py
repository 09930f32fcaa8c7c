"""SDCA: its orders, its outputs, its theory."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import dualgap
from dualgap.core.bias import AugmentedBias
from dualgap.core.losses import LOSSES, make_loss
from dualgap.core.problem import Point, Problem
from dualgap.data.sources import view
from dualgap.runtime.errors import InputError
from dualgap.runtime.random import generator
from dualgap.solvers.dual.averaging import clipped
from dualgap.solvers.dual.ordered_sweeps import ORDERS, Alias, _lay_out, make_alias
from dualgap.solvers.dual.sdca import SDCA, iteration_bound
from support.problems import small_problem

problem = partial(small_problem, n=40, d=5, lam=0.05, seed=0)


def iterates(solver: SDCA, task: Problem, steps: int) -> tuple[list[np.ndarray], Any]:
    """All dual iterates, from single steps."""
    state = solver.start(task, None)
    found = [state.beta.copy()]
    for _ in range(steps):
        state, _ = solver.step(task, state, 1, None)
        found.append(state.beta.copy())
    return found, state


def table(probability: np.ndarray | None) -> Alias:
    return (
        Alias(np.zeros(0), np.zeros(0, dtype=np.uint32)) if probability is None else make_alias(probability)
    )


def laid_out(order: str, epochs: int, n: int = 12, probability: np.ndarray | None = None) -> list[np.ndarray]:
    rng, rows = generator(5), np.arange(n, dtype=np.uint32) + 3
    picks, found = rows.copy(), []
    for _ in range(epochs):
        _lay_out(rng, ORDERS.index(order), rows, picks, table(probability))
        found.append(picks.copy())
    return found


def test_permutation_is_a_fresh_one_each_epoch() -> None:
    epochs = laid_out("permutation", 6)
    assert all(sorted(picks) == list(range(3, 15)) for picks in epochs)
    assert len({tuple(picks) for picks in epochs}) == 6


def test_cyclic_is_one_permutation() -> None:
    solver, task = SDCA(order="cyclic", seed=4), problem()
    state = solver.start(task, None)
    first = state.sweeps.order.rows.copy()
    state, _ = solver.step(task, state, 3 * first.size, None)
    assert np.array_equal(state.sweeps.order.picks, first)
    assert not np.array_equal(first, np.sort(first))
    assert sorted(first) == sorted(np.flatnonzero(task.source.weight))


def test_random_is_uniform_with_replacement() -> None:
    epochs = laid_out("random", 3000)
    assert any(len(set(picks)) < 12 for picks in epochs)
    assert chisquare(np.bincount(np.concatenate(epochs))[3:]).pvalue > 1e-4


def test_weighted_draws_have_their_probabilities() -> None:
    probability = np.array([0.0, 0.4, 0.1, 0.05, 0.05, 0.1, 0.02, 0.03, 0.15, 0.02, 0.03, 0.05])
    found = np.bincount(np.concatenate(laid_out("gaps", 3000, probability=probability)), minlength=15)[3:]
    assert found[0] == 0
    assert chisquare(found[1:], 36000 * probability[1:]).pvalue > 1e-4


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=40).filter(lambda values: sum(values) > 1e-3))
def test_alias_tables_hold_the_probabilities(values: list[float]) -> None:
    probability = np.array(values) / np.sum(values)
    threshold, other = make_alias(probability)
    n = probability.size
    held = threshold / n
    np.add.at(held, other, (1.0 - threshold) / n)
    np.testing.assert_allclose(held, probability, atol=1e-12)
    assert (threshold <= 1.0).all()
    assert (threshold >= -1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("order", ORDERS)
def test_every_step_raises_the_dual_and_keeps_w(loss: str, order: str) -> None:
    task = problem(loss, n=15, d=4, bias=AugmentedBias(0.7))
    solver = SDCA(order=order, seed=2)
    state = solver.start(task, None)
    before, last = -math.inf, None
    for step in range(90):
        state, _ = solver.step(task, state, 1, last)
        point = solver.point(task, state)
        evaluated = task.evaluate(point)
        assert evaluated.dual >= before - 1e-12 * (1.0 + abs(before))
        assert math.isfinite(evaluated.dual)
        np.testing.assert_allclose(evaluated.w_of_dual, state.w, rtol=1e-11, atol=1e-13)
        assert evaluated.b == pytest.approx(state.sweeps.cursor.b, rel=1e-11, abs=1e-13)
        before, last = evaluated.dual, (evaluated if step % 15 == 14 else None)


@pytest.mark.parametrize("T0", [0, 7, 33])
def test_average_is_the_mean_of_the_iterates(T0: int) -> None:
    task, solver = problem("logistic"), SDCA(order="random", iterate="average", T0=T0, seed=1)
    found, state = iterates(solver, task, 400)
    assert solver.point(task, state).beta is not None
    start = T0 or state.suffix.now.began
    expected = np.mean(found[start:], axis=0)
    point = solver.point(task, state)
    np.testing.assert_allclose(point.beta, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(point.w, task.evaluate(point).w_of_dual, rtol=1e-12, atol=1e-14)
    assert len(found[start:]) == 400 - start + 1


def test_windows_cover_half_to_three_quarters_of_the_run() -> None:
    task, solver = problem(), SDCA(iterate="average")
    state = solver.start(task, None)
    period = state.sweeps.order.rows.size
    for _ in range(40):
        state, _ = solver.step(task, state, period // 2 + 1, None)
        now, began = state.counts.visits, state.suffix.now.began
        if now >= 2 * period:
            assert 0.5 <= (now - began) / now <= 0.75


def test_an_average_in_large_steps_is_the_same() -> None:
    task = problem()
    for output in ("average", "random"):
        solver = SDCA(iterate=output, seed=9)
        ends = []
        for size in (1, 7, 1000):
            state = solver.start(task, None)
            while state.counts.visits < 300:
                state, _ = solver.step(task, state, min(size, 300 - state.counts.visits), None)
            ends.append(solver.point(task, state))
        for point in ends[1:]:
            assert np.array_equal(point.beta, ends[0].beta)
            assert np.array_equal(point.w, ends[0].w)


def test_a_random_iterate_is_one_of_the_window_each_equally_likely() -> None:
    task = problem(n=12, lam=0.01)
    T0, T, where = 10, 19, []
    for seed in range(400):
        found, state = iterates(SDCA(order="permutation", iterate="random", T0=T0, seed=seed), task, T)
        kept = SDCA(iterate="random", T0=T0).point(task, state).beta
        same = [t for t in range(T0, T + 1) if np.array_equal(found[t], kept)]
        assert same
        where.append(same[len(same) // 2])
    assert abs(np.mean(where) - (T0 + T) / 2) < 4 * (T - T0) / math.sqrt(12 * len(where))


def test_before_its_window_a_run_offers_the_last_iterate() -> None:
    task, solver = problem(), SDCA(iterate="average", T0=50)
    state, _ = solver.step(task, solver.start(task, None), 30, None)
    assert np.array_equal(solver.point(task, state).beta, state.beta)


def test_an_averaged_model_has_a_certificate() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 6))
    y = np.where(X @ rng.normal(size=6) + rng.normal(size=200) > 0, 1, -1)
    for output in ("average", "random"):
        for bias in ("none", "augmented", "exact"):
            outcome = dualgap.fit(
                X, y, C=0.1, solver="sdca", order="random", iterate=output, bias=bias, tol=1e-3
            )
            assert outcome.converged
            independent = outcome.problem.certify(Point(outcome.coef, outcome.intercept, outcome.dual))
            assert independent.relative_gap <= 1e-3


def test_clipping_touches_only_what_is_outside() -> None:
    for loss in LOSSES:
        task = problem(loss)
        low, high = zip(*(task.loss.dual_bounds(y) for y in task.source.y), strict=True)
        beta = np.random.default_rng(1).normal(size=task.source.n) * 3
        np.testing.assert_array_equal(clipped(task, beta), np.clip(beta, low, high))


class TestIterationBound:
    def test_the_formula_for_the_hinge(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(50, 3))
        X /= np.linalg.norm(X, axis=1)[:, None]
        X[0] *= 2.0
        task = Problem(view(X, np.sign(X[:, 0])), make_loss("hinge"), 0.5)
        T0, T, dual = iteration_bound(task, 0.01)
        early = math.ceil(50 * math.log(0.5 * 0.5 * 50 / 4.0))
        assert early + 50 + math.ceil(5 * 4.0 / (0.5 * 0.01)) == T
        assert pytest.approx(T - 50 - 4.0 / (0.5 * 0.01), abs=2) == T0
        assert dual == T0

    def test_two_sided_losses_need_four_times_as_much(self) -> None:
        hinge, absolute = (
            Problem(view(np.eye(3), np.array([1.0, -1.0, 1.0])), make_loss(loss), 1e-3)
            for loss in ("hinge", "absolute")
        )
        assert iteration_bound(absolute, 1e-4)[1] - 3 == pytest.approx(
            4 * (iteration_bound(hinge, 1e-4)[1] - 3)
        )

    def test_a_weight_is_a_row_repeated(self) -> None:
        X, y = np.array([[1.0], [2.0], [1.5]]), np.array([1.0, -1.0, 1.0])
        even = Problem(view(X, y, np.full(3, 7.0)), make_loss("logistic"), 0.1)
        plain = Problem(view(X, y), make_loss("logistic"), 0.1)
        assert iteration_bound(even, 1e-3) == iteration_bound(plain, 1e-3)

    @pytest.mark.parametrize(
        ("loss", "output"),
        [
            ("hinge", "average"),
            ("hinge", "random"),
            ("smooth-hinge", "last"),
            ("smooth-hinge", "average"),
            ("absolute", "average"),
        ],
    )
    def test_it_holds_on_the_mean_over_seeds(self, loss: str, output: str) -> None:
        task, epsilon = problem(loss, lam=0.1), 0.05
        gaps = []
        for seed in range(12):
            solver = SDCA(order="random", iterate=output, epsilon=epsilon, seed=seed)
            solver.check(task, math.inf)
            state, status = solver.step(task, solver.start(task, None), 10**9, None)
            assert status.ended is not None
            assert status.ended.name == "epsilon"
            longer = task.epoch_size if (loss, output) == ("smooth-hinge", "average") else 0
            assert state.counts.visits == iteration_bound(task, epsilon).T + longer
            gaps.append(task.certify(solver.point(task, state)).gap)
        assert np.mean(gaps) <= epsilon

    @pytest.mark.parametrize("loss", ["hinge", "smooth-hinge"])
    def test_half_of_it_bounds_the_dual(self, loss: str) -> None:
        task, epsilon = problem(loss, lam=0.1), 0.05
        precise = SDCA()
        end, _ = precise.step(task, precise.start(task, None), 4000 * task.epoch_size, None)
        best = task.certify(precise.point(task, end)).primal
        short = []
        for seed in range(12):
            solver = SDCA(order="random", epsilon=epsilon, bound="dual", seed=seed)
            solver.check(task, math.inf)
            state, status = solver.step(task, solver.start(task, None), 10**9, None)
            assert status.ended is not None
            assert "epsilon/2=0.025" in status.ended.message
            bound = iteration_bound(task, epsilon)
            assert state.counts.visits == bound.dual < bound.T
            short.append(best - task.certify(solver.point(task, state)).dual)
        assert np.mean(short) <= epsilon / 2

    def test_a_later_T0_makes_a_longer_run(self) -> None:
        task = problem(lam=0.1)
        T0, T, _ = iteration_bound(task, 0.05)
        assert T0 is not None
        solver = SDCA(order="random", iterate="random", epsilon=0.05, T0=T0 + 70)
        state, _ = solver.step(task, solver.start(task, None), 10**9, None)
        assert (state.counts.visits, state.suffix.now.began) == (T + 70, T0 + 70)
        with pytest.raises(InputError, match=f"needs T0 >= {T0}"):
            SDCA(order="random", iterate="random", epsilon=0.05, T0=T0 - 1).check(task, math.inf)

    def test_T0_may_be_T(self) -> None:
        """The mean of one iterate is that one."""
        X, y = np.eye(3), np.array([1, -1, 1])
        told: dict[str, Any] = {
            "solver": "sdca",
            "max_visits": 50,
            "tol": 0.0,
            "output": "last",
            "order": "random",
        }
        mean = dualgap.fit(X, y, iterate="average", T0=50, **told)
        np.testing.assert_array_equal(mean.coef, dualgap.fit(X, y, **told).coef)

    def test_the_plan_says_it(self) -> None:
        X, y = np.array([[1.0], [2.0], [1.5]]), np.array([1, -1, 1])
        lines = dualgap.plan(X, y, solver="sdca", lam=0.1, order="random", iterate="average", epsilon=0.01)
        T0, T, dual = iteration_bound(
            Problem(view(X, np.array(y, dtype=float)), make_loss("hinge"), 0.1), 0.01
        )
        text = "\n".join(lines)
        assert f"{T:,.0f} steps" in text
        assert f"T0={T0:,}" in text
        assert f"after {dual:,} steps the dual value is expected within 0.005" in text
        lines = dualgap.plan(X, y, solver="sdca", lam=0.1, order="random", iterate="random", epsilon=0.01)
        assert f"one of the iterates, at random, from step T0={T0:,}" in "\n".join(lines)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"order": "sideways"}, "order='sideways' must be one of random, permutation, cyclic"),
        ({"iterate": "mean"}, "iterate='mean' must be one of last, average, random"),
        ({"T0": -1}, "T0=-1"),
        ({"T0": 5}, "T0=5 goes with iterate=average"),
        ({"iterate": "average", "T0": 10_000, "max_visits": 500}, "T0=10000 is beyond the run of 500 steps"),
        ({"order": "gaps", "iterate": "average"}, "iterate='average' needs another"),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"epsilon": 0.1}, "order='random' only"),
        ({"epsilon": 0.1, "order": "random"}, "set iterate='average' or iterate='random' too"),
    ],
)
def test_bad_options(options: dict[str, Any], complaint: str) -> None:
    X, y = np.eye(3), np.array([1, -1, 1])
    with pytest.raises(InputError, match="(?s)" + complaint.replace("(", r"\(").replace(")", r"\)")):
        dualgap.fit(X, y, solver="sdca", **options)
