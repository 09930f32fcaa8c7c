"""Write Arrow IPC files whose buffers begin at multiples of 64 bytes, with metadata that are known only in
the end.

pyarrow serialises every message; it aligns buffers to 8 bytes and offers no choice, and it wants the schema's
metadata before the first batch. So the body of each message is laid out anew here, and its metadata, a
flatbuffer, are told the new places. Likewise the footer: pyarrow writes one for empty batches, which then
gets the real places. Readers of the file take the schema from the footer.

What the format says:
https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
"""

from __future__ import annotations

import struct
from typing import IO, Any

import pyarrow as pa

ALIGNMENT = 64
_MAGIC = b"ARROW1"
CONTINUES = b"\xff\xff\xff\xff"
# the order of fields in the format's tables
MESSAGE_HEADER, _MESSAGE_BODY_LENGTH = 2, 3
BATCH_BUFFERS, BATCH_COMPRESSION = 2, 3
FOOTER_BATCHES = 3
BUFFER = struct.Struct("<qq")  # offset, length
BLOCK = struct.Struct("<qi4xq")  # offset, length of the metadata, length of the body


class ArrowFile:
    """An Arrow file that is being written."""

    def __init__(self, stream: IO[bytes], schema: pa.Schema, compression: str | None = None) -> None:
        self._stream = stream
        self._schema = schema
        self._options = pa.ipc.IpcWriteOptions(compression=compression)
        self._blocks: list[tuple[int, int, int]] = []
        self._at = 0
        self._put(_MAGIC + b"\0\0")
        self._put(schema.serialize())

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._schema, options=self._options) as writer:
            writer.write_batch(batch)
        whole = memoryview(sink.getvalue())
        first = 8 + int32(whole, 4)  # where the message of the schema ends
        length = int32(whole, first + 4)
        metadata = bytearray(whole[first + 8 : first + 8 + length])
        body = whole[first + 8 + length :]
        parts, size = _laid_out(metadata, body)
        start = self._at
        padded = _up(start + 8 + length) - start - 8
        self._put(CONTINUES + struct.pack("<i", padded) + metadata + bytes(padded - length))
        for part in parts:
            self._put(part)
            self._put(bytes(_up(len(part)) - len(part)))
        self._blocks.append((start, 8 + padded, size))

    def close(self, metadata: dict[bytes, bytes]) -> None:
        """Write the footer; the schema gets these metadata."""
        schema = self._schema.with_metadata(metadata)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, schema) as writer:
            for _ in self._blocks:
                writer.write_batch(_empty(schema))
        model = bytes(sink.getvalue())
        length = int32(model, len(model) - 10)
        footer = bytearray(model[len(model) - 10 - length : len(model) - 10])
        blocks = vector(footer, int32(footer, 0), FOOTER_BATCHES)
        for k, block in enumerate(self._blocks):
            BLOCK.pack_into(footer, blocks + k * BLOCK.size, *block)
        self._put(CONTINUES + bytes(4))  # the end of the batches
        self._put(footer + struct.pack("<i", len(footer)) + _MAGIC)

    def _put(self, data: Any) -> None:
        self._stream.write(data)
        self._at += len(data)


def _laid_out(metadata: bytearray, body: memoryview) -> tuple[list[memoryview], int]:
    """The buffers of a message body in their order; their new offsets are written into the metadata."""
    message = int32(metadata, 0)
    header = follow(metadata, field(metadata, message, MESSAGE_HEADER))
    buffers = vector(metadata, header, BATCH_BUFFERS)
    count = int32(metadata, buffers - 4)
    parts, at = [], 0
    for k in range(count):
        offset, length = BUFFER.unpack_from(metadata, buffers + k * BUFFER.size)
        BUFFER.pack_into(metadata, buffers + k * BUFFER.size, at, length)
        if length:
            parts.append(body[offset : offset + length])
            at += _up(length)
    if at:
        struct.pack_into("<q", metadata, field(metadata, message, _MESSAGE_BODY_LENGTH), at)
    return parts, at


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], type=field.type) for field in schema], schema=schema)


def _up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def int32(data: Any, at: int) -> int:
    """The number at a position."""
    number: int = struct.unpack_from("<i", data, at)[0]
    return number


def field(data: Any, table: int, number: int) -> int:
    """The position of a field in a table of a flatbuffer; that of the table if it is left out."""
    catalogue = table - int32(data, table)
    place = catalogue + 4 + 2 * number
    known = place + 2 <= catalogue + struct.unpack_from("<H", data, catalogue)[0]
    offset: int = struct.unpack_from("<H", data, place)[0] if known else 0
    return table + offset


def follow(data: Any, at: int) -> int:
    """The position that an offset leads to."""
    return at + int32(data, at)


def vector(data: Any, table: int, number: int) -> int:
    """The position of the first element of a vector; their number stands right before it."""
    return follow(data, field(data, table, number)) + 4
