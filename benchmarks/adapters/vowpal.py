"""Vowpal Wabbit: stochastic gradient steps for the hinge loss, BFGS for smooth losses; the value is the
passes.

It reads text, so its conversion is writing the file. ``--l2`` is per example for the first, in total for the
second.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import Fitted

PREPARE_ONCE = True


def version() -> str:
    """What is installed."""
    import vowpalwabbit

    return f"vowpalwabbit {vowpalwabbit.__version__}"


def prepare(X: Any, y: Any) -> Any:
    """A text file."""
    folder = tempfile.TemporaryDirectory(prefix="vowpal-")
    rows = sp.csr_matrix(X)
    with (Path(folder.name) / "data.vw").open("w") as file:
        for i, label in enumerate(y):
            part = slice(rows.indptr[i], rows.indptr[i + 1])
            pairs = zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True)
            file.write(f"{label:g} | {' '.join([f'{j}:{value:.8g}' for j, value in pairs])}\n")
    return folder, rows.shape


def train(data: Any, loss: str, C: float, arm: str, value: float, threads: int, limit: float | None) -> Any:
    """One run of its driver over the file."""
    import vowpalwabbit

    folder, (n, d) = data
    bits = max(10, int(d - 1).bit_length())
    options = f"-d {folder.name}/data.vw --cache_file {folder.name}/cache -k --passes {int(value)} -b {bits}"
    options += f" --holdout_off --noconstant --quiet --loss_function {loss}"
    if arm == "bfgs":
        options += f" --bfgs --termination 1e-9 --l2 {1.0 / C!r}"
    else:
        options += f" --{arm} --l2 {1.0 / (C * n)!r}"
    return vowpalwabbit.Workspace(options), d, float(value)


def fitted(model: Any) -> Fitted:
    """Weights one by one; the passes are those asked for."""
    workspace, d, passes = model
    w = np.array([workspace.get_weight(j) for j in range(d)])
    workspace.finish()
    return Fitted(w, 0.0, passes)
