"""``dualgap warmup``: afterwards the common fits compile nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dualgap.cli.warmup import _cases
from dualgap.core.losses import NAMES
from dualgap.solvers import SOLVERS, can_train
from support.commands import heed_ctrl_c, run

# Fits of a fresh process, and the kernels that it compiles for them.
FITS = """
import json, sys
import numpy as np
import scipy.sparse as sp
from dualgap import LinearSVC
from numba.core import event

class Compiled(event.Listener):
    names = []
    def on_start(self, found):
        self.names.append(found.data["dispatcher"].py_func.__qualname__)
    def on_end(self, found):
        pass

event.register("numba:compile", Compiled())
rng = np.random.default_rng(0)
for loss in sys.argv[1:]:
    for n, d in ((500, 20), (1000, 2000), (1000, 600_000)):
        for dtype in (np.float64, np.float32):
            X = rng.standard_normal((n, d)) if d == 20 else sp.random_array((n, d), density=20 / d, rng=rng)
            X = X.astype(dtype)
            y = np.where(X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n) > 0, 1, -1)
            for C in (0.1, 1.0, 100.0):
                LinearSVC(loss=loss, C=C, random_state=0).fit(X, y).predict(X)
                LinearSVC(loss=loss, C=C, bias="augmented", random_state=0).fit(X, y)
print(json.dumps(Compiled.names))
"""


def compiled_by_fits(cache: Path, *losses: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FITS, *losses],
        env={**os.environ, "DUALGAP_CACHE": str(cache)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "cases", "losses"),
    [(["--loss", "hinge"], 6, ["hinge"]), ([], 25, ["hinge", "logistic", "squared-hinge"])],
    ids=["hinge", "default"],
)
def test_after_a_warmup_the_common_fits_compile_nothing(
    arguments: list[str], cases: int, losses: list[str], tmp_path: Path
) -> None:
    done = run("warmup", *arguments, "--jobs", 2, "--json", DUALGAP_CACHE=str(tmp_path), timeout=1000)
    assert (done.code, done.err) == (0, "")
    assert (done.json["cases"], done.json["cache"]) == (cases, str(tmp_path))
    assert compiled_by_fits(tmp_path, *losses) == []


@pytest.mark.slow
def test_progress_is_a_line_a_case_where_there_is_no_terminal() -> None:
    """In this process alone, and into the cache that all tests share: most is there already."""
    done = run("warmup", "--loss", "hinge", "--jobs", 1, timeout=1000)
    lines = done.err.splitlines()
    assert [line.partition(":")[0] for line in lines] == [f"{k} of 6" for k in range(1, 7)]
    assert "hinge, sparse float64 rows" in done.err
    assert done.out.startswith("6 cases ready in ")
    assert os.environ["DUALGAP_CACHE"] in done.out


def test_all_is_every_solver_with_every_loss_it_can_train() -> None:
    cases = _cases((), everything=True)
    assert len(cases) == len(set(cases))
    found = {(solver, case.loss) for case in cases for solver in case.solvers}
    assert found == {(name, loss) for name, cls in SOLVERS.items() for loss in NAMES if can_train(cls, loss)}


def test_what_cannot_be_done_is_refused_at_once(tmp_path: Path) -> None:
    assert "unknown loss 'hing'" in run("warmup", "--loss", "hing").error
    (tmp_path / "file").write_text("in the way")
    there = tmp_path / "file" / "cache"
    assert run("warmup", DUALGAP_CACHE=str(there)).error.startswith(
        f"{there}: cannot be written to; let DUAL"
    )


def session_of(pid: int) -> list[int]:
    """The processes that a leader of a session has started, and its own if it is still there."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == pid and fields[0] != "Z":
            found.append(int(folder.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_ctrl_c_ends_all_processes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dualgap", "warmup", "--jobs", "2", "--loss", "hinge", "--json"]
    warmup = subprocess.Popen(
        command,
        env={**os.environ, "DUALGAP_CACHE": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_ctrl_c,
    )
    until = time.monotonic() + 120
    while not list(tmp_path.rglob("*.kernel")):  # now both are at it
        assert time.monotonic() < until
        time.sleep(0.05)
    assert len(session_of(warmup.pid)) >= 3
    os.kill(warmup.pid, signal.SIGINT)  # the first process alone, as a service manager may
    out, err = warmup.communicate(timeout=60)
    assert (warmup.returncode, out, err.strip()) == (130, "", "dualgap: interrupted")
    until = time.monotonic() + 30
    while session_of(warmup.pid):
        assert time.monotonic() < until
        time.sleep(0.05)
