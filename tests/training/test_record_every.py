"""How often a run is evaluated does not decide where it gets to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.solvers import SOLVERS, can_have, can_train
from dualgap.solvers.primal.margin_sgd import MarginSGD
from dualgap.solvers.primal.polishing import Polished
from support.problems import noisy

N = 120
EVERY = (10, 37, 100, N, 2 * N)


GAPS = {"asdca": 0.05, "accelerated-sdca": 1e-3}  # 1e-4 for others
HARDLY = {"accelerated-sdca": 2.0}  # 1.5 for others: an outer step of it ends with an evaluation
PRIMAL = Polished, MarginSGD


def biases(*, primal: bool) -> list[tuple[str, str]]:
    """Solvers with the kinds of bias they take: stochastic ones of the primal problem, or the others."""
    return [
        (name, bias)
        for name, solver in SOLVERS.items()
        for bias in ("none", "exact")
        if can_train(solver, "hinge") and can_have(solver, bias) and issubclass(solver, PRIMAL) == primal
    ]


def reached(name: str, bias: str, seed: int, every: int | None) -> tuple[float, float]:
    """Epochs between which the gap was reached: at the last certificate but one, and at the last."""
    X, y = noisy(seed)
    outcome = dualgap.fit(
        X,
        y,
        solver=name,
        bias=bias,
        seed=seed,
        C=0.3,
        tol=GAPS.get(name, 1e-4),
        record_every=every,
        max_epochs=3000,
    )
    assert outcome.converged, outcome.reason
    before = outcome.trace[-2].epochs if len(outcome.trace) > 1 else 0.0
    return before, outcome.trace[-1].epochs


@pytest.mark.slow
@pytest.mark.parametrize(("name", "bias"), biases(primal=False))
def test_passes_to_a_gap_hardly_depend_on_record_every(name: str, bias: str) -> None:
    passes = {k: np.sum([reached(name, bias, seed, k) for seed in range(3)], axis=0) for k in EVERY}
    hardly = HARDLY.get(name, 1.5)
    assert max(low for low, _ in passes.values()) < hardly * min(high for _, high in passes.values()), passes


@pytest.mark.parametrize(("name", "bias"), biases(primal=True))
def test_iterates_of_stochastic_solvers_do_not_depend_on_record_every(name: str, bias: str) -> None:
    """Their w wiggles, so that whoever looks more often sees a better one; what they look at must be the
    same.
    """
    X, y = noisy(0)
    runs = [
        dualgap.fit(X, y, solver=name, bias=bias, C=0.3, tol=0.0, max_visits=3 * N + 50, record_every=every)
        for every in (None, *EVERY)
    ]
    points = [run.solver.point(run.problem, run.run.state) for run in runs]
    for point in points[1:]:
        np.testing.assert_allclose(point.w, points[0].w, rtol=1e-10, atol=1e-12)
        assert point.b == pytest.approx(points[0].b, rel=1e-10, abs=1e-12)


def test_dual_sweeps_at_certificates_come_once_an_epoch_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def count(solver: Any, problem: Any, beta: Any, b: float, visits: int) -> None:
        calls.append(visits)

    monkeypatch.setattr(SOLVERS["pegasos"], "improve_dual", count)
    X, y = noisy(0)
    dualgap.fit(X, y, solver="pegasos", tol=0.0, max_visits=4 * N, record_every=10)
    assert calls == [10, 10 + N, 10 + 2 * N, 10 + 3 * N]


def test_certificates_in_a_first_epoch_do_not_begin_it_anew() -> None:
    X, y = noisy(0, 2000, 20)
    plain = dualgap.fit(X, y, solver="dcd")
    often = dualgap.fit(X, y, solver="dcd", record_every=100)
    assert often.converged
    assert often.trace[-1].epochs < 1.5 * plain.trace[-1].epochs


@pytest.mark.parametrize("name", ["dcd", "sdca", "mpu", "ocas"])
def test_record_every_beyond_the_schedule_leaves_the_run_as_it_is(name: str) -> None:
    assert reached(name, "none", 0, 10**9) == reached(name, "none", 0, None)
