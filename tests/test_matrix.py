"""The matrix test: all pairs compiled, the full product as plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import matrix


@pytest.mark.parametrize("case", matrix.all_pairs(), ids=lambda case: case.label)
def test_pairs_compiled(case: matrix.Case) -> None:
    matrix.check(case)


def test_pairs_cover_every_pair() -> None:
    cases = matrix.all_pairs()
    names = list(matrix.FACTORS)
    for i, first in enumerate(names):
        for j, second in enumerate(names):
            if i < j:
                seen = {(case[i], case[j]) for case in cases}
                assert seen == {(a, b) for a in matrix.FACTORS[first] for b in matrix.FACTORS[second]}


def test_full_product_as_plain_python() -> None:
    script = Path(__file__).with_name("matrix.py")
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run([sys.executable, "-W", "error", script], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    assert f"{len(list(matrix.full_product()))} combinations hold" in run.stdout
