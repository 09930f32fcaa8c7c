"""Starting points from other runs, and runs that are resumed: two arguments, two meanings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.core.losses import LOSSES
from dualgap.solvers import SOLVERS, can_have, can_train
from support.matrix import PROMISES
from support.problems import noisy
from support.states import assert_same

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


DIFFERENCES = {
    "another C": r"trained with lam=\S+ \(C=0.001\), and now it is lam=",
    "another loss": "trained with loss='hinge:margin=1', and now it is loss=",
    "another bias": "trained with bias='none', and now it is bias=",
    "another rho": "trained with bias='augmented', rho=1, and now it is bias='augmented', rho=3",
}


@pytest.mark.parametrize("solver", ["dcd", "cached-loops", "sdca"])
@pytest.mark.parametrize("other", OTHERS)
def test_an_outcome_of_another_problem_is_a_starting_point_and_cannot_be_resumed(
    solver: str, other: str
) -> None:
    first = dualgap.fit(X, Y, solver=solver, C=1e-3, bias="augmented" if other == "another rho" else "none")
    rows, labels, changes = OTHERS[other]
    options = {"C": 1e-3, "solver": solver, **changes}
    outcome = dualgap.fit(rows, labels, warm=first, **options)
    assert outcome.converged, outcome.reason
    assert outcome.trace[0].visits == 0
    with pytest.raises(dualgap.InputError, match=DIFFERENCES.get(other, "resume: ")):
        dualgap.fit(rows, labels, resume=first, **options)


def test_runs_of_other_solvers_and_options_cannot_be_resumed() -> None:
    first = dualgap.fit(X, Y, solver="dcd", C=1e-3, max_epochs=2)
    for options, words in (
        ({"solver": "sdca"}, "solver='dcd', and now it is solver='sdca'"),
        ({}, "solver='dcd', and now it is solver='auto'"),
        ({"solver": "dcd", "shrinking": False}, "shrinking=True, and now it is shrinking=False"),
        ({"solver": "dcd", "seed": 1}, "seed=0, and now it is seed=1"),
    ):
        with pytest.raises(dualgap.InputError, match=f"resume: the run was trained with {words}; "):
            dualgap.fit(X, Y, C=1e-3, resume=first, **options)
    auto = dualgap.fit(X, Y, C=1e-3, max_epochs=2)
    with pytest.raises(dualgap.InputError, match="trained with seed=0, and now it is seed=1; "):
        dualgap.fit(X, Y, C=1e-3, resume=auto, seed=1)
    resumed = dualgap.fit(X, Y, C=1e-3, resume=first, solver="dcd", pg_tol=1e-9)  # it only ends a run
    assert resumed.trace[0].visits == first.trace[-1].visits
    with pytest.raises(dualgap.InputError, match="both warm= and resume="):
        dualgap.fit(X, Y, C=1e-3, resume=first, warm=first)
    with pytest.raises(dualgap.InputError, match=r"resume=3 must be the name of"):
        dualgap.fit(X, Y, resume=3)
    with pytest.raises(dualgap.InputError, match=r"run.npz: not a saved run \(there is no such file\)"):
        dualgap.fit(X, Y, resume="run.npz")
    with pytest.raises(dualgap.InputError, match="a Run goes on with resume="):
        dualgap.fit(X, Y, warm=first.run)
    with pytest.raises(dualgap.InputError, match="the run has format 1"):
        dualgap.fit(X, Y, C=1e-3, resume=first.run._replace(format=1), solver="dcd")


def test_a_damaged_state_is_refused() -> None:
    first = dualgap.fit(X, Y, solver="dcd", C=1e-3, max_epochs=2)
    state = first.run.state
    for damaged, what in (
        (state._replace(w=state.w[:-1]), r"state.w has the shape \(4,\), and must have \(5,\)"),
        (state._replace(beta=state.beta.astype(np.float32)), "state.beta has the dtype float32"),
    ):
        with pytest.raises(
            dualgap.InputError, match=rf"cannot be one of solver 'dcd', {what}.*: it is damaged; "
        ):
            dualgap.fit(X, Y, solver="dcd", C=1e-3, resume=first.run._replace(state=damaged))


def test_data_changed_in_place_are_other_data() -> None:
    """Samples of large arrays may miss the change; the value of the best point does not."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 20))
    labels = np.sign(rows[:, 0] + rng.normal(size=2000))
    first = dualgap.fit(rows, labels, solver="dcd", C=0.01)
    rows[700:720, 3] *= -1.0  # no length changes
    with pytest.raises(dualgap.InputError, match=r"they are others|different rows"):
        dualgap.fit(rows, labels, solver="dcd", C=0.01, resume=first)
    changed = dualgap.fit(rows, labels, solver="dcd", C=0.01, warm=first)
    assert changed.trace[0].visits == 0
    again = dualgap.fit(rows, labels, solver="dcd", C=0.01, resume=changed)
    assert again.trace[0].visits == changed.trace[-1].visits


@pytest.mark.parametrize("cut", [130, 700, 901])
def test_early_stopping_ends_a_resumed_run_where_it_ends_an_uninterrupted_one(cut: int) -> None:
    options: dict[str, Any] = {
        "validation": 0.25, "lam": 1e-4, "solver": "sgd", "patience": 3, "record_every": 150, "tol": 0.0,
    }  # fmt: skip
    whole = dualgap.fit(X, Y, **options)
    assert whole.reason.name == "early"
    first = dualgap.fit(X, Y, max_visits=cut, **options)
    resumed = dualgap.fit(X, Y, resume=first, **options)
    assert resumed.reason == whole.reason
    assert_same(resumed.run, whole.run)
    assert np.array_equal(resumed.coef, whole.coef)


def offers() -> Iterator[tuple[str, str, str]]:
    for name, solver in SOLVERS.items():
        for loss in ("hinge", "logistic"):
            for bias in ("none", "exact"):
                # the perceptron does not minimise the objective, and meets no gap
                if can_train(solver, loss) and can_have(solver, bias) and name != "perceptron":
                    yield name, loss, bias


@pytest.mark.slow
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
