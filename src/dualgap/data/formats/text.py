"""Text that may be compressed, in pieces that end where a line ends. Plain files are mapped, all others
streamed.
"""

from __future__ import annotations

import io
import mmap
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...runtime import archive
from ...runtime.errors import InputError
from ...runtime.paths import kind_of_path
from .compression import COMPRESSIONS, Compression, DamageError, Unpacked

if TYPE_CHECKING:
    from ...runtime.decimals import Bytes  # brings kernels that only text needs

LONGEST_LINE = 1 << 26  # bytes: a row of some million entries; what is longer is no text, or means harm
PIECE = 1_000_000  # bytes: long against the start of a task, short against the arrays that it fills
STDIN = Path("-")


@dataclass(frozen=True, eq=False)
class Piece:
    """Some whole lines. ``done`` is the share of the file that has been read with them (0: unknown)."""

    text: Bytes
    done: float = 0.0
    release: Callable[[], None] = lambda: None  # to be called when the text is needed no longer


_FOREIGN = {
    archive.MAGIC: archive.ZIP,
    b"\x93NUMPY": "a NumPy array",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"\x89PNG": "a picture (PNG)",
    b"\xff\xd8\xff": "a picture (JPEG)",
    b"GIF8": "a picture (GIF)",
    b"%PDF": "a PDF document",
    b"\x89HDF": "an HDF5 file",
    b"SQLite f": "an SQLite database",
    b"\x7fELF": "a program (ELF)",
    b"\x80\x02": "a Python pickle, which dualgap never reads",
    b"\x80\x03": "a Python pickle, which dualgap never reads",
    b"\x80\x04": "a Python pickle, which dualgap never reads",
    b"\x80\x05": "a Python pickle, which dualgap never reads",
    b"7z\xbc\xaf": "a 7z archive",
}
_SHOWN = 20  # bytes of a line, in messages
_BOM = b"\xef\xbb\xbf"


def pieces(path: Path, size: int | None = None) -> Iterator[Piece]:
    """The text of a file in pieces of some megabytes, each of which ends with a newline."""
    size = size or PIECE
    with _opened(path) as (raw, packed):
        view = None if packed is not None or path == STDIN else _map_of(raw)
        if view is not None:
            yield from _mapped(path, view, size)
        else:
            yield from _streamed(path, raw, packed, size)


def read_once(path: Path) -> bool:
    """Whether a file can be read only once: the standard input, pipes and the like."""
    return path == STDIN or kind_of_path(path) == "device"


def head_of(path: Path) -> bytes:
    """The first bytes of a file, which show its format."""
    with _readable(path) as raw:
        return _peek(path, raw)


def _map_of(raw: IO[bytes]) -> mmap.mmap | None:
    """The memory map of a regular file; None where there can be none."""
    try:
        if stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
            return mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # larger than the address space may be, or without a size (/proc)
        pass
    return None


def _mapped(path: Path, view: mmap.mmap, size: int) -> Iterator[Piece]:
    """Windows into a memory map; released pages leave memory, so that little is mapped at a time."""
    whole = np.frombuffer(view, dtype=np.uint8)
    at = len(_BOM) if view[: len(_BOM)] == _BOM else 0
    freed = 0

    def release(end: int) -> None:
        nonlocal freed
        end -= end % mmap.PAGESIZE
        if end > freed:
            view.madvise(mmap.MADV_DONTNEED, freed, end - freed)
            freed = end

    while at < len(view):
        end, limit = min(at + size, len(view)), at + LONGEST_LINE
        cut = view.rfind(b"\n", at, end) + 1 or view.find(b"\n", end, limit) + 1
        if not cut:  # the last line, which lacks its newline
            if len(view) > limit:
                _refuse_line(path, view[at : at + _SHOWN])
            yield Piece(_array(view[at:] + b"\n"), 1.0)
            return
        yield Piece(whole[at:cut], cut / len(view), lambda end=cut: release(end))  # type: ignore[misc]
        at = cut


def _streamed(path: Path, raw: IO[bytes], packed: Compression | None, size: int) -> Iterator[Piece]:
    try:
        length = os.fstat(raw.fileno()).st_size
    except OSError:
        length = 0
    try:
        stream: Any = raw if packed is None else Unpacked(raw, packed)
    except ImportError:
        needed = "zstd data need the package zstandard: pip install 'dualgap[zstd]'"
        raise InputError(f"{shown(path)}: {needed}") from None
    rest: list[bytes] = []  # of a line that is longer than a piece, perhaps
    lines = waiting = 0
    block = b""
    while len(block) < len(_BOM) and (more := _read(path, stream, packed, size, lines)):
        block += more  # a pipe may hand on less than was asked for
    block = block.removeprefix(_BOM) or _read(path, stream, packed, size, lines)
    while block:
        cut = block.rfind(b"\n") + 1
        if cut:
            text = b"".join([*rest, block[:cut]])
            lines += text.count(b"\n")
            yield Piece(_array(text), raw.tell() / length if length else 0.0)
            rest, waiting = [], 0
        rest.append(block[cut:])
        waiting += len(block) - cut
        if waiting > LONGEST_LINE:
            _refuse_line(path, rest[0][:_SHOWN])
        block = _read(path, stream, packed, size, lines)
    last = b"".join(rest)
    if last:
        yield Piece(_array(last + b"\n"), 1.0)


def _array(text: bytes) -> Bytes:
    return np.frombuffer(text, dtype=np.uint8)


@contextmanager
def _readable(path: Path) -> Iterator[Any]:
    if path == STDIN:
        raw: Any = sys.stdin.buffer
        yield raw if hasattr(raw, "peek") else io.BufferedReader(raw)
        return
    if kind_of_path(path) == "folder":
        raise InputError(f"{path}: is a folder; give a file")
    try:
        raw = path.open("rb")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    with raw:
        yield raw


def _peek(path: Path, raw: Any) -> bytes:
    try:
        head: bytes = raw.peek(8)[:8]
    except OSError as error:
        raise InputError(f"{shown(path)}: cannot be read: {error.strerror}") from None
    if not head:
        raise InputError(f"{shown(path)}: {'nothing came' if path == STDIN else 'the file is empty'}")
    return head


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], Compression | None]]:
    """The file and its compression."""
    with _readable(path) as raw:
        yield raw, _format(path, _peek(path, raw))


def shown(path: Path) -> str:
    """The name of a file for messages."""
    return "standard input" if path == STDIN else str(path)


def _format(path: Path, head: bytes) -> Compression | None:
    """The compression that the name of a file promises; the content must agree."""
    if path == STDIN:
        found = next((form for form in COMPRESSIONS.values() if head.startswith(form.magic)), None)
        if found is None:
            _refuse_foreign(path, head)
        return found
    promised = COMPRESSIONS.get(path.suffix.lower())
    for suffix, found in COMPRESSIONS.items():
        if head.startswith(found.magic) and found != promised:
            stem = path.with_suffix("") if promised else path
            raise InputError(
                f"{path}: {found.name} data under a name that says otherwise; rename it to {stem}{suffix}"
            )
    _refuse_foreign(path, head)
    if promised is not None and not head.startswith(promised.magic):
        raise InputError(
            f"{path}: the name promises {promised.name} data, but the content is not; "
            f"if it is plain text, rename it to {path.with_suffix('')}"
        )
    return promised


def _refuse_foreign(path: Path, head: bytes) -> None:
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            found = archive.kind_of_zip(path) if what == archive.ZIP and not read_once(path) else what
            raise InputError(f"{shown(path)}: this is {found}, and not svmlight text")
    if head.startswith(b"\0"):
        raise InputError(f"{shown(path)}: these are binary data (bytes of 0), and not svmlight text")


def _refuse_line(path: Path, beginning: bytes) -> NoReturn:
    """Refuse a line that does not end."""
    raise InputError(
        f"{shown(path)}: a line of more than {LONGEST_LINE:,} bytes, which begins with {beginning!r}; rows "
        "of svmlight text are shorter: is this another kind of file?"
    )


def _read(path: Path, stream: Any, packed: Compression | None, size: int, lines: int) -> bytes:
    try:
        live = path == STDIN and packed is None  # hand on what has come, as a terminal or a pipe may pause
        block: bytes = stream.read1(size) if live else stream.read(size)
        return block
    except OSError as error:
        raise InputError(f"{shown(path)}: cannot be read: {error.strerror or error}") from None
    except DamageError as damage:
        assert packed is not None
        raise InputError(
            f"{shown(path)}: the {packed.name} data are {damage} (after some {lines} lines); copy or pack "
            "the file anew"
        ) from None
