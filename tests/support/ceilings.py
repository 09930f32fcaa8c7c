"""Ceilings on the work of runs at fixed seeds, read from ``ceilings.json``: what was won stays won.

- ``epochs``, by solver and loss: a limit for the cases of the matrix (some 1.2 times the worst of them);
- ``passes``, by data set, loss, C and tol: entries read or written over stored entries, and one more for each
  certificate, with ``solver="auto"`` (at most 1.15 times what was measured);
- ``compiled``, by layout of the rows and loss: functions that Numba compiles for the first fit of a process
  (``LinearSVC`` with the hinge), and for a second one with the logistic loss (what was measured).

``make ceilings`` measures and rewrites the table, and prints what rose and fell: review that like code.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[1] / "ceilings.json"


class MissingCeilingError(LookupError):
    """The table has no number for a run."""


@cache
def table() -> dict[str, Any]:
    """The whole table."""
    return dict(json.loads(TABLE.read_text()))


def ceiling(*keys: str) -> float:
    """One number of the table: ``ceiling("epochs", "dcd", "hinge")``."""
    found: Any = table()
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, int | float):
        path = " / ".join(keys)
        raise MissingCeilingError(f"{TABLE.name} has no ceiling {path}: run `make ceilings` and review it")
    return float(found)
