"""A program that saves a run at every record, to be killed at any moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import dualgap

OPTIONS: dict[str, Any] = {"solver": "sdca", "tol": 1e-14, "max_epochs": 40, "record_every": 4000}


def rows() -> tuple[Any, Any]:
    """Rows that a line almost tells apart."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(2000, 12))
    return X, np.where(X @ rng.normal(size=12) + rng.normal(size=2000) > 0.0, 1.0, -1.0)


def main(arguments: list[str]) -> None:
    """``loop FILE``: train, and save the run there at every record."""
    file = Path(arguments[1])
    dualgap.fit(*rows(), callbacks=[lambda record, run: dualgap.save_state(file, run)], **OPTIONS)
