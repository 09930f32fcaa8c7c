"""Reading svmlight text: what is right is read right, what is wrong is named with its file and line."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualgap.errors import InputError
from dualgap.files import svmlight, svmlight_lines, text
from dualgap.files.svmlight import read_svmlight

GOOD = b"+1 1:0.5 3:-2e-1\n-1 2:1\n1\n-1 1:.25 2:3. 4:7\n"


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def _write(content: bytes, name: str = "rows.svm") -> Path:
        file = tmp_path / name
        file.write_bytes(content)
        return file

    return _write


def test_reads_what_is_written(write: Any) -> None:
    data = read_svmlight(write(GOOD))
    assert data.X.toarray().tolist() == [[0.5, 0, -0.2, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0.25, 3, 0, 7]]
    assert data.y.tolist() == [1, -1, 1, -1]
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.lines.tolist() == [1, 2, 3, 4]
    assert not data.zero_based
    assert "count from 1" in data.notes[0]


def test_comments_blank_lines_crlf_order_and_a_missing_last_newline(write: Any) -> None:
    text = b"\xef\xbb\xbf# a heading: 1:2\r\n\r\n  1 3:3 1:1 # tail\r\n\t\n#\n-1\t2:2"
    data = read_svmlight(write(text))
    assert data.X.toarray().tolist() == [[1, 0, 3], [0, 2, 0]]
    assert data.X.has_sorted_indices
    assert data.lines.tolist() == [3, 6]


def test_qid_is_ignored_and_said_to_be(write: Any) -> None:
    data = read_svmlight(write(b"2 qid:7 1:1\n1 qid:7 2:1\n0 2:3\n"))
    assert data.X.toarray().tolist() == [[1, 0], [0, 1], [0, 3]]
    assert any("qid ignored on 2 lines" in note for note in data.notes)


@pytest.mark.parametrize(
    ("zero_based", "content", "expected"),
    [
        ("auto", b"1 0:5 1:6\n", [[5, 6]]),
        ("auto", b"1 1:5 2:6\n", [[5, 6]]),
        ("yes", b"1 1:5 2:6\n", [[0, 5, 6]]),
        ("no", b"1 1:5 2:6\n", [[5, 6]]),
    ],
)
def test_the_base_of_indices(write: Any, zero_based: Any, content: bytes, expected: list[list[float]]) -> None:
    data = read_svmlight(write(content), zero_based=zero_based)
    assert data.X.toarray().tolist() == expected
    assert data.zero_based == (b"0:" in content or zero_based == "yes")


def test_the_number_of_features_can_be_given(write: Any) -> None:
    assert read_svmlight(write(GOOD), n_features=9).X.shape == (4, 9)
    assert read_svmlight(write(b"1\n-1\n"), n_features=2).X.shape == (2, 2)


@pytest.mark.parametrize(("name", "pack"), [("a.gz", gzip.compress), ("a.bz2", bz2.compress), ("A.XZ", lzma.compress)])
def test_compressed_files(write: Any, name: str, pack: Any) -> None:
    rows = GOOD * 2000
    packed = pack(rows)
    assert (read_svmlight(write(packed, name)).X != read_svmlight(write(rows)).X).nnz == 0
    for cut in (8, len(packed) // 2, len(packed) - 1):
        with pytest.raises(InputError, match="(?i)" + name + ": the .* data are damaged or cut short"):
            read_svmlight(write(packed[:cut], name))
    with pytest.raises(InputError, match=r"rename it to .*rows\.svm" + name[1:].lower()):
        read_svmlight(write(packed, "rows.svm"))
    with pytest.raises(InputError, match="the name promises"):
        read_svmlight(write(rows, name))


def test_a_compressed_file_under_the_name_of_another(write: Any) -> None:
    with pytest.raises(InputError, match=r"gzip data .* rename it to .*a\.svm\.gz"):
        read_svmlight(write(gzip.compress(GOOD), "a.svm.xz"))


@pytest.mark.parametrize(
    ("content", "line", "complaint"),
    [
        (b"1 1:1\nyes 1:1\n", 2, "label 'yes' is not a number"),
        (b"1 1:1\nnan 1:1\n", 2, "label 'nan' is not finite"),
        (b"1 1:1\n1 2:x\n", 2, "value 'x' of index 2 is not a number"),
        (b"1 1:1\n\n1 2:\n", 3, "value '' of index 2 is not a number"),
        (b"1 1:1_0\n", 1, "value '1_0' of index 1 is not a number"),
        (b"1 1:0x1\n", 1, "value '0x1' of index 1 is not a number"),
        (b"1 1:1-2\n", 1, "value '1-2' of index 1 is not a number"),
        (b"1 1:1-2 2:\n", 1, "value '1-2' of index 1 is not a number"),
        (b"1 1:1.2.3\n", 1, "value '1.2.3' of index 1 is not a number"),
        (b"1 1:NaN\n", 1, "value 'NaN' of index 1 is not finite"),
        (b"1 1:1\n1 1:-inf\n", 2, "value '-inf' of index 1 is not finite"),
        (b"1 1:1e999\n", 1, "value '1e999' of index 1 does not fit"),
        (b"1 1:1\n1 -3:1\n", 2, "index '-3' in '-3:1' is below 0"),
        (b"1 1.5:1\n", 1, "index '1.5' in '1.5:1' is not a whole number"),
        (b"1 1e2:1\n", 1, "index '1e2' in '1e2:1' is not a whole number"),
        (b"1 +1:1\n", 1, "index '+1' in '+1:1' is not a whole number"),
        (b"1 1:1\n1 2 3:1\n", 2, "'2' should be index:value"),
        (b"1 1 : 1\n", 1, "'1' should be index:value"),
        (b"1 1:2:3\n", 1, "value '2:3' of index 1 is not a number"),
        (b"1 1:1\n1:1 2:1\n", 2, "begins with '1:1' where its label should be"),
        (b"1 1:1\n1,3 5:1\n", 2, "'1,3' is several labels"),
        (b"1 1:1\n-1 3:1 4:1 3:2\n", 2, "index 3 occurs twice"),
        (b"1 1:1\n\n# x\n-1 5:1 5:2\n", 4, "index 5 occurs twice"),
        (b"1 1:1\n1 qid:1 qid:2\n", 2, "'qid:2' is out of place"),
        (b"1 1:1\n\x00\x01\x02", 2, "byte 0x00 where text was expected"),
        ("1 1:1\n1 1:½\n".encode(), 2, "of index 1 is not a number"),
        (b"1 1:1\n1 99999999999999999999:1\n", 2, "too large for any model"),
    ],
)
@pytest.mark.parametrize("piece", [text.PIECE, 5])
def test_faults_are_named_with_their_line(
    write: Any, monkeypatch: pytest.MonkeyPatch, piece: int, content: bytes, line: int, complaint: str
) -> None:
    monkeypatch.setattr(text, "PIECE", piece)
    file = write(content)
    with pytest.raises(InputError) as caught:
        read_svmlight(file)
    assert str(caught.value).startswith(f"{file}, line {line}: ")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_indices_out_of_range_are_named_with_their_line(write: Any) -> None:
    file = write(b"1 1:1\n\n-1 0:1 4:1\n")
    with pytest.raises(InputError, match="line 3: index 0 where indices count from 1"):
        read_svmlight(file, zero_based="no")
    with pytest.raises(InputError, match="line 3: index 4 is beyond the 4 features; raise n_features"):
        read_svmlight(file, n_features=4)
    with pytest.raises(InputError, match="line 1: index 4 is beyond the 3 features"):
        read_svmlight(write(b"1 3:1 4:1\n-1 3:1\n"), n_features=3)


def test_a_huge_index_in_a_small_file_names_the_memory_and_the_way_out(write: Any) -> None:
    with pytest.raises(InputError, match=r"line 2: index 4000000000000 .* GB .*--n-features .*hashing") as caught:
        read_svmlight(write(b"1 1:1\n-1 4000000000000:1\n"))
    assert "1.92e+05 GB" in str(caught.value)
    with pytest.raises(InputError, match="n_features=4000000000000 means"):
        read_svmlight(write(GOOD), n_features=4 * 10**12)


def test_an_index_beyond_float64_is_still_exact(write: Any) -> None:
    with pytest.raises(InputError, match=f"index {2**53 + 1} means"):
        read_svmlight(write(f"1 {2**53 + 1}:1\n".encode()))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "the file is empty"),
        (b"\n# nothing\n\n", "no rows"),
        (b"1\n-1\n", "no row has any feature"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"\x93NUMPY\x01\x00", "NumPy"),
        ("1 1:1\n".encode("utf-16"), "UTF-16"),
    ],
)
def test_files_that_hold_no_rows(write: Any, content: bytes, complaint: str) -> None:
    file = write(content)
    with pytest.raises(InputError, match=complaint) as caught:
        read_svmlight(file)
    assert str(caught.value).startswith(f"{file}: ")


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.svm: no such file"):
        read_svmlight(tmp_path / "nowhere.svm")
    with pytest.raises(InputError, match="is a folder"):
        read_svmlight(tmp_path)


@pytest.mark.parametrize("arguments", [{"zero_based": "maybe"}, {"n_features": 0}])
def test_wrong_arguments(write: Any, arguments: Any) -> None:
    with pytest.raises(InputError, match=next(iter(arguments))):
        read_svmlight(write(GOOD), **arguments)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.lists(st.tuples(NUMBERS, st.dictionaries(st.integers(0, 2**40), NUMBERS, max_size=6)), max_size=8)


@given(rows=ROWS, blanks=st.lists(st.sampled_from([" ", "\t", "  ", " \r"]), min_size=1), newline=st.booleans())
@settings(deadline=None, max_examples=150)
def test_both_parsers_take_exactly_the_numbers_written(rows: Any, blanks: list[str], newline: bool) -> None:
    lines, turn = [], 0
    for label, entries in rows:
        line = repr(label)
        for index, value in entries.items():
            line += blanks[turn % len(blanks)] + f"{index}:{value!r}"
            turn += 1
        lines.append(line)
    content = ("\n".join(lines) + "\n" * newline).encode()
    quick = svmlight._parse_plain(content, 5)
    assert quick is not None, "plain text must not need the slow parser"
    careful = svmlight.Part(*svmlight_lines.parse(Path("x"), content, 5))
    for one, other in zip(quick, careful, strict=True):
        assert np.array_equal(one, other)
    assert quick.labels.tolist() == [label for label, _ in rows]
    assert quick.values.tolist() == [value for _, entries in rows for value in entries.values()]
    assert quick.indices.tolist() == [index for _, entries in rows for index in entries]
    assert quick.lines.tolist() == [5 + k for k in range(len(rows))]


def test_a_damaged_file_is_refused_or_read_but_never_breaks(write: Any) -> None:
    rng = np.random.default_rng(0)
    plain = b"".join(b"%d %d:%.3f 7:1e-3 # c\n" % (1 - 2 * (k % 2), 1 + k % 5, k / 7) for k in range(40))
    files = [
        (plain, "a.svm"),
        (gzip.compress(plain), "a.gz"),
        (bz2.compress(plain), "a.bz2"),
        (lzma.compress(plain), "a.xz"),
    ]
    refused = []
    for turn in range(400):
        good, name = files[turn % len(files)]
        bad = bytearray(good)
        for _ in range(rng.integers(1, 4)):
            bad[rng.integers(len(bad))] = rng.integers(256)
        if turn % 5 == 0:
            bad = bad[: rng.integers(len(bad))]
        try:
            data = read_svmlight(write(bytes(bad), name))
        except InputError as error:
            refused.append(str(error))
        else:
            assert np.isfinite(data.X.data).all()
            assert np.isfinite(data.y).all()
            assert data.X.has_canonical_format
    assert len(refused) > 200
    assert not any("\n" in message for message in refused)


@pytest.mark.data
def test_real_files_as_scikit_learn_reads_them(data_folder: Path) -> None:
    from sklearn.datasets import load_svmlight_file

    data = read_svmlight(data_folder / "a9a.svm.bz2")
    X, y = load_svmlight_file(str(data_folder / "a9a.svm.bz2"), zero_based=False)
    assert data.X.shape == (32561, 123)
    assert (data.X != X).nnz == 0
    assert np.array_equal(data.y, y)
