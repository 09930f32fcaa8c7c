"""A common start for the runs of one-vs-rest: the optimum of every class, and certificates that say so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap import common_start
from dualgap.core.bias import Bias, ExactBias, NoBias
from dualgap.core.losses import make_loss
from dualgap.core.problem import Problem
from dualgap.data.sources import view
from dualgap.solvers.joint.one_vs_rest import one_vs_rest_start
from dualgap.solvers.joint.together import Class, trained_together
from dualgap.training.incumbent import Known


def blobs(n: int = 3000, d: int = 6, K: int = 5) -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    y = np.append(np.arange(K), rng.integers(0, K, n - K))
    return (rng.normal(size=(n, d)) + rng.normal(size=(K, d))[y]).astype(np.float32), y


def second_order_never_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` would take it for many rows of few columns, and then there is no common start by coordinates."""
    monkeypatch.setattr(common_start, "_coordinates_begin", lambda problem: True)


@pytest.fixture
def whatever_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common_start, "LARGE", 1)


@pytest.mark.usefixtures("whatever_the_size")
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("bias", ["none", "augmented", "exact"])
def test_every_class_is_solved_where_it_starts(loss: str, bias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    second_order_never_begins(monkeypatch)
    X, y = blobs()
    weight = np.random.default_rng(1).choice([0.0, 1.0, 2.5], y.size)
    told: dict[str, Any] = {"loss": loss, "C": 3.0 if loss == "logistic" else 0.01, "bias": bias}
    told["sample_weight"] = weight
    ours = dualgap.one_vs_rest(X, y, **told)
    at_once = sum(outcome.epochs == 0.0 for outcome in ours.outcomes)
    assert at_once == 5 if loss == "logistic" else at_once >= 3  # others go on by themselves
    assert ours.converged
    monkeypatch.setattr(common_start, "MANY", 1000)
    theirs = dualgap.one_vs_rest(X, y, **told)
    assert min(outcome.epochs for outcome in theirs.outcomes) > 0.0
    for one, other in zip(ours.certificates, theirs.certificates, strict=True):
        assert one.primal == pytest.approx(other.primal, rel=2e-3)
        assert one.primal >= other.dual
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.99


@pytest.mark.usefixtures("whatever_the_size")
@pytest.mark.parametrize(
    "asked",
    [
        {"max_epochs": 3},
        {"loss": "hinge", "max_epochs": 3},
        {"tol": 0.0, "time_limit": 0.1},
        {"solver": "dcd"},
    ],
)
def test_who_asks_for_a_way_gets_it(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs(200)

    def refuse(*_: object) -> None:
        raise AssertionError

    second_order_never_begins(monkeypatch)
    monkeypatch.setattr("dualgap.solvers.joint.one_vs_rest.one_vs_rest_start", refuse)
    monkeypatch.setattr("dualgap.solvers.joint.together.trained_together", refuse)
    with pytest.raises(AssertionError):
        dualgap.one_vs_rest(X, y, loss="logistic", max_epochs=1000)
    dualgap.one_vs_rest(X, y, **{"loss": "logistic", **asked})


def test_samples_and_threads_lead_to_the_same() -> None:
    X, y = blobs(40_000)
    one, two = (
        one_vs_rest_start(view(X, y, threads=threads), y.astype(np.intp), 5, 1e-4, 0.0, 1e-6)
        for threads in (1, 2)
    )
    assert np.array_equal(one.w, two.w)
    assert np.array_equal(one.scores, two.scores)
    whole = dualgap.fit(X, np.where(y == 2, 1, -1), loss="logistic", lam=1e-4, bias="exact", tol=1e-8)
    assert one.w[:, 2] == pytest.approx(whole.coef, abs=1e-2)
    assert abs(one.duals(2, y == 2).mean()) < 1e-8


def test_an_interrupted_start_is_handed_over_as_it_is() -> None:
    X, y = blobs()
    found = one_vs_rest_start(view(X, y), y.astype(np.intp), 5, 1e-4, np.inf, 1e-6, lambda: True)
    assert not found.w.any()


def classes_together(C: float, tol: float, bias: Bias, **told: Any) -> tuple[list[Problem], list[Class]]:
    X, y = blobs()
    rows = view(X, y.astype(float))
    lam = 1.0 / (C * y.size)
    problems = [
        Problem(rows.with_targets(np.where(y == k, 1.0, -1.0)), make_loss("hinge"), lam, bias)
        for k in range(5)
    ]
    return problems, trained_together(problems, y, tol, 3, **told)


def test_coordinates_of_all_classes_are_the_same_whatever_the_threads() -> None:
    one, two = (classes_together(0.01, 1e-3, ExactBias(), threads=threads)[1] for threads in (1, 2))
    for mine, other in zip(one, two, strict=True):
        assert np.array_equal(mine.point.w, other.point.w)
        assert np.array_equal(mine.point.beta, other.point.beta)
        assert (mine.found is None) == (other.found is None)
    assert any(mine.found is not None for mine in one)


def test_a_class_is_done_where_its_certificate_says_so() -> None:
    problems, found = classes_together(0.01, 1e-3, NoBias(), threads=1)
    for problem, (point, value) in zip(problems, found, strict=True):
        assert value is not None
        assert problem.certify(point).relative_gap <= 1.0001e-3
        assert value.dual == pytest.approx(problem.evaluate(point).dual, rel=1e-12)
    problems, found = classes_together(0.01, 1e-14, NoBias(), threads=1)
    assert all(value is None for _, value in found)
    problems, found = classes_together(0.01, 1e-3, NoBias(), threads=1, interrupted=lambda: True)
    assert all(value is None for _, value in found)


def test_an_evaluation_by_another_problem_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs()
    monkeypatch.setattr(common_start, "LARGE", 1)
    told: dict[str, Any] = {"loss": "logistic", "C": 3.0}
    begin = common_start.common_start

    def exchanged(*given: Any) -> Any:
        found: Any = begin(*given)
        (first, known), (second, other) = found[0], found[1]
        assert isinstance(known, Known)
        return found | {0: (first, other), 1: (second, known)}

    monkeypatch.setattr("dualgap.many.common_start", exchanged)
    wrong = dualgap.one_vs_rest(X, y, **told)
    monkeypatch.undo()
    right = dualgap.one_vs_rest(X, y, **told)
    for one, other in zip(wrong.certificates, right.certificates, strict=True):
        assert one.primal == pytest.approx(other.primal, rel=2e-3)
        assert one.dual <= other.primal
