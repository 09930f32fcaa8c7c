"""The process in which a library trains: requests as lines of JSON on stdin, answers on stdout, models as npy
files.

It runs in the library's own environment, so it imports nothing but NumPy, SciPy and the adapter. Whatever a
library prints goes to stderr, which the other end keeps in a log.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import sets


class Worker:
    """One adapter and the data set it works on."""

    def __init__(self, adapter: str, threads: int) -> None:
        self.adapter = import_module(adapter)
        self.threads = threads
        self.X: Any = None
        self.y: Any = None
        self.prepared: tuple[Any, float] | None = None

    def hello(self) -> dict[str, Any]:
        """What is installed here."""
        return {"version": self.adapter.version(), "numpy": np.__version__}

    def load(self, path: str) -> dict[str, Any]:
        """Read the arrays of a data set."""
        self.prepared = self.X = self.y = None
        self.X, self.y = sets.load(path)
        return {}

    def warm(
        self, layout: str, dtype: str, width: int, loss: str, C: float, arm: str, value: float
    ) -> dict[str, Any]:
        """Train on a handful of rows of the same kind, so that whatever compiles at first use has done so."""
        X, y = handful(layout, dtype, width)
        began = time.perf_counter()
        stands_for = getattr(self.adapter, "stands_for", lambda arm: [arm])
        for one in stands_for(arm):
            self.adapter.fitted(
                self.adapter.train(self.adapter.prepare(X, y), loss, C, one, value, self.threads, 60.0)
            )
        return {"seconds": time.perf_counter() - began}

    def run(self, loss: str, C: float, arm: str, value: float, limit: float, model: str) -> dict[str, Any]:
        """Train on the data set, from the arrays in memory to the model; the clock stops before the model is
        saved.
        """
        gc.collect()
        before = reset_peak()
        began = time.perf_counter()
        data, converting = self._prepare()
        middle = time.perf_counter()
        trained = self.adapter.train(data, loss, C, arm, value, self.threads, limit)
        training = time.perf_counter() - middle
        grown = peak() - before
        found = self.adapter.fitted(trained)
        np.save(model, np.asarray(found.w, dtype=np.float64))
        return {
            "seconds": converting + training,
            "convert_seconds": converting,
            "train_seconds": training,
            "wall_seconds": time.perf_counter() - began,
            "memory": grown,
            **found._replace(w=None)._asdict(),
        }

    def _prepare(self) -> tuple[Any, float]:
        if self.prepared is not None:
            return self.prepared
        began = time.perf_counter()
        data = self.adapter.prepare(self.X, self.y)
        seconds = time.perf_counter() - began
        if getattr(self.adapter, "PREPARE_ONCE", False):
            self.prepared = data, seconds
        return data, seconds


def handful(layout: str, dtype: str, width: int) -> tuple[Any, Any]:
    """A few rows of the same layout and types as the data set; sparse ones also of as many columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)).astype(dtype)
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, 1.0, -1.0)
    if layout != "csr":
        return X, y
    rows = sp.csr_matrix(X)
    return sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(60, max(5, width))), y


def reset_peak() -> int:
    """Forget the highest memory use so far, where the system can; what is in use now, in bytes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return _status("VmRSS")
    return peak()


def peak() -> int:
    """The highest memory use, in bytes."""
    with contextlib.suppress(OSError):
        return _status("VmHWM")
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _status(field: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def main() -> int:
    """Answer requests until stdin ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except (
            Exception
        ) as error:  # whatever a library raises is its result, and the next request may go well
            answer = {"error": type(error).__name__, "message": str(error)}
        answers.write(json.dumps(answer, default=float) + "\n")
        answers.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
