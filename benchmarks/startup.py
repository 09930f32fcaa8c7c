"""What it costs to begin: importing, and the first fit of a process with an empty and with a filled kernel
cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from . import ROOT, generated

_SPARE = {"bare Python": "pass", "import dualgap": "import dualgap", "dualgap.fit": "from dualgap import fit"}


def first_fits(loss: str = "hinge") -> dict[str, dict[str, float]]:
    """Import, first fit and second fit in a new process: kernel cache empty, then filled by the process
    before.
    """
    with tempfile.TemporaryDirectory(prefix="dualgap-cold-") as folder:
        surroundings = {**os.environ, "DUALGAP_CACHE": folder}
        return {name: _ask(loss, surroundings) for name in ("empty", "filled")}


def imports(repeats: int = 5) -> dict[str, float]:
    """Seconds of a process that only imports; the fastest of the repeats."""
    found = {}
    for name, code in _SPARE.items():
        times = []
        for _ in range(repeats):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - began)
        found[name] = min(times)
    return found


def _ask(loss: str, surroundings: Mapping[str, str]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.startup", loss]
    done = subprocess.run(command, env=surroundings, cwd=ROOT, capture_output=True, text=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def _probe(loss: str) -> dict[str, Any]:
    """Runs in the new process."""
    X, y = generated.text(2_000, 1_000, 20, topics=5)
    began = time.perf_counter()
    from dualgap import fit

    times = {"import_seconds": time.perf_counter() - began}
    for name in ("first_seconds", "second_seconds"):
        began = time.perf_counter()
        fit(X, y, loss=loss, C=1.0)
        times[name] = time.perf_counter() - began
    return times


if __name__ == "__main__":
    print(json.dumps(_probe(sys.argv[1])))
