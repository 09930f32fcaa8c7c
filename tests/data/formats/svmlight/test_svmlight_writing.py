"""Writing svmlight text: what is read back is what was written, and no file is left half written."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from dualgap.data.formats.svmlight import writing as svmlight_writing
from dualgap.data.formats.svmlight.writing import write_blocks
from dualgap.files import read_svmlight, write_svmlight
from dualgap.runtime.errors import InputError

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SINGLES = st.floats(allow_nan=False, allow_infinity=False, width=32)
HARD = st.sampled_from(
    [0.0, -0.0, 5e-324, -2.2250738585072014e-308, 1e308, 1.7976931348623157e308, 2.0**-44, 1e23, 0.1]
)


@st.composite
def matrices(draw: Any) -> tuple[Any, Any]:
    """Rows, some of them empty, and labels."""
    n, d = draw(st.integers(1, 8)), draw(st.integers(1, 12))
    numbers, kind = draw(st.sampled_from([(NUMBERS | HARD, np.float64), (SINGLES, np.float32)]))
    X = np.zeros((n, d), dtype=kind)
    for (i, j), value in draw(
        st.dictionaries(st.tuples(st.integers(0, n - 1), st.integers(0, d - 1)), numbers, max_size=20)
    ).items():
        X[i, j] = value
    return X, np.array(draw(st.lists(NUMBERS | HARD, min_size=n, max_size=n)))


@pytest.mark.slow
@given(rows=matrices(), zero_based=st.booleans(), suffix=st.sampled_from(["", ".gz", ".bz2", ".xz", ".zst"]))
@settings(max_examples=150)
def test_round_trip(tmp_path_factory: Any, rows: Any, zero_based: bool, suffix: str) -> None:
    X, y = rows
    file = tmp_path_factory.getbasetemp() / f"written.svm{suffix}"
    write_svmlight(file, X if X.size % 2 else sp.csc_array(X), y, zero_based=zero_based)
    data = read_svmlight(file, n_features=X.shape[1], zero_based="yes" if zero_based else "no")
    assert (data.X.toarray() == X).all()
    assert data.X.nnz == np.count_nonzero(X)
    assert data.y.tobytes() == y.tobytes()
    assert [data.line(k) for k in range(y.size)] == list(range(1, y.size + 1))


def test_scikit_learn_reads_it_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = sp.random_array(
        (300, 40), density=0.2, rng=rng, format="csr", data_sampler=lambda size: rng.normal(size=size)
    )
    y = rng.normal(size=300)
    write_svmlight(tmp_path / "a.svm", X, y, zero_based=True)
    found, labels = load_svmlight_file(str(tmp_path / "a.svm"), n_features=40, zero_based=True)
    assert (found != X).nnz == 0
    assert np.array_equal(labels, y)


def text_of(X: Any, y: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    write_blocks(stream, [(sp.csr_array(X), np.asarray(y, dtype=float))], **{"zero_based": False, **options})
    return stream.getvalue()


def test_the_text_itself() -> None:
    X = np.array([[0.5, 0.0, -2e-7], [0, 0, 0], [1e22, 1e17, 0.1]])
    assert text_of(X, [1, -1, 2.5]) == b"1 1:0.5 3:-2e-7\n-1\n2.5 1:1e22 2:1e17 3:0.1\n"
    assert text_of(X[:1], [1], zero_based=True) == b"1 0:0.5 2:-2e-7\n"


def test_neither_slices_nor_threads_nor_blocks_make_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 30), density=0.1, rng=rng, format="csr")
    X.data[::7] = 5e-324  # some that compiled code leaves to repr
    y = np.where(np.arange(200) % 3 == 0, 1e300, rng.normal(size=200))
    X = sp.vstack([X, sp.csr_array((50, 30)), X[:3]]).tocsr()
    y = np.concatenate([y, np.zeros(50), y[:3]])
    whole = text_of(X, y, threads=1)
    assert whole.count(b"\n") == 253
    for entries in (1, 3, 17):
        monkeypatch.setattr(svmlight_writing, "_ENTRIES", entries)
        assert text_of(X, y, threads=3) == whole
    stream = io.BytesIO()
    write_blocks(stream, [(X[:100], y[:100]), (X[100:100], y[100:100]), (X[100:], y[100:])], zero_based=False)
    assert stream.getvalue() == whole


@pytest.mark.parametrize(
    ("name", "unpack"),
    [
        ("a.svm.gz", gzip.decompress),
        ("a.svm.bz2", bz2.decompress),
        ("A.SVM.XZ", lzma.decompress),
        ("a.zst", lambda packed: zstandard.ZstdDecompressor().stream_reader(packed).read()),
        ("a.svm", bytes),
    ],
)
def test_files_are_packed_as_their_names_say(tmp_path: Path, name: str, unpack: Any) -> None:
    X, y = np.eye(3), [1, -1, 1]
    for _ in range(2):  # the second time it replaces a file
        write_svmlight(tmp_path / name, X, y)
        assert unpack((tmp_path / name).read_bytes()) == b"1 1:1\n-1 2:1\n1 3:1\n"
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["a.svm", "a.svm.gz", "a.svm.bz2", "a.svm.xz", "a.svm.zst"])
@pytest.mark.parametrize("fault", ["nan", "infinite label", "interrupt"])
def test_nothing_is_left_of_what_goes_wrong_midway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, fault: str
) -> None:
    file = tmp_path / name
    write_svmlight(file, np.eye(2), [1, 2])
    before = file.read_bytes()
    X, y = np.ones((100, 3)), np.ones(100)
    monkeypatch.setattr(svmlight_writing, "_ENTRIES", 10)
    error: type[BaseException] = InputError
    if fault == "nan":
        X[77, 2] = np.nan
    elif fault == "infinite label":
        y[77] = np.inf
    else:
        error = KeyboardInterrupt
        whole = svmlight_writing._formatted

        def interrupted(X: Any, y: Any, base: int) -> Any:
            if y[0] == 3.0:
                raise KeyboardInterrupt
            return whole(X, y, base)

        y[60:] = 3.0
        monkeypatch.setattr(svmlight_writing, "_formatted", interrupted)
    with pytest.raises(error):
        write_svmlight(file, X, y)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_text_has_no_words_for_is_refused(tmp_path: Path, odd: float) -> None:
    for X, y in (([[1.0, odd]], [1.0]), ([[1.0, 2.0]], [odd])):
        with pytest.raises(InputError, match="NaN or infinity"):
            write_svmlight(tmp_path / "a.svm", X, y)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("X", "y", "complaint"),
    [
        (np.eye(3), [1, 2], r"y has shape \(2,\) and X has 3 rows"),
        (np.eye(3), np.ones((3, 1)), r"y has shape \(3, 1\)"),
        (np.ones(3), np.ones(3), r"X has shape \(3,\)"),
        (np.eye(2), ["yes", None], "y .*numbers"),
    ],
)
def test_rows_and_labels_that_do_not_fit(tmp_path: Path, X: Any, y: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        write_svmlight(tmp_path / "a.svm", X, y)
    assert not list(tmp_path.iterdir())


def test_entries_that_stand_for_one_number_are_added_up(tmp_path: Path) -> None:
    X = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    write_svmlight(tmp_path / "a.svm", X, [1])
    assert (tmp_path / "a.svm").read_bytes() == b"1 1:2 3:5\n"
    assert X.indices.tolist() == [2, 0, 2], "the caller's matrix stays as it is"


@pytest.mark.parametrize("column", [2**31 - 1, 2**31, 2**32 - 2])
def test_huge_columns(column: int) -> None:
    X = sp.csr_array((np.array([0.5]), np.array([column]), np.array([0, 1])), shape=(1, column + 1))
    assert text_of(X, [1]) == f"1 {column + 1}:0.5\n".encode()


def test_columns_that_no_reader_could_take_are_refused(tmp_path: Path) -> None:
    X = sp.csr_array((np.array([0.5]), np.array([2**32 + 5]), np.array([0, 1])), shape=(1, 2**33))
    with pytest.raises(InputError, match=f"column {2**32 + 5}"):
        write_svmlight(tmp_path / "a.svm", X, [1])


def test_whole_numbers_and_truth_values(tmp_path: Path) -> None:
    assert text_of(np.array([[3, 0, -7]]), [True]) == b"1 1:3 3:-7\n"
    assert text_of(np.array([[True, False, True]]), [0]) == b"0 1:1 3:1\n"


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(str(tmp_path / "none"))):
        write_svmlight(tmp_path / "none" / "a.svm", np.eye(1), [1])
