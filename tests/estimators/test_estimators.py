"""What estimators have in common, and what sets each apart."""

from __future__ import annotations

import doctest
import importlib
import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn import linear_model, svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import FixedThresholdClassifier

import dualgap
from dualgap.core.measures import break_even
from dualgap.estimators import (
    HuberRegressor,
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    QuantileRegressor,
    Ridge,
)
from dualgap.runtime.errors import InputError
from support.estimators import CLASSIFIERS, ESTIMATORS, REGRESSORS, data_for, labels, made, rows, targets

MODULES = sorted({cls.__module__ for cls in ESTIMATORS.values()})


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_run(module: str) -> None:
    found = doctest.testmod(importlib.import_module(module))
    assert found.attempted > 0
    assert found.failed == 0


def test_importing_the_library_imports_no_estimators() -> None:
    code = "import sys, dualgap; print(any(name.startswith('sklearn') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert all(getattr(dualgap, name) is cls for name, cls in ESTIMATORS.items())


# --- the solutions are the right ones


def test_logistic_regression_of_two_and_three_classes_is_scikit_learns() -> None:
    X = rows(n=120)
    for classes in (2, 3):
        y = labels(X, classes)
        for more in ({"C": 0.5}, {"C": 0.5, "fit_intercept": False}, {"C": 0.5, "class_weight": "balanced"}):
            ours = LogisticRegression(tol=1e-10, **more).fit(X, y)
            peer = linear_model.LogisticRegression(tol=1e-10, max_iter=1000, **more).fit(X, y)
            np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-4)
            np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-4)
            np.testing.assert_allclose(ours.predict_log_proba(X), np.log(ours.predict_proba(X)))
            assert ours.gap_.shape == (1,)


def test_liblinear_regularises_the_intercept() -> None:
    X = rows(n=100)
    y = labels(X)
    ours = LogisticRegression(C=0.1, solver="liblinear", tol=1e-10).fit(X, y)
    peer = linear_model.LogisticRegression(C=0.1, solver="liblinear", tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-4)
    with pytest.raises(InputError, match="'liblinear' solver does not support multiclass"):
        LogisticRegression(solver="liblinear").fit(X, labels(X, 3))


def test_ridge_is_scikit_learns_for_several_targets_and_sparse_rows() -> None:
    X = rows()
    Y = np.stack([targets(X), targets(X, 2) ** 2], axis=1)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, X.shape[0])
    peer = linear_model.Ridge(alpha=0.7).fit(X, Y, weight)
    for container in (np.asarray, sp.csr_array):
        ours = Ridge(alpha=0.7).fit(container(X), Y, weight)
        np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-6)
        np.testing.assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-6)
        np.testing.assert_allclose(ours.predict(container(X)), peer.predict(X), rtol=1e-6)
    single = Ridge(alpha=0.7).fit(X, Y[:, 0], weight)
    assert single.coef_.shape == (X.shape[1],)
    assert np.array_equal(single.predict(X), ours.predict(X)[:, 0]) or ours.coef_.shape == (2, X.shape[1])


def test_ridge_states_its_objective() -> None:
    X, y = data_for("Ridge")
    model = Ridge(alpha=0.3).fit(X, y)
    theirs = np.sum((y - model.predict(X)) ** 2) + 0.3 * model.coef_ @ model.coef_
    assert model.objective_[0] == pytest.approx(theirs / 0.6, rel=1e-12)
    assert model.gap_[0] == pytest.approx(model.objective_[0] - model.dual_objective_[0], abs=1e-9)


def test_support_vector_regression_is_scikit_learns() -> None:
    X = rows(n=50)
    y = targets(X)
    ours = LinearSVR(C=0.5, epsilon=0.2, tol=1e-9, bias="augmented").fit(X, y)
    peer = svm.LinearSVR(C=0.5, epsilon=0.2, tol=1e-10, max_iter=1_000_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-3)


def test_crammer_singer_is_scikit_learns() -> None:
    X = rows(n=90)
    for classes in (2, 3):
        y = labels(X, classes)
        ours = LinearSVC(multi_class="crammer_singer", C=0.3, tol=1e-8, bias="augmented", random_state=0)
        ours.fit(X, y)
        peer = svm.LinearSVC(
            multi_class="crammer_singer", C=0.3, tol=1e-9, max_iter=1_000_000, random_state=0
        ).fit(X, y)
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=2e-3)
        assert len(ours.certificate_) == 1


def test_huber_estimates_no_scale() -> None:
    X, y = data_for("HuberRegressor")
    y[:5] += 50.0
    model = HuberRegressor(epsilon=2.0, alpha=0.01, tol=1e-9).fit(X, y)
    off = np.abs(y - model.predict(X))
    losses = np.where(off <= 2.0, off**2, 4.0 * off - 4.0)
    assert model.objective_[0] == pytest.approx(
        0.5 * model.coef_ @ model.coef_ + losses.sum() / 0.02, rel=1e-9
    )
    np.testing.assert_allclose(model.coef_, np.arange(1.0, 5.0), atol=0.6)
    times_ten = HuberRegressor(epsilon=20.0, alpha=0.01, tol=1e-9).fit(X, 10.0 * y)
    np.testing.assert_allclose(times_ten.coef_, 10.0 * model.coef_, rtol=1e-3)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_quantiles_are_scikit_learns_where_the_penalty_vanishes(quantile: float) -> None:
    X = rows(n=200)
    y = targets(X)
    ours = QuantileRegressor(quantile=quantile, alpha=1e-7, tol=1e-4).fit(X, y)
    peer = linear_model.QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, y)

    def pinball(model: Any) -> float:
        residual = y - model.predict(X)
        return float(np.mean(np.maximum(quantile * residual, (quantile - 1.0) * residual)))

    assert pinball(ours) == pytest.approx(pinball(peer), rel=1e-3)
    assert abs(np.mean(y <= ours.predict(X)) - quantile) < 0.03


# --- several targets, several labels


@pytest.mark.parametrize("name", REGRESSORS)
def test_several_targets_are_as_many_fits(name: str) -> None:
    X, y = data_for(name)
    Y = np.stack([y, -2.0 * y + 1.0], axis=1)
    both = made(name, random_state=0).fit(X, Y)
    assert both.predict(X).shape == Y.shape
    assert len(both.certificate_) == 2
    for k in range(2):
        one = made(name, random_state=0).fit(X, np.ascontiguousarray(Y[:, k]))
        assert np.array_equal(one.coef_, both.coef_[k])
        assert float(np.ravel(one.intercept_)[0]) == both.intercept_[k]
    with pytest.raises(InputError, match="2 targets are 2 models"):
        both.to_model()


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_any_number_of_labels_a_row(name: str, container: Any) -> None:
    X = rows()
    Y = np.stack([labels(X), labels(X, 2, 5), 1 - labels(X, 2, 7)], axis=1)
    model = made(name, random_state=0, keep_dual=True).fit(X, container(Y))
    assert model.predict(X).shape == Y.shape
    assert model.decision_function(X).shape == Y.shape
    assert np.array_equal(model.predict(X), (model.decision_function(X) > 0).astype(int))
    first = made(name, random_state=0).fit(X, Y[:, 0])
    if name != "LogisticRegression":  # of which two classes are another problem than one label
        assert np.array_equal(model.coef_[0], first.coef_[0])
    if hasattr(model, "predict_proba"):
        assert ((model.predict_proba(X) > 0.5) == (model.predict(X) > 0)).all()
    assert model.to_model().task == "multilabel"
    if name != "Perceptron":
        assert model.to_model().verify(X, Y).verdict == "true"
    with pytest.raises(InputError, match="several labels a row"):
        model.to_sklearn()
    with pytest.raises(InputError, match="class_weight='balanced' is for one label a row"):
        made(name, class_weight="balanced").fit(X, Y)
    with pytest.raises(InputError, match="0 and 1 only"):
        made(name).fit(X, Y + 1)


# --- probabilities and thresholds


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["logistic", "modified-huber", "multinomial"])
def test_probabilities_are_those_of_scikit_learns_classes(loss: str, classes: int) -> None:
    X = rows()
    y = labels(X, classes)
    model = LinearClassifier(loss=loss, random_state=0).fit(X, y)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(found, model.to_sklearn().predict_proba(X), atol=1e-12)
    assert log_loss(y, np.clip(found, 1e-3, 1.0)) < np.log(classes)


def test_losses_without_probabilities_say_how_to_calibrate() -> None:
    model = LinearSVC().fit(*data_for("LinearSVC"))
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        model.predict_proba  # noqa: B018
    assert "CalibratedClassifierCV(estimator).fit(X, y)" in str(caught.value.__cause__)
    assert hasattr(LinearSVC(loss="logistic"), "predict_proba")


def test_thresholds_for_precision_and_recall() -> None:
    X = rows(n=300)
    y = labels(X)
    model = LinearSVC(random_state=0).fit(X, y)
    scores = model.decision_function(X)

    def measured(threshold: float) -> tuple[float, float]:
        taken = scores > threshold
        return float(y[taken].mean()), float(taken[y == 1].mean())

    at = model.decision_threshold(X, y)
    precision, recall = measured(at)
    assert precision == pytest.approx(recall) == pytest.approx(break_even(y == 1, scores))
    fixed = FixedThresholdClassifier(model, threshold=at, response_method="decision_function").fit(X, y)
    assert np.array_equal(fixed.predict(X), (scores > at).astype(int))
    for wanted in (0.8, 0.95):
        found = measured(model.decision_threshold(X, y, precision=wanted))
        assert found[0] >= wanted
        lower = np.max(scores[scores <= model.decision_threshold(X, y, precision=wanted)])
        assert measured(np.nextafter(lower, -np.inf))[0] < wanted
        found = measured(model.decision_threshold(X, y, recall=wanted))
        assert found[1] >= wanted
        higher = np.min(scores[scores > model.decision_threshold(X, y, recall=wanted)])
        assert measured(higher)[1] < wanted
    heavy = np.where(y == 1, 5.0, 1.0)
    assert model.decision_threshold(X, y, heavy) < at
    with pytest.raises(InputError, match="exclude each other"):
        model.decision_threshold(X, y, precision=0.5, recall=0.5)
    several = LinearSVC(random_state=0).fit(X, labels(X, 3)).decision_threshold(X, labels(X, 3))
    assert several.shape == (3,)
    assert np.isnan(model.decision_threshold(X, np.zeros(300)))


# --- duals


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "Perceptron"])
def test_support_vectors_make_the_weights(name: str) -> None:
    X, y = data_for(name)
    weight = np.random.default_rng(3).uniform(0.5, 2.0, X.shape[0])
    model = made(name, keep_dual=True, random_state=0).fit(X, y, weight)
    apart = np.linalg.norm(model.dual_coef_ @ X[model.support_] - model.coef_)
    gap = model.gap_[0] / (model.alpha if name.startswith(("SGD", "Quantile")) else 1.0)
    assert apart <= np.sqrt(2.0 * gap) + 1e-9
    assert model.n_support_.sum() == model.support_.size
    if name in CLASSIFIERS:
        assert model.n_support_.tolist() == [np.count_nonzero(y[model.support_] == k) for k in (0, 1)]
    bare = made(name, random_state=0).fit(X, y, weight)
    assert not hasattr(bare, "dual_")
    with pytest.raises(AttributeError, match="has no attribute 'support_': fit it with keep_dual=True"):
        bare.support_  # noqa: B018
    assert bare.to_model().dual is None
    assert model.to_model().verify(X, y, weight).verdict == "true"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_pickle_does_not_grow_with_the_rows(name: str) -> None:
    sizes = []
    for n in (60, 600):
        X = rows(n=n)
        model = made(name, random_state=0, max_iter=2, early_stopping=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, labels(X) if name in CLASSIFIERS else targets(X))
        model.history_ = []
        sizes.append(len(pickle.dumps(model)))
        copy = pickle.loads(pickle.dumps(model))
        assert np.array_equal(copy.predict(X), model.predict(X))
        assert copy.certificate_ == model.certificate_
    assert sizes[1] < sizes[0] + 200


def test_sparsify_and_densify() -> None:
    X, y = data_for("LinearSVC", 3)
    model = LinearSVC(random_state=0).fit(X, y)
    scores = model.decision_function(X)
    assert sp.issparse(model.sparsify().coef_)
    assert np.array_equal(model.decision_function(X), scores)
    assert isinstance(model.densify().coef_, np.ndarray)
    assert np.array_equal(model.decision_function(X), scores)
    single = Ridge().fit(X, targets(X))
    before = single.predict(X)
    np.testing.assert_array_equal(single.sparsify().predict(X), before)


# --- to other classes


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scikit_learns_own_class_predicts_the_same(name: str) -> None:
    X, y = data_for(name, 3)
    model = made(name, random_state=0).fit(X, y)
    theirs = model.to_sklearn()
    assert type(theirs).__module__.startswith("sklearn.")
    np.testing.assert_allclose(theirs.predict(X), model.predict(X), rtol=1e-12)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(theirs.predict_proba(X), model.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("name", ["LinearSVC", "LogisticRegression", "Ridge", "SGDClassifier"])
def test_a_model_with_held_out_rows_is_verified(name: str) -> None:
    X, y = data_for(name, 3)
    model = made(name, keep_dual=True, early_stopping=True, random_state=0).fit(X, y)
    assert model.to_model().held_rows.size == round(0.1 * X.shape[0])
    assert model.to_model().verify(X, y).verdict == "true"


# --- limits, weights, classes


def test_limits_and_callbacks_are_reached() -> None:
    X, y = data_for("LinearSVC")
    seen: list[float] = []
    LinearSVC(callbacks=[lambda record, run: seen.append(record.epochs)], random_state=0).fit(X, y)
    assert seen
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who ends a run by a callback expects it to end
        model = LinearSVC(tol=0.0, C=1e3, callbacks=[lambda record, run: "enough"], solver="dcd").fit(X, y)
    assert len(model.history_[0]) == 1
    with pytest.warns(ConvergenceWarning, match="raise time_limit, loosen tol"):
        LinearSVC(tol=1e-9, C=1e3, time_limit=1e-9, solver="dcd").fit(X, y)
    for solver in ("auto", "newton", "dcd"):
        with pytest.warns(ConvergenceWarning):
            assert LinearSVC(tol=1e-12, max_iter=1, solver=solver, C=100.0).fit(X, y).n_iter_ == 1


def test_early_stopping_by_rows_of_ones_choice() -> None:
    X = rows(n=200)
    y = labels(X, 3)
    model = LinearSVC(C=100.0, solver="sdca", random_state=0, tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X[:120], y[:120], X_val=X[120:], y_val=y[120:])
    curve = [record["measures"]["validation"] for record in model.history_[0]]
    assert min(curve) < curve[0]
    assert model.n_iter_ < 1000
    with pytest.raises(InputError, match=r"y_val\[0\] is 7, which is no label of y"):
        model.fit(X, y, X_val=X, y_val=np.full(200, 7))
    with pytest.raises(InputError, match="belong together"):
        model.fit(X, y, X_val=X)
    with pytest.raises(InputError, match="X_val has 200 rows and y_val 3"):
        model.fit(X, y, X_val=X, y_val=y[:3])
    regressor = LinearRegressor(C=100.0, solver="sdca", random_state=0, tol=1e-9)
    regressor.fit(X[:120], targets(X)[:120], X_val=X[120:], y_val=targets(X)[120:])
    assert "validation" in regressor.history_[0][-1]["measures"]


def test_one_number_is_the_weight_of_all_rows() -> None:
    X, y = data_for("LinearSVC")
    np.testing.assert_allclose(
        LinearSVC(C=0.5, tol=1e-9, random_state=0).fit(X, y, 2.0).coef_,
        LinearSVC(C=1.0, tol=1e-9, random_state=0).fit(X, y).coef_,
        atol=1e-5,
    )
    with pytest.raises(InputError, match="all sample weights are zero"):
        Ridge().fit(X, targets(X), np.zeros(X.shape[0]))


def test_an_infinite_C_is_the_hard_margin() -> None:
    X = rows()
    y = X[:, 0] > 0.3
    X[:, 0] += np.where(y, 0.5, -0.5)
    model = LinearSVC(C=np.inf, tol=1e-6, random_state=0).fit(X, y)
    assert (np.where(y, 1.0, -1.0) * model.decision_function(X)).min() >= 1.0 - 1e-6
    with pytest.raises(InputError, match="hard margin, which belongs to the hinge loss"):
        LogisticRegression(C=np.inf).fit(X, y)


@pytest.mark.parametrize("name", ["LinearSVC", "LogisticRegression", "LinearSVR"])
def test_a_warm_start_knows_rows_again_among_added_ones(name: str) -> None:
    X = rows(n=400)
    y = labels(X, 3) if name in CLASSIFIERS else targets(X)
    solver = "joint-dual" if name == "LogisticRegression" else "dcd"
    warm = made(name, C=0.1, tol=1e-5, solver=solver, warm_start=True, random_state=0).fit(X[:380], y[:380])
    order = np.random.default_rng(0).permutation(400)
    cold = clone(warm).fit(X[order], y[order])
    warm.fit(X[order], y[order])
    assert np.all(warm.n_iter_ < cold.n_iter_)
    assert all(certificate.relative_gap <= 1e-5 for certificate in warm.certificate_)
    fewer = warm.fit(X[:100], y[:100])
    assert all(certificate.relative_gap <= 1e-5 for certificate in fewer.certificate_)
    assert warm.fit(X[:100, :3], y[:100]).coef_.shape[-1] == 3


# --- kinds of rows


@pytest.mark.parametrize("name", ESTIMATORS)
def test_kinds_of_rows_give_one_model(name: str, tmp_path: Any) -> None:
    X, y = data_for(name)
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    np.save(tmp_path / "X.npy", X)
    reference = made(name, random_state=0, max_iter=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference.fit(X, y)
        for index in (np.int32, np.int64):
            for container in (sp.csr_array, sp.csr_matrix):
                matrix = container(X)
                matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
                sparse = made(name, random_state=0, max_iter=20).fit(matrix, y)
                np.testing.assert_allclose(sparse.predict(matrix), sparse.predict(X))
                if name not in ("Perceptron", "SGDClassifier", "SGDRegressor"):
                    assert sparse.objective_[0] <= reference.objective_[0] + sparse.gap_[0]
        mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
        again = made(name, random_state=0, max_iter=20).fit(mapped, y)
    assert np.array_equal(again.coef_, reference.coef_)


@pytest.mark.parametrize("name", ["LinearSVC", "Ridge"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_names_of_columns_are_kept(name: str, library: str) -> None:
    frames = pytest.importorskip(library)
    if library == "polars" and tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9):
        pytest.skip("scikit-learn before 1.9 reads names by a protocol that polars has given up")
    X, y = data_for(name)
    frame = frames.DataFrame({key: X[:, k] for k, key in enumerate("abcd")})
    model = made(name, random_state=0).fit(frame, frames.Series(y))
    assert model.feature_names_in_.tolist() == list("abcd")
    assert np.array_equal(model.coef_, made(name, random_state=0).fit(X, y).coef_)
    assert model.to_model().feature_names == tuple("abcd")
    assert model.to_sklearn().feature_names_in_.tolist() == list("abcd")
    np.testing.assert_allclose(model.predict(frame), model.to_sklearn().predict(frame), rtol=1e-12)


def test_the_exact_optimum_is_within_the_bounds() -> None:
    X = rows(n=200)
    y = labels(X)
    loose = LinearSVC(tol=1e-2, bias="augmented", random_state=0).fit(X, y)
    exact = LinearSVC(tol=1e-10, bias="augmented", random_state=0).fit(X, y)
    low, high = loose.decision_bounds(X)
    assert (low <= exact.decision_function(X)).all()
    assert (exact.decision_function(X) <= high).all()
    free = LinearSVC(tol=1e-2, keep_dual=True, random_state=0).fit(X, y)
    with pytest.raises(InputError, match="with_bounds"):
        free.decision_bounds(X)
    low, high = free.decision_bounds(X, training=(X, y))
    best = LinearSVC(tol=1e-10, random_state=0).fit(X, y).decision_function(X)
    assert ((low <= best) & (best <= high)).all()
