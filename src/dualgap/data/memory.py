"""How much memory there is, how much training takes, and whether rows must be streamed from disk."""

from __future__ import annotations

import os
from pathlib import Path

SHARE = 0.6  # of the free memory that training may take unasked
# beside the entries: measured with `newton` (122; `dcd` 77) and with `dcd`
_ROW_BYTES, _COLUMN_BYTES = 130, 64


def training_bytes(n: int, d: int, nnz: int, value_bytes: int) -> int:
    """The memory that training in memory takes, approximately."""
    return (value_bytes + 4) * nnz + _ROW_BYTES * n + _COLUMN_BYTES * d


def available_memory() -> int:
    """Bytes that may be used without swapping."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def streaming_budget(size: int, memory_budget: int | None) -> int | None:
    """The bytes within which rows of that size must be streamed; None if they fit into memory."""
    budget = int(SHARE * available_memory()) if memory_budget is None else memory_budget
    return None if size <= budget else budget


def streaming_note(name: str, size: int, budget: int) -> str:
    """The remark that rows are streamed, and why."""
    return (
        f"{name} needs about {size / 1e9:.3g} GB to train in memory: its rows are streamed from disk, "
        f"{budget / 1e9:.3g} GB at a time (memory_budget)"
    )
