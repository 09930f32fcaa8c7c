"""A few runs give the same bits as when they were frozen; ``python tests/frozen.py check`` tries all of
them.
"""

from __future__ import annotations

import json

import pytest

import frozen


@pytest.mark.parametrize("name", frozen.KEPT)
def test_a_run_gives_the_same_bits(name: str) -> None:
    table = json.loads(frozen.TABLE.read_text())
    kept = table.get(frozen.signature())
    if kept is None or name not in kept:
        pytest.skip(f"no results are recorded for {frozen.signature()}")
    assert frozen.hashed(frozen.runs()[name]()) == kept[name]


def test_every_solver_is_frozen() -> None:
    assert {name.split()[0] for name in frozen.runs()} >= set(frozen.SOLVERS)
    assert len(frozen.runs()) >= 60
    for kept in json.loads(frozen.TABLE.read_text()).values():
        assert set(kept) <= set(frozen.runs())
