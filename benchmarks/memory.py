"""How much memory a fit takes on top of the arrays it is given, in a process of its own: as they are, and
converted.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import ROOT, costs, generated
from .worker import peak, reset_peak


def _wide_indices(X: Any) -> Any:
    """The same with indices of 64 bits."""
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


KINDS: dict[str, Callable[[int], Any]] = {
    "CSR float64": lambda n: costs.sparse(n, 50_000, 100)[0],
    "CSR float32": lambda n: costs.sparse(n, 50_000, 100, "float32")[0],
    "CSR float64, indices of 64 bits": lambda n: _wide_indices(costs.sparse(n, 50_000, 100)[0]),
    "CSC float64": lambda n: sp.csc_matrix(costs.sparse(n, 50_000, 100)[0]),
    "dense float64": lambda n: generated.dense_tall(n, 100)[0],
    "dense float32": lambda n: generated.dense_tall(n, 100)[0].astype(np.float32),
    "dense float64, by columns": lambda n: np.asfortranarray(generated.dense_tall(n, 100)[0]),
}


def growth(kind: str, rows: int) -> dict[str, float]:
    """Size of X and growth of the peak during a fit, in bytes."""
    command = [sys.executable, "-m", "benchmarks.memory", kind, str(rows)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def size(X: Any) -> int:
    """Bytes of the arrays of X."""
    arrays = [X.data, X.indices, X.indptr] if hasattr(X, "indptr") else [X]
    return sum(int(array.nbytes) for array in arrays)


def _probe(kind: str, rows: int) -> dict[str, float]:
    """Runs in the process of its own."""
    from dualgap import fit

    def train(X: Any) -> None:
        y = np.where(np.arange(X.shape[0]) % 3 == 0, 1.0, -1.0)
        fit(X, y, C=1.0, tol=0.5, max_epochs=3)

    train(KINDS[kind](60))  # compiles what there is to compile
    X = KINDS[kind](rows)
    gc.collect()
    before = reset_peak()
    train(X)
    return {"bytes": size(X), "grown": peak() - before}


if __name__ == "__main__":
    print(json.dumps(_probe(sys.argv[1], int(sys.argv[2]))))
