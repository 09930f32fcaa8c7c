"""Svmlight text whose labels are words: the same rows as with numbers, and the same faults in the same
places.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualgap.data.formats import text
from dualgap.data.formats.svmlight.lines import is_word
from dualgap.data.formats.svmlight.reading import counts_from_zero, read_svmlight, stream_svmlight
from dualgap.data.words import LONGEST, fault_of
from dualgap.files import Store, convert, read_data, write_store, write_svmlight
from dualgap.runtime.errors import InputError

GOOD = "spam 1:0.5 3:-2e-1\n\n# 1 1:1\nham 2:1 # tail\r\n  grün\tqid:3 3:3. 1:.25\r\nspam\nham 4:7"
LABELS = ["spam", "ham", "grün", "spam", "ham"]


def words() -> st.SearchStrategy[str]:
    """Words that text can hold."""
    letters = st.characters(exclude_characters=" \t\r\v\f:,;#", exclude_categories=("Cc", "Cs"))
    return st.text(letters, min_size=1, max_size=12).filter(lambda word: is_word(word.encode()))


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(content: bytes, name: str = "rows.svm") -> Path:
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return written


@pytest.mark.parametrize("piece", [text.PIECE, 3, 20])
@pytest.mark.parametrize("kind", ["plain", "gzip", "mark"])
def test_rows_are_those_that_numbers_would_have(
    write: Any, monkeypatch: pytest.MonkeyPatch, piece: int, kind: str
) -> None:
    monkeypatch.setattr(text, "PIECE", piece)
    content = GOOD.encode()
    file = write(gzip.compress(content), "rows.svm.gz") if kind == "gzip" else write(content)
    if kind == "mark":
        file.write_bytes(b"\xef\xbb\xbf" + content)
    found = read_svmlight(file)
    assert found.y.tolist() == LABELS
    assert found.label_names == ("grün", "ham", "spam")
    assert found.codes.tolist() == [2.0, 1.0, 0.0, 2.0, 1.0]
    numbers = GOOD
    for code, name in enumerate(found.label_names):
        numbers = numbers.replace(name, str(code))
    same = read_svmlight(write(numbers.encode(), "numbers.svm"))
    assert same.codes.tolist() == found.codes.tolist()
    assert (same.X != found.X).nnz == 0
    assert (same.notes, same.zero_based) == (found.notes, found.zero_based)
    assert [same.line(k) for k in range(5)] == [found.line(k) for k in range(5)] == [1, 4, 5, 6, 7]
    assert not counts_from_zero(file)
    blocks = list(stream_svmlight(file, block=piece))
    assert [label for block in blocks for label in block.y.tolist() if block.n] == LABELS


def test_labels_that_are_numbers_have_no_names(write: Any) -> None:
    found = read_svmlight(write(b"# x\n0 1:1\n9 1:2\n"))
    assert (found.label_names, found.y.tolist(), found.y.dtype) == (None, [0.0, 9.0], np.float64)


@pytest.mark.parametrize(
    ("content", "line", "column", "complaint"),
    [
        (
            b"spam 1:1\n\n1 1:1\n",
            3,
            1,
            "label '1' is a number, and the labels before it are words",
        ),
        (b"1 1:1\n spam 1:1\n", 2, 2, "label 'spam' is not a number, and the labels before it are; write"),
        (b"spam 1:1\nnan 1:1\n", 2, 1, "label 'nan' is not finite; fill in missing values"),
        (b"inf 1:1\nspam 1:1\n", 1, 1, "label 'inf' is not finite"),
        (
            b"spam 1:1\n  1st 1:1\n",
            2,
            3,
            "label '1st' is not a number, and no word, which would",
        ),
        (b"+spam 1:1\n", 1, 1, "label '+spam' is not a number, and no word"),
        (b"a;b 1:1\n", 1, 1, "label 'a;b' is not a number, and no word"),
        (b"caf\xe9 1:1\n", 1, 1, r"label 'caf\\xe9' is not UTF-8 text; convert the file, with iconv"),
        (b"spam 1:1\ncaf\xe9 1:1\n", 2, 1, r"label 'caf\\xe9' is not UTF-8 text"),
        (b"spam 1:1\n" + b"x" * 201 + b" 1:1\n", 2, 1, "has 201 characters, and a label has 200 at most"),
        (b"spam 1:1\nx\xc2\x85y 1:1\n", 2, 1, "has a control character"),
        (b"spam 1:1\nx\x01y 1:1\n", 2, 2, "byte 0x01 where text was expected"),
        (b"spam 1:1\nham,egg 1:1\n", 2, 1, "'ham,egg' is several labels"),
        (b"spam,ham 1:1\n", 1, 1, "'spam,ham' is several labels"),
        (b"spam 1:1\n2:1\n", 2, 1, "the line begins with '2:1' where its label should be"),
        (b"spam 1:1\nc# 1:1\n", 2, 1, "label 'c#' ends in a #, which begins a comment; put a blank"),
        (b"c# 1:1\nc 1:1\n", 1, 1, "label 'c#' ends in a #, which begins a comment"),
        (b"c 1:1\nc# 1:1\n", 2, 1, "label 'c#' ends in a #, which begins a comment"),
        (b"spam 1:1\nham 2:x\n1 1:1\n", 2, 5, "value 'x' of index 2 is not a number"),
        (b"spam 1:1\nham 1:1 3:1 2:1 3:2\n", 2, 17, "index 3 occurs twice"),
        (b"spam 1:1\n\tham 1:1 qid:2\n", 2, 10, "'qid:2' is out of place"),
        (b"spam 1:1\nham 2 3:1\n", 2, 5, "'2' should be index:value"),
        ("größe 1:1\ngrün 1:1 ü:1\n".encode(), 2, 10, "index 'ü' in 'ü:1' is not a whole number"),
        (b"spam 99999999999999999999:1\n", 1, 6, "too large for any model"),
        (b"name\tage\theight\n", 1, 1, "this looks like TSV (tabs)"),
        (b"name age height\n", 1, 1, "this looks like a table (blanks)"),
        (b"name,age\n1,2\n", 1, 1, "this looks like CSV (commas)"),
        (b"spam 1:1\nname;age\n1;2\n", 2, 1, "this looks like CSV (semicolons)"),
        (b"Dear reader\n", 1, 6, "'reader' should be index:value"),
        (b'{\n "a": 1}\n', 2, 2, "the line begins with '\"a\":' where its label should be"),
    ],
)
def test_faults_are_named_with_their_line(
    write: Any, monkeypatch: pytest.MonkeyPatch, content: bytes, line: int, column: int, complaint: str
) -> None:
    file = write(content)
    for piece in (text.PIECE, 5):
        monkeypatch.setattr(text, "PIECE", piece)
        for reading in (read_svmlight, lambda path: list(stream_svmlight(path, zero_based="yes"))):
            with pytest.raises(InputError) as caught:
                reading(file)
            place, _, rest = str(caught.value).partition(": ")
            assert place == f"{file}, line {line}, column {column}"
            assert complaint in rest
            assert "\n" not in rest


def test_an_index_that_is_too_high_once_it_is_known_how_they_count(write: Any) -> None:
    file = write(b"spam 1:1\n\nham 0:1 4:1\n")
    with pytest.raises(InputError, match="line 3, column 9: index 4 is beyond the 4 features"):
        read_svmlight(file, n_features=4)
    with pytest.raises(InputError, match="line 3, column 5: index 0 where indices count from 1"):
        read_svmlight(file, zero_based="no")


@pytest.mark.parametrize("kind", [str, object])
def test_words_are_written(tmp_path: Path, kind: Any) -> None:
    file = tmp_path / "rows.svm"
    X = np.array([[0.5, 0.0], [0.0, 0.0], [1.0, 2.0]])
    write_svmlight(file, X, np.array(["ham", "spam", "grün"], dtype=kind))
    assert file.read_text(encoding="utf-8") == "ham 1:0.5\nspam\ngrün 1:1 2:2\n"


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        (["New York", "x"], "label 'New York' cannot be written: in svmlight text a word has no blanks"),
        (["x", "a:b"], "label 'a:b' cannot be written"),
        (["x", "nan"], "label 'nan' cannot be written"),
        (["x", ""], "label '' cannot be written"),
        (["x", "1st"], "label '1st' cannot be written"),
        (["x", "\ud800"], r"label '\ud800' cannot be written"),
        (["007", "7"], "label '007' cannot be written"),
        (["1", "x"], "label 'x' would be read as a word, and others as numbers"),
    ],
)
def test_words_that_text_cannot_hold(tmp_path: Path, labels: list[str], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        write_svmlight(tmp_path / "rows.svm", np.eye(2), labels)
    assert str(caught.value).startswith(complaint)
    assert not any(tmp_path.iterdir())


def test_words_that_are_numbers_are_read_as_these(tmp_path: Path) -> None:
    write_svmlight(tmp_path / "rows.svm", np.eye(3), ["0", "-1", "2.5"])
    assert read_svmlight(tmp_path / "rows.svm").y.tolist() == [0.0, -1.0, 2.5]


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_words_survive_the_way_to_a_store_and_back(tmp_path: Path, data: st.DataObject) -> None:
    names = data.draw(st.lists(words(), min_size=1, max_size=6, unique=True))
    labels = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=30))
    assert all(len(name) <= LONGEST and fault_of(name) is None for name in names)
    entries = st.floats(allow_nan=False, allow_infinity=False, width=32)
    X = np.array(data.draw(st.lists(st.tuples(entries, entries), min_size=len(labels), max_size=len(labels))))
    first, store, last = (tmp_path / name for name in ("a.svm", "b.arrow", "c.svm"))
    write_svmlight(first, sp.csr_array(X), labels)
    assert read_svmlight(first, n_features=2).y.tolist() == labels
    convert(first, store, keep_order=True, n_features=2)
    assert Store(store).read().y.tolist() == labels
    assert Store(store).header.label_names == sorted(set(labels))
    convert(store, last)
    assert last.read_bytes() == first.read_bytes()
    convert(first, store, n_features=2, seed=1)
    assert sorted(read_data(store).y.tolist()) == sorted(labels)
    write_store(tmp_path / "d.arrow", X.astype(np.float32), labels, keep_order=True)
    assert Store(tmp_path / "d.arrow").read().y.tolist() == labels
