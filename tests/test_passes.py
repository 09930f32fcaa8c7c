"""Ceilings on the work of ``solver="auto"`` at fixed seeds: what was won stays won.

Entries read or written over stored entries, and one more for each certificate. The figures are at most 1.15
times what was measured when they were set.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_svmlight_file

import dualgap

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import generated

TASKS = [(C, gap) for C in (0.05, 1.0, 10.0) for gap in (1e-2, 1e-4)]
GENERATED = {
    "text": lambda: generated.text(20_000, 6_000, 50, topics=20, seed=1),
    "text-ordered": lambda: generated.text(20_000, 6_000, 50, topics=20, ordered=True, seed=2),
    "dense-tall": lambda: generated.dense_tall(20_000, 20, seed=3),
}
MADE = [  # the loss, and a ceiling for each of the tasks
    ("text", "hinge", (4.2, 5.9, 9.8, 21.6, 53.2, 181.1)),
    ("text", "squared-hinge", (5.7, 12.7, 14.7, 34.5, 61.3, 111.4)),
    ("text", "logistic", (4.1, 7.1, 5.9, 12.9, 14.0, 28.8)),
    ("text-ordered", "hinge", (4.4, 6.0, 9.8, 21.3, 51.6, 183.3)),
    ("dense-tall", "hinge", (22.5, 30.4, 30.5, 41.0, 43.9, 56.9)),
    ("dense-tall", "squared-hinge", (15.7, 19.4, 21.0, 21.0, 21.0, 21.0)),
    ("dense-tall", "logistic", (17.9, 24.2, 17.9, 24.2, 24.2, 24.2)),
    ("dense-tall", "squared", (16.6, 16.6, 16.6, 16.6, 16.6, 16.6)),
]
REAL = [
    ("a9a", 123, (7.1, 12.6, 47.4, 70.4, 44.9, 86.2)),
    ("w8a", 300, (4.3, 6.9, 6.9, 13.8, 15.5, 41.2)),
    ("reuters21578-modapte-earn", 11520, (3.6, 5.5, 7.1, 12.8, 16.3, 27.0)),
]


@cache
def made(name: str) -> tuple[Any, Any]:
    return GENERATED[name]()


def hold(X: Any, y: Any, loss: str, ceilings: tuple[float, ...]) -> None:
    for (C, gap), ceiling in zip(TASKS, ceilings, strict=True):
        outcome = dualgap.fit(X, y, loss=loss, C=C, tol=gap, max_epochs=5000)
        assert outcome.converged
        passes = outcome.trace[-1].entries / getattr(X, "nnz", X.size) + len(outcome.trace)
        assert passes <= ceiling, f"C = {C} to {gap}: {passes:.1f} passes"


@pytest.mark.parametrize(
    ("name", "loss", "ceilings"), MADE, ids=lambda value: value if isinstance(value, str) else ""
)
def test_generated_sets(name: str, loss: str, ceilings: tuple[float, ...]) -> None:
    hold(*made(name), loss, ceilings)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "width", "ceilings"), REAL, ids=lambda value: value if isinstance(value, str) else ""
)
def test_real_sets(data_folder: Path, name: str, width: int, ceilings: tuple[float, ...]) -> None:
    path = data_folder / f"{name}.svm.bz2"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    hold(*load_svmlight_file(str(path), n_features=width, zero_based=False), "hinge", ceilings)
