"""The engine of stochastic gradient descent, and the solvers that are little more than a rate and a mean on
it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.core.bias import AugmentedBias, ExactBias, NoBias
from dualgap.core.losses import LOSSES, make_loss
from dualgap.core.problem import Point, Problem
from dualgap.data.sources import view
from dualgap.runtime.errors import InputError
from dualgap.runtime.jit import compiled
from dualgap.runtime.random import generator, resample
from dualgap.solvers import SOLVERS
from dualgap.solvers.order import first_permutation
from dualgap.solvers.primal.asgd import ASGD
from dualgap.solvers.primal.descent import Descent, last_iterate
from dualgap.solvers.primal.implicit import Implicit
from dualgap.solvers.primal.norma import Norma
from dualgap.solvers.primal.perceptron import Perceptron
from dualgap.solvers.primal.rates import RATES, make_rate
from dualgap.solvers.primal.sgd import SGD
from dualgap.solvers.primal.sgd_qn import SGDQN
from dualgap.solvers.primal.svmsgd import SAMPLE, SvmSgd, calibrated
from support.problems import linear_data, small_problem
from support.states import assert_same

BIASES = {"none": NoBias(), "augmented": AugmentedBias(0.7), "exact": ExactBias()}


problem = partial(small_problem, n=24, d=4, lam=0.1, seed=1, empty_row=True, intercept=0.3)


data = partial(linear_data, n=60, d=4, seed=4, noise=0.7)


def run(solver: Any, task: Problem, steps: int, size: int = 10**9) -> Any:
    state = solver.start(task, None)
    while steps > 0:
        state, _ = solver.step(task, state, min(size, steps), None)
        steps -= size
    return state


def written(
    task: Problem,
    steps: int,
    eta: Callable[[int], float],
    slope: Callable[[float, float], float] | None = None,
    bias_step: float = 0.01,
) -> tuple[list[np.ndarray], list[float]]:
    """All models of plain stochastic gradient descent in the order of the rows, written with dense
    vectors.
    """
    X, y = task.source.rows.matrix, task.source.y  # type: ignore[attr-defined]
    share = task.source.weight * (task.epoch_size / task.total_weight)
    rows = np.flatnonzero(task.source.weight)
    rho = task.bias.rho
    w, b = np.zeros(X.shape[1]), 0.0
    ws, bs = [w], [b]
    for t in range(1, steps + 1):
        i = rows[(t - 1) % rows.size]
        g = share[i] * (slope or task.loss.derivative)(y[i], float(X[i] @ w) + b)
        w = (1.0 - eta(t) * task.lam) * w - eta(t) * g * X[i]
        if task.bias.kind == "exact":
            b -= bias_step * eta(t) * g
        else:
            b = (1.0 - eta(t) * task.lam) * b - eta(t) * g * rho**2
        ws.append(w)
        bs.append(b)
    return ws, bs


def assert_model(task: Problem, solver: Any, state: Any, w: Any, b: float) -> None:
    point = solver.point(task, state)
    np.testing.assert_allclose(point.w, w, rtol=1e-10, atol=1e-10)
    assert point.b == pytest.approx(b, rel=1e-10, abs=1e-10)


class TestRates:
    @pytest.mark.parametrize("t", [1, 2, 3, 10, 10**6, 10**12])
    def test_closed_forms(self, t: int) -> None:
        assert make_rate("constant", 0.3).at(t) == 0.3
        assert make_rate("inverse", 0.3).at(t) == pytest.approx(0.3 / t, rel=1e-15)
        assert make_rate("sqrt", 0.3).at(t) == pytest.approx(0.3 / t**0.5, rel=1e-15)
        assert make_rate("bottou", 0.3, 1.0, 0.02).at(t) == pytest.approx(0.3 / (1.0 + 0.02 * t), rel=1e-15)
        assert make_rate("bottou", 0.3, 0.75, 0.02).at(t) == pytest.approx(
            0.3 / (1.0 + 0.02 * t) ** 0.75, rel=1e-14
        )

    def test_they_never_rise_so_that_the_first_step_is_the_longest(self) -> None:
        for kind, power in itertools.product(RATES, (0.5, 0.75, 1.0)):
            rate = make_rate(kind, 2.0, power, 0.7)
            found = [rate.at(t) for t in range(1, 200)]
            assert all(late <= early for early, late in itertools.pairwise(found))


class TestSvmSgd:
    @pytest.mark.parametrize("bias", BIASES)
    def test_as_written(self, bias: str) -> None:
        task, solver = problem(bias=BIASES[bias]), SvmSgd(eta0=0.8, order="given")
        ws, bs = written(task, 60, lambda t: 0.8 / (1.0 + task.lam * 0.8 * t))
        assert_model(task, solver, run(solver, task, 60), ws[-1], bs[-1])

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("loss", "lam"), [("hinge", 0.1), ("hinge", 1e-5), ("squared", 0.01), ("logistic", 1e-3)]
    )
    def test_the_calibrated_rate_is_the_best_of_its_neighbours_on_the_first_rows(
        self, loss: str, lam: float
    ) -> None:
        task, solver = problem(loss, n=SAMPLE + 300, lam=lam), SvmSgd(order="given")
        rows, y, weight = task.source.rows.matrix, task.source.y, task.source.weight  # type: ignore[attr-defined]
        first = np.flatnonzero(weight)[:SAMPLE]
        head = Problem(view(rows[first], y[first], weight[first]), task.loss, lam)

        def cost(eta0: float) -> float:
            w = written(head, head.epoch_size, lambda t: eta0 / (1.0 + lam * eta0 * t))[0][-1]
            return head.evaluate(Point(w, 0.0, None)).primal

        best = calibrated(solver, task)
        assert math.log2(best).is_integer()
        # beyond 1/lam the rate hardly changes
        assert cost(best) <= cost(2.0 * best) or 2.0 * best * lam > 1.0
        assert cost(best) <= cost(0.5 * best)
        assert solver.rate(task).eta0 == best
        other = y.copy()
        other[first[-1] + 1 :] *= -1.0  # the rows beyond the first ones have no say
        assert calibrated(solver, Problem(view(rows, other, task.source.weight), task.loss, lam)) == best

    @pytest.mark.parametrize("order", ["permutation", "fixed", "random"])
    def test_the_rate_is_calibrated_on_rows_of_the_order_that_is_used(self, order: str) -> None:
        """The file is sorted: its first rows are of one class, and shorter than the others."""
        X, y = linear_data(n=4 * SAMPLE, d=4, seed=4, noise=0.7)
        X[y > 0] *= 30.0
        sort = np.argsort(y, kind="stable")
        task = Problem(view(X[sort], y[sort]), make_loss("hinge"), 1e-4)
        order_of_file, found = (calibrated(SvmSgd(order=how, seed=2), task) for how in ("given", order))
        assert found != order_of_file
        picks = first_permutation(len(y), seed=2)
        if order == "random":
            picks = np.zeros(len(y), dtype=np.uint32)
            resample(generator(2), np.arange(len(y), dtype=np.uint32), picks)
        shuffled = Problem(view(X[sort][picks], y[sort][picks]), task.loss, task.lam)
        assert found == calibrated(SvmSgd(order="given"), shuffled)

    @pytest.mark.parametrize("name", ["svmsgd", "asgd", "sgd"])
    def test_on_rows_out_of_all_proportion_a_rate_is_found_too(self, name: str) -> None:
        """Trials that overflow are not chosen, and nobody hears of them (numbers of plain Python warn,
        though).
        """
        X, y = data()
        for loss, scale in (("squared", 1e6), ("hinge", 1e9)):
            with np.errstate(all="warn" if compiled else "ignore"):
                outcome = dualgap.fit(X * scale, y, loss=loss, lam=1.0, solver=name, max_epochs=2, polish=0)
            assert np.isfinite(outcome.coef).all()
            assert outcome.certificate.primal <= outcome.problem.value_at_zero

    def test_a_sample_that_tells_nothing_does_not_stop_the_run(self) -> None:
        """The first rows are empty: no rate is better than another on them."""
        X, y = data()
        X, y = np.vstack([np.zeros((SAMPLE, 4)), X]), np.concatenate([np.resize([1, -1], SAMPLE), y])
        outcome = dualgap.fit(X, y, lam=1e-3, solver="svmsgd", order="given", max_epochs=3, polish=0)
        assert outcome.certificate.primal < 0.99 * outcome.problem.value_at_zero

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["svmsgd", "asgd", "sgd", "norma", "sgd-qn", "implicit"])
    @pytest.mark.parametrize("lam", [0.05, 2.0, 50.0])
    def test_defaults_train_at_every_strength(self, name: str, lam: float) -> None:
        """A rate that a solver chose itself is never refused."""
        X, y = data()
        outcome = dualgap.fit(X, y, lam=lam, solver=name, tol=0.02, max_epochs=300)
        assert outcome.converged


class TestASGD:
    @pytest.mark.parametrize("bias", BIASES)
    @pytest.mark.parametrize("tstart", [0, 1, 7])
    def test_a_plain_mean_from_tstart_on_with_slower_steps(self, bias: str, tstart: int) -> None:
        task, solver = problem(bias=BIASES[bias]), ASGD(eta0=0.8, order="given", tstart=tstart)
        steps = 2 * task.epoch_size + 3
        ws, bs = written(task, steps, lambda t: 0.8 / (1.0 + task.lam * 0.8 * t) ** 0.75)
        first = tstart or task.epoch_size + 1
        taken = slice(first - 1, steps)  # before the steps first, ..., steps
        assert_model(
            task, solver, run(solver, task, steps), np.mean(ws[taken], axis=0), float(np.mean(bs[taken]))
        )

    def test_before_tstart_it_is_the_last_iterate(self) -> None:
        task, solver = problem(), ASGD(eta0=0.8, order="given", tstart=50)
        ws, bs = written(task, 40, lambda t: 0.8 / (1.0 + task.lam * 0.8 * t) ** 0.75)
        assert_model(task, solver, run(solver, task, 40), ws[-1], bs[-1])

    def test_bad_options(self) -> None:
        with pytest.raises(InputError, match="tstart=-1 must be a whole number >= 0"):
            ASGD(tstart=-1)


class TestNorma:
    @pytest.mark.parametrize("margin", [0.0, 1.0, 2.0])
    @pytest.mark.parametrize("bias", BIASES)
    def test_as_written(self, margin: float, bias: str) -> None:
        task = problem(lam=0.5, bias=BIASES[bias])
        steps = 2 * task.epoch_size
        ws, bs = written(
            task, steps, lambda t: 0.5 / math.sqrt(t), lambda y, score: -y if y * score <= margin else 0.0
        )
        solver = Norma(margin=margin, eta0=0.5, order="given", tstart=5)
        state = run(solver, task, steps)
        assert_model(task, solver, state, np.mean(ws[4:steps], axis=0), float(np.mean(bs[4:steps])))
        w, b = last_iterate(state)
        np.testing.assert_allclose(w, ws[-1], rtol=1e-10, atol=1e-12)
        assert b == pytest.approx(bs[-1], abs=1e-12)

    def test_a_margin_met_exactly_is_an_update(self) -> None:
        """One row x = 1: the first step makes w = 1/2."""
        task = Problem(view(np.ones((1, 1)), np.ones(1)), make_loss("hinge"), 1e-9)
        for margin, updates in ((0.5, 2), (math.nextafter(0.5, 0.0), 1), (0.0, 1)):
            assert run(Norma(margin=margin, eta0=0.5), task, 2).counts.updates == updates

    def test_the_mean_begins_after_an_epoch_unless_told_otherwise(self) -> None:
        task, solver = problem(), Norma(eta0=0.5, order="given")
        steps = 2 * task.epoch_size
        ws, bs = written(task, steps, lambda t: 0.5 / math.sqrt(t))
        taken = slice(task.epoch_size, steps)
        assert_model(
            task, solver, run(solver, task, steps), np.mean(ws[taken], axis=0), float(np.mean(bs[taken]))
        )

    @pytest.mark.parametrize(
        ("kind", "eta"),
        [("constant", lambda t: 0.5), ("inverse", lambda t: 0.5 / t)],
        ids=["constant", "inverse"],
    )
    def test_other_rates(self, kind: str, eta: Callable[[int], float]) -> None:
        task, solver = problem(), Norma(eta0=0.5, learning_rate=kind, order="given", tstart=1)
        ws, bs = written(task, 50, eta)
        assert_model(task, solver, run(solver, task, 50), np.mean(ws[:50], axis=0), float(np.mean(bs[:50])))

    def test_their_defaults(self) -> None:
        """1/(lam t) is Pegasos' rate; a constant one is that of 1/sqrt(t) after an epoch."""
        task = problem(lam=1e-3)
        assert Norma(learning_rate="inverse").rate(task).at(7) == pytest.approx(1.0 / (task.lam * 7))
        assert Norma(learning_rate="constant").rate(task).at(1) == pytest.approx(
            Norma().rate(task).at(task.epoch_size)
        )
        with pytest.raises(InputError, match="learning_rate='bottou' must be one of sqrt, constant, inverse"):
            Norma(learning_rate="bottou")

    def test_the_default_rate_keeps_within_the_regulariser(self) -> None:
        for lam in (1e-4, 0.3, 40.0):
            task = problem(lam=lam)
            eta0 = Norma().rate(task).eta0
            length = math.sqrt(task.source.squared_norms.max())
            assert eta0 == pytest.approx(min(1.0 / (math.sqrt(lam) * length), 1.0 / lam))

    def test_a_long_run_in_float32_keeps_its_mean(self) -> None:
        task = problem(lam=0.5)
        points = []
        for precision in ("float32", "float64"):
            solver = Norma(precision=precision)
            points.append(solver.point(task, run(solver, task, 6000)))
        np.testing.assert_allclose(points[0].w, points[1].w, atol=1e-2 * np.abs(points[1].w).max())

    @pytest.mark.parametrize(
        ("options", "complaint"),
        [
            ({"margin": -1.0}, "margin=-1.0 must be a finite number >= 0"),
            ({"eta0": -1.0}, "eta0=-1.0"),
            ({"eta0": 20.0}, "must be at most 1/lam = 10"),
            ({"tstart": -1}, "tstart=-1"),
            ({"loss": "logistic"}, "cannot train with the loss 'logistic'"),
        ],
    )
    def test_bad_options(self, options: dict[str, Any], complaint: str) -> None:
        X, y = data()
        with pytest.raises(InputError, match=complaint):
            dualgap.fit(X, y, lam=0.1, solver="norma", **options)


FAMILY: list[Any] = [
    SvmSgd(eta0=0.3),
    SGD(eta0=0.3, average=True, weights="simple"),
    SGD(eta0=0.3, random=True, order="fixed"),
    SGD(eta0=0.3, lazy=False, order="random"),
    ASGD(eta0=0.3, tstart=5),
    Norma(tstart=9),
    Perceptron(averaged=True),
    Perceptron(voted=True),
    Implicit(),
    SGDQN(eta0=0.3, skip=4),
]


@pytest.mark.parametrize("solver", FAMILY, ids=lambda solver: f"{solver.name}-{FAMILY.index(solver)}")
class TestFamily:
    @pytest.mark.slow
    @pytest.mark.parametrize("bias", ["none", "exact"])
    def test_it_makes_no_difference_into_which_budgets_the_work_is_cut(self, solver: Any, bias: str) -> None:
        task = problem(bias=BIASES[bias])
        whole = run(solver, task, 100)
        for size in (1, 7):
            assert_same(whole, run(solver, task, 100, size))
        assert whole.counts.visits == 100

    def test_a_run_goes_on_bit_for_bit(self, solver: Any, tmp_path: Any) -> None:
        X, y = data()
        options = {key: value for key, value in vars(solver).items() if key != "seed"}
        common: dict[str, Any] = {
            "lam": 0.1,
            "solver": solver.name,
            "tol": 0.0,
            "max_epochs": None,
            **options,
        }
        long = dualgap.fit(X, y, max_visits=200, **common)
        first = dualgap.fit(X, y, max_visits=77, **common)
        dualgap.save_state(tmp_path / "run.npz", first)
        second = dualgap.fit(X, y, max_visits=200, resume=dualgap.load_state(tmp_path / "run.npz"), **common)
        assert_same(long.run.state, second.run.state)

    def test_without_duals_nothing_is_kept_of_a_row_and_the_model_is_the_same(self, solver: Any) -> None:
        task, lean = problem(), replace(solver, duals=False)
        kept, bare = run(solver, task, 90), run(lean, task, 90)
        point = lean.point(task, bare)
        assert np.array_equal(point.w, solver.point(task, kept).w)
        assert point.w.any()
        assert point.beta is None
        n = task.source.n if solver.keeps_duals else 0
        assert kept.means.slopes.size == kept.means.looks.size == n
        assert bare.means.slopes.size == bare.means.looks.size == 0


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["svmsgd", "implicit"])
def test_running_means_of_slopes_are_dual_points_at_all_times(name: str, loss: str) -> None:
    task = problem(loss)
    solver: Any = SvmSgd(eta0=0.05) if name == "svmsgd" else Implicit()
    low, high = np.transpose([task.loss.dual_bounds(y) for y in task.source.y])
    state = solver.start(task, None)
    for _ in range(30):
        state, _ = solver.step(task, state, 3, None)
        size = np.abs(state.means.slopes) * 1e-12
        assert (state.means.slopes >= low - size).all()
        assert (state.means.slopes <= high + size).all()
        point = solver.point(task, state)
        assert (point.beta >= low).all()
        assert (point.beta <= high).all()
        assert not point.beta[task.source.weight == 0.0].any()
        assert all(map(math.isfinite, map(task.loss.conjugate, task.source.y, point.beta)))
    assert state.means.looks.sum() == 90


def test_the_kth_look_at_a_row_counts_k_times() -> None:
    task, solver = problem("logistic"), SvmSgd(eta0=0.3, order="given")
    rows, X, y = np.flatnonzero(task.source.weight), task.source.rows.matrix, task.source.y  # type: ignore[attr-defined]
    steps = 4 * rows.size
    ws, _ = written(task, steps, lambda t: 0.3 / (1.0 + task.lam * 0.3 * t))
    state = run(solver, task, steps)
    for place, i in enumerate(rows):
        slopes = [-task.loss.derivative(y[i], float(X[i] @ ws[place + k * rows.size])) for k in range(4)]
        assert state.means.slopes[i] == pytest.approx(np.average(slopes, weights=[1, 2, 3, 4]), rel=1e-9)
        assert state.means.looks[i] == 4


class TestFloat32:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["svmsgd", "sgd", "asgd", "norma", "perceptron", "sgd-qn"])
    def test_it_trains_in_float32_and_certifies_in_float64(self, name: str) -> None:
        X, y = data(n=200, d=20)
        outcome = dualgap.fit(X, y, C=0.02, solver=name, precision="float32", tol=0.01, max_epochs=60)
        state: Any = outcome.run.state
        model = state.model.w if name == "sgd-qn" else state.model.v
        # a mean takes float64
        assert model.dtype == (np.float64 if name in ("asgd", "norma") else np.float32)
        assert outcome.coef.dtype == np.float64
        independent = outcome.problem.certify(Point(outcome.coef, outcome.intercept, outcome.dual))
        claimed = outcome.problem.in_form(outcome.certificate, "mean")
        assert abs(independent.gap - claimed.gap) <= 2.0 * claimed.rounding
        if name != "perceptron":
            assert outcome.converged

    def test_the_steps_are_those_of_float64_but_for_rounding(self) -> None:
        task = problem()
        short, long = (run(SvmSgd(eta0=0.3, precision=p), task, 200) for p in ("float32", "float64"))
        np.testing.assert_allclose(last_iterate(short)[0], last_iterate(long)[0], atol=1e-5)
        assert not np.array_equal(last_iterate(short)[0], last_iterate(long)[0])


@pytest.mark.parametrize("name", ["svmsgd", "asgd", "sgd", "norma", "sgd-qn", "perceptron", "implicit"])
def test_order_given_presents_the_rows_as_they_are(name: str) -> None:
    """No seed matters, and the first row is the first to be looked at."""
    X, y = data()
    states = [
        dualgap.fit(X, y, lam=0.1, solver=name, order="given", seed=seed, max_visits=7, tol=0.0).run.state
        for seed in (0, 1)
    ]
    point = [
        SOLVERS[name](order="given").point(Problem(view(X, 1.0 * y), make_loss("hinge"), 0.1), s)
        for s in states
    ]
    assert np.array_equal(point[0].w, point[1].w)
    assert list(states[0].means.looks[:8]) == [1] * 7 + [0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver", [SvmSgd(eta0=0.3), Implicit(), SGDQN(eta0=0.3, skip=8)], ids=lambda s: s.name
)
def test_sparse_and_dense_rows_make_the_same_model(solver: Any) -> None:
    X, y = data()
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    points = []
    for layout in (np.asarray, sp.csr_matrix):
        task = Problem(view(layout(X), 1.0 * y), make_loss("hinge"), 0.1, AugmentedBias(1.0))
        points.append(solver.point(task, run(solver, task, 180)))
    np.testing.assert_allclose(points[0].w, points[1].w, rtol=1e-9, atol=1e-12)
    assert points[0].b == pytest.approx(points[1].b, rel=1e-9, abs=1e-12)


def test_the_work_is_counted() -> None:
    task = problem()
    rows: Any = task.source.rows
    state = run(SvmSgd(eta0=0.3), task, 100)
    assert state.counts.visits == 100
    assert 0 < state.counts.updates < 100
    assert state.counts.entries == (100 + state.counts.updates) * rows.matrix.shape[1]


def test_descent_alone_has_no_rate() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Descent()  # type: ignore[abstract]
