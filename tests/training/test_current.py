"""The solver's own point: in records, in measures, and as the model handed back."""

from __future__ import annotations

import itertools
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.core.problem import Point
from dualgap.runtime.errors import InputError, TrivialModelWarning
from dualgap.training.callbacks import JsonLines
from support.problems import SINGLE_SCORE, linear_data
from support.states import assert_same

C = 5.0
STEADY = (
    "asdca",
    "norma",
    "ocas",
    "interior-point",
)  # their own objective falls with every record of this problem
FROM_DISK = ("block", "selective-block", "cached-loops")


def rows() -> Any:
    return linear_data(n=150, d=6, seed=3, noise=2.0)


def bias_of(solver: str) -> str:
    return "exact" if solver in ("smo", "decomposition") else "none"


def fit(solver: str, **arguments: Any) -> dualgap.Outcome:
    arguments = {
        "C": C,
        "tol": 0.0,
        "max_epochs": 12,
        "record_every": 75,
        "bias": bias_of(solver),
    } | arguments
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrivialModelWarning)
        return dualgap.fit(*rows(), solver=solver, **arguments)


def objective(w: Any, b: float) -> float:
    X, y = rows()
    return float(0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (X @ w + b)).sum())


@pytest.mark.parametrize("solver", SINGLE_SCORE)
def test_records_have_the_best_and_the_own_point(solver: str) -> None:
    """Measures are given the point whose values the record has; the best never gets worse."""

    def own(point: Point, best: Point) -> dict[str, float]:
        return {"own": objective(point.w, point.b), "best": objective(best.w, best.b)}

    trace = fit(solver, measures=[own]).trace
    assert len(trace) > 2
    for record in trace:
        assert record.current.primal == pytest.approx(record.measures["own"], rel=1e-9)
        assert record.certificate.primal == pytest.approx(record.measures["best"], rel=1e-9)
        assert record.output == record.certificate
        assert record.certificate.primal <= record.current.primal
        assert record.certificate.dual >= record.current.dual
        assert record.current.dual <= record.current.primal + record.current.rounding
    for before, after in itertools.pairwise(trace):
        assert after.certificate.primal <= before.certificate.primal
        assert after.certificate.dual >= before.certificate.dual
        assert after.certificate.gap <= before.certificate.gap + after.certificate.rounding
    own_values = [record.current.primal for record in trace]
    wiggles = any(after > before * (1 + 1e-6) for before, after in itertools.pairwise(own_values))
    assert wiggles == (solver not in STEADY)


@pytest.mark.parametrize("solver", SINGLE_SCORE)
def test_the_solvers_own_model_can_be_handed_back(solver: str) -> None:
    best, last = fit(solver), fit(solver, output="last")
    record = last.trace[-1]
    assert last.certificate == record.output
    assert last.certificate.primal == record.current.primal
    assert last.certificate.dual == record.certificate.dual
    assert last.certificate.primal == pytest.approx(objective(last.coef, last.intercept), rel=1e-9)
    assert best.certificate.primal <= last.certificate.primal
    assert [r.certificate for r in best.trace] == [r.certificate for r in last.trace]  # the same run
    assert last.converged == (last.certificate.relative_gap <= 0.0)


def test_the_gap_asked_for_is_that_of_the_model_handed_back() -> None:
    best, last = (fit("pegasos", output=output, tol=0.1, max_epochs=1000) for output in ("best", "last"))
    assert best.converged
    assert last.converged
    assert last.certificate.relative_gap <= 0.1
    early = [record for record in last.trace if record.certificate.relative_gap <= 0.1]
    assert len(early) > 1  # the best was there before the solver's own
    assert best.trace[-1].visits == early[0].visits


def test_a_resumed_run_has_the_same_records(tmp_path: Path) -> None:
    for output in ("best", "last"):
        whole = fit("pegasos", output=output)
        dualgap.save_state(tmp_path / "run.npz", fit("pegasos", output=output, max_epochs=5.3))
        resumed = fit("pegasos", output=output, resume=dualgap.load_state(tmp_path / "run.npz"))
        assert_same(whole.run, resumed.run)
        then = {record.visits: record.current for record in whole.trace}
        shared = [record for record in resumed.trace if record.visits in then]
        assert len(shared) > 5
        assert all(record.current == then[record.visits] for record in shared)
        assert np.array_equal(whole.coef, resumed.coef)


def test_traces_hold_both(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    trace = fit("sgd", callbacks=[JsonLines(path)]).trace
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["current_primal"] for line in lines] == [record.current.primal for record in trace]
    assert [line["primal"] for line in lines] == [record.certificate.primal for record in trace]
    names = {"dual", "gap", "relative_gap", "rounding", "primal"}
    assert names | {f"current_{name}" for name in names} <= set(lines[0])


@pytest.mark.parametrize("solver", FROM_DISK)
def test_rows_on_disk(solver: str, tmp_path: Path) -> None:
    """The own point of a pass over the disk is the one that the pass evaluated."""
    from dualgap.files import write_store

    X, y = rows()
    store = tmp_path / "rows.arrow"
    write_store(store, X, y)
    for output in ("best", "last"):
        options: dict[str, Any] = {"solver": solver, "in_memory": False, "max_epochs": 40, "output": output}
        outcome = dualgap.fit(store, C=C, tol=1e-6, **options)
        assert len(outcome.trace) > 1
        for record in outcome.trace:
            assert record.certificate.primal <= record.current.primal
            assert record.passes is not None
        assert outcome.certificate == outcome.trace[-1].output


class TestMeasures:
    def test_of_one_or_two_points(self) -> None:
        seen: list[Any] = []

        def defaults(point: Point, scale: float = 2.0) -> dict[str, float]:
            seen.append((point.w.copy(), scale))
            return {"length": scale * float(np.linalg.norm(point.w))}

        trace = fit("sdca", measures=[defaults, lambda point, best: {"b": best.b}]).trace
        assert all(scale == 2.0 for _, scale in seen)
        assert all({"length", "b"} == set(record.measures) for record in trace)

    def test_others_are_refused(self) -> None:
        with pytest.raises(InputError, match=r"must be a function of \(point\) or of \(point, best\)"):
            fit("sdca", measures=[lambda point, best, other: {}])
        with pytest.raises(InputError, match="output='worst' must be 'best' or 'last'"):
            fit("sdca", output="worst")


class TestTheAllZeroModel:
    """Where nothing better was seen, a line says so and names the remedy."""

    arguments: dict[str, Any] = {"lam": 1e-5, "solver": "pegasos", "max_epochs": 3}  # noqa: RUF012

    def test_fit_warns(self) -> None:
        with pytest.warns(TrivialModelWarning, match=r"the all-zero model.*output='last'"):
            outcome = dualgap.fit(*rows(), **self.arguments)
        assert not outcome.coef.any()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert dualgap.fit(*rows(), **self.arguments, output="last").coef.any()
            near_zero = dualgap.fit(*rows(), C=1e-9, tol=1e-3)
        assert near_zero.converged
        assert not near_zero.remark

    def test_the_estimator_says_so(self) -> None:
        from sklearn.exceptions import ConvergenceWarning

        options: dict[str, Any] = {"C": 1e3, "solver": "pegasos", "max_iter": 3, "fit_intercept": False}
        with pytest.warns(ConvergenceWarning, match="the all-zero model"):
            dualgap.LinearSVC(**options, random_state=0).fit(*rows())
        with pytest.warns(ConvergenceWarning) as told:
            model = dualgap.LinearSVC(**options, output="last", random_state=0).fit(*rows())
        assert "all-zero" not in str(told[0].message)
        assert model.coef_.any()


class TestStall:
    def test_epochs_without_progress_end_a_run(self) -> None:
        ended = {stall: fit("pegasos", max_epochs=2000, stall=stall) for stall in (1, 5, None, "none")}
        assert [outcome.reason.name for outcome in ended.values()] == ["stalled"] * 2 + ["max_epochs"] * 2
        assert ended[1].trace[-1].epochs < ended[5].trace[-1].epochs < 2000

    def test_what_it_takes(self) -> None:
        for wrong in ("often", -1, 0, float("nan")):
            with pytest.raises(InputError, match="stall="):
                fit("sdca", stall=wrong)


def test_all_zero_model_that_fits_exactly_needs_no_remark() -> None:
    outcome = dualgap.fit(
        np.ones((1, 1)), np.zeros(1), loss="absolute", solver="dcd", output="last", max_epochs=3
    )
    assert outcome.certificate.primal == 0.0
    assert outcome.remark == ""
    assert outcome.certificate.relative_gap == 0.0
    assert outcome.converged


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("solver", ["interior-point", "newton", "auto"])
def test_a_large_C_is_no_excuse(solver: str, loss: str) -> None:
    """The optimum is a tiny part of the objective at w = 0; a model is measured against the optimum."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 60)) + 2.0, np.where(rng.random(40) < 0.5, 1.0, -1.0)
    best = dualgap.fit(X, y, loss=loss, C=1e4, solver="interior-point", tol=1e-4).certificate
    found = dualgap.fit(X, y, loss=loss, C=1e8, solver=solver, tol=1e-2)
    assert found.converged
    assert found.certificate.primal <= 1.02 * best.primal
    unfinished = dualgap.fit(X, y, loss=loss, C=1e8, solver=solver, tol=1e-2, max_visits=1).certificate
    assert unfinished.primal > 1.1 * best.primal
    assert unfinished.primal <= best.primal * (1.0 + unfinished.relative_gap)
    if solver != "auto":  # whose duals are scaled to where they are a lower bound
        assert 0.0 < unfinished.dual < best.primal


@pytest.mark.parametrize("output", ["best", "last"])
@pytest.mark.parametrize("loss", ["squared", "huber", "absolute", "epsilon-insensitive"])
@pytest.mark.parametrize("target", [0.0, 3.3])
def test_an_optimum_of_zero_ends_a_run(target: float, loss: str, output: Any) -> None:
    X = np.random.default_rng(0).normal(size=(30, 8))
    for solver in ("auto", "dcd"):
        found = dualgap.fit(X, np.full(30, target), loss=loss, bias="exact", solver=solver, output=output)
        assert found.converged
        assert found.certificate.gap <= 1e-7
