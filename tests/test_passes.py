"""Ceilings on the work of ``solver="auto"`` at fixed seeds: see ``support/ceilings.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import passes
from support.ceilings import ceiling


def hold(case: passes.Case) -> None:
    for key, found in passes.measured(case):
        assert found <= ceiling(*key), f"{' / '.join(key)}: {found:.1f} passes"


@pytest.mark.slow
@pytest.mark.parametrize("case", passes.MADE, ids="-".join)
def test_generated_sets(case: passes.Case) -> None:
    hold(case)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("case", passes.REAL, ids="-".join)
def test_real_sets(data_folder: Path, case: passes.Case) -> None:
    if passes.file_of(case.name) is None:
        pytest.skip(f"{case.name} is missing in {data_folder}")
    hold(case)
