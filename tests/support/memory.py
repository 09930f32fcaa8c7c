"""How much memory a piece of work takes: for programs that a test runs with ``program_that_measures``."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]


def private_bytes() -> int:
    """Memory of this process that no file backs."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no RssAnon")


class Growth:
    """What a piece of work took at most; known when it is done."""

    bytes = 0


@contextmanager
def growth(every: float = 0.002) -> Iterator[Growth]:
    """Watch this process while the body runs."""
    before, found, over = private_bytes(), Growth(), threading.Event()

    def watch() -> None:
        while not over.wait(every):
            found.bytes = max(found.bytes, private_bytes() - before)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def program_that_measures(program: str, *arguments: Any) -> dict[str, Any]:
    """Command and environment, for ``subprocess``, of a program that imports ``growth``."""
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return {"args": command, "env": {**os.environ, "PYTHONPATH": path}}
