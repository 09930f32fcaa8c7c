"""How large the batches of an Arrow file are, in the file and unpacked: known before Arrow makes room.

Arrow believes what a file says: it makes room for the length that stands before a packed buffer, and unpacks
whatever comes. So the places of batches and buffers are read here first, and must be those of the header.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from ....runtime.errors import InputError
from ....runtime.sizes import check_unpacked
from .header import Header
from .ipc import (
    BATCH_BUFFERS,
    BATCH_COMPRESSION,
    BLOCK,
    BUFFER,
    CONTINUES,
    FOOTER_BATCHES,
    MESSAGE_HEADER,
    field,
    follow,
    int32,
    vector,
)

_END = 10  # bytes after the footer: its length, and the name of the format
_LENGTH = struct.Struct("<q")
_SLACK = 4096  # bytes for bitmaps of rows that are missing, though no store has them


class Extents:
    """The sizes of batches as the file has them."""

    def __init__(self, path: Path, header: Header) -> None:
        self._path, self._header = path, header
        self._size = path.stat().st_size
        value = {"float32": 4, "float64": 8}[header.value_type]
        pairs = zip(header.batch_rows, header.batch_entries, strict=True)
        self._expected = [
            8 * (rows + 1) + (4 + value) * entries + (8 + 8 * header.weighted) * rows
            for rows, entries in pairs
        ]
        try:
            with path.open("rb") as file:
                file.seek(self._size - _END)
                length = int32(file.read(_END), 0)
                file.seek(self._size - _END - length)
                footer = file.read(length)
            first = vector(footer, int32(footer, 0), FOOTER_BATCHES)
            self._blocks = [
                BLOCK.unpack_from(footer, first + k * BLOCK.size) for k in range(len(self._expected))
            ]
            for block, expected in zip(self._blocks, self._expected, strict=True):
                if min(block) < 0 or sum(block) > self._size:
                    raise ValueError("a batch lies outside of the file")
                check_unpacked(block[2], expected)
            check_unpacked(self._size, self.total)
        except (OSError, ValueError, OverflowError, struct.error) as fault:
            raise InputError(
                f"{path}: its header or its list of batches is damaged: {fault}; convert the file anew"
            ) from None

    @property
    def total(self) -> int:
        """Bytes of all rows, unpacked, as the header says."""
        return sum(self._expected)

    def check(self, k: int, where: str) -> None:
        """Refuse a batch that is smaller, or unpacks to more, than the header says."""
        begin, metadata, body = self._blocks[k]
        try:
            unpacked = self._unpacked(begin, metadata, body)
            if unpacked is None:
                if body < self._expected[k]:
                    raise ValueError("it is smaller than the header says")
                return
            if unpacked > self._expected[k] + self._expected[k] // 8 + _SLACK:
                raise ValueError(
                    f"it would unpack to {unpacked} bytes, where {self._expected[k]} are expected"
                )
        except (OSError, ValueError, OverflowError, struct.error) as fault:
            raise InputError(f"{where} is damaged: {fault}; convert the file anew") from None

    def _unpacked(self, begin: int, metadata: int, body: int) -> int | None:
        """The bytes that a batch says it unpacks to; None if it is not packed."""
        file = os.open(self._path, os.O_RDONLY)
        try:
            message = os.pread(file, metadata, begin)
            if message[:4] != CONTINUES or int32(message, 4) != metadata - 8:
                raise ValueError("its message is of another length, or older than any store")
            message = message[8:]
            batch = follow(message, field(message, int32(message, 0), MESSAGE_HEADER))
            if field(message, batch, BATCH_COMPRESSION) == batch:
                return None
            first = vector(message, batch, BATCH_BUFFERS)
            total = 0
            for number in range(int32(message, first - 4)):
                offset, length = BUFFER.unpack_from(message, first + number * BUFFER.size)
                if not 0 <= offset <= offset + length <= body:
                    raise ValueError("a buffer lies outside of it")
                if length >= _LENGTH.size:
                    (size,) = _LENGTH.unpack(os.pread(file, _LENGTH.size, begin + metadata + offset))
                    if size < -1:
                        raise ValueError(f"a buffer of {size} bytes")
                    total += length - _LENGTH.size if size == -1 else size  # -1: stored as it is
            return total
        finally:
            os.close(file)
