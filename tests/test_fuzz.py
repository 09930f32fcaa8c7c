"""A short run of the fuzzer's mutations, which `make fuzz` does by the million, and whether its checks can
fail.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from fuzz import models, mutations, seeds, states, targets

from dualgap.data.formats.arrow.store import Store
from dualgap.data.formats.svmlight import pieces as svmlight_pieces
from dualgap.data.formats.svmlight import reading as svmlight

TEXT = (targets.TextTarget, seeds.texts, mutations.mutate_text)
STORE = (targets.StoreTarget, seeds.stores, mutations.mutate_store)
STATE = (states.StateTarget, states.states, states.mutate_state)
MODEL = (models.ModelTarget, models.models, models.mutate_model)
JSON = (models.JsonTarget, models.headers, models.mutate_json)


def test_seeds_are_valid(tmp_path: Path) -> None:
    suffixes = targets.SUFFIXES.items()
    for seed in seeds.texts():
        path = tmp_path / (
            "seed" + next((suffix for magic, suffix in suffixes if seed.startswith(magic)), "")
        )
        path.write_bytes(seed)
        assert svmlight.read_svmlight(path).y.size > 0
    for target, files in (
        (targets.StoreTarget(tmp_path), seeds.stores()),
        (states.StateTarget(tmp_path), states.states()),
        (models.ModelTarget(tmp_path), models.models()),
        (models.JsonTarget(tmp_path), models.headers()),
    ):
        for seed in files:
            target(seed)
        assert target.refused == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "first", "mutate", "inputs"),
    [(*TEXT, 3000), (*STORE, 1000), (*STATE, 400), (*MODEL, 400), (*JSON, 400)],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_changed_files_are_read_right_or_refused(
    tmp_path: Path, kind: Any, first: Any, mutate: Any, inputs: int, seed: int
) -> None:
    random, files, target = Random(seed), first(), kind(tmp_path)
    for _ in range(inputs):
        data = mutate(random.choice(files), random)
        target(data)
        if random.random() < 0.1:
            files.append(data)
    assert 0.1 < target.refused / target.given < 0.97, "most mutations should get beyond the first checks"


@pytest.mark.parametrize("fault", ["value", "line", "column of a fault", "kind of error"])
def test_wrong_reading_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    right = svmlight.parse_piece

    def wrong(text: Any, allowed: Any) -> Any:
        if fault == "kind of error":
            raise IndexError
        try:
            part = right(text, allowed)
        except svmlight_pieces.PieceError as error:
            error.column += fault == "column of a fault"
            raise
        if fault == "value":
            part.values[:] = np.nextafter(part.values, 1.0)
        elif fault == "line":
            part = part._replace(gaps=part.gaps + 1)
        return part

    monkeypatch.setattr(svmlight, "parse_piece", wrong)
    target = targets.TextTarget(tmp_path)
    inputs = [text % k for k in range(40) for text in (b"1 1:0.5\n# %d\n-1 2:1\n", b"1 1:0.5\n-1 2:x %d\n")]
    with pytest.raises((AssertionError, IndexError)):
        list(map(target, inputs))


def test_arrays_that_reach_outside_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Store.read

    def wrong(self: Store) -> Any:
        data = right(self)
        data.X.indices[-1] = data.X.shape[1]
        return data

    monkeypatch.setattr(Store, "read", wrong)
    with pytest.raises(AssertionError):
        targets.StoreTarget(tmp_path)(seeds.stores()[0])
