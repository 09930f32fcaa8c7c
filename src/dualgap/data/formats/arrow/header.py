"""The header of a store: what is known of all its rows, as JSON in the metadata of the Arrow schema.

Where labels are words (version 2), the codes in the file are positions in ``label_names``. A store whose
labels are numbers is of version 1, which knows no names.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ....runtime.errors import InputError
from ...words import Names, fault_of

KEY = b"dualgap"
FORMAT, VERSION = "dualgap store", 2


@dataclass(frozen=True)
class Header:
    """What is known of all rows of a store."""

    n: int
    d: int
    nnz: int
    classes: list[list[float]] | None  # labels with their counts; None where there are too many to be classes
    class_weights: list[float] | None  # their total weights
    present: int  # rows of positive weight
    weighted: bool
    total_weight: float
    norms: dict[str, float]  # Euclidean lengths of the rows: smallest, mean, largest; and how many are empty
    zero_based: bool | None  # how the text that it comes from counts columns
    feature_names: list[str] | None
    seed: int | None  # of the shuffle; None: rows in the order they came in
    value_type: str
    compression: str | None
    batch_rows: list[int]
    batch_entries: list[int]
    checksums: list[str]
    digests: list[str]  # of the rows, for fingerprints
    compensated: bool = False  # the sums of weights are within two units; once they were plain sums
    label_names: list[str] | None = None  # sorted; labels are then positions among them

    def to_json(self) -> bytes:
        """The header as JSON, for the metadata of the schema."""
        told = {"format": FORMAT, "version": VERSION, **asdict(self)}
        if self.label_names is None:
            told["version"] = 1
            del told["label_names"]
        return json.dumps({**told, "checksum": seal(told)}).encode()

    @property
    def names(self) -> Names:
        """What labels stand for; None if they are numbers."""
        return None if self.label_names is None else tuple(self.label_names)

    def knows(self, labels: Any) -> bool:
        """Whether every code has a name; numbers need none."""
        if self.label_names is None:
            return True
        codes = np.asarray(labels)
        return bool(((codes >= 0) & (codes < len(self.label_names)) & (codes == np.floor(codes))).all())


def header_of(path: Path, found: Any) -> Header:
    """The header of a store, from the schema of the file; it must be sound in itself."""
    text = (found.metadata or {}).get(KEY)
    if text is None:
        raise InputError(
            f"{path}: an Arrow file, but no dualgap store: it lacks the metadata {KEY.decode()!r}; "
            "make one with `dualgap convert`"
        )
    other: Any = None
    try:
        told = json.loads(text)
        if told["format"] == FORMAT and told["version"] not in (1, VERSION):
            other = told["version"]
        sealed = told.pop("checksum") == seal(told)
        kind, version = told.pop("format"), told.pop("version")
        header = Header(**told)
        rows, entries = header.batch_rows, header.batch_entries
        names = header.feature_names
        sound = (
            kind == FORMAT
            and sealed
            and all(
                isinstance(several, list) for several in (rows, entries, header.checksums, header.digests)
            )
            and all(isinstance(word, str) for word in header.checksums)
            and all(
                type(k) is int and k >= 0
                for k in (header.n, header.d, header.nnz, header.present, *rows, *entries)
            )
            and (header.n, header.nnz) == (sum(rows), sum(entries))
            and len(rows) == len(entries) == len(header.checksums)
            and header.n > 0
            and max(header.n, header.nnz) < 2**48
            and np.isfinite(header.total_weight)
            and header.total_weight > 0.0
            and type(header.compensated) is bool
            and _sound_classes(header)
            and 0 < header.d <= 2**32
            and header.value_type in ("float32", "float64")
            and type(header.weighted) is bool
            and len(header.digests) == 3
            and all(len(bytes.fromhex(digest)) == 32 for digest in header.digests)
            and header.zero_based in (None, True, False)
            and (names is None or (len(names) == header.d and all(isinstance(name, str) for name in names)))
            and _sound_names(header, version)
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        sound = False
    if other is not None:
        raise InputError(
            f"{path}: a store of version {other!r}, and this dualgap reads versions 1 to {VERSION}"
        )
    if not sound:
        raise InputError(f"{path}: the metadata of this store are damaged; convert the file anew")
    return header


def seal(told: dict[str, Any]) -> str:
    """CRC-32 of the fields of a header, in any order."""
    return f"{zlib.crc32(json.dumps(told, sort_keys=True).encode()):08x}"


def _sound_classes(header: Header) -> bool:
    if header.classes is None or header.class_weights is None:
        return header.classes is None and header.class_weights is None
    counted = sum(count for _, count in header.classes)
    labels = [label for label, _ in header.classes]
    finite = bool(np.isfinite([*labels, *header.class_weights]).all())
    return counted == header.n and finite and len(labels) == len(header.class_weights)


def _sound_names(header: Header, version: int) -> bool:
    """Whether the words that labels stand for are sorted and fit for labels, and all classes have one."""
    names = header.label_names
    if names is None:
        return version == 1
    return (
        version == VERSION
        and isinstance(names, list)
        and len(names) > 0
        and all(isinstance(name, str) and fault_of(name) is None for name in names)
        and names == sorted(set(names))
        and (header.classes is None or header.knows([label for label, _ in header.classes]))
    )
