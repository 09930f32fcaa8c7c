"""How much memory there is, and how much training takes."""

from __future__ import annotations

import os
from pathlib import Path

_ROW_BYTES, _COLUMN_BYTES = (
    130,
    64,
)  # beside the entries: measured with `newton` (122; `dcd` 77) and with `dcd`


def training_bytes(n: int, d: int, nnz: int, value_bytes: int) -> int:
    """Memory that training in memory takes, about."""
    return (value_bytes + 4) * nnz + _ROW_BYTES * n + _COLUMN_BYTES * d


def available_memory() -> int:
    """Bytes that may be used without others having to make room."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
