"""Estimators inside scikit-learn's machinery, and that of others where it is installed."""

from __future__ import annotations

import warnings
from typing import Any

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFECV, SelectFromModel
from sklearn.inspection import DecisionBoundaryDisplay, permutation_importance
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, cross_val_predict, cross_validate
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualgap.estimators import LinearSVC, LogisticRegression, Ridge, SGDClassifier
from support.estimators import CLASSIFIERS, ESTIMATORS, data_for, labels, made, rows, targets


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether small fits converge is not what this is about
        yield


@pytest.mark.parametrize("name", ESTIMATORS)
def test_pipelines_and_searches(name: str) -> None:
    X, y = data_for(name)
    step = name.lower()
    pipeline = make_pipeline(StandardScaler(), made(name, random_state=0, max_iter=20))
    key = "C" if "C" in made(name).get_params() else "max_iter"
    search = GridSearchCV(pipeline, {f"{step}__{key}": [1, 2]}, cv=2).fit(X, y)
    assert search.best_estimator_[-1].certificate_
    halving = HalvingGridSearchCV(
        made(name, random_state=0, max_iter=20), {key: [1, 2]}, cv=2, random_state=0
    )
    assert np.isfinite(halving.fit(X, y).best_score_)
    assert np.isfinite(
        cross_validate(made(name, random_state=0, max_iter=20), X, y, cv=2)["test_score"]
    ).all()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_meta_classifiers(name: str) -> None:
    X = rows()
    y = labels(X, 3)
    inner = made(name, random_state=0, max_iter=10)
    for meta in (
        CalibratedClassifierCV(inner, cv=2),
        OneVsRestClassifier(inner),
        OutputCodeClassifier(inner, random_state=0),
        BaggingClassifier(inner, n_estimators=2, random_state=0),
        StackingClassifier([("inner", inner)], final_estimator=LogisticRegression(), cv=2),
        VotingClassifier([("one", inner), ("two", LinearSVC())]),
    ):
        assert meta.fit(X, y).predict(X).shape == y.shape
        assert meta.score(X, y) > 0.4


def test_calibration_in_one_line_gives_probabilities() -> None:
    X = rows(n=200)
    y = labels(X)
    found = CalibratedClassifierCV(LinearSVC(random_state=0)).fit(X, y).predict_proba(X)
    reference = PeerLogistic().fit(X, y).predict_proba(X)
    assert np.abs(found - reference).mean() < 0.1


def test_selection_and_importances() -> None:
    X = np.c_[rows(), np.random.default_rng(5).normal(size=(60, 3)) * 1e-3]
    y = labels(X[:, :4])
    for model in (LinearSVC(random_state=0), LogisticRegression(), SGDClassifier(alpha=0.01, random_state=0)):
        chosen = SelectFromModel(model).fit(X, y).get_support()
        assert chosen[3]
        assert not chosen[4:].any()
        assert RFECV(model, cv=2).fit(X, y).support_[3]
        importances = permutation_importance(model.fit(X, y), X, y, n_repeats=2, random_state=0)
        assert importances.importances_mean.argmax() in (2, 3)


def test_multi_output_and_bagging_of_regressors() -> None:
    X = rows()
    Y = np.stack([targets(X), targets(X, 2)], axis=1)
    own = Ridge().fit(X, Y).predict(X)
    np.testing.assert_allclose(MultiOutputRegressor(Ridge()).fit(X, Y).predict(X), own, rtol=1e-9)
    assert BaggingRegressor(Ridge(), n_estimators=2, random_state=0).fit(X, Y[:, 0]).score(X, Y[:, 0]) > 0.8


def test_decision_boundaries_are_drawn() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    X = rows()[:, :2]
    display = DecisionBoundaryDisplay.from_estimator(LinearSVC().fit(X, X[:, 0] > 0.3), X, grid_resolution=5)
    assert display.response.shape == (5, 5)


def test_shap_explains() -> None:
    shap = pytest.importorskip("shap")
    X, y = data_for("LinearSVC")
    model = LinearSVC(random_state=0).fit(X, y)
    values = shap.LinearExplainer(model, X).shap_values(X)
    np.testing.assert_allclose(
        values.sum(axis=1), model.decision_function(X) - model.decision_function(X).mean(), atol=1e-6
    )


def test_metadata_are_routed() -> None:
    X, y = data_for("LogisticRegression")
    weight = np.where(y == 0, 5.0, 0.2)
    direct = LogisticRegression(random_state=0).fit(X, y, weight)
    with sklearn.config_context(enable_metadata_routing=True):
        step = LogisticRegression(random_state=0).set_fit_request(sample_weight=True)
        step.set_score_request(sample_weight=False)
        search = GridSearchCV(step, {"C": [1.0]}, cv=3).fit(X, y, sample_weight=weight)
    assert np.array_equal(search.best_estimator_.coef_, direct.coef_)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_joblib_keeps_an_estimator(name: str, tmp_path: Any) -> None:
    X, y = data_for(name)
    model = made(name, random_state=0, max_iter=20).fit(X, y)
    joblib.dump(model, tmp_path / "model")
    copy = joblib.load(tmp_path / "model", mmap_mode="r")
    assert np.array_equal(copy.predict(X), model.predict(X))
    assert copy.get_params() == model.get_params()


def test_fits_in_threads_are_the_same() -> None:
    X, y = data_for("LinearSVC")
    with joblib.parallel_config(backend="threading"):
        found = cross_val_predict(LinearSVC(random_state=0), X, y, cv=4, n_jobs=2)
    assert np.array_equal(found, cross_val_predict(LinearSVC(random_state=0), X, y, cv=4))
