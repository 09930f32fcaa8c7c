"""scikit-learn's checks for every estimator."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from dualgap.estimators import (
    HuberRegressor,
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    Perceptron,
    QuantileRegressor,
    Ridge,
    SGDClassifier,
    SGDRegressor,
)
from support.estimators import data_for, made

# The sample-weight checks compare decisions to 1e-7, which a gap of 1e-3 does not promise.
TIGHT = [
    LinearSVC(tol=1e-10),
    LinearClassifier(tol=1e-10),
    LogisticRegression(tol=1e-13, multi_class="ovr"),
    LinearSVR(tol=1e-10),
    LinearRegressor(tol=1e-10),
    HuberRegressor(tol=1e-10),
    QuantileRegressor(tol=1e-10),
    Ridge(),
]
LOOSE = [LogisticRegression(), Perceptron(), SGDClassifier(), SGDRegressor()]
_WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")


def beyond(estimator: Any) -> dict[str, str]:
    """Checks that an estimator cannot meet, and why; the tests below stand for them."""
    if any(estimator is other for other in LOOSE):
        reason = (
            "the smallest gap that float64 can prove of a joint problem leaves the seventh digit open"
            if isinstance(estimator, LogisticRegression)
            else "a row of weight 2 is one visit with twice the step, and not two visits"
        )
        return dict.fromkeys(_WEIGHTS, reason)
    return {}


@pytest.mark.slow
@parametrize_with_checks([*TIGHT, *LOOSE], expected_failed_checks=beyond)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # some checks train on columns of mean 100
        check(estimator)


@pytest.mark.parametrize("name", ["LogisticRegression", "SGDClassifier", "SGDRegressor"])
def test_weights_are_repetitions_within_what_is_proven(name: str) -> None:
    """Weighted and repeated rows are one problem: no objective is below the other's lower bound."""
    X, y = data_for(name, 3 if name == "LogisticRegression" else 2)
    times = np.random.default_rng(0).integers(0, 4, X.shape[0])
    parameters = {"tol": 1e-2, "random_state": 0} if name.startswith("SGD") else {"tol": 1e-9}
    weighted = made(name, **parameters).fit(X, y, times)
    repeated = made(name, **parameters).fit(X.repeat(times, axis=0), y.repeat(times))
    assert weighted.dual_objective_[0] <= repeated.objective_[0] * (1.0 + 1e-12)
    assert repeated.dual_objective_[0] <= weighted.objective_[0] * (1.0 + 1e-12)
    if name == "LogisticRegression":
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5)


def test_of_the_weights_of_a_perceptron_only_the_ratios_count() -> None:
    X, y = data_for("Perceptron")
    plain, doubled, uneven = (
        made("Perceptron", random_state=0, max_iter=4).fit(X, y, weight)
        for weight in (None, 2.0, np.where(np.arange(X.shape[0]) % 2, 1.0, 3.0))
    )
    np.testing.assert_allclose(doubled.coef_, plain.coef_)
    assert not np.allclose(uneven.coef_, plain.coef_)
