"""Dense rows in float16: used as they are, and the same problem as in float32 and float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.data.rows import HalfDense, as_matrix, as_rows, slice_rows
from dualgap.data.sources import View
from dualgap.files import Store, read_svmlight, write_store, write_svmlight
from dualgap.runtime.errors import InputError

KINDS = (np.float16, np.float32, np.float64)


def sample(n: int = 300, d: int = 13, classes: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, d)).astype(np.float16)
    X[0], X[1, :3] = 0.0, (-0.0, 6e-8, -6e-5)  # subnormal numbers
    y = (X.astype(np.float64) @ rng.normal(size=(d, classes)) + rng.normal(size=(n, classes))).argmax(axis=1)
    return X, y


def test_rows_are_a_view_of_the_array() -> None:
    X, _ = sample()
    rows, width, squares = as_rows(X)
    assert isinstance(rows, HalfDense)
    assert np.shares_memory(rows.matrix, X)
    assert as_matrix(rows, width).dtype == np.float16
    assert isinstance(slice_rows(rows, 3, 5), HalfDense)
    assert squares.tobytes() == as_rows(X.astype(np.float64)).squares.tobytes()
    wide, w = X.astype(np.float64), np.arange(width, dtype=np.float64)
    assert rows.dot(7, w) == pytest.approx(wide[7] @ w)
    rows.add(7, 2.0, w)
    assert np.array_equal(w, np.arange(width) + 2.0 * wide[7])
    assert rows.entry(1, 2) == (2, wide[1, 2])


@pytest.mark.parametrize("change", [np.asfortranarray, lambda m: m.astype(">f2"), lambda m: m[::-1]])
def test_arrays_that_do_not_fit_are_brought_into_form(change: Any) -> None:
    X = change(sample()[0])
    assert np.array_equal(as_matrix(as_rows(X).rows, 13), X)


@pytest.mark.parametrize(
    "arguments",
    [
        {"solver": "dcd"},
        {"solver": "newton", "loss": "logistic", "bias": "exact"},
        {"solver": "interior-point"},
        {"solver": "svmsgd", "tol": 0.1},
        {"solver": "cached-loops"},
        {"scale": "max-abs"},
    ],
    ids=lambda arguments: next(iter(arguments.values())),
)
def test_the_same_model_bit_for_bit(arguments: dict[str, Any]) -> None:
    X, y = sample()
    found = [dualgap.fit(X.astype(kind), y, C=0.5, **arguments) for kind in KINDS]
    bits = {(one.coef.tobytes(), one.dual.tobytes(), tuple(one.certificate)) for one in found}
    assert len(bits) == 1
    assert found[0].model.fingerprint == found[2].model.fingerprint
    assert found[0].model.verify(X, y).verdict == found[2].model.verify(X, y).verdict == "true"


def test_estimators_and_classes_take_them_as_they_are() -> None:
    X, y = sample(classes=3)
    estimators = [dualgap.LinearSVC(random_state=0).fit(X.astype(kind), y) for kind in KINDS]
    assert len({one.decision_function(X).tobytes() for one in estimators}) == 1
    many = dualgap.one_vs_rest(X, y, C=0.5)
    source = many.data.source
    assert isinstance(source, View)
    assert np.shares_memory(source.rows.matrix, X)
    assert many.predict(X).tolist() == many.predict(X.astype(np.float64)).tolist()


def test_they_are_written_to_files(tmp_path: Path) -> None:
    X, y = sample()
    write_svmlight(tmp_path / "rows.svm", X, y)
    write_store(tmp_path / "rows.arrow", X, y, keep_order=True)
    assert np.array_equal(read_svmlight(tmp_path / "rows.svm", n_features=13).X.toarray(), X)
    assert np.array_equal(Store(tmp_path / "rows.arrow").read().X.toarray(), X)


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_nan_and_infinity_are_refused(value: float, what: str) -> None:
    X, y = sample()
    X[150, 4] = value
    with pytest.raises(InputError, match=f"X contains {what} at row 150, column 4"):
        dualgap.fit(X, y)
    with pytest.raises(InputError, match=f"X contains {what} at row 150, column 4"):
        dualgap.LinearSVC().fit(X, y)
    model = dualgap.fit(np.nan_to_num(X, posinf=1.0, neginf=1.0), y).model
    with pytest.raises(InputError, match="the score of row 150"):
        model.predict(X)
