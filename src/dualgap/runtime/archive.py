"""A zip archive of ``header.json`` and ``.npy`` arrays, with a checksum over all of it. None of it is ever
executed.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from .errors import InputError
from .npy import DAMAGE, MOST_MEMBERS, Layout, layout_of, read_member
from .paths import as_path, kind_of_path
from .sizes import LEAST, check_unpacked, shown_size
from .writing import replacing

HEADER = "header.json"
MAGIC = b"PK\x03\x04"
ZIP, MODEL = "a zip archive", "a dualgap model"
_RUN = {"class.npy", "format.npy", "solver.npy"}  # members of a saved run
_SHORT_HEADER = 2**24  # bytes of a header in any file,
_HEADER_FOLD = 20  # and of a longer one for each of its packed bytes


def write_archive(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write header and arrays, whole or not at all. Numbers that JSON has no words for become "inf", "-inf",
    "nan".
    """
    header = worded(header)
    header["checksum"] = checksum_of(header, arrays)
    with replacing(path) as stream, _seekable(stream) as place, zipfile.ZipFile(place, "w") as archive:
        text = json.dumps(header, indent=1, allow_nan=False)
        archive.writestr(_member(HEADER, len(text)), text, compresslevel=1)
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            archive.writestr(_member(f"{name}.npy", array.nbytes), buffer.getvalue(), compresslevel=1)


@contextmanager
def _seekable(stream: IO[bytes]) -> Iterator[IO[bytes]]:
    """The stream, or memory that goes to it in the end: /dev/null says it can seek, and is always at 0."""
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        yield stream
        return
    buffer = io.BytesIO()
    yield buffer
    stream.write(buffer.getbuffer())


def read_archive(
    path: str | os.PathLike[str],
    format: str,
    version: int,
    check: Callable[[dict[str, Any], dict[str, Layout]], None] = lambda header, arrays: None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what ``write_archive`` wrote, if it is of that format, of at most that version, and undamaged.

    ``check`` sees the header and the layouts of the arrays before any of these is unpacked or allocated, and
    raises a ValueError where they are not as they must be.
    """
    path = as_path(path)
    _check_beginning(path, format)
    try:
        with zipfile.ZipFile(path) as archive:
            if HEADER not in archive.namelist():
                raise InputError(f"{path}: this is {kind_of_zip(path)}, and not a {format}")
            members = _members(archive, path.stat().st_size)
            header: Any = json.loads(_text(archive, members.pop(HEADER)), parse_constant=_refuse_constant)
            _check_version(path, header, format, version)
            layouts = {name: layout_of(archive, member) for name, member in members.items()}
            try:
                check({key: value for key, value in header.items() if key != "checksum"}, layouts)
            except ValueError as fault:
                raise InputError(f"{path}: not a valid {format}: {fault}") from None
            arrays = {name: read_member(archive, member, layouts[name]) for name, member in members.items()}
            sound = header.pop("checksum", None) == checksum_of(header, arrays)
    except InputError:
        raise
    except DAMAGE as error:
        told = "there is not enough memory for it" if isinstance(error, MemoryError) else error
        raise InputError(f"{path}: damaged or cut short ({told}); copy it anew or train again") from None
    if not sound:
        raise InputError(
            f"{path}: damaged, its checksum does not agree with its content; copy it anew or train again"
        )
    return header, arrays


def kind_of_zip(path: str | os.PathLike[str]) -> str:
    """What a zip file seems to be, for messages: a model, a saved run, arrays of NumPy's, or any other."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except DAMAGE:
        return ZIP
    if HEADER in names:
        return MODEL
    if names >= _RUN:
        return "a checkpoint (a saved run: `dualgap train --resume` goes on with it)"
    if names and all(name.endswith(".npy") for name in names):
        return "a file of NumPy arrays (.npz)"
    return ZIP


def _check_beginning(path: Path, format: str) -> None:
    """Refuse what is no zip file, without more than a look at it."""
    kind = kind_of_path(path)
    if kind == "folder":
        raise InputError(f"{path}: is a folder; give a model file")
    if kind == "missing":
        raise InputError(f"{path}: no such file")
    if kind == "device":
        raise InputError(f"{path}: not a {format}, but a device or a pipe; give a file")
    try:
        with path.open("rb") as stream:
            head = stream.read(4)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if not head.startswith(MAGIC):
        raise InputError(f"{path}: not a {format}; `dualgap train DATA -o MODEL` writes one")


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The header and the arrays by name, if their sizes are such that they may be unpacked."""
    found = archive.infolist()
    members = {member.filename.removesuffix(".npy"): member for member in found}
    if len(found) > MOST_MEMBERS or len(members) < len(found):
        raise ValueError(f"{len(found)} members, of which some have the same name, or too many")
    if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in found):
        raise ValueError("its members are packed in another way than dualgap packs them")
    check_unpacked(size, sum(member.file_size for member in found))
    header = members[HEADER]
    if header.file_size > max(_SHORT_HEADER, _HEADER_FOLD * min(header.compress_size, size)):
        raise ValueError(f"a header of {shown_size(header.file_size)}")
    return members


def _text(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """A member as bytes; ``archive.read`` may unpack more than the size that the member claims."""
    with archive.open(member) as stream:
        parts = list(iter(lambda: stream.read(1 << 20), b""))
    return b"".join(parts)


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} in its header, which no header has")


def worded(value: Any) -> Any:
    """The same with infinities and NaN as words that ``float`` understands."""
    if isinstance(value, dict):
        return {key: worded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [worded(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _check_version(path: Path, header: Any, format: str, version: int) -> None:
    if (
        not isinstance(header, dict)
        or header.get("format") != format
        or not isinstance(header.get("version"), int)
    ):
        raise InputError(f"{path}: a zip archive with a header, but not a {format}")
    if header["version"] > version:
        raise InputError(
            f"{path}: written by a newer dualgap ({header.get('dualgap')}) in format version "
            f"{header['version']}; "
            f"this one reads up to version {version}, so upgrade dualgap"
        )


def _member(name: str, size: int) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name)  # dated 1980: equal models are equal files
    # a large array of zeros would shrink so much that readers took the file for one that means harm
    member.compress_type = zipfile.ZIP_DEFLATED if size < LEAST // 8 else zipfile.ZIP_STORED
    return member


def checksum_of(header: dict[str, Any], arrays: dict[str, Any]) -> str:
    """SHA-256 of the header (sorted keys, no blanks) and of every array's name, type, shape and bytes."""
    total = hashlib.sha256(json.dumps(header, sort_keys=True, separators=(",", ":")).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(array.view(np.uint8).data if array.size and array.ndim else array.tobytes())
    return total.hexdigest()
