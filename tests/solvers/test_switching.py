"""``solver="auto"``: a solver that goes over to another where that promises to arrive sooner."""

from __future__ import annotations

from math import exp, inf
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.solvers.forecasts import FIRST_GAP, at_first_sight, remaining
from dualgap.solvers.switching import Switching
from dualgap.training.stopping import Reason
from support.problems import linear_data
from support.states import assert_same


def crawling(n: int = 400, d: int = 25) -> Any:
    """Columns that hardly differ, a large C: coordinates get in each other's way."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 1)) + 0.01 * rng.normal(size=(n, d))
    return X, np.sign(X @ rng.normal(size=d) + 0.1 * rng.normal(size=n))


class TestForecasts:
    def test_a_steady_fall_goes_on(self) -> None:
        costs = np.arange(1.0, 9.0)
        assert remaining(costs, np.exp(-costs), exp(-20.0)) == pytest.approx(12.0)

    def test_a_power_law_does_not_become_faster(self) -> None:
        costs = np.array([1.0, 2.0, 4.0, 8.0])
        assert remaining(costs, 1.0 / costs, 1.0 / 800.0) == pytest.approx(792.0, rel=1e-6)

    def test_what_does_not_fall_has_no_end(self) -> None:
        assert remaining(np.arange(1.0, 5.0), np.ones(4), 1e-3) == inf
        assert remaining(np.arange(1.0, 5.0), np.full(4, inf), 1e-3) == inf

    def test_one_evaluation_tells_nothing(self) -> None:
        assert remaining(np.ones(1), np.ones(1), 1e-3) == 0.0

    def test_but_for_how_far_the_gap_has_come(self) -> None:
        assert at_first_sight(3.0, FIRST_GAP / 10.0, FIRST_GAP / 1000.0) == pytest.approx(6.0)
        assert at_first_sight(3.0, 2.0 * FIRST_GAP, 1e-3) == inf


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared-hinge", "absolute"])
@pytest.mark.parametrize("bias", ["none", "augmented", "exact"])
def test_coordinates_that_crawl_are_given_up(loss: str, bias: str) -> None:
    X, y = crawling()
    arguments: dict[str, Any] = {"loss": loss, "C": 1e5, "bias": bias}
    outcome = dualgap.fit(X, y, tol=1e-4, **arguments)
    assert outcome.converged, outcome.reason.message
    assert outcome.solver.name in ("newton", "interior-point")
    names = [record.solver for record in outcome.trace]
    assert names[-1] == outcome.solver.name
    if names[0] == "dcd":
        assert len(outcome.story) == 1
        assert f"{outcome.solver.name} after" in outcome.story[0]
        assert names == sorted(names)  # first the one, then the other
    coordinates = dualgap.fit(X, y, tol=1e-4, solver="dcd", max_epochs=outcome.trace[-1].epochs, **arguments)
    assert not coordinates.converged


def test_what_goes_well_is_not_changed() -> None:
    X, y = linear_data(n=300, d=40, seed=1, density=0.2)
    outcome = dualgap.fit(sp.csr_array(X), y, C=0.1, tol=1e-3)
    assert outcome.converged
    assert outcome.story == []
    alone = dualgap.fit(sp.csr_array(X), y, C=0.1, tol=1e-3, solver="dcd")
    assert np.array_equal(outcome.coef, alone.coef)  # bit for bit what coordinates alone do


def test_the_same_seed_the_same_model_wherever_it_is_cut() -> None:
    X, y = crawling()
    arguments: dict[str, Any] = {"C": 1e3, "tol": 1e-5, "bias": "exact"}
    whole = dualgap.fit(X, y, **arguments)
    assert whole.story
    assert np.array_equal(whole.coef, dualgap.fit(X, y, **arguments).coef)
    for epochs in (3, 12, whole.trace[-1].epochs - 5):
        cut = dualgap.fit(X, y, max_epochs=epochs, **arguments)
        resumed = dualgap.fit(X, y, resume=cut, **arguments)
        assert_same(whole.run, resumed.run)
        assert resumed.story == whole.story


def test_a_run_ends_whatever_is_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where forecasts are always wrong, stints become longer until one is long enough."""
    monkeypatch.setattr(Switching, "_own", lambda *_: 1e18)
    monkeypatch.setattr(Switching, "_other", lambda *_: 1.0)
    X, y = linear_data(n=120, d=6, seed=1, noise=2.0)
    outcome = dualgap.fit(X, y, C=10.0, tol=1e-6, bias="exact")
    assert outcome.converged
    assert 2 <= len(outcome.story) <= 12
    assert isinstance(outcome.reason, Reason)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared-hinge"])
@pytest.mark.parametrize(("n", "d"), [(150, 30), (40, 300)])
def test_what_is_small_is_solved_whatever_its_scales(loss: str, n: int, d: int) -> None:
    """With the defaults of the estimator, and columns from a thousandth to a thousand."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3.0, 3.0, size=d)
    y = np.sign(X @ rng.normal(size=d) + np.abs(X).mean() * rng.normal(size=n))
    model = dualgap.LinearSVC(loss=loss, random_state=0).fit(X, y)
    assert model.certificate_[0].relative_gap <= 1e-3


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_the_first_gap_of_a_smooth_loss_decides(loss: str) -> None:
    """Labels that are noise: what is seen at the first certificate is enough."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(1600, 200)), np.sign(rng.normal(size=1600))
    outcome = dualgap.fit(X, y, loss=loss, C=1.0, bias="exact")
    names = [record.solver for record in outcome.trace]
    assert names[0] == "dcd"
    assert set(names[1:]) == {"newton"}
    assert outcome.converged


def test_the_same_numbers_are_solved_alike_however_they_are_stored() -> None:
    """Text that stores every entry, at a C so large that coordinates and Newton's method crawl."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(200, 150)), np.where(rng.random(200) < 0.4, 1, -1)
    found = [dualgap.fit(rows, y, C=1e8) for rows in (X, sp.csr_array(X))]
    assert [outcome.converged for outcome in found] == [True, True]
    assert [outcome.solver.name for outcome in found] == ["interior-point"] * 2
    assert found[0].epochs == pytest.approx(found[1].epochs, rel=0.2)


class TestWarmStarts:
    def test_what_one_c_needed_the_next_begins_with(self) -> None:
        X, y = crawling()
        first = dualgap.fit(X, y, C=1e5, bias="exact")
        assert first.trace[0].solver == "dcd"
        assert len(first.story) == 1
        assert dualgap.fit(X, y, C=2e5, bias="exact").trace[0].solver == "dcd"
        for warm in (first, first.model):
            after = dualgap.fit(X, y, C=2e5, bias="exact", warm=warm)
            assert after.converged
            assert {record.solver for record in after.trace} == {first.solver.name}
            assert "the run before ended with" in after.auto_reason

    def test_that_coordinates_sufficed_says_nothing(self) -> None:
        X, y = linear_data(n=2000, d=10, seed=1)
        easy = dualgap.fit(X, y, C=1e-3)
        assert easy.solver.name == "dcd"
        for warm in (None, easy):
            assert dualgap.fit(X, y, loss="logistic", C=100.0, warm=warm).trace[0].solver == "newton"

    def test_such_a_run_is_resumed(self) -> None:
        X, y = crawling()
        first = dualgap.fit(X, y, C=1e5, bias="exact")
        arguments: dict[str, Any] = {"C": 3e5, "bias": "exact", "tol": 1e-6}
        whole = dualgap.fit(X, y, warm=first, **arguments)
        cut = dualgap.fit(X, y, warm=first, max_epochs=whole.trace[-1].epochs / 2, **arguments)
        assert not cut.converged
        again = dualgap.fit(X, y, resume=cut, **arguments)
        assert np.array_equal(again.coef, whole.coef)
        assert again.auto_reason == whole.auto_reason


class TestSeparated:
    """Rows that w separates, and a loss that is 0 from some margin on: few rows count in the end."""

    @staticmethod
    def rows(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        X = (rng.random((n, d)) < 0.3).astype(float)
        scores = X @ rng.normal(size=d)
        scores -= np.median(scores)
        clear = np.abs(scores) > 1.0
        X, y = X[clear], np.sign(scores[clear])
        return (X - X.mean(axis=0)) / X.std(axis=0), y

    @pytest.mark.parametrize("loss", ["squared-hinge", "smooth-hinge", "modified-huber"])
    def test_newton_goes_over_to_coordinates(self, loss: str) -> None:
        X, y = self.rows(6000, 20)
        outcome = dualgap.fit(X, y, loss=loss, C=1e4, bias="exact")
        newton = dualgap.fit(X, y, loss=loss, C=1e4, bias="exact", solver="newton")
        assert outcome.trace[0].solver == "newton"
        assert outcome.solver.name == "dcd"
        assert outcome.converged
        assert outcome.epochs < newton.epochs

    def test_a_large_first_gap_is_no_reason_to_leave_coordinates(self) -> None:
        X, y = self.rows(8000, 40)
        outcome = dualgap.fit(X, y, loss="squared-hinge", C=100.0, bias="exact")
        assert outcome.trace[0].certificate.relative_gap > 1.0
        assert {record.solver for record in outcome.trace} == {"dcd"}
        assert outcome.converged
