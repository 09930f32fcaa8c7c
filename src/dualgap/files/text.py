"""Text files that may be compressed, read in pieces that end where a line ends."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from ..errors import InputError

PIECE = 4_000_000  # bytes: large enough for vector operations to pay, small against the arrays they fill


class _Format(NamedTuple):
    name: str
    magic: bytes
    open: Callable[[Any], Any]


_FORMATS = {
    ".gz": _Format("gzip", b"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw)),
    ".bz2": _Format("bzip2", b"BZh", bz2.BZ2File),
    ".xz": _Format("xz", b"\xfd7zXZ\x00", lzma.LZMAFile),
}
_FOREIGN = {
    b"PK\x03\x04": "a zip archive (a dualgap model?)",
    b"\x28\xb5\x2f\xfd": "zstandard data",
    b"\x93NUMPY": "a NumPy array",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
_BOM = b"\xef\xbb\xbf"


def pieces(path: Path) -> Iterator[bytes]:
    """The text of a file in pieces of some megabytes, each of which ends with a line (the last one with the file)."""
    lines = 0
    rest: list[bytes] = []  # of a line that is longer than a piece, perhaps
    with _opened(path) as (stream, packed):
        while True:
            piece = _read(path, stream, packed, lines)
            if not piece:
                break
            cut = piece.rfind(b"\n") + 1
            if cut:
                text = b"".join([*rest, piece[:cut]])
                lines += text.count(b"\n")
                yield text
                rest = []
            rest.append(piece[cut:])
    last = b"".join(rest)
    if last:
        yield last


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], str | None]]:
    """The decompressed stream, and the name of its compression."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give a file of svmlight text")
    try:
        raw = path.open("rb")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    with raw:
        head = raw.peek(8)[:8]
        if not head:
            raise InputError(f"{path}: the file is empty")
        chosen = _format(path, head)
        if chosen is not None:
            yield chosen.open(raw), chosen.name
        else:
            if head.startswith(_BOM):
                raw.read(len(_BOM))
            yield raw, None


def _format(path: Path, head: bytes) -> _Format | None:
    """The compression that the name promises, once the content has been seen to agree."""
    promised = _FORMATS.get(path.suffix.lower())
    for suffix, found in _FORMATS.items():
        if head.startswith(found.magic) and found != promised:
            stem = path.with_suffix("") if promised else path
            raise InputError(f"{path}: {found.name} data under a name that says otherwise; rename it to {stem}{suffix}")
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise InputError(f"{path}: this is {what}, not svmlight text")
    if promised is not None and not head.startswith(promised.magic):
        raise InputError(
            f"{path}: the name promises {promised.name} data, but the content is not; "
            f"if it is plain text, rename it to {path.with_suffix('')}"
        )
    return promised


def _read(path: Path, stream: IO[bytes], packed: str | None, lines: int) -> bytes:
    try:
        return stream.read(PIECE)
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if packed is None:
            raise InputError(f"{path}: cannot be read: {error}") from None
        raise InputError(
            f"{path}: the {packed} data are damaged or cut short (after some {lines} lines); copy or pack the file anew"
        ) from None
