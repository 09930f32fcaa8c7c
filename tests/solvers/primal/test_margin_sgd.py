"""SGD-r, SGD-s and SGD-m: their pseudo-codes and propositions, in exact arithmetic wherever ties decide."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import dualgap
from dualgap.core.bias import AugmentedBias, ExactBias, NoBias
from dualgap.core.losses import make_loss
from dualgap.core.problem import Point, Problem
from dualgap.data.sources import view
from dualgap.runtime.errors import InputError
from dualgap.runtime.random import generator, resample, shuffle
from dualgap.solvers.order import first_permutation
from dualgap.solvers.primal.growing_margin import margin_errors
from dualgap.solvers.primal.margin_sgd import SGDm, SGDr, SGDs
from support.problems import linear_data, small_problem
from support.states import assert_same

EXACT = np.vectorize(Fraction, otypes=[object])
SOLVERS = [SGDs(), SGDm(), SGDm(times=3, cycle=4, below=3), SGDm(splitting=True)]


def halves(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.permutation([0.0, 0.0] + [1.0, 3.0] * (n // 2 - 1))  # n/N is 1/2


# small whole numbers and a power of two: floating point makes no error, and ties are common
whole = partial(
    small_problem,
    n=18,
    d=3,
    lam=1 / 64,
    seed=0,
    largest=3,
    empty_row=True,
    noise=1.0,
    weighted=False,
    weights=halves,
)


real = partial(linear_data, n=40, d=4, seed=4, noise=0.7)


def permutations(task: Problem, seed: int) -> Iterator[np.ndarray]:
    rng, picks = generator(seed), np.flatnonzero(task.source.weight).astype(np.uint32)
    while True:
        shuffle(rng, picks, picks.size)
        yield picks


def draws(task: Problem, seed: int) -> Iterator[np.ndarray]:
    rng, rows = generator(seed), np.flatnonzero(task.source.weight).astype(np.uint32)
    picks = rows.copy()
    while True:
        resample(rng, rows, picks)
        yield picks


class Literal:
    """The two pseudo-codes, one presentation at a time, in fractions; a weight multiplies its pattern's
    steps.
    """

    def __init__(self, task: Problem) -> None:
        source, rho = task.source, task.bias.rho
        X = np.column_stack([source.rows.matrix, np.full(source.n, rho)])  # type: ignore[attr-defined]
        self.y = EXACT(source.y[:, None] * X)
        self.q = (self.y * self.y).sum(axis=1)
        self.m, self.lam, self.rho = task.epoch_size, Fraction(task.lam), Fraction(rho)
        self.share = EXACT(source.weight) * self.m / Fraction(task.total_weight)
        self.a = EXACT(np.zeros(X.shape[1]))
        self.t = self.T = self.looks = 0
        self.M = self.r = self.L = Fraction(0)
        self.I = np.zeros(source.n, dtype=int)

    def epoch_size(self, k: int, theta: Fraction) -> None:
        p = self.a @ self.y[k]
        if p <= theta:
            self.a = self.a + self.share[k] * self.y[k]
            self.r += self.share[k] * (2 * p + self.share[k] * self.q[k])
            self.M += self.share[k]
            self.I[k] += 1

    def epoch(self, order: np.ndarray, times: int = 1, splitting: bool = False) -> None:
        self.L = Fraction(0)
        for k in order:
            p, theta = self.a @ self.y[k], self.lam * self.t
            if p <= theta:
                self.L += self.share[k] * (1 - p / theta if self.t > 0 else 1)
            for repeat in range(times):
                self.epoch_size(k, theta if splitting else theta + self.lam * repeat)
            self.t += times
        self.T += times

    def stops(self, epsilon: Fraction, f: Fraction) -> bool:
        theta, C = self.lam * self.t, 1 / (self.lam * self.m)
        w2 = self.r / (2 * theta * theta)
        dual = C * self.M / self.T - w2
        if w2 + C * self.L - dual > f * epsilon * dual:
            return False
        self.looks += 1
        short = [max(Fraction(0), theta - p) for p in self.y @ self.a]
        return bool(w2 + C * (self.share @ short) / theta - dual <= epsilon * dual)


def assert_equal(state: Any, literal: Literal) -> None:
    cursor = state.cursor
    assert cursor.t == literal.t == literal.T * literal.m
    assert (cursor.sums.M, cursor.sums.r) == (literal.M, literal.r)
    assert pytest.approx(float(literal.L), rel=1e-12) == cursor.sums.L
    assert cursor.a_bias == literal.rho * literal.a[-1]
    assert list(state.a) == list(literal.a[:-1])
    assert list(state.errors) == list(literal.I)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bias", [NoBias(), AugmentedBias(2.0)], ids=lambda bias: bias.kind)
@pytest.mark.parametrize("lam", [1 / 512, 1 / 16, 8.0])
@pytest.mark.parametrize("solver", SOLVERS, ids=["s", "m", "m-3-4-3", "splitting"])
def test_the_pseudo_code_with_relative_accuracy(solver: SGDs, lam: float, bias: Any, weighted: bool) -> None:
    task = whole(lam=lam, bias=bias, weighted=weighted)
    literal, orders = Literal(task), permutations(task, 3)
    solver = replace(solver, seed=3)
    state = solver.start(task, None)
    for epoch in range(1, 14):
        state, _ = solver.step(task, state, task.epoch_size, None)
        literal.epoch(next(orders), solver.multiplicity(epoch), getattr(solver, "splitting", False))
        assert state.cursor.epoch == epoch
        assert_equal(state, literal)
    assert state.counts.visits == 13 * task.epoch_size


@pytest.mark.parametrize("order", ["fixed", "given"])
@pytest.mark.parametrize("solver", [SGDs(), SGDm()], ids=["s", "m"])
def test_the_pseudo_code_in_one_order(solver: SGDs, order: str) -> None:
    """The permutation is that of the first epoch, and can be had without the solver."""
    task = whole(weighted=True)
    rows = np.flatnonzero(task.source.weight)
    picks = rows[first_permutation(rows.size, seed=3)] if order == "fixed" else rows
    assert np.array_equal(rows[first_permutation(rows.size, seed=3)], next(permutations(task, 3)))
    literal, solver = Literal(task), replace(solver, seed=3, order=order)
    state = solver.start(task, None)
    for epoch in range(1, 8):
        state, _ = solver.step(task, state, task.epoch_size, None)
        literal.epoch(picks, solver.multiplicity(epoch))
        assert_equal(state, literal)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lam", [1 / 512, 1 / 16, 8.0])
def test_the_pseudo_code_with_random_selection(lam: float, weighted: bool) -> None:
    task = whole(lam=lam, weighted=weighted)
    literal, samples, solver = Literal(task), draws(task, 5), SGDr(seed=5)
    state = solver.start(task, None)
    for _ in range(13):
        state, _ = solver.step(task, state, task.epoch_size, None)
        literal.epoch(next(samples))
        assert_equal(state, literal)
    np.testing.assert_allclose(
        solver.point(task, state).w, np.float64(literal.a[:-1] / (literal.lam * literal.t))
    )


@pytest.mark.parametrize("solver", [SGDs(), SGDm()], ids=["s", "m"])
@pytest.mark.parametrize("bias_step", [0.01, 0.3])
def test_a_free_bias_takes_its_part_of_each_step(solver: SGDs, bias_step: float) -> None:
    X, y = real()
    task = Problem(view(X, y), make_loss("hinge"), 0.05, ExactBias())
    solver = replace(solver, seed=1, bias_step=bias_step)
    a, b, t, errors, orders = np.zeros(4), 0.0, 0, np.zeros(40, dtype=int), permutations(task, 1)
    state = solver.start(task, None)
    for epoch in range(1, 8):
        times = solver.multiplicity(epoch)
        for k in next(orders):
            first, before = t, errors[k]
            for _ in range(times):  # the bias waits for the pattern's last presentation
                if y[k] * (a @ X[k]) <= task.lam * t * (1.0 - y[k] * b):
                    a += y[k] * X[k]
                    errors[k] += 1
                t += 1
            b += bias_step * (errors[k] - before) * y[k] / (task.lam * (first + 1))
        state, _ = solver.step(task, state, 40, None)
        np.testing.assert_array_equal(state.errors, errors)
        np.testing.assert_allclose(state.a, a, rtol=1e-12, atol=1e-12)
        assert state.cursor.b == pytest.approx(b, rel=1e-12)
    assert b != 0.0


class TestStoppingRule:
    @pytest.mark.parametrize("f", [1.0, 1.01, 1.25, 4.0, 1e6])
    @pytest.mark.parametrize("epsilon", [0.5, 0.125, 0.0625])
    @pytest.mark.parametrize("solver", [SGDs(), SGDm()], ids=["s", "m"])
    def test_it_looks_and_stops_where_the_pseudo_code_does(
        self, monkeypatch: pytest.MonkeyPatch, solver: SGDs, epsilon: float, f: float
    ) -> None:
        task, looks = whole(lam=1 / 8), 0
        literal, orders = Literal(task), permutations(task, 2)
        for epoch in range(1, 200):
            literal.epoch(next(orders), solver.multiplicity(epoch))
            if literal.stops(Fraction(epsilon), Fraction(f)):
                break
        certify = Problem.certify

        def counting(self: Problem, point: Point) -> Any:
            nonlocal looks
            looks += 1
            return certify(self, point)

        monkeypatch.setattr(Problem, "certify", counting)
        solver = replace(solver, epsilon=epsilon, f=f, seed=2)
        state = solver.start(task, None)
        for budget in (1, 7, 10**4):
            state, status = solver.step(task, state, budget, None)
        assert status.ended is not None
        assert_equal(state, literal)
        assert state.cursor.epoch == epoch < 199
        assert looks == literal.looks >= 1
        assert state.accurate <= epsilon
        assert solver.step(task, state, 100, None)[0].counts == state.counts

    @pytest.mark.parametrize("name", ["sgd-s", "sgd-m"])
    @pytest.mark.parametrize("bias", ["none", "augmented", "exact"])
    def test_a_fit_ends_by_it_and_its_certificate_proves_it(self, name: str, bias: str) -> None:
        X, y = real()
        outcome = dualgap.fit(X, y, lam=0.1, solver=name, bias=bias, tol=0.0, epsilon=0.2, max_epochs=5000)
        assert outcome.reason.name == "epsilon"
        assert "relative accuracy" in outcome.reason.message
        assert outcome.certificate.relative_gap <= 0.2
        assert outcome.run.state.cursor.position == -1

    @pytest.mark.parametrize("bias", [NoBias(), AugmentedBias(2.0)], ids=lambda bias: bias.kind)
    @pytest.mark.parametrize("solver", [SGDs(epsilon=0.125), SGDm(epsilon=0.125)], ids=["s", "m"])
    def test_it_needs_no_counters(self, solver: SGDs, bias: Any) -> None:
        task, ends = whole(lam=1 / 8, bias=bias), []
        for duals in (True, False):
            chosen = replace(solver, duals=duals)
            state, status = chosen.step(task, chosen.start(task, None), 10**4, None)
            assert status.ended is not None
            assert state.errors.size == 18 * duals
            assert (chosen.point(task, state).beta is None) is not duals
            ends.append(state)
        assert ends[0].cursor == ends[1].cursor
        assert ends[1].accurate == pytest.approx(ends[0].accurate, rel=1e-9)

    @pytest.mark.parametrize("bias_step", [0.0, 0.01])
    def test_without_counters_it_claims_nothing_about_a_free_bias(self, bias_step: float) -> None:
        """Proposition 2's bound is no bound there: the dual point must satisfy sum y beta = 0, which nobody
        checks.
        """
        X, y = real(n=60)
        y = np.where(X[:, 0] > -1.5, 1.0, -1.0)
        optimum = dualgap.fit(X, y, lam=0.05, bias="exact", tol=1e-3).certificate.primal
        options: dict[str, Any] = {"duals": False, "epsilon": 0.1, "bias_step": bias_step}
        try:
            outcome = dualgap.fit(
                X, y, lam=0.05, bias="exact", solver="sgd-s", tol=0.0, max_epochs=50, **options
            )
        except InputError:
            return
        assert outcome.reason.name != "epsilon" or outcome.certificate.primal <= 1.1 * optimum

    def test_a_finer_epsilon_goes_on_from_a_coarser_one(self) -> None:
        X, y = real()
        common: dict[str, Any] = {"lam": 0.1, "solver": "sgd-s", "tol": 0.0, "max_epochs": 5000}
        coarse = dualgap.fit(X, y, epsilon=0.3, **common)
        fine = dualgap.fit(X, y, epsilon=0.05, resume=coarse, **common)
        assert fine.certificate.relative_gap <= 0.05
        assert fine.run.state.cursor.epoch > coarse.run.state.cursor.epoch

    def test_a_run_that_has_ended_hands_back_its_model_again(self) -> None:
        X, y = real()
        common: dict[str, Any] = {"lam": 0.1, "solver": "sgd-s", "tol": 0.0, "epsilon": 0.3}
        ended = dualgap.fit(X, y, **common)
        again = dualgap.fit(X, y, resume=ended, **common)
        assert again.certificate == ended.certificate
        assert np.array_equal(again.coef, ended.coef)

    def test_without_epsilon_it_never_looks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Problem, "certify", lambda self, point: pytest.fail("a look at the primal value"))
        task = whole(lam=8.0)
        state, _ = SGDs().step(task, SGDs().start(task, None), 500, None)
        assert state.counts.visits == 500


@settings(deadline=None, max_examples=400)
@given(
    st.integers(-60, 60),
    st.integers(1, 12),
    st.integers(-4, 12),
    st.integers(0, 40),
    st.sampled_from([1.0, 1 / 8, 2.0**-40]),
)
def test_proposition_3(P: int, times: int, lam: int, q: int, unit: float) -> None:
    """Whole numbers: P = (l - 1) lam, q <= lam, P = 0 and every other tie come up by themselves."""
    count, left = 0, P
    for _ in range(times):
        if left <= 0:
            left += q
            count += 1
        left -= lam
    assert margin_errors(P * unit, times, lam * unit, q * unit) == count


@pytest.mark.parametrize("times", [1, 5])
def test_proposition_3_for_a_pattern_far_behind(times: int) -> None:
    """A short pattern among long ones may be behind by more of its steps than an integer can count."""
    assert margin_errors(-1e25, times, 1e-3, 1.0) == times
    assert margin_errors(1e25, times, 1e-3, 1.0) == 0


def test_the_multiplicity_of_an_epoch() -> None:
    five = [epoch for epoch in range(1, 30) if SGDm().multiplicity(epoch) == 5]
    assert five == [1, 2, 3, 4, 10, 11, 12, 13, 19, 20, 21, 22, 28, 29]
    assert {SGDm().multiplicity(epoch) for epoch in range(1, 30)} == {1, 5}
    other = SGDm(times=7, cycle=3, below=2)
    assert [other.multiplicity(epoch) for epoch in range(1, 7)] == [7, 1, 1, 7, 1, 1]
    assert {SGDm(below=1).multiplicity(epoch) for epoch in range(1, 30)} == {1}
    assert SGDs().multiplicity(1) == 1


@pytest.mark.parametrize("bias", [NoBias(), AugmentedBias(0.5)], ids=lambda bias: bias.kind)
@pytest.mark.parametrize(
    "solver", [SGDs(seed=7), SGDm(seed=7), SGDm(splitting=True, seed=7)], ids=["s", "m", "split"]
)
def test_the_box_and_w_at_the_end_of_every_epoch(solver: SGDs, bias: Any) -> None:
    X, y = real()
    weight = np.random.default_rng(1).choice([0.0, 0.3, 1.0, 2.0, 5.0], size=40)
    task = Problem(view(X, y, weight), make_loss("hinge"), 0.02, bias)
    best = dualgap.fit(X, y, lam=0.02, sample_weight=weight, bias=bias, tol=1e-8).certificate.primal
    state = solver.start(task, None)
    for _ in range(25):
        state, _ = solver.step(task, state, task.epoch_size, None)
        assert state.errors.min() >= 0
        T = state.cursor.t // task.epoch_size
        assert state.errors.max() <= T
        point = solver.point(task, state)
        np.testing.assert_allclose(np.abs(point.beta), state.errors / T, rtol=1e-15)
        evaluated = task.evaluate(point)
        np.testing.assert_allclose(point.w, evaluated.w_of_dual, rtol=1e-11, atol=1e-13)
        assert point.b == pytest.approx(evaluated.b, rel=1e-11, abs=1e-13)
        assert -math.inf < evaluated.dual <= best  # Proposition 2


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([1 / 128, 1 / 4, 2.0, 32.0]), st.booleans())
def test_propositions_1_and_2(seed: int, lam: float, random: bool) -> None:
    task = whole(n=10, d=2, lam=lam, seed=seed)
    R2, lam_, C = Fraction(task.source.squared_norms.max()), Fraction(lam), 1 / (Fraction(lam) * 10)
    solver = SGDr(seed=seed) if random else SGDs(seed=seed)
    state = solver.start(task, None)
    for t in range(1, 41):
        state, _ = solver.step(task, state, 1, None)
        a2 = sum((Fraction(value) ** 2 for value in state.a), Fraction(0))
        assert a2 == state.cursor.sums.r
        assert a2 <= (R2 - lam_) * t + lam_ * t * t  # (8)
        assert a2 <= R2 * t * t
        if t % 10 == 0 and not random:
            L = C * Fraction(state.cursor.sums.M) * 10 / state.cursor.t - a2 / (2 * (lam_ * t) ** 2)
            evaluated = task.evaluate(solver.point(task, state))
            assert evaluated.dual == pytest.approx(float(L * lam_), rel=1e-12, abs=1e-14)  # J = P / lam


def test_margin_errors_become_rare_or_certain_away_from_the_margin() -> None:
    X, y = real()
    optimum = dualgap.fit(X, y, lam=0.05, tol=1e-9)
    margin = y * (X @ optimum.coef)
    task, solver = Problem(view(X, y), make_loss("hinge"), 0.05), SGDs(seed=1)
    shares = []
    state = solver.start(task, None)
    for _ in range(2):
        state, _ = solver.step(task, state, 40 * 100 if not shares else 40 * 300, None)
        shares.append(state.errors / (state.cursor.t // 40))
    over, under = margin > 1.3, margin < 0.7
    assert over.sum() > 5 < under.sum()
    for early, late in ((shares[0][over], shares[1][over]), (1 - shares[0][under], 1 - shares[1][under])):
        assert late.max() <= 0.03
        assert late.mean() <= 0.5 * early.mean()


def test_counters_of_random_selection_obey_the_box_in_the_limit() -> None:
    X, y = real(n=12, d=2)
    task, solver = Problem(view(X, y), make_loss("hinge"), 0.3), SGDr(seed=3)
    state = solver.start(task, None)
    excess = []
    for epochs in (20, 1980):
        state, _ = solver.step(task, state, epochs * 12, None)
        T = state.cursor.t / 12
        excess.append(float(np.max(state.errors / T)) - 1.0)
        assert excess[-1] <= 5.0 / math.sqrt(T)
        beta = solver.point(task, state).beta
        assert np.abs(beta).max() <= 1.0  # clipped
        np.testing.assert_array_equal(np.sign(beta)[beta != 0], y[beta != 0])
    assert excess[0] > 0.0
    assert excess[1] < 0.3 * excess[0]


class TestWeights:
    @pytest.mark.parametrize("solver", [SGDs(), SGDm(), SGDr()], ids=["s", "m", "r"])
    def test_equal_weights_are_none(self, solver: Any) -> None:
        plain = whole()
        even = Problem(
            view(plain.source.rows.matrix, plain.source.y, np.full(18, 4.0)), plain.loss, plain.lam
        )  # type: ignore[attr-defined]
        ends = [solver.step(task, solver.start(task, None), 200, None)[0] for task in (plain, even)]
        assert_same(*ends)

    @pytest.mark.parametrize("solver", [SGDs(), SGDm(), SGDr()], ids=["s", "m", "r"])
    def test_weight_zero_is_no_row(self, solver: Any) -> None:
        X, y = real()
        here = np.arange(40) % 3 > 0
        without = Problem(view(X[here], y[here]), make_loss("hinge"), 0.03)
        zeros = Problem(view(X, y, here.astype(float)), make_loss("hinge"), 0.03)
        short, long = (solver.step(task, solver.start(task, None), 300, None)[0] for task in (without, zeros))
        assert np.array_equal(short.a, long.a)
        assert np.array_equal(short.errors, long.errors[here])
        assert not long.errors[~here].any()
        assert short.cursor == long.cursor

    @pytest.mark.parametrize("name", ["sgd-s", "sgd-m", "sgd-r"])
    def test_whole_weights_have_the_optimum_of_repeated_rows(self, name: str) -> None:
        """Run for run it differs, since repeated rows are presented apart."""
        X, y = real()
        weight = np.arange(40) % 4
        outcome = dualgap.fit(X, y, lam=0.2, sample_weight=weight, solver=name, tol=0.02)
        other = dualgap.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight), lam=0.2, tol=1e-6)
        assert outcome.converged
        assert outcome.certificate.dual <= other.certificate.primal
        assert other.certificate.dual <= outcome.certificate.primal


@pytest.mark.parametrize("solver", [SGDs(), SGDm(), SGDr()], ids=["s", "m", "r"])
def test_float32_is_the_same_where_float32_is_exact(solver: Any) -> None:
    task = whole()
    narrow, wide = (replace(solver, precision=precision) for precision in ("float32", "float64"))
    left, right = (chosen.step(task, chosen.start(task, None), 300, None)[0] for chosen in (narrow, wide))
    assert (left.a.dtype, right.a.dtype) == (np.float32, np.float64)
    assert np.array_equal(left.a, right.a)
    assert left.cursor == right.cursor
    assert narrow.point(task, left).w.dtype == np.float64


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sgd-s", "sgd-m", "sgd-r"])
def test_a_model_in_float32_has_a_certificate_in_float64(name: str) -> None:
    X, y = real()
    outcome = dualgap.fit(X.astype(np.float32), y, lam=0.2, solver=name, precision="float32", tol=0.02)
    assert outcome.converged
    found = outcome.problem.certify(Point(outcome.coef, outcome.intercept, outcome.dual))
    assert found.relative_gap <= 0.02
    assert found.rounding < 1e-12


@pytest.mark.parametrize("bias", [NoBias(), AugmentedBias(0.5), ExactBias()], ids=lambda bias: bias.kind)
@pytest.mark.parametrize("solver", [SGDs(epsilon=0.3), SGDm(epsilon=0.02), SGDr()], ids=["s", "m", "r"])
def test_budgets_make_no_difference(solver: Any, bias: Any) -> None:
    X, y = real()
    task = Problem(view(X, y, 1.0 + np.arange(40) % 3), make_loss("hinge"), 0.1, bias)
    ends = []
    for size in (1, 7, 1000):
        state, ended = solver.start(task, None), None
        while state.counts.visits < 430 and ended is None:
            state, status = solver.step(task, state, min(size, 430 - state.counts.visits), None)
            ended = status.ended
        ends.append(state)
    assert_same(ends[0], ends[1])
    assert_same(ends[0], ends[2])


@pytest.mark.parametrize(("name", "options"), [("sgd-s", {"epsilon": 0.01}), ("sgd-m", {}), ("sgd-r", {})])
def test_a_resumed_run_is_the_same(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    X, y = real()
    common: dict[str, Any] = {"lam": 0.03, "solver": name, "tol": 0.0, "max_epochs": None, **options}
    long = dualgap.fit(X, y, max_visits=1033, **common)
    dualgap.save_state(tmp_path / "run.npz", dualgap.fit(X, y, max_visits=517, **common))
    resumed = dualgap.fit(X, y, max_visits=1033, resume=dualgap.load_state(tmp_path / "run.npz"), **common)
    assert_same(long.run.state, resumed.run.state)
    assert long.certificate == resumed.certificate


@pytest.mark.slow
def test_a_step_costs_the_entries_of_its_row_whatever_d_is() -> None:
    rng = np.random.default_rng(0)
    small = sp.random(60, 10_000, density=5e-4, format="csr", random_state=rng)
    y = rng.choice([-1.0, 1.0], size=60)
    for solver in (SGDs(), SGDm(), SGDr()):
        counts = []
        for d in (10_000, 10_000_000):
            X = sp.csr_matrix((small.data, small.indices, small.indptr), shape=(60, d))
            task = Problem(view(X, y), make_loss("hinge"), 0.01)
            counts.append(solver.step(task, solver.start(task, None), 300, None)[0].counts)
        assert counts[0] == counts[1]
        assert counts[0].entries <= 2 * 6 * small.nnz


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("sgd-s", {"epsilon": -0.1}, "epsilon=-0.1 must be a finite number >= 0"),
        ("sgd-m", {"epsilon": math.nan}, "epsilon=nan must be a finite number >= 0"),
        ("sgd-s", {"f": 0.9}, "f=0.9 must be a finite number >= 1"),
        ("sgd-m", {"f": math.inf}, "f=inf must be a finite number >= 1"),
        ("sgd-s", {"precision": "half"}, "precision='half' must be one of float64, float32"),
        ("sgd-r", {"precision": "float16"}, "precision='float16' must be one of float64, float32"),
        ("sgd-m", {"times": 0}, "times=0 must be a whole number >= 1"),
        ("sgd-m", {"cycle": 0}, "cycle=0 must be a whole number >= 1"),
        ("sgd-m", {"below": -1}, "below=-1 must be a whole number >= 1"),
        ("sgd-m", {"times": 1.5}, "times=1.5 of solver 'sgd-m' must be of type int"),
        ("sgd-r", {"polish": -1}, "polish=-1 must be a whole number >= 0"),
        ("sgd-r", {"bias_step": -0.5}, "bias_step=-0.5 must be a finite number >= 0"),
        ("sgd-r", {"epsilon": 0.1}, "solver 'sgd-r' has no option 'epsilon'"),
        ("sgd-s", {"loss": "logistic"}, "cannot train with the loss 'logistic'"),
    ],
)
def test_bad_options(name: str, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        dualgap.fit(np.eye(3), np.array([1, -1, 1]), solver=name, **options)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
