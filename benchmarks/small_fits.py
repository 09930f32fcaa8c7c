"""``python -m benchmarks.small_fits``: what a small fit costs beside scikit-learn, and what beginning costs.

Fits take turns, so that whatever else the machine does falls on all of them; the fastest of each counts.
Times are of the processor (``process_time``), with one thread for BLAS. Imports and warm first fits are those
of new processes, in turns too, with a kernel cache that a process before has filled.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

ROWS, COLUMNS = 500, 20
PROCESSES = {
    "import sklearn.svm.LinearSVC": "from sklearn.svm import LinearSVC",
    "import dualgap.LinearSVC": "from dualgap import LinearSVC",
    "import dualgap.fit": "from dualgap import fit",
}
_FIRST_FIT = """
import json, time
import numpy as np
from dualgap import LinearSVC
X = np.random.default_rng(0).normal(size=({rows}, {columns}))
y = np.where(X[:, 0] + X[:, 1] ** 2 > 1, 1, -1)
began = time.process_time()
LinearSVC().fit(X, y)
print(json.dumps(time.process_time() - began))
"""


def data_sets() -> dict[str, tuple[Any, Any]]:
    """Dense rows of two classes."""
    from sklearn.datasets import load_breast_cancer, make_classification
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS))
    y = np.where(X @ rng.normal(size=COLUMNS) + rng.normal(size=ROWS) > 0, 1, -1)
    cancer = load_breast_cancer()
    return {
        "make_classification": make_classification(ROWS, COLUMNS, random_state=0),
        "gaussian": (X, y),
        "breast cancer, scaled": (StandardScaler().fit_transform(cancer.data), cancer.target),
    }


def in_turns(tasks: dict[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """The least that each of the tasks reports."""
    found = dict.fromkeys(tasks, float("inf"))
    for _ in range(repeats):
        for name, task in tasks.items():
            found[name] = min(found[name], task())
    return found


def timed(work: Callable[[], Any]) -> Callable[[], float]:
    """Seconds of the processor that some work takes."""

    def task() -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    return task


def fits(repeats: int) -> list[dict[str, Any]]:
    """Warm fits, with all defaults but the loss."""
    from sklearn.svm import LinearSVC as Theirs

    from dualgap import LinearSVC as Ours

    rows = []
    for name, (X, y) in data_sets().items():
        for loss in ("hinge", "squared_hinge"):
            tasks = {
                "dualgap": timed(lambda X=X, y=y, loss=loss: Ours(loss=loss).fit(X, y)),
                "scikit-learn": timed(lambda X=X, y=y, loss=loss: Theirs(loss=loss).fit(X, y)),
            }
            found = in_turns(tasks, repeats)
            model = Ours(loss=loss).fit(X, y)
            row: dict[str, Any] = {"data": name, "loss": loss}
            row |= {f"{who} ms": 1e3 * seconds for who, seconds in found.items()}
            row |= {"ratio": found["dualgap"] / found["scikit-learn"]}
            row |= {"certificates": len(model.history_[0]), "epochs": model.n_iter_}
            rows.append(row)
    return rows


def processes(repeats: int) -> dict[str, float]:
    """Processor seconds of new processes."""

    def whole(code: str) -> Callable[[], float]:
        def task() -> float:
            before = os.times()
            subprocess.run([sys.executable, "-c", code], check=True)
            after = os.times()
            spent = after.children_user + after.children_system
            return spent - before.children_user - before.children_system

        return task

    def first_fit() -> float:
        code = _FIRST_FIT.format(rows=ROWS, columns=COLUMNS)
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        return float(json.loads(done.stdout))

    first_fit()  # fills the cache
    tasks = {name: whole(code) for name, code in PROCESSES.items()}
    return in_turns({**tasks, "first fit, warm, beyond imports": first_fit}, repeats)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=100, help="of a fit")
    parser.add_argument("--processes", type=int, default=7, help="repeats of imports; 0: leave them out")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # scikit-learn's hinge may need more iterations than its default
    for row in fits(options.repeats):
        print("  ".join(f"{k}: {v:.3g}" if isinstance(v, float) else f"{k}: {v}" for k, v in row.items()))
    if options.processes:
        found = processes(options.processes)
        for name, seconds in found.items():
            print(f"{name}: {seconds:.3f} s")
        theirs, ours, *_ = found.values()
        print(f"ratio of the first two: {ours / theirs:.2f}")


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for the processes; this one has loaded BLAS by now
    main()
