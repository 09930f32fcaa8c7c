from __future__ import annotations

import os
import pickle
import signal
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as PeerSVC

from dualgap import Model, fit
from dualgap.core.losses import LOSSES, SmoothHinge
from dualgap.estimators import LinearSVC, _base
from dualgap.runtime.errors import InputError

N, D = 120, 6
CLASSIFICATION = [name for name, loss in LOSSES.items() if loss.task == "classification"]


def make(seed: int = 0, classes: int = 2) -> tuple[Any, Any]:
    """Overlapping clouds, off centre so that the intercept matters."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=N)
    X = rng.normal(size=(N, D)) + 0.7 * rng.normal(size=(classes, D))[y] + 0.3
    return X, y


def hinge_objective(
    model: Any, X: Any, y: Any, *, C: float = 1.0, rho: float = 1.0, weight: Any = 1.0
) -> float:
    """J of a binary model, written out: the intercept is ``rho`` times one more regularised weight."""
    margin = np.where(y == model.classes_[1], 1.0, -1.0) * (X @ model.coef_[0] + model.intercept_[0])
    ridge = 0.5 * (model.coef_[0] @ model.coef_[0] + (model.intercept_[0] / rho) ** 2)
    return float(ridge + C * np.sum(weight * np.maximum(0.0, 1.0 - margin)))


# --- the solution is the right one


@pytest.mark.parametrize(("C", "rho"), [(1.0, 1.0), (0.05, 3.0)])
def test_objective_agrees_with_scikit_learn(C: float, rho: float) -> None:
    X, y = make()
    ours = LinearSVC(C=C, tol=1e-8, bias="augmented", intercept_scaling=rho, random_state=0).fit(X, y)
    peer = PeerSVC(
        C=C, loss="hinge", tol=1e-9, intercept_scaling=rho, max_iter=1_000_000, random_state=0
    ).fit(X, y)
    (certificate,) = ours.certificate_
    best = hinge_objective(peer, X, y, C=C, rho=rho)
    assert certificate.form == "J"
    assert certificate.primal == pytest.approx(hinge_objective(ours, X, y, C=C, rho=rho), rel=1e-12)
    assert certificate.dual <= best
    assert certificate.primal <= best * (1 + 1e-7)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-3)


def test_squared_hinge_and_logistic_agree_with_scikit_learn() -> None:
    X, y = make(1)
    ours = LinearSVC(loss="squared_hinge", tol=1e-10, bias="augmented", random_state=0).fit(X, y)
    peer = PeerSVC(loss="squared_hinge", dual=True, tol=1e-10, max_iter=100_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-4)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-4)

    ours = LinearSVC(loss="logistic", tol=1e-10, fit_intercept=False, random_state=0).fit(X, y)
    smooth = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, smooth.coef_, rtol=1e-4)
    assert ours.intercept_.tolist() == [0.0]


def test_the_intercept_is_that_of_svc_and_a_large_scaling_approaches_it() -> None:
    X, y = make(2)
    free = SVC(kernel="linear", C=0.1, tol=1e-8).fit(X, y)
    best = hinge_objective(free, X, y, C=0.1, rho=np.inf)
    exact = LinearSVC(C=0.1, tol=1e-7, random_state=0, max_iter=20_000).fit(X, y)
    assert hinge_objective(exact, X, y, C=0.1, rho=np.inf) == pytest.approx(best, rel=1e-6)
    excess = []
    for rho in (0.3, 30.0):
        model = LinearSVC(
            C=0.1, tol=1e-7, bias="augmented", intercept_scaling=rho, random_state=0, max_iter=20_000
        ).fit(X, y)
        excess.append(hinge_objective(model, X, y, C=0.1, rho=np.inf) / best - 1)
    assert excess[0] > 1e-3
    assert -1e-7 < excess[1] < 1e-4
    assert np.array_equal(model.predict(X), free.predict(X))


@pytest.mark.parametrize("loss", [*CLASSIFICATION, "smooth-hinge:gamma=0.5", SmoothHinge(0.5)])
def test_every_classification_loss_reaches_the_tolerance(loss: Any) -> None:
    X, y = make()
    model = LinearSVC(loss=loss, tol=1e-6, random_state=0).fit(X, y)
    assert model.certificate_[0].relative_gap <= 1e-6
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize("bias", ["exact", "augmented"])
@pytest.mark.parametrize("tol", [0.5, 1e-2, 1e-10])
def test_the_dual_point_gives_the_model(tol: float, bias: str) -> None:
    X, y = make(classes=3)
    weight = np.random.default_rng(9).integers(0, 3, N).astype(float)
    model = LinearSVC(C=0.5, tol=tol, bias=bias, keep_dual=True, random_state=0).fit(X, y, weight)
    assert model.dual_.shape == (3, N)
    signs = np.where(y == model.classes_[:, None], 1, -1)
    assert (signs * model.dual_ >= 0).all()
    assert (signs * model.dual_ <= 1).all()
    # both are the best of the run and may stem from different moments; this is as far apart as the gap lets
    # them be
    shares = 0.5 * weight * model.dual_  # what SVC calls dual_coef_
    apart = shares @ X - model.coef_
    if bias == "augmented":
        apart = np.c_[apart, shares.sum(axis=1) - model.intercept_]
    else:
        np.testing.assert_allclose(shares.sum(axis=1), 0.0, atol=1e-9)
    bounds = (signs * shares).sum(axis=1) - 0.5 * np.linalg.norm(shares @ X, axis=1) ** 2
    if bias == "augmented":
        bounds -= 0.5 * shares.sum(axis=1) ** 2
    np.testing.assert_allclose(bounds, [certificate.dual for certificate in model.certificate_], rtol=1e-9)
    for k in range(3):
        assert np.linalg.norm(apart[k]) <= np.sqrt(2 * model.certificate_[k].gap)


def test_the_duals_have_one_scale() -> None:
    X, y = make()
    model = LinearSVC(C=0.5, keep_dual=True, random_state=0).fit(X, y)
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    outcome = fit(X, y, C=0.5, bias="exact", seed=seed)
    assert np.array_equal(model.dual_[0], outcome.dual)
    assert np.array_equal(model.coef_[0], outcome.coef)


# --- weights


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_weights_are_repetitions(container: Any) -> None:
    X, y = make(classes=3)
    times = np.random.default_rng(1).integers(0, 4, N)
    weighted = LinearSVC(tol=1e-10, random_state=0).fit(container(X), y, times)
    repeated = LinearSVC(tol=1e-10, random_state=0).fit(container(X.repeat(times, axis=0)), y.repeat(times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-7)
    assert weighted.certificate_[1].primal == pytest.approx(repeated.certificate_[1].primal, rel=1e-9)


def test_class_weight_multiplies_sample_weight() -> None:
    X, y = make(classes=3)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, N)
    by_class = LinearSVC(class_weight={0: 2.0, 1: 0.5, 2: 4.0}, random_state=0).fit(X, y, weight)
    by_row = LinearSVC(random_state=0).fit(X, y, weight * np.array([2.0, 0.5, 4.0])[y])
    assert np.array_equal(by_class.coef_, by_row.coef_)


def test_balanced_counts_rows_by_their_weight() -> None:
    X, y = make(classes=3)
    times = np.random.default_rng(1).integers(0, 4, N)
    totals = np.bincount(y, times)
    given = {k: times.sum() / (3 * totals[k]) for k in range(3)}
    models = [
        LinearSVC(class_weight="balanced", tol=1e-10, random_state=0).fit(X, y, times),
        LinearSVC(class_weight=given, tol=1e-10, random_state=0).fit(X, y, times),
        LinearSVC(class_weight="balanced", tol=1e-10, random_state=0).fit(
            X.repeat(times, axis=0), y.repeat(times)
        ),
    ]
    for other in models[1:]:
        np.testing.assert_allclose(models[0].coef_, other.coef_, atol=1e-7)


@pytest.mark.parametrize("classes", [3, 4])
def test_a_class_of_weight_zero_is_no_class(classes: int) -> None:
    X, y = make(classes=classes)
    without = LinearSVC(tol=1e-10, random_state=0).fit(X[y != 1], y[y != 1])
    for model in (
        LinearSVC(tol=1e-10, random_state=0).fit(X, y, (y != 1).astype(float)),
        LinearSVC(tol=1e-10, random_state=0, class_weight={k: int(k != 1) for k in range(classes)}).fit(X, y),
    ):
        assert model.classes_.tolist() == [0, 2, 3][: classes - 1]
        np.testing.assert_allclose(model.coef_, without.coef_, atol=1e-7)


# --- classes, threads, seeds


def test_one_against_rest_is_one_binary_fit_for_each_class() -> None:
    X, y = make(classes=3)
    labels = np.array(["ant", "bee", "cat"])[y]
    model = LinearSVC(random_state=5).fit(X, labels)
    for k, label in enumerate(model.classes_):
        single = LinearSVC(random_state=5).fit(X, labels == label)
        assert np.array_equal(model.coef_[k], single.coef_[0])
        assert model.intercept_[k] == single.intercept_[0]
        assert model.certificate_[k] == single.certificate_[0]
    assert model.n_iter_ == max(int(np.ceil(history[-1]["epochs"])) for history in model.history_)
    scores = model.decision_function(X)
    assert scores.shape == (N, 3)
    assert np.array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])


@pytest.mark.parametrize("classes", [2, 3])
def test_threads_keep_the_promise(classes: int) -> None:
    X, y = make(classes=classes)
    single = LinearSVC(tol=1e-9, random_state=0).fit(X, y)
    several = LinearSVC(tol=1e-9, random_state=0, n_jobs=-1).fit(X, y)
    assert all(certificate.relative_gap <= 1e-9 for certificate in several.certificate_)
    np.testing.assert_allclose(several.coef_, single.coef_, atol=1e-4)


def test_random_state_decides_every_bit() -> None:
    X, y = make()
    first, again = (LinearSVC(tol=0.5, random_state=7).fit(X, y) for _ in range(2))
    other = LinearSVC(tol=0.5, random_state=8).fit(X, y)
    state = np.random.RandomState(7)
    from_state, later = (LinearSVC(tol=0.5, random_state=state).fit(X, y) for _ in range(2))
    assert np.array_equal(first.coef_, again.coef_)
    assert np.array_equal(first.coef_, from_state.coef_)
    assert not np.array_equal(first.coef_, other.coef_)
    assert not np.array_equal(first.coef_, later.coef_)


# --- kinds of data


def test_sparse_and_dense_agree() -> None:
    X, y = make(4)
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    dense = LinearSVC(tol=1e-10, random_state=0).fit(X, y)
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for matrix in (sp.csr_matrix(X), sp.csc_array(X), wide):
        sparse = LinearSVC(tol=1e-10, random_state=0).fit(matrix, y)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-9)
        np.testing.assert_allclose(sparse.decision_function(matrix), dense.decision_function(X), atol=1e-9)


@pytest.fixture
def trained_on(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The values of the rows that each model was trained on."""
    found: list[Any] = []
    job = _base.job

    def spy(key: int, data: Any, **named: Any) -> Any:
        found.append(data.source.rows[0])
        return job(key, data, **named)

    monkeypatch.setattr(_base, "job", spy)
    return found


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_float32_rows_are_neither_copied_nor_widened(container: Any, trained_on: list[Any]) -> None:
    X, y = make(classes=3)
    X = container(X.astype(np.float32))
    model = LinearSVC(tol=1e-6, random_state=0).fit(X, y)
    assert len(trained_on) == 3
    assert all(np.shares_memory(values, X.data if sp.issparse(X) else X) for values in trained_on)
    assert model.coef_.dtype == np.float64
    assert model.decision_function(X).dtype == np.float64
    exact = LinearSVC(tol=1e-6, random_state=0).fit(X.astype(np.float64), y)
    assert model.certificate_[0].primal == pytest.approx(exact.certificate_[0].primal, rel=2e-6)


def test_small_integers_become_float32_once(trained_on: list[Any]) -> None:
    X, y = make(classes=3)
    small = np.round(3 * X).astype(np.int8)
    model = LinearSVC(C=0.1, random_state=0).fit(small, y)
    assert all(
        values.dtype == np.float32 and np.shares_memory(values, trained_on[0]) for values in trained_on
    )
    assert np.array_equal(model.predict(small), model.predict(small.astype(np.float32)))


def test_pandas_names_are_kept() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = make()
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = LinearSVC(random_state=0).fit(frame, pandas.Series(y), pandas.Series(np.ones(N)))
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert np.array_equal(model.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))


# --- warm starts


def test_warm_start_finds_nothing_left_to_do() -> None:
    X, y = make(classes=3)
    weight = np.random.default_rng(9).integers(0, 3, N)
    model = LinearSVC(C=0.3, tol=1e-6, warm_start=True, random_state=0).fit(X, y, weight)
    assert model.n_iter_ > 0
    before = model.coef_
    model.fit(X, y, weight)
    assert model.n_iter_ == 0
    np.testing.assert_allclose(model.coef_, before, atol=1e-4)
    assert all(certificate.relative_gap <= 1e-6 for certificate in model.certificate_)
    assert clone(model).fit(X, y, weight).n_iter_ > 0


def test_warm_start_goes_on_from_a_looser_fit() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, D))
    y = np.sign(X[:, 0] + rng.normal(size=3000))
    cold = LinearSVC(C=1.0, tol=1e-6, random_state=0).fit(X, y)
    warm = LinearSVC(C=1.0, tol=1e-4, random_state=0, warm_start=True).fit(X, y)
    warm.set_params(tol=1e-6).fit(X, y)
    assert 0 < warm.n_iter_ < cold.n_iter_
    assert warm.certificate_[0].relative_gap <= 1e-6


def test_warm_start_begins_afresh_where_the_last_points_do_not_fit() -> None:
    X, y = make()
    many = make(classes=3)
    model = LinearSVC(tol=1e-6, warm_start=True, random_state=0).fit(X, y)
    for rows, labels, changes in [
        (X[:100], y[:100], {}),
        (X[:100, :4], y[:100], {}),
        (X, many[1], {}),
        (X, y, {"loss": "logistic"}),
        (X, 1 - y, {}),
        (X, y, {"C": 7.0}),
    ]:
        model.set_params(**changes).fit(rows, labels)
        fresh = clone(model).fit(rows, labels)
        for found, wanted in zip(model.certificate_, fresh.certificate_, strict=True):
            assert found.relative_gap <= 1e-6
            assert found.primal == pytest.approx(wanted.primal, rel=2e-6)


# --- scikit-learn's machinery


def test_pipeline_and_grid_search() -> None:
    X, y = make(classes=3)
    pipeline = make_pipeline(MaxAbsScaler(), LinearSVC(random_state=0))
    search = GridSearchCV(
        pipeline, {"linearsvc__C": [1e-4, 1.0], "linearsvc__loss": ["hinge", "squared-hinge"]}, cv=3
    )
    search.fit(sp.csr_array(X), y)
    assert search.best_params_["linearsvc__C"] == 1.0
    assert search.best_estimator_[-1].certificate_[2].relative_gap <= 1e-3


def test_sample_weight_is_routed_through_a_search() -> None:
    X, y = make()
    weight = np.where(y == 0, 5.0, 0.2)
    direct = LinearSVC(random_state=0).fit(X, y, weight)
    with sklearn.config_context(enable_metadata_routing=True):
        step = (
            LinearSVC(random_state=0)
            .set_fit_request(sample_weight=True)
            .set_score_request(sample_weight=False)
        )
        search = GridSearchCV(step, {"C": [1.0]}, cv=3).fit(X, y, sample_weight=weight)
    assert np.array_equal(search.best_estimator_.coef_, direct.coef_)
    assert not np.array_equal(LinearSVC(random_state=0).fit(X, y).coef_, direct.coef_)


def test_a_pickled_model_predicts_the_same_and_starts_warm() -> None:
    X, y = make(classes=3)
    model = LinearSVC(loss=SmoothHinge(0.5), warm_start=True, verbose=1, random_state=0).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.decision_function(X), model.decision_function(X))
    assert copy.certificate_ == model.certificate_
    assert copy.history_ == model.history_
    assert copy.fit(X, y).n_iter_ == 0


def test_history_tells_the_run() -> None:
    X, y = make(classes=3)
    model = LinearSVC(tol=1e-9, random_state=0).fit(X, y)
    for certificate, history in zip(model.certificate_, model.history_, strict=True):
        assert history[-1]["primal"] == certificate.primal
        assert history[-1]["form"] == "J"
        assert all(record["dual"] <= record["primal"] + record["rounding"] for record in history)


def test_solver_options_reach_the_solver() -> None:
    X, y = make()
    shrunken = LinearSVC(tol=1e-6, random_state=0).fit(X, y)
    full = LinearSVC(tol=1e-6, random_state=0, solver="dcd", solver_options={"shrinking": False}).fit(X, y)
    assert full.history_[0][-1]["updates"] != shrunken.history_[0][-1]["updates"]
    assert full.certificate_[0].relative_gap <= 1e-6


# --- not converged, interrupted


def warning_of(X: Any, y: Any, **parameters: Any) -> str:
    with pytest.warns(ConvergenceWarning) as caught:
        LinearSVC(random_state=0, **parameters).fit(X, y)
    (warning,) = caught
    assert warning.filename == __file__
    return str(warning.message)


def test_warning_states_gap_tolerance_and_remedy() -> None:
    X, y = make()
    text = warning_of(X, y, C=100.0, tol=1e-8, max_iter=3, solver="dcd")
    with pytest.warns(ConvergenceWarning):
        model = LinearSVC(C=100.0, tol=1e-8, max_iter=3, random_state=0, solver="dcd").fit(X, y)
    assert f"relative gap of {model.certificate_[0].relative_gap:.3g} after 3 epochs, above tol=1e-08" in text
    assert "raise max_iter (now 3), loosen tol or take a smaller C" in text
    assert "scale" not in text
    assert model.n_iter_ == 3


def test_warning_blames_uneven_columns_and_long_rows() -> None:
    X, y = make()
    uneven = X * np.geomspace(1.0, 1e5, D)
    for matrix in (uneven, sp.csr_array(uneven)):
        text = warning_of(matrix, y, max_iter=3)
        assert "its columns have norms from" in text
        assert "MaxAbsScaler" in text
    assert "its rows have norms from" in warning_of(1e4 * X, y, max_iter=3)


def test_warning_counts_classes_and_names_the_worst() -> None:
    X, y = make(classes=3)
    labels = np.array(["ant", "bee", "cat"])[y]
    text = warning_of(X, labels, C=100.0, max_iter=2)
    with pytest.warns(ConvergenceWarning):
        model = LinearSVC(C=100.0, max_iter=2, random_state=0).fit(X, labels)
    gaps = [certificate.relative_gap for certificate in model.certificate_]
    assert f"(3 of 3 models; the worst is class {str(model.classes_[np.argmax(gaps)])!r})" in text


def test_warning_says_when_float64_can_prove_no_more() -> None:
    X, y = make()
    text = warning_of(X, y, tol=1e-16, max_iter=100_000)
    assert "loosen tol: float64 cannot prove a smaller gap" in text
    assert "max_iter" not in text


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "n_jobs", "tol"), [(2, 1, 0.0), (3, 1, 0.0), (3, 2, 0.0), (2, 1, 1e9)])
def test_ctrl_c_keeps_the_best_models_and_goes_on_to_the_caller(
    classes: int, n_jobs: int, tol: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = make(classes=classes)
    model = LinearSVC(C=1000.0, tol=tol, max_iter=500, n_jobs=n_jobs, random_state=0, solver="dcd")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        whole = clone(model).fit(X, y)
    pressed: list[int] = []

    def press_once(record: Any, run: Any) -> None:
        if not pressed:
            pressed.append(record.visits)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)  # lets the main thread, where signals are handled, hear of it

    job = _base.job
    changes = {"callbacks": [press_once], "record_every": N}
    monkeypatch.setattr(_base, "job", lambda *given, **named: job(*given, **{**named, **changes}))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt, match="best model so far"):
            model.fit(X, y)
        pressed.clear()
        with pytest.raises(KeyboardInterrupt):
            GridSearchCV(model, {"C": [1000.0]}, cv=2).fit(X, y)
    finally:
        signal.signal(signal.SIGINT, before)
    assert model.coef_.shape == whole.coef_.shape
    assert 1 <= model.n_iter_ < whole.n_iter_
    assert all(np.isfinite(certificate.gap) for certificate in model.certificate_)


# --- bad input

GOOD = make()
HOLED = np.where(np.arange(N)[:, None] == 3, np.nan, GOOD[0])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"C": 0.0},
            "The 'C' parameter of LinearSVC must be a float in the range .0.0, inf. or None. Got 0.0 instead",
        ),
        ({"C": -1.0}, "Got -1.0 instead"),
        ({"C": np.nan}, "'C' parameter.*Got nan instead"),
        ({"C": "much"}, "'C' parameter.*Got 'much' instead"),
        ({"tol": -1e-3}, "'tol' parameter.*Got -0.001 instead"),
        ({"max_iter": 0}, "'max_iter' parameter.*Got 0 instead"),
        ({"bias": "free"}, "'bias' parameter.*a str among {'exact', 'augmented'}. Got 'free' instead"),
        ({"bias": "augmented", "intercept_scaling": 0}, "'intercept_scaling' parameter.*Got 0 instead"),
        ({"loss": "hinges"}, "unknown loss 'hinges'; did you mean 'hinge'?"),
        ({"loss": "epsilon_insensitive"}, "is for regression; LinearSVC takes one of: hinge, logistic"),
        ({"solver": "dcdd"}, "unknown solver 'dcdd'; did you mean 'dcd'?"),
        ({"solver_options": {"shrinkin": True}}, "has no option 'shrinkin'; did you mean 'shrinking'?"),
        ({"solver_options": {"tol": 1.0}}, "solver_options has 'tol', which is no option"),
        ({"solver_options": "fast"}, "'solver_options' parameter.*an instance of 'dict' or None. Got 'fast'"),
        ({"n_jobs": 0}, "n_jobs=0 must be a whole number other than 0"),
        ({"class_weight": "balance"}, "unknown class_weight 'balance'; did you mean 'balanced'?"),
        ({"class_weight": {0: -1.0, 1: 1.0}}, r"class_weight\[0\]=-1.0 must be a non-negative"),
        ({"class_weight": [1, 2]}, r"class_weight=\[1, 2\] must be a dict"),
        ({"C": True}, "'C' parameter.*Got True instead"),
        ({"C": "2"}, "'C' parameter.*Got '2' instead"),
        ({"C": 1e308}, "C=1e.308 is out of range"),
        ({"tol": None}, "'tol' parameter.*Got None instead"),
        ({"loss": None}, "loss=None is not a loss"),
        ({"loss": "poisson"}, "the loss 'poisson' is not offered; there are: absolute"),
        ({"bias": True}, "'bias' parameter.*Got True instead"),
        ({"bias": np.ones(2)}, "'bias' parameter.*Got array"),
        ({"fit_intercept": "no"}, "'fit_intercept' parameter of LinearSVC must be a bool. Got 'no' instead"),
        ({"warm_start": np.ones(2)}, "'warm_start' parameter.*Got array"),
        ({"solver": None}, "'solver' parameter.*an instance of 'str'. Got None"),
        ({"solver_options": {1: 2}}, "solver_options has 1, which is no option"),
        ({"random_state": "x"}, "random_state='x' must be an int from 0"),
        ({"random_state": -1}, "random_state=-1 must be an int from 0"),
        ({"n_jobs": 1.5}, "n_jobs=1.5 must be a whole number"),
        ({"warm_start": 3}, "'warm_start' parameter.*Got 3 instead"),
        ({"time_limit": 0}, "'time_limit' parameter.*Got 0 instead"),
        ({"early_stopping": "no"}, "'early_stopping' parameter.*Got 'no' instead"),
        ({"validation_fraction": 1.0}, "'validation_fraction' parameter.*Got 1.0 instead"),
        ({"n_iter_no_change": 0}, "'n_iter_no_change' parameter.*Got 0 instead"),
        ({"keep_dual": 1}, "'keep_dual' parameter.*Got 1 instead"),
        ({"output": "first"}, "'output' parameter.*Got 'first' instead"),
        ({"callbacks": print}, "'callbacks' parameter.*Got <built-in function print> instead"),
        ({"callbacks": [3]}, r"callbacks\[0\]=3 cannot be called"),
        ({"multi_class": "ovo"}, "'multi_class' parameter.*Got 'ovo' instead"),
        ({"dual": "yes"}, "'dual' parameter.*Got 'yes' instead"),
        ({"alpha": -1.0}, "'alpha' parameter.*Got -1.0 instead"),
        ({"C": 2.0, "alpha": 0.1}, "both C=2.0 and alpha=0.1 are given"),
        ({"penalty": "l1"}, "squared l2 norm only; scikit-learn's SGDClassifier .* offer others"),
        ({"verbose": "yes"}, "'verbose' parameter.*Got 'yes' instead"),
    ],
)
def test_bad_parameters_get_one_clear_line(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        LinearSVC(**parameters).fit(*GOOD)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("X", "y", "weight", "message"),
    [
        (HOLED, GOOD[1], None, "X contains NaN at row 3, column 0"),
        (np.where(np.isnan(HOLED), -np.inf, HOLED), GOOD[1], None, "X contains infinity at row 3, column 0"),
        (sp.csr_array(HOLED), GOOD[1], None, "X contains NaN at row 3, column 0"),
        (GOOD[0], np.where(np.arange(N) == 3, np.nan, GOOD[1]), None, "y contains NaN"),
        (GOOD[0], np.ones(N), None, "one class only"),
        (GOOD[0], GOOD[1] + 0.5 * np.arange(N) / N, None, "Unknown label type: continuous"),
        (GOOD[0], GOOD[1][:-1], None, "inconsistent numbers of samples"),
        (GOOD[0][:0], GOOD[1][:0], None, "0 sample"),
        (GOOD[0][:, :0], GOOD[1], None, "0 feature"),
        (GOOD[0][:, 0], GOOD[1], None, "Expected 2D array"),
        (GOOD[0], GOOD[1], np.ones(N - 1), r"sample_weight has shape \(119,\) and X has 120 rows"),
        (GOOD[0], GOOD[1], ["a"] * N, "sample_weight cannot be used: could not convert"),
        (GOOD[0], GOOD[1], np.ones((N, 1)), r"sample_weight has shape \(120, 1\)"),
        (GOOD[0], GOOD[1], np.where(np.arange(N) == 7, -1.0, 1.0), r"sample_weight\[7\] is -1"),
        (GOOD[0], GOOD[1], np.where(np.arange(N) == 7, np.nan, 1.0), "sample_weight contains NaN"),
        (GOOD[0], GOOD[1], np.zeros(N), "all sample weights are zero"),
        (GOOD[0], GOOD[1], (GOOD[1] == 1).astype(float), "only class 1 has rows of positive weight"),
    ],
)
def test_bad_arrays_get_a_clear_error(X: Any, y: Any, weight: Any, message: str) -> None:
    model = LinearSVC()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, weight)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "classes_")


def test_bad_rows_to_predict_get_a_clear_error() -> None:
    model = LinearSVC(random_state=0).fit(*GOOD)
    with pytest.raises(ValueError, match="X has 5 features, but LinearSVC is expecting 6 features"):
        model.predict(GOOD[0][:, :5])
    with pytest.raises(ValueError, match="X contains NaN"):
        model.predict(HOLED)


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("by", ["class_weight", "sample_weight"])
def test_a_class_of_weight_0_is_absent_and_its_model_is_verified(
    tmp_path: Path, by: str, words: bool
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    kinds = np.digitize(X[:, 0], [-0.4, 0.4])
    y = np.array(["ant", "bee", "cow"])[kinds] if words else kinds
    weight = np.where(kinds == 1, 0.0, 1.0) if by == "sample_weight" else None
    factors = dict(zip(np.unique(y).tolist(), (1.0, 0.0, 2.0), strict=True)) if weight is None else None
    estimator = LinearSVC(class_weight=factors, keep_dual=True, random_state=0).fit(
        X, y, sample_weight=weight
    )
    model = estimator.to_model()
    assert model.absent == (("bee",) if words else (1,))
    model.save(tmp_path / "m")
    model = Model.load(tmp_path / "m")
    assert model.verify(X, y, weight).verdict == "true"
    known = estimator.to_model(X, y, weight)
    again = None if weight is None else weight[::-1]
    assert known.verify(X[::-1], y[::-1], again).verdict == "true"
    other = y.copy()
    other[kinds == 1] = y[kinds == 0][0]  # rows that count now
    assert model.verify(X, other).verdict == "not true"
