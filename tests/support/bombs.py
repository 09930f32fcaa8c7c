"""Files that claim more than they hold, or hold far more than they weigh."""

from __future__ import annotations

import io
import resource
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from support.memory import growth

ROOM = 1_500_000_000  # bytes of address space for one attempt: a bomb that goes off hurts nobody


@contextmanager
def bounded(most: int) -> Iterator[None]:
    """The body may take so many bytes of memory at most, and cannot take many more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, hard))
    try:
        with growth() as found:
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert found.bytes <= most, f"{found.bytes:,} bytes, where {most:,} are allowed"


def npy_header(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    """The beginning of an ``.npy`` file."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def deflated(head: bytes, unit: bytes, times: int) -> tuple[bytes, int]:
    """Something, and then something else many times over, packed at once; and how long it is unpacked."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(unit) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + times * again + packer.flush(), len(head) + times * len(unit)


def zip_of(members: dict[str, tuple[bytes, int, int]]) -> bytes:
    """A zip file of members that are packed already: each with its bytes, the size it claims, its method."""
    body, directory = b"", b""
    for name, (data, size, method) in members.items():
        plain = data if method == zipfile.ZIP_STORED else b""
        if method == zipfile.ZIP_DEFLATED:  # the checksum of what nobody unpacks may be wrong
            plain = zlib.decompressobj(-15).decompress(data, 2**24)
        sizes = struct.pack("<III", zlib.crc32(plain), len(data), size)
        word = name.encode()
        local = struct.pack("<HHHHH", 20, 0, method, 0, 33) + sizes + struct.pack("<HH", len(word), 0)
        central = struct.pack("<HHHHHH", 20, 20, 0, method, 0, 33) + sizes
        central += struct.pack("<HHHHHII", len(word), 0, 0, 0, 0, 0, len(body)) + word
        body += b"PK\x03\x04" + local + word + data
        directory += b"PK\x01\x02" + central
    count = len(members)
    end = struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


def with_member(file: Path, name: str, data: bytes, size: int, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive with something else for one of its members."""
    with zipfile.ZipFile(file) as archive:
        kept = {each: archive.read(each) for each in archive.namelist()}
    members = {each: (content, len(content), zipfile.ZIP_STORED) for each, content in kept.items()}
    return zip_of({**members, name: (data, size, method)})
