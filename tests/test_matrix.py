"""The matrix test: all pairs compiled, the full product as plain Python."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from dualgap.solvers import SOLVERS
from support import matrix
from support.commands import as_plain_python


def with_one_quick_case_a_solver(cases: list[matrix.Case]) -> list[Any]:
    first = {case.solver: case for case in reversed(cases)}
    return [
        pytest.param(case, marks=[] if first[case.solver] == case else pytest.mark.slow, id=case.label)
        for case in cases
    ]


@pytest.mark.slow
@pytest.mark.parametrize("case", with_one_quick_case_a_solver(matrix.all_pairs()))
def test_pairs_compiled(case: matrix.Case) -> None:
    matrix.check(case)


def test_pairs_cover_every_pair() -> None:
    chosen, everything = matrix.all_pairs(), list(matrix.full_product())
    for i, j in itertools.combinations(range(len(matrix.FACTORS)), 2):
        assert {(case[i], case[j]) for case in chosen} == {(case[i], case[j]) for case in everything}
    assert len(chosen) < len(everything) / 2
    assert {case.solver for case in chosen} == set(SOLVERS)


PARTS = 4


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_full_product_as_plain_python(part: int) -> None:
    run = as_plain_python("support.matrix", part, PARTS)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    expected = len(list(itertools.islice(matrix.full_product(), part, None, PARTS)))
    assert f"{expected} combinations hold" in run.stdout
