"""Classes that have words for labels on the command line, from the file to predictions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from dualgap.files import load_model, read_data, read_svmlight, write_svmlight
from support.commands import Forks, forks_fixture, write_rows  # noqa: F401


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    """The same rows with numbers and with words as text and as a Parquet file; rows of three classes; a
    model of each.
    """
    place = tmp_path_factory.mktemp("words")
    data = read_svmlight(write_rows(place / "numbers.svm"))
    words = np.where(data.y > 0, "spam", "ham")
    write_svmlight(place / "words.svm", data.X, words)
    write_svmlight(place / "three.svm", data.X, np.where(np.arange(words.size) % 5, words, "größe"))
    columns = {f"f{j}": data.X[:, [j]].toarray()[:, 0] for j in range(data.X.shape[1])}
    column = pa.array(words.tolist()).dictionary_encode()
    pyarrow.parquet.write_table(pa.table({**columns, "label": column}), place / "words.parquet")
    for name in ("numbers", "words"):
        assert forks("train", place / f"{name}.svm", "-o", place / name, "--quiet", "--tol", "1e-6").code == 0
    return place


@pytest.mark.slow
def test_a_model_of_words_is_that_of_numbers(folder: Path, forks: Forks, tmp_path: Path) -> None:
    one, two = load_model(folder / "numbers"), load_model(folder / "words")
    assert (one.coef.tolist(), one.fingerprint) == (two.coef.tolist(), two.fingerprint)
    assert (one.classes, two.classes) == ((-1, 1), ("ham", "spam"))
    numbers = forks("predict", folder / "numbers", folder / "numbers.svm").out.split()
    named = ["spam" if label == "1" else "ham" for label in numbers]
    for file in ("words.svm", "numbers.svm", "three.svm", "words.parquet"):  # labels are not looked at
        assert forks("predict", folder / "words", folder / file).out.split() == named
    assert forks("predict", folder / "words", folder / "words.svm", "--json").json["labels"] == named
    measured = []
    for name in ("numbers", "words"):
        found = forks("evaluate", folder / name, folder / f"{name}.svm", "--json").json
        measured.append({**found, "classes": None})  # which the two have by different names
    assert measured[0] == measured[1]
    assert "of the positive class spam" in forks("evaluate", folder / "words", folder / "words.parquet").out
    for file in ("words.svm", "words.parquet"):
        assert forks("certify", folder / "words", folder / file, "--json").json["verdict"] == "true"
    assert "classification of ham and spam" in forks("inspect", folder / "words").out


@pytest.mark.slow
def test_a_store_keeps_the_words(folder: Path, forks: Forks, tmp_path: Path) -> None:
    store, back = tmp_path / "words.arrow", tmp_path / "back.svm"
    assert forks("convert", folder / "words.svm", store).code == 0
    assert forks("convert", store, back).code == 0
    assert Counter(back.read_text().splitlines()) == Counter((folder / "words.svm").read_text().splitlines())
    assert forks("convert", folder / "words.parquet", tmp_path / "p.arrow", "--keep-order").code == 0
    assert read_data(tmp_path / "p.arrow").y.tolist() == read_data(folder / "words.svm").y.tolist()
    seen = forks("inspect", store, "--json").json
    assert seen["labels"] == dict(Counter(read_data(folder / "words.svm").y.tolist()))
    assert (seen["label_range"], seen["store"]["label_names"]) == (None, ["ham", "spam"])
    assert "ham: " in forks("inspect", store).out
    assert forks("certify", folder / "words", store, "--json").json["verdict"] == "true"
    trained = forks("train", store, "-o", tmp_path / "m", "--from-disk", "--json").json
    assert trained["solver"] == "cached-loops"
    assert load_model(tmp_path / "m").classes == ("ham", "spam")
    assert forks("certify", tmp_path / "m", folder / "words.svm", "--json").json["verdict"] == "true"


@pytest.mark.slow
def test_one_word_against_the_rest(folder: Path, forks: Forks, tmp_path: Path) -> None:
    done = forks("train", folder / "three.svm", "-o", tmp_path / "m", "--positive", "größe", "--quiet")
    assert done.code in (0, 3)
    assert load_model(tmp_path / "m").classes == (None, "größe")
    assert set(forks("predict", tmp_path / "m", folder / "three.svm").out.split()) <= {"rest", "größe"}
    assert "no row has the label egg of --positive; there are: größe, ham, spam" in (
        forks("train", folder / "three.svm", "-o", tmp_path / "m", "--positive", "egg").error
    )


@pytest.mark.slow
def test_labels_that_do_not_belong(folder: Path, forks: Forks, tmp_path: Path) -> None:
    words, three = folder / "words.svm", folder / "three.svm"
    for command in ("evaluate", "certify"):
        assert forks(command, folder / "words", three).error == (
            f"{three}, line 1: label größe is none of the model's, which are ham and spam"
        )
        assert forks(command, folder / "words", folder / "numbers.svm").error.endswith(
            "is none of the model's, which are ham and spam"
        )
        assert forks(command, folder / "numbers", words).error.endswith(
            "is none of the model's, which are -1 and 1"
        )
    assert f"{words}: the labels are words (ham, spam), and a regression loss needs numbers" in (
        forks("train", words, "-o", tmp_path / "m", "--loss", "squared").error
    )
    assert f"{three}, line 1: label größe is none of the training rows'" in (
        forks("train", words, "-o", tmp_path / "m", "--validation", three).error
    )
    regression = forks("train", folder / "numbers.svm", "-o", tmp_path / "r", "--loss", "huber", "--quiet")
    assert regression.code == 0
    assert f"{words}, line 1: the labels are words" in forks("evaluate", tmp_path / "r", words).error
    assert len(forks("predict", tmp_path / "r", words).out.split()) == 200
    mixed = tmp_path / "mixed.svm"
    mixed.write_text("spam 1:1\nham 1:2\n3 1:1\n")
    assert forks("train", mixed, "-o", tmp_path / "m").error == (
        f"{mixed}, line 3, column 1: label '3' is a number, and the labels before it are words; write all "
        "labels as numbers or all as words"
    )
    assert not (tmp_path / "m").exists()
