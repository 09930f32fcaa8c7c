"""What a step, a stored entry, a row, a column, a thread and a certificate cost, on generated data.

The docstring of each function is what the report says above its table. Scaling is measured at fixed lam and
accuracy.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import generated

Row = dict[str, Any]
_LAM = 1e-5
SIZES = {"quick": (500, 2_000), "default": (10_000, 30_000, 100_000, 300_000)}
SIZES["full"] = (*SIZES["default"], 1_000_000, 3_000_000)


def sparse(n: int, d: int, per_row: int, dtype: str = "float64") -> tuple[Any, Any]:
    """Uniform columns: the worst case for the cache."""
    rng = np.random.default_rng(5)
    row = np.repeat(np.arange(n), per_row)
    values = rng.normal(size=row.size).astype(dtype)
    X = sp.csr_matrix((values, (row, rng.integers(0, d, row.size))), shape=(n, d))
    return X, np.where(rng.random(n) < 0.5, 1.0, -1.0)


def dense(n: int, d: int, dtype: str = "float64") -> tuple[Any, Any]:
    X, y = generated.dense_tall(n, d)
    return X.astype(dtype), y


def steps(tier: str, solvers: Sequence[str]) -> Iterator[Row]:
    """Nanoseconds a step and a stored entry read or written (a dot and an add count apart), certificates left
    out.
    """
    scale = 1 if tier == "quick" else 40
    shapes: dict[str, Callable[[str], tuple[Any, Any]]] = {
        "CSR, 10 a row, 1,000 columns": lambda dtype: sparse(1000 * scale, 1_000, 10, dtype),
        "CSR, 100 a row, 50,000 columns": lambda dtype: sparse(250 * scale, 50_000, 100, dtype),
        "CSR, 100 a row, 1,000,000 columns": lambda dtype: sparse(250 * scale, 1_000_000, 100, dtype),
        "dense, 20 columns": lambda dtype: dense(1000 * scale, 20, dtype),
        "dense, 1,000 columns": lambda dtype: dense(25 * scale, 1_000, dtype),
    }
    for title, make in shapes.items():
        for dtype in ("float64", "float32"):
            X, y = make(dtype)
            for solver in solvers:
                last = _fit(X, y, solver=solver, lam=1.0 / X.shape[0], tol=0.0, max_epochs=10).trace[-1]
                yield {
                    "data": f"{title}, {dtype}",
                    "solver": solver,
                    "ns a step": 1e9 * last.train_seconds / last.visits,
                    "ns an entry": 1e9 * last.train_seconds / max(last.entries, 1),
                    "entries a step": last.entries / last.visits,
                }


def rows(tier: str, solvers: Sequence[str]) -> Iterator[Row]:
    """Seconds to a gap of 1e-3 as the rows grow; linear growth has an exponent of 1."""
    for solver in solvers:
        before: tuple[int, float] | None = None
        for n in SIZES[tier]:
            X, y = generated.text(n, 47_000, 60)
            outcome = _fit(X, y, solver=solver, lam=_LAM, tol=1e-3)
            seconds = outcome.trace[-1].seconds
            exponent = math.log(seconds / before[1]) / math.log(n / before[0]) if before else None
            yield {"rows": n, "entries": X.nnz, "solver": solver, **_cost(outcome), "exponent": exponent}
            before = n, seconds


def columns(tier: str, solvers: Sequence[str]) -> Iterator[Row]:
    """The same number of entries over more and more columns: what leaving the cache costs."""
    n = SIZES[tier][1]
    for d in (1_000, 10_000, 100_000, 1_000_000):
        X, y = sparse(n, d, 50)
        for solver in solvers:
            outcome = _fit(X, y, solver=solver, lam=1.0 / n, tol=0.0, max_epochs=5)
            last = outcome.trace[-1]
            per_entry = 1e9 * last.train_seconds / max(last.entries, 1)
            certifying = 1e9 * last.certify_seconds / (len(outcome.trace) * X.nnz)
            yield {
                "columns": d,
                "solver": solver,
                "ns an entry": per_entry,
                "certifying, ns an entry": certifying,
            }


def threads(tier: str, solvers: Sequence[str]) -> Iterator[Row]:
    """The same problem on more threads."""
    X, y = generated.text(SIZES[tier][-1 if tier == "quick" else 2], 47_000, 60)
    for solver in ["auto", *solvers]:
        for count in range(1, (os.cpu_count() or 1) + 1):
            outcome = _fit(X, y, solver=solver, lam=_LAM, tol=1e-4, threads=count)
            yield {"solver": solver, "threads": count, **_cost(outcome)}


def certificates(tier: str, solvers: Sequence[str]) -> Iterator[Row]:
    """What share of the time goes into proofs."""
    n = SIZES[tier][1]
    for title, (X, y) in {
        "text": generated.text(n, 30_000, 60),
        "dense": generated.dense_tall(n, 30),
    }.items():
        for solver in solvers:
            for gap in (1e-2, 1e-4):
                outcome = _fit(X, y, solver=solver, C=1.0, tol=gap, time_limit=20.0)
                yield {"data": title, "solver": solver, "gap asked": gap, **_cost(outcome)}


def _fit(X: Any, y: Any, **options: Any) -> Any:
    """A fit with compiled kernels: a first one, on a few rows of the same types, loads or compiles them."""
    import dualgap

    few = {**options, "max_epochs": 2, "threads": 1}
    dualgap.fit(X[:200], y[:200], **few)
    return dualgap.fit(X, y, **{"max_epochs": None, **options})


def _cost(outcome: Any) -> Row:
    last = outcome.trace[-1]
    return {
        "seconds": last.seconds,
        "certificates": len(outcome.trace),
        "certifying, share": last.certify_seconds / max(last.seconds, 1e-9),
        "passes": last.epochs,
        "relative gap": last.certificate.relative_gap,
    }
