"""The table of ceilings: complete, nothing in it that no run needs, and rewritten as its head says."""

from __future__ import annotations

from typing import Any

import pytest

import ceilings
from support import compiling, matrix, passes
from support.ceilings import MissingCeilingError, ceiling, table


def leaves(found: Any, keys: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    if not isinstance(found, dict):
        return {keys}
    return {leaf for key, below in found.items() for leaf in leaves(below, (*keys, key))}


def test_the_table_has_a_number_for_every_run_and_no_others() -> None:
    epochs = {("epochs", case.solver, case.loss) for case in matrix.full_product()}
    cases = (*passes.MADE, *passes.REAL)
    made = {case.key(*task) for case in cases for task in passes.TASKS}
    compiled = {("compiled", layout, loss) for layout in compiling.LAYOUTS for loss in compiling.LOSSES}
    assert leaves(table()) == epochs | made | compiled


@pytest.mark.parametrize(
    "keys", [("epochs", "dcd", "no-loss"), ("passes",), ("epochs", "no-solver", "hinge")]
)
def test_a_missing_number_says_what_to_do(keys: tuple[str, ...]) -> None:
    with pytest.raises(MissingCeilingError, match=f"no ceiling {' / '.join(keys)}: run `make ceilings`"):
        ceiling(*keys)


@pytest.mark.parametrize(
    ("kind", "before", "measured", "after"),
    [
        ("epochs", 52.0, 45.0, 52.0),  # within 1.2 times: stays
        ("epochs", 52.0, 30.0, 36.0),  # fell
        ("epochs", 52.0, 60.0, 72.0),  # rose
        ("epochs", None, 2.0, 2.0),
        ("passes", 4.2, 3.8, 4.2),
        ("passes", 4.2, 3.0, 3.4),  # at most 1.15 times
        ("passes", None, 10.0, 11.5),
        ("compiled", 23, 23, 23),
        ("compiled", 23, 22, 22),
        ("compiled", 23, 24, 24),
    ],
)
def test_a_ceiling_changes_only_where_it_is_too_low_or_too_high(
    kind: str, before: float | None, measured: float, after: float
) -> None:
    assert ceilings.revised(before, measured, kind) == after


def test_the_changes_are_told() -> None:
    kept = {"epochs": {"dcd": {"hinge": 52.0, "squared": 10.0}}}
    found = {
        ("epochs", "dcd", "hinge"): 30.0,
        ("epochs", "dcd", "squared"): 20.0,
        ("epochs", "sgd", "hinge"): 5.0,
    }
    assert ceilings.rewrite(found, kept) == [
        "fell  epochs / dcd / hinge: 52 -> 36 (measured 30)",
        "new   epochs / sgd / hinge: 6 (measured 5)",
        "rose  epochs / dcd / squared: 10 -> 24 (measured 20)",
    ]
    assert kept == {"epochs": {"dcd": {"hinge": 36, "squared": 24}, "sgd": {"hinge": 6}}}
