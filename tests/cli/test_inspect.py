"""``dualgap inspect``: what it says of data, against NumPy; and that content tells, not names."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dualgap
from dualgap.data.formats import ReadOptions
from dualgap.data.summary import Summary, summarise
from dualgap.files import write_store, write_svmlight
from support.commands import Forks, forks_fixture, write_rows  # noqa: F401
from support.memory import program_that_measures

pytest.importorskip("pyarrow")


def expected(X: Any, y: Any) -> dict[str, Any]:
    """By NumPy, from the dense matrix. Entries of 0 in X are taken for missing ones."""
    dense = X.toarray()
    kept = dense != 0
    labels, counts = np.unique(y, return_counts=True)
    used = kept.any(axis=0)
    scales = np.sqrt((dense**2).mean(axis=0))[used]
    lengths = np.linalg.norm(dense, axis=1)
    values = dense[kept]
    whole = np.column_stack([dense, y])
    return {
        "n": X.shape[0],
        "nnz": int(kept.sum()),
        "labels": dict(zip(labels.tolist(), counts.tolist(), strict=True)),
        "label_range": (y.min(), y.max()),
        "empty": int((~kept.any(axis=1)).sum()),
        "duplicates": X.shape[0] - np.unique(whole, axis=0).shape[0],
        "values": (values.min(), values.max()) if values.size else (0.0, 0.0),
        "scales": pytest.approx((scales.min(), scales.max()) if scales.size else (0.0, 0.0)),
        "norms": pytest.approx((lengths.min(), lengths.mean(), lengths.max())),
    }


def told(found: Summary) -> dict[str, Any]:
    return {name: getattr(found, name) for name in expected(sp.csr_array((1, 1)), np.zeros(1))}


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Any, Any]:
    """Few different values, so that rows repeat."""
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    entry = st.sampled_from([0.0, 0.0, 0.0, 1.0, -2.5, 1e-3])
    dense = np.array(draw(st.lists(st.lists(entry, min_size=d, max_size=d), min_size=n, max_size=n)))
    return sp.csr_array(dense), np.array(
        draw(st.lists(st.sampled_from([-1.0, 1.0, 0.5]), min_size=n, max_size=n))
    )


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=matrices(), zero_based=st.booleans())
def test_numbers_are_those_of_numpy(tmp_path: Path, rows: tuple[Any, Any], zero_based: bool) -> None:
    X, y = rows
    write_svmlight(tmp_path / "rows.svm", X, y, zero_based=zero_based)
    write_store(tmp_path / "rows.arrow", X, y)
    used = np.diff(X.tocsc().indptr) > 0
    text = summarise(tmp_path / "rows.svm", ReadOptions(X.shape[1], "yes" if zero_based else "no"))
    store = summarise(tmp_path / "rows.arrow")
    for found in (text, store):
        assert told(found) == expected(X, y)
        assert (found.d, found.unused) == (X.shape[1], int((~used).sum()))
        assert found.density == pytest.approx(X.nnz / X.shape[0] / X.shape[1])
    assert (text.zero_based, store.zero_based) == (zero_based, None)


def test_blocks_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.integers(0, 3, (500, 5)) * (rng.random((500, 5)) < 0.3))
    y = rng.choice([-1.0, 1.0], 500)
    write_svmlight(tmp_path / "rows.svm", X, y)
    whole = summarise(tmp_path / "rows.svm")
    assert whole.duplicates > 50
    monkeypatch.setattr("dualgap.data.formats.text.PIECE", 300)
    parts = summarise(tmp_path / "rows.svm")
    assert told(whole) == expected(X, y)
    assert told(parts) == expected(X, y)


def test_order_and_zeros_in_text_do_not_hide_a_repetition(tmp_path: Path) -> None:
    file = tmp_path / "rows.svm"
    file.write_text(
        "1 1:2 3:4\n1 3:4 1:2\n1 3:4.0 2:0 1:2\n1 3:4 1:-2\n-1 1:2 3:4\n1 1:4 3:2\n0\n-0\n1 2:-0\n1\n"
    )
    assert summarise(file).duplicates == 4


@pytest.mark.slow
def test_many_labels_are_no_classes(tmp_path: Path, forks: Forks) -> None:
    file = tmp_path / "rows.svm"
    y = np.linspace(-3.0, 7.25, 1001)
    write_svmlight(file, np.ones((1001, 1)), y)
    found = forks("inspect", file, "--json").json
    assert (found["labels"], found["label_range"]) == (None, [-3.0, 7.25])
    assert "more than 1,000 different ones, -3 to 7.25" in forks("inspect", file).out
    write_svmlight(file, np.ones((1000, 1)), y[:1000])
    assert len(forks("inspect", file, "--json").json["labels"]) == 1000
    assert ", and 988 more" in forks("inspect", file).out


@pytest.fixture(scope="module", name="files")
def files_fixture(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    folder = tmp_path_factory.mktemp("files")
    write_rows(folder / "rows.svm")
    (folder / "names").write_text("".join(f"word{j}\n" for j in range(12)))
    (folder / "weights").write_text("2\n" * 200)
    extra = ("--names", folder / "names", "--weights", folder / "weights")
    assert forks("convert", folder / "rows.svm", folder / "rows.arrow", "--seed", 3, *extra).code == 0
    assert forks("train", folder / "rows.svm", "-o", folder / "rows.model", "--quiet").code == 0
    return folder


def test_text_and_store_agree(files: Path, forks: Forks) -> None:
    text, store = (forks("inspect", files / name, "--json").json for name in ("rows.svm", "rows.arrow"))
    assert (text.pop("kind"), store.pop("kind")) == ("text", "store")
    assert text.pop("bytes") == (files / "rows.svm").stat().st_size
    assert store.pop("bytes") == (files / "rows.arrow").stat().st_size
    header = store.pop("store")
    assert header["feature_names"] == [f"word{j}" for j in range(12)]
    assert (header["seed"], header["total_weight"], header["n"]) == (3, 400.0, 200)
    for values in (text, store):
        for name in ("scales", "norms"):
            values[name] = pytest.approx(values[name])
    assert list(text) == list(store)
    for name in text:
        assert text[name] == store[name] or name in ("scales", "norms")


def test_what_people_read(files: Path, forks: Forks) -> None:
    text, store = (forks("inspect", files / name) for name in ("rows.svm", "rows.arrow"))
    assert (text.code, text.err, store.code, store.err) == (0, "", 0, "")
    lines = text.out.splitlines()
    assert lines[0] == f"{files / 'rows.svm'}: svmlight text (8.9 kB)"
    assert store.out.splitlines()[1 : len(lines)] == lines[1:]
    rest = store.out.splitlines()[len(lines) :]
    assert [line.split()[0] for line in rest] == ["order", "stored", "weights", "names"]
    assert "shuffled, seed 3" in rest[0]
    assert rest[1].endswith("in 1 batch")
    assert "sum 400" in rest[2]
    assert rest[3].endswith("word0, word1, word2, word3, word4, ...")


@pytest.mark.slow
def test_content_tells_and_not_the_name(files: Path, forks: Forks, tmp_path: Path) -> None:
    kinds = {"rows.svm": "text", "rows.arrow": "store", "rows.model": "model"}
    for name, kind in kinds.items():
        for disguise in ("a.svm", "a.arrow", "a.model", "a"):
            (tmp_path / disguise).write_bytes((files / name).read_bytes())
            assert forks("inspect", tmp_path / disguise, "--json").json["kind"] == kind
    assert (
        "are for data, and this is a model" in forks("inspect", files / "rows.model", "--n-features", 3).error
    )


def test_what_inspect_refuses(files: Path, forks: Forks, tmp_path: Path) -> None:
    assert "leave --zero-based out" in forks("inspect", files / "rows.arrow", "--zero-based", "yes").error
    assert (
        "column 11 is beyond the 11 features"
        in forks("inspect", files / "rows.arrow", "--n-features", 11).error
    )
    assert (
        "index 12 is beyond the 11 features" in forks("inspect", files / "rows.svm", "--n-features", 11).error
    )
    assert "no such file" in forks("inspect", tmp_path / "nowhere").error
    assert "is a folder" in forks("inspect", tmp_path).error
    (tmp_path / "a").write_text("# only words\n")
    assert "no rows in it" in forks("inspect", tmp_path / "a").error
    cut = tmp_path / "cut.arrow"
    cut.write_bytes((files / "rows.arrow").read_bytes()[:-100])
    assert "no Arrow file, or a damaged one" in forks("inspect", cut).error


@pytest.mark.parametrize(
    "content",
    [
        "1 1:0 2:3\n-1 2:1\n",  # a column whose entries are all 0
        "1 1:1e-200 2:3\n-1 2:1\n",  # squares that vanish
        "1 1:1e200 2:3\n-1 2:1\n",  # squares that overflow
        "1 1:0\n-1\n",
    ],
)
def test_odd_scales(forks: Forks, tmp_path: Path, content: str) -> None:
    file = tmp_path / "rows.svm"
    file.write_text(content)
    done = forks("inspect", file)
    assert done.code == 0
    assert "Warning" not in done.err
    assert "inf" not in done.err
    assert forks("inspect", file, "--json").json["n"] == 2


def test_columns_of_unlike_scale_get_a_remark(forks: Forks, tmp_path: Path) -> None:
    file = tmp_path / "rows.svm"
    file.write_text("1 1:1 2:5000\n-1 1:1 2:-5000\n")
    assert "the scales of columns differ 5e+03-fold" in forks("inspect", file).err


def test_the_standard_input(files: Path) -> None:
    command = [sys.executable, "-m", "dualgap.cli", "inspect", "-", "--zero-based", "no", "--json"]
    with (files / "rows.svm").open() as stream:
        done = subprocess.run(command, stdin=stream, capture_output=True, text=True)
    if done.returncode == 0:
        assert json.loads(done.stdout)["n"] == 200
    else:
        assert done.stderr.startswith("dualgap: error: ")
        assert done.stderr.count("\n") == 1


TRAINING = """
import json, sys
from pathlib import Path
import dualgap
from dualgap.files import read_data
from support.memory import growth

tiny = Path(sys.argv[1]).with_name("tiny.svm")
tiny.write_text("1 1:1.5\\n-1 2:1\\n")
data = read_data(tiny)
dualgap.fit(data.X, data.y)  # what is loaded and compiled once
with growth() as found:
    data = read_data(sys.argv[1])
    dualgap.fit(data.X, data.y, max_epochs=10)
print(json.dumps(found.bytes))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to measure memory")
def test_the_memory_of_training_is_foreseen(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = sp.random_array((100_000, 5000), density=0.01, format="csr", rng=rng)
    X.data = X.data.round(4)
    y = np.where(X @ rng.standard_normal(5000) > 0, 1.0, -1.0)
    write_svmlight(tmp_path / "rows.svm", X, y)
    foreseen = summarise(tmp_path / "rows.svm").training_bytes
    program = program_that_measures(TRAINING, tmp_path / "rows.svm")
    measured = json.loads(subprocess.run(**program, check=True, capture_output=True, text=True).stdout)
    assert foreseen / 2 < measured < 2 * foreseen


def test_describing_a_model_needs_no_numba_and_tells_the_terminal_nothing(tmp_path: Path) -> None:
    """A model of a stranger's may hold any text; what is not printable is shown as Python would write it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    model = dualgap.fit(X, X[:, 0] > 0).model
    replace(model, data_name="\x1b]0;owned\x07rows\nmore", solver="dcd\x1b[2J").save(tmp_path / "m")
    program = (
        "import sys; from dualgap import cli; code = cli._run(['inspect', sys.argv[1]]); "
        "sys.exit(code or 10 * ('numba' in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "m"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "loss(s, y) = max(0, margin - y s)" in done.stdout
    assert r"\x1b]0;owned\x07rows\nmore" in done.stdout
    assert "\x1b" not in done.stdout
