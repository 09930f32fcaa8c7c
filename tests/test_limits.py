"""Goals besides the relative gap, records by iterations, and the record of the starting point."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.files import write_svmlight
from dualgap.runtime.errors import InputError
from support.commands import Forks, forks_fixture  # noqa: F401
from support.problems import linear_data

X, y = linear_data(n=120, d=6, seed=3, noise=0.8)


def fit(**arguments: Any) -> Any:
    return dualgap.fit(X, y, **{"C": 0.5, "solver": "sdca", **arguments})


OPTIMUM = fit(tol=1e-9).certificate.primal


class TestGoals:
    def test_an_absolute_gap_in_the_form_asked_for(self) -> None:
        outcome = fit(tol=0, atol=0.02 * OPTIMUM, record_every=20)
        assert (outcome.reason.name, outcome.converged) == ("atol", True)
        assert outcome.certificate.gap <= 0.02 * OPTIMUM < outcome.trace[-2].certificate.gap
        lam = 1.0 / (0.5 * len(y))
        same = dualgap.fit(X, y, lam=lam, solver="sdca", tol=0, atol=0.02 * OPTIMUM * lam, record_every=20)
        assert same.visits == outcome.visits
        assert "mean form" in same.reason.message

    @pytest.mark.parametrize("form", ["J", "mean"])
    def test_a_target(self, form: str) -> None:
        lam = 1.0 / (0.5 * len(y))
        strength, factor = ({"C": 0.5}, 1.0) if form == "J" else ({"C": None, "lam": lam}, lam)
        outcome = fit(tol=0, target=1.01 * OPTIMUM * factor, record_every=20, **strength)
        assert (outcome.reason.name, outcome.converged) == ("target", True)
        values = [record.certificate.primal for record in outcome.trace]
        assert values[-1] <= 1.01 * OPTIMUM * factor < values[-2]
        assert outcome.certificate.primal == values[-1]
        assert outcome.certificate.relative_gap > 1e-9  # and no sooner is it proven

    def test_the_target_is_that_of_the_model_handed_back(self) -> None:
        """The best model so far gets there before the present one of Pegasos does."""
        told: dict[str, Any] = {"solver": "pegasos", "tol": 0, "target": 1.2 * OPTIMUM, "record_every": 30}
        best, last = fit(**told), fit(**told, output="last")
        assert best.reason.name == last.reason.name == "target"
        assert last.trace[-1].current.primal <= 1.2 * OPTIMUM
        assert all(record.current.primal > 1.2 * OPTIMUM for record in last.trace[:-1])

    def test_a_target_below_the_bound_ends_the_run(self) -> None:
        outcome = fit(tol=0, target=0.5 * OPTIMUM)
        assert (outcome.reason.name, outcome.converged) == ("unreachable", False)
        assert outcome.certificate.dual > 0.5 * OPTIMUM
        assert "lower bound" in outcome.reason.message

    def test_whichever_comes_first(self) -> None:
        assert fit(tol=1e-3, target=1.5 * OPTIMUM, record_every=10).reason.name == "target"
        assert fit(tol=0.5, target=OPTIMUM * (1 + 1e-7), record_every=10).reason.name == "gap"

    @pytest.mark.parametrize("wrong", [{"atol": -1.0}, {"target": "low"}, {"target": float("nan")}])
    def test_what_they_take(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InputError, match=f"{next(iter(wrong))}="):
            fit(**wrong)


class TestIterations:
    @pytest.mark.parametrize(
        ("solver", "options", "rows"),
        [
            ("pegasos", {"k": 7}, 7),
            ("asdca", {"m": 10}, 10),
            ("sdca", {}, 1),
            ("interior-point", {}, 360),
        ],
    )
    def test_an_iteration_is_a_batch(self, solver: str, options: dict[str, Any], rows: int) -> None:
        outcome = fit(solver=solver, tol=0, max_epochs=8, record_every="20 iterations", stall=None, **options)
        seen = {record.iterations for record in outcome.trace}
        assert {20 * k for k in range(1, int(960 / rows / 20) + 1)} <= seen
        assert all(record.iterations == record.visits // rows for record in outcome.trace)
        assert outcome.trace[-1].as_dict()["iterations"] == outcome.trace[-1].iterations

    def test_units(self) -> None:
        def recorded(every: Any) -> list[int]:
            return [record.visits for record in fit(tol=0, max_epochs=2, record_every=every).trace]

        assert recorded("0.5 epochs") == recorded("60 visits") == recorded("60") == recorded(60)
        assert recorded("1 epoch") == recorded(120)

    @pytest.mark.parametrize("wrong", ["often", "0 epochs", "2.5 iterations", "-3", "10 steps", 0, 2.5, True])
    def test_what_it_takes(self, wrong: Any) -> None:
        with pytest.raises(InputError, match=r"record_every="):
            fit(record_every=wrong)

    @pytest.mark.parametrize("solver", ["newton", "auto"])
    def test_no_fixed_number_of_rows(self, solver: str) -> None:
        with pytest.raises(InputError, match="no fixed number of row visits"):
            fit(solver=solver, record_every="10 iterations")


class TestStart:
    @pytest.mark.parametrize(
        ("solver", "options"),
        [("dcd", {}), ("sdca", {}), ("pegasos", {"first_w": "ball"}), ("newton", {}), ("auto", {})],
    )
    def test_a_record_before_the_first_step_changes_nothing_else(
        self, solver: str, options: dict[str, Any]
    ) -> None:
        plain = fit(solver=solver, tol=1e-2, max_epochs=200, **options)
        seen: list[int] = []
        noted = fit(
            solver=solver,
            tol=1e-2,
            max_epochs=200,
            record_start=True,
            callbacks=[lambda record, run: seen.append(record.visits)],
            **options,
        )
        first = noted.trace[0]
        assert (first.visits, first.epochs, first.kind, seen[0]) == (0, 0.0, "certified", 0)
        assert len(noted.trace) == len(plain.trace) + 1
        np.testing.assert_array_equal(noted.coef, plain.coef)
        if solver == "pegasos":  # inside the ball, and not 0
            assert first.current.primal != pytest.approx(0.5 * len(y))
        elif solver == "sdca":
            assert first.current.primal == pytest.approx(0.5 * len(y))


def test_the_command_line(forks: Forks, tmp_path: Path) -> None:
    data, trace = tmp_path / "a.svm", tmp_path / "a.jsonl"
    write_svmlight(data, X, y)
    common = ["train", data, "-o", tmp_path / "a.model", "--C", "0.5", "--solver", "pegasos", "--tol", "0"]
    more = ["--option", "k=5", "--record-every", "10 iterations", "--record-start", "--trace", trace]
    found = forks(*common, *more, "--target", 1.2 * OPTIMUM, "--json")
    assert (found.code, found.json["stop_reason"], found.json["converged"]) == (0, "target", True)
    assert found.json["primal"] <= 1.2 * OPTIMUM
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    assert [line["iterations"] for line in lines[:3]] == [0, 10, 20]
    found = forks(*common, "--atol", 0.5 * OPTIMUM, "--json")
    assert (found.code, found.json["stop_reason"]) == (0, "atol")
    found = forks(*common, "--target", 0.1 * OPTIMUM, "--json")
    assert (found.code, found.json["stop_reason"]) == (3, "unreachable")
    assert "'10 steps'" in forks(*common, "--record-every", "10 steps").error
