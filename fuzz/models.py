"""Models, and the JSON headers of models and stores: valid ones to begin with, changes to them, and what must
hold of changed ones.

(Nothing in the library reads traces: JSON lines are written for other programs.)
"""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
import zlib
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

import dualgap
from dualgap.data.formats.arrow import header as store_header
from dualgap.files import Model
from dualgap.models.card import card
from dualgap.models.saving import header_of
from dualgap.runtime.archive import HEADER, checksum_of, worded

from .mutations import mutate_bytes
from .seeds import stores
from .states import change_array, npy, rows
from .targets import Target

_ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 2**31, 2**48, 2**53 + 1, 2**63, 2**64, 10**400, 0.5, -0.0, 1e308),
    *("", "x", "inf", "-inf", "nan", "1", "J", "mean", "regression", "exact", "hinge", "\ud800", "\x1b[2J"),
    *([], [[]], [None], [1, 1], ["a", 1], {}, {"": {}}, {"name": "poly2", "hash_bits": 3, "n_inputs": 4}),
)


@cache
def _models() -> list[bytes]:
    X, y = rows()
    kinds = np.digitize(X[:, 0], [-0.5, 0.5])
    found = [
        dualgap.fit(X, y).model,
        dualgap.fit(X, y, bias="exact", expand="poly2", hash_bits=4).model,
        dualgap.fit(X, X[:, 1], loss="squared", bias="augmented").model,
        dualgap.one_vs_rest(X, kinds).model,
        dualgap.LinearSVC(class_weight="balanced", random_state=0).fit(X, y).to_model(),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m"
        contents = []
        for model in found:
            model.save(path)
            contents.append(path.read_bytes())
    return contents


def models() -> list[bytes]:
    """Model files: of two classes, of several, of regression, expanded, of an estimator."""
    return list(_models())


def _members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _packed(members: dict[str, bytes], how: int) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", how, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return sink.getvalue()


def _sealed(members: dict[str, bytes]) -> dict[str, bytes]:
    """The same with a valid checksum, if it can have one."""
    try:
        header = json.loads(members[HEADER])
        header.pop("checksum", None)
        arrays = {
            name.removesuffix(".npy"): np.load(io.BytesIO(content), allow_pickle=False)
            for name, content in members.items()
            if name != HEADER
        }
        header["checksum"] = checksum_of(header, arrays)
        return {**members, HEADER: json.dumps(header).encode()}
    except Exception:  # damaged before
        return members


def mutate_model(data: bytes, random: Random) -> bytes:
    """Another model file: changed bytes, or one whose checksum agrees and that says something else."""
    try:
        members = _members(data)
    except Exception:  # an earlier mutation has left nothing to decode
        return mutate_bytes(data, random)
    if random.random() < 0.2 or not members:
        return mutate_bytes(data, random)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        name = random.choice((HEADER, *members))
        kind = random.random()
        if kind < 0.05:
            members[random.choice(list(members))] = members.get(name, b"")
        elif kind < 0.15:
            members[name] = mutate_bytes(members.get(name, b""), random)
        elif name == HEADER:
            members[name] = _changed_json(members.get(name, b""), random)
        else:
            members[name] = _changed_array(members[name], random)
    how = zipfile.ZIP_STORED if random.random() < 0.2 else zipfile.ZIP_DEFLATED
    return _packed(_sealed(members) if random.random() < 0.95 else members, how)


def _changed_array(content: bytes, random: Random) -> bytes:
    try:
        return npy(change_array(np.load(io.BytesIO(content), allow_pickle=False), random))
    except Exception:  # damaged before
        return mutate_bytes(content, random)


def mutate_json(data: bytes, random: Random) -> bytes:
    """Another header: changed bytes, or another value in one of its fields."""
    return mutate_bytes(data, random) if random.random() < 0.3 else _changed_json(data, random)


def _changed_json(text: bytes, random: Random) -> bytes:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return mutate_bytes(text, random)
    place: Any = told
    while isinstance(place, dict | list) and place:
        key = random.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if not isinstance(place[key], dict | list) or not place[key] or random.random() < 0.3:
            kind = random.random()
            if kind < 0.1:
                del place[key]
            elif kind < 0.2 and isinstance(place, dict):
                place[random.choice(("another", "steps", "checksum"))] = random.choice(_ODD)
            else:
                place[key] = random.choice(_ODD)
            break
        place = place[key]
    return json.dumps(told).encode()


class ModelTarget(Target):
    """Loads a model, describes it, predicts with it, saves it again, and verifies some: whatever it is, it is
    the same afterwards.
    """

    def check(self, data: bytes) -> None:
        path = self.folder / "input.model"
        path.write_bytes(data)
        model = Model.load(path)
        json.dumps(worded(card(model)), allow_nan=False)
        assert np.isfinite(model.coef).all()
        again = self.folder / "again.model"
        model.save(again)
        other = Model.load(again)
        assert other.coef.tobytes() == model.coef.tobytes()
        assert worded(header_of(other)) == worded(header_of(model))
        X, y = rows()
        model.predict(X)
        if zlib.crc32(data) % 4 == 0:
            targets = X[:, 1] if model.classes is None else y
            model.verify(X, np.digitize(X[:, 0], [-0.5, 0.5]) if len(model.coef) > 1 else targets)


class JsonTarget(Target):
    """Reads a text as the header of a model and as that of a store, with checksums that agree."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._model = ModelTarget(folder)
        self._members = _members(models()[0])

    def check(self, data: bytes) -> None:
        read = 0
        for reader in (self._as_model, self._as_store):
            try:
                reader(data)
                read += 1
            except dualgap.InputError:
                pass
        if not read:
            raise dualgap.InputError("neither takes it")

    def _as_model(self, data: bytes) -> None:
        members = {**self._members, HEADER: data}
        members = members if zlib.crc32(data) % 16 == 0 else _sealed(members)
        self._model.check(_packed(members, zipfile.ZIP_STORED))

    def _as_store(self, data: bytes) -> None:
        try:
            told = json.loads(data)
            told["checksum"] = store_header.seal({k: v for k, v in told.items() if k != "checksum"})
            data = json.dumps(told).encode()
        except Exception:  # no object
            pass
        schema = SimpleNamespace(metadata={store_header.KEY: data})
        header = store_header.header_of(self.folder / "store.arrow", schema)
        assert json.loads(header.to_json())["n"] == sum(header.batch_rows)


def headers() -> list[bytes]:
    """The headers of models and stores."""
    import pyarrow as pa

    found = [_members(models()[k])[HEADER] for k in (0, 2, 4)]  # of arrays of one shape
    for content in stores():
        with pa.ipc.open_file(pa.BufferReader(content)) as reader:
            found.append(reader.schema.metadata[store_header.KEY])
    return found
