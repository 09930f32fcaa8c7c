"""Time spent on compiling is counted once, told apart from the work, and announced."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from dualgap.runtime import compiling
from dualgap.runtime.compiling import Stopwatch, announced_to, compile_seconds

PROGRAM = """
import json, sys
import numpy as np
import dualgap
from dualgap.runtime.compiling import announced_to

told = []
X = np.random.default_rng(0).normal(size=(200, 4))
y = np.where(X[:, 0] > 0, 1.0, -1.0)
with announced_to(lambda: told.append(1)):
    runs = [dualgap.fit(X, y, solver="pegasos", max_epochs=3, tol=0.0) for _ in range(2)]
records = [run.trace[-1] for run in runs]
found = [[r.train_seconds, r.certify_seconds, r.compile_seconds, r.seconds] for r in records]
print(json.dumps({"runs": found, "told": len(told)}))
"""


def ran(cache: Path) -> dict:
    environment = os.environ | {"DUALGAP_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(PROGRAM)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_spans_that_overlap_count_once() -> None:
    before = compile_seconds()
    watch = Stopwatch()
    compiling.began()
    compiling.began()  # a kernel that another one calls, or another thread
    time.sleep(0.02)
    assert compile_seconds() > before  # while it goes on, too
    compiling.ended()
    time.sleep(0.02)
    compiling.ended()
    spent = compile_seconds() - before
    time.sleep(0.02)
    assert 0.04 <= spent == compile_seconds() - before
    working, counted = watch.elapsed()
    assert counted == pytest.approx(spent)
    assert working >= 0.02


def test_who_listens_is_told_until_it_has_had_enough() -> None:
    told: list[int] = []
    with announced_to(lambda: told.append(1)):
        compiling.announce()
    compiling.announce()
    assert told == [1]


@pytest.mark.slow
def test_a_cold_run_tells_compiling_apart(tmp_path: Path) -> None:
    """Cold, nearly all is compiling; in the next run nothing is; in the next process loading counts alone."""
    cold, warm = ran(tmp_path), ran(tmp_path)
    assert cold["told"] > 0 == warm["told"]
    (train, certify, compiled, whole), (_, _, nothing, _) = cold["runs"]
    assert whole == pytest.approx(train + certify + compiled)
    assert compiled > 5 * (train + certify)
    assert nothing == 0.0
    loading = warm["runs"][0][2]
    assert 0.0 < loading < compiled / 2
