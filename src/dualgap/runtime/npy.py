"""Arrays of numbers and texts from files of unknown origin: nothing is allocated that a header only claims,
and no pickle is ever read.
"""

from __future__ import annotations

import io
import math
import os
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from .errors import InputError
from .paths import kind_of_path

DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    TypeError,
    NotImplementedError,
    RuntimeError,
    MemoryError,
    OverflowError,
    SyntaxError,
    tokenize.TokenError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy and the standard library raise where a file is not what it should be."""

MOST_MEMBERS = 10_000  # of an archive
_KINDS = "biufU"  # flags, whole numbers, floats and texts
_BEGINNING = 10_016  # bytes that hold a header; NumPy applies its limit of 10,000 after reading them all
_PIECE = 1 << 20  # bytes read at a time


class Layout(NamedTuple):
    """What the header of an ``.npy`` file tells, once it is known that the file is of just that size."""

    shape: tuple[int, ...]
    dtype: Any
    fortran_order: bool
    start: int  # bytes of the header

    @property
    def nbytes(self) -> int:
        """The size of the array."""
        return math.prod(self.shape) * int(self.dtype.itemsize)


def layout_of(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Layout:
    """The header of an array in an archive, of which no more than that is unpacked."""
    with archive.open(member) as stream:
        return _layout(stream.read(_BEGINNING), member.file_size)


def array_of(content: bytes) -> Any:
    """The array of an ``.npy`` file, if its header tells of a plain array of just this size."""
    return _read(io.BytesIO(content), _layout(content[:_BEGINNING], len(content)))


def _layout(beginning: bytes, size: int) -> Layout:
    """The header of a file of that size."""
    head = io.BytesIO(beginning)
    version = np.lib.format.read_magic(head)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"an array in version {version} of the format")
    read_header = (
        np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    )
    shape, fortran_order, dtype = read_header(head)
    if dtype.kind not in _KINDS or dtype.hasobject:
        raise ValueError(f"an array of dtype {dtype}")
    found = Layout(shape, dtype, fortran_order, head.tell())
    if found.nbytes != size - found.start or min(shape, default=0) < 0:
        raise ValueError(f"an array whose header claims the shape {shape}, and which is of another size")
    if dtype.itemsize == 0 and math.prod(shape) > 1:  # NumPy would give each text a place all the same
        raise ValueError(f"{math.prod(shape)} empty texts")
    return found


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, layout: Layout) -> Any:
    """An array of an archive; no more is unpacked than its layout tells."""
    with archive.open(member) as stream:
        return _read(stream, layout)


def _read(stream: IO[bytes], layout: Layout) -> Any:
    """An array in C order."""
    if layout.dtype.itemsize == 0:
        return np.zeros(layout.shape, layout.dtype)
    flat = np.empty(math.prod(layout.shape), layout.dtype)
    room = flat.view(np.uint8).data if flat.size else memoryview(b"")
    stream.read(layout.start)
    while room:
        part = stream.read(min(len(room), _PIECE))
        if not part:
            raise EOFError("an array ends too early")
        room[: len(part)], room = part, room[len(part) :]
    native = flat.astype(layout.dtype.newbyteorder("="), copy=False)
    shaped = native.reshape(layout.shape, order="F" if layout.fortran_order else "C")
    return np.ascontiguousarray(shaped) if layout.shape else shaped  # which would add a dimension


def layout_of_file(path: str | os.PathLike[str]) -> Layout:
    """The header of an ``.npy`` file, which holds a plain array and nothing else."""
    kind = kind_of_path(path)
    if kind != "file":
        shown = "there is no such file" if kind == "missing" else f"it is a {kind}"
        raise InputError(f"{path}: no NumPy array ({shown})")
    try:
        with Path(path).open("rb") as stream:
            return _layout(stream.read(_BEGINNING), os.fstat(stream.fileno()).st_size)
    except DAMAGE as error:
        told = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: no NumPy array that can be read, or a damaged one: {told}") from None


def mapped(path: str | os.PathLike[str], layout: Layout) -> Any:
    """The array of an ``.npy`` file, mapped into memory: read-only, and no more of it than is looked at."""
    if layout.nbytes == 0:
        return np.zeros(layout.shape, layout.dtype)
    order: Any = "F" if layout.fortran_order else "C"
    try:
        return np.asarray(np.memmap(path, layout.dtype, "r", layout.start, layout.shape, order))
    except DAMAGE as error:
        raise InputError(f"{path}: cannot be mapped into memory: {error}") from None


def read_array(path: str | os.PathLike[str]) -> Any:
    """The array of an ``.npy`` file, in memory."""
    return np.array(mapped(path, layout_of_file(path)))


def read_npz(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    """The arrays of a file that ``np.savez`` wrote, by their names; ``what`` it should be, for errors."""
    kind = kind_of_path(path)
    if kind != "file":
        shown = "there is no such file" if kind == "missing" else f"it is a {kind}"
        raise InputError(f"{path}: not {what} ({shown})")
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
            if not stored or sum(member.file_size for member in members) > Path(path).stat().st_size:
                raise ValueError("its members are compressed, or claim to be larger than the file")
            if len(members) > MOST_MEMBERS:
                raise ValueError(f"it has {len(members)} members")
            return {
                member.filename.removesuffix(".npy"): read_member(archive, member, layout_of(archive, member))
                for member in members
            }
    except DAMAGE as error:
        raise InputError(f"{path}: not {what} ({error})") from None
