"""Fits of one new process: ``python -m benchmarks.first_fit sparse:hinge dense:hinge`` prints their processor
seconds as JSON, imports and data left out. ``floor:hinge`` is the bare program of `bare`.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

from . import generated

# what a fit imports when it is first asked for; other versions of the library have these as well
_MODULES = (
    "dualgap.api",
    "dualgap.estimators.linear_svc",
    "dualgap.solvers.dual.dcd",
    "dualgap.solvers.second_order.newton",
)


def data(layout: str) -> tuple[Any, Any]:
    """2,000 rows: text-like of 5,000 or 600,000 columns, or dense of 20."""
    if layout == "dense":
        return generated.dense_tall(2_000, 20)
    return generated.text(2_000, 600_000 if layout == "wide" else 5_000, 50)


def seconds(layout: str, loss: str) -> float:
    """Of one fit; imports are over when the clock starts."""
    X, y = data(layout)
    if layout == "floor":
        from . import bare

        began = time.process_time()
        _, gap = bare.fit(X, y)
    else:
        for module in _MODULES:
            importlib.import_module(module)
        from dualgap import LinearSVC

        began = time.process_time()
        gap = LinearSVC(loss=loss, random_state=0).fit(X, y).certificate_[0].relative_gap
    taken = time.process_time() - began
    if not gap <= 1e-3:
        raise RuntimeError(f"{layout} {loss}: a relative gap of {gap:.2g}")
    return taken


if __name__ == "__main__":
    print(json.dumps([seconds(*case.split(":")) for case in sys.argv[1:]]))
