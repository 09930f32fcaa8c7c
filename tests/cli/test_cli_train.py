"""``dualgap train``: exit codes, the JSON object, the report, the trace, Ctrl-C, and the model that it
leaves.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dualgap
from dualgap.files import load_model, read_svmlight
from support.commands import Forks, forks_fixture, heed_ctrl_c, run, write_rows  # noqa: F401

KEYS = [
    "solver",
    "auto_reason",
    "loss",
    "C",
    "lam",
    "bias",
    "n_samples",
    "n_features",
    "nnz",
    "classes",
    "epochs",
    "visits",
    "seconds",
    "train_seconds",
    "certify_seconds",
    "compile_seconds",
    "primal",
    "dual",
    "gap",
    "relative_gap",
    "rounding",
    "form",
    "converged",
    "stop_reason",
    "stop_message",
    "notes",
    "remark",
    "seed",
    "threads",
    "model",
]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("data") / "rows.svm")


@pytest.mark.slow
def test_a_model_with_its_certificate(tmp_path: Path, rows: Path) -> None:
    done = run("train", rows, "-o", tmp_path / "m", "--C", "2", "--tol", "1e-6", "--json")
    found = done.json
    assert (done.code, done.err) == (0, "")
    assert list(found) == KEYS
    data = read_svmlight(rows)
    expected = {"solver": "dcd", "loss": "hinge", "C": 2.0, "lam": 1 / 400, "bias": "none", "n_samples": 200}
    expected |= {
        "n_features": 12,
        "nnz": data.X.nnz,
        "form": "J",
        "classes": [-1, 1],
        "converged": True,
        "stop_reason": "gap",
    }
    assert found | expected | {"seed": 0, "threads": 1} == found
    # the model is the one that the library finds, and the numbers are those of its objective in C-form
    model = load_model(tmp_path / "m")
    outcome = dualgap.fit(data.X, data.y, C=2.0, tol=1e-6)
    assert np.array_equal(model.coef[0], outcome.coef)
    w, margins = model.coef[0], data.y * model.decision_function(data.X)
    assert found["primal"] == pytest.approx(
        0.5 * w @ w + 2.0 * np.maximum(0.0, 1.0 - margins).sum(), rel=1e-12
    )
    assert found["gap"] == pytest.approx(found["primal"] - found["dual"], abs=1e-9)
    assert 0 <= found["relative_gap"] <= 1e-6
    assert found["visits"] == outcome.trace[-1].visits == pytest.approx(found["epochs"] * 200)
    assert model.certificate == outcome.certificate
    assert model.classes == (-1, 1)
    assert model.zero_based is False
    beta = model.dual.toarray()[0]
    assert np.array_equal(beta, outcome.dual)


@pytest.mark.slow
def test_the_report_says_what_is_proven_and_where_the_model_is(
    tmp_path: Path, forks: Forks, rows: Path
) -> None:
    done = forks("train", rows, "-o", tmp_path / "m", "--bias", "augmented", "--rho", "3")
    certificate = load_model(tmp_path / "m").certificate
    assert (done.code, done.err) == (0, "")
    assert "200 rows, 12 features" in done.out
    assert "indices count from 1" in done.out
    assert "augmented bias (rho = 3)" in done.out
    assert f"{certificate.primal:.8g}" in done.out
    assert f"at most {100 * certificate.relative_gap:.3g}% above the smallest possible" in done.out
    assert f"model: {tmp_path / 'm'}" in done.out
    assert "\x1b" not in done.out, "no colours where there is no terminal"


@pytest.mark.slow
def test_not_converged_is_exit_code_3_with_a_model(tmp_path: Path, forks: Forks, rows: Path) -> None:
    done = forks("train", rows, "-o", tmp_path / "m", "--tol", "0", "--max-visits", "450", "--json")
    assert done.code == 3
    assert done.json["visits"] == 450
    assert done.json["stop_reason"] == "max_visits"
    assert not done.json["converged"]
    assert not load_model(tmp_path / "m").proofs[0].converged
    told = forks("train", rows, "-o", tmp_path / "m", "--tol", "0", "--max-epochs", "2")
    assert told.code == 3
    assert "raise --max-epochs or loosen the gap" in told.out
    assert load_model(tmp_path / "m").proofs[0].visits == 400


def test_a_time_limit_ends_a_run(tmp_path: Path, forks: Forks, rows: Path) -> None:
    done = forks("train", rows, "-o", tmp_path / "m", "--tol", "0", "--time-limit", "1e-9", "--json")
    assert (done.code, done.json["stop_reason"]) == (3, "time_limit")


def test_threads_make_no_difference_to_the_model(tmp_path: Path, forks: Forks, rows: Path) -> None:
    for name, threads in (("a", 1), ("b", 2)):
        assert (
            forks("train", rows, "-o", tmp_path / name, "--threads", threads, "--json").json["threads"]
            == threads
        )
    assert load_model(tmp_path / "a").coef.tobytes() == load_model(tmp_path / "b").coef.tobytes()


@pytest.mark.slow
def test_progress_is_for_terminals_and_on_stderr(tmp_path: Path, rows: Path) -> None:
    arguments = [
        "train",
        rows,
        "-o",
        tmp_path / "m",
        "--json",
        "--tol",
        "0",
        "--C",
        "100",
        "--max-epochs",
        "20000",
    ]
    terminal, end = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "dualgap.cli", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=end,
        text=True,
    )
    os.close(end)
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal says that nobody is left at the other end
        while piece := os.read(terminal, 1000):
            shown += piece
    out, _ = process.communicate(timeout=60)
    os.close(terminal)
    assert process.returncode == 3
    assert json.loads(out)["stop_reason"] in ("max_epochs", "stalled", "rounding")
    assert b"starting" in shown
    assert b"epoch" in shown
    assert b"relative gap" in shown


def test_quiet_is_quiet(tmp_path: Path, forks: Forks, rows: Path) -> None:
    assert forks("train", rows, "-o", tmp_path / "m", "--quiet") == (0, "", "")


def test_the_same_seed_gives_the_same_model(tmp_path: Path, forks: Forks, rows: Path) -> None:
    scores = []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        assert forks("train", rows, "-o", tmp_path / name, "--seed", seed, "--json").json["seed"] == seed
        scores.append(load_model(tmp_path / name).coef.tobytes())
    assert scores[0] == scores[1] != scores[2]


def test_lam_is_c_in_other_words(tmp_path: Path, forks: Forks, rows: Path) -> None:
    one = forks("train", rows, "-o", tmp_path / "a", "--C", "0.5", "--json").json
    other = forks("train", rows, "-o", tmp_path / "b", "--lam", "0.01", "--json").json
    assert one["lam"] == pytest.approx(0.01)
    assert other["C"] == pytest.approx(0.5)
    assert other["form"] == "J"
    assert other["primal"] == pytest.approx(one["primal"], rel=2e-3)


def test_the_trace_and_how_often(tmp_path: Path, forks: Forks, rows: Path) -> None:
    trace = tmp_path / "t.jsonl"
    done = forks(
        "train",
        rows,
        "-o",
        tmp_path / "m",
        "--trace",
        trace,
        "--record-every",
        "100",
        "--tol",
        "1e-5",
        "--json",
    )
    records = [json.loads(line) for line in trace.read_text().splitlines()]
    assert [record["visits"] for record in records] == [100 * (k + 1) for k in range(len(records))]
    assert all(record["kind"] == "certified" for record in records)
    assert records[-1]["relative_gap"] == done.json["relative_gap"]
    assert min(record["primal"] for record in records) >= max(record["dual"] for record in records)


@pytest.mark.slow
def test_options_reach_the_solver_and_the_loss(tmp_path: Path, forks: Forks, rows: Path) -> None:
    common = ("train", rows, "-o", tmp_path / "m", "--json")
    done = forks(
        *common, "--loss", "smooth-hinge:gamma=0.5", "--option", "shrinking=no", "--option", "pg_tol=1e-3"
    )
    assert done.json["loss"] == "smooth-hinge:gamma=0.5"
    model = load_model(tmp_path / "m")
    assert model.options.items() >= {"shrinking": False, "pg_tol": 1e-3}.items()
    assert model.loss_parameters == {"gamma": 0.5}


def test_one_class_against_the_rest(tmp_path: Path, forks: Forks) -> None:
    data = tmp_path / "three.svm"
    data.write_text("1 1:1\n2 2:1\n3 3:1\n2 2:2\n" * 5)
    assert forks("train", data, "-o", tmp_path / "m", "--positive", "2", "--quiet").code == 0
    model = load_model(tmp_path / "m")
    assert model.classes == (None, 2)
    assert forks("predict", tmp_path / "m", data).out.split()[:4] == ["rest", "2", "rest", "2"]
    assert forks("predict", tmp_path / "m", data, "--json").json["labels"][:2] == ["rest", 2]
    assert forks("evaluate", tmp_path / "m", data, "--json").json["accuracy"] == 1.0
    assert forks("certify", tmp_path / "m", data).code == 0


def test_of_two_classes_either_can_be_the_positive_one(tmp_path: Path, forks: Forks) -> None:
    data = write_rows(tmp_path / "rows.svm", labels=(5, 7))
    assert forks("train", data, "-o", tmp_path / "m", "--positive", "5", "--quiet").code == 0
    assert load_model(tmp_path / "m").classes == (7, 5)
    predicted = forks("predict", tmp_path / "m", data).out.split()
    assert np.mean(np.array(predicted, float) == read_svmlight(data).y) > 0.85


def test_indices_from_zero_are_remembered(tmp_path: Path, forks: Forks) -> None:
    data = tmp_path / "zero.svm"
    data.write_text("1 0:1\n-1 1:1\n" * 10)
    # without an index 0, which "auto" alone would take for one-based
    (tmp_path / "new.svm").write_text("1 1:1\n")
    assert "there is an index 0" in forks("train", data, "-o", tmp_path / "m").out
    assert forks("predict", tmp_path / "m", tmp_path / "new.svm").out == "-1\n"
    assert forks("predict", tmp_path / "m", tmp_path / "new.svm", "--zero-based", "no").out == "1\n"


def test_a_device_is_written_to_and_not_replaced(forks: Forks, rows: Path) -> None:
    assert forks("train", rows, "-o", "/dev/null", "--json").code == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.slow
def test_ctrl_c_keeps_the_model(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.svm", rows=3000, columns=60)
    arguments = [
        "train",
        data,
        "-o",
        tmp_path / "m",
        "--trace",
        tmp_path / "t.jsonl",
        "--tol",
        "0",
        "--max-epochs",
        "1e9",
    ]
    arguments += ["--solver", "dcd", "--C", "1000", "--record-every", "30000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "dualgap.cli", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_ctrl_c,
    )
    trace = tmp_path / "t.jsonl"
    deadline = time.monotonic() + 120
    while (
        not (trace.exists() and trace.stat().st_size)
        and time.monotonic() < deadline
        and process.poll() is None
    ):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err == ""
    assert "interrupted; this is the best model so far" in out
    model = load_model(tmp_path / "m")
    assert model.proofs[0].stop_reason == "interrupted"
    assert 0 < model.certificate.dual < model.certificate.primal
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "rows.svm", "t.jsonl"]


def test_ctrl_c_before_training_leaves_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it: reading waits
    process = subprocess.Popen(
        [sys.executable, "-m", "dualgap.cli", "train", str(tmp_path / "pipe"), "-o", str(tmp_path / "m")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_ctrl_c,
    )
    writer = os.open(tmp_path / "pipe", os.O_WRONLY)  # returns once the command has opened its end
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    os.close(writer)
    assert (process.returncode, out) == (130, "")
    assert err.split() == ["dualgap:", "interrupted"]
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


PRESSED = """
import atexit, os, signal, sys, zipfile
from dualgap import cli
from dualgap.cli import report
from dualgap.data import dataset
from dualgap.models import building, saving

signal.signal(signal.SIGINT, signal.default_int_handler)

def press():
    os.kill(os.getpid(), signal.SIGINT)

def before(owner, name, times=1):
    function = getattr(owner, name)
    def pressed(*given, **named):
        for _ in range(times):
            press()
        return function(*given, **named)
    setattr(owner, name, pressed)

moment = sys.argv.pop(1)
if moment == "reading":
    before(dataset, "open_data")
elif moment == "training ends":
    before(building, "model_of")
elif moment == "saving":
    before(saving, "save_model")
elif moment == "saving, twice":
    before(zipfile.ZipFile, "writestr", 2)
elif moment == "report":
    before(report.Trained, "report")
elif moment == "exit":
    atexit.register(press)
cli.main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "code", "saved", "said"),
    [
        ("reading", 130, False, "dualgap: interrupted"),
        ("training ends", 130, True, "dualgap: interrupted (the model is saved as m)"),
        ("saving", 130, True, "dualgap: interrupted (the model is saved as m)"),
        ("saving, twice", 130, False, "dualgap: interrupted"),
        ("report", 130, True, "dualgap: interrupted (the model is saved as m)"),
        ("exit", 0, True, ""),
    ],
)
def test_ctrl_c_at_any_moment(
    tmp_path: Path, rows: Path, moment: str, code: int, saved: bool, said: str
) -> None:
    command = [sys.executable, "-c", PRESSED, moment, "train", str(rows), "-o", "m"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr.strip()) == (code, said)
    assert [path.name for path in tmp_path.iterdir()] == ["m"] * saved
    if saved:
        assert load_model(tmp_path / "m").proofs[0].converged


@pytest.mark.slow
def test_what_is_trained_is_said_before_training(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.svm", rows=3000, columns=60)
    command = [
        sys.executable,
        "-m",
        "dualgap.cli",
        "train",
        str(data),
        "-o",
        str(tmp_path / "m"),
        "--tol",
        "0",
    ]
    command += ["--C", "1000", "--max-epochs", "1e9", "--solver", "dcd"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=heed_ctrl_c,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]  # it trains for ever: these come before its end
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert "3,000 rows, 60 features" in lines[0]
    assert "hinge loss, C = 1000, no bias, solver dcd" in "".join(lines)
    assert "3,000 rows" not in rest, "once is enough"
    assert rest.lstrip().startswith("interrupted")


@pytest.mark.slow
def test_it_is_said_on_the_terminal_too_where_only_that_shows_progress(tmp_path: Path, rows: Path) -> None:
    for more, expected in (([], True), (["--json"], False)):
        terminal, end = os.openpty()
        command = [sys.executable, "-m", "dualgap.cli", "train", str(rows), "-o", str(tmp_path / "m"), *more]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=end, text=True)
        os.close(end)
        seen = b""
        with contextlib.suppress(OSError):
            while piece := os.read(terminal, 1000):
                seen += piece
        out, _ = process.communicate(timeout=60)
        os.close(terminal)
        assert (b"auto begins with dcd: many cheap steps suit" in seen) == expected
        assert ("auto begins with dcd" in out) == expected


@pytest.mark.slow
def test_columns_of_different_scales_are_named_as_the_cause(tmp_path: Path, forks: Forks) -> None:
    """The same words as in the warning of the estimator."""
    data = write_rows(tmp_path / "rows.svm")
    (tmp_path / "uneven.svm").write_text(re.sub(r" 12:(\S+)", r" 12:\1e5", data.read_text()))
    limits = ("--tol", "0", "--solver", "dcd", "--time-limit", "1e-9")
    uneven = forks("train", tmp_path / "uneven.svm", "-o", tmp_path / "m", *limits)
    assert uneven.code == 3
    assert "The likely cause is the scale of X: its columns have norms from" in uneven.out
    assert "scale the columns first (--scale max-abs). Otherwise raise --time-limit or" in uneven.out
    assert "raise" not in uneven.out.split("The likely cause")[0]
    assert (
        "likely cause"
        not in forks("train", tmp_path / "uneven.svm", "-o", tmp_path / "m", "--tol", "1e9").out
    )
    even = forks("train", data, "-o", tmp_path / "m", "--tol", "0", "--max-epochs", "2", "--solver", "dcd")
    assert "scale" not in even.out
    assert "raise --max-epochs or loosen the gap" in even.out


@pytest.mark.data
def test_a9a_as_the_papers_have_it(tmp_path: Path, forks: Forks, data_folder: Path) -> None:
    found = forks("train", data_folder / "a9a.svm.bz2", "-o", tmp_path / "m", "--tol", "1e-4", "--json").json
    assert found["dual"] <= 11433.8078  # the optimum, to 2e-9
    assert found["primal"] >= 11433.8076
    assert found["relative_gap"] <= 1e-4
    test = forks("evaluate", tmp_path / "m", data_folder / "a9a.t.svm.bz2", "--json").json
    assert test["accuracy"] == pytest.approx(0.849, abs=0.003)
    assert forks("certify", tmp_path / "m", data_folder / "a9a.svm.bz2").code == 0


def test_a_plan_trains_nothing(tmp_path: Path, forks: Forks, rows: Path) -> None:
    before = sorted(tmp_path.iterdir())
    arguments = (
        "train",
        rows,
        "--plan",
        "--solver",
        "sdca",
        "--option",
        "order=random",
        "--option",
        "iterate=average",
    )
    told = forks(*arguments, "--lam", "0.1")
    assert told.code == 0
    assert "steps" in told.out
    assert "T0=" in told.out
    assert forks(*arguments, "--lam", "0.1", "--json").json["plan"] == told.out.splitlines()
    assert sorted(tmp_path.iterdir()) == before
    assert forks("train", rows, "--plan", "--solver", "pegasos", "--option", "k=5000").error == (
        "k=5000 is more than the 200 rows there are; lower k"
    )
    missing = forks("train", rows)
    assert missing.code == 2
    assert "--output" in missing.error


@pytest.mark.slow
def test_early_stopping_on_a_file(tmp_path: Path, forks: Forks, rows: Path) -> None:
    held_out = write_rows(tmp_path / "held.svm", rows=80, seed=5)
    arguments = (
        "train",
        rows,
        "-o",
        tmp_path / "m",
        "--solver",
        "sgd",
        "--lam",
        "0",
        "--validation",
        held_out,
    )
    found = forks(*arguments, "--patience", "2", "--json").json
    assert found["stop_reason"] == "early"
    assert not found["converged"]
    assert (found["dual"], found["form"]) == (0.0, "mean")
    told = forks(*arguments, "--patience", "2")
    assert "lam = 0 (no regulariser)" in told.out
    assert "Nothing is proven" in told.out
    assert forks("inspect", tmp_path / "m").code == 0
    assert forks("certify", tmp_path / "m", rows).code == 0
    strange = write_rows(tmp_path / "strange.svm", rows=5, labels=(3, 4))
    refused = forks("train", rows, "-o", tmp_path / "n", "--validation", strange)
    assert refused.code == 2
    assert "is none of the training rows'" in refused.error
