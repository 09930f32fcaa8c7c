"""A store on a disk of a given speed, for machines whose own disk answers from memory."""

from __future__ import annotations

import threading
from pathlib import Path
from time import perf_counter, sleep

from ...data.chunks import Chunk
from ...data.formats.arrow.feed import StoreFeed
from ...data.formats.arrow.store import Store


class SlowDisk(StoreFeed):
    """A store of which one pass takes so many seconds: a chunk is there when its share of them is over.

    ``paused`` are the seconds for which the thread that opened it, which is the one that trains, had to wait
    for a chunk that it had asked for itself; a reader on a thread of its own lets it go on.
    """

    def __init__(self, path: Path, pass_seconds: float) -> None:
        super().__init__(Store(path))
        self.paused = 0.0
        self._each = pass_seconds / self.n  # of a row
        self._busy_until = 0.0
        self._trainer = threading.get_ident()

    def load(self, k: int, first: bool) -> Chunk:
        """A batch, not before the disk has delivered it; the disk is idle while nobody asks."""
        asked = perf_counter()
        chunk = super().load(k, first)
        rows = chunk.span.stop - chunk.span.start
        self._busy_until = max(asked, self._busy_until) + self._each * rows
        sleep(max(0.0, self._busy_until - perf_counter()))
        if threading.get_ident() == self._trainer:
            self.paused += perf_counter() - asked
        return chunk
