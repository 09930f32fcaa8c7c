"""What a worker tells while it works: counts and failures, as lines of JSON on its standard output."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

EVERY = 0.5  # seconds between two lines


class Tally:
    """Counts what was tried and what became of it.

    The number of the item at hand is kept in a file, so that an item that ends the process (a crash of
    compiled code) can be named.
    """

    def __init__(self, stream: IO[str] | None = None, marker: int | None = None) -> None:
        self.tried = 0
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self._stream, self._marker, self._told = stream or sys.stdout, marker, time.monotonic()

    @contextmanager
    def item(self, index: int) -> Iterator[None]:
        """Try one item; anything that is raised is a failure of it, but for Ctrl-C."""
        if self._marker is not None:
            os.pwrite(self._marker, f"{index:<20d}".encode(), 0)
        try:
            yield
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
            self.fail(index, f"{type(error).__name__} at {place}: {str(error)[:300]}")
        self.tried += 1
        if time.monotonic() - self._told > EVERY:
            self.tell()

    def count(self, *names: str) -> None:
        """Something was seen once more."""
        self.counts.update(names)

    def fail(self, index: int, fault: str) -> None:
        """A promise was broken by an item."""
        self.failures.append(f"item {index}: {fault}")

    def tell(self, done: bool = False) -> None:
        """Print a line."""
        self._told = time.monotonic()
        line = {"tried": self.tried, "counts": self.counts, "failures": self.failures, "done": done}
        print(json.dumps(line), file=self._stream, flush=True)
