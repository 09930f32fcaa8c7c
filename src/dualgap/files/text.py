"""Text files that may be compressed, read in pieces that end where a line ends."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from ..errors import InputError

PIECE = 4_000_000  # bytes: large enough for vector operations, small enough for the cache and for memory


class _Format(NamedTuple):
    name: str
    magic: bytes
    open: Callable[[Any], Any]


_COMPRESSED = {
    ".gz": _Format("gzip", b"\x1f\x8b", gzip.GzipFile.__call__ if False else lambda raw: gzip.GzipFile(fileobj=raw)),
    ".bz2": _Format("bzip2", b"BZh", bz2.BZ2File),
    ".xz": _Format("xz", b"\xfd7zXZ\x00", lzma.LZMAFile),
}
_FOREIGN = {
    b"PK\x03\x04": "a zip archive (a dualgap model, perhaps)",
    b"\x28\xb5\x2f\xfd": "zstandard-compressed data",
    b"\x93NUMPY": "a NumPy array",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
