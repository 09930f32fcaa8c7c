"""Commands that read data: text and stores give the same answers, and predictions stream in bounded
memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dualgap.files import DataSpec, load_model, open_data, read_data, write_store, write_svmlight
from dualgap.models.verification import SAME
from support.commands import Forks, forks_fixture, write_rows  # noqa: F401
from support.memory import program_that_measures

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module", name="folder")
def folder_fixture(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    """Rows as text, in a store of the same order, and shuffled; a model of the text."""
    folder = tmp_path_factory.mktemp("rows")
    text = write_rows(folder / "rows.svm")
    for name, option in (("kept.arrow", ["--keep-order"]), ("shuffled.arrow", ["--seed", "1"])):
        assert forks("convert", text, folder / name, *option).code == 0
    assert forks("train", text, "-o", folder / "text.model", "--quiet").code == 0
    return folder


def command(*arguments: Any) -> list[str]:
    return [sys.executable, "-m", "dualgap.cli", *map(str, arguments)]


# training and certificates


@pytest.mark.slow
def test_training_on_a_store_in_order_is_training_on_the_text(
    folder: Path, forks: Forks, tmp_path: Path
) -> None:
    assert forks("train", folder / "kept.arrow", "-o", tmp_path / "m", "--quiet").code == 0
    text, store = load_model(folder / "text.model"), load_model(tmp_path / "m")
    assert store.coef.tolist() == text.coef.tolist()
    assert store.fingerprint == text.fingerprint
    assert store.zero_based == text.zero_based
    for model in (folder / "text.model", tmp_path / "m"):
        for data in ("rows.svm", "kept.arrow"):
            assert forks("certify", model, folder / data, "--json").json["verdict"] == "true"
        done = forks("certify", model, folder / "shuffled.arrow", "--json")
        assert (done.code, done.json["verdict"], done.json["same_order"]) == (0, "true", False)


@pytest.mark.slow
def test_a_model_of_a_shuffled_store_certifies_with_that_store(
    folder: Path, forks: Forks, tmp_path: Path
) -> None:
    assert forks("train", folder / "shuffled.arrow", "-o", tmp_path / "m", "--quiet").code == 0
    assert forks("certify", tmp_path / "m", folder / "shuffled.arrow", "--json").json["verdict"] == "true"
    repacked = tmp_path / "packed.arrow"
    assert (
        forks("convert", folder / "shuffled.arrow", repacked, "--keep-order", "--compression", "zstd").code
        == 0
    )
    assert forks("certify", tmp_path / "m", repacked, "--json").json["verdict"] == "true"


@pytest.fixture(scope="module")
def storages(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> dict[str, Path]:
    """The same rows in several formats and orders; many are there twice or more, some of these with both
    labels.
    """
    place = tmp_path_factory.mktemp("storages")
    data = read_data(write_rows(place / "few.svm", rows=120))
    some = np.random.default_rng(0).integers(0, 120, 180)
    turned = np.where(np.arange(180) % 10 == 0, -1.0, 1.0)
    write_svmlight(place / "text.svm", sp.csr_array(data.X[some]), data.y[some] * turned)
    made = {
        "packed.svm.bz2": ("text.svm",),
        "kept.arrow": ("text.svm", "--keep-order"),
        "shuffled.arrow": ("text.svm", "--seed", "1"),
        "again.arrow": ("shuffled.arrow", "--seed", "2", "--compression", "lz4"),
        "back.svm.gz": ("again.arrow",),
    }
    for name, (source, *options) in made.items():
        assert forks("convert", place / source, place / name, *options).code == 0
    return {name: place / name for name in ("text.svm", *made)}


ORDERS = {
    "text.svm": 0,
    "packed.svm.bz2": 0,
    "kept.arrow": 0,
    "shuffled.arrow": 1,
    "again.arrow": 2,
    "back.svm.gz": 2,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trained", "options"),
    [
        ("text.svm", ()),
        ("shuffled.arrow", ()),
        ("again.arrow", ("--loss", "squared", "--bias", "exact")),
        ("shuffled.arrow", ("--from-disk", "--option", "cache=50", "--option", "lockstep=yes")),
        ("kept.arrow", ("--expand", "poly2", "--hash-bits", "8")),
    ],
)
def test_a_certificate_is_true_whatever_the_order_of_its_rows(
    storages: dict[str, Path], forks: Forks, tmp_path: Path, trained: str, options: tuple[str, ...]
) -> None:
    model = tmp_path / "m"
    assert forks("train", storages[trained], "-o", model, "--quiet", *options).code == 0
    loaded = load_model(model)
    for name, data in storages.items():
        done = forks("certify", model, data, "--json")
        found = done.json
        assert (done.code, found["verdict"], found["same_rows"]) == (0, "true", True), (name, found["reason"])
        assert found["same_order"] is (ORDERS[name] == ORDERS[trained])
        assert found["recomputed"]["dual"] == pytest.approx(found["stored"]["dual"], rel=1e-12)
        if data.suffix == ".arrow" and loaded.bias != "exact":
            on_disk = open_data(DataSpec(data, in_memory=False), loaded.task, loaded.schema)
            assert not on_disk.source.in_memory
            streamed = loaded.verify(on_disk)
            assert (streamed.verdict, streamed.rows == SAME) == ("true", found["same_order"])


@pytest.mark.slow
def test_rounded_values_are_other_rows(folder: Path, forks: Forks, tmp_path: Path) -> None:
    rounded = tmp_path / "rounded.arrow"
    assert forks("convert", folder / "rows.svm", rounded, "--keep-order", "--dtype", "float32").code == 0
    assert forks("certify", folder / "text.model", rounded, "--json").json["same_rows"] is False
    assert forks("train", rounded, "-o", tmp_path / "m", "--quiet").code == 0
    assert forks("certify", tmp_path / "m", rounded, "--json").json["verdict"] == "true"
    assert forks("certify", tmp_path / "m", folder / "rows.svm", "--json").json["same_rows"] is False


@pytest.mark.slow
def test_weights_enter_training_and_its_certificate(folder: Path, forks: Forks, tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).integers(0, 4, 200)
    (tmp_path / "w").write_text("".join(f"{number}\n" for number in numbers))
    weighted = tmp_path / "weighted.arrow"
    assert (
        forks("convert", folder / "rows.svm", weighted, "--keep-order", "--weights", tmp_path / "w").code == 0
    )
    found = forks("train", weighted, "-o", tmp_path / "m", "--tol", "1e-6", "--json").json
    data = read_data(folder / "rows.svm")
    write_svmlight(tmp_path / "repeated.svm", sp.csr_array(data.X[np.repeat(np.arange(200), numbers)]),
                   np.repeat(data.y, numbers))  # fmt: skip
    repeated = forks("train", tmp_path / "repeated.svm", "-o", tmp_path / "r", "--tol", "1e-6", "--json").json
    assert found["primal"] == pytest.approx(repeated["primal"], rel=1e-5)
    assert forks("certify", tmp_path / "m", weighted, "--json").json["verdict"] == "true"
    for other in ("rows.svm", "kept.arrow"):
        assert forks("certify", tmp_path / "m", folder / other, "--json").json["same_rows"] is False
    assert forks("certify", folder / "text.model", weighted, "--json").json["same_rows"] is False


def test_a_store_may_be_held_out(folder: Path, forks: Forks, tmp_path: Path) -> None:
    arguments = ("train", folder / "kept.arrow", "--json", "--validation")
    one = forks(*arguments, folder / "rows.svm", "-o", tmp_path / "a").json
    two = forks(*arguments, folder / "shuffled.arrow", "-o", tmp_path / "b").json
    assert one["epochs"] == two["epochs"]


# evaluating and predicting


@pytest.mark.slow
def test_answers_do_not_depend_on_the_file(folder: Path, forks: Forks) -> None:
    model = folder / "text.model"
    measures = [forks("evaluate", model, folder / name, "--json").json for name in ("rows.svm", "kept.arrow")]
    assert measures[0] == measures[1]
    shuffled = forks("evaluate", model, folder / "shuffled.arrow", "--json").json
    assert [shuffled.pop(name) for name in ("classes", "confusion")] == [
        measures[0].pop(name) for name in ("classes", "confusion")
    ]
    assert shuffled == pytest.approx(measures[0])
    for flags in ([], ["--scores"], ["--json"], ["--scores", "--json"]):
        text, store = (forks("predict", model, folder / name, *flags) for name in ("rows.svm", "kept.arrow"))
        assert (text.code, text.err) == (0, "")
        assert text.out == store.out
    scores = [
        float(line) for line in forks("predict", model, folder / "rows.svm", "--scores").out.splitlines()
    ]
    assert scores == load_model(model).decision_function(read_data(folder / "rows.svm").X).tolist()
    told = forks("predict", model, folder / "rows.svm", "--scores", "--json").json
    assert told == {"scores": scores, "n_samples": 200}


@pytest.mark.slow
def test_small_blocks_make_the_same_answers(folder: Path) -> None:
    program = (
        "import sys, dualgap.data.formats.text as text; text.PIECE = 100; "
        "from dualgap.cli import _run; sys.exit(_run(sys.argv[1:]))"
    )
    for flags in ([], ["--json"]):
        arguments = ["predict", str(folder / "text.model"), str(folder / "rows.svm"), *flags]
        parts = subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
        )
        whole = subprocess.run(command(*arguments), capture_output=True, text=True, check=True)
        assert parts.stdout == whole.stdout


@pytest.mark.slow
def test_from_standard_input_to_standard_output(folder: Path, forks: Forks) -> None:
    expected = forks("predict", folder / "text.model", folder / "rows.svm").out
    content = (folder / "rows.svm").read_bytes()
    done = subprocess.run(command("predict", folder / "text.model", "-"), input=content, capture_output=True)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, expected, b"")
    arrow = (folder / "kept.arrow").read_bytes()
    done = subprocess.run(command("predict", folder / "text.model", "-"), input=arrow, capture_output=True)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"standard input: this is an Arrow file" in done.stderr


@pytest.mark.slow
def test_rows_are_answered_as_they_come(folder: Path) -> None:
    with subprocess.Popen(
        command("predict", folder / "text.model", "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line, answer in (("1 1:1\n", "1"), ("1 12:1\n", "-1"), ("# remark\n1 1:2\n", "1")):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline().strip() == answer
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_a_pipe_in_the_place_of_a_file(folder: Path, tmp_path: Path, forks: Forks) -> None:
    """As in ``dualgap predict MODEL <(zcat rows.gz)``; a pipe can be read once, from its first byte on."""
    text = write_rows(tmp_path / "rows.svm", rows=1000)
    reading, writing = os.pipe()
    arguments = command("predict", folder / "text.model", f"/dev/fd/{reading}")
    with subprocess.Popen(
        arguments, pass_fds=[reading], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as it:
        os.close(reading)
        with contextlib.suppress(BrokenPipeError), os.fdopen(writing, "wb") as stream:
            stream.write(text.read_bytes())
        out, errors = it.communicate(timeout=60)
    if it.returncode == 0:
        assert out == forks("predict", folder / "text.model", text).out
    else:
        assert "pipe" in errors  # a refusal that says why


@pytest.mark.slow
def test_a_reader_that_leaves_after_a_line_gets_no_traceback(folder: Path, tmp_path: Path) -> None:
    text = tmp_path / "rows.svm"  # of several blocks
    text.write_text((folder / "rows.svm").read_text() * 1200)
    for flags in ([], ["--json", "--scores"]):
        with subprocess.Popen(
            command("predict", folder / "text.model", text, *flags),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.read(10)
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode != 0


def test_an_error_midway(folder: Path, forks: Forks, tmp_path: Path) -> None:
    bad = tmp_path / "bad.svm"
    bad.write_text((folder / "rows.svm").read_text() * 600 + "1 1:x\n")
    out = tmp_path / "answers"
    for existing in (False, True):
        if existing:
            out.write_text("what was there")
        assert (
            "bad.svm, line 120001, column 3: value 'x'"
            in forks("predict", folder / "text.model", bad, "-o", out).error
        )
        assert sorted(path.name for path in tmp_path.iterdir()) == ["answers"] * existing + ["bad.svm"]
    assert out.read_text() == "what was there"
    done = forks("predict", folder / "text.model", bad)
    assert done.code == 2
    assert done.err.startswith("dualgap: error: ")


@pytest.mark.parametrize("flags", [[], ["--json"], ["--scores"]])
def test_no_rows_make_no_answers_or_an_error(
    folder: Path, forks: Forks, tmp_path: Path, flags: list[str]
) -> None:
    (tmp_path / "c.svm").write_text("# nothing\n")
    done = forks("predict", folder / "text.model", tmp_path / "c.svm", *flags)
    if done.code == 0:
        assert done.json == {"labels": [], "n_samples": 0} if "--json" in flags else done.out == ""
    else:
        assert "no rows" in done.error


def test_scores_beyond_all_numbers_are_null_in_json(folder: Path, forks: Forks, tmp_path: Path) -> None:
    (tmp_path / "h.svm").write_text("1 1:1e308 2:1e308 3:1e308\n")
    done = forks("predict", folder / "text.model", tmp_path / "h.svm", "--json", "--scores")
    assert done.code == 2 or done.json["scores"] == [None]


@pytest.mark.slow
def test_stores_that_do_not_fit_the_model(folder: Path, forks: Forks, tmp_path: Path) -> None:
    wide, text_model = tmp_path / "wide.arrow", folder / "text.model"
    X = np.zeros((50, 14))
    X[:, 0] = 1.0
    X[33, 13] = 5.0
    write_store(wide, X, np.ones(50), keep_order=True)
    for name in ("predict", "evaluate", "certify"):
        complaint = (
            "wide.arrow, row 33: column 13 is beyond the 12 features; "
            "these are all that the model was trained on"
        )
        assert complaint in forks(name, text_model, wide).error
        assert (
            "leave --zero-based out"
            in forks(name, text_model, folder / "kept.arrow", "--zero-based", "no").error
        )
    assert "leave --zero-based out" in forks("train", wide, "-o", tmp_path / "m", "--zero-based", "yes").error
    X[33, 13] = 0.0
    write_store(wide, X, np.ones(50))
    assert len(forks("predict", text_model, wide).out.splitlines()) == 50


@pytest.mark.slow
@pytest.mark.parametrize("width", [11, 12, 13])
def test_columns_of_other_names_are_refused(folder: Path, forks: Forks, tmp_path: Path, width: int) -> None:
    for name, titles in (
        ("a", [f"a{j}" for j in range(12)]),
        ("b", ["a0", "b1", *(f"a{j}" for j in range(2, width))]),
    ):
        (tmp_path / name).write_text("".join(f"{title}\n" for title in titles))
    assert forks("convert", folder / "rows.svm", tmp_path / "a.arrow", "--names", tmp_path / "a").code == 0
    assert forks("train", tmp_path / "a.arrow", "-o", tmp_path / "m", "--quiet").code == 0
    assert load_model(tmp_path / "m").feature_names == tuple(f"a{j}" for j in range(12))
    (tmp_path / "rows.svm").write_text("1 1:1\n-1 2:1\n")
    assert forks("convert", tmp_path / "rows.svm", tmp_path / "b.arrow", "--names", tmp_path / "b").code == 0
    for name in ("predict", "evaluate", "certify"):
        assert (
            "column 1 is 'b1' there, and 'a1' in the model"
            in forks(name, tmp_path / "m", tmp_path / "b.arrow").error
        )
    assert forks("predict", tmp_path / "m", folder / "rows.svm").code == 0  # text has no names


@pytest.mark.slow
def test_a_damaged_batch_is_named_by_every_command(folder: Path, forks: Forks, tmp_path: Path) -> None:
    content = bytearray((folder / "kept.arrow").read_bytes())
    content[len(content) // 2] ^= 0xFF
    (tmp_path / "bad.arrow").write_bytes(content)
    complaint = "bad.arrow: batch 0 (rows 0 to 199) is damaged"
    for name in ("predict", "evaluate", "certify"):
        assert complaint in forks(name, folder / "text.model", tmp_path / "bad.arrow").error
    assert complaint in forks("train", tmp_path / "bad.arrow", "-o", tmp_path / "m").error
    assert complaint in forks("inspect", tmp_path / "bad.arrow").error
    assert complaint in forks("convert", tmp_path / "bad.arrow", tmp_path / "c.arrow").error
    assert complaint in forks("convert", tmp_path / "bad.arrow", tmp_path / "c.svm").error
    assert [path.name for path in tmp_path.iterdir()] == ["bad.arrow"]


# memory

GROWTH = """
import json, sys
from dualgap.cli import _run
from support.memory import growth

model, tiny, data, answers = sys.argv[1:]
assert _run(["predict", model, tiny, "-o", answers]) == 0  # what is loaded and compiled once
with growth() as found:
    code = _run(["predict", model, data, "-o", answers])
print(json.dumps([code, found.bytes]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to measure memory")
@pytest.mark.parametrize("source", ["file", "standard input"])
def test_predictions_take_little_memory(folder: Path, forks: Forks, tmp_path: Path, source: str) -> None:
    model = folder / "text.model"
    lines = (folder / "rows.svm").read_bytes() * 100
    copies = 200
    big = tmp_path / "big.svm"
    with big.open("wb") as stream:
        for _ in range(copies):
            stream.write(lines)
    assert big.stat().st_size > 170e6
    answers = tmp_path / "answers"
    name = big if source == "file" else "-"
    program = program_that_measures(GROWTH, model, folder / "rows.svm", name, answers)
    with big.open("rb") as stream:
        done = subprocess.run(**program, stdin=stream, capture_output=True, text=True, check=True)
    code, growth = json.loads(done.stdout)
    assert code == 0
    assert growth < 150e6
    expected = forks("predict", model, folder / "rows.svm").out
    assert answers.read_text() == expected * (100 * copies)
