"""Write a file whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .errors import InputError
from .leftovers import affixes, remove_leftovers
from .paths import as_path, kind_of_path

_STANDARD = Path("-")


def check_destination(path: str | os.PathLike[str], **others: Path | None) -> Path:
    """The path, if a file can be written there that is none of the others; to be asked before the work
    begins.
    """
    path = as_path(path)
    if path == _STANDARD:
        raise InputError("-: only `dualgap predict` writes to the standard output; give the name of a file")
    kind = kind_of_path(path)
    for name, file in others.items():
        if file is not None and kind != "device" and _same(path, file):
            raise InputError(f"{path}: writing there would overwrite {name}; choose another name")
    folder = path.parent
    if kind == "folder":
        raise InputError(f"{path}: is a folder; give the name of a file to write")
    if kind_of_path(folder) != "folder":
        raise InputError(f"{path}: the folder {folder} does not exist; make it first")
    if not os.access(path if kind == "device" else folder, os.W_OK):
        raise InputError(f"{path}: no permission to write to {folder}")
    return path


def check_destinations(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Refuse outputs that would overwrite an input or one another, each under the name that its user knows it
    by.
    """
    taken = dict(inputs)
    for name, path in outputs.items():
        if path is not None:
            taken[name] = check_destination(path, **taken)


def _same(one: Path, other: Path) -> bool:
    """Whether two names mean one file, by whatever links; ``-`` is the file that the standard input comes
    from.
    """
    try:
        return os.path.samestat(*(os.fstat(0) if path == _STANDARD else path.stat() for path in (one, other)))
    except OSError:  # one of them does not exist: they may yet be names of one file to be
        return _STANDARD not in (one, other) and os.path.realpath(one) == os.path.realpath(other)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write to a temporary name in the same folder; rename it in the end, or remove it if anything goes
    wrong. What a process that was killed has left in the folder is removed, too.
    """
    path = check_destination(path)
    if kind_of_path(path) == "device":  # /dev/null and the like: must not be replaced by a file
        try:
            with path.open("wb") as stream:
                yield stream
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
        return
    target = Path(os.path.realpath(path))  # a symbolic link stays one
    stem = os.fsencode(target.name)[:100].decode("ascii", errors="replace")  # the limit is one of bytes
    stem = stem.replace("\ufffd", "_")
    remove_leftovers(target.parent)
    prefix, suffix = affixes(stem)
    temporary = target.with_name(f"{prefix}{secrets.token_hex(4)}{suffix}")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    _settle(target.parent)


def _settle(folder: Path) -> None:
    """Have the rename survive a power cut, too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
