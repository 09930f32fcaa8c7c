"""Bounds on scores: the exact optimum's score of every row lies within them, whatever the run had reached."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.core.losses import LOSSES
from dualgap.core.regions import region_of
from dualgap.models.bounding import score_bounds
from dualgap.runtime.errors import InputError
from support.problems import noisy

BIASES = ["none", "augmented", "exact"]


def rows(regression: bool, n: int = 120, d: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, y = noisy(seed=seed, n=n, d=d, noise=0.8)
    X = X + 0.5
    return X, X @ np.arange(1.0, d + 1) + np.random.default_rng(seed).normal(size=n) if regression else y


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_never_outside(loss: str, bias: str) -> None:
    """At every stage of a run, and for rows near and far, those of training among them."""
    X, y = rows(LOSSES[loss].task == "regression")
    weight = np.random.default_rng(3).choice([0.0, 1.0, 2.0], size=len(y))
    common: dict[str, Any] = {"loss": loss, "C": 0.4, "bias": bias, "rho": 1.7, "sample_weight": weight}
    best = dualgap.fit(X, y, tol=1e-12, stall=None, max_epochs=3000, **common)
    far = 30.0 * np.random.default_rng(1).normal(size=(40, X.shape[1]))
    new = np.vstack([X, far, np.zeros((1, X.shape[1]))])
    exact = best.model.decision_function(new)
    # the tight run's own optimum is this far off, by its own bounds
    off = np.subtract(*best.bounded_model.decision_bounds(new)[::-1])
    assert (off <= 1e-3 * (1.0 + np.abs(exact))).all()
    for tol in (1.0, 1e-2, 1e-5):
        outcome = dualgap.fit(X, y, tol=tol, solver="dcd", **common)
        low, high = outcome.bounded_model.decision_bounds(new)
        assert (low <= exact + off).all()
        assert (exact - off <= high).all()
        own = outcome.model.decision_function(new)
        assert (low <= own + 1e-9).all() or bias == "exact"
        if bias != "exact":
            wide = np.subtract(*outcome.model.decision_bounds(new)[::-1])
            assert (high - low <= wide * (1.0 + 1e-9) + 1e-12).all()  # no wider than sqrt(2 gap)
    assert (high - low)[: len(y)].mean() < 0.1 * (1.0 + np.abs(exact[: len(y)]).mean())


def optimum_of_two_points(C: Fraction, x: Fraction) -> Fraction:
    """Hinge, rows +x (class 1) and -x (class -1), no bias: w = min(1/x, 2 C x), exactly."""
    return min(1 / x, 2 * C * x)


@pytest.mark.parametrize("C", [0.125, 0.3, 4.0])
@pytest.mark.parametrize("bias", BIASES)
def test_against_an_exact_optimum(C: float, bias: str) -> None:
    """By symmetry b = 0 is best for every kind of bias, and where rows are within the margin any other b of
    the same loss is no better; here the interval must hold the whole set of optimal scores at 0 width."""
    X, y = np.array([[1.5], [-1.5]]), np.array([1.0, -1.0])
    w = optimum_of_two_points(Fraction(C), Fraction(1.5))
    new = np.array([[2.0], [-0.25], [1e6], [0.0]])
    for tol in (0.5, 1e-3, 0.0):
        outcome = dualgap.fit(X, y, C=C, bias=bias, tol=tol, solver="dcd", max_epochs=200)
        low, high = outcome.bounded_model.decision_bounds(new)
        for row, least, most in zip(new[:, 0].tolist(), low.tolist(), high.tolist(), strict=True):
            score = w * Fraction(row)
            assert least == -np.inf or Fraction(least) <= score
            assert most == np.inf or score <= Fraction(most)


def test_exact_optimum_of_least_squares() -> None:
    """The optimum of the squared loss is a linear system, solved here in rational numbers, bias and all."""
    rng = np.random.default_rng(5)
    X, y = rng.integers(-4, 5, size=(7, 2)).astype(float), rng.integers(-9, 9, size=7).astype(float)
    for bias in ("none", "exact"):
        A = [[Fraction(int(v)) for v in row] + [Fraction(1)] * (bias == "exact") for row in X]
        size = len(A[0])
        C = Fraction(1, 4)
        left = [
            [2 * C * sum(r[i] * r[j] for r in A) + (i == j and i < 2) for j in range(size)]
            for i in range(size)
        ]
        right = [2 * C * sum(r[i] * Fraction(int(t)) for r, t in zip(A, y, strict=True)) for i in range(size)]
        solution = solved(left, right)
        new = np.vstack([X, 100.0 * X])
        for tol in (1e-1, 1e-6, 1e-12):
            outcome = dualgap.fit(X, y, loss="squared", C=0.25, bias=bias, tol=tol, solver="dcd")
            low, high = outcome.bounded_model.decision_bounds(new)
            for row, least, most in zip(new, low.tolist(), high.tolist(), strict=True):
                features = [*row.tolist(), 1.0][:size]
                score = sum((a * Fraction(v) for a, v in zip(solution, features, strict=True)), Fraction(0))
                assert Fraction(least) <= score <= Fraction(most)


def solved(left: list[list[Any]], right: list[Any]) -> list[Fraction]:
    """A linear system in rational numbers, by elimination."""
    rows = [[Fraction(v) for v in row] + [Fraction(r)] for row, r in zip(left, right, strict=True)]
    for i in range(len(rows)):
        pivot = next(k for k in range(i, len(rows)) if rows[k][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for k in range(len(rows)):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


def test_the_ball_is_half_as_wide_as_the_gap_alone_says() -> None:
    """At a point whose duals are the slopes of its losses, |w - w(beta)|^2 = 2 gap, and the radius is
    sqrt(gap / 2); at w = w(beta) it is sqrt(gap)."""
    X, y = rows(False)
    newton = dualgap.fit(X, y, loss="logistic", solver="newton", tol=1e-2)
    gap = newton.problem.in_form(newton.certificate, "J").gap
    assert region_of(newton.problem, newton.point).radius == pytest.approx(np.sqrt(gap / 2), rel=1e-2)
    dcd = dualgap.fit(X, y, loss="hinge", solver="dcd", tol=1e-2)
    radius = region_of(dcd.problem, dcd.point).radius
    assert radius <= np.sqrt(dcd.problem.in_form(dcd.certificate, "J").gap) * (1 + 1e-9)


def test_labels_that_are_decided_stay() -> None:
    X, y = rows(False, n=300)
    best = dualgap.fit(X, y, tol=1e-10, bias="exact", max_epochs=5000).model.predict(X)
    shares = []
    for tol in (1e-1, 1e-2, 1e-4):
        model = dualgap.fit(X, y, tol=tol, bias="exact").bounded_model
        sure = model.decided(X)
        assert (model.predict(X)[sure] == best[sure]).all()
        low, high = model.decision_bounds(X)
        assert np.array_equal(sure, (low > 0) | (high <= 0))
        shares.append(sure.mean())
        assert model.evaluate(X, y).values["decided"] == sure.mean()
    assert shares[0] < shares[-1]
    assert shares[-1] > 0.8
    assert "decided" not in dualgap.fit(X, y).model.evaluate(X, y).values


@pytest.mark.parametrize("bias", ["none", "exact"])
def test_classes_each_against_the_rest(bias: str) -> None:
    X, _ = rows(False, n=150)
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.3, 1.2])
    best = dualgap.one_vs_rest(X, y, tol=1e-9, bias=bias)
    many = dualgap.one_vs_rest(X, y, tol=1e-2, bias=bias)
    low, high = many.bounded_model.decision_bounds(X)
    scores = best.model.decision_function(X)
    assert low.shape == high.shape == scores.shape
    assert ((low - 1e-4 <= scores) & (scores <= high + 1e-4)).all()
    sure = many.bounded_model.decided(X)
    assert sure.mean() > 0.1
    assert (best.model.predict(X)[sure] == many.model.predict(X)[sure]).all()


@pytest.mark.parametrize("bias", ["none", "augmented"])
def test_all_classes_at_once(bias: str) -> None:
    X, _ = rows(False, n=150)
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.3, 1.2])
    best = dualgap.fit(X, y, loss="multinomial", tol=1e-10, bias=bias)
    rough = dualgap.fit(X, y, loss="multinomial", tol=1e-2, bias=bias)
    scores = best.model.decision_function(X)
    for model in (rough.model, rough.bounded_model):
        low, high = model.decision_bounds(X)
        assert ((low - 1e-4 <= scores) & (scores <= high + 1e-4)).all()
        sure = model.decided(X)
        assert (best.model.predict(X)[sure] == rough.model.predict(X)[sure]).all()
    assert sure.mean() > 0.3
    with pytest.raises(InputError, match="bias='exact' with all classes at once: no bound is known"):
        _ = dualgap.fit(X, y, loss="multinomial", bias="exact").bounded_model


def test_files_keep_bounds(tmp_path: Path) -> None:
    X, y = rows(False)
    for bias in BIASES:
        outcome = dualgap.fit(sp.csr_matrix(X), y, bias=bias, scale="max-abs")
        outcome.bounded_model.save(tmp_path / "m")
        model = dualgap.Model.load(tmp_path / "m")
        ours, theirs = outcome.bounded_model.decision_bounds(X), model.decision_bounds(X)
        assert np.array_equal(ours, theirs)
        again = outcome.model.with_bounds(X, y)
        assert np.array_equal(again.decision_bounds(X)[0], model.decision_bounds(X)[0])
        assert model.verify(X, y).verdict == "true"
    with pytest.raises(InputError, match="these are not the training rows"):
        outcome.model.with_bounds(X[::-1], y)
    with pytest.raises(InputError, match="its bounds follow from the training rows alone"):
        outcome.model.decision_bounds(X)


def test_offsets_move_bounds() -> None:
    X, y = rows(False)
    offset = np.random.default_rng(0).normal(size=len(y))
    outcome = dualgap.fit(X, y, bias="exact", loss="logistic", offset=offset, tol=1e-3)
    best = dualgap.fit(X, y, bias="exact", loss="logistic", offset=offset, tol=1e-11)
    low, high = outcome.bounded_model.decision_bounds(X, offset)
    scores = best.model.decision_function(X, offset)
    assert ((low <= scores + 1e-6) & (scores <= high + 1e-6)).all()
    assert np.array_equal(outcome.bounded_model.decided(X, offset), (low > 0) | (high <= 0))


@pytest.mark.parametrize("bias", ["none", "exact"])
def test_a_run_ends_when_labels_are_decided(bias: str) -> None:
    X, y = rows(False, n=300)
    low, high = dualgap.fit(X, y, tol=1e-6, bias=bias).bounded_model.decision_bounds(X)
    easy = X[np.minimum(np.abs(low), np.abs(high)) > 0.5][:20]
    outcome = dualgap.fit(X, y, tol=0.0, bias=bias, stop_when_decided=easy)
    assert (outcome.reason.name, outcome.converged) == ("decided", True)
    assert "the labels of all 20 rows are those of the exact optimum" in outcome.reason.message
    assert outcome.certificate.relative_gap > 1e-9
    best = dualgap.fit(X, y, tol=1e-10, bias=bias, max_epochs=5000)
    assert (best.model.predict(easy) == outcome.model.predict(easy)).all()
    assert outcome.bounded_model.decided(easy).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"loss": "squared"}, "is for classes"),
        ({"lam": 0.0, "solver": "sgd"}, "needs lam > 0"),
        ({"output": "last"}, "about the best model"),
        ({"stop_when_decided": np.ones((2, 3))}, "X has 3 columns and the model has 5"),
        ({"stop_when_decided": np.full((2, 5), np.nan)}, "rows of finite numbers"),
    ],
)
def test_what_cannot_be_decided(change: dict[str, Any], said: str) -> None:
    X, y = rows(False)
    with pytest.raises(InputError, match=said):
        dualgap.fit(X, y, **{"stop_when_decided": X, **change})


def test_regions_of_float32_and_empty_rows() -> None:
    X, y = rows(False)
    outcome = dualgap.fit(X.astype(np.float32), y, tol=1e-8)
    wide = score_bounds(outcome.bounded_model.regions, sp.csr_matrix((3, 5), dtype=np.float32))
    assert (wide[0] <= 0).all()
    assert (wide[1] >= 0).all()
    assert (wide[1] - wide[0] < 1e-12).all()
