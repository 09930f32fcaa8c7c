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
from ....runtime.headers import (
    COUNT,
    FLAG,
    NOT_NEGATIVE,
    NUMBER,
    TEXT,
    WHOLE,
    Each,
    Kind,
    Optional,
    check_fields,
    one_of,
)
from ...words import Names, fault_of

KEY = b"dualgap"
FORMAT, VERSION = "dualgap store", 2


_FIELDS = {
    "format": TEXT,
    "version": COUNT,
    "n": COUNT,
    "d": COUNT,
    "nnz": WHOLE,
    "classes": Optional(Each(Each(NUMBER))),
    "class_weights": Optional(Each(NOT_NEGATIVE)),
    "present": WHOLE,
    "weighted": FLAG,
    "total_weight": NUMBER,
    "norms": Each(Kind(lambda value: type(value) in (int, float), "a number"), named=True),  # some overflow
    "zero_based": Optional(FLAG),
    "feature_names": Optional(Each(TEXT)),
    "seed": Optional(WHOLE),
    "value_type": one_of("float32", "float64"),
    "compression": Optional(TEXT),
    "batch_rows": Each(WHOLE),
    "batch_entries": Each(WHOLE),
    "checksums": Each(TEXT),
    "digests": Each(TEXT),
    "compensated": Optional(FLAG),  # as in the first stores
    "label_names": Optional(Each(TEXT)),
}


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
    try:
        told = json.loads(text)
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise ValueError("they are not those of a store")
        version: Any = told.get("version")
        if type(version) is int and version not in (1, VERSION):
            raise InputError(
                f"{path}: a store of version {version!r}, and this dualgap reads versions 1 to {VERSION}"
            )
        if told.pop("checksum", None) != seal(told):
            raise ValueError("their checksum is another")
        check_fields(told, _FIELDS)
        header = Header(**{name: value for name, value in told.items() if name not in ("format", "version")})
        _check(header, version)
    except InputError:
        raise
    except (ValueError, TypeError, RecursionError) as fault:
        raise InputError(
            f"{path}: the metadata of this store are damaged ({str(fault)[:200]}); convert the file anew"
        ) from None
    return header


def _check(header: Header, version: int) -> None:
    """Raise a ValueError unless the fields agree with one another."""
    rows, entries = header.batch_rows, header.batch_entries
    if (header.n, header.nnz) != (sum(rows), sum(entries)):
        raise ValueError("rows or entries are not the sums of those of the batches")
    if not len(rows) == len(entries) == len(header.checksums):
        raise ValueError(f"{len(rows)} batches with rows, {len(entries)} with entries")
    if max(header.n, header.nnz) >= 2**48 or not 0 < header.d <= 2**32 or header.present > header.n:
        raise ValueError(
            f"{header.n} rows, {header.d} columns, {header.nnz} entries, {header.present} present"
        )
    if not header.total_weight > 0.0:
        raise ValueError(f"a total weight of {header.total_weight}")
    if len(header.digests) != 3 or any(len(bytes.fromhex(digest)) != 32 for digest in header.digests):
        raise ValueError("digests that are none")
    names = header.feature_names
    if names is not None and len(names) != header.d:
        raise ValueError(f"{len(names)} feature names for {header.d} columns")
    if not _sound_classes(header):
        raise ValueError("classes that do not go with the rows")
    if not _sound_names(header, version):
        raise ValueError("names of labels that do not go with the classes")


def seal(told: dict[str, Any]) -> str:
    """CRC-32 of the fields of a header, in any order."""
    return f"{zlib.crc32(json.dumps(told, sort_keys=True).encode()):08x}"


def _sound_classes(header: Header) -> bool:
    if header.classes is None or header.class_weights is None:
        return header.classes is None and header.class_weights is None
    if any(len(pair) != 2 or type(pair[1]) is not int or pair[1] < 0 for pair in header.classes):
        return False
    labels = [label for label, _ in header.classes]
    counted = sum(count for _, count in header.classes)
    return counted == header.n and len(set(labels)) == len(labels) == len(header.class_weights)


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
