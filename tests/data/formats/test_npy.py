"""NumPy arrays as files of rows."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import dualgap
from dualgap.cli import group
from dualgap.data.chunks import OnDisk
from dualgap.data.sources import View
from dualgap.files import DataSpec, Store, convert
from dualgap.runtime.errors import InputError

N, D = 400, 9
TYPES = ("float16", "float32", "float64", ">f4", "bool", "int8", "uint16", "int64")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of rows in float16, of labels of three kinds, and of weights."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, D)).astype(np.float16)
    codes = (X.astype(np.float64) @ rng.normal(size=(D, 3)) + rng.normal(size=(N, 3))).argmax(axis=1)
    np.save("X.npy", X)
    np.save("y.npy", codes > 0)
    np.save("three.npy", codes)
    np.save("words.npy", np.array(["ham", "spam", "eggs"])[codes])
    np.save("w.npy", rng.choice([0.0, 0.5, 2.0], size=N))
    return tmp_path


def array(name: str) -> Any:
    return np.load(f"{name}.npy")


def same(one: Any, other: Any) -> bool:
    return bool(one.coef.tobytes() == other.coef.tobytes())


def test_rows_are_mapped_and_the_model_is_that_of_the_arrays(folder: Path) -> None:
    X, y, weight = array("X"), array("y"), array("w")
    expected = dualgap.fit(X, y, C=0.1, sample_weight=weight)
    for labels, shares in (("y.npy", "w.npy"), (folder / "y.npy", weight), (y, Path("w.npy"))):
        found = dualgap.fit("X.npy", labels, C=0.1, sample_weight=shares)
        assert same(found, expected)
        assert np.array_equal(found.classes, expected.classes)
    source = found.data.source
    assert isinstance(source, View)
    matrix: Any = source.rows.matrix
    assert not matrix.flags.writeable
    base = matrix
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)
    assert same(dualgap.fit(X, "y.npy", C=0.1), dualgap.fit(X, y, C=0.1))
    held_out = dualgap.fit("X.npy", "y.npy", C=0.1, validation=("X.npy", "y.npy"))
    assert same(held_out, dualgap.fit(X, y, C=0.1, validation=(X, y)))


@pytest.mark.parametrize("dtype", TYPES)
def test_types(folder: Path, dtype: str) -> None:
    X = np.abs(3 * array("X")).astype(dtype)
    np.save("Z.npy", X)
    found = dualgap.fit("Z.npy", "y.npy", C=0.01)
    assert same(found, dualgap.fit(X, array("y"), C=0.01))
    streamed = dualgap.fit("Z.npy", "y.npy", C=0.01, in_memory=False)
    assert isinstance(streamed.data.source, OnDisk)
    assert streamed.certificate.relative_gap <= 1e-3
    assert streamed.certificate.dual <= found.certificate.primal
    assert streamed.model.verify(X, array("y")).verdict == "true"
    assert streamed.model.fingerprint == dualgap.fit(X, array("y"), C=0.01, max_epochs=1).model.fingerprint


def test_classes_and_words_in_memory_and_from_disk(folder: Path) -> None:
    many = dualgap.one_vs_rest("X.npy", "three.npy", C=0.1)
    assert same(many, dualgap.one_vs_rest(array("X"), array("three"), C=0.1))
    assert many.decision_function("X.npy").tobytes() == many.decision_function(array("X")).tobytes()
    streamed = dualgap.one_vs_rest("X.npy", "words.npy", C=0.1, sample_weight="w.npy", in_memory=False)
    assert isinstance(streamed.data.source, OnDisk)
    assert streamed.classes.tolist() == ["eggs", "ham", "spam"]
    assert streamed.model.verify("X.npy", "words.npy", "w.npy").verdict == "true"
    assert streamed.model.verify("X.npy", "words.npy").verdict == "not true"
    scored = streamed.model.evaluate("X.npy", "words.npy").values
    assert scored == streamed.model.evaluate(array("X"), array("words")).values


def test_a_matrix_of_labels(folder: Path) -> None:
    Y = np.stack([array("three") == k for k in (0, 1, 2, 3)], axis=1).astype(np.int8)
    np.save("Y.npy", Y)
    with pytest.warns(UserWarning, match="1 of 4 labels has no positive rows"):
        many = dualgap.one_vs_rest("X.npy", "Y.npy", C=0.1)
    with pytest.warns(UserWarning, match="1 of 4 labels has no positive rows"):
        assert same(many, dualgap.one_vs_rest(array("X"), Y, C=0.1))
    assert many.model.evaluate("X.npy", "Y.npy").values == many.model.evaluate(array("X"), Y).values
    frame = pd.DataFrame(Y[:, :3], columns=["a", "b", "c"])
    named = dualgap.one_vs_rest("X.npy", frame, C=0.1)
    assert named.classes.tolist() == ["a", "b", "c"]
    assert named.model.evaluate("X.npy", frame).values == named.model.evaluate(array("X"), frame).values
    with pytest.raises(InputError, match=r"X.npy: has 400 rows and the matrix of labels 399"):
        named.model.evaluate("X.npy", frame[:-1])
    with pytest.warns(UserWarning, match="1 of 4 labels has no positive rows"):
        streamed = dualgap.one_vs_rest("X.npy", "Y.npy", C=0.1, in_memory=False, tol=1e-4)
    assert isinstance(streamed.data.source, OnDisk)
    assert streamed.converged
    assert streamed.without_positives == [3]
    for one, other in zip(streamed.outcomes, many.outcomes, strict=True):
        assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-3)
    assert (streamed.predict("X.npy") == many.predict("X.npy")).mean() > 0.98
    assert streamed.model.verify("X.npy", "Y.npy").verdict == "true"
    with pytest.raises(InputError, match=r"X.npy: has 400 rows and there are 399 labels"):
        dualgap.one_vs_rest("X.npy", Y[:-1], in_memory=False)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_fault_in_a_row_on_disk_is_told(loss: str, folder: Path) -> None:
    X = array("X")
    X[123, 1] = np.nan
    np.save("N.npy", X)
    with pytest.warns(ConvergenceWarning, match=r"N.npy: X contains NaN at row 123, column 1; fill or drop"):
        found = dualgap.fit("N.npy", "y.npy", loss=loss, in_memory=False)
    assert found.reason.name == "broken"


def test_labels_of_validation_rows(folder: Path) -> None:
    train = ("train", "X.npy", "--labels", "y.npy", "-o", "m.model", "--quiet")
    assert run(*train, "--validation", "X.npy", "--validation-labels", "y.npy") == 0
    with pytest.raises(InputError, match=r"--validation X.npy: an array of rows has no labels; add them"):
        run(*train, "--validation", "X.npy")
    with pytest.raises(InputError, match=r"--validation-labels y.npy is for --validation; add that"):
        run(*train, "--validation-labels", "y.npy")
    pair = dualgap.fit("X.npy", "y.npy", validation=("X.npy", "y.npy"))
    assert "validation" in pair.trace[-1].measures


def test_memory_maps_are_used_as_they_are_and_streamed_where_they_must_be(folder: Path) -> None:
    X: Any = np.load("X.npy", mmap_mode="r")
    found = dualgap.fit(X, array("y"), C=0.1)
    assert isinstance(found.data.source, View)
    assert np.shares_memory(found.data.source.rows.matrix, X)
    assert same(found, dualgap.fit(array("X"), array("y"), C=0.1))
    streamed = dualgap.fit(X, array("y"), C=0.1, in_memory=False)
    assert isinstance(streamed.data.source, OnDisk)
    assert streamed.certificate.relative_gap <= 1e-3
    assert streamed.model.verify(array("X"), array("y")).verdict == "true"


def test_a_store_is_made_of_them(folder: Path) -> None:
    convert("X.npy", "rows.arrow", labels="words.npy", weights="w.npy", keep_order=True)
    table = Store("rows.arrow").read()
    assert np.array_equal(table.X.toarray(), array("X"))
    assert table.y.tolist() == array("words").tolist()
    assert np.array_equal(table.weight, array("w"))
    convert("X.npy", "rows.svm", labels="three.npy")
    assert np.array_equal(dualgap.files.read_data("rows.svm").y, array("three"))
    with pytest.raises(InputError, match="labels come from the file"):
        convert("rows.svm", "again.arrow", labels="y.npy")


def run(*arguments: Any) -> Any:
    return group.main([str(word) for word in arguments], standalone_mode=False)


def test_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = ("--labels", "three.npy", "--weights", "w.npy")
    assert run("train", "X.npy", *labels, "-o", "m", "--C", 0.1, "--quiet") == 0
    assert run("certify", "m", "X.npy", *labels, "--quiet") == 0
    capsys.readouterr()
    run("evaluate", "m", "X.npy", "--labels", "three.npy", "--json")
    run("predict", "m", "X.npy", "-o", "labels.txt")
    predicted = [float(line) for line in Path("labels.txt").read_text().split()]
    accuracy = json.loads(capsys.readouterr().out)["accuracy"]
    assert accuracy == np.mean(array("three") == predicted) > 0.5
    run("inspect", "X.npy", "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["n"], told["d"], told["labels"]) == ("npy", N, D, None)
    run("inspect", "X.npy", "--labels", "words.npy", "--json")
    assert set(json.loads(capsys.readouterr().out)["labels"]) == {"ham", "spam", "eggs"}


def test_commands_from_disk_with_all_classes_at_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    joint = ("--labels", "words.npy", "--loss", "multinomial", "--C", 0.1, "--from-disk", "--json")
    assert run("train", "X.npy", *joint, "-o", "m") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["solver"] == "streamed-newton"
    assert told["passes"] >= 2
    assert run("certify", "m", "X.npy", "--labels", "words.npy", "--quiet") == 0
    assert run("predict", "m", "X.npy", "--probabilities", "-o", "p.txt") in (0, None)
    assert np.loadtxt("p.txt").sum(axis=1) == pytest.approx(1.0)


def test_scores_of_rows_without_labels(folder: Path) -> None:
    model = dualgap.fit("X.npy", "y.npy", C=0.1).model
    expected = model.decision_function(array("X"))
    assert model.decision_function("X.npy").tobytes() == expected.tobytes()
    assert model.decision_function(DataSpec("X.npy")).tobytes() == expected.tobytes()


def _damaged(content: bytes) -> None:
    Path("Z.npy").write_bytes(content)


def _rows(X: Any) -> None:
    np.save("Z.npy", X, allow_pickle=True)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda X: _damaged(Path("X.npy").read_bytes()[:-1]), "claims the shape"),
        (lambda X: _damaged(Path("X.npy").read_bytes() + b"0"), "claims the shape"),
        (
            lambda X: _damaged(b"\x93NUMPY\x01\x00\xff\xff"),
            "no NumPy array that can be read, or a damaged one",
        ),
        (lambda X: _rows(np.asfortranarray(X)), "is in Fortran order"),
        (lambda X: _rows(X[:, 0]), r"1 dimension, shape \(400,\)"),
        (lambda X: _rows(X[None]), "3 dimensions"),
        (lambda X: _rows(X[:0]), "holds no rows or no columns"),
        (lambda X: _rows(X[:, :0]), "holds no rows or no columns"),
        (lambda X: _rows(X.astype(complex)), "dtype complex128"),
        (lambda X: _rows(X.astype(np.longdouble)), "holds float128 values"),
        (lambda X: _rows(X.astype("U8")), "holds <U8 values"),
        (lambda X: _rows(np.zeros(3, dtype=[("a", "f4")])), "array of dtype"),
        (lambda X: _rows(X[:-1]), "has 399 rows and there are 400 labels"),
        (lambda X: _rows(np.where(X[7, 2] == X, np.nan, X)), "X contains NaN at row 7, column 2"),
    ],
)
def test_arrays_that_are_refused(folder: Path, make: Any, complaint: str) -> None:
    make(array("X"))
    with pytest.raises(InputError, match=complaint):
        dualgap.fit("Z.npy", "y.npy")


class Bomb:
    """Unpickling this would leave a file behind."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("exploded"),)


def test_nothing_is_unpickled(folder: Path) -> None:
    np.save("Z.npy", np.array([[Bomb()]], dtype=object), allow_pickle=True)
    for X, y in (("Z.npy", "y.npy"), ("X.npy", "Z.npy")):
        with pytest.raises(InputError, match=r"Z.npy: .*dtype object"):
            dualgap.fit(X, y)
    assert not Path("exploded").exists()
    pickle.loads(pickle.dumps(Bomb()))
    assert Path("exploded").exists()


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: dualgap.fit("X.npy"), "an array of rows has no labels"),
        (lambda: dualgap.fit("X.npy", "nowhere.npy"), "nowhere.npy: no NumPy array .there is no such file"),
        (
            lambda: dualgap.fit("X.npy", "w.npy", sample_weight=-np.ones(N), in_memory=False),
            "weight.0. is -1",
        ),
        (lambda: dualgap.fit("X.npy", "y.npy", sample_weight=np.ones(3)), "for each of its 400 rows"),
        (lambda: dualgap.fit("X.npy", np.full(N, np.nan), loss="squared"), "label of row 0 is nan"),
        (lambda: dualgap.fit("X.npy", np.zeros((N, 1))), "labels have shape"),
        (lambda: dualgap.fit(DataSpec("X.npy", "y.npy", format="svmlight")), "come from the file"),
        (lambda: dualgap.fit("X.npy", "y.npy").model.evaluate("X.npy"), "an array of rows has no labels"),
    ],
)
def test_what_does_not_go_together(folder: Path, call: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        call()


def test_a_model_of_other_columns(folder: Path) -> None:
    model = dualgap.fit("X.npy", "y.npy").model
    np.save("Z.npy", array("X")[:, :5])
    with pytest.raises(InputError, match=r"Z.npy: has 5 columns, and 9 are wanted"):
        model.predict("Z.npy")


def test_a_file_that_changes_under_training_is_noticed(folder: Path) -> None:
    def touch(record: Any, run: Any) -> None:
        np.save("X.npy", array("X"))

    found = dualgap.fit("X.npy", "y.npy", C=10.0, tol=1e-9, in_memory=False, callbacks=[touch], lockstep=True)
    assert found.reason.name == "broken"
    assert "X.npy: the file was changed while it was being read" in found.reason.message
