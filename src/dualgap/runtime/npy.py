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
from typing import Any

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
    SyntaxError,
    tokenize.TokenError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy and the standard library raise where a file is not what it should be."""

_KINDS = "biufU"  # flags, whole numbers, floats and texts
_MAX_MEMBERS = 10_000


def array_of(content: bytes) -> Any:
    """The array of an ``.npy`` file, if its header tells of a plain array of just this size."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"an array in version {version} of the format")
    read_header = (
        np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    )
    shape, fortran_order, dtype = read_header(stream)
    if dtype.kind not in _KINDS or dtype.hasobject:
        raise ValueError(f"an array of dtype {dtype}")
    start = stream.tell()
    if math.prod(shape) * dtype.itemsize != len(content) - start or min(shape, default=0) < 0:
        raise ValueError(f"an array whose header claims the shape {shape}, and which is of another size")
    if dtype.itemsize == 0:  # an empty text
        return np.zeros(shape, dtype)
    flat = np.frombuffer(content, dtype, offset=start).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if fortran_order else "C").copy(order="C")


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
            if len(members) > _MAX_MEMBERS:
                raise ValueError(f"it has {len(members)} members")
            return {
                member.filename.removesuffix(".npy"): array_of(archive.read(member)) for member in members
            }
    except DAMAGE as error:
        raise InputError(f"{path}: not {what} ({error})") from None
