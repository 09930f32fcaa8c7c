"""A run goes on only with the problem it was made for; anything else is a place to start from, and pays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.core.losses import LOSSES
from dualgap.solvers import SOLVERS, can_have, can_train
from generated import noisy
from matrix import PROMISES

X, Y = noisy(1, 200, 5)
ORDER = np.random.default_rng(2).permutation(200)
OTHERS: dict[str, tuple[np.ndarray, np.ndarray, dict[str, Any]]] = {
    "another C": (X, Y, {"C": 1.0}),
    "other labels": (X, -Y, {}),
    "rows in another order": (X[ORDER], Y[ORDER], {}),
    "other rows of the same lengths": (-X, Y, {}),
    "columns in another order": (X[:, ::-1].copy(), Y, {}),
    "another loss": (X, Y, {"loss": "squared-hinge"}),
    "weights": (X, Y, {"sample_weight": np.arange(200) % 3 + 0.5}),
    "another bias": (X, Y, {"bias": "exact"}),
    "another rho": (X, Y, {"bias": "augmented", "rho": 3.0}),
}


@pytest.mark.parametrize("solver", ["dcd", "cached-loops", "sdca"])
@pytest.mark.parametrize("other", OTHERS)
def test_an_outcome_of_another_problem_is_a_starting_point(solver: str, other: str) -> None:
    first = dualgap.fit(X, Y, solver=solver, C=1e-3, bias="augmented" if other == "another rho" else "none")
    rows, labels, changes = OTHERS[other]
    for warm in (first, first.state):
        outcome = dualgap.fit(rows, labels, solver=solver, warm=warm, **{"C": 1e-3, **changes})
        assert outcome.converged, outcome.reason
        assert outcome.trace[0].visits == 0  # it did not go on


def test_data_changed_in_place_are_other_data() -> None:
    """Samples of large arrays may miss the change; the value of the best point does not."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 20))
    labels = np.sign(rows[:, 0] + rng.normal(size=2000))
    first = dualgap.fit(rows, labels, solver="dcd", C=0.01)
    rows[700:720, 3] *= -1.0  # no length changes
    changed = dualgap.fit(rows, labels, solver="dcd", C=0.01, warm=first)
    assert changed.trace[0].visits == 0
    again = dualgap.fit(rows, labels, solver="dcd", C=0.01, warm=changed)
    assert again.trace[0].visits == changed.trace[-1].visits


def offers() -> Iterator[tuple[str, str, str]]:
    for name, solver in SOLVERS.items():
        for loss in ("hinge", "logistic"):
            for bias in ("none", "exact"):
                # the perceptron does not minimise the objective, and meets no gap
                if can_train(solver, loss) and can_have(solver, bias) and name != "perceptron":
                    yield name, loss, bias


@pytest.mark.parametrize(("solver", "loss", "bias"), list(offers()))
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_path_over_C_takes_fewer_epochs_than_cold_runs(
    solver: str, loss: str, bias: str, direction: str
) -> None:
    path = np.geomspace(1e-3, 1.0, 20)[:: 1 if direction == "up" else -1]
    options: dict[str, Any] = {"solver": solver, "loss": loss, "bias": bias, "max_epochs": 300}
    options["tol"] = 1e-2 if PROMISES[solver].tol < 1e-3 else 0.1
    cold = warm = 0.0
    before = None
    for C in path:
        cold += dualgap.fit(X, Y, C=C, **options).trace[-1].epochs
        before = dualgap.fit(X, Y, C=C, warm=before, **options)
        warm += before.trace[-1].epochs
    assert warm < cold


def test_every_loss_takes_a_start_from_every_other() -> None:
    target = X[:, 0] + 0.1
    for task in ("classification", "regression"):
        names = [name for name in LOSSES if LOSSES[name].task == task]
        y = Y if task == "classification" else target
        outcomes = {name: dualgap.fit(X, y, solver="dcd", loss=name, tol=1e-2) for name in names}
        for name in names:
            for other in names:
                assert dualgap.fit(X, y, solver="dcd", loss=name, tol=1e-2, warm=outcomes[other]).converged
