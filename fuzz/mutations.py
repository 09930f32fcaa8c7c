"""Changes to files: of bytes, of tokens and lines, of what is inside a packed file, of the parts of a
store.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from dualgap.data.formats.arrow.header import KEY, seal
from dualgap.data.formats.arrow.store import checksum

from .seeds import PACKERS

Mutation = Callable[[bytes, Random], bytes]

_TOKENS = (
    *(
        b" ",
        b"\t",
        b"\n",
        b"\r\n",
        b"\r",
        b"\x00",
        b"\x0b",
        b"#",
        b":",
        b",",
        b"::",
        b"-",
        b"+",
        b".",
        b"e",
        b"E-",
    ),
    *(
        b"0",
        b"00000",
        b"1:1",
        b" 2:2",
        b" 0:1",
        b"qid:3",
        b" qid:",
        b"q",
        b"qi\n",
        b"nan",
        b"inf",
        b"-Infinity",
        b"_",
    ),
    *(
        b"1e309",
        b"1e-400",
        b"e22",
        b"e-23",
        b"9" * 18,
        b"9" * 19,
        b"1e99999",
        b".5",
        b"5.",
        b"0x10",
        b"\xc2\xbd",
    ),
    *(b"2147483647:1", b"2147483648:1", b"4294967295:1", b"4294967296:1", b" 999999999999999999999:1"),
    *(
        b"9007199254740993",
        b"2.2250738585072011e-308",
        b"1.7976931348623159e308",
        b"0." + b"0" * 330,
        b"\xef\xbb\xbf",
    ),
)
_WORDS = (
    0,
    1,
    2,
    7,
    8,
    63,
    64,
    127,
    255,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**62,
    2**63,
    2**64 - 1,
)


def mutate_text(data: bytes, random: Random) -> bytes:
    """Another svmlight text; most often, what a packed one holds is changed, and then packed again."""
    for magic, (unpack, pack) in PACKERS.items():
        if data.startswith(magic) and random.random() < 0.6:
            try:
                plain = unpack(data)
            except Exception:  # whatever a library says of data that an earlier mutation has damaged
                return mutate_bytes(data, random)
            if plain and random.random() < 0.02:  # packed, a token of any length stays a small file
                at = random.randrange(len(plain))
                plain = plain[:at] + plain[at : at + 1] * 200_000 + plain[at:]
            packed = pack(_several(plain, random))
            return packed + pack(plain) if random.random() < 0.1 else packed
    if random.random() < 0.03:
        return random.choice(list(PACKERS.values()))[1](data)
    return _several(data, random)


def _several(data: bytes, random: Random) -> bytes:
    for _ in range(random.choice((1, 1, 1, 2, 3, 5))):
        data = random.choice(_TEXT_MUTATIONS)(data, random)
    return data


def mutate_bytes(data: bytes, random: Random) -> bytes:
    """Flip, overwrite, delete, repeat or cut bytes."""
    if not data:
        return bytes(random.randrange(256) for _ in range(4))
    at, length = random.randrange(len(data)), random.choice((1, 1, 2, 4, 16))
    match random.randrange(6):
        case 0:
            return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]
        case 1:
            return data[:at] + random.randbytes(1) + data[at + 1 :]
        case 2:
            return data[:at] + data[at + length :]
        case 3:
            return data[:at] + data[at : at + length] + data[at:]
        case 4:
            return data[:at]
        case _:
            return data[:at] + random.randbytes(length) + data[at:]


def _insert_token(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(_TOKENS) + data[at + random.choice((0, 0, 0, 1, 3)) :]


def _shuffle_words(data: bytes, random: Random) -> bytes:
    lines = data.split(b"\n")
    k = random.randrange(len(lines))
    words = lines[k].split(b" ")
    random.shuffle(words)
    lines[k] = b" ".join(words)
    return b"\n".join(lines)


def _repeat_lines(data: bytes, random: Random) -> bytes:
    lines = data.split(b"\n")
    k = random.randrange(len(lines))
    return b"\n".join(lines[:k] + lines[k : k + 1] * random.choice((0, 2, 2, 20)) + lines[k:])


def _random_row(data: bytes, random: Random) -> bytes:
    """A row of new numbers, of which some are hard."""
    row = [_number(random)]
    index = 0
    for _ in range(random.randrange(6)):
        index += random.choice((0, 1, 1, 2, 1000)) if random.random() < 0.9 else -1
        row.append(b"%d:" % index + _number(random))
    lines = data.split(b"\n")
    lines.insert(random.randrange(len(lines) + 1), b" ".join(row))
    return b"\n".join(lines)


def _number(random: Random) -> bytes:
    match random.randrange(5):
        case 0:
            return b"%d" % random.randrange(-3, 4)
        case 1:
            return repr(struct.unpack("<d", random.randbytes(8))[0]).encode()
        case 2:
            digits = str(random.randrange(10 ** random.randrange(1, 22))).encode()
            at = random.randrange(len(digits) + 1)
            return digits[:at] + b"." + digits[at:] + b"e%d" % random.randrange(-345, 330)
        case 3:
            return b"%d" % random.randrange(2**62)
        case _:
            return b"%.*g" % (random.randrange(1, 18), random.gauss(0.0, 10.0))


_TEXT_MUTATIONS: tuple[Mutation, ...] = (
    mutate_bytes,
    _insert_token,
    _insert_token,
    _shuffle_words,
    _repeat_lines,
    _random_row,
)


def mutate_store(data: bytes, random: Random) -> bytes:
    """Another store: changed bytes, changed words where the format keeps numbers, changed header, changed
    arrays.
    """
    kind = random.random()
    if kind < 0.25 or len(data) < 32:
        return mutate_bytes(data, random)
    if kind < 0.55:
        return _change_word(data, random)
    if kind < 0.75:
        return _change_digit(data, random)
    try:
        return _written_anew(data, random)
    except Exception:  # an earlier mutation has left nothing to decode
        return _change_word(data, random)


def _change_word(data: bytes, random: Random) -> bytes:
    size, form = random.choice(((2, "<H"), (4, "<I"), (8, "<Q")))
    end = len(data) - size
    at = random.randrange(end) if random.random() < 0.3 else max(0, end - random.randrange(1500))
    at -= at % size
    old = struct.unpack_from(form, data, at)[0]
    new = random.choice((*_WORDS, old + 1, old - 1, old * 2, old // 2)) % (1 << 8 * size)
    return data[:at] + struct.pack(form, new) + data[at + size :]


def _change_digit(data: bytes, random: Random) -> bytes:
    """Within the header's JSON, which keeps its length."""
    first, last = data.rfind(b'{"format"'), data.rfind(b"}")
    if not 0 <= first < last:
        return mutate_bytes(data, random)
    at = random.randrange(first, last)
    new = random.choice(b'0123456789abcdef",:[]{}-. enultrf')
    return data[:at] + bytes([new]) + data[at + 1 :]


def _written_anew(data: bytes, random: Random) -> bytes:
    """An Arrow file in order, whose header or arrays say something else; checksums agree, at times."""
    with pa.ipc.open_file(pa.BufferReader(data)) as reader:
        layout = reader.schema
        batches = [reader.get_batch(k) for k in range(reader.num_record_batches)]
    for batch in batches:
        batch.validate(full=True)  # to write damaged ones can end the process
    told = json.loads(layout.metadata[KEY])
    if random.random() < 0.6:
        _change_header(told, random)
    if random.random() < 0.6:
        k = random.randrange(len(batches))
        batches[k], told["checksums"][k] = _changed_batch(batches[k], told["checksums"][k], random)
    told.pop("checksum", None)
    if random.random() < 0.95:  # beyond the seal of the header
        told["checksum"] = seal(told)
    sink = io.BytesIO()
    text = json.dumps(told).encode()
    layout = layout.with_metadata({KEY: text if random.random() < 0.97 else b"[" * 3000})
    compression = random.choice((None, None, "lz4", "zstd"))
    with pa.ipc.new_file(sink, layout, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        for batch in batches:
            writer.write_batch(batch.replace_schema_metadata({KEY: text}))
    return sink.getvalue()


def _change_header(told: dict[str, Any], random: Random) -> None:
    odd = (
        None,
        True,
        0,
        -1,
        1,
        3,
        2**31,
        2**32,
        2**63,
        10**30,
        0.5,
        float("nan"),
        "",
        "x",
        [],
        [1],
        [[1, 2]],
        {},
        {"a": 1},
    )
    name = random.choice(list(told))
    value = told[name]
    if isinstance(value, list) and value and random.random() < 0.6:
        value[random.randrange(len(value))] = random.choice(odd)
    elif random.random() < 0.1:
        del told[name]
    else:
        told[name] = random.choice(odd)
    if random.random() < 0.5:  # sums that agree with their parts
        for total, parts in (("n", "batch_rows"), ("nnz", "batch_entries")):
            if isinstance(told.get(parts), list) and all(isinstance(part, int) for part in told[parts]):
                told[total] = sum(told[parts])


def _changed_batch(batch: Any, crc: str, random: Random) -> tuple[Any, str]:
    rows = batch.column("row")
    starts = rows.offsets.to_numpy().copy()
    columns, values = (rows.values.field(m).to_numpy().copy() for m in (0, 1))
    others = [column.to_numpy().copy() for column in batch.columns[1:]]
    array = random.choice([starts, columns, values, *others])
    if array.size:
        words = np.array(_WORDS, dtype=np.uint64)
        array.view(f"u{array.itemsize}")[random.randrange(array.size)] = random.choice(words).astype(
            f"u{array.itemsize}"
        )
    entry = rows.type.value_type
    entries = pa.StructArray.from_arrays(
        [pa.array(columns), pa.array(values)], fields=[entry.field(0), entry.field(1)]
    )
    lists = pa.LargeListArray.from_arrays(pa.array(starts), entries, type=rows.type)
    if random.random() < 0.7:
        crc = checksum(starts, columns, values, *others)
    return pa.RecordBatch.from_arrays(
        [lists, *(pa.array(other) for other in others)], schema=batch.schema
    ), crc
