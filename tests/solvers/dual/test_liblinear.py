"""LIBLINEAR's epochs, shrinking and stopping rule as options of ``dcd``, against a transcription."""

from __future__ import annotations

import numpy as np
import pytest

import dualgap
from dualgap.core.losses import make_loss
from dualgap.core.problem import Problem
from dualgap.data.sources import view
from dualgap.runtime.random import shuffle
from dualgap.solvers.dual.dcd import DCD
from support.problems import sparse_data
from support.states import assert_same


def transcribed(X: np.ndarray, y: np.ndarray, C: float, e: float, rng: np.ndarray) -> tuple[np.ndarray, int]:
    """LIBLINEAR's solve_l2r_l1l2_svc for the hinge loss, line by line; the duals and the number of epochs."""
    n = y.size
    alpha, w, index = np.zeros(n), np.zeros(X.shape[1]), np.arange(n, dtype=np.uint32)
    active, bar_high, bar_low = n, np.inf, -np.inf
    for epoch in range(1, 1000):
        high, low = -np.inf, np.inf
        shuffle(rng, index, active)
        s = 0
        while s < active:
            i = index[s]
            slope = y[i] * (X[i] @ w) - 1.0
            projected = 0.0
            if alpha[i] == 0.0:
                if slope > bar_high:
                    active -= 1
                    index[s], index[active] = index[active], index[s]
                    continue
                projected = min(slope, 0.0)
            elif alpha[i] == C:
                if slope < bar_low:
                    active -= 1
                    index[s], index[active] = index[active], index[s]
                    continue
                projected = max(slope, 0.0)
            else:
                projected = slope
            high, low = max(high, projected), min(low, projected)
            if abs(projected) > 1e-12:
                old = alpha[i]
                alpha[i] = min(max(old - slope / (X[i] @ X[i]), 0.0), C)
                w += (alpha[i] - old) * y[i] * X[i]
            s += 1
        if high - low <= e:
            if active == n:
                return alpha, epoch
            active, bar_high, bar_low = n, np.inf, -np.inf
            continue
        bar_high, bar_low = high if high > 0 else np.inf, low if low < 0 else -np.inf
    raise AssertionError("no end")


@pytest.mark.parametrize("e", [0.1, 1e-3])
def test_liblinear_e_is_the_run_of_liblinear(e: float) -> None:
    X, y = sparse_data(n=120, d=10, density=0.6, noise=0.5)
    X[:, 0] += 0.1  # no empty row
    problem = Problem(view(X, y), make_loss("hinge"), 1.0 / (0.5 * 120))
    solver = DCD(liblinear_e=e, seed=3)
    state = solver.start(problem, None)
    alpha, epochs = transcribed(X, y, 0.5, e, state.sweeps.rng.copy())
    ended, again = None, solver.start(problem, None)
    while ended is None:
        state, (_, ended, *_) = solver.step(problem, state, 10_000, None)
    assert ended.name == "liblinear_e"
    np.testing.assert_allclose(0.5 * state.beta * y, alpha, atol=1e-9)
    assert epochs > 3
    ended = None
    while ended is None:
        again, (_, ended, *_) = solver.step(problem, again, 7, None)
    assert_same(state, again)


def test_without_foresight_the_first_epoch_is_plain_coordinate_descent() -> None:
    X, y = sparse_data(n=50, d=6, density=0.7, noise=0.5)
    C, states = 0.05, []
    problem = Problem(view(X, y), make_loss("hinge"), 1.0 / (C * 50))
    for solver in (DCD(), DCD(foresight=False)):
        state, _ = solver.step(problem, solver.start(problem, None), 50, None)
        states.append(state)
    rng, order = DCD().start(problem, None).sweeps.rng.copy(), np.arange(50, dtype=np.uint32)
    shuffle(rng, order, 50)
    a, w = np.zeros(50), np.zeros(6)
    for i in order:
        a[i] = min(max(0.0, (1.0 - y[i] * (X[i] @ w)) / (X[i] @ X[i])), C) if X[i].any() else C
        w += a[i] * y[i] * X[i]
    np.testing.assert_allclose(C * y * states[1].beta, a, atol=1e-12)
    assert not np.allclose(states[0].beta, states[1].beta)


def test_rules_of_liblinear_are_refused_where_they_do_not_belong() -> None:
    X, y = sparse_data(n=20, d=4, density=0.7, noise=0.5)
    with pytest.raises(dualgap.InputError, match="two rules"):
        dualgap.fit(X, y, solver="dcd", pg_tol=0.1, liblinear_e=0.1)
    with pytest.raises(dualgap.InputError, match="is for classification"):
        dualgap.fit(X, y, solver="dcd", loss="squared", liblinear_e=0.1)
    found = dualgap.fit(X, y, solver="dcd", paper=True, tol=0.0)
    assert found.reason.name == "liblinear_e"
