"""Ceilings on the work of ``solver="auto"`` at fixed seeds, certificates apart: what was won stays won.

Entries read or written, over stored entries. The figures are 1.15 times what was measured when they were set.
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
    ("text", "hinge", (4.1, 6.2, 7.3, 16.9, 43.2, 159.4)),
    ("text", "squared-hinge", (5.4, 10.1, 12.4, 26.6, 55.0, 100.0)),
    ("text", "logistic", (5.4, 7.8, 5.4, 10.1, 12.5, 24.4)),
    ("text-ordered", "hinge", (4.1, 6.2, 7.4, 16.9, 43.2, 157.0)),
    ("dense-tall", "hinge", (16.9, 21.4, 22.6, 28.4, 32.5, 39.7)),
    ("dense-tall", "squared-hinge", (12.3, 14.9, 16.5, 16.5, 16.5, 16.5)),
    ("dense-tall", "logistic", (14.5, 19.7, 14.5, 19.7, 19.7, 19.7)),
    ("dense-tall", "squared", (14.5, 14.5, 14.5, 14.5, 14.5, 19.7)),
]
REAL = [
    ("a9a", 123, (6.5, 11.0, 36.0, 48.6, 34.7, 57.5)),
    ("w8a", 300, (3.2, 6.7, 5.1, 11.8, 9.7, 24.3)),
    ("reuters21578-modapte-earn", 11520, (4.7, 7.5, 8.3, 13.6, 14.6, 23.3)),
]


@cache
def made(name: str) -> tuple[Any, Any]:
    return GENERATED[name]()


def hold(X: Any, y: Any, loss: str, ceilings: tuple[float, ...]) -> None:
    for (C, gap), ceiling in zip(TASKS, ceilings, strict=True):
        outcome = dualgap.fit(X, y, loss=loss, C=C, gap=gap, max_epochs=5000)
        assert outcome.converged
        passes = outcome.trace[-1].entries / getattr(X, "nnz", X.size)
        assert passes <= ceiling, f"C = {C} to {gap}: {passes:.1f} passes"


@pytest.mark.parametrize(("name", "loss", "ceilings"), MADE, ids=lambda value: value if isinstance(value, str) else "")
def test_generated_sets(name: str, loss: str, ceilings: tuple[float, ...]) -> None:
    hold(*made(name), loss, ceilings)


@pytest.mark.data
@pytest.mark.parametrize(("name", "width", "ceilings"), REAL, ids=lambda value: value if isinstance(value, str) else "")
def test_real_sets(data_folder: Path, name: str, width: int, ceilings: tuple[float, ...]) -> None:
    path = data_folder / f"{name}.svm.bz2"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    hold(*load_svmlight_file(str(path), n_features=width, zero_based=False), "hinge", ceilings)
