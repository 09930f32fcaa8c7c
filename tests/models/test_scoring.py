"""Scores: a row's is the same to the bit, whoever computes it, however it is stored, beside whatever rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.cli import group
from dualgap.files import write_svmlight
from dualgap.models.scoring import codes_of, labels_of, scores_of
from dualgap.runtime.errors import InputError


def rows(classes: int, dtype: Any, n: int = 301, d: int = 40) -> tuple[Any, Any]:
    rng = np.random.default_rng(classes)
    y = rng.integers(0, classes, n)
    X = rng.normal(size=(n, d)) + rng.normal(size=(classes, d))[y]
    return np.where(rng.random((n, d)) < 0.6, X, 0.0).astype(dtype), y + 1


@pytest.mark.parametrize(("d", "k"), [(40, 9), (38, 2), (3, 1), (1, 17)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8])
def test_many_dense_rows_have_the_scores_of_few(
    d: int, k: int, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = (10 * rows(2, np.float64, d=d)[0]).astype(dtype)
    rng = np.random.default_rng(0)
    coef, intercept = rng.normal(size=(k, d)), rng.normal(size=k)
    few = scores_of(X, coef, intercept)
    monkeypatch.setattr("dualgap.models.scoring._MANY", 0)
    monkeypatch.setattr("dualgap.models.dense_scores._ENTRIES", 64 * d)
    for many in (X, np.asfortranarray(X), X[:1], X[:64], X[:65]):
        assert scores_of(many, coef, intercept).tobytes() == few[: many.shape[0]].tobytes()
    X[3, 0] = 100
    changed = scores_of(X, coef, intercept)
    assert (changed[3] != few[3]).any()
    assert np.delete(changed, 3, axis=0).tobytes() == np.delete(few, 3, axis=0).tobytes()


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
def test_the_score_of_a_row_depends_on_that_row_alone(
    k: int, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = (10 * rows(2, np.float64)[0]).astype(dtype)
    rng = np.random.default_rng(0)
    coef, intercept = rng.normal(size=(k, 40)), rng.normal(size=k)
    scores = scores_of(X, coef, intercept)
    assert scores.dtype == np.float64
    assert scores.shape == ((301,) if k == 1 else (301, k))
    exact = X.astype(np.float64) @ coef.T + intercept
    assert np.allclose(scores, exact[:, 0] if k == 1 else exact, rtol=1e-12, atol=1e-12)
    for block in (1, 2, 7, 64):
        parts = [scores_of(X[first : first + block], coef, intercept) for first in range(0, 301, block)]
        assert np.concatenate(parts).tobytes() == scores.tobytes()
    for stored in (sp.csr_array(X), sp.csr_matrix(X), sp.csc_array(X), np.asfortranarray(X)):
        assert scores_of(stored, coef, intercept).tobytes() == scores.tobytes()
    assert scores_of(sp.csr_array(X)[200:], coef, intercept).tobytes() == scores[200:].tobytes()
    monkeypatch.setattr("dualgap.models.scoring._ENTRIES", 1000)
    assert scores_of(X, coef, intercept).tobytes() == scores.tobytes()
    assert scores_of(X[:0], coef, intercept).shape == scores[:0].shape


def test_labels() -> None:
    assert codes_of(np.array([0.0, 1e-300, -1.0])).tolist() == [0, 1, 0]
    assert labels_of(np.array([[1.0, 2.0], [2.0, 2.0]]), ("b", "a")).tolist() == ["a", "b"]
    assert labels_of(np.array([-1.0, 1.0]), (None, 3)).tolist() == [None, 3]
    assert labels_of(np.array([-1.0, 1.0]), ("x", 3)).tolist() == ["x", 3]
    assert labels_of(np.array([-1.0, 1.0]), np.array([True, False])).tolist() == [True, False]


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_model_estimator_and_command_agree_to_the_bit(
    tmp_path: Path, classes: int, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows(classes, dtype)
    estimator = dualgap.LinearSVC(random_state=0).fit(X, y)
    model = estimator.to_model()
    model.save(tmp_path / "m")
    write_svmlight(tmp_path / "rows.svm", X, y)
    monkeypatch.setattr("dualgap.data.formats.text.PIECE", 3000)  # so that the file comes in several blocks
    command = ["predict", str(tmp_path / "m"), str(tmp_path / "rows.svm"), "-o", str(tmp_path / "out")]
    group.main([*command, "--scores"], standalone_mode=False)
    lines = (tmp_path / "out").read_text().splitlines()
    printed = np.array([[float(word) for word in line.split()] for line in lines])
    expected = estimator.decision_function(X)
    assert printed.reshape(expected.shape).tobytes() == expected.tobytes()
    for scored in (X, sp.csr_array(X), tmp_path / "rows.svm"):
        assert model.decision_function(scored).tobytes() == expected.tobytes()
    assert estimator.decision_function(sp.csr_array(X)).tobytes() == expected.tobytes()
    assert np.array_equal(model.predict(X), estimator.predict(X))
    group.main(command, standalone_mode=False)
    assert (tmp_path / "out").read_text().split() == [str(label) for label in estimator.predict(X)]


def test_one_vs_rest_agrees_with_its_model() -> None:
    X, y = rows(4, np.float32)
    many = dualgap.one_vs_rest(X, y, C=0.1)
    assert many.decision_function(X).tobytes() == many.model.decision_function(X).tobytes()
    assert np.array_equal(many.predict(X), many.model.predict(X))
    outcome = dualgap.fit(X, y == 2, C=0.1)
    assert outcome.model.decision_function(X).tobytes() == many.decision_function(X)[:, 1].tobytes()


@pytest.mark.parametrize(
    ("X", "complaint"),
    [
        (np.zeros((2, 3)), "X has 3 columns and the model has 40"),
        (np.zeros(40), r"X has shape \(40,\); it must have two dimensions"),
        ([["a"] * 40], "X must hold numbers"),
        ([[1.0], [1.0, 2.0]], "X must hold numbers"),
        (np.full((2, 40), np.nan), "the score of row 0 is nan"),
    ],
)
def test_rows_that_cannot_be_scored(X: Any, complaint: str) -> None:
    model = dualgap.fit(*rows(2, np.float64), C=0.1).model
    with pytest.raises(InputError, match=complaint):
        model.predict(X)
