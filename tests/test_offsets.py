"""Offsets: scores are <w, x_i> + b + o_i, with o_i known."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import dualgap
from dualgap.core.losses import LOSSES, make_loss
from dualgap.core.losses.offsets import WithOffsets
from dualgap.runtime.errors import InputError
from dualgap.solvers import SOLVERS, can_train
from support import exact
from support.problems import noisy

MARGIN = [name for name, loss in LOSSES.items() if loss.task == "classification"]


def rows(n: int = 90, d: int = 4, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = noisy(seed=seed, n=n, d=d, noise=0.6)
    return X, y, np.random.default_rng(seed).normal(size=n) * 2.0


@pytest.mark.parametrize(
    ("loss", "bias"), [("hinge", "none"), ("hinge", "exact"), ("logistic", "exact"), ("quantile", "exact")]
)
def test_the_optimum_is_that_of_an_independent_minimiser(loss: str, bias: str) -> None:
    X, y, offset = rows()
    phi, weight = make_loss(loss), 1.0 + (y > 0)
    outcome = dualgap.fit(X, y, loss=loss, offset=offset, bias=bias, C=0.3, tol=1e-6, sample_weight=weight)
    assert outcome.converged

    def objective(point: np.ndarray) -> float:
        w, b = point[:-1], point[-1] if bias == "exact" else 0.0
        losses = [phi.value(t, s) for t, s in zip(y, X @ w + b + offset, strict=True)]
        return float(0.5 * w @ w + 0.3 * weight @ losses)

    ours = objective(np.append(outcome.coef, outcome.intercept))
    assert ours == pytest.approx(outcome.certificate.primal, rel=1e-12)
    options = {"xtol": 1e-8, "ftol": 1e-12}
    theirs = minimize(objective, np.zeros(X.shape[1] + 1), method="Powell", options=options)
    assert outcome.certificate.dual <= theirs.fun
    assert theirs.fun <= ours * (1 + 1e-3)  # it may be slow on kinks, and is not lost


def wrapped(loss: Any) -> list[tuple[float, float, float, complex]]:
    rng = np.random.default_rng(0)
    return [
        (label, offset, score, complex(label, offset))
        for label in (-1.0, 1.0)
        for offset in (0.0, 1.5, -3.25, 1e6)
        for score in (*rng.normal(size=3).tolist(), -offset + label)
    ]


@pytest.mark.parametrize("loss", MARGIN)
def test_the_wrapper_is_the_loss_at_the_shifted_score(loss: str) -> None:
    """Value, slope and dual step; the conjugate against its definition, in exact numbers."""
    base = make_loss(loss)
    found = WithOffsets(base)
    for label, offset, score, y in wrapped(loss):
        assert found.value(y, score) == base.value(label, score + offset)
        assert found.derivative(y, score) == base.derivative(label, score + offset)
        for share in (0.0, 0.25, 1.0):
            beta = label * share
            star = exact.conjugate(base, label, beta)
            assert star is not None
            true = star + Fraction(beta) * Fraction(offset)
            off = 16 * Fraction(2.0**-53) * (abs(star) + abs(Fraction(beta)) * (2 + abs(Fraction(offset))))
            assert abs(Fraction(found.conjugate(y, beta)) - true) <= off
            step = found.dual_prox(y, score, beta, 0.7)
            assert step == base.dual_prox(label, score + offset, beta, 0.7)
            at = found.value(y, score) + found.conjugate(y, step) + step * score
            assert at >= -1e-9 * (1.0 + abs(offset))  # Fenchel and Young


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_certificates_are_exact(loss: str) -> None:
    """P and D of the point handed back, recomputed in rational numbers from the definition."""
    X, y, offset = rows(n=12, d=3)
    base = make_loss(loss)
    outcome = dualgap.fit(X, y, loss=loss, offset=offset, lam=0.1, tol=1e-4)
    w, beta, n = exact.fractions(outcome.coef), outcome.dual, len(y)
    scores = [
        sum((a * Fraction(v) for a, v in zip(w, row.tolist(), strict=True)), Fraction(0)) + Fraction(o)
        for row, o in zip(X, offset.tolist(), strict=True)
    ]
    lam = Fraction(outcome.problem.lam)
    losses = sum(exact.value(base, t, s) for t, s in zip(y.tolist(), scores, strict=True))
    primal = lam * sum(v * v for v in w) / 2 + losses / n
    stars = Fraction(0)
    for t, a, o in zip(y.tolist(), beta.tolist(), offset.tolist(), strict=True):
        star = exact.conjugate(base, t, a)
        assert star is not None
        stars += star + Fraction(a) * Fraction(o)
    moment = [sum(Fraction(a) * Fraction(x) for a, x in zip(beta, column, strict=True)) for column in X.T]
    dual = -stars / n - sum(m * m for m in moment) / (2 * lam * n * n)
    found = outcome.certificate
    assert abs(primal - Fraction(found.primal)) <= Fraction(found.rounding)
    assert abs(dual - Fraction(found.dual)) <= Fraction(found.rounding)
    assert primal - dual <= Fraction(found.gap)


@pytest.mark.parametrize("loss", ["hinge", "quantile"])
def test_no_offset_is_an_offset_of_zero(loss: str) -> None:
    X, y, _ = rows()
    plain = dualgap.fit(X, y, loss=loss, bias="exact", tol=1e-5)
    zero = dualgap.fit(X, y, loss=loss, bias="exact", tol=1e-5, offset=np.zeros(len(y)))
    assert np.array_equal(plain.coef, zero.coef)
    assert plain.certificate == zero.certificate


def test_models_know_that_there_were_offsets(tmp_path: Path) -> None:
    X, y, offset = rows()
    outcome = dualgap.fit(sp.csr_matrix(X), y, offset=offset, bias="exact", loss="logistic", tol=1e-5)
    outcome.model.save(tmp_path / "m")
    model = dualgap.Model.load(tmp_path / "m")
    assert model.offsets
    assert model.verify(X, y, offset=offset).verdict == "true"
    order = np.random.default_rng(0).permutation(len(y))
    assert model.verify(X[order], y[order], offset=offset[order]).verdict == "true"
    assert model.verify(X, y, offset=offset + 1e-3).verdict == "not true"
    with pytest.raises(InputError, match="the training rows had offsets"):
        model.verify(X, y)
    with pytest.raises(InputError, match="trained without offsets"):
        dualgap.fit(X, y).model.verify(X, y, offset=offset)
    np.testing.assert_array_equal(model.decision_function(X, offset), model.decision_function(X) + offset)
    assert np.array_equal(model.predict(X, offset), np.where(model.decision_function(X, offset) > 0, 1, -1))
    assert model.predict_proba(X, offset)[:, 1] == pytest.approx(
        1 / (1 + np.exp(-model.decision_function(X, offset)))
    )
    real = dualgap.fit(X, X[:, 0], loss="huber", offset=offset).model
    assert real.verify(X, X[:, 0], offset=offset).verdict == "true"


def test_runs_with_offsets_are_resumed_bit_for_bit(tmp_path: Path) -> None:
    X, y, offset = rows()
    common: dict[str, Any] = {"offset": offset, "solver": "dcd", "tol": 0.0, "max_epochs": None}
    whole = dualgap.fit(X, y, max_visits=700, **common)
    dualgap.save_state(tmp_path / "r", dualgap.fit(X, y, max_visits=250, **common))
    resumed = dualgap.fit(X, y, max_visits=700, resume=tmp_path / "r", **common)
    assert np.array_equal(whole.coef, resumed.coef)
    with pytest.raises(InputError, match="different rows, targets or weights"):
        dualgap.fit(X, y, max_visits=700, resume=tmp_path / "r", **{**common, "offset": offset + 1.0})


def test_held_out_rows_have_their_offsets() -> None:
    X, y, offset = rows()
    outcome = dualgap.fit(X, y, offset=offset, validation=0.3, tol=1e-6, loss="logistic")
    held = outcome.problem.source.weight == 0.0
    scores = X @ outcome.coef + offset
    best = min(record.measures["validation"] for record in outcome.trace)
    assert best == pytest.approx(np.log1p(np.exp(-y * scores))[held].mean())


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_take_offsets_or_say_that_they_do_not(solver: str) -> None:
    cls = SOLVERS[solver]
    if not can_train(cls, "hinge"):
        return
    X, y, offset = rows(n=30)
    if not cls.capabilities.offsets:
        with pytest.raises(InputError, match=f"solver '{solver}' takes no offsets; these do: dcd, sdca"):
            dualgap.fit(X, y, offset=offset, solver=solver)
        return
    assert dualgap.plan(X, y, offset=offset, solver=solver, max_epochs=2)


@pytest.mark.parametrize("solver", ["sdca", "newton", "interior-point", "implicit"])
def test_other_solvers_find_the_same_optimum(solver: str) -> None:
    X, y, offset = rows(n=40)
    best = dualgap.fit(X, y, offset=offset, tol=1e-7).certificate
    assert dualgap.fit(X, y, offset=offset, solver=solver, tol=2e-2).certificate.primal == pytest.approx(
        best.primal, rel=2.1e-2
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"offset": np.zeros(3)}, "offset has 3 entries and X has 90 rows"),
        ({"offset": np.full(90, np.nan)}, r"offset\[0\] is nan"),
        ({"offset": np.full(90, 1e101)}, r"offset\[0\] is beyond 1e100"),
        ({"C": np.inf}, "the hard margin, which takes no offset"),
        ({"loss": "multinomial"}, "offset= is for losses of one score a row, and not for multinomial"),
        ({"validation": (np.ones((2, 4)), np.array([-1.0, 1.0]))}, "offset= goes with validation= as a part"),
        ({"validation": 0.3, "metric": "error"}, "offset= goes with validation= as a part"),
    ],
)
def test_what_cannot_be(change: dict[str, Any], said: str) -> None:
    X, y, offset = rows()
    with pytest.raises(InputError, match=said):
        dualgap.fit(X, y, **{"offset": offset, **change})
    with pytest.raises(InputError, match="offset= is for one score a row"):
        dualgap.one_vs_rest(X, np.arange(90) % 3).model.predict(X, offset)
