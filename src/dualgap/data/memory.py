"""How much memory there is, how much training takes, and whether rows must be streamed from disk."""

from __future__ import annotations

import os
from pathlib import Path

from ..runtime.errors import InputError

SHARE = 0.6  # of the free memory that training may take unasked
# beside the entries: measured with `newton` (122; `dcd` 77) and with `dcd`
_ROW_BYTES, _COLUMN_BYTES = 130, 64
_VECTORS = 6  # arrays of one float64 a column that training holds at a time, or a little more


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


def widest(memory: int) -> int:
    """The most columns that a model is trained for where so much memory is free."""
    return max(10**9, memory // 2) // (8 * _VECTORS)


def columns_take(width: int) -> str:
    """What so many columns mean, for messages."""
    return f"{width} columns, which take about {8 * _VECTORS * width / 1e9:.3g} GB to train"


def check_width(name: str, width: int) -> None:
    """Refuse more columns than a model can be trained for: that a file has so many may be just a claim."""
    if width > widest(available_memory()):
        raise InputError(
            f"{name}: has {columns_take(width)}; hash the columns to fewer when you make the file"
        )


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
