"""The folder in which compiled kernels are kept between processes.

    ROOT/dualgap-0.1.0_numba-0.68.1_py311/core.evaluation.loss_at_zero-<stamp>-<key>.kernel

A folder for each version of dualgap, Numba and Python, a file for each kernel and kinds of arguments. The
stamp is a hash of all that the kernel is made of, the key one of its arguments and of the processor. So
versions never meet in one file, and no index has to be kept in step with the files: a file is written under
another name, then renamed, and processes that compile the same kernel at once replace it by its like. Reading
writes nothing, so a folder may be read-only. A file begins with a checksum; a damaged one counts as missing.

A file that is used is touched, once a day at most; those unused for 90 days are removed by whoever stores
something new. Nothing whose name or place is not as above is ever removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from .._version import __version__
from .errors import KernelCacheWarning

UNUSED_DAYS = 90
DAY = 86_400.0
SUFFIX = ".kernel"

_FOLDER = re.compile(r"dualgap-(?P<dualgap>[\w.+!]+)_numba-(?P<numba>[\w.+!]+)_py(?P<python>\d{2,4})")
_FILE = re.compile(r"[\w.]+-[0-9a-f]{16}-[0-9a-f]{16}\.kernel")
_UNFINISHED = re.compile(r"\.[0-9a-f]{16}\.kernel-tmp")


class Folder(NamedTuple):
    """The kernels of one version of dualgap, Numba and Python."""

    path: Path
    dualgap: str
    numba: str
    python: str
    kernels: int
    bytes: int
    used: float  # seconds since the epoch, of the last use, to a day

    def as_dict(self) -> dict[str, str | int | float]:
        """For JSON."""
        return {**self._asdict(), "path": str(self.path)}


class Removed(NamedTuple):
    """What has been removed."""

    kernels: int
    bytes: int


def cache_root() -> Path:
    """The folder for compiled kernels: ``DUALGAP_CACHE``, else XDG's cache folder, else
    ``~/.cache/dualgap``.
    """
    chosen = os.environ.get("DUALGAP_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "dualgap"
    except RuntimeError:  # no home folder at all, as for some container users
        return Path(os.devnull) / "dualgap"


def folder_name(numba_version: str) -> str:
    """The name of the folder for the kernels of this process."""
    return f"dualgap-{__version__}_numba-{numba_version}_py{sys.version_info.major}{sys.version_info.minor}"


def load(file: Path) -> bytes | None:
    """The content of a file as it was stored, or None; to load it is to use it."""
    try:
        with file.open("rb") as stream:
            checksum, content = stream.read(32), stream.read()
            used = os.fstat(stream.fileno()).st_mtime
    except OSError:
        return None
    if hashlib.sha256(content).digest() != checksum:
        return None
    if time.time() - used > DAY:
        with contextlib.suppress(OSError):  # read-only: then nobody prunes it either
            os.utime(file)
    return content


def store(file: Path, content: bytes) -> None:
    """Store the content of a file, whole or not at all; a warning, one a process, where that is not
    possible.
    """
    global _warned
    folder = file.parent
    unfinished = folder / f".{secrets.token_hex(8)}.kernel-tmp"
    try:
        for attempt in (1, 2):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                unfinished.write_bytes(hashlib.sha256(content).digest() + content)
                unfinished.replace(file)
                break
            except FileNotFoundError:  # the cache has been cleared at this moment
                if attempt == 2:
                    raise
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        if not _warned:
            _warned = True
            warnings.warn(_complaint(folder.parent, error), KernelCacheWarning, stacklevel=2)
        return
    _prune_once(folder.parent)


_warned = False
_pruned: set[Path] = set()


def _complaint(root: Path, error: OSError) -> str:
    return (
        f"compiled kernels cannot be stored in {root} ({error.strerror or error}), so every process compiles "
        "them anew, which takes seconds; let DUALGAP_CACHE name a folder that can be written to"
    )


def _prune_once(root: Path) -> None:
    if root not in _pruned:
        _pruned.add(root)
        prune(root)


def folders(root: Path) -> list[Folder]:
    """What is in the cache, the folder used last first."""
    found = []
    for path, name in _our_folders(root):
        files = [status for file, status in _files(path) if file.suffix == SUFFIX]
        used = max((status.st_mtime for status in files), default=0.0)
        size = sum(status.st_size for status in files)
        found.append(Folder(path, name["dualgap"], name["numba"], name["python"], len(files), size, used))
    return sorted(found, key=lambda folder: -folder.used)


def prune(root: Path, days: float = UNUSED_DAYS) -> Removed:
    """Remove the kernels that nobody has used for so many days, and what killed processes left behind.

    Other processes may use the cache at the same time: to them, what is removed is missing.
    """
    now = time.time()

    def old(file: Path, status: os.stat_result) -> bool:
        return now - status.st_mtime > DAY * (days if file.suffix == SUFFIX else 1.0)

    return _remove(root, old)


def clear(root: Path) -> Removed:
    """Remove all that the library has stored, and nothing else."""
    return _remove(root, lambda file, status: True)


def writable(root: Path) -> bool:
    """Whether kernels can be stored, in the folder or in one that would be made."""
    there = root
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        tempfile.TemporaryFile(dir=there).close()
    except OSError:
        return False
    return True


def _remove(root: Path, unwanted: Callable[[Path, os.stat_result], bool]) -> Removed:
    kernels = size = 0
    for path, _ in _our_folders(root):
        for file, status in list(_files(path)):
            if not unwanted(file, status):
                continue
            with contextlib.suppress(OSError):
                file.unlink()
                kernels += file.suffix == SUFFIX
                size += status.st_size
        with contextlib.suppress(OSError):  # it is not empty, then
            path.rmdir()
    return Removed(kernels, size)


def _our_folders(root: Path) -> Iterator[tuple[Path, re.Match[str]]]:
    """Folders in the cache that have a name of ours; no links, which may lead elsewhere."""
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            name = _FOLDER.fullmatch(entry.name)
            if name is not None and entry.is_dir(follow_symlinks=False):
                yield Path(entry.path), name


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Files in such a folder that have a name of ours."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _FILE.fullmatch(entry.name) or _UNFINISHED.fullmatch(entry.name):
                with contextlib.suppress(OSError):  # removed by another process
                    if entry.is_file(follow_symlinks=False):
                        yield Path(entry.path), entry.stat(follow_symlinks=False)
