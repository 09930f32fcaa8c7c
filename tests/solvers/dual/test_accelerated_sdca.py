"""Accelerated proximal SDCA against a transcription of its outer loop, and what it is for."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import dualgap
from dualgap.core.bias import make_bias
from dualgap.core.losses import make_loss
from dualgap.core.problem import Problem
from dualgap.data.sources import view
from dualgap.files import read_data
from dualgap.solvers.dual.accelerated_sdca import AcceleratedSDCA
from support.problems import sparse_data
from support.states import assert_same


@pytest.mark.parametrize("bias", ["none", "augmented"])
def test_it_is_the_outer_loop_of_the_paper(bias: str) -> None:
    """w_t minimises P_gamma(w) + kappa/2 |w - y|^2 once inner problems are solved, and y is moved by the
    momentum; the bias is one more column.
    """
    X, y = sparse_data(n=40, d=5, density=0.8, noise=0.3)
    gamma, rho = 0.1, 1.3
    wide = np.hstack([X, np.full((40, 1), rho)]) if bias == "augmented" else X
    lam = 1.0 / (2.0 * 40)
    problem = Problem(view(X, y), make_loss("hinge"), lam, make_bias(bias, rho))
    solver = AcceleratedSDCA(gamma=str(gamma), radius="max", inner=300.0)
    R2 = (wide**2).sum(axis=1).max()
    kappa, mu = R2 / (gamma * 40) - lam, lam / 2
    eta = math.sqrt(mu / (mu + kappa))
    momentum = (1 - eta) / (1 + eta)
    state, centre, last = solver.start(problem, None), np.zeros(wide.shape[1]), np.zeros(wide.shape[1])
    for _ in range(4):
        state, _ = solver.step(problem, state, 300 * 40 - 1, None)  # one short of the end: y has not moved
        w = np.append(state.w, state.cursor.b / rho) if bias == "augmented" else state.w.copy()
        margins = y * (wide @ w)
        slopes = -y * np.clip((1.0 - margins) / gamma, 0.0, 1.0)  # of the smoothed hinge
        gradient = lam * w + wide.T @ slopes / 40 + kappa * (w - centre)
        np.testing.assert_allclose(gradient, 0.0, atol=1e-9)
        centre, last = w + momentum * (w - last), w
        state, _ = solver.step(problem, state, 1, None)
        moved = state.outer.centre[:-1]
        np.testing.assert_allclose(moved, centre[:5], rtol=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "epsilon-insensitive"])
def test_cutting_the_work_makes_no_difference_and_w_follows_the_duals(loss: str) -> None:
    X, y = sparse_data(n=60, d=8, density=0.5, noise=0.5, regression=loss == "epsilon-insensitive")
    problem = Problem(view(X, y), make_loss(loss), 0.01, make_bias("augmented", 0.7))
    solver = AcceleratedSDCA(inner=0.7)

    def run(budget: int) -> object:
        state = solver.start(problem, None)
        while state.counts.visits < 1000:
            state, _ = solver.step(problem, state, min(budget, 1000 - state.counts.visits), None)
        share, _ = solver._inner(problem, state.outer.gamma)
        w, b = problem.model_of(state.beta, 0.0)
        centre = state.outer.centre
        np.testing.assert_allclose(state.w, share * w + (1 - share) * centre[:-1], atol=1e-10)
        assert state.cursor.b == pytest.approx(share * b + (1 - share) * centre[-1], abs=1e-10)
        return state

    assert_same(run(1000), run(1))
    assert_same(run(1000), run(77))


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "absolute"])
def test_it_reaches_the_optimum(loss: str) -> None:
    X, y = sparse_data(n=80, d=6, density=0.7, noise=0.5, regression=loss == "absolute")
    outcome = dualgap.fit(X, y, loss=loss, solver="accelerated-sdca", tol=1e-3, max_epochs=5000)
    reference = dualgap.fit(X, y, loss=loss, tol=1e-7)
    assert outcome.converged
    assert outcome.certificate.primal <= reference.certificate.primal * (1 + 1.1e-3)
    assert outcome.certificate.dual <= reference.certificate.primal * (1 + 1e-9)


def test_it_is_faster_than_sdca_where_c_is_large() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 30)) * np.geomspace(1.0, 0.05, 30)
    y = np.sign(X @ rng.standard_normal(30) + 0.3 * rng.standard_normal(400))
    epochs = [
        dualgap.fit(X, y, loss="logistic", C=300.0, solver=name, tol=1e-3, max_epochs=2000).epochs
        for name in ("accelerated-sdca", "sdca")
    ]
    assert epochs[0] < 0.5 * epochs[1]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "most"), [("a9a", 20), ("w8a", 90)])
def test_a_gap_of_one_percent_at_c_1(name: str, most: int, data_folder: Path) -> None:
    """Which plain asdca does not reach in 30 seconds."""
    file = data_folder / f"{name}.svm.bz2"
    if not file.exists():
        pytest.skip(f"{file} is not there")
    found = read_data(file)
    outcome = dualgap.fit(found.X, found.y, solver="accelerated-sdca", tol=1e-2)
    assert outcome.converged
    assert outcome.epochs <= most
