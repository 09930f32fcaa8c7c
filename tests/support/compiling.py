"""What Numba compiles for the first fits of a process, found in a new process with an empty kernel cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from typing import NamedTuple

LAYOUTS = ("sparse", "wide", "dense")
LOSSES = ("hinge", "logistic")  # the second one is a second fit of the same process


class Compiled(NamedTuple):
    """A function that was compiled."""

    name: str
    signature: str


@cache
def compiled_by_first_fits(layout: str) -> dict[str, list[Compiled]]:
    """By loss: the functions compiled by ``LinearSVC(loss=...).fit`` on rows of this layout."""
    with tempfile.TemporaryDirectory(prefix="dualgap-cold-") as folder:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA")}
        environment["DUALGAP_CACHE"] = folder
        command = [sys.executable, "-c", _PROGRAM, layout, *LOSSES]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {loss: [Compiled(*one) for one in found] for loss, found in json.loads(done.stdout).items()}


# Every compilation, of functions inside Numba as well, goes through `compile_extra`.
_PROGRAM = """
import json, sys
import numpy as np, scipy.sparse as sp
from numba.core import compiler
from dualgap import LinearSVC

found, compile_extra = [], compiler.compile_extra

def watched(typingctx, targetctx, func, args, *rest, **named):
    found.append((f"{func.__module__}.{func.__qualname__}", str(args)))
    return compile_extra(typingctx, targetctx, func, args, *rest, **named)

compiler.compile_extra = watched
layout, losses = sys.argv[1], sys.argv[2:]
n, rng = 2_000, np.random.default_rng(0)
if layout == "dense":
    X = rng.normal(size=(n, 20))
    score = X @ rng.normal(size=20) + 2.0 * rng.normal(size=n)
else:
    d = 5_000 if layout == "sparse" else 500_000
    columns = (d * rng.random(n * 50) ** 3).astype(np.int64)
    X = sp.csr_matrix((rng.random(columns.size), (np.repeat(np.arange(n), 50), columns)), shape=(n, d))
    score = X @ rng.normal(size=d)
answer = {}
for loss in losses:
    found.clear()
    model = LinearSVC(loss=loss, random_state=0).fit(X, np.where(score > 0, 1, -1))
    assert model.certificate_[0].relative_gap <= 1e-3
    answer[loss] = list(found)
print(json.dumps(answer))
"""
