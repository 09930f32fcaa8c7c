"""Compressed text: gzip, bzip2, xz and zstd, read stream after stream up to the last byte of the file."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import IO, NamedTuple, Protocol


class Decompressor(Protocol):
    """One stream of compressed data, with the interface of ``bz2.BZ2Decompressor``."""

    @property
    def eof(self) -> bool:
        """Whether the end of the stream has been reached, its checksum found right."""

    @property
    def needs_input(self) -> bool:
        """Whether nothing more comes out before something goes in."""

    @property
    def unused_data(self) -> bytes:
        """What came after the end of the stream."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Some bytes, at most ``max_length`` or a little more."""


class Compression(NamedTuple):
    """A kind of compression. Its data are any number of streams ("members" of gzip, "frames" of zstd)."""

    name: str
    magic: bytes  # at the beginning of the file
    starts: tuple[bytes, ...]  # at the beginning of a later stream
    padding: int  # zero bytes between streams and at the end come in multiples of that; 0: there are none
    begin: Callable[[], Decompressor]


class _Member:
    """A gzip member: ``zlib`` checks its header, its checksum and its length."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def needs_input(self) -> bool:
        return not self._member.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._member.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._member.decompress(self._member.unconsumed_tail + data, max_length)


class _Frame:
    """A zstd frame. Its decompressor knows no limit: little goes in at a time where much comes out."""

    def __init__(self) -> None:
        import zstandard

        self._frame, self._error = zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError
        self._input = b""
        self._step = 1 << 10  # bytes to unpack at a time: 4 of them can hold 128 kB

    @property
    def eof(self) -> bool:
        return self._frame.eof

    @property
    def needs_input(self) -> bool:
        return not self._input

    @property
    def unused_data(self) -> bytes:
        return self._frame.unused_data + self._input

    def decompress(self, data: bytes, max_length: int) -> bytes:
        self._input += data
        some, self._input = self._input[: self._step], self._input[self._step :]
        try:
            part = self._frame.decompress(some)
        except self._error as error:
            raise OSError(str(error)) from None
        self._step = max(64, self._step // 8) if len(part) > 1 << 20 else min(2 * self._step, 1 << 17)
        return part


class DamageError(Exception):
    """What is wrong with compressed data."""


class Unpacked:
    """What compressed data hold: stream after stream, up to the last byte of the file.

    ``bz2.BZ2File`` and ``lzma.LZMAFile`` take whatever follows the first stream and is no stream for the end
    of the data. The rows of a damaged later stream would be missing, and nobody would know.
    """

    def __init__(self, raw: IO[bytes], form: Compression) -> None:
        self._raw, self._form = raw, form
        self._stream: Decompressor | None = form.begin()
        self._input = b""

    def read(self, size: int) -> bytes:
        """Some bytes, at most ``size`` or a little more; none at the end."""
        parts, length = [], 0
        while length < size and self._stream is not None:
            if self._stream.needs_input and not self._input:
                self._input = self._raw.read(_INPUT)
                if not self._input:
                    raise DamageError("cut short")
            some, self._input = self._input, b""
            try:
                part = self._stream.decompress(some, size - length)
            except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
                if "memory" in str(error).lower():
                    raise DamageError(f"packed for readers of more than {_MEMORY >> 20} MB") from None
                raise DamageError("damaged") from None
            parts.append(part)
            length += len(part)
            if self._stream.eof:
                self._input = self._beyond(self._stream.unused_data)
                self._stream = self._form.begin() if self._input else None
        return b"".join(parts)

    def _beyond(self, rest: bytes) -> bytes:
        """The beginning of the next stream, or nothing at the end of the file."""
        form, found, zeros = self._form, b"", 0
        for more in chain([rest], iter(lambda: self._raw.read(_INPUT), b"")):
            both = found + more
            found = both.lstrip(b"\0") if form.padding else both
            zeros += len(both) - len(found)
            if len(found) >= _MAGIC:
                break
        if zeros and zeros % form.padding:
            raise DamageError(f"followed by {zeros} zero bytes, which is no multiple of {form.padding}")
        if found and not any(found.startswith(start[: len(found)]) for start in form.starts):
            raise DamageError(f"followed by something that is no {form.name} data")
        return found


_INPUT = 1 << 17  # compressed bytes read at a time
_MEMORY = 1 << 27  # bytes that unpacking may take; zstd has the same limit, and xz -9 takes half of it
_MAGIC = 8  # bytes are enough to know a stream by its beginning
_ZSTD = b"\x28\xb5\x2f\xfd"
# beginnings of frames of metadata, with no text
_SKIPPABLE = tuple(bytes([first, 0x2A, 0x4D, 0x18]) for first in range(0x50, 0x60))
COMPRESSIONS = {
    ".gz": Compression("gzip", b"\x1f\x8b", (b"\x1f\x8b",), 1, _Member),
    ".bz2": Compression("bzip2", b"BZh", (b"BZh",), 0, bz2.BZ2Decompressor),
    ".xz": Compression(
        "xz", b"\xfd7zXZ\x00", (b"\xfd7zXZ\x00",), 4, partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, _MEMORY)
    ),
    ".zst": Compression("zstd", _ZSTD, (_ZSTD, *_SKIPPABLE), 0, _Frame),
}
