"""A common start for the runs of one-vs-rest: the optimum of every class, and certificates that say so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap import common_start
from dualgap.data.sources import view
from dualgap.solvers.joint.one_vs_rest import one_vs_rest_start


def blobs(n: int = 3000, d: int = 6, K: int = 5) -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    y = np.append(np.arange(K), rng.integers(0, K, n - K))
    return (rng.normal(size=(n, d)) + rng.normal(size=(K, d))[y]).astype(np.float32), y


@pytest.fixture
def whatever_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common_start, "LARGE", 1)


@pytest.mark.usefixtures("whatever_the_size")
@pytest.mark.parametrize("bias", ["none", "augmented", "exact"])
def test_every_class_is_solved_where_it_starts(bias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs()
    weight = np.random.default_rng(1).choice([0.0, 1.0, 2.5], y.size)
    told: dict[str, Any] = {"loss": "logistic", "C": 3.0, "bias": bias, "sample_weight": weight}
    ours = dualgap.one_vs_rest(X, y, **told)
    assert [outcome.epochs for outcome in ours.outcomes] == [0.0] * 5
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
    "asked", [{"max_epochs": 3}, {"loss": "hinge"}, {"tol": 0.0, "time_limit": 0.1}, {"solver": "dcd"}]
)
def test_who_asks_for_a_way_gets_it(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs(200)

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("dualgap.solvers.joint.one_vs_rest.one_vs_rest_start", refuse)
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
    assert abs(one.beta(2, y == 2).mean()) < 1e-8


def test_an_interrupted_start_is_handed_over_as_it_is() -> None:
    X, y = blobs()
    found = one_vs_rest_start(view(X, y), y.astype(np.intp), 5, 1e-4, np.inf, 1e-6, lambda: True)
    assert not found.w.any()
