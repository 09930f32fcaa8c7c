"""``partial_fit``, and the parameters of stochastic gradient descent."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from dualgap import Stream
from dualgap.estimators import LinearClassifier, LinearSVC, Perceptron, SGDClassifier, SGDRegressor
from dualgap.runtime.errors import InputError
from support.estimators import CLASSIFIERS, STREAMING, data_for, labels, made, rows

SOLVER = {"solver": "svmsgd", "alpha": 0.01}  # of the general estimators


def begun(name: str, **parameters: Any) -> Any:
    return made(name, random_state=0, **(SOLVER if name.startswith("Linear") else {}), **parameters)


def learn(model: Any, X: Any, y: Any, weight: Any = None) -> Any:
    name = type(model).__name__
    if name in CLASSIFIERS:
        return model.partial_fit(X, y, classes=np.unique([0, 1, *y]), sample_weight=weight)
    return model.partial_fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("name", STREAMING)
def test_chunks_are_one_stream(name: str) -> None:
    X, y = data_for(name)
    whole = learn(begun(name), X, y)
    parts = begun(name)
    for part in np.array_split(np.arange(X.shape[0]), 3):
        learn(parts, X[part], y[part])
    assert parts.t_ == whole.t_ == X.shape[0] + 1.0
    if name == "Perceptron":  # its step needs no calibration, which the others take from their first rows
        assert np.array_equal(whole.coef_, parts.coef_)
    assert np.mean((parts.predict(X) - whole.predict(X)) ** 2) < 0.5 * np.var(y)
    assert parts.score(X, y) > 0.6
    copy = pickle.loads(pickle.dumps(parts))
    assert np.array_equal(learn(copy, X, y).coef_, learn(parts, X, y).coef_)


def test_a_stream_of_an_estimator_is_a_stream() -> None:
    X, y = data_for("SGDClassifier")
    model = SGDClassifier(alpha=0.01, loss="log_loss", eta0=0.1, random_state=3, fit_intercept=False)
    model.partial_fit(X, y, classes=[0, 1])
    stream = Stream(0.01, loss="logistic", solver="svmsgd", eta0=0.1)
    assert np.array_equal(model.coef_[0], stream.learn(X, y).coef)


@pytest.mark.parametrize("name", STREAMING)
def test_rows_of_weight_0_change_nothing(name: str) -> None:
    X, y = data_for(name)
    model = learn(begun(name), X, y)
    before = model.coef_.copy(), model.t_
    learn(model, 5.0 * X, y, np.zeros(X.shape[0]))
    assert np.array_equal(model.coef_, before[0])
    assert model.t_ == before[1]
    weight = np.where(np.arange(X.shape[0]) < 30, 1.0, 0.0)
    some = learn(begun(name, eta0=0.1), X, y, weight)
    alone = learn(begun(name, eta0=0.1), X[:30], y[:30])
    if name in ("SGDClassifier", "SGDRegressor", "Perceptron"):
        assert np.array_equal(some.coef_, alone.coef_)
    nothing = learn(begun(name), X, y, np.zeros(X.shape[0]))
    assert not nothing.coef_.any()


@pytest.mark.parametrize("name", STREAMING)
def test_a_stream_goes_on_from_a_fit_and_proves_nothing(name: str) -> None:
    X, y = data_for(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = begun(name).fit(X, y)
    fitted, seen = model.coef_.copy(), model.t_
    learn(model, X[:2], y[:2])
    assert model.t_ == seen + 2.0
    assert np.linalg.norm(model.coef_ - fitted) < 0.5 * np.linalg.norm(fitted)
    assert model.certificate_ == []
    with pytest.raises(InputError, match="trained by partial_fit, which proves nothing"):
        model.to_model()


def test_what_partial_fit_refuses() -> None:
    X, y = data_for("SGDClassifier")
    with pytest.raises(InputError, match="classes must be passed on the first call"):
        SGDClassifier().partial_fit(X, y)
    with pytest.raises(InputError, match="class_weight 'balanced' is not supported for partial_fit"):
        SGDClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    with pytest.raises(InputError, match="early_stopping should be False with partial_fit"):
        SGDClassifier(early_stopping=True).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(InputError, match=r"partial_fit needs alpha: .* C=1.0 depends on it"):
        LinearClassifier(solver="svmsgd").partial_fit(X, y, classes=[0, 1])
    with pytest.raises(InputError, match=r"y\[\d+\] is .*, which is no label of classes"):
        SGDClassifier().partial_fit(X, y, classes=[0, 2])
    with pytest.raises(InputError, match="greater than one"):
        SGDClassifier().partial_fit(X, y, classes=[0])
    model = SGDClassifier().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(InputError, match="are not those of the first call"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    assert not hasattr(LinearClassifier(), "partial_fit")
    assert not hasattr(LinearSVC(), "partial_fit")


def test_class_weights_of_a_stream_are_a_dict() -> None:
    X, y = data_for("SGDClassifier")
    weights = dict(enumerate(compute_class_weight("balanced", classes=np.array([0, 1]), y=y)))
    by_class = SGDClassifier(class_weight=weights, eta0=0.1, random_state=0).partial_fit(X, y, classes=[0, 1])
    by_row = SGDClassifier(eta0=0.1, random_state=0)
    by_row.partial_fit(X, y, classes=[0, 1], sample_weight=np.vectorize(weights.get)(y))
    assert np.array_equal(by_class.coef_, by_row.coef_)


def test_several_classes_stream() -> None:
    X = rows(n=200)
    y = labels(X, 3)
    model = SGDClassifier(alpha=0.01, random_state=0)
    for part in np.array_split(np.arange(200), 4):
        model.partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert model.coef_.shape == (3, X.shape[1])
    assert model.score(X, y) > 0.5


@pytest.mark.parametrize("cls", [SGDClassifier, SGDRegressor])
def test_weights_to_begin_with(cls: Any) -> None:
    X, y = data_for(cls.__name__)
    first = cls(alpha=0.01, random_state=0).fit(X, y)
    begun_there = cls(alpha=0.01, random_state=0, max_iter=1, tol=None, output="best")
    begun_there.fit(X, y, coef_init=first.coef_, intercept_init=first.intercept_)
    afresh = cls(alpha=0.01, random_state=0, max_iter=1, tol=None).fit(X, y)
    assert begun_there.objective_[0] <= first.objective_[0] * (1.0 + 1e-9) < afresh.objective_[0]
    with pytest.raises(InputError, match="coef_init does not match"):
        cls().fit(X, y, coef_init=np.zeros(3))
    with pytest.raises(InputError, match="intercept_init does not match"):
        cls().fit(X, y, intercept_init=np.zeros(3))


def test_the_perceptron_ends_where_there_are_no_mistakes_or_no_fewer() -> None:
    X = rows(n=100)
    y = (X[:, 0] > 0.3).astype(int)
    X[:, 0] += np.where(y, 1.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Perceptron(random_state=0).fit(X, y)
        assert model.score(X, y) == 1.0
        assert model.n_iter_ < 100
        noisy = Perceptron(random_state=0).fit(X, np.roll(y, 1))
    assert noisy.n_iter_ < 1000
    with pytest.warns(UserWarning, match="ended at a relative gap"):
        Perceptron(random_state=0, max_iter=2).fit(X, np.roll(y, 1))


def test_sgd_losses_are_scikit_learns() -> None:
    """At the optimum of alpha/2 |w|^2 + mean loss, whatever solves it."""
    X, y = data_for("SGDRegressor")
    for loss, phi in {
        "squared_error": lambda z: 0.5 * z**2,
        "huber": lambda z: np.where(np.abs(z) <= 0.3, 0.5 * z**2, 0.3 * np.abs(z) - 0.045),
        "epsilon_insensitive": lambda z: np.maximum(0.0, np.abs(z) - 0.3),
        "squared_epsilon_insensitive": lambda z: np.maximum(0.0, np.abs(z) - 0.3) ** 2,
    }.items():
        model = SGDRegressor(loss=loss, epsilon=0.3, alpha=0.1, random_state=0, max_iter=300)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        value = 0.05 * model.coef_ @ model.coef_ + np.mean(phi(y - model.predict(X)))
        assert value == pytest.approx(model.objective_[0] * (0.5 if loss == "huber" else 1.0), rel=1e-9)
