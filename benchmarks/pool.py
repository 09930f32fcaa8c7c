"""The other end of the workers: starts them, asks them, and ends those that take too long."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import CACHE, ROOT
from .environments import Environment
from .roster import Contestant
from .sets import Info

PATIENCE = 180.0  # seconds for starting, loading and compiling; none of them is measured
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class WorkerError(Exception):
    """A run that gave no model; ``kind`` is "timeout", "crashed" or the name of the error raised."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Worker:
    """One process, which serves one adapter at one number of threads."""

    def __init__(self, python: Path, adapter: str, threads: int, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        surroundings = {
            **os.environ,
            **dict.fromkeys(THREAD_VARIABLES, str(threads)),
            "PYTHONWARNINGS": "ignore",
        }
        surroundings["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [str(python), "-m", "benchmarks.worker", adapter, str(threads)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env=surroundings,
                cwd=ROOT,
            )
        self.loaded = ""
        self.warmed: set[tuple[Any, ...]] = set()

    def ask(self, timeout: float, **request: Any) -> dict[str, Any]:
        """Send a request and wait for the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], timeout)
            if not ready:
                self.end()
                raise WorkerError("timeout", f"no answer within {timeout:g} s")
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            self.end()
            raise WorkerError("crashed", f"the process ended with exit code {self.process.returncode}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"], answer["message"])
        return answer

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # a request that was never read
                    pipe.close()


@dataclass
class Pool:
    """All workers of a run; each is started when first needed and kept, with its data set, until the end."""

    environments: dict[str, Environment]
    cache: Path = CACHE
    workers: dict[tuple[str, str, int], Worker] = field(default_factory=dict)

    def __enter__(self) -> Pool:
        self._scratch = tempfile.TemporaryDirectory(prefix="dualgap-bench-")
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers.values():
            worker.end()
        self._scratch.cleanup()

    def version(self, contestant: Contestant) -> str:
        """What the contestant's environment holds."""
        return str(self._worker(contestant).ask(PATIENCE, do="hello")["version"])

    def run(
        self, contestant: Contestant, info: Info, loss: str, C: float, arm: str, value: float, limit: float
    ) -> tuple[dict[str, Any], Any]:
        """One timed run; its report and its weights."""
        worker = self._worker(contestant)
        kind = (info.layout, info.dtype, info.d, loss, arm)
        if kind not in worker.warmed:
            like = {"layout": info.layout, "dtype": info.dtype, "width": info.d}
            worker.ask(PATIENCE, do="warm", loss=loss, C=C, arm=arm, value=value, **like)
            worker.warmed.add(kind)
        if worker.loaded != info.path:
            worker.ask(PATIENCE, do="load", path=info.path)
            worker.loaded = info.path
        model = Path(self._scratch.name) / "model.npy"
        # ours stop by themselves at the limit, after a certificate; a peer knows no limit
        patience = 2.0 * limit + 5.0 if contestant.ours else limit
        began = time.perf_counter()
        answer = worker.ask(
            patience, do="run", loss=loss, C=C, arm=arm, value=value, limit=limit, model=str(model)
        )
        answer["outside_seconds"] = time.perf_counter() - began
        return answer, np.load(model)

    def fresh(self, contestant: Contestant) -> Pool:
        """Another pool over the same environments, for measurements that want a new process."""
        return Pool({contestant.environment: self.environments[contestant.environment]}, self.cache)

    def _worker(self, contestant: Contestant) -> Worker:
        key = contestant.environment, contestant.adapter, contestant.threads
        worker = self.workers.get(key)
        if worker is None or worker.process.poll() is not None:
            python = self.environments[contestant.environment].python
            assert python is not None
            log = self.cache / "logs" / f"{key[0]}-{key[1].split('.')[-1]}-{key[2]}.log"
            worker = self.workers[key] = Worker(python, contestant.adapter, contestant.threads, log)
        return worker
