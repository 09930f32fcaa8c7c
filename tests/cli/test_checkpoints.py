"""``train --checkpoint`` and ``train --resume``, and the signal by which schedulers end programs."""

from __future__ import annotations

import json
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.files import load_model
from support.commands import Forks, forks_fixture, write_rows  # noqa: F401


@pytest.fixture(scope="module", name="rows")
def rows_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.svm")


def _same(one: Path, other: Path) -> None:
    left, right = load_model(one), load_model(other)
    assert np.array_equal(left.coef, right.coef)
    assert left.certificate == right.certificate


@pytest.mark.parametrize("solver", ["dcd", "sgd", "newton"])
def test_a_run_is_resumed_by_the_command_line(forks: Forks, rows: Path, tmp_path: Path, solver: str) -> None:
    train = ["train", rows, "--solver", solver, "--tol", "1e-13", "--json"]
    whole = forks(*train, "-o", tmp_path / "whole", "--max-epochs", 40)
    first = forks(*train, "-o", tmp_path / "model", "--max-epochs", 7, "--checkpoint", tmp_path / "run")
    assert first.code == 3, first.err
    assert first.json["stop_reason"] == "max_epochs"
    resume = ["--resume", tmp_path / "run", "--checkpoint", tmp_path / "run", "--checkpoint-every", "10min"]
    rest = forks(*train, "-o", tmp_path / "model", "--max-epochs", 40, *resume)
    assert (rest.code, rest.err) == (whole.code, "")
    _same(tmp_path / "whole", tmp_path / "model")
    assert rest.json["visits"] == whole.json["visits"]
    assert dualgap.load_state(tmp_path / "run").state.counts.visits > 0


def test_what_differs_is_said_in_one_line(forks: Forks, rows: Path, tmp_path: Path) -> None:
    run, model = tmp_path / "run", tmp_path / "model"
    forks("train", rows, "-o", model, "--solver", "dcd", "--checkpoint", run, "--quiet")
    others = write_rows(tmp_path / "others.svm", seed=1)
    labels = tmp_path / "labels.svm"
    turned = re.sub(r"^(-?)1", lambda sign: "1" if sign[1] else "-1", rows.read_text(), flags=re.MULTILINE)
    labels.write_text(turned)
    for data, options, message in (
        (others, [], "trained with different rows, targets or weights"),
        (labels, [], "trained with different rows, targets or weights"),
        (rows, ["--C", "2"], "trained with --lam 0.005 (--C 1), and now it is --lam 0.0025 (--C 2)"),
        (rows, ["--loss", "logistic"], "trained with --loss hinge:margin=1, and now it is --loss logistic"),
        (rows, ["--bias", "augmented"], "trained with --bias none, and now it is --bias augmented"),
        (rows, ["--seed", "3"], "trained with --seed 0, and now it is --seed 3"),
        (rows, ["--option", "shrinking=false"], "shrinking=True, and now it is shrinking=False"),
        (rows, ["--solver", "sdca"], "trained with --solver dcd, and now it is --solver sdca"),
        (rows, ["--solver", "auto"], "trained with --solver dcd, and now it is --solver auto"),
    ):
        train = ["train", data, "-o", tmp_path / "no", "--solver", "dcd", "--resume", run, "--quiet"]
        assert message in forks(*train, *options).error
    assert not (tmp_path / "no").exists()


def test_bad_files_and_durations(forks: Forks, rows: Path, tmp_path: Path) -> None:
    model, run = tmp_path / "model", tmp_path / "run"
    run.write_bytes(b"no run")
    train = ["train", rows, "-o", model, "--quiet"]
    assert "run: not a saved run" in forks(*train, "--resume", run).error
    assert "there is no such file" in forks(*train, "--resume", tmp_path / "none").error
    assert "overwrite the file of --resume" in forks("train", rows, "-o", run, "--resume", run).error
    assert "would overwrite MODEL" in forks(*train, "--checkpoint", model).error
    assert "would overwrite DATA" in forks(*train, "--checkpoint", rows).error
    assert "is no duration; write it as 60s" in forks(*train, "--checkpoint-every", "1x").error
    assert "does not exist; make it first" in forks(*train, "--checkpoint", tmp_path / "no" / "run").error
    assert not model.exists()


def _started(arguments: list[Any], trace: Path) -> subprocess.Popen[str]:
    """A command that has begun to train."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dualgap.cli", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not (trace.exists() and trace.stat().st_size) and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return process


def test_sigterm_keeps_the_model_and_the_run(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.svm", rows=3000, columns=60)
    model, run, trace = tmp_path / "model", tmp_path / "run", tmp_path / "trace.jsonl"
    train: list[Any] = ["train", rows, "--tol", "0", "--C", "1000", "--solver", "sdca", "--stall", "none"]
    train += ["--record-every", "30000"]
    endless = [*train, "-o", model, "--max-epochs", "1e9", "--json", "--trace", trace, "--checkpoint", run]
    process = _started(endless, trace)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (143, "")
    assert json.loads(out)["stop_reason"] == "terminated"
    saved = load_model(model)
    assert saved.proofs[0].stop_reason == "terminated"
    assert 0 < saved.certificate.dual < saved.certificate.primal
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "rows.svm", "run", "trace.jsonl"]
    epochs = dualgap.load_state(run).state.counts.visits // 3000 + 20
    for file, options in (("whole", []), ("resumed", ["--resume", run])):
        last = [*train, "-o", tmp_path / file, "--max-epochs", epochs, "--quiet", *options]
        done = subprocess.run(
            [sys.executable, "-m", "dualgap.cli", *map(str, last)], timeout=300, check=False
        )
        assert done.returncode == 3
    _same(tmp_path / "whole", tmp_path / "resumed")


FITTING = """
import os, signal, sys
import dualgap
from dualgap.training.interruption import CtrlC
from support.problems import noisy
X, y = noisy(1, 200, 5)
mine = []
seen = []
def look(record, run):
    seen.append(signal.getsignal(signal.SIGTERM))
    if sys.argv[1] == "send" and len(seen) == 3:
        os.kill(os.getpid(), signal.SIGTERM)
if sys.argv[1] == "own":
    signal.signal(signal.SIGTERM, lambda *_: mine.append(1))
before = signal.getsignal(signal.SIGTERM)
dualgap.fit(X, y, solver="sdca", tol=0.0, max_epochs=20, record_every=200, callbacks=[look],
            checkpoint=sys.argv[2], checkpoint_every=0)
assert set(seen) == {before} == {signal.getsignal(signal.SIGTERM)}
with CtrlC(terminate=True) as ctrl_c:
    os.kill(os.getpid(), signal.SIGTERM)
    assert ctrl_c.pressed == (sys.argv[1] != "own")
assert signal.getsignal(signal.SIGTERM) is before
assert len(mine) == (sys.argv[1] == "own")
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("how", "code"), [("plain", 0), ("own", 0), ("send", -signal.SIGTERM)])
def test_the_library_leaves_sigterm_alone(how: str, code: int, tmp_path: Path) -> None:
    """A program that is told to end ends at once; its last checkpoint is there."""
    command = [sys.executable, "-c", FITTING, how, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    assert done.stdout == ("done\n" if code == 0 else "")
    assert dualgap.load_state(tmp_path / "run").state.counts.visits > 0


def test_a_second_sigterm_ends_at_once() -> None:
    program = """
import os, signal
from dualgap.training.interruption import CtrlC
with CtrlC(terminate=True):
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGTERM)
        print("still here", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "still here\n")


def _small_disk() -> None:
    """For ``preexec_fn``: files may have 8 kB, enough for the model and not for the run."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))


@pytest.mark.slow
def test_a_checkpoint_that_cannot_be_written_is_one_line(rows: Path, tmp_path: Path) -> None:
    train = ["train", rows, "-o", tmp_path / "m", "--solver", "sdca", "--quiet"]
    train += ["--checkpoint", tmp_path / "run", "--checkpoint-every", "0"]
    command = [sys.executable, "-m", "dualgap.cli", *map(str, train)]
    subprocess.run(command, timeout=300, check=True)  # kernels are compiled now
    assert (tmp_path / "m").stat().st_size < 8000 < (tmp_path / "run").stat().st_size
    before = (tmp_path / "run").read_bytes()
    done = subprocess.run(command, preexec_fn=_small_disk, capture_output=True, text=True, timeout=300)
    said = f"dualgap: warning: checkpoint not saved: {tmp_path / 'run'}: cannot be written: File too large"
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"{said} (the run goes on)\n"
    assert (tmp_path / "run").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "run"]
