"""How much memory is free: limits of containers and of the process count."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import pytest

from dualgap.data import memory
from dualgap.data.memory import available_memory
from support.bombs import bounded


@pytest.mark.parametrize("version", [0, 1])
def test_the_limit_of_a_container(tmp_path: Path, monkeypatch: Any, version: int) -> None:
    plain = available_memory()
    _, limit, used, cached = memory._CONTROL_GROUPS[version]
    monkeypatch.setattr(memory, "_CONTROL_GROUPS", [(tmp_path, limit, used, cached)])
    assert available_memory() > plain // 2  # no such files
    (tmp_path / used).write_text("60000000\n")
    (tmp_path / "memory.stat").write_text(f"anon 5\n{cached} 10000000\n")
    (tmp_path / limit).write_text("100000000\n")
    assert available_memory() == 50_000_000
    (tmp_path / used).write_text("900000000\n")
    assert available_memory() == 0
    (tmp_path / limit).write_text("max\n")
    assert available_memory() > plain // 2


def test_the_limit_of_the_process() -> None:
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        pytest.skip("there is a limit already")
    with bounded(10**9):
        assert 10**9 < available_memory() <= 1_500_000_000
