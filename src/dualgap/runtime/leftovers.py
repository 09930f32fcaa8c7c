"""Temporary files whose names tell which process they belong to, so that those of one that was killed can be
removed.

A process is known by its machine (and, in containers, by its namespace of process numbers), by the boot that
it runs under, by its number and by the moment it started: a number that is used again is not mistaken for it.
A name from another machine, on a folder that several share, is left alone, as nobody here can tell whether
its process is alive.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import stat
from functools import cache
from pathlib import Path
from typing import NamedTuple

_NAME = re.compile(r"\..*\.dualgap-([0-9a-f]{8})-([0-9a-f]{8})-([0-9]+)-([0-9]+)-[0-9a-z_]+\.tmp", re.DOTALL)
_UNKNOWN = "0"  # when a process started, where the system does not tell
_cleaned: set[tuple[int, str]] = set()  # folders, each by a process


class Process(NamedTuple):
    """Whose a temporary file is."""

    machine: str
    boot: str
    number: int
    start: str

    @classmethod
    def this(cls) -> Process:
        """The one that asks."""
        number = os.getpid()
        return cls(*_machine(), number, _start_of(number) or _UNKNOWN)

    @property
    def is_gone(self) -> bool:
        """Whether it has certainly ended."""
        machine, boot = _machine()
        if self.machine != machine:
            return False
        if self.boot != boot:  # the machine was started anew
            return True
        try:
            os.kill(self.number, 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):  # it is there, and another user's, or the name is nobody's
            return False
        start = _start_of(self.number)
        return start is not None and self.start != _UNKNOWN and start != self.start


def affixes(stem: str) -> tuple[str, str]:
    """How the name of a temporary file begins and ends; something random belongs in between."""
    machine, boot, number, start = Process.this()
    return f".{stem}.dualgap-{machine}-{boot}-{number}-{start}-", ".tmp"


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of this user whose processes are gone; once a process and folder."""
    key = os.getpid(), os.path.realpath(folder)
    if key in _cleaned:
        return
    _cleaned.add(key)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            owner = owner_of(entry.name)
            if owner is not None and owner.is_gone:
                with contextlib.suppress(OSError):
                    _remove(Path(entry.path))


def owner_of(name: str) -> Process | None:
    """Whose a file is, by its name; None if it is no temporary file of ours."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    machine, boot, number, start = found.groups()
    return Process(machine, boot, int(number), start)


def _remove(path: Path) -> None:
    about = path.lstat()
    if about.st_uid != os.geteuid():
        return
    if stat.S_ISDIR(about.st_mode):
        shutil.rmtree(path)
    elif stat.S_ISREG(about.st_mode):
        path.unlink()


@cache
def _machine() -> tuple[str, str]:
    """What tells this machine, and its present boot, from others; in hexadecimal digits."""
    namespace = ""
    with contextlib.suppress(OSError):
        namespace = str(Path("/proc/self/ns/pid").readlink())
    machine = f"{platform.node()} {_text('/etc/machine-id')} {namespace}"
    return _digest(machine), _digest(_text("/proc/sys/kernel/random/boot_id"))


def _start_of(number: int) -> str | None:
    """When a process began, in ticks since the boot; None where the system does not tell."""
    found = _text(f"/proc/{number}/stat").rpartition(")")[2].split()
    return found[19] if len(found) > 19 else None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8]
