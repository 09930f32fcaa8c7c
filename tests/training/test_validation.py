"""Early stopping on held-out rows."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.core.losses import make_loss
from dualgap.core.problem import Point
from dualgap.data.sources import view
from dualgap.runtime.errors import InputError
from dualgap.training.patience import NotImproving
from dualgap.training.validation import Validation, split_off
from support.problems import noisy
from support.states import assert_same

# many columns and much noise: a model that fits the training rows well does badly elsewhere
data = partial(noisy, seed=0, n=80, d=12, noise=2.0)


def mean_loss(loss: str, X: np.ndarray, y: Any, w: np.ndarray, b: float) -> float:
    chosen = make_loss(loss)
    return float(np.mean([chosen.value(*pair) for pair in zip(y, X @ w + b, strict=True)]))


RUNS: list[dict[str, Any]] = [
    {"solver": "sgd", "lam": 0.0, "eta0": 0.02, "learning_rate": "constant"},
    {"solver": "sgd", "lam": 0.0, "loss": "squared", "eta0": 0.002, "learning_rate": "constant"},
    {"solver": "sgd", "lam": 1e-3, "loss": "logistic", "average": True, "polish": 0},
    {"solver": "dcd", "lam": 1e-4},
    {"solver": "dcd", "lam": 1e-3, "bias": "exact"},
    {"solver": "svmsgd", "lam": 1e-3, "bias": "augmented"},
]


@pytest.mark.parametrize(
    "options",
    RUNS,
    ids=lambda options: f"{options['solver']}-{options.get('loss', options.get('bias', 'hinge'))}",
)
class TestBestModel:
    def test_given_rows(self, options: dict[str, Any]) -> None:
        loss = options.get("loss", "hinge")
        X, y = data(regression=loss == "squared")
        new_X, new_y = data(n=60, seed=1, regression=loss == "squared")
        seen: list[float] = []

        def measure(point: Point, best: Point) -> dict[str, float]:
            seen.append(mean_loss(loss, new_X, new_y, best.w, best.b))
            return {"own": mean_loss(loss, new_X, new_y, point.w, point.b)}

        outcome = dualgap.fit(
            X,
            y,
            validation=(new_X, new_y),
            patience=4,
            tol=1e-9,
            measures=[measure],
            max_epochs=300,
            **options,
        )
        values = [record.measures["validation"] for record in outcome.trace]
        nothing = mean_loss(loss, new_X, new_y, np.zeros(12), 0.0)
        reached = mean_loss(loss, new_X, new_y, outcome.coef, outcome.intercept)
        assert reached == pytest.approx(min(*values, nothing), rel=1e-12)
        if outcome.reason.name == "early":
            best = int(np.argmin(values))
            assert len(values) == best + 4 + 1
            assert f"{min(values):.6g}" in outcome.reason.message
        assert values == pytest.approx([record.measures["own"] for record in outcome.trace], rel=1e-12)
        # the second point that measures are given is the best model so far
        np.testing.assert_allclose(seen, np.minimum(np.minimum.accumulate(values), nothing), rtol=1e-12)
        # and the certificate is that model's
        independent = outcome.problem.certify(Point(outcome.coef, outcome.intercept, outcome.dual))
        claimed = outcome.problem.in_form(outcome.certificate, "mean")
        assert independent.primal == pytest.approx(claimed.primal, rel=1e-12)
        assert claimed.dual <= claimed.primal + claimed.rounding

    def test_rows_split_off_take_no_part_in_training(self, options: dict[str, Any]) -> None:
        """Other features in the held-out rows leave every step as it was."""
        loss = options.get("loss", "hinge")
        X, y = data(regression=loss == "squared")
        kept, held_out = split_off(view(X, np.asarray(y, dtype=float)), 0.25, 5)
        assert (kept.epoch_size, held_out.epoch_size) == (60, 20)
        away = held_out.weight > 0.0
        other = X.copy()
        other[away] = np.random.default_rng(9).normal(size=(20, 12))
        runs = [
            dualgap.fit(rows, y, validation=0.25, seed=5, patience=1000, tol=0.0, max_epochs=6, **options)
            for rows in (X, other)
        ]
        assert_same(runs[0].run.state, runs[1].run.state)
        values = [[record.measures["validation"] for record in outcome.trace] for outcome in runs]
        assert values[0] != values[1]
        expected = mean_loss(loss, X[away], np.asarray(y)[away], runs[0].coef, runs[0].intercept)
        assert min(
            *values[0], mean_loss(loss, X[away], np.asarray(y)[away], np.zeros(12), 0.0)
        ) == pytest.approx(expected)
        assert runs[0].problem.epoch_size == 60
        if runs[0].dual is not None:
            assert runs[0].dual.shape == (80,)
            assert not runs[0].dual[away].any()


def test_a_split_is_a_fit_on_the_rest() -> None:
    X, y = data()
    held_out = split_off(view(X, 1.0 * y), 0.25, 3)[1].weight > 0.0
    split = dualgap.fit(X, y, validation=0.25, seed=3, lam=1e-3, solver="sgd", eta0=0.01, patience=3)
    apart = dualgap.fit(
        X[~held_out],
        y[~held_out],
        validation=(X[held_out], y[held_out]),
        seed=3,
        lam=1e-3,
        solver="sgd",
        eta0=0.01,
        patience=3,
    )
    assert np.array_equal(split.coef, apart.coef)
    assert split.reason.name == apart.reason.name


def test_another_seed_is_another_split_and_weights_go_along() -> None:
    X, y = data()
    weight = np.linspace(0.5, 2.0, 80)
    source = view(X, 1.0 * y, weight)
    first, second = (split_off(source, 0.3, seed) for seed in (0, 1))
    assert not np.array_equal(first[1].weight, second[1].weight)
    for kept, held_out in (first, second):
        assert (kept.epoch_size, held_out.epoch_size) == (56, 24)
        np.testing.assert_array_equal(kept.weight + held_out.weight, weight)
        assert not (kept.weight * held_out.weight).any()
        assert kept.data is held_out.data is source.data  # no row is copied


def test_sparse_rows_are_split_like_dense_ones() -> None:
    X, y = data()
    for seed in range(3):
        dense, sparse = (
            split_off(view(layout(X), 1.0 * y), 0.25, seed) for layout in (np.asarray, sp.csr_matrix)
        )
        for left, right in zip(dense, sparse, strict=True):
            np.testing.assert_array_equal(left.weight, right.weight)


@pytest.mark.parametrize("solver", ["svmsgd", "pegasos", "asdca", "mpu"])
def test_long_rows_that_are_held_out_change_no_step(solver: str) -> None:
    """Bounds on the lengths of rows are those of the rows that take part."""
    X, y = data(n=1200, d=5)
    away = split_off(view(X, 1.0 * y), 0.25, 2)[1].weight > 0.0
    other = np.where(away[:, None], 100.0 * X, X)
    runs = [
        dualgap.fit(rows, y, validation=0.25, seed=2, lam=1e-2, solver=solver, max_epochs=2, tol=0.0)
        for rows in (X, other)
    ]
    assert_same(runs[0].run.state, runs[1].run.state)


def test_held_out_weights_count() -> None:
    X, y = data(n=20)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=20)
    validation = Validation(view(X, 1.0 * y, weight), make_loss("logistic"))
    w = np.linspace(-1.0, 1.0, 12)
    losses = [make_loss("logistic").value(*pair) for pair in zip(y, X @ w + 0.3, strict=True)]
    assert validation(Point(w, 0.3, None)) == pytest.approx(np.average(losses, weights=weight))


def test_early_stopping_regularises() -> None:
    """Without lam, the model that is handed back is better elsewhere than the one at the end of the run."""
    X, y = data(n=60, d=30)
    new = data(n=2000, d=30, seed=2)
    test = data(n=2000, d=30, seed=3)
    common: dict[str, Any] = {
        "lam": 0.0,
        "solver": "sgd",
        "eta0": 0.05,
        "learning_rate": "constant",
        "loss": "logistic",
    }
    early = dualgap.fit(X, y, validation=new, patience=5, **common)
    assert early.reason.name == "early"
    late = dualgap.fit(X, y, max_epochs=200, **common)
    assert mean_loss("logistic", *test, early.coef, 0.0) < mean_loss("logistic", *test, late.coef, 0.0)
    assert early.certificate.dual == 0.0
    assert not early.converged


def test_patience_counts_certificates_without_a_fall() -> None:
    X, y = data()
    lengths = []
    for patience in (1, 3, 8):
        outcome = dualgap.fit(
            X,
            y,
            validation=0.25,
            patience=patience,
            lam=0.0,
            solver="sgd",
            eta0=0.05,
            learning_rate="constant",
        )
        assert outcome.reason.name == "early"
        values = [record.measures["validation"] for record in outcome.trace]
        falls = [k for k, value in enumerate(values) if value < min(values[:k], default=math.inf)]
        assert len(values) - 1 - falls[-1] == patience
        assert all(late - early <= patience for early, late in itertools.pairwise(falls))
        lengths.append(len(values))
        assert [record.visits for record in outcome.trace] == [60 * (k + 1) for k in range(len(values))]
    assert lengths == sorted(lengths)


def test_certificates_come_as_often_as_asked_for() -> None:
    X, y = data()
    outcome = dualgap.fit(
        X, y, validation=0.25, record_every=17, lam=0.0, solver="sgd", eta0=0.05, max_visits=100
    )
    assert [record.visits for record in outcome.trace][:3] == [17, 34, 51]


def test_a_tie_is_no_fall() -> None:
    rule = NotImproving(2)
    X, y = data()
    record = dualgap.fit(X, y, validation=0.25, max_epochs=1).trace[0]
    memory = rule.begin()
    found = []
    for _ in range(3):
        reason, memory = rule.look(record, memory)
        found.append(None if reason is None else reason.name)
    assert found == [None, None, "early"]


def test_a_gap_met_ends_the_run_before_patience_does() -> None:
    X, y = data()
    outcome = dualgap.fit(X, y, validation=0.25, patience=10**6, C=1e-4, tol=0.05)
    assert outcome.reason.name == "gap"
    assert outcome.certificate.relative_gap <= 0.05


def test_labels_are_those_of_the_training_rows() -> None:
    X, y = data()
    names = np.where(y > 0, "spam", "ham")
    common: dict[str, Any] = {"lam": 1e-3, "solver": "sgd", "eta0": 0.05, "max_epochs": 3}
    named = dualgap.fit(X[:60], names[:60], validation=(X[60:], names[60:]), **common)
    plain = dualgap.fit(X[:60], y[:60], validation=(X[60:], y[60:]), **common)
    assert np.array_equal(named.coef, plain.coef)
    one_class = dualgap.fit(X[:60], y[:60], validation=(X[60:][y[60:] > 0], y[60:][y[60:] > 0]), **common)
    assert one_class.trace[0].measures["validation"] != plain.trace[0].measures["validation"]


@pytest.mark.parametrize("part", [np.float32(0.25), np.float64(0.25)])
def test_a_part_may_be_any_kind_of_float(part: Any) -> None:
    X, y = data()
    assert dualgap.fit(X, y, validation=part, max_epochs=2).problem.epoch_size == 60


@pytest.mark.parametrize(
    ("validation", "complaint"),
    [
        (0.0, "validation=0.0 must be a part of the rows between 0 and 1"),
        (1.0, "validation=1.0"),
        (-0.5, "validation=-0.5"),
        (math.nan, "validation=nan"),
        (0.001, "validation=0.001 of 80 rows is 0 rows"),
        (0.999, "is 80 rows; at least one must be on either side"),
        (3, "validation must be a part of the rows between 0 and 1, or a pair"),
        (True, "validation must be a part"),
        ("some", "validation"),
        ((np.ones((2, 12)),), "validation must be a part"),
        ((np.ones((2, 12)), [1, 2]), r"validation y\[1\] is 2, which is no class of the training rows"),
        ((np.ones((2, 5)), [1, -1]), "validation X has 5 columns and the training rows have 12"),
        ((np.ones((3, 12)), [1, -1]), "y has 2 entries and X has 3 rows"),
        ((np.full((2, 12), np.nan), [1, -1]), "NaN"),
    ],
)
def test_bad_validation(validation: Any, complaint: str) -> None:
    X, y = data()
    with pytest.raises(InputError, match=complaint) as error:
        dualgap.fit(X, y, validation=validation)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("patience", [0, -1])
def test_bad_patience(patience: int) -> None:
    X, y = data()
    with pytest.raises(InputError, match=f"patience={patience} must be at least 1"):
        dualgap.fit(X, y, validation=0.25, patience=patience)


def test_a_side_without_weight_is_refused() -> None:
    X, y = data()
    weight = np.zeros(80)
    weight[3] = 1.0
    with pytest.raises(InputError, match="rows of weight 0 only"):
        dualgap.fit(X, y, sample_weight=weight, validation=0.25)


@pytest.mark.parametrize("metric", ["error", "break-even"])
@pytest.mark.parametrize("solver", ["sgd", "dcd"])
def test_other_measures_choose_the_model(metric: str, solver: str) -> None:
    X, y = data(n=200)
    new_X, new_y = data(n=150, seed=1)

    def measured(w: np.ndarray, b: float) -> float:
        scores = new_X @ w + b
        if metric == "error":
            return float(np.mean((scores > 0) != (new_y > 0)))
        count = int((new_y > 0).sum())  # take as many rows as are positive: precision is recall
        return float(1.0 - np.mean(new_y[np.argsort(-scores)[:count]] > 0))

    seen: list[float] = []

    def measure(point: Point) -> dict[str, float]:
        seen.append(measured(point.w, point.b))
        return {}

    common = {
        "solver": solver,
        "lam": 1e-4,
        "tol": 0.0,
        "patience": 4,
        "record_every": 50,
        "measures": [measure],
    }
    outcome = dualgap.fit(X, y, validation=(new_X, new_y), metric=metric, **common)
    values = [record.measures["validation"] for record in outcome.trace]
    assert values == pytest.approx(seen[: len(values)])
    assert measured(outcome.coef, outcome.intercept) == pytest.approx(min(values))
    assert outcome.reason.name == "early"
    named = {"error": "the error", "break-even": "1 - the break-even point"}[metric]
    assert f"{named} on held-out rows was last seen to fall" in outcome.reason.message


def test_no_held_out_row_of_the_positive_class_has_no_break_even_point() -> None:
    X, y = data()
    with pytest.raises(InputError, match="no held-out row is of the positive class"):
        dualgap.fit(X, y, validation=(X[y < 0], y[y < 0]), metric="break-even")
