"""``python -m benchmarks.versions OTHER``: processor time of ``auto`` in another version over that in this.

OTHER is a checkout of the other version. The problems are those of ``RESULTS.md`` (no bias; the hinge at
three C, three smooth losses at C = 1; two targets). Each version runs in a process of its own, in turns; the
fastest of some runs counts, and none during which a kernel was compiled or loaded. Above 1 this version is
faster.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from . import ROOT
from .cells import markdown
from .sets import SETS, cached, data_folder, load

HINGE_SETS = (
    "a9a", "w8a", "reuters-earn", "wikitox-bow", "20news-bigram", "mnist-8", "text", "text-ordered",
)  # fmt: skip
SMOOTH_SETS = ("a9a", "reuters-earn", "wikitox-bow", "dense-tall")
TARGETS = (1e-2, 1e-4)


def problems(words: list[str]) -> list[tuple[str, str, float, float]]:
    """Set, loss, C and relative gap of each."""
    hinge = [(name, "hinge", C) for name in HINGE_SETS for C in (0.05, 1.0, 10.0)]
    smooth = [(name, loss, 1.0) for loss in ("squared-hinge", "logistic", "squared") for name in SMOOTH_SETS]
    return [
        (*cell, tol)
        for cell in hinge + smooth
        for tol in TARGETS
        if not words or any(word in cell[0] for word in words)
    ]


def work() -> None:
    """Run what is asked for on the standard input, a line each, in the version that is first on the path."""
    import dualgap
    from dualgap.runtime.compiling import compile_seconds

    known: dict[str, Any] = {}
    for line in sys.stdin:
        path, loss, C, tol, limit = json.loads(line)
        if path not in known:
            known = {path: load(path)}
        X, y = known[path]
        while True:
            began, compiled = time.process_time(), compile_seconds()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                outcome = dualgap.fit(X, y, loss=loss, C=C, tol=tol, max_epochs=None, time_limit=limit)
            seconds = time.process_time() - began
            if compile_seconds() == compiled:
                break
        print(json.dumps([seconds, bool(outcome.converged), outcome.trace[-1].epochs]), flush=True)


class Version:
    """A process that runs fits in one version."""

    def __init__(self, root: Path) -> None:
        paths = os.pathsep.join([str(root / "src"), str(ROOT)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.versions", "--work"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env=os.environ | {"PYTHONPATH": paths},
        )  # fmt: skip

    def run(self, *request: Any) -> list[Any]:
        """Seconds, whether the target was reached, and epochs."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        found: list[Any] = json.loads(self._process.stdout.readline())
        return found

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__)
    parser.add_argument("other", type=Path, nargs="?", help="a checkout of the other version")
    parser.add_argument("--sets", default="", help="only sets whose names hold one of these words")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds of a run, at most")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work()
        return 0
    if given.other is None:
        parser.error("the checkout of another version is needed")
    versions = Version(given.other.resolve()), Version(ROOT)
    folder, lines, logs = data_folder(None), [], []
    for name, loss, C, tol in problems([word for word in given.sets.split(",") if word]):
        item = SETS[name]
        if item.file is not None and (folder is None or not (folder / item.file).exists()):
            continue
        path = cached(item, folder).path
        best: list[list[Any]] = []
        for _ in range(given.repeats):
            runs = [version.run(path, loss, C, tol, given.limit) for version in versions]
            best = [min(pair) for pair in zip(best, runs, strict=True)] if best else runs
            if max(run[0] for run in best) > given.limit / 3.0:
                break
        (before, arrived, _), (now, arrives, _) = best
        ratio = before / now if arrived and arrives else math.nan
        lines.append([f"{name}, {loss}, C = {C:g}, {tol:g}", f"{before:.3g}", f"{now:.3g}", f"{ratio:.2f}"])
        print(*lines[-1], f"{best[0][2]:.1f} {best[1][2]:.1f} epochs", sep="  ", flush=True)
        if not math.isnan(ratio):
            logs.append(math.log(ratio))
    for version in versions:
        version.close()
    print(markdown(["problem", "before", "now", "ratio"], lines))
    print(f"\nGeometric mean of {len(logs)}: {math.exp(sum(logs) / max(1, len(logs))):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
