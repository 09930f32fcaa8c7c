"""The interior point method: every loss made of lines and parabolas, in few steps whatever the scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.core.losses import LOSSES, make_loss
from dualgap.core.problem import Problem
from dualgap.data.sources import view
from dualgap.runtime.errors import InputError
from dualgap.solvers.second_order.direct import Hessians, Residual
from dualgap.solvers.second_order.interior_point import InteriorPoint

PIECEWISE = InteriorPoint.capabilities.losses
assert PIECEWISE is not None
STEPS = 30


def rows(n: int, d: int, loss: str, seed: int = 0, decades: float = 3.0) -> Any:
    """Columns whose scales are up to six powers of ten apart, and weights of 0, 1 and 2."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-decades, decades, size=d)
    target = X @ rng.normal(size=d) / np.linalg.norm(X, axis=1).mean() * 5.0 + rng.normal(size=n)
    y = np.sign(target) if LOSSES[loss].task == "classification" else target
    return X, y, rng.choice([0.0, 1.0, 2.0], size=n, p=[0.1, 0.6, 0.3])


@pytest.mark.parametrize("loss", LOSSES)
def test_ramps_are_the_loss(loss: str) -> None:
    """phi is the sum of its ramps, on a grid of scores; losses without ramps are refused by the solver."""
    y = np.array([-1.0, 1.0]) if LOSSES[loss].task == "classification" else np.array([-2.5, 0.0, 1.3])
    phi = make_loss(loss)
    ramps = phi.ramps(y)
    assert bool(ramps) == (loss in PIECEWISE)
    for score in np.linspace(-6.0, 6.0, 121) if ramps else ():
        total = np.zeros(y.size)
        for at, low, high, bend in ramps:
            short = at - score
            free = short / bend if bend else np.where(short > 0.0, np.inf, -np.inf)
            beta = np.where(short == 0.0, 0.0, np.clip(free, low, high))
            total += beta * short - 0.5 * bend * beta**2
        expected = [phi.value(target, score) for target in y.tolist()]
        np.testing.assert_allclose(total, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bias", ["none", "augmented", "exact"])
@pytest.mark.parametrize("loss", PIECEWISE)
@pytest.mark.parametrize(("n", "d", "sparse"), [(200, 12, False), (40, 90, False), (60, 25, True)])
def test_it_is_solved_in_few_steps_whatever_the_scales(
    loss: str, bias: str, n: int, d: int, sparse: bool
) -> None:
    X, y, weight = rows(n, d, loss)
    given = sp.csr_array(X * (np.abs(X) > np.median(np.abs(X)))) if sparse else X
    outcome = dualgap.fit(
        given, y, loss=loss, C=2.0, solver="interior-point", bias=bias, tol=1e-5, sample_weight=weight
    )
    assert outcome.converged, outcome.reason.message
    assert len(outcome.trace) <= STEPS


def test_it_finds_what_others_find() -> None:
    for loss in PIECEWISE:
        X, y, weight = rows(80, 6, loss, decades=0.3)
        arguments: dict[str, Any] = {"loss": loss, "C": 0.7, "bias": "exact", "sample_weight": weight}
        found = dualgap.fit(X, y, solver="interior-point", tol=1e-8, **arguments)
        other = dualgap.fit(X, y, solver="newton", tol=1e-8, **arguments)
        assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-7)
        np.testing.assert_allclose(found.coef, other.coef, atol=1e-3 * np.abs(other.coef).max())


@pytest.mark.parametrize("strength", [np.inf, 0.0, 0.3])
def test_equations_by_rows_and_by_columns_agree(strength: float) -> None:
    rng = np.random.default_rng(1)
    X, h, t = rng.normal(size=(7, 5)), rng.uniform(0.1, 2.0, size=7), rng.normal(size=7)
    h[2] = 0.0
    lift, ridge = float(strength < np.inf), np.append(np.full(5, 0.4), strength if strength < np.inf else 1.0)
    m, away = rng.normal(size=7), rng.normal(size=6)
    Z = np.column_stack([X, np.full(7, lift)])
    H, right = np.diag(ridge) + Z.T @ (h[:, None] * Z), Z.T @ (h * t + m) - ridge * away
    expected = np.linalg.solve(H, right)
    if lift == 0.0:
        expected[-1] = -away[-1]
    hessians = Hessians(view(X, t).batch, None, ridge, lift)
    for equations in (hessians.equations_by_columns(h), hessians.equations_by_rows(h)):
        assert equations is not None
        found = equations(t, Residual(m, away, Z @ away))
        np.testing.assert_allclose(found.place(), expected, rtol=1e-9)
        np.testing.assert_allclose(found.scores, Z @ expected, rtol=1e-9)


@pytest.mark.parametrize("strength", [0.0, 0.3, np.inf])
@pytest.mark.parametrize("d", [5, 9])
def test_factors_solve_whichever_are_fewer(strength: float, d: int) -> None:
    rng = np.random.default_rng(2)
    X, h = rng.normal(size=(7, d)), rng.uniform(0.1, 2.0, size=7)
    h[2] = 0.0
    lift, ridge = float(strength < np.inf), np.append(np.full(d, 0.4), strength if strength < np.inf else 1.0)
    Z = np.column_stack([X, np.full(7, lift)])
    solve = Hessians(view(X, np.ones(7)).batch, None, ridge, lift).factorised(h)
    r = rng.normal(size=d + 1)
    assert solve is not None
    expected = np.linalg.solve(np.diag(ridge) + Z.T @ (h[:, None] * Z), r)
    np.testing.assert_allclose(solve(r), expected, rtol=1e-9)


def test_sparse_rows_that_store_every_entry_are_worked_on_as_dense_ones() -> None:
    rng = np.random.default_rng(1)
    X, h = rng.normal(size=(200, 100)), rng.uniform(0.1, 2.0, size=200)
    few = np.where(rng.random(X.shape) < 0.1, X, 0.0)
    for rows, dense in ((X, True), (few, False), (X[:100], False)):
        view_of_all = view(sp.csr_array(rows), np.ones(rows.shape[0]))
        hessians = Hessians.of(Problem(view_of_all, make_loss("hinge"), 1.0))
        assert hessians.sparse is not dense
        assert sp.issparse(hessians.X) is not dense
        batch = view(rows, np.ones(rows.shape[0])).batch
        other = Hessians(batch, None, hessians.ridge, hessians.lift).factorised(h[: rows.shape[0]])
        found, r = hessians.factorised(h[: rows.shape[0]]), rng.normal(size=101) * hessians.lift
        assert found is not None and other is not None  # noqa: PT018
        np.testing.assert_allclose(found(r), other(r), rtol=1e-9)


def test_a_step_that_is_no_number_is_not_taken() -> None:
    """Equal rows with different targets at an enormous C: in the end rounding leaves nothing."""
    X = np.tile([1.46399307, -0.39073128, 0.0, 0.0, 1.29261565, -1.52412355], (5, 1))
    y = np.array([1.66569019, 1.52797619, 0.13413, 0.58316558, 1.68907965])
    for C in (1e15, 1e16):
        found = dualgap.fit(
            X, y, loss="squared-epsilon-insensitive", C=C, solver="interior-point", tol=0.0, output="last"
        )
        assert np.isfinite(found.coef).all()
        assert found.reason.name in ("stalled", "rounding", "max_epochs")


def test_what_is_too_large_or_has_no_ramps_is_refused() -> None:
    X, y, _ = rows(30, 4, "hinge")
    with pytest.raises(InputError, match="cannot train with the loss 'logistic'"):
        dualgap.fit(X, y, loss="logistic", solver="interior-point")
    eye = sp.csr_array((np.ones(20_001), (np.arange(20_001), np.arange(20_001))))
    problem = Problem(view(eye, np.ones(20_001)), make_loss("hinge"), 1.0)
    with pytest.raises(InputError, match="20,000 at most"):
        InteriorPoint().check(problem, np.inf)


def test_a_run_that_is_resumed_is_the_same() -> None:
    X, y, _ = rows(60, 5, "hinge")
    whole = dualgap.fit(X, y, solver="interior-point", tol=1e-7)
    first = dualgap.fit(X, y, solver="interior-point", tol=1e-7, max_epochs=10)
    resumed = dualgap.fit(X, y, solver="interior-point", tol=1e-7, resume=first)
    assert 3 < len(first.trace) < len(whole.trace)
    assert np.array_equal(whole.coef, resumed.coef)
