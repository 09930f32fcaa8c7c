"""Temporary files of processes that were killed, and those of others, which are left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dualgap.runtime import leftovers
from dualgap.runtime.leftovers import Process, affixes, owner_of, remove_leftovers
from dualgap.runtime.writing import replacing

WRITING = """
import sys, time
from dualgap.runtime.writing import replacing
with replacing(sys.argv[1]) as stream:
    stream.write(b"half of it")
    stream.flush()
    print("writing", flush=True)
    time.sleep(600)
"""
SPOOLING = """
import sys, time
from pathlib import Path
import numpy as np
import scipy.sparse as sp
from dualgap.data.formats.arrow.spool import Rows, Spool
spool = Spool(Path(sys.argv[1]).parent, 100, 0)
spool.add(Rows(sp.csr_array(np.ones((50, 3))), np.ones(50), None))
print("writing", flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _afresh() -> None:
    """As in a process that has written nothing yet."""
    leftovers._cleaned.clear()


def _write(path: Path, content: bytes = b"whole") -> None:
    with replacing(path) as stream:
        stream.write(content)


def _hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("program", [WRITING, SPOOLING])
def test_what_a_killed_process_has_left_is_removed_by_the_next(program: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    command = [sys.executable, "-c", program, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    assert len(_hidden(tmp_path)) == 1
    _write(path)  # while it lives
    assert len(_hidden(tmp_path)) == 1, "the file of a living process is its own"
    leftovers._cleaned.clear()
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert len(_hidden(tmp_path)) == 1
    _write(tmp_path / "another")
    assert _hidden(tmp_path) == []
    assert path.read_bytes() == b"whole"


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    machine, boot, number, start = Process.this()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    names = {
        "of another machine": f".a.dualgap-00000000-{boot}-{gone.pid}-1-ab.tmp",
        "of a living process": f".a.dualgap-{machine}-{boot}-{number}-{start}-ab.tmp",
        "of somebody else": f".a.{gone.pid}.tmp",
        "of no process": f".a.dualgap-{machine}-{boot}-{10**30}-1-ab.tmp",
        "not hidden": f"a.dualgap-{machine}-{boot}-{gone.pid}-1-ab.tmp",
        "not temporary": f".a.dualgap-{machine}-{boot}-{gone.pid}-1-ab",
    }
    for name in names.values():
        (tmp_path / name).write_bytes(b"")
    (tmp_path / f".c.dualgap-{machine}-{boot}-{gone.pid}-2-ab.tmp").symlink_to(tmp_path / names["not hidden"])
    ours = {
        "of a process that is gone": f".a.dualgap-{machine}-{boot}-{gone.pid}-1-ab.tmp",
        "of a number used again": f".a.dualgap-{machine}-{boot}-{number}-{int(start) + 1}-ab.tmp",
        "of another boot": f".a\n.dualgap-{machine}-00000000-{number}-{start}-ab.tmp",
    }
    for name in ours.values():
        (tmp_path / name).write_bytes(b"")
    _write(tmp_path / "file")
    left = {path.name for path in tmp_path.iterdir()}
    assert set(names.values()) <= left
    assert not left & set(ours.values())
    assert len(left) == len(names) + 2, "a link is no file of ours"


def test_names_tell_whose_they_are() -> None:
    prefix, suffix = affixes("a file")
    assert owner_of(f"{prefix}12ab{suffix}") == Process.this()
    assert not Process.this().is_gone
    child = os.fork()
    if child == 0:
        os._exit(0 if Process.this().number == os.getpid() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert owner_of("model.dualgap") is None


def test_a_system_that_tells_little_is_asked_for_numbers_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "_text", lambda path: "")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    machine, boot, number, start = Process.this()
    assert start == "0"
    living, dead = (f".a.dualgap-{machine}-{boot}-{who}-0-ab.tmp" for who in (number, gone.pid))
    for name in (living, dead):
        (tmp_path / name).write_bytes(b"")
    remove_leftovers(tmp_path)
    assert _hidden(tmp_path) == [living]


def test_a_folder_that_cannot_be_listed_is_no_error(tmp_path: Path) -> None:
    remove_leftovers(tmp_path / "none")
