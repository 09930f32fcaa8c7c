"""LIBLINEAR through its own Python interface; an arm is its ``-s``, the value its ``-e``.

``liblinear-official`` and ``liblinear-multicore`` install the same module, so each lives in its own
environment. Both have Numba beside them, which the interface uses, where it can, to copy CSR arrays into
LIBLINEAR's nodes.
"""

from __future__ import annotations

import re
from importlib.metadata import distributions
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import Fitted


def version() -> str:
    """Which of the two is installed."""
    found = [item for item in distributions() if (item.metadata["Name"] or "").startswith("liblinear")]
    return ", ".join(f"{item.metadata['Name']} {item.version}" for item in found)


def prepare(X: Any, y: Any) -> Any:
    """A copy in 16-byte nodes; for a dense matrix by way of CSR, which its interface converts much faster."""
    from liblinear import liblinearutil

    return liblinearutil.problem(y, sp.csr_matrix(X))


def train(data: Any, loss: str, C: float, arm: str, value: float, threads: int, limit: float | None) -> Any:
    """Train, and listen to what it prints: the number of iterations is said nowhere else."""
    from liblinear import liblinearutil

    said: list[bytes] = []
    options = f"-s {arm} -c {C!r} -e {value!r}" + (f" -m {threads}" if threads > 1 else "")
    options += " -p 0" if loss == "squared" else ""
    parameter = liblinearutil.parameter(options)
    parameter.print_func = type(parameter.print_func)(said.append)
    return liblinearutil.train(data, parameter), said, parameter


def fitted(model: Any) -> Fitted:
    """Coefficients for the class +1, whichever class LIBLINEAR took first."""
    trained, said, _ = model
    w = np.ctypeslib.as_array(trained.w, (trained.nr_feature,)).copy()
    if trained.param.solver_type < 11 and trained.get_labels()[0] != 1:
        w = -w
    text = b"".join(said).decode()
    counts = re.findall(r"#iter = (\d+)", text) or re.findall(r"iter +(\d+)", text)
    return Fitted(w, 0.0, float(counts[-1]) if counts else None)
