"""Offsets of rows and bounds on scores, in estimators."""

from __future__ import annotations

import numpy as np
import pytest

from dualgap import estimators
from dualgap.runtime.errors import InputError


class TestOffsets:
    """``fit(X, y, offset=)``, as ``dualgap.fit`` has it."""

    @pytest.mark.parametrize("name", ["LinearSVC", "LogisticRegression", "Ridge", "QuantileRegressor"])
    def test_as_in_fit(self, name: str) -> None:
        rng = np.random.default_rng(0)
        X, offset = rng.normal(size=(120, 4)), rng.normal(size=120)
        y = np.where(X[:, 0] + offset + 0.3 * rng.normal(size=120) > 0, 1, 0)
        model = getattr(estimators, name)(keep_dual=True, tol=1e-6).fit(X, y, offset=offset)
        plain = getattr(estimators, name)(tol=1e-6).fit(X, y)
        assert np.abs(model.coef_ - plain.coef_).max() > 0.01
        assert model.to_model().verify(X, y, offset=offset).verdict == "true"
        scores = getattr(model, "decision_function", model.predict)
        np.testing.assert_array_equal(scores(X, offset), scores(X) + offset)
        np.testing.assert_array_equal(model.predict(X, offset), model.to_model().predict(X, offset))
        if name == "LogisticRegression":
            expected = 1 / (1 + np.exp(-model.decision_function(X, offset)))
            np.testing.assert_allclose(model.predict_proba(X, offset)[:, 1], expected)
            assert np.allclose(np.exp(model.predict_log_proba(X, offset))[:, 1], expected)

    def test_for_one_score_a_row(self) -> None:
        X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
        for model in (estimators.LinearSVC(), estimators.LogisticRegression()):
            with pytest.raises(InputError, match="offset= is for one score a row"):
                model.fit(X, y, offset=np.zeros(30))
        with pytest.raises(InputError, match="offset= is for one score a row"):
            estimators.Ridge().fit(X, X, offset=np.zeros(30))


class TestDecisionBounds:
    def test_the_optimum_is_within(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(150, 4))
        y = np.where(X[:, 0] + 0.5 * rng.normal(size=150) > 0, "a", "b")
        best = estimators.LinearSVC(tol=1e-10, max_iter=10_000, random_state=0).fit(X, y).decision_function(X)
        rough = estimators.LinearSVC(tol=1e-2, keep_dual=True, random_state=0).fit(X, y)
        low, high = rough.decision_bounds(X, training=(X, y))
        assert ((low <= best + 1e-4) & (best <= high + 1e-4)).all()
        assert (high - low).mean() < 2.0
        with pytest.raises(InputError, match="its bounds follow from the training rows alone"):
            rough.decision_bounds(X)
        with pytest.raises(InputError, match="fit with keep_dual=True"):
            estimators.LinearSVC().fit(X, y).decision_bounds(X, training=(X, y))
        other = estimators.LinearSVC(tol=1e-2, fit_intercept=False).fit(X, y)
        assert (other.decision_bounds(X)[0] <= other.decision_function(X)).all()
