"""Labels: any that can be sorted, encoded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.data.labels import Labels, plain, shown_label, signs
from dualgap.runtime.errors import InputError

SETS: list[Any] = [
    np.array([3.0, 1.0, 2.0, 3.0]),
    np.array([3, 1, 2, 3]),
    np.array(["c", "a", "b", "c"]),
    np.array(["c", "a", "b", "c"], dtype=object),
    np.array([True, False, False, True]),
]


@pytest.mark.parametrize("y", SETS, ids=lambda y: str(y.dtype))
def test_codes_lead_back_to_labels(y: Any) -> None:
    labels = Labels.of(y)
    codes = labels.encode(y)
    assert sorted(set(y.tolist())) == labels.classes.tolist()
    assert np.array_equal(np.asarray(labels.classes)[codes], y)
    for k, label in enumerate(labels.classes):
        assert np.array_equal(labels.signs(y, k), np.where(codes == k, 1.0, -1.0))
        assert np.array_equal(signs(y, label), labels.signs(y, k))
    assert labels.first_unknown(y) is None


@pytest.mark.parametrize("dtype", [str, object])
def test_a_label_that_is_none_of_the_classes_is_found(dtype: Any) -> None:
    labels = Labels.of(np.array(["a", "b"], dtype=dtype))
    strange = np.array(["a", "z", "b", "y"], dtype=dtype)
    assert labels.encode(strange).tolist() == [0, -1, 1, -1]
    assert labels.first_unknown(strange) == 1
    assert Labels((None, "a")).first_unknown(strange) is None  # all others are the rest


def test_two_classes() -> None:
    assert list(Labels.binary(np.array([1.0, 2.0]), "file").classes) == [1.0, 2.0]
    assert Labels.binary(np.array([1.0, 2.0]), "file", positive=1.0).classes == (2.0, 1.0)
    assert Labels.binary(np.array([1.0, 2.0, 3.0]), "file", positive=2.0).classes == (None, 2.0)
    for found, name, complaint in (
        ([1.0], None, "y holds one class only"),
        ([1.0], "file", "file: all rows have the label 1"),
        ([1, 2, 3], None, r"y holds 3 classes \(1, 2, 3\)"),
        ([1, 2, 3], "file", r"file: 3 classes \(1, 2, 3\) where two are needed; dualgap.one_vs_rest"),
    ):
        with pytest.raises(InputError, match=complaint):
            Labels.binary(np.array(found), name)
    with pytest.raises(InputError, match="no row has the label 4 of --positive; there are: 1, 2"):
        Labels.binary(np.array([1.0, 2.0]), "file", positive=4.0)


def test_labels_are_shown_as_files_write_them() -> None:
    assert [shown_label(label) for label in (1.0, np.float64(-2.5), "spam", None)] == [
        "1",
        "-2.5",
        "spam",
        "rest",
    ]
    assert [plain(label) for label in (np.float64(1.0), np.str_("a"), True)] == [1, "a", True]


def test_words_are_classes_for_one_against_the_rest() -> None:
    rng = np.random.default_rng(0)
    names = np.array(["ant", "bee", "cat"])
    y = names[rng.integers(0, 3, 90)]
    X = np.eye(3)[np.searchsorted(names, y)] + 0.1 * rng.normal(size=(90, 3))
    found = dualgap.one_vs_rest(X, y, C=10.0)
    assert found.classes.tolist() == names.tolist()
    assert (found.predict(X) == y).all()
    assert [outcome.classes for outcome in found.outcomes] == [(None, name) for name in names]
