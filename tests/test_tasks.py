"""Regression losses as classifiers: ``task="classification"``, in the library and on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.files import write_svmlight
from dualgap.runtime.errors import InputError
from support.commands import Forks, forks_fixture  # noqa: F401
from support.problems import noisy

LOSSES = ["squared", "huber", "absolute", "quantile", "epsilon-insensitive", "squared-epsilon-insensitive"]


@pytest.mark.parametrize("loss", LOSSES)
def test_regression_losses_tell_two_classes_apart(loss: str, tmp_path: Path) -> None:
    X, y = noisy(seed=0, n=120, d=6, noise=0.3)
    names = np.where(y > 0, "ham", "eggs")
    outcome = dualgap.fit(X, names, loss=loss, task="classification", lam=0.01)
    plain = dualgap.fit(X, np.where(names == "ham", 1.0, -1.0), loss=loss, lam=0.01)
    assert np.array_equal(outcome.coef, plain.coef)  # the targets are -1 and +1
    outcome.model.save(tmp_path / "m")
    model = dualgap.Model.load(tmp_path / "m")
    assert (model.task, model.classes) == ("classification", ("eggs", "ham"))
    assert set(model.predict(X)) == {"eggs", "ham"}
    found = model.evaluate(X, names).values
    assert found["accuracy"] == np.mean(model.predict(X) == names) > 0.8
    assert {"precision", "recall", "f1", "break_even", "auc"} <= found.keys()
    assert model.verify(X, names).verdict == "true"


def test_several_classes_by_least_squares(tmp_path: Path) -> None:
    X, _ = noisy(seed=1, n=90, d=5)
    codes = np.arange(90) % 3
    found = dualgap.one_vs_rest(X, codes, loss="squared", lam=0.1)
    found.model.save(tmp_path / "m")
    model = dualgap.Model.load(tmp_path / "m")
    assert model.verify(X, codes).verdict == "true"
    assert model.evaluate(X, codes).confusion.shape == (3, 3)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"loss": "hinge", "task": "regression"}, "the hinge loss is for classes"),
        ({"loss": "squared", "task": "ranking"}, "task='ranking' must be 'classification' or 'regression'"),
        ({"loss": "squared", "task": "classification", "y": np.arange(40.0)}, "40 classes"),
        ({"metric": "error"}, "metric='error' is for early stopping; give validation="),
        ({"metric": "accuracy", "validation": 0.25}, "metric='accuracy' must be 'loss' or 'error' or"),
        (
            {"metric": "error", "validation": 0.25, "loss": "squared"},
            "is for classes, and this is a regression",
        ),
    ],
)
def test_what_is_refused(options: dict[str, Any], complaint: str) -> None:
    X, y = noisy(seed=0, n=40, d=4)
    with pytest.raises(InputError, match=complaint):
        dualgap.fit(X, options.pop("y", y), **options)


def test_the_command_line(tmp_path: Path, forks: Forks) -> None:
    X, y = noisy(seed=0, n=120, d=6, noise=0.3)
    write_svmlight(tmp_path / "rows.svm", X, y)
    arguments = ("train", tmp_path / "rows.svm", "-o", tmp_path / "m", "--loss", "squared", "--json")
    assert forks(*arguments).json["classes"] is None
    assert forks(*arguments, "--task", "classification").json["classes"] == [-1, 1]
    found = forks("evaluate", tmp_path / "m", tmp_path / "rows.svm", "--json").json
    assert found["accuracy"] > 0.8
    assert found["break_even"] > 0.8
    assert set(forks("predict", tmp_path / "m", tmp_path / "rows.svm").out.split()) == {"-1", "1"}
    assert forks("certify", tmp_path / "m", tmp_path / "rows.svm").code == 0
    # early stopping by the break-even point
    more = ("--validation", tmp_path / "rows.svm", "--metric", "break-even", "--task", "classification")
    early = forks(*arguments, "--solver", "sgd", "--tol", "0", "--trace", tmp_path / "t", *more).json
    assert early["stop_reason"] == "early"
    refused = forks(*arguments, "--metric", "error").error
    assert "--metric error is for --validation" in refused
