"""What tests of feeds share: a deadline, the readers that are alive, stores in several batches."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def deadline(seconds: float = 30.0) -> Iterator[None]:
    """Raise if it takes that long, again and again, so that clean-up which waits for ever ends, too."""

    def late(number: int, frame: Any) -> None:
        raise TimeoutError(f"still not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, 2.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "dualgap-reader"]


def small_batches(monkeypatch: pytest.MonkeyPatch, size: int = 700) -> None:
    """Stores of tiny data in several batches, as large ones have."""
    from dualgap.data.formats.arrow import writing as store_writing

    whole = store_writing._blocks
    monkeypatch.setattr(
        store_writing, "_blocks", lambda blocks, _, value_bytes: whole(blocks, size, value_bytes)
    )
