"""How much memory there is, how much training takes, and whether rows must be streamed from disk."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from ..runtime.errors import InputError

SHARE = 0.6  # of the free memory that training may take unasked
# beside the entries: measured with `newton` (122; `dcd` 77) and with `dcd`
_ROW_BYTES, _COLUMN_BYTES = 130, 64
CLASS_BYTES = 36  # by a row and a class of a joint model: duals, those of the best point, scores
_CONTROL_GROUPS = [  # of both versions: folder, limit, what is used, and how much of that is cached files
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
]
_VECTORS = 6  # arrays of one float64 a column that training holds at a time, or a little more


def training_bytes(n: int, d: int, nnz: int, value_bytes: int, index_bytes: int = 4) -> int:
    """The memory that training in memory takes, approximately."""
    return (value_bytes + index_bytes) * nnz + _ROW_BYTES * n + _COLUMN_BYTES * d


def available_memory() -> int:
    """Bytes that may be used without swapping, and within the limits of the process and of its container."""
    return max(0, min([_free_memory(), *_left_in_container(), *_left_to_process()]))


def _free_memory() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _left_in_container() -> list[int]:
    """What the control group allows: that of a container is mounted as if it were the root. Files that are
    only cached count as free.
    """
    for folder, limit, used, cached in _CONTROL_GROUPS:
        try:
            told = {name: Path(folder, name).read_text() for name in (limit, used, "memory.stat")}
            most = int(told[limit])
            stat = dict(line.split() for line in told["memory.stat"].splitlines())
            return [most - int(told[used]) + int(stat.get(cached, 0))]
        except (OSError, ValueError):  # there is none, or no limit ("max")
            continue
    return []


def _left_to_process() -> list[int]:
    """What a limit on the address space (``ulimit -v``) leaves."""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY:
        return []
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        pages = 0
    return [most - pages * resource.getpagesize()]


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
