"""Many processes and threads at once: fits are equal bit for bit however they are run, also when eight
processes compile into one empty cache.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import dualgap
from dualgap.files import ChunkFeed

from .kills import bits
from .tally import Tally

PROCESSES = 8
FITS = ("dcd", "newton", "sdca", "pegasos", "interior-point", "from disk", "estimator", "three classes")
_FEW = ("dcd", "from disk")  # to be compiled by all eight


def rows() -> tuple[Any, Any]:
    """Rows that a line almost tells apart."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(300, 6))
    return X, np.where(X @ rng.normal(size=6) + rng.normal(size=300) > 0.0, 1.0, -1.0)


def digest(name: str) -> str:
    """Train; a digest of all numbers that come of it."""
    X, y = rows()
    if name == "estimator":
        model = dualgap.LinearSVC(C=0.3, tol=1e-5, random_state=0).fit(X, y)
        found: tuple[Any, ...] = (model.coef_, model.intercept_, tuple(model.certificate_))
    elif name == "three classes":
        many = dualgap.one_vs_rest(sp.csr_array(X), np.digitize(X[:, 0], [-0.5, 0.5]), threads=2, tol=1e-4)
        found = (many.model.coef, many.model.intercept, tuple(many.certificates))
    else:
        arguments: dict[str, Any] = {"solver": name, "tol": 1e-6, "max_epochs": 30}
        source: tuple[Any, ...] = (sp.csr_array(X), y)
        if name == "from disk":
            source = (ChunkFeed(_chunks),)
            arguments |= {"solver": "cached-loops", "in_memory": False, "lockstep": True, "cache": 60}
        outcome = dualgap.fit(*source, **arguments)
        found = (outcome.coef, outcome.intercept, outcome.dual, outcome.certificate)
    return hashlib.sha256(b"\n".join(bits(found))).hexdigest()


def _chunks() -> Any:
    X, y = rows()
    for k in range(0, len(y), 50):
        yield sp.csr_array(X[k : k + 50]), y[k : k + 50]


def in_threads(name: str) -> list[str]:
    """Four threads at once."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(digest, [name] * 4))


def in_forks(name: str) -> list[str]:
    """Two forks of this process."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(digest, [name] * 4)


def in_loky(name: str) -> list[str]:
    """Two processes of joblib."""
    from joblib import Parallel, delayed

    return list(Parallel(n_jobs=2, backend="loky")(delayed(digest)(name) for _ in range(4)))


def in_spawned(name: str) -> list[str]:
    """Two processes that begin from nothing."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return pool.map(digest, [name] * 2)


WAYS: dict[str, Callable[[str], list[str]]] = {
    "fork": in_forks,
    "threads": in_threads,
    "loky": in_loky,
    "spawn": in_spawned,
}


def on_one_cache(folder: Path, processes: int, names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """What so many processes find that begin at once on an empty cache, and what is wrong with it then."""
    cache = folder / "cache"
    program = f"from torture.processes import digest; print(*map(digest, {names!r}))"
    command = [sys.executable, "-c", program]

    def begun() -> subprocess.Popen[str]:
        environment = {**os.environ, "DUALGAP_CACHE": str(cache)}
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    found, wrong = [], []
    for process in [begun() for _ in range(processes)]:
        out, err = process.communicate()
        found.append(out.strip())
        if process.returncode != 0 or err:
            wrong.append(f"exit code {process.returncode}: {err[-300:]}")
    files = sorted(cache.rglob("*.kernel"))
    whole = all(hashlib.sha256(file.read_bytes()[32:]).digest() == file.read_bytes()[:32] for file in files)
    if not files or not whole:
        wrong.append("the cache is empty, or has a damaged kernel")
    begun().communicate()
    if sorted(cache.rglob("*.kernel")) != files:
        wrong.append("a further process compiles again what should be in the cache")
    return found, wrong


def run(seed: int, items: range, folder: Path, tally: Tally) -> None:
    """Item 0 is the empty cache; then every fit in every way."""
    tasks = [(way, name) for way in WAYS for name in FITS]
    for index in items:
        with tally.item(index):
            if index == 0:
                with tempfile.TemporaryDirectory(dir=folder) as scratch:
                    found, wrong = on_one_cache(Path(scratch), PROCESSES, _FEW)
                    expected = " ".join(map(digest, _FEW))
                way, name = "eight processes, one empty cache", " ".join(_FEW)
            else:
                way, name = tasks[(index - 1) % len(tasks)]
                found, wrong, expected = WAYS[way](name), [], digest(name)
            tally.count(way)
            for fault in wrong:
                tally.fail(index, f"{way}, {name}: {fault}")
            if set(found) != {expected}:
                tally.fail(index, f"{way}, {name}: {len(set(found) | {expected})} different results")
