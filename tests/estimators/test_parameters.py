"""Every parameter of every estimator changes the result, is refused, or is known to have no effect."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

from dualgap.runtime.errors import InputError
from support.estimators import CLASSIFIERS, ESTIMATORS, data_for, made, parameters_of

# what scikit-learn has and changes nothing here, or nothing but the time and what is shown
WITHOUT_EFFECT = {"dual": True, "copy_X": False, "n_jobs": 2, "verbose": 1, "l1_ratio": 0.7}

# a parameter: what both estimators have, and what the second has besides
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "C": ({}, {"C": 0.01}),
    "alpha": ({}, {"alpha": 3.0}),
    "tol": ({"solver": "sdca", "max_iter": 50}, {"tol": 5.0}),
    "fit_intercept": ({}, {"fit_intercept": False}),
    "bias": ({}, {"bias": "augmented"}),
    "intercept_scaling": ({"bias": "augmented"}, {"intercept_scaling": 0.1}),
    "class_weight": ({}, {"class_weight": {0: 5.0}}),
    "solver": ({}, {"solver": "sdca"}),
    "solver_options": ({"solver": "sdca"}, {"solver_options": {"order": "cyclic"}}),
    "max_iter": ({"solver": "sdca", "tol": 0.0}, {"max_iter": 1}),
    "time_limit": ({"solver": "sdca", "tol": 0.0}, {"time_limit": 1e-9}),
    "early_stopping": ({}, {"early_stopping": True}),
    "validation_fraction": ({"early_stopping": True}, {"validation_fraction": 0.5}),
    "n_iter_no_change": ({"early_stopping": True, "solver": "sdca", "tol": 0.0}, {"n_iter_no_change": 1}),
    "warm_start": ({}, {"warm_start": True}),
    "keep_dual": ({}, {"keep_dual": True}),
    "random_state": ({"solver": "sdca", "max_iter": 3}, {"random_state": 1}),
    "output": (
        {"solver": "sgd", "solver_options": {"learning_rate": "constant", "eta0": 0.5}, "max_iter": 7},
        {"output": "last"},
    ),
    "callbacks": ({"solver": "sdca", "tol": 0.0}, {"callbacks": [lambda record, run: True]}),
    "penalty": ({}, {"penalty": "l1"}),
    "l1_ratio": ({}, {"l1_ratio": 0.5}),
    "positive": ({}, {"positive": True}),
    "epsilon": ({"loss": "epsilon_insensitive"}, {"epsilon": 0.7}),
    "quantile": ({}, {"quantile": 0.9}),
    "shuffle": ({}, {"shuffle": False}),
    "learning_rate": ({"eta0": 0.01}, {"learning_rate": "constant"}),
    "eta0": ({}, {"eta0": 0.01}),
    "power_t": ({"learning_rate": "invscaling", "eta0": 0.1}, {"power_t": 1.0}),
    "average": ({}, {"average": True}),
    "multi_class": ({}, {"multi_class": "crammer_singer"}),
}
REFUSED = {"penalty", "positive"}
OTHERS = {
    ("LogisticRegression", "multi_class"): ({}, {"multi_class": "ovr"}),
    ("LinearSVC", "loss"): ({}, {"loss": "logistic"}),
    ("LinearSVR", "loss"): ({}, {"loss": "squared_epsilon_insensitive"}),
    ("LinearClassifier", "loss"): ({}, {"loss": "squared"}),
    ("LinearRegressor", "loss"): ({}, {"loss": "absolute"}),
    ("SGDClassifier", "loss"): ({}, {"loss": "log_loss"}),
    ("SGDRegressor", "loss"): ({}, {"loss": "huber"}),
    ("HuberRegressor", "epsilon"): ({}, {"epsilon": 0.2}),
    ("Perceptron", "tol"): ({}, {"tol": 0.9}),
    ("Perceptron", "n_iter_no_change"): ({}, {"n_iter_no_change": 1}),
    ("Perceptron", "max_iter"): ({}, {"max_iter": 1}),
    ("Perceptron", "time_limit"): ({}, {"time_limit": 1e-9}),
    ("SGDClassifier", "output"): (
        {"learning_rate": "constant", "eta0": 9.0, "max_iter": 5},
        {"output": "last"},
    ),
    ("HuberRegressor", "tol"): ({"C": 0.1, "solver": "sdca"}, {"tol": 0.9}),
}
ALL = [(name, parameter) for name in ESTIMATORS for parameter in parameters_of(name)]


def told(model: Any) -> tuple[Any, ...]:
    """What can be seen of a fitted estimator."""
    solvers = [record["solver"] for record in model.history_[0]]
    kept = "dual_" in vars(model)
    return np.asarray(model.coef_).tobytes(), str(model.n_iter_), len(model.history_[0]), solvers, kept


def without_effect(name: str, parameter: str) -> bool:
    return parameter in WITHOUT_EFFECT and not (name == "LogisticRegression" and parameter == "l1_ratio")


@pytest.mark.parametrize(("name", "parameter"), ALL)
def test_every_parameter_counts(name: str, parameter: str) -> None:
    classes = 3 if parameter == "multi_class" else 2
    X, y = data_for(name, classes)
    if without_effect(name, parameter):
        first, second = {}, {parameter: WITHOUT_EFFECT[parameter]}
    else:
        first, second = OTHERS.get((name, parameter), CHANGES.get(parameter, ({}, {})))
        assert second, f"{parameter} of {name} has no test"
    if name.startswith("SGD") and first.get("solver") == "sdca":
        first = {**first, "solver": "auto"} | ({"solver": "sdca"} if parameter == "solver_options" else {})
    before = made(name, **{"random_state": 0, **first})
    after = made(name, **{"random_state": 0, **first, **second})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if parameter in REFUSED or (name, parameter) == ("LogisticRegression", "l1_ratio"):
            with pytest.raises(InputError, match=r"offered|Unsupported"):
                after.fit(X, y)
            return
        same = told(before.fit(X, y)) == told(after.fit(X, y))
    assert same == without_effect(name, parameter)


WRONG = {
    "C": -1.0, "alpha": "much", "tol": -1.0, "fit_intercept": "no", "bias": "free", "intercept_scaling": 0.0,
    "class_weight": 3, "solver": 3, "solver_options": "fast", "max_iter": 0, "time_limit": 0.0,
    "early_stopping": "no", "validation_fraction": 1.0, "n_iter_no_change": 0, "warm_start": 3,
    "keep_dual": "yes", "random_state": -1, "n_jobs": 0, "output": "first", "callbacks": 3, "verbose": "x",
    "penalty": "l0", "l1_ratio": "half", "positive": "no", "epsilon": -1.0, "quantile": 1.0, "shuffle": "no",
    "learning_rate": "adaptive", "eta0": -1.0, "power_t": 2.0, "average": "no", "multi_class": "ovo",
    "dual": "yes", "copy_X": 2, "loss": "hinges",
}  # fmt: skip


@pytest.mark.parametrize(("name", "parameter"), ALL)
def test_every_parameter_is_checked(name: str, parameter: str) -> None:
    model = made(name, **{parameter: WRONG[parameter]})
    with pytest.raises(ValueError, match=parameter) as caught:
        model.fit(*data_for(name))
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_docstrings_name_every_parameter_in_full(name: str) -> None:
    text = inspect.getdoc(ESTIMATORS[name])
    assert text is not None
    assert "{" not in text.replace('{"', "").replace("{0.5", "")
    section = text[text.index("Parameters\n") : text.index("Attributes\n")]
    for parameter in parameters_of(name):
        assert f"\n{parameter} : " in section, parameter
    assert "Minimises" in text or "minimises" in text


@pytest.mark.parametrize("name", ["LinearSVC", "Ridge", "QuantileRegressor", "SGDClassifier"])
def test_C_and_alpha_are_two_ways_to_say_it(name: str) -> None:
    X, y = data_for(name)
    scale = 1.0 if name == "Ridge" else 1.0 / X.shape[0]
    by_alpha = made(name, alpha=0.25, tol=1e-6, random_state=0, max_iter=300)
    by_C = made(name, C=scale / 0.25, tol=1e-6, random_state=0, max_iter=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_alpha.fit(X, y), by_C.fit(X, y)
    np.testing.assert_allclose(by_alpha.coef_, by_C.coef_, rtol=1e-3)
    with pytest.raises(InputError, match=r"both C=0\.5 and alpha=0\.25 are given; give one"):
        made(name, C=0.5, alpha=0.25).fit(X, y)


def test_the_penalty_of_others_is_refused_by_name() -> None:
    with pytest.raises(
        InputError, match=r"penalty='l1', loss='hinge', dual='auto'\); .* skglm and celer offer"
    ):
        made("LinearSVC", penalty="l1").fit(*data_for("LinearSVC"))
    with pytest.raises(InputError, match=r"alpha=0\.0 is no penalty.*LinearRegression"):
        made("Ridge", alpha=0.0).fit(*data_for("Ridge"))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_balanced_weights_change_the_model(name: str) -> None:
    X, y = data_for(name)
    plain, balanced = (made(name, class_weight=w, random_state=0, max_iter=50) for w in (None, "balanced"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not np.array_equal(plain.fit(X, y).coef_, balanced.fit(X, y).coef_)
