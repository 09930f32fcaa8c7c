"""SVMperf and OCAS: cuts, the master problem, the line search, and the solvers' own stopping rules."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import dualgap
from dualgap.core.bias import AugmentedBias, Centred, NoBias
from dualgap.core.problem import Point, Problem
from dualgap.solvers.cutting_planes.master import (
    add_cut,
    dual_point,
    master_point,
    mean_loss,
    no_cuts,
    scores,
    slack,
    solve_master,
)
from dualgap.solvers.cutting_planes.ocas import Scored, line_search
from support.problems import small_problem

BIASES = [NoBias(), AugmentedBias(2.0), Centred(0.4, 0.05)]


def setting(bias: object = BIASES[0], n: int = 40, d: int = 5, lam: float = 0.02) -> Problem:
    return small_problem(
        n=n,
        d=d,
        lam=lam,
        seed=2,
        bias=bias,
        density=0.7,
        noise=1.0,
        weights=lambda rng, n: rng.choice([0.0, 1.0, 2.0], size=n),
    )


def objective(problem: Problem, w: np.ndarray, b: float) -> float:
    return problem.evaluate(Point(w, b, None)).primal


@pytest.mark.slow
@pytest.mark.parametrize("bias", BIASES)
def test_cuts_bound_the_loss_from_below_and_touch_it(bias: object) -> None:
    problem = setting(bias)
    rng = np.random.default_rng(0)
    cuts = no_cuts(problem.source.n, problem.source.d)
    points = [(rng.normal(size=5), float(rng.normal())) for _ in range(6)]
    for w, b in points:
        cuts = add_cut(problem, cuts, scores(problem, w, b))
    for w, b in points:
        assert slack(cuts, w, b) == pytest.approx(mean_loss(problem, scores(problem, w, b)), rel=1e-12)
    for _ in range(50):
        w, b = rng.normal(size=5) * 3, float(rng.normal())
        assert slack(cuts, w, b) <= mean_loss(problem, scores(problem, w, b)) + 1e-12
    np.testing.assert_allclose(cuts.products, cuts.gradients @ cuts.gradients.T, atol=1e-14)


@pytest.mark.parametrize("bias", BIASES)
def test_the_master_solves_its_problem_and_its_multipliers_are_a_dual_point(bias: object) -> None:
    """At the master's solution primal and dual of the cut model agree, and the dual point has that very
    value.
    """
    problem = setting(bias)
    cuts = no_cuts(problem.source.n, problem.source.d)
    w, b = np.zeros(5), problem.bias.centre
    for _ in range(8):
        cuts = solve_master(problem, add_cut(problem, cuts, scores(problem, w, b)))
        w, b = master_point(problem, cuts)
    strength = problem.bias.strength(problem.lam)
    penalty = 0.0 if strength == np.inf else 0.5 * strength * (b - problem.bias.centre) ** 2
    model = 0.5 * problem.lam * w @ w + penalty + slack(cuts, w, b)
    beta = dual_point(problem, cuts)
    evaluated = problem.evaluate(Point(w, b, beta))
    assert evaluated.dual == pytest.approx(model, rel=1e-8)
    np.testing.assert_allclose(evaluated.w_of_dual, w, atol=1e-10)
    assert evaluated.b == pytest.approx(b if strength < np.inf else 0.0, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("bias", BIASES)
def test_the_line_search_is_exact(bias: object) -> None:
    problem = setting(bias)
    rng = np.random.default_rng(3)
    for _ in range(40):
        (w, b), (to, b_to) = (
            (rng.normal(size=5) * rng.choice([0.1, 1, 5]), float(rng.normal())) for _ in range(2)
        )
        if isinstance(bias, NoBias):
            b = b_to = 0.0
        start, end = (Scored(*p, scores(problem, *p)) for p in ((w, b), (to, b_to)))
        step = line_search(problem, start, end)

        def along(k: float, w=w, to=to, b=b, b_to=b_to) -> float:  # type: ignore[no-untyped-def]
            return objective(problem, w + k * (to - w), b + k * (b_to - b))

        found = minimize_scalar(along, bounds=(0.0, 20.0), method="bounded", options={"xatol": 1e-10})
        assert step >= 0.0
        assert along(step) <= min(found.fun, along(0.0)) + 1e-9


def test_idle_cuts_are_dropped() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 30))
    y = np.sign(X @ rng.normal(size=30) + 3 * rng.normal(size=300))
    outcome = dualgap.fit(X, y, C=1.0, solver="svmperf", tol=1e-5, max_epochs=3000)
    assert outcome.converged
    cuts = outcome.run.state.cuts
    assert cuts.offsets.size < outcome.trace[-1].updates
    assert cuts.idle.max() < 50
    assert cuts.members.shape == (cuts.offsets.size, (300 + 7) // 8)


@pytest.mark.slow
def test_the_papers_own_rules() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    y = np.sign(X @ rng.normal(size=10) + 3 * rng.normal(size=300))
    loose, tight = (dualgap.fit(X, y, lam=0.01, solver="svmperf", epsilon=e, tol=0.0) for e in (0.1, 0.001))
    assert loose.reason.name == tight.reason.name == "epsilon"
    assert loose.trace[-1].updates < tight.trace[-1].updates
    assert tight.run.state.violation <= 0.001
    assert tight.certificate.gap < loose.certificate.gap

    relative = dualgap.fit(X, y, lam=0.01, solver="ocas", r=0.01, tol=0.0)
    assert relative.reason.name == "r"
    assert relative.certificate.primal - relative.certificate.dual <= 0.0101 * relative.certificate.primal
    optimum = dualgap.fit(X, y, lam=0.01, tol=1e-8).certificate.primal
    target = dualgap.fit(X, y, lam=0.01, solver="ocas", q_mean=1.05 * optimum, tol=0.0)
    assert target.reason.name == "q_mean"
    assert optimum * (1 - 1e-7) <= target.certificate.primal <= 1.05 * optimum


def test_q_is_on_the_scale_of_the_papers_tables() -> None:
    """q = 1.01 J with J the optimum in C-form, whichever form the run is in: P is 1/(C n) of that, so q on
    the scale of P would end a run in its first round.
    """
    X, y = noisy(300)
    optimum = dualgap.fit(X, y, C=1.0, tol=1e-8).certificate.primal
    for factor, rounds in ((1.01, 2), (1.0001, 5)):
        for strength, unit in (({"C": 1.0}, 1.0), ({"lam": 1.0 / 300}, 300.0)):
            found = dualgap.fit(X, y, solver="ocas", q=factor * optimum, tol=0.0, **strength)
            assert found.reason.name == "q"
            assert found.trace[-1].updates >= rounds
            assert optimum * (1 - 1e-7) <= unit * found.certificate.primal <= factor * optimum * (1 + 1e-9)


def test_epsilon_of_svmperf_in_percent_is_a_hundredth_of_it() -> None:
    X, y = noisy(300)
    percent, part = (
        dualgap.fit(X, y, solver="svmperf", tol=0.0, **rule)
        for rule in ({"epsilon_percent": 0.7}, {"epsilon": 0.007})
    )
    assert percent.reason.name == part.reason.name == "epsilon"
    assert percent.trace[-1].updates == part.trace[-1].updates > 3
    assert percent.certificate == part.certificate
    with pytest.raises(dualgap.InputError, match="two scales of one rule"):
        dualgap.fit(X, y, solver="svmperf", epsilon=0.1, epsilon_percent=0.1)


def noisy(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    return X, np.sign(X @ rng.normal(size=10) + 3 * rng.normal(size=n))


def test_ocas_needs_fewer_rounds_and_its_primal_never_rises() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 20))
    y = np.sign(X @ rng.normal(size=20) + 3 * rng.normal(size=400))
    ocas, perf = (
        dualgap.fit(X, y, C=1.0, solver=name, tol=1e-2, max_epochs=5000) for name in ("ocas", "svmperf")
    )
    assert ocas.converged
    assert perf.converged
    assert 2 * ocas.trace[-1].updates < perf.trace[-1].updates


def test_a_cut_that_is_known_is_not_added_again() -> None:
    problem = setting()
    cuts = add_cut(problem, no_cuts(40, 5), np.zeros(40))
    again = add_cut(problem, cuts, np.zeros(40))
    assert again.offsets.size == 1
    assert (cuts.known, again.known) == (0, 1)


@pytest.mark.parametrize("bias", ["none", "augmented", "exact"])
@pytest.mark.parametrize("solver", ["svmperf", "ocas"])
def test_multipliers_may_be_tiny(solver: str, bias: str) -> None:
    """Long rows under a weak regulariser have multipliers far below DAQP's tolerances."""
    rng = np.random.default_rng(3)
    X = 1e6 * rng.normal(size=(30, 4))
    y = np.where(X @ rng.normal(size=4) > 0, 1.0, -1.0)
    outcome = dualgap.fit(X, y, C=1e-2, solver=solver, bias=bias, tol=1e-2)
    assert outcome.converged
    assert np.abs(outcome.dual).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["none", "augmented"])
@pytest.mark.parametrize("solver", ["svmperf", "ocas"])
def test_a_run_without_new_cuts_ends(solver: str, bias: str) -> None:
    """Columns of very different scales: with no other limit, each run ends and says why."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(12, 3)) * [1e5, 1.0, 1e-5]
        y = np.where(rng.random(12) < 0.5, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        outcome = dualgap.fit(X, y, C=1.0, solver=solver, bias=bias, tol=1e-12, max_epochs=3000)
        assert outcome.reason.name in ("gap", "stalled", "rounding")
        assert outcome.certificate.relative_gap < 0.2


def test_a_line_search_does_not_follow_rounding_errors() -> None:
    """One row: after the first round the way to the master's solution is a rounding error."""
    X, y = np.random.default_rng(0).normal(size=(12, 3)), np.where(np.arange(12) % 2, 1.0, -1.0)
    outcome = dualgap.fit(X, y, solver="ocas", sample_weight=1.0 * (np.arange(12) == 3), tol=1e-9)
    assert outcome.converged
    np.testing.assert_allclose(outcome.coef, y[3] * X[3] / (X[3] @ X[3]), rtol=1e-9)
