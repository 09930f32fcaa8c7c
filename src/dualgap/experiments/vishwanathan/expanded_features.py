"""Expanding features: k-mers of sequences and products of columns, made as rows are read."""

from __future__ import annotations

import numpy as np

from ..lab import Lab
from ..report import Cell, Report, Table, verdict_on
from ..sets import Rows

REMARKS = (
    "The lecture has the title of this slide alone. No richer model, such as one with a kernel, is run.",
    "kmer:6 counts the subsequences of 6 letters, poly2 adds the products of two columns.",
)


def run(lab: Lab) -> Report:
    """Accuracy on held-out rows with and without the expansion."""
    n = 800 if lab.quick else 20_000
    table: list[list[Cell]] = []
    better = []
    for name, rows, expand in (
        ("sequences", sequences(lab, 2 * n), "kmer:6"),
        ("products", products(lab, 2 * n), "poly2"),
    ):
        plain = accuracy(lab, rows, n, None)
        grown = accuracy(lab, rows, n, expand)
        better.append(grown > plain)
        table.append([name, expand, plain, grown])
    claim = verdict_on(
        "(ours) features that are expanded while streaming make a linear model more accurate",
        better,
        "; ".join(f"{row[0]}: {row[2]:.1%} as they are, {row[3]:.1%} with {row[1]}" for row in table),
    )
    header = ("rows", "expansion", "accuracy as they are", "accuracy expanded")
    return Report((claim,), (Table("Accuracy on held-out rows", header, table),), (), REMARKS, lab.data)


def sequences(lab: Lab, n: int) -> Rows:
    """Sequences of four letters; the positive ones carry a motif somewhere."""
    rng = np.random.default_rng(11)
    letters = rng.integers(1, 5, size=(n, 60)).astype(np.float64)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    motif = np.array([1, 3, 2, 2, 4, 1], dtype=np.float64)
    for row in np.flatnonzero(y > 0):
        start = int(rng.integers(0, 54))
        letters[row, start : start + 6] = motif
    return lab.given(
        Rows("sequences (generated)", letters, y, f"{n:,} sequences of 60 letters, half with a motif")
    )


def products(lab: Lab, n: int) -> Rows:
    """Rows whose label is the sign of a sum of products."""
    rng = np.random.default_rng(12)
    X = rng.normal(size=(n, 12))
    score = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3] + 0.3 * rng.normal(size=n)
    return lab.given(
        Rows("products (generated)", X, np.where(score > 0, 1.0, -1.0), f"{n:,} rows of 12 columns")
    )


def accuracy(lab: Lab, rows: Rows, n: int, expand: str | None) -> float:
    """Of a model trained on the first n rows, on the others."""
    training = Rows(rows.name, rows.X[:n], rows.y[:n])
    outcome = lab.fit(training, C=1.0, bias="exact", tol=1e-2, expand=expand)
    return float(np.mean(outcome.model.predict(rows.X[n:]) == rows.y[n:]))
