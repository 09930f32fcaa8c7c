"""Stores whose labels are words: what their headers must say, and which rows they refuse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualgap.data.formats.arrow.feed import StoreFeed
from dualgap.data.formats.arrow.header import KEY, Header, seal
from dualgap.data.formats.arrow.ipc import ArrowFile
from dualgap.data.formats.arrow.store import batch_of, schema
from dualgap.files import Store, write_store
from dualgap.runtime.errors import InputError

pa = pytest.importorskip("pyarrow")

LABELS = np.array(["spam", "ham", "spam", "egg", "ham", "spam"])
X = np.arange(12.0).reshape(6, 2)


def rewritten(file: Path, changes: dict[str, Any], labels: Any = None) -> Store:
    """The store with another header, sealed, and perhaps other labels, with their checksum."""
    store = Store(file)
    layout = schema(store.header.value_type, store.header.weighted)
    table = store.batch(0)
    batch, checksum = batch_of(layout, table.X, table.codes if labels is None else np.array(labels), None)
    told = {**json.loads(replace(store.header, checksums=[checksum]).to_json()), **changes}
    told = {key: value for key, value in told.items() if key != "checksum" and value != "left out"}
    with file.open("wb") as stream:
        written = ArrowFile(stream, layout, None)
        written.write(batch)
        written.close({KEY: json.dumps({**told, "checksum": seal(told)}).encode()})
    return Store(file)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_store(tmp_path / "rows.arrow", X, LABELS, keep_order=True)
    return tmp_path / "rows.arrow"


def test_names_are_kept_with_their_counts(file: Path) -> None:
    header = rewritten(file, {}).header
    assert header.label_names == ["egg", "ham", "spam"]
    assert header.classes == [[0.0, 1], [1.0, 2], [2.0, 3]]
    assert header.class_weights == [1.0, 2.0, 3.0]
    assert Store(file).read().y.tolist() == LABELS.tolist()
    feed = StoreFeed(Store(file))
    assert feed.origin.label_names == ("egg", "ham", "spam")
    assert feed.load(0, True).y.tolist() == [2.0, 1.0, 2.0, 0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "changes",
    [
        {"label_names": ["spam", "ham", "egg"]},
        {"label_names": ["egg", "ham", "ham"]},
        {"label_names": ["", "ham", "spam"]},
        {"label_names": ["egg", "ham"]},
        {"label_names": "abc"},
        {"label_names": [1, 2, 3]},
        {"label_names": []},
        {"label_names": None},
        {"label_names": "left out"},
        {"version": 1},
        {"version": True},
        {"classes": [[0.0, 1], [1.0, 2], [2.5, 3]]},
        {"classes": [[-1.0, 1], [1.0, 2], [2.0, 3]]},
    ],
)
def test_names_that_cannot_be_are_refused(file: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="metadata of this store are damaged"):
        rewritten(file, changes)


@pytest.mark.parametrize("code", [3.0, -1.0, 0.5, np.nan, np.inf])
def test_codes_without_names_are_refused(file: Path, code: float) -> None:
    store = rewritten(file, {}, [2.0, 1.0, 2.0, 0.0, 1.0, code])
    with pytest.raises(InputError, match=r"batch 0 .* is damaged: it has labels without names"):
        store.read()
    with pytest.raises(InputError, match=r"batch 0 .* is damaged: its entries or labels are not those"):
        StoreFeed(store).load(0, True)


def test_a_header_from_before_there_were_names(tmp_path: Path) -> None:
    file = tmp_path / "rows.arrow"
    header = write_store(file, X, np.arange(6.0), keep_order=True)
    told = json.loads(header.to_json())
    assert told["version"] == 1
    assert set(told) == {"format", "version", "checksum", *Header.__dataclass_fields__} - {"label_names"}
    assert rewritten(file, {}).read().y.tolist() == list(range(6))
