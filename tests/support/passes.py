"""Runs of ``solver="auto"`` whose work is counted in passes over the data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import generated
from sklearn.datasets import load_svmlight_file

import dualgap

TASKS = [(C, tol) for C in (0.05, 1.0, 10.0) for tol in (1e-2, 1e-4)]
GENERATED: dict[str, Callable[[], tuple[Any, Any]]] = {
    "text": lambda: generated.text(20_000, 6_000, 50, topics=20, seed=1),
    "text-ordered": lambda: generated.text(20_000, 6_000, 50, topics=20, ordered=True, seed=2),
    "dense-tall": lambda: generated.dense_tall(20_000, 20, seed=3),
}
LOSSES = {
    "text": ("hinge", "squared-hinge", "logistic"),
    "text-ordered": ("hinge",),
    "dense-tall": ("hinge", "squared-hinge", "logistic", "squared"),
}
COLUMNS = {"a9a": 123, "w8a": 300, "reuters21578-modapte-earn": 11520}


class Case(NamedTuple):
    """A data set with a loss; every task of TASKS is run on it."""

    name: str
    loss: str

    def key(self, C: float, tol: float) -> tuple[str, ...]:
        """Where the ceiling of a task stands in the table."""
        return "passes", self.name, self.loss, f"C={C:g} tol={tol:g}"


MADE = [Case(name, loss) for name in GENERATED for loss in LOSSES[name]]
REAL = [Case(name, "hinge") for name in COLUMNS]


def file_of(name: str) -> Path | None:
    """A real data set, if it is here."""
    path = Path(os.environ.get("DUALGAP_DATA", "")) / f"{name}.svm.bz2"
    return path if path.exists() else None


@cache
def data(name: str) -> tuple[Any, Any]:
    """Rows and labels of a generated set, or of a real one that is here."""
    if name in GENERATED:
        return GENERATED[name]()
    return load_svmlight_file(str(file_of(name)), n_features=COLUMNS[name], zero_based=False)


def measured(case: Case) -> Iterator[tuple[tuple[str, ...], float]]:
    """Key and passes of each task."""
    X, y = data(case.name)
    for C, tol in TASKS:
        outcome = dualgap.fit(X, y, loss=case.loss, C=C, tol=tol, max_epochs=5000)
        key = case.key(C, tol)
        assert outcome.converged, f"{' / '.join(key)}: {outcome.reason}"
        yield key, outcome.trace[-1].entries / getattr(X, "nnz", X.size) + len(outcome.trace)
