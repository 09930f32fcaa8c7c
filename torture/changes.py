"""Changes to files: damage, which checksums reveal, and doctored contents, whose checksums agree."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from fuzz import mutations, states

_ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2,
        3,
        2**31,
        2**32,
        2**63,
        10**30,
        0.5,
        -2.5,
        1e300,
        "",
        "x",
        "nan",
        "inf",
        "-inf",
    ),
    *(
        "hinge",
        "logistic",
        "exact",
        "none",
        "classification",
        "regression",
        "J",
        "mean",
        [],
        [1],
        [[1, 2]],
        {},
        {"a": 1},
    ),
)


def damaged(data: bytes, other: bytes, random: Random) -> bytes:
    """A file with flipped bits, a piece cut out, overwritten, or spliced in from another file."""
    start = random.randrange(len(data))
    end = min(len(data), start + random.choice((1, 2, 8, 64, 1000, len(data))))
    way = random.randrange(7)
    if way <= 1:
        new = bytearray(data)
        for _ in range(random.choice((1, 1, 1, 2, 8))):
            new[random.randrange(len(new))] ^= 1 << random.randrange(8)
        return bytes(new)
    if way == 2:
        return data[:start]
    if way == 3:
        return data[:start] + data[end:]
    if way == 4:
        fill = random.choice((b"\0", b"\xff", random.randbytes(1)))
        return data[:start] + fill * (end - start) + data[end:]
    piece = other[(first := random.randrange(len(other))) : first + end - start]
    return data[:start] + piece + data[start if way == 5 else start + len(piece) :]


def _doctored_model(data: bytes, random: Random) -> bytes:
    """A model file in order, whose header or arrays say something else."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        header = json.loads(archive.read("header.json"))
        arrays = {
            name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name)))
            for name in archive.namelist()
            if name != "header.json"
        }
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        if random.random() < 0.7:
            _change_inside(header, random)
        else:
            name = random.choice(list(arrays))
            arrays[name] = _changed_array(arrays[name], random)
    header.pop("checksum", None)
    header["checksum"] = _seal(header, arrays)
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            archive.writestr(f"{name}.npy", buffer.getvalue())
    return sink.getvalue()


def _seal(header: dict[str, Any], arrays: dict[str, Any]) -> str:
    """The checksum of a model file, as its format has it."""
    total = hashlib.sha256(json.dumps(header, sort_keys=True, separators=(",", ":")).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode() + array.tobytes())
    return total.hexdigest()


def _change_inside(value: Any, random: Random) -> None:
    """Change one thing somewhere in a tree of dictionaries and lists."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = random.choice(keys)
        inside = value[key]
        if isinstance(inside, dict | list) and inside and random.random() < 0.8:
            value = inside
            continue
        if isinstance(inside, float | int) and not isinstance(inside, bool) and random.random() < 0.3:
            value[key] = inside * random.choice((2, 0.5, -1, 1 + 1e-9, 1 + 1e-12))
        elif random.random() < 0.1:
            del value[key]
        else:
            value[key] = copy.deepcopy(random.choice(_ODD))
        return


def _changed_array(array: Any, random: Random) -> Any:
    way = random.randrange(5)
    if way == 0:
        return array[:-1] if array.ndim else array
    if way == 1:
        return array.astype(random.choice(("f4", "f8", "i4", "i8", "u8", ">f8", "?", "U5")))
    if way == 2:
        return array[None]
    new = np.array(array)
    if new.size and new.dtype.kind in "fiu":
        odd = (
            (0, 1, -1, 2**31, 2**40, 1e300, np.nan, np.inf, 5e-324)
            if new.dtype.kind == "f"
            else (0, 1, 2**31, 2**40)
        )
        old = new.flat[place := random.randrange(new.size)]
        moved = old * (1 + 1e-9) if new.dtype.kind == "f" else old + 1
        new.flat[place] = random.choice((*odd, moved, moved))
    return new


DOCTORS: dict[str, Callable[[bytes, Random], bytes]] = {
    "model": _doctored_model,
    "store": mutations.mutate_store,
    "state": states.mutate_state,
}
