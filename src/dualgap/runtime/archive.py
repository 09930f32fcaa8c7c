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
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from .errors import InputError
from .paths import kind_of_path
from .writing import replacing

HEADER = "header.json"
MAGIC = b"PK\x03\x04"
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    KeyError,
    NotImplementedError,
    RuntimeError,
)


def write_archive(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write header and arrays, whole or not at all. Numbers that JSON has no words for become "inf", "-inf",
    "nan".
    """
    header = worded(header)
    header["checksum"] = _checksum(header, arrays)
    with replacing(path) as stream, _seekable(stream) as place, zipfile.ZipFile(place, "w") as archive:
        archive.writestr(_member(HEADER), json.dumps(header, indent=1, allow_nan=False), compresslevel=1)
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            archive.writestr(_member(f"{name}.npy"), buffer.getvalue(), compresslevel=1)


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
    path: str | os.PathLike[str], format: str, version: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what ``write_archive`` wrote, if it is of that format, of at most that version, and undamaged."""
    path = Path(path)
    kind = kind_of_path(path)
    if kind == "folder":
        raise InputError(f"{path}: is a folder; give a model file")
    if kind == "missing":
        raise InputError(f"{path}: no such file")
    try:
        with path.open("rb") as stream:
            head = stream.read(4)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if not head.startswith(b"PK\x03\x04"):
        raise InputError(f"{path}: not a {format}; `dualgap train DATA -o MODEL` writes one")
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read(HEADER))
            _check_version(path, header, format, version)
            arrays = {
                member.removesuffix(".npy"): _array(archive.read(member))
                for member in archive.namelist()
                if member != HEADER
            }
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(f"{path}: damaged or cut short ({error}); copy it anew or train again") from None
    if header.pop("checksum", None) != _checksum(header, arrays):
        raise InputError(
            f"{path}: damaged, its checksum does not agree with its content; copy it anew or train again"
        )
    return header, arrays


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
        raise InputError(f"{path}: a zip archive, but not a {format}")
    if header["version"] > version:
        raise InputError(
            f"{path}: written by a newer dualgap ({header.get('dualgap')}) in format version "
            f"{header['version']}; "
            f"this one reads up to version {version}, so upgrade dualgap"
        )


def _array(content: bytes) -> Any:
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name)  # dated 1980: equal models are equal files
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


def _checksum(header: dict[str, Any], arrays: dict[str, Any]) -> str:
    """SHA-256 of the header (sorted keys, no blanks) and of every array's name, type, shape and bytes."""
    total = hashlib.sha256(json.dumps(header, sort_keys=True, separators=(",", ":")).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(array.tobytes())
    return total.hexdigest()
