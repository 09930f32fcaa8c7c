"""``dualgap convert``, as a function and as a command: both ways, in bounded memory, whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualgap.files import Store, convert, read_data, write_store, write_svmlight
from dualgap.runtime.errors import InputError
from support.commands import Forks, forks_fixture, heed_ctrl_c, write_rows  # noqa: F401
from support.memory import program_that_measures

pytest.importorskip("pyarrow")


def row_set(data: Any) -> Counter[Any]:
    X = data.X
    return Counter(
        (
            float(data.y[k]),
            tuple(X.indices[first:last].tolist()),
            tuple(X.data[first:last].astype(float).tolist()),
        )
        for k, (first, last) in enumerate(pairwise(X.indptr))
    )


def same_rows(one: Any, two: Any) -> bool:
    return (
        one.X.shape == two.X.shape
        and one.y.tolist() == two.y.tolist()
        and one.X.indptr.tolist() == two.X.indptr.tolist()
        and one.X.indices.tolist() == two.X.indices.tolist()
        and one.X.data.astype(float).tobytes() == two.X.data.astype(float).tobytes()
    )


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Any, Any]:
    n, d = draw(st.integers(1, 10)), draw(st.integers(1, 6))
    entry = st.floats(-1e60, 1e60, allow_subnormal=False).filter(lambda v: v == 0 or abs(v) > 1e-60)
    dense = np.array(
        draw(st.lists(st.lists(st.just(0.0) | entry, min_size=d, max_size=d), min_size=n, max_size=n))
    )
    dense[0, 0], dense[-1, -1] = 1.0, 2.0  # text knows of no column that has no entries
    labels = st.floats(allow_nan=False, allow_infinity=False)
    return sp.csr_array(dense), np.array(draw(st.lists(labels, min_size=n, max_size=n)))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=matrices(), zero_based=st.booleans(), suffix=st.sampled_from(["", ".gz", ".bz2", ".xz"]))
def test_text_to_store_to_text_to_store(
    tmp_path: Path, rows: tuple[Any, Any], zero_based: bool, suffix: str
) -> None:
    text, store, again, twice = (
        tmp_path / name for name in ("a.svm" + suffix, "b.arrow", "c.svm" + suffix, "d.arrow")
    )
    write_svmlight(text, *rows, zero_based=zero_based)
    header = convert(text, store, keep_order=True)
    assert header is not None
    assert (header.zero_based, header.n, header.d, header.nnz) == (zero_based, *rows[0].shape, rows[0].nnz)
    assert same_rows(read_data(store), read_data(text))
    assert convert(store, again) is None
    assert again.read_bytes() == text.read_bytes()
    convert(again, twice, keep_order=True)
    assert twice.read_bytes() == store.read_bytes()


@pytest.fixture(name="text")
def text_fixture(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.svm")


def test_a_store_of_a_text_is_shuffled_unless_order_is_to_be_kept(tmp_path: Path, text: Path) -> None:
    header = convert(text, tmp_path / "s.arrow", seed=5)
    convert(text, tmp_path / "k.arrow", keep_order=True)
    convert(text, tmp_path / "t.arrow", seed=5)
    original, shuffled, kept = (
        read_data(text),
        read_data(tmp_path / "s.arrow"),
        read_data(tmp_path / "k.arrow"),
    )
    assert header is not None
    assert header.seed == 5
    assert same_rows(original, kept)
    assert shuffled.y.tolist() != original.y.tolist()
    assert row_set(shuffled) == row_set(original)
    assert (tmp_path / "t.arrow").read_bytes() == (tmp_path / "s.arrow").read_bytes()


@pytest.mark.parametrize("keep_order", [True, False])
def test_a_store_becomes_another_store(tmp_path: Path, keep_order: bool) -> None:
    one, two = tmp_path / "one.arrow", tmp_path / "two.arrow"
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 5), density=0.5, format="csr", rng=rng)
    write_store(one, X, np.arange(60.0), rng.random(60), feature_names="abcde", seed=1)
    header = convert(one, two, compression="zstd", keep_order=keep_order, dtype="float64")
    assert header is not None
    assert header.feature_names == list("abcde")
    assert header.zero_based is None
    before, after = read_data(one), read_data(two)
    if keep_order:
        assert same_rows(before, after)
        assert after.weight.tolist() == before.weight.tolist()
    assert row_set(before) == row_set(after)
    weights = dict(zip(before.y.tolist(), before.weight.tolist(), strict=True))
    assert [weights[label] for label in after.y.tolist()] == after.weight.tolist()


def test_how_text_counts_is_kept(tmp_path: Path) -> None:
    from_zero, from_one, packed = tmp_path / "zero.svm", tmp_path / "one.svm", tmp_path / "p.arrow"
    from_zero.write_text("1 0:1 3:2\n-1 1:5\n")
    from_one.write_text("1 1:1 4:2\n-1 2:5\n")
    zero, one = (convert(file, file.with_suffix(".arrow"), keep_order=True) for file in (from_zero, from_one))
    assert zero is not None
    assert one is not None
    assert (zero.zero_based, one.zero_based, zero.d, one.d) == (True, False, 4, 4)
    assert same_rows(read_data(tmp_path / "zero.arrow"), read_data(tmp_path / "one.arrow"))
    again = convert(tmp_path / "zero.arrow", packed, compression="lz4", keep_order=True)
    assert again is not None
    assert again.zero_based is True
    for file in (from_zero, from_one):
        convert(file.with_suffix(".arrow"), tmp_path / "back.svm")
        assert (tmp_path / "back.svm").read_text() == file.read_text()
    told = convert(from_one, packed, zero_based="yes", keep_order=True)
    assert told is not None
    assert (told.d, told.zero_based) == (5, True)
    with pytest.raises(InputError, match="line 1, column 3: index 0 where indices count from 1"):
        convert(from_zero, packed, zero_based="no")


def test_columns_may_be_more_than_there_are_and_not_fewer(tmp_path: Path, text: Path) -> None:
    header = convert(text, tmp_path / "a.arrow", n_features=20)
    assert header is not None
    assert header.d == read_data(tmp_path / "a.arrow").X.shape[1] == 20
    with pytest.raises(
        InputError, match=re.escape(f"{text}, line ") + r"\d+, column \d+: index 12 is beyond the 11"
    ):
        convert(text, tmp_path / "b.arrow", n_features=11)
    (tmp_path / "zero.svm").write_text("1 3:1\n-1 0:1\n")
    with pytest.raises(InputError, match="index 3 is beyond the 3 features") as caught:
        convert(tmp_path / "zero.svm", tmp_path / "b.arrow", n_features=3)
    assert "zero.svm" in str(caught.value)  # an error says which file it is about
    with pytest.raises(InputError, match="n_features=0 must be at least 1"):
        convert(text, tmp_path / "b.arrow", n_features=0)
    with pytest.raises(InputError, match="a store knows its columns"):
        convert(tmp_path / "a.arrow", tmp_path / "b.arrow", n_features=30)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.arrow", "rows.svm", "zero.svm"]


def test_weights_and_names_from_files(tmp_path: Path, text: Path) -> None:
    weights, names = tmp_path / "w", tmp_path / "n"
    numbers = np.random.default_rng(0).random(200)
    weights.write_text("\r\n".join(map(repr, numbers.tolist())))
    titles = [f"ünï {j} # \x0b\x85 \u2028!" for j in range(12)]
    names.write_bytes("\n".join(titles).encode())
    header = convert(text, tmp_path / "a.arrow", weights=weights, names=names, keep_order=True)
    data = read_data(tmp_path / "a.arrow")
    assert header is not None
    assert data.weight.tolist() == numbers.tolist()
    assert list(data.feature_names or ()) == header.feature_names == titles
    assert header.total_weight == pytest.approx(numbers.sum())
    wider = convert(text, tmp_path / "b.arrow", names=_lines(tmp_path / "n13", [f"c{j}" for j in range(13)]))
    assert wider is not None
    assert wider.d == 13
    shuffled = convert(text, tmp_path / "c.arrow", weights=weights, seed=2)
    assert shuffled is not None
    by_row = dict(zip(_keys(read_data(text)), numbers.tolist(), strict=True))
    found = read_data(tmp_path / "c.arrow")
    assert [by_row[key] for key in _keys(found)] == found.weight.tolist()


def _keys(data: Any) -> list[bytes]:
    dense = np.column_stack([data.y, data.X.toarray()])
    return [row.tobytes() for row in dense]


def _lines(file: Path, lines: list[str]) -> Path:
    file.write_text("".join(line + "\n" for line in lines))
    return file


@pytest.mark.parametrize(
    ("option", "lines", "complaint"),
    [
        ("weights", ["1"] * 199, "199 weights, and there are more rows"),
        ("weights", ["1"] * 201, "more weights than the 200 rows"),
        ("weights", ["1"] * 99 + ["-1"] + ["1"] * 100, "line 100: weight '-1' is not a number >= 0"),
        ("weights", ["1", "two"], "line 2: weight 'two' is not a number >= 0"),
        ("weights", ["nan"] * 200, "line 1: weight 'nan'"),
        ("weights", ["1e999"] * 200, "line 1: weight '1e999'"),
        ("weights", [""] * 200, "line 1: weight ''"),
        ("weights", [], "the file is empty"),
        ("weights", None, "no such file"),
        ("names", ["a"] * 11, "11 names for 12 columns"),
        ("names", None, "no such file"),
    ],
)
def test_files_of_weights_and_names_that_do_not_fit(
    tmp_path: Path, text: Path, option: str, lines: list[str] | None, complaint: str
) -> None:
    file = tmp_path / "extra"
    if lines is not None:
        _lines(file, lines)
    before = sorted(tmp_path.iterdir())
    arguments: Any = {option: file}
    with pytest.raises(InputError, match=re.escape(complaint)):
        convert(text, tmp_path / "a.arrow", **arguments)
    assert sorted(tmp_path.iterdir()) == before


def test_names_that_are_no_text(tmp_path: Path, text: Path) -> None:
    (tmp_path / "n").write_bytes(b"caf\xe9\n" * 12)
    with pytest.raises(InputError, match="not UTF-8 text"):
        convert(text, tmp_path / "a.arrow", names=tmp_path / "n")


def test_what_text_cannot_hold_is_not_dropped_in_silence(tmp_path: Path, text: Path) -> None:
    store = tmp_path / "a.arrow"
    convert(text, store, weights=_lines(tmp_path / "w", ["2"] * 200), keep_order=True)
    said: list[str] = []
    try:
        convert(store, tmp_path / "b.svm", told=said.append)
    except InputError as error:
        said.append(str(error))
    assert any("weight" in line for line in said)
    for options in (
        {"weights": tmp_path / "w"},
        {"names": tmp_path / "w"},
        {"dtype": "float32"},
        {"compression": "lz4"},
    ):
        arguments: Any = options
        with pytest.raises(InputError, match="are for stores"):
            convert(text, tmp_path / "c.svm", **arguments)


# the command


@pytest.mark.slow
def test_the_command_says_what_it_did(tmp_path: Path, text: Path, forks: Forks) -> None:
    out = tmp_path / "a.arrow"
    done = forks("convert", text, out)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0].startswith(f"{out}: store, ")
    assert "200 rows, 12 columns, " in done.out
    assert "rows shuffled with seed 0, values as float64, 1 batch\n" in done.out
    assert f"indices counted from 1 in {text}" in done.out
    told = forks(
        "convert", text, out, "--json", "--keep-order", "--dtype", "float32", "--compression", "lz4"
    ).json
    header = Store(out).header
    assert told == {
        "output": str(out),
        "bytes": out.stat().st_size,
        "n_samples": 200,
        "n_features": 12,
        "nnz": header.nnz,
    }
    assert (header.seed, header.value_type, header.compression) == (None, "float32", "lz4")
    back = tmp_path / "b.svm.gz"
    assert forks("convert", out, back, "--json").json == {"output": str(back), "bytes": back.stat().st_size}


@pytest.mark.parametrize(
    ("name", "arguments", "complaint"),
    [
        ("rows.svm", "", "would overwrite IN"),
        ("a.parquet", "", "the name does not tell what to write"),
        ("a", "", "the name does not tell what to write"),
        ("a.arrow.gz", "", "the name does not tell what to write"),
        ("nowhere/a.arrow", "", "does not exist"),
        ("a.arrow", "--memory-budget 1MB", "memory_budget=1000000 is too little"),
        ("a.arrow", "--memory-budget lots", "'lots' is no size"),
        ("a.arrow", "--memory-budget -5MB", "'-5MB' is no size"),
        ("a.arrow", "--seed -1", "Invalid value for '--seed'"),
        ("a.svm", "--compression lz4", "are for stores"),
        ("a.arrow", "--zero-based perhaps", "Invalid value for '--zero-based'"),
        ("a.arrow", "--weights rows.svm --names a.arrow", "would overwrite NAMES"),
    ],
)
def test_the_command_refuses(
    tmp_path: Path, text: Path, forks: Forks, name: str, arguments: str, complaint: str
) -> None:
    content = text.read_bytes()
    words = [str(tmp_path / word) if "." in word else word for word in arguments.split()]
    assert complaint in forks("convert", text, tmp_path / name, *words).error
    assert [path.name for path in tmp_path.iterdir()] == ["rows.svm"]
    assert text.read_bytes() == content


def test_the_command_refuses_what_is_no_data(tmp_path: Path, text: Path, forks: Forks) -> None:
    model, out = tmp_path / "m.svm", tmp_path / "a.arrow"
    assert forks("train", text, "-o", model, "--quiet").code == 0
    assert "this is a dualgap model, and not" in forks("convert", model, out).error
    (tmp_path / "c.svm").write_text("# nothing\n")
    assert "c.svm: no rows in it" in forks("convert", tmp_path / "c.svm", out).error
    (tmp_path / "c.svm").write_text("1 1:1\n-1 1:x\n")
    assert "c.svm, line 2, column 4: value 'x'" in forks("convert", tmp_path / "c.svm", out).error
    (tmp_path / "h.svm").write_text("1 1:1e50\n-1 1:1\n")
    assert (
        "values beyond float32; convert with --dtype float64"
        in forks("convert", tmp_path / "h.svm", out, "--dtype", "float32").error
    )
    assert not out.exists()


def dualgap(*arguments: Any) -> list[str]:
    return [sys.executable, "-m", "dualgap.cli", *map(str, arguments)]


@pytest.mark.slow
def test_the_standard_input_becomes_a_store(tmp_path: Path, text: Path) -> None:
    for zero_based in ("auto", "no"):
        command = dualgap("convert", "-", tmp_path / "a.arrow", "--keep-order", "--zero-based", zero_based)
        with text.open() as stream:
            subprocess.run(command, stdin=stream, check=True, capture_output=True)
        assert same_rows(read_data(tmp_path / "a.arrow"), read_data(text))


@pytest.mark.slow
def test_a_pipe_becomes_a_store(tmp_path: Path) -> None:
    """What kind a file is shows in its first bytes, which a pipe hands out only once."""
    text = write_rows(tmp_path / "rows.svm", rows=2000)
    reading, writing = os.pipe()
    pipe = f"/dev/fd/{reading}"
    command = dualgap("convert", pipe, tmp_path / "a.arrow", "--keep-order", "--zero-based", "no")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pass_fds=[reading]
    ) as it:
        os.close(reading)
        with contextlib.suppress(BrokenPipeError), os.fdopen(writing, "wb") as stream:
            stream.write(text.read_bytes())
        _, errors = it.communicate(timeout=60)
    if it.returncode == 0:
        assert same_rows(read_data(tmp_path / "a.arrow"), read_data(text))
    else:
        assert "pipe" in errors  # a refusal that says why


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    out = tmp_path / "a.arrow"
    out.write_bytes(b"what was there")
    rows = b"".join(b"1 %d:%d.5 %d:1e-3\n" % (j % 50 + 1, j, j % 50 + 70) for j in range(20_000))
    command = dualgap("convert", "-", out, "--zero-based", "no", "--memory-budget", "16MB")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed_ctrl_c)
    assert process.stdin is not None
    assert process.stderr is not None
    while not any(".dualgap-" in name for name in leftovers(tmp_path)):
        assert process.poll() is None
        process.stdin.write(rows)
    process.stdin.flush()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    errors = process.stderr.read().decode()
    assert (process.returncode, errors.strip()) == (130, "dualgap: interrupted")
    assert leftovers(tmp_path) == ["a.arrow"]
    assert out.read_bytes() == b"what was there"


@pytest.mark.slow
@pytest.mark.parametrize("limit", [100_000, 3_000_000])  # met by files of the shuffle, or by the store itself
def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path: Path, limit: int) -> None:
    text, out = tmp_path / "rows.svm", tmp_path / "a.arrow"
    lines = "".join(f"1 {j % 50 + 1}:{j}.25 {j % 50 + 70}:1e-3 {j % 7 + 140}:3\n" for j in range(120_000))
    text.write_text(lines)
    out.write_bytes(b"what was there")
    command = dualgap("convert", text, out, "--memory-budget", "16MB")
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 2
    assert done.stderr.startswith("dualgap: error: ")
    assert done.stderr.count("\n") == 1
    assert "cannot be written: " in done.stderr
    assert leftovers(tmp_path) == ["a.arrow", "rows.svm"]
    assert out.read_bytes() == b"what was there"


GROWTH = """
import json, sys
from pathlib import Path
from dualgap.files import convert
from support.memory import growth

folder, budget = Path(sys.argv[1]), int(sys.argv[2])
(folder / "tiny.svm").write_text("1 1:1.5\\n-1 2:1\\n")
convert(folder / "tiny.svm", folder / "tiny.arrow")  # what is loaded and compiled once
keep_order = len(sys.argv) > 3
with growth() as found:
    header = convert(folder / "rows.svm", folder / "rows.arrow", memory_budget=budget, keep_order=keep_order)
print(json.dumps([found.bytes, header.n, header.nnz]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to measure memory")
@pytest.mark.parametrize("order", [[], ["keep"]])
def test_memory_stays_within_the_budget(tmp_path: Path, order: list[str]) -> None:
    rng = np.random.default_rng(0)
    lines = []
    for row in range(2000):
        columns = np.sort(rng.choice(5000, 60, replace=False)) + 1
        values = rng.random(60).round(6)
        lines.append(
            f"{row % 2} " + " ".join(f"{j}:{v}" for j, v in zip(columns, values, strict=True)) + "\n"
        )
    piece, copies = "".join(lines).encode(), 75
    with (tmp_path / "rows.svm").open("wb") as stream:
        for _ in range(copies):
            stream.write(piece)
    assert (tmp_path / "rows.svm").stat().st_size > 110e6
    budget = 32_000_000
    program = program_that_measures(GROWTH, tmp_path, budget, *order)
    growth, n, nnz = json.loads(subprocess.run(**program, check=True, capture_output=True, text=True).stdout)
    assert (n, nnz) == (2000 * copies, 60 * 2000 * copies)
    assert growth < budget + 100_000_000
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "rows.arrow",
        "rows.svm",
        "tiny.arrow",
        "tiny.svm",
    ]
    if not order:
        label = np.concatenate([part.y for part in Store(tmp_path / "rows.arrow").blocks()])
        assert label.sum() == n / 2
        assert abs(label[: n // 10].mean() - 0.5) < 0.02
