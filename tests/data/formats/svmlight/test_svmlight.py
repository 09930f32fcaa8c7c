"""Reading svmlight text: what is right is read right, what is wrong is named with its file, line and
column.
"""

from __future__ import annotations

import bz2
import fcntl
import gzip
import io
import lzma
import os
import re
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from dualgap.data.formats import text
from dualgap.data.formats.svmlight import reading as svmlight
from dualgap.data.formats.svmlight.lines import LineError, Range, parse_line
from dualgap.data.formats.svmlight.pieces import HIGHEST, PieceError, parse_piece
from dualgap.data.formats.svmlight.reading import counts_from_zero, read_svmlight, stream_svmlight
from dualgap.data.summary import summarise
from dualgap.data.table import Table
from dualgap.files import convert, stream_data
from dualgap.runtime.errors import InputError

GOOD = b"+1 1:0.5 3:-2e-1\n-1 2:1\n1\n-1 1:.25 2:3. 4:7\n"


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def _write(content: bytes, name: str = "rows.svm") -> Path:
        file = tmp_path / name
        file.write_bytes(content)
        return file

    return _write


def same(one: Table, other: Table) -> None:
    """The same numbers bit for bit, in the same places, from the same lines."""
    assert one.X.shape == other.X.shape
    for name in ("indptr", "indices", "data"):
        assert getattr(one.X, name).tobytes() == getattr(other.X, name).tobytes(), name
    assert one.y.tobytes() == other.y.tobytes()
    assert (one.zero_based, one.notes) == (other.zero_based, other.notes)
    assert [one.line(row) for row in range(one.y.size)] == [other.line(row) for row in range(other.y.size)]


def test_reads_what_is_written(write: Any) -> None:
    data = read_svmlight(write(GOOD))
    assert data.X.toarray().tolist() == [[0.5, 0, -0.2, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0.25, 3, 0, 7]]
    assert data.y.tolist() == [1, -1, 1, -1]
    assert data.X.dtype == data.y.dtype == np.float64
    assert [data.line(row) for row in range(4)] == [1, 2, 3, 4]
    assert not data.zero_based
    assert "count from 1" in data.notes[0]


def test_comments_blank_lines_crlf_order_and_a_missing_last_newline(write: Any) -> None:
    text = b"\xef\xbb\xbf# a heading: 1:2\r\n\r\n  1 3:3 1:1 # tail\r\n\t\n#\n-1\t2:2"
    data = read_svmlight(write(text))
    assert data.X.toarray().tolist() == [[1, 0, 3], [0, 2, 0]]
    assert data.X.has_sorted_indices
    assert [data.line(row) for row in range(2)] == [3, 6]
    assert data.place(1).endswith("rows.svm, line 6")


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
def test_the_base_of_indices(
    write: Any, zero_based: Any, content: bytes, expected: list[list[float]]
) -> None:
    data = read_svmlight(write(content), zero_based=zero_based)
    assert data.X.toarray().tolist() == expected
    assert data.zero_based == (b"0:" in content or zero_based == "yes")


def test_the_number_of_features_can_be_given(write: Any) -> None:
    assert read_svmlight(write(GOOD), n_features=9).X.shape == (4, 9)
    assert read_svmlight(write(b"1\n-1\n"), n_features=2).X.shape == (2, 2)


PACKED = [
    ("a.gz", gzip.compress),
    ("a.bz2", bz2.compress),
    ("A.XZ", lzma.compress),
    ("a.zst", zstandard.compress),
]


@pytest.mark.parametrize(("name", "pack"), PACKED)
@pytest.mark.parametrize("piece", [text.PIECE, 1000])
def test_compressed_files(
    write: Any, monkeypatch: pytest.MonkeyPatch, name: str, pack: Any, piece: int
) -> None:
    monkeypatch.setattr(text, "PIECE", piece)
    rows = GOOD * 2000
    packed = pack(rows)
    same(read_svmlight(write(packed, name)), read_svmlight(write(rows)))
    same(
        read_svmlight(write(pack(rows[:20_001]) + pack(rows[20_001:]) + pack(b""), name)),
        read_svmlight(write(rows)),
    )
    with pytest.raises(InputError, match=r"rename it to .*rows\.svm" + name[1:].lower()):
        read_svmlight(write(packed, "rows.svm"))
    with pytest.raises(InputError, match="the name promises"):
        read_svmlight(write(rows, name))


@pytest.mark.parametrize(("name", "pack"), PACKED)
@pytest.mark.parametrize("members", [1, 2])
def test_a_compressed_file_that_is_cut_short_anywhere(write: Any, name: str, pack: Any, members: int) -> None:
    packed = pack(GOOD) * members
    seams = [len(packed) // members * k for k in range(members + 1)]
    assert read_svmlight(write(packed, name)).X.shape == (4 * members, 4)
    for cut in range(len(packed)):
        if cut in seams[1:]:
            continue
        with pytest.raises(InputError) as caught:
            read_svmlight(write(packed[:cut], name))
        known = "cut short|the file is empty|the name promises" if cut < 8 else "cut short"
        assert caught.match(f"(?i){name}: .*({known})")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "pack"), PACKED)
def test_a_few_bytes_that_hold_megabytes_come_in_pieces(write: Any, name: str, pack: Any) -> None:
    rows = GOOD * (1_000_000 if name in ("a.gz", "a.zst") else 100_000)  # the others take long to pack
    sizes = [piece.text.size for piece in text.pieces(write(pack(rows), name), 1_000_000)]
    assert sum(sizes) == len(rows)
    assert max(sizes) < len(rows) / 2


def every_way(path: Path) -> list[Any]:
    """What reads text: whole, in blocks, to a store, to other text, and for a summary."""
    return [
        lambda: read_svmlight(path),
        lambda: list(stream_data(path)),
        lambda: convert(path, path.with_name("rows.arrow")),
        lambda: convert(path, path.with_name("rows.svm")),
        lambda: summarise(path),
    ]


@pytest.mark.parametrize(("name", "pack"), PACKED)
@pytest.mark.parametrize("more", [b"1 1:1\n", b"x", b"\n", GOOD * 50_000])
def test_what_follows_compressed_data_is_an_error(write: Any, name: str, pack: Any, more: bytes) -> None:
    path = write(pack(GOOD) * 2 + more, name)
    complaint = (
        f"{name}: the .* data are followed by something that is no .* data "
        "\\(after some [08] lines\\); copy or"
    )
    for reading in every_way(path) if len(more) == 1 else [lambda: read_svmlight(path)]:
        with pytest.raises(InputError, match=complaint):
            reading()
    assert [file.name for file in path.parent.iterdir()] == [name]


@pytest.mark.parametrize(("name", "pack"), PACKED)
def test_damage_in_a_later_stream_is_an_error(write: Any, name: str, pack: Any) -> None:
    good, refused = pack(GOOD), []
    if pack is zstandard.compress:  # whose frames have no checksum by default
        pack = zstandard.ZstdCompressor(write_checksum=True).compress
    later = pack(GOOD * 20)
    for at in range(len(later)):
        bad = bytearray(later)
        bad[at] ^= 0x55
        try:
            rows = read_svmlight(write(good + bytes(bad), name)).y.size
        except InputError as error:
            refused.append(str(error))
        else:
            assert rows == 84  # the bit does not matter: it may belong to the time in a gzip header
    assert len(refused) > len(later) * 0.8
    assert all(
        re.search(f"{name}: the .* data are (damaged|cut short|followed by)", line) for line in refused
    )
    for reading in every_way(write(good + later[: len(later) // 2] + later[len(later) // 2 + 1 :], name)):
        with pytest.raises(InputError, match=f"{name}: the .* data are (damaged|cut short)"):
            reading()


@pytest.mark.parametrize(
    ("name", "pack", "zeros", "allowed"),
    [
        *((*PACKED[0], zeros, True) for zeros in (1, 4, 300_000)),
        *((*PACKED[2], zeros, zeros % 4 == 0) for zeros in (1, 3, 4, 8, 5, 300_000, 300_001)),
        *((*PACKED[k], zeros, False) for k in (1, 3) for zeros in (1, 4)),
    ],
)
def test_zero_bytes_between_streams(write: Any, name: str, pack: Any, zeros: int, allowed: bool) -> None:
    """Gzip data may be padded, those of xz in multiples of four."""
    for count, more in enumerate((b"", pack(GOOD)), start=1):
        path = write(pack(GOOD) + bytes(zeros) + more, name)
        if allowed:
            assert read_svmlight(path).y.size == 4 * count
        else:
            with pytest.raises(InputError, match=f"{name}: the .* data are followed by"):
                read_svmlight(path)


def test_zstd_frames_without_text_are_skipped(write: Any) -> None:
    frame, skipped = zstandard.compress(GOOD), b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc"
    assert read_svmlight(write(frame + skipped + frame + skipped, "a.zst")).y.size == 8


def test_a_compressed_file_under_the_name_of_another(write: Any) -> None:
    with pytest.raises(InputError, match=r"gzip data .* rename it to .*a\.svm\.gz"):
        read_svmlight(write(gzip.compress(GOOD), "a.svm.xz"))


@pytest.mark.parametrize(
    ("content", "line", "column", "complaint"),
    [
        (b"1 1:1\nyes 1:1\n", 2, 1, "label 'yes' is not a number"),
        (b"1 1:1\nnan 1:1\n", 2, 1, "label 'nan' is not finite"),
        (b"1 1:1\n1 2:x\n", 2, 3, "value 'x' of index 2 is not a number"),
        (b"1 1:1\n\n1 2:\n", 3, 3, "value '' of index 2 is not a number"),
        (b"1 1:1_0\n", 1, 3, "value '1_0' of index 1 is not a number"),
        (b"1 1:0x1\n", 1, 3, "value '0x1' of index 1 is not a number"),
        (b"1 1:1-2\n", 1, 3, "value '1-2' of index 1 is not a number"),
        (b"1 1:1-2 2:\n", 1, 3, "value '1-2' of index 1 is not a number"),
        (b"1 1:1.2.3\n", 1, 3, "value '1.2.3' of index 1 is not a number"),
        (b"1 1:NaN\n", 1, 3, "value 'NaN' of index 1 is not finite"),
        (b"1 1:1\n1 1:-inf\n", 2, 3, "value '-inf' of index 1 is not finite"),
        (b"1 1:1e999\n", 1, 3, "value '1e999' of index 1 does not fit"),
        (b"1 1:1\n1 -3:1\n", 2, 3, "index '-3' in '-3:1' is below 0"),
        (b"1 1.5:1\n", 1, 3, "index '1.5' in '1.5:1' is not a whole number"),
        (b"1 1e2:1\n", 1, 3, "index '1e2' in '1e2:1' is not a whole number"),
        (b"1 +1:1\n", 1, 3, "index '+1' in '+1:1' is not a whole number"),
        (b"1 1:1\n1 2 3:1\n", 2, 3, "'2' should be index:value"),
        (b"1 1 : 1\n", 1, 3, "'1' should be index:value"),
        (b"1 1:2:3\n", 1, 3, "value '2:3' of index 1 is not a number"),
        (b"1 1:1\n1:1 2:1\n", 2, 1, "begins with '1:1' where its label should be"),
        (b"1 1:1\n1,3 5:1\n", 2, 1, "'1,3' is several labels"),
        (b"1 1:1\n-1 3:1 4:1 3:2\n", 2, 12, "index 3 occurs twice"),
        (b"1 1:1\n\n# x\n-1 5:1 5:2\n", 4, 8, "index 5 occurs twice"),
        (b"1 1:1\n1 qid:1 qid:2\n", 2, 9, "'qid:2' is out of place"),
        (b"1 1:1\n\x00\x01\x02", 2, 1, "byte 0x00 where text was expected"),
        ("1 1:1\n1 1:½\n".encode(), 2, 3, "of index 1 is not a number"),
        (b"1 1:1\n1 99999999999999999999:1\n", 2, 3, "too large for any model"),
    ],
)
@pytest.mark.parametrize("piece", [text.PIECE, 5])
def test_faults_are_named_with_their_line(
    write: Any,
    monkeypatch: pytest.MonkeyPatch,
    piece: int,
    content: bytes,
    line: int,
    column: int,
    complaint: str,
) -> None:
    monkeypatch.setattr(text, "PIECE", piece)
    file = write(content)
    with pytest.raises(InputError) as caught:
        read_svmlight(file)
    assert str(caught.value).startswith(f"{file}, line {line}, column {column}: ")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_indices_out_of_range_are_named_with_their_line(write: Any) -> None:
    file = write(b"1 1:1\n\n-1 0:1 4:1\n")
    with pytest.raises(InputError, match="line 3, column 4: index 0 where indices count from 1"):
        read_svmlight(file, zero_based="no")
    with pytest.raises(
        InputError, match="line 3, column 8: index 4 is beyond the 4 features; raise n_features"
    ):
        read_svmlight(file, n_features=4)
    with pytest.raises(InputError, match="line 1, column 7: index 4 is beyond the 3 features"):
        read_svmlight(write(b"1 3:1 4:1\n-1 3:1\n"), n_features=3)


def test_a_huge_index_in_a_small_file_names_the_memory_and_the_way_out(write: Any) -> None:
    with pytest.raises(
        InputError, match=r"line 2, column 4: index 4000000000000 .* GB .*--n-features .*hashing"
    ) as caught:
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


@pytest.mark.parametrize(
    ("content", "zero_based", "n_features", "expected"),
    [
        (b"1 4:1\n", "auto", 4, (1, 4)),
        (b"1 3:1 0:1\n", "auto", 4, (1, 4)),
        (b"1 3:1\n", "yes", 4, (1, 4)),
        (b"1 4:1\n", "no", 4, (1, 4)),
        (b"1 5:1\n", "auto", 4, "line 1, column 3: index 5 is beyond the 4 features"),
        (b"1 5:1\n", "no", 4, "line 1, column 3: index 5 is beyond the 4 features"),
        (b"1 4:1\n", "yes", 4, "line 1, column 3: index 4 is beyond the 4 features"),
        (b"1\n# c\n1 1:1 4:1\n-1 0:1\n", "auto", 4, "line 3, column 7: index 4 is beyond the 4 features"),
        (b"1 0:1\n", "no", 4, "line 1, column 3: index 0 where indices count from 1"),
    ],
)
@pytest.mark.parametrize("piece", [text.PIECE, 7])
def test_given_widths(
    write: Any,
    monkeypatch: pytest.MonkeyPatch,
    piece: int,
    content: bytes,
    zero_based: Any,
    n_features: int,
    expected: Any,
) -> None:
    monkeypatch.setattr(text, "PIECE", piece)
    file = write(content)
    if isinstance(expected, str):
        with pytest.raises(InputError, match=f"{file}, {expected}"):
            read_svmlight(file, zero_based=zero_based, n_features=n_features)
    else:
        data = read_svmlight(file, zero_based=zero_based, n_features=n_features)
        assert data.X.shape == expected
        assert data.X.has_canonical_format
        assert data.X.indices.max() < data.X.shape[1]


def test_a_width_that_shows_wrong_only_in_the_end_names_the_line_of_a_packed_file(write: Any) -> None:
    file = write(gzip.compress(b"1 2:1 # x\n\n1 4:1\n-1 0:1"), "a.gz")
    with pytest.raises(
        InputError, match=r"a\.gz, line 3, column 3: index 4 is beyond the 4 features; have it mended"
    ):
        read_svmlight(file, n_features=4, too_wide="have it mended")


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much of it as any index asks for."""
    monkeypatch.setattr(svmlight, "available_memory", lambda: 10**13)


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("last", [2**31 - 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1])
@pytest.mark.parametrize("first", [0, 1])
def test_huge_indices(write: Any, last: int, first: int) -> None:
    file = write(f"1 {last}:1 {first}:2\n-1 {last - 1}:3 {last}:4\n1 7:1\n".encode())
    data = read_svmlight(file)
    base = 1 - data.zero_based
    assert base == first
    assert data.X.shape == (3, last + 1 - base)
    assert (data.X.indices.astype(np.int64) + base).tolist() == [first, last, last - 1, last, 7]
    assert data.X.data.tolist() == [2, 1, 3, 4, 1]
    assert data.X.indptr.tolist() == [0, 2, 4, 5]
    (block,) = (
        stream_svmlight(file, zero_based="yes" if first == 0 else "no") if last < HIGHEST or first else [data]
    )
    assert block.X.indices.tolist() == data.X.indices.tolist()
    with pytest.raises(InputError, match=f"line 1, column {len(str(last)) + 10}: index {last} occurs twice"):
        read_svmlight(write(f"1 {last}:1 {first}:2 {last}:3\n".encode()))


@pytest.mark.usefixtures("memory")
def test_an_index_beyond_32_bits(write: Any) -> None:
    with pytest.raises(InputError, match=f"line 1, column 7: index {2**32} means {2**32} columns"):
        read_svmlight(write(f"1 1:1 {2**32}:1\n".encode()))


def as_text(rows: Any, blanks: list[str], newline: bool) -> bytes:
    lines, turn = [], 0
    for label, entries in rows:
        line = repr(label)
        for index, value in entries.items():
            line += blanks[turn % len(blanks)] + f"{index}:{value!r}"
            turn += 1
        lines.append(line)
    return ("\n".join(lines) + "\n" * newline).encode()


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
BLANKS = st.lists(st.sampled_from([" ", "\t", "  ", " \r"]), min_size=1)
ROWS = st.lists(
    st.tuples(NUMBERS, st.dictionaries(st.integers(0, HIGHEST), NUMBERS, max_size=6)), min_size=1, max_size=8
)
ANY = Range(0, HIGHEST, str)


@given(rows=ROWS, blanks=BLANKS)
@settings(max_examples=150)
def test_the_numbers_written_are_the_numbers_read(rows: Any, blanks: list[str]) -> None:
    content = as_text(rows, blanks, newline=True)
    part = parse_piece(np.frombuffer(content, dtype=np.uint8), ANY)
    expected = [sorted(entries.items()) for _, entries in rows]
    assert part.labels.tobytes() == np.array([label for label, _ in rows]).tobytes()
    assert (
        part.values.tobytes() == np.array([value for entries in expected for _, value in entries]).tobytes()
    )
    assert part.columns.tolist() == [index for entries in expected for index, _ in entries]
    assert np.diff(part.starts).tolist() == [len(entries) for entries in expected]
    assert part.lines == len(rows)


# pieces of lines that are right, nearly right and wrong
WORDS = st.sampled_from(
    [
        *(
            "1",
            "-1",
            "+0.5",
            "1e3",
            "2E-2",
            ".5",
            "5.",
            ".",
            "e5",
            "1e",
            "nan",
            "-inf",
            "1_0",
            "0x1",
            "1,2",
            "--1",
        ),
        *(
            "1:1",
            "2:-.5",
            "3:1e-7",
            "07:1",
            "1:2:3",
            ":1",
            "4:",
            "qid:3",
            "qid:",
            "qid:x",
            "qi",
            "9:1e400",
            "5:1e-400",
        ),
        *("8:123456789012345678901", "6:1.", "6:.5e+1", "+6:1", "-6:1", "4294967295:1", "4294967296:1"),
        *(
            "1000000000000000000:1",
            "#",
            "# 1:1",
            "#1 2:2",
            "\x00",
            "\x0b",
            "\x0c",
            "\x85",
            "\xa0",
            "é",
            "\r",
            "\t",
            "",
        ),
    ]
)
LINES = st.lists(st.tuples(WORDS, st.sampled_from([" ", "  ", "\t", "\r", "", " \x0b"])), max_size=7).map(
    lambda parts: "".join(word + blank for word, blank in parts).encode()
)


@pytest.mark.slow
@given(st.lists(LINES, min_size=1, max_size=5))
@settings(max_examples=600)
def test_both_parsers_agree_on_every_line(lines: list[bytes]) -> None:
    faults: dict[int, LineError] = {}
    rows = []
    for number, line in enumerate(lines):
        try:
            rows.append(parse_line(line, ANY))
        except LineError as fault:
            faults[number] = fault
    content = np.frombuffer(b"\n".join(lines) + b"\n", dtype=np.uint8)
    if faults:
        with pytest.raises(PieceError) as caught:
            parse_piece(content, ANY)
        assert (str(caught.value), caught.value.column) == (
            str(faults[caught.value.line]),
            faults[caught.value.line].column,
        )
        return
    part = parse_piece(content, ANY)
    found = [row for row in rows if row is not None]
    order = [np.argsort(row.indices) for row in found]
    assert part.labels.tobytes() == np.array([row.label for row in found]).tobytes()
    assert part.columns.tolist() == [row.indices[k] for row, ks in zip(found, order, strict=True) for k in ks]
    assert part.values.tolist() == [row.values[k] for row, ks in zip(found, order, strict=True) for k in ks]
    assert part.qids == sum(row.grouped for row in found)
    assert part.lines == len(lines)
    numbers = [number for number, row in enumerate(rows) if row is not None]
    assert [k + int(np.searchsorted(part.gaps, k, side="right")) for k in range(len(found))] == numbers


COMMENTED = st.lists(
    st.one_of(
        st.tuples(NUMBERS, st.dictionaries(st.integers(0, 40), NUMBERS, max_size=6)).map(
            lambda row: as_text([row], [" "], newline=False)
        ),
        st.sampled_from([b"", b"  ", b"\r", b"# note", b" # 1:1 \r", b"1 qid:3 7:7 # x", b"3 5:1 2:1\r"]),
    ),
    min_size=1,
    max_size=30,
).filter(lambda lines: any(b":" in line.partition(b"#")[0] for line in lines))


@pytest.mark.slow
@given(lines=COMMENTED, newline=st.booleans(), piece=st.integers(1, 60), bom=st.booleans())
@settings(max_examples=120)
def test_neither_pieces_nor_threads_nor_streaming_make_a_difference(
    tmp_path_factory: Any, lines: list[bytes], newline: bool, piece: int, bom: bool
) -> None:
    content = b"\xef\xbb\xbf" * bom + b"\n".join(lines) + b"\n" * newline
    file = tmp_path_factory.getbasetemp() / "pieces.svm"
    file.write_bytes(content)
    whole = read_svmlight(file, threads=1)
    zipped = file.with_suffix(".gz")
    zipped.write_bytes(gzip.compress(content, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "PIECE", piece)
        for threads in (1, 3):
            same(read_svmlight(file, threads=threads), whole)
            same(read_svmlight(zipped, threads=threads), whole)
        assert counts_from_zero(file) == whole.zero_based
    for path in (file, zipped):
        joined(
            stream_svmlight(path, zero_based="yes" if whole.zero_based else "no", threads=3, block=piece),
            whole,
        )


def joined(blocks: Any, whole: Table) -> None:
    """The blocks are what the whole file is."""
    found = list(blocks)
    assert np.concatenate([block.y for block in found]).tobytes() == whole.y.tobytes()
    assert np.concatenate([block.X.data for block in found]).tobytes() == whole.X.data.tobytes()
    assert np.concatenate([block.X.indices for block in found]).tolist() == whole.X.indices.tolist()
    assert (
        np.concatenate([np.diff(block.X.indptr) for block in found]).tolist()
        == np.diff(whole.X.indptr).tolist()
    )
    assert max(block.X.shape[1] for block in found) == whole.X.shape[1]
    row = 0
    for block in found:
        assert block.first == row
        assert [block.line(k) for k in range(block.y.size)] == [
            whole.line(row + k) for k in range(block.y.size)
        ]
        row += block.y.size
    assert found[-1].done in (0.0, 1.0)


def test_blocks_with_a_given_width_are_that_wide(write: Any) -> None:
    file = write(b"1 4:1\n-1 1:1\n")
    assert [block.X.shape for block in stream_svmlight(file, n_features=4, block=6)] == [(1, 4), (1, 4)]
    with pytest.raises(InputError, match="line 3, column 4: index 4 is beyond the 4 features"):
        list(stream_svmlight(write(b"1 1:1\n\n-1 4:1\n"), n_features=4, zero_based="yes", block=6))


def test_blocks_whose_counting_is_not_known_yet_have_room_for_every_column(write: Any) -> None:
    (block,) = stream_svmlight(write(b"1 4:1 1:2\n"), n_features=4, zero_based="auto")
    assert block.X.indices.tolist() == [1, 4]
    assert block.X.shape[1] > block.X.indices.max()


def test_a_line_that_is_longer_than_many_pieces(write: Any) -> None:
    entries = b" ".join(b"%d:%d" % (k, k) for k in range(1, 5000))
    content = b"1 " + entries + b"\n-1 3:1\n# " + entries + b"\n1 " + entries
    for name, form in (("a.svm", content), ("a.gz", gzip.compress(content))):
        file = write(form, name)
        whole = read_svmlight(file)
        assert np.diff(whole.X.indptr).tolist() == [4999, 1, 4999]
        joined(stream_svmlight(file, block=100), whole)
        assert whole.line(2) == 4


LONG_TOKENS = """
from dualgap.data.formats.svmlight.lines import LineError, Range, parse_line
refused = 0
for token in (b"7" * 200_000, b"1." + b"0" * 200_000, b"1e" + b"0" * 200_000, b"+" * 200_000, b"." * 200_000):
    for end in (b"", b"x", b":", b".5.", b"e5e"):
        for line in (token + end, b"1 1:" + token + end, b"1 " + token + end + b":1"):
            try:
                parse_line(line, Range(0, 10, str))
            except LineError as error:
                refused += 1
                assert len(str(error)) < 200
print(refused)
"""


def test_long_tokens_do_not_hang() -> None:
    run = subprocess.run([sys.executable, "-c", LONG_TOKENS], capture_output=True, text=True, timeout=60)
    assert int(run.stdout) > 50, run.stderr


def from_stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


@pytest.mark.parametrize("pack", [bytes, *(pack for _, pack in PACKED)])
def test_the_standard_input(monkeypatch: pytest.MonkeyPatch, write: Any, pack: Any) -> None:
    expected = read_svmlight(write(GOOD))
    from_stdin(monkeypatch, pack(GOOD))
    same(read_svmlight("-"), expected)
    from_stdin(monkeypatch, pack(b"\xef\xbb\xbf" + GOOD))
    joined(stream_svmlight("-"), expected)
    from_stdin(monkeypatch, pack(b"1 1:1\n1 x:1\n"))
    with pytest.raises(InputError, match=r"^standard input, line 2, column 3: index 'x'"):
        read_svmlight("-")
    from_stdin(monkeypatch, pack(b"1 4:1\n1 0:1\n"))
    with pytest.raises(InputError, match=r"^standard input, line 1: index 4 is beyond the 4 features"):
        read_svmlight("-", n_features=4)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"", "nothing came"), (b"# x\n", "no rows in it"), (b"PK\x03\x04", "a zip archive")],
)
def test_a_standard_input_without_rows(
    monkeypatch: pytest.MonkeyPatch, content: bytes, complaint: str
) -> None:
    from_stdin(monkeypatch, content)
    with pytest.raises(InputError, match=f"^standard input: .*{complaint}"):
        read_svmlight("-")


SHAPE = "from dualgap.files import read_svmlight as r; d = r('-', zero_based='no'); print(*d.X.shape, *d.y)"


def test_a_pipe_may_pause_anywhere(write: Any) -> None:
    """Every byte of the mark and the first lines comes on its own."""
    content = b"\xef\xbb\xbf1 3:1\n-1 1:2"
    with subprocess.Popen(
        [sys.executable, "-c", SHAPE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for k in range(len(content)):
            os.write(process.stdin.fileno(), content[k : k + 1])
            # the next byte must not come before this one is read
            if k < 4:
                wait_until_empty(process.stdin.fileno())
        process.stdin.close()
        assert process.stdout.read().split() == [b"2", b"3", b"1.0", b"-1.0"]


def wait_until_empty(pipe: int) -> None:
    while int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder):
        time.sleep(0.01)


@pytest.mark.slow
def test_a_redirected_file_is_read_from_where_it_stands(write: Any) -> None:
    with write(b"a heading\n" + GOOD).open("rb", buffering=0) as stream:
        stream.read(len(b"a heading\n"))
        run = subprocess.run([sys.executable, "-c", SHAPE], stdin=stream, capture_output=True, text=True)
    assert run.stdout.split()[:2] == ["4", "4"], run.stderr


def test_a_named_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "rows"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", f"printf '1 1:1\\n-1 2:1' > '{pipe}'"]):
        assert read_svmlight(pipe).X.shape == (2, 2)


def test_a_damaged_file_is_refused_or_read_but_never_breaks(write: Any) -> None:
    rng = np.random.default_rng(0)
    plain = b"".join(b"%d %d:%.3f 7:1e-3 # c\n" % (1 - 2 * (k % 2), 1 + k % 5, k / 7) for k in range(40))
    files = [
        (plain, "a.svm"),
        (gzip.compress(plain), "a.gz"),
        (bz2.compress(plain), "a.bz2"),
        (lzma.compress(plain), "a.xz"),
        (zstandard.compress(plain), "a.zst"),
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


START = 1_000_000  # bytes of text: of large files scikit-learn takes too long to read the rest


@pytest.mark.slow
@pytest.mark.data
def test_real_files_as_scikit_learn_reads_them(data_folder: Path, tmp_path: Path) -> None:
    from sklearn.datasets import load_svmlight_file

    files = sorted(data_folder.glob("*.svm.bz2"))
    assert files
    for file in files:
        path = file
        if file.stat().st_size > START // 3:
            path = tmp_path / "start.svm"
            with bz2.open(file) as stream:
                path.write_bytes(stream.read(START).rpartition(b"\n")[0])
        data = read_svmlight(path)
        X, y = load_svmlight_file(str(path), zero_based="auto")
        assert data.X.shape == X.shape, file
        X.sort_indices()
        for name in ("indptr", "indices", "data"):
            assert np.array_equal(getattr(data.X, name), getattr(X, name)), f"{name} of {file}"
        assert np.array_equal(data.y, y), file
