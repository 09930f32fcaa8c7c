"""Checkpoints: runs that are saved under way and resumed as if they had never stopped, and files that are
damaged, made by strangers, or cannot be written.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.runtime import leftovers
from dualgap.runtime.errors import CheckpointWarning
from support.damage import CASES, COMMON, Case, arguments
from support.problems import noisy
from support.states import assert_same

X, Y = noisy(1, 200, 5)
EVERY = [pytest.param(name, marks=[] if name in COMMON else pytest.mark.slow) for name in CASES]
OPTIONS: dict[str, Any] = {"solver": "sdca", "tol": 0.0, "record_every": 200}


def _resumed(case: Case, path: Path, limit: int) -> dualgap.Outcome:
    return dualgap.fit(max_visits=limit, max_epochs=None, resume=path, **arguments(case))


@pytest.mark.parametrize("name", EVERY)
def test_a_resumed_run_is_one_that_never_stopped(name: str, tmp_path: Path) -> None:
    """For every solver, cut at several points by a limit; and by a crash, between two checkpoints."""
    case, path = CASES[name], tmp_path / "run.npz"
    if case.from_disk and "block" in name:
        pytest.skip("their passes add up in another order; see test_out_of_core")
    limit = 4 * case.cut + 3
    whole = dualgap.fit(max_visits=limit, max_epochs=None, **arguments(case))
    shortest = case.options.get("stop_within", 2)
    for cut in (shortest, case.cut // 2, case.cut, 2 * case.cut + 1):
        limited = max(cut, shortest)
        first = dualgap.fit(max_visits=limited, max_epochs=None, checkpoint=path, **arguments(case))
        if first.reason.name == "random stop":  # it has ended by itself, and is only certified once more
            continue
        resumed = _resumed(case, path, limit)
        assert_same(resumed.run, whole.run)
        assert np.array_equal(resumed.coef, whole.coef)
        assert resumed.certificate == whole.certificate
        assert resumed.reason == whole.reason

    def crash(record: dualgap.Record, run: dualgap.Run) -> None:
        if record.visits > case.cut:
            raise ZeroDivisionError

    path.unlink()
    with contextlib.suppress(ZeroDivisionError):  # or it has reached its gap before
        dualgap.fit(max_visits=limit, max_epochs=None, checkpoint=path, checkpoint_every=0,
                    callbacks=[crash], **arguments(case))  # fmt: skip
    if path.exists() and whole.reason.name != "random stop":  # some make all of it in one step
        assert_same(_resumed(case, path, limit).run, whole.run)


def test_checkpoints_come_every_so_often_and_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, saved = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    path = tmp_path / "run.npz"

    def tick(record: dualgap.Record, run: dualgap.Run) -> None:
        clock[0] += 1.0
        if record.visits < 2100 and path.exists():
            saved.append(dualgap.load_state(path).state.counts.visits)
            path.unlink()

    dualgap.fit(X, Y, callbacks=[tick], checkpoint=path, checkpoint_every="3s", max_visits=2100, **OPTIONS)
    assert saved == [600, 1200, 1800]
    assert dualgap.load_state(path).state.counts.visits == 2100


def test_a_checkpoint_that_cannot_be_written_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "run.npz"

    def away(record: dualgap.Record, run: dualgap.Run) -> None:
        if record.visits == 400:
            path.unlink()
            folder.rmdir()
        if record.visits == 1600:
            folder.mkdir()

    with pytest.warns(CheckpointWarning, match="checkpoint not saved: .* does not exist") as warned:
        outcome = dualgap.fit(
            X, Y, callbacks=[away], checkpoint=path, checkpoint_every=0, max_visits=2000, **OPTIONS
        )
    assert len(warned) == 1, "one line, however often it fails"
    assert outcome.trace[-1].visits == 2000
    assert_same(dualgap.load_state(path), outcome.run)


def test_bad_arguments(tmp_path: Path) -> None:
    for given, message in (
        ({"checkpoint": tmp_path / "no" / "run.npz"}, "does not exist; make it first"),
        ({"checkpoint": tmp_path}, "is a folder"),
        ({"checkpoint": tmp_path / "run.npz", "checkpoint_every": -1}, "checkpoint_every=-1 must be"),
        ({"checkpoint_every": "soon"}, "checkpoint_every='soon' is no duration; write it as 60s, 10min"),
        ({"checkpoint_every": "3 weeks"}, "is no duration"),
    ):
        with pytest.raises(dualgap.InputError, match=message):
            dualgap.fit(X, Y, **given)
    with pytest.raises(dualgap.InputError, match=r"checkpoint=.*: only a single run is saved and resumed"):
        dualgap.one_vs_rest(X, np.arange(200) % 3, checkpoint=tmp_path / "run.npz")
    with pytest.raises(dualgap.InputError, match="resume='a': only a single run is saved and resumed"):
        dualgap.one_vs_rest(X, np.arange(200) % 3, resume="a")


KILLED = """
import sys
import dualgap
from support.problems import noisy
X, y = noisy(1, 200, 5)
path = sys.argv[1]
print("begun", flush=True)
dualgap.fit(X, y, solver="sdca", tol=0.0, record_every=200, max_visits=10**9, max_epochs=None, stall=None,
            checkpoint=path, checkpoint_every=0)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    for delay in (0.02, 0.31, 0.77):
        path.unlink(missing_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + 60
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        run = dualgap.load_state(path)
        limit = run.state.counts.visits + 1000
        whole = dualgap.fit(X, Y, max_visits=limit, max_epochs=None, stall=None, **OPTIONS)
        resumed = dualgap.fit(X, Y, max_visits=limit, max_epochs=None, stall=None, resume=run, **OPTIONS)
        assert_same(resumed.run, whole.run)
        leftovers._cleaned.clear()
        dualgap.save_state(path, run)  # the next one to write there removes what the killed one has left
    assert [file.name for file in tmp_path.iterdir() if file.name != "run.npz"] == []


def test_threads_may_save_to_one_path(tmp_path: Path) -> None:
    outcome = dualgap.fit(X, Y, solver="dcd")
    failures: list[BaseException] = []

    def save() -> None:
        try:
            for _ in range(30):
                dualgap.save_state(tmp_path / "run.npz", outcome)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=save) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert_same(dualgap.load_state(tmp_path / "run.npz"), outcome.run)
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    outcome = dualgap.fit(X, Y, solver="dcd")
    (tmp_path / "link").symlink_to(tmp_path / "run.npz")
    dualgap.save_state(tmp_path / "link", outcome)
    assert (tmp_path / "link").is_symlink()
    assert_same(dualgap.load_state(tmp_path / "run.npz"), outcome.run)


FULL = """
import resource, signal, sys, warnings
import dualgap
from support.problems import noisy
X, y = noisy(1, 200, 5)
outcome = dualgap.fit(X, y, solver="sdca")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    dualgap.save_state(sys.argv[1], outcome)
except dualgap.InputError as error:
    print(error)
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    outcome = dualgap.fit(X, y, solver="sdca", tol=1e-6, checkpoint=sys.argv[1], checkpoint_every=0)
print(outcome.converged, *[str(warning.message) for warning in warned])
"""


@pytest.mark.slow
def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    path.write_bytes(b"the one before")
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{path}: cannot be written: File too large",
        f"True checkpoint not saved: {path}: cannot be written: File too large (the run goes on)",
    ]
    assert path.read_bytes() == b"the one before"
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]


def _members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _write(path: Path, members: dict[str, bytes], how: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def _npy(header: str, content: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


def _pickled() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{}], dtype=object), allow_pickle=True)
    return buffer.getvalue()


HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': %s}"
LIES = {
    "a huge shape": _npy(HEADER % "(1, 1099511627776)", bytes(8)),
    "a shape that wraps around": _npy(HEADER % "(4294967296, 4294967296)"),
    "a negative shape": _npy(HEADER % "(-1, -1)", bytes(8)),
    "a pickle": _pickled(),
    "a record": _npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", bytes(8)),
    "a deep header": _npy("(" * 5000),
    "no header": b"\x93NUMPY",
    "another version": b"\x93NUMPY\x09\x00",
    "nothing": b"",
}


@pytest.mark.parametrize("what", LIES)
def test_headers_that_lie_are_refused_before_anything_is_allocated(what: str, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    dualgap.save_state(path, dualgap.fit(X, Y, solver="dcd"))
    members = _members(path)
    _write(path, members)
    dualgap.load_state(path)
    _write(path, {**members, "state.w.npy": LIES[what]})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(dualgap.InputError, match=r"run.npz: not a saved run") as refused:
        dualgap.load_state(path)
    assert "\n" not in str(refused.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


def test_bombs_and_what_is_no_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    dualgap.save_state(path, dualgap.fit(X, Y, solver="dcd"))
    members = _members(path)
    _write(path, {**members, "state.w.npy": bytes(40_000_000)}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(dualgap.InputError, match="compressed, or claim to be larger than the file"):
        dualgap.load_state(path)
    _write(path, {f"{k}": b"" for k in range(10_001)})
    with pytest.raises(dualgap.InputError, match="10001 members"):
        dualgap.load_state(path)
    os.mkfifo(tmp_path / "pipe")
    for name, message in (("pipe", "it is a device"), ("", "it is a folder"), ("none", "no such file")):
        with pytest.raises(dualgap.InputError, match=message):
            dualgap.load_state(tmp_path / name)
    with pytest.raises(dualgap.InputError, match="it is a device"):
        dualgap.load_state("/dev/zero")


def test_a_state_within_a_state_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    dualgap.save_state(path, dualgap.fit(X, Y, solver="dcd", bias="exact", max_epochs=3))
    with np.load(path) as file:
        arrays = dict(file)
    deep = {f"state.{'inner.' * k}class": arrays["state.class"] for k in range(1200)}
    np.savez(path, **{**arrays, **deep})
    with pytest.raises(dualgap.InputError, match=r"run.npz: not a saved run"):
        dualgap.load_state(path)


def test_any_damage_to_the_file_is_refused_in_one_line_or_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    run = dualgap.fit(X, Y, solver="dcd", max_epochs=3, tol=0.0).run
    dualgap.save_state(path, run)
    content, random, refused = path.read_bytes(), Random(0), 0
    for _ in range(600):
        damaged = bytearray(content)
        way = random.choice(["flip", "flip", "cut", "zero", "swap", "insert"])
        place = random.randrange(len(content))
        if way == "flip":
            damaged[place] ^= 1 << random.randrange(8)
        elif way == "cut":
            del damaged[place:]
        elif way == "zero":
            damaged[place : place + 40] = bytes(len(damaged[place : place + 40]))
        elif way == "swap":
            damaged[place : place + 30] = content[: len(damaged[place : place + 30])]
        else:
            damaged[place:place] = random.randbytes(random.randrange(1, 9))
        path.write_bytes(damaged)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = dualgap.load_state(path)
        except dualgap.InputError as error:
            refused += str(error).count("\n") == 0
        else:
            assert_same(found, run)
    assert refused > 400
