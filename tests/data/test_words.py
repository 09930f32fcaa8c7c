"""Words as labels: codes and names, the same whatever the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.data import words
from dualgap.data.chunks import OnDisk
from dualgap.data.labels import Labels, for_codes, signs, targets_of
from dualgap.data.summary import summarise
from dualgap.data.table import Table, joined
from dualgap.data.words import Vocabulary, coded, decoded, fault_of
from dualgap.files import (
    ChunkFeed,
    DataSpec,
    ReadOptions,
    open_data,
    parquet_feed,
    scan,
    write_store,
    write_svmlight,
)
from dualgap.models.building import model_of
from dualgap.runtime.errors import InputError

FILES = ("rows.svm", "rows.arrow", "rows.parquet")
ON_DISK = FILES[1:]


def rows(*names: str, n: int = 120, d: int = 6) -> tuple[Any, Any]:
    """Rows of classes that a linear model tells apart, mostly."""
    rng = np.random.default_rng(len(names))
    which = rng.integers(0, len(names), n)
    X = rng.normal(size=(n, d)).round(3) + 1.5 * rng.normal(size=(len(names), d)).round(2)[which]
    return np.where(rng.random((n, d)) < 0.7, X, 0.0), np.array(names)[which]


def written(folder: Path, X: Any, y: Any, column: Any = None) -> Path:
    write_svmlight(folder / "rows.svm", X, y)
    write_store(folder / "rows.arrow", X, y, keep_order=True)
    columns = {f"f{j}": X[:, j] for j in range(X.shape[1])}
    pyarrow.parquet.write_table(
        pa.table({**columns, "label": y if column is None else column}), folder / "rows.parquet"
    )
    return folder


def test_codes_are_positions_among_sorted_names() -> None:
    codes, names = coded(["b", "a", "b", "é"], "y")
    assert (codes.tolist(), codes.dtype, names) == ([1.0, 0.0, 1.0, 2.0], np.float64, ("a", "b", "é"))
    assert decoded(codes, names).tolist() == ["b", "a", "b", "é"]
    assert coded([3, 1], "y")[1] is None
    assert decoded(np.array([3.0, 1.0]), None).tolist() == [3.0, 1.0]
    for kind in (object, str, np.dtypes.StringDType()):
        assert coded(np.array(["x", "y"], dtype=kind), "y")[1] == ("x", "y")


@pytest.mark.parametrize(
    ("word", "fault"),
    [
        ("", "is empty"),
        ("x" * 201, "has 201 characters, and a label has 200 at most"),
        ("two\nlines", "control character"),
        ("a\0", "control character"),
        ("\ud800", "half a character"),
    ],
)
def test_words_that_are_no_labels(tmp_path: Path, word: str, fault: str) -> None:
    assert fault in str(fault_of(word))
    with pytest.raises(InputError, match=f"y: label .* {fault[:20]}"):
        write_store(tmp_path / "a.arrow", np.eye(2), np.array(["x", word], dtype=object))
    assert not any(tmp_path.iterdir())


def test_tables_with_codes_of_their_own_are_joined() -> None:
    X = sp.csr_array(np.eye(2))
    one = Table(Path("f"), X, np.array([0.0, 1.0]), label_names=("b", "c"))
    two = Table(Path("f"), X, np.array([1.0, 0.0]), label_names=("a", "c"))
    whole = joined([one, two])
    assert whole.label_names == ("a", "b", "c")
    assert whole.y.tolist() == ["b", "c", "c", "a"]
    with pytest.raises(InputError, match="f: some labels are words and others are numbers"):
        joined([one, Table(Path("f"), X, np.ones(2))])


def test_more_words_than_could_be_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "MOST_WORDS", 3)
    known = Vocabulary()
    known.recode(np.zeros(1), ("a", "b", "c"), "f")
    with pytest.raises(InputError, match="f: more than 3 different words as labels"):
        known.recode(np.zeros(1), ("d",), "f")


def test_functions_of_labels_are_asked_once_for_each_name() -> None:
    asked = []

    def lengths(labels: Any) -> Any:
        asked.append(labels.tolist())
        return np.char.str_len(labels)

    found = for_codes(lengths, ("a", "bcd"))
    assert found(np.array([1.0, 0.0, 1.0])).tolist() == [3, 1, 3]
    assert found(np.zeros(2)).tolist() == [1, 1]
    assert asked == [["a", "bcd"]]
    assert for_codes(lengths, None) is lengths


def test_codes_are_never_taken_for_labels() -> None:
    with pytest.raises(InputError, match="the labels are numbers, and the class spam is a word"):
        signs(np.array([0.0, 1.0]), "spam")


def test_numbers_and_words_are_alike_if_written_alike() -> None:
    digits, numbers = Labels(("0", "1")), Labels((0.0, 1.0))
    assert digits.alike([1.0, 0.0, 2.5]).tolist() == ["1", "0", "2.5"]
    assert numbers.alike(["1", "0"]).tolist() == [1.0, 0.0]
    assert numbers.first_unknown(numbers.alike(["1", "01"])) == 1
    assert targets_of(numbers, ("0", "1"))(np.array([1.0, 0.0])).tolist() == [1.0, -1.0]
    assert targets_of(digits)(np.array([1.0, 0.0])).tolist() == [1.0, -1.0]
    assert Labels.binary(np.array(["1", "2", "3"]), "f", 2.0).classes == (None, "2")
    assert Labels.binary(np.array([1.0, 2.0]), "f", "1").classes == (2.0, 1.0)


@pytest.mark.parametrize("file", FILES)
def test_every_format_holds_words(tmp_path: Path, file: str) -> None:
    X, y = rows("ham", "spam")
    written(tmp_path, X, y)
    data = open_data(DataSpec(tmp_path / file), "classification")
    assert data.labels is not None
    assert data.labels.plain == ("ham", "spam")
    assert np.array_equal(data.source.y, np.where(y == "spam", 1.0, -1.0))
    tables = list(scan(DataSpec(tmp_path / file, columns=ReadOptions(block=500))))
    assert np.concatenate([table.y for table in tables]).tolist() == y.tolist()
    arrays = dualgap.fit(sp.csr_array(X), y, C=0.1, tol=1e-6)
    found = dualgap.fit(tmp_path / file, C=0.1, tol=1e-6)
    assert np.array_equal(found.coef, arrays.coef)
    assert list(found.classes) == list(arrays.classes) == ["ham", "spam"]
    assert summarise(tmp_path / file).labels == {"ham": (y == "ham").sum(), "spam": (y == "spam").sum()}


@pytest.mark.parametrize("file", FILES)
def test_one_word_against_the_rest(tmp_path: Path, file: str) -> None:
    X, y = rows("ant", "bee", "cat")
    written(tmp_path, X, y)
    arrays = dualgap.one_vs_rest(sp.csr_array(X), y, C=0.1, tol=1e-6)
    found = dualgap.one_vs_rest(tmp_path / file, C=0.1, tol=1e-6)
    assert found.classes.tolist() == arrays.classes.tolist() == ["ant", "bee", "cat"]
    assert np.array_equal(found.coef, arrays.coef)
    one = dualgap.fit(DataSpec(tmp_path / file, positive="bee"), C=0.1, tol=1e-6)
    assert np.array_equal(one.coef, arrays.coef[1])
    assert one.classes == (None, "bee")
    with pytest.raises(InputError, match=r"3 classes \(ant, bee, cat\) where two are needed"):
        dualgap.fit(tmp_path / file)
    with pytest.raises(InputError, match="no row has the label dog of --positive; there are: ant, bee, cat"):
        dualgap.fit(DataSpec(tmp_path / file, positive="dog"))


@pytest.mark.parametrize("file", ON_DISK)
def test_words_are_trained_from_disk(tmp_path: Path, file: str) -> None:
    X, y = rows("ham", "spam")
    written(tmp_path, X, y)
    disk = open_data(DataSpec(tmp_path / file, in_memory=False), "classification")
    assert isinstance(disk.source, OnDisk)
    assert disk.source.target_weights == [(-1.0, (y == "ham").sum()), (1.0, (y == "spam").sum())]
    model = model_of(dualgap.fit(disk, C=0.1, tol=1e-4), disk)
    assert model.classes == ("ham", "spam")
    assert model.fingerprint == open_data(DataSpec(X, y), "classification").identity().fingerprint
    for again in FILES:
        assert model.verify(tmp_path / again).verdict == "true"
        assert model.verify(DataSpec(tmp_path / again, in_memory=again == "rows.svm")).verdict == "true"
    swapped = dualgap.one_vs_rest(tmp_path / file, C=0.1, tol=1e-3, in_memory=False)
    assert swapped.classes.tolist() == ["ham", "spam"]
    assert (swapped.predict(X) == y).mean() > 0.8


@pytest.mark.parametrize("file", FILES)
def test_words_are_no_numbers(tmp_path: Path, file: str) -> None:
    X, y = rows("ham", "spam")
    written(tmp_path, X, y)
    with pytest.raises(InputError, match=r"labels are words \(ham, spam\), and a regression loss needs"):
        dualgap.fit(tmp_path / file, loss="squared")
    if file in ON_DISK:
        with pytest.raises(InputError, match=r"labels are words \(ham, spam\), and a regression loss needs"):
            dualgap.fit(tmp_path / file, loss="squared", in_memory=False)
    data = open_data(DataSpec(X, np.arange(120.0)), "regression")
    with pytest.raises(InputError, match=r"the labels are words .*regression loss needs numbers"):
        model_of(dualgap.fit(data, loss="squared", C=0.1), data).verify(tmp_path / file)


@pytest.mark.parametrize("file", FILES)
def test_labels_are_matched_by_name(tmp_path: Path, file: str) -> None:
    X, y = rows("ham", "spam")
    data = open_data(DataSpec(X, y), "classification")
    for folder, labels in (("same", y), ("other", np.where(y == "ham", "egg", y))):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder, X, labels)
    same = tmp_path / "same" / file
    held = open_data(DataSpec(same), "classification", data.schema)
    assert np.array_equal(held.source.y, data.source.y)
    first = y.tolist().index("ham")
    place = f"line {first + 1}" if file == "rows.svm" else f"row {first}"
    unknown = f"{place}: label egg is none of the training rows', which are ham and spam"
    with pytest.raises(InputError, match=unknown):
        open_data(DataSpec(tmp_path / "other" / file), "classification", data.schema)
    if file in ON_DISK:
        with pytest.raises(InputError, match="label egg is none of the training rows'"):
            open_data(DataSpec(tmp_path / "other" / file, in_memory=False), "classification", data.schema)
        streamed = open_data(DataSpec(same, in_memory=False), "classification", data.schema)
        assert np.array_equal(
            np.concatenate([part.batch.y for part in streamed.source.parts()]), data.source.y
        )


def test_a_schema_is_true_to_names_where_codes_differ(tmp_path: Path) -> None:
    """Of one class alone, or of two in another order, the codes are others."""
    X, y = rows("ham", "spam")
    data = open_data(DataSpec(X, y), "classification")
    only = y == "spam"
    write_store(tmp_path / "a.arrow", X[only], y[only])
    for in_memory in (True, False):
        held = open_data(DataSpec(tmp_path / "a.arrow", in_memory=in_memory), "classification", data.schema)
        assert (np.concatenate([part.batch.y for part in held.source.parts()]) == 1.0).all()
    backwards = open_data(DataSpec(X, y, positive="ham"), "classification").schema
    held = open_data(DataSpec(tmp_path / "a.arrow"), "classification", backwards)
    assert (held.source.y == -1.0).all()


@pytest.mark.parametrize("kind", ["string", "large_string", "dictionary", "dictionary of numbers"])
def test_kinds_of_columns_in_parquet_files(tmp_path: Path, kind: str) -> None:
    X, y = rows("7", "9")
    column = pa.array(y.tolist())
    if kind == "large_string":
        column = column.cast(pa.large_string())
    elif kind == "dictionary":
        column = column.dictionary_encode()
    elif kind == "dictionary of numbers":
        column = pa.array(y.astype(int)).dictionary_encode()
    written(tmp_path, X, y, column)
    found = dualgap.fit(tmp_path / "rows.parquet", C=0.1)
    assert list(found.classes) == ([7.0, 9.0] if kind == "dictionary of numbers" else ["7", "9"])


def test_labels_that_parquet_files_should_not_have(tmp_path: Path) -> None:
    X, y = rows("ham", "spam")
    for column, complaint in (
        (pa.array([None, *y[1:].tolist()]), "column 'label' has missing values"),
        (pa.array(["", *y[1:].tolist()]), "column 'label': label '' is empty"),
        (pa.array([b"x"] * 120), "column 'label' holds binary, and not numbers"),
    ):
        written(tmp_path, X, y, column)
        with pytest.raises(InputError, match=f"rows.parquet: {complaint}"):
            dualgap.fit(tmp_path / "rows.parquet", C=0.1)
        with pytest.raises(InputError, match=complaint):
            list(scan(DataSpec(tmp_path / "rows.parquet")))
        unread = scan(DataSpec(tmp_path / "rows.parquet", columns=ReadOptions(labelled=False)))
        assert np.array_equal(next(unread).X.toarray(), X)


def test_several_parquet_files_have_labels_of_one_kind(tmp_path: Path) -> None:
    X, y = rows("ham", "spam")
    files = []
    for k, labels in enumerate((y, np.where(y == "ham", "egg", y), np.ones(120))):
        (tmp_path / str(k)).mkdir()
        files.append(written(tmp_path / str(k), X, labels) / "rows.parquet")
    feed = parquet_feed(files[:2], label="label")
    assert feed.origin.label_names == ("egg", "ham", "spam")
    tables = list(scan(DataSpec(feed)))
    assert np.concatenate([table.y for table in tables]).tolist() == [*y, *np.where(y == "ham", "egg", y)]
    with pytest.raises(InputError, match="some labels are words and others are numbers"):
        parquet_feed(files[1:], label="label")


def test_a_feed_whose_words_change(tmp_path: Path) -> None:
    X, y = rows("ham", "spam")
    given = [y.tolist()]
    feed = ChunkFeed(lambda: iter([(X, given[0])]), name="mine")
    assert feed.labels == [(0.0, float((y == "ham").sum())), (1.0, float((y == "spam").sum()))]
    assert feed.load(0, True).y.tolist() == [float(word == "spam") for word in y]
    for other in (["egg"] * 120, [1.0] * 120):
        given[0] = other
        with pytest.raises(InputError, match="mine: chunk 0 has other labels than before"):
            feed.load(0, False)
    numbers = ChunkFeed(lambda: iter([(X, given[0])]), name="mine")
    given[0] = y.tolist()
    with pytest.raises(InputError, match="mine: chunk 0 has other labels than before"):
        numbers.load(0, False)


def test_rows_that_repeat_are_counted_by_their_words(tmp_path: Path) -> None:
    """Blocks of a text have codes of their own."""
    file = tmp_path / "rows.svm"
    file.write_text("b 1:1\nc 1:1\n" + "# filler\n" * 3 + "c 1:1\na 1:1\nb 1:1\n")
    found = summarise(file, ReadOptions(block=12))
    assert (found.labels, found.duplicates, found.label_range) == ({"b": 2, "c": 2, "a": 1}, 2, None)
