"""Headers of models that say anything at all: refused in one line, or the model that they say."""

from __future__ import annotations

import json
import math
import zipfile
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dualgap
from dualgap.files import Model
from dualgap.models.card import card
from dualgap.models.saving import VERSION, header_of
from dualgap.runtime.archive import read_archive, worded, write_archive
from dualgap.runtime.errors import InputError

X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.where(X @ [1.0, -1.0, 0.5] > 0.2, 1, -1)
K = np.digitize(X[:, 0], [-0.5, 0.5])
NAMES = ["two classes", "three classes", "regression", "expanded", "bare"]
ODD = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    2**31,
    2**48,
    2**53 + 1,
    2**63,
    2**64,
    10**400,
    -(10**30),
    0.5,
    -0.0,
]
ODD += [
    1e308,
    5e-324,
    "",
    "x",
    "inf",
    "-inf",
    "nan",
    "1",
    "J",
    "mean",
    "regression",
    "\ud800",
    "\x1b[2J",
    "a\nb",
]
ODD += [[], [[]], [None], [1, 1], [1, -1], ["a", 1], {}, {"": {}}, {"name": "poly2"}, "kmer:3", "exact"]
ODD += [{"name": "hard-margin", "parameters": {"gamma": 1}}, {"name": "hinge", "parameters": {"a,b": 1}}]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@cache
def trained(name: str) -> Model:
    if name == "two classes":
        return dualgap.fit(X, Y, C=0.1).model
    if name == "three classes":
        return dualgap.one_vs_rest(X, K, C=0.1).model
    if name == "regression":
        return dualgap.fit(X, X[:, 1], loss="squared", C=0.1).model
    if name == "expanded":
        return dualgap.fit(X, Y, C=0.1, expand="poly2", hash_bits=6).model
    return dualgap.LinearSVC(C=0.1, random_state=0, class_weight={1: 2.0, -1: 1.0}).fit(X, Y).to_model()


def labels(name: str) -> Any:
    return {"three classes": K, "regression": X[:, 1]}.get(name, Y)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: Any) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    for name in NAMES:
        trained(name).save(folder / name)
    return {name: folder / name for name in NAMES}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all fields, of those inside others too."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    return [path] * bool(path) + [found for key, item in items for found in places(item, (*path, key))]


def canonical(value: Any) -> Any:
    """A header in which equal meanings are equal: 1 is 1.0, and what is null is left out."""
    if isinstance(value, dict):
        found = {"visits" if key == "steps" else key: canonical(item) for key, item in value.items()}
        return {key: item for key, item in found.items() if item not in (None, "", {})}
    if isinstance(value, list | tuple):
        return [canonical(item) for item in value]
    if isinstance(value, bool):
        return str(value)
    return float(value) if isinstance(value, int) and abs(value) < 2**1000 else value


def one_line(error: InputError, became: str) -> str:
    assert "\n" not in str(error)
    assert len(str(error)) < 600
    return became


def check(name: str, original: Path, copy: Path, header: dict[str, Any]) -> str:
    """What becomes of a model whose header is another."""
    _, arrays = read_archive(original, "dualgap model", VERSION)
    write_archive(copy, header, arrays)
    try:
        loaded = Model.load(copy)
    except InputError as error:
        return one_line(error, "refused")
    assert loaded.written_by == header["dualgap"]
    now = {"version": header["version"]}  # what was of version 1 is saved in version 2
    assert canonical(worded({**header_of(loaded), **now})) == canonical(worded(header))
    assert loaded.coef.tobytes() == trained(name).coef.tobytes()
    assert loaded.intercept.tobytes() == trained(name).intercept.tobytes()
    repr(loaded)
    json.dumps(worded(card(loaded)))
    try:
        if loaded.classes == trained(name).classes and loaded.expand == trained(name).expand:
            np.testing.assert_array_equal(loaded.predict(X), trained(name).predict(X))
        else:
            loaded.predict(X)
        found = loaded.verify(X, labels(name))
    except InputError as error:
        return one_line(error, "unusable")
    if found.verdict == "true":
        for one, other in zip(loaded.certificates, trained(name).certificates, strict=True):
            assert one[:5] == pytest.approx(other[:5], rel=1e-9)
    return str(found.verdict)


@pytest.mark.parametrize("name", NAMES)
def test_any_value_in_any_field(saved: dict[str, Path], tmp_path: Path, name: str) -> None:
    header, _ = read_archive(saved[name], "dualgap model", VERSION)
    paths = places(header)
    became: dict[str, int] = {}

    @settings(
        max_examples=120,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.sampled_from(paths),
        st.sampled_from(ODD) | JSON,
        st.sampled_from(["set", "set", "set", "drop", "add"]),
    )
    def attempt(path: tuple[Any, ...], value: Any, way: str) -> None:
        changed = deepcopy(header)
        place: Any = changed
        for step in path[:-1]:
            place = place[step]
        if way == "drop":
            del place[path[-1]]
        elif way == "add" and isinstance(place, dict):
            place["another"] = value
        else:
            place[path[-1]] = value
        found = check(name, saved[name], tmp_path / "changed", changed)
        became[found] = became.get(found, 0) + 1

    attempt()
    assert became["refused"] > 20
    assert sum(became.values()) > became["refused"] + 5, "some changes should be harmless"


@pytest.mark.parametrize("field", ["C", "proofs", "solver", "classes"])
@pytest.mark.parametrize(
    "text", ["NaN", "-Infinity", "1e999", "9" * 5000, "[" * 100_000, '"\\ud800"', "{", ""]
)
def test_json_that_is_none(saved: dict[str, Path], tmp_path: Path, field: str, text: str) -> None:
    header, _ = read_archive(saved["two classes"], "dualgap model", VERSION)
    header[field] = "PLACE"
    told = json.dumps(header).replace('"PLACE"', text)
    with zipfile.ZipFile(saved["two classes"]) as old, zipfile.ZipFile(tmp_path / "m", "w") as new:
        for member in old.namelist():
            new.writestr(member, told if member == "header.json" else old.read(member))
    with pytest.raises(InputError) as caught:
        Model.load(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_the_test_can_fail(saved: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check of the header, odd values give tracebacks or are taken for others."""
    monkeypatch.setattr("dualgap.models.saving.check_header", lambda header, arrays: None)
    header, _ = read_archive(saved["two classes"], "dualgap model", VERSION)
    failed = 0
    for field, value in (
        ("C", 10**400),
        ("C", True),
        ("classes", "ab"),
        ("solver", []),
        ("n_samples", math.pi),
    ):
        try:
            check("two classes", saved["two classes"], tmp_path / "changed", {**header, field: value})
        except Exception:
            failed += 1
    assert failed >= 4


@pytest.mark.parametrize(
    ("name", "absent"),
    [("regression", [1]), ("two classes", [1]), ("two classes", [None]), ("two classes", ["x"])],
)
def test_absent_labels_that_cannot_be(
    saved: dict[str, Path], tmp_path: Path, name: str, absent: list[Any]
) -> None:
    header, _ = read_archive(saved[name], "dualgap model", VERSION)
    assert check(name, saved[name], tmp_path / "m", {**header, "absent": absent}) == "refused"
    harmless = {"absent": [7]} if name == "two classes" else {}
    assert check(name, saved[name], tmp_path / "m", {**header, **harmless}) == "true"
