"""Workers: the items of all parts shared out among processes, whose end, however it comes, is noticed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .mounting import private
from .parts import PARTS

SILENCE = 600.0  # seconds without a line after which a worker hangs
SHARES = 4  # workers a part, so that a crash loses little


@dataclass
class Result:
    """What became of a part."""

    name: str
    tried: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0  # of all workers together


class Overseer:
    """Runs workers, a few at a time, shows how far they are, and ends them when it is interrupted."""

    def __init__(self, seed: int, jobs: int, minutes: float | None) -> None:
        self.seed, self.jobs = seed, jobs
        self._start = time.monotonic()
        self._until = self._start + 60.0 * minutes if minutes is not None else float("inf")
        self._alive: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self.interrupted = False

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._start

    def run(self, counts: dict[str, int]) -> list[Result]:
        """Try so many items of each part."""
        results = {name: Result(name) for name in counts}
        before = private()
        columns = (
            TextColumn("{task.description:16}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with (
            Progress(*columns, console=Console(stderr=True)) as progress,
            ThreadPoolExecutor(self.jobs) as pool,
        ):
            bars = {name: progress.add_task(name, total=count) for name, count in counts.items()}

            def work(name: str, items: range) -> None:
                self._worker(results[name], items, before, lambda k: progress.advance(bars[name], k))

            shares = [(name, range(counts[name])) for name in counts if PARTS[name].whole]
            for k in range(SHARES):
                for name in counts:
                    if not PARTS[name].whole and k < counts[name]:
                        shares.append((name, range(k, counts[name], SHARES)))
            try:
                list(pool.map(lambda share: work(*share), shares))
            except KeyboardInterrupt:
                self.interrupted = True
                self._end_all()
        return list(results.values())

    def _worker(self, result: Result, items: range, before: list[str], advance: Any) -> None:
        """One process; where it dies, what is left of its items goes to another."""
        while items and not self.interrupted and time.monotonic() < self._until:
            with tempfile.TemporaryDirectory(dir=_memory(result.name)) as folder:
                start, tried = time.monotonic(), 0
                command = [sys.executable, "-m", "torture", "--only", result.name, "--seed", str(self.seed)]
                command += [
                    "--worker",
                    str(items.start),
                    str(items.stop),
                    str(items.step),
                    "--folder",
                    folder,
                ]
                if PARTS[result.name].mounts:
                    command = [*before, *command]
                line: dict[str, Any] = {}
                for line in self._lines(command):
                    advance(line["tried"] - tried)
                    tried = line["tried"]
                with self._lock:
                    result.tried += tried
                    result.counts.update(line.get("counts", {}))
                    result.failures += line.get("failures", [])
                    result.seconds += time.monotonic() - start
                if line.get("done") or self.interrupted or time.monotonic() > self._until:
                    return
                with contextlib.suppress(OSError, ValueError):
                    last = int((Path(folder) / "item").read_text())
                    result.failures.append(f"item {last}: the process crashed or hung")
                    items = items[items.index(last) + 1 :]
                    continue
            result.failures.append(f"item {items[0]}: the process ended before it began")
            return

    def _lines(self, command: list[str]) -> Any:
        """What a worker tells; it is ended where it falls silent, or where time is up."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        with self._lock:
            self._alive.add(process)
        told = [time.monotonic()]

        def watch() -> None:
            while process.poll() is None:
                if time.monotonic() - told[0] > SILENCE or time.monotonic() > self._until:
                    _end(process)
                time.sleep(0.2)

        threading.Thread(target=watch, daemon=True).start()
        assert process.stdout is not None
        for text in process.stdout:
            told[0] = time.monotonic()
            with contextlib.suppress(ValueError):
                yield json.loads(text)
        process.wait()
        with self._lock:
            self._alive.discard(process)

    def _end_all(self) -> None:
        with self._lock:
            for process in self._alive:
                _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """End a worker and the commands that it has started: they are a session of their own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _memory(name: str) -> Path | None:
    """Where files cost least; those of kills and disks are to be on a disk."""
    memory = Path("/dev/shm")
    return memory if name in ("damage", "problems") and os.access(memory, os.W_OK) else None
