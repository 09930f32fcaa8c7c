"""From what a user names as training data to a source: rows in memory if they fit, rows on disk if not."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .arrays import Floats
from .errors import InputError
from .feeds import Feed, OnDisk
from .files.reading import kind_of, read_data
from .files.store import Store
from .files.streaming import ChunkFeed, StoreFeed
from .memory import available_memory

SHARE = 0.6  # of the free memory that training may take by itself
_ROW_BYTES, _COLUMN_BYTES = 100, 64  # of memory that training takes beside the entries


class Opened(NamedTuple):
    """Rows: either ``source``, on disk, or all of ``X``, ``y`` (labels as they are) and ``weight``."""

    source: OnDisk | None
    X: Any = None
    y: Any = None
    weight: Any = None
    classes: tuple[Any, Any] | None = None
    note: str | None = None  # what a user should know


def is_named(X: Any) -> bool:
    """Whether that is the name of a file, or something open, instead of rows."""
    return isinstance(X, str | os.PathLike | Store | StoreFeed | ChunkFeed | OnDisk)


def training_bytes(n: int, d: int, entries: int, value_bytes: int) -> int:
    """Memory that training in memory takes, about."""
    return (value_bytes + 4) * entries + _ROW_BYTES * n + _COLUMN_BYTES * d


def streaming_budget(size: int, memory_budget: int | None) -> int | None:
    """The bytes to stream within, or None if everything fits."""
    budget = int(SHARE * available_memory()) if memory_budget is None else memory_budget
    return None if size <= budget else budget


def open_rows(X: Any, *, classification: bool, memory_budget: int | None, stream: bool = False) -> Opened:
    """Rows of a file, of an open store or of a feed; with ``stream`` they stay on disk even if they fit."""
    if isinstance(X, OnDisk):
        return Opened(X)
    if isinstance(X, str | os.PathLike):
        path = Path(X)
        if kind_of(path) != "store":
            data = read_data(path)
            return Opened(None, data.X, data.y, data.weight)
        X = Store(path)
    feed: Feed = StoreFeed(X) if isinstance(X, Store) else X
    size = training_bytes(feed.n, feed.d, feed.entries, feed.value_bytes)
    budget = streaming_budget(size, memory_budget)
    if budget is None and not stream:
        return _all_of(feed)
    classes = two_classes(feed) if classification else None
    source = OnDisk(feed, targets_of(classes), memory_budget=budget or size)
    note = None if budget is None else streaming_note(feed.name, size, budget)
    return Opened(source, classes=classes, note=note)


def streaming_note(name: str, size: int, budget: int) -> str:
    """What to tell a user who has not asked for it."""
    return (
        f"{name} needs about {size / 1e9:.3g} GB to train in memory: its rows are streamed from disk, "
        f"{budget / 1e9:.3g} GB at a time (memory_budget)"
    )


def two_classes(feed: Feed, positive: Any = None) -> tuple[Any, Any]:
    """The labels behind -1 and +1; the first is None where it stands for all others."""
    if feed.labels is None:
        raise InputError(f"{feed.name}: more than 1,000 different labels, where a classifier needs two")
    found = [label for label, _ in feed.labels]
    shown = ", ".join(f"{label:g}" for label in found[:8]) + (", ..." if len(found) > 8 else "")
    if len(found) == 1:
        raise InputError(f"{feed.name}: all rows have the label {shown}; a classifier needs rows of two classes")
    if positive is None:
        if len(found) > 2:
            raise InputError(
                f"{feed.name}: {len(found)} classes ({shown}) where two are needed; dualgap.one_vs_rest trains a model "
                "for each"
            )
        return found[0], found[1]
    if positive not in found:
        raise InputError(f"{feed.name}: no row has the label {positive:g}; there are: {shown}")
    others = [label for label in found if label != positive]
    return (others[0] if len(others) == 1 else None), positive


def targets_of(classes: Sequence[Any] | None) -> Callable[[Floats], Floats]:
    """How labels become targets: -1 and +1, or as they are."""
    if classes is None:
        return lambda labels: labels
    positive = classes[1]
    return lambda labels: np.where(labels == positive, 1.0, -1.0)


def _all_of(feed: Feed) -> Opened:
    if isinstance(feed, StoreFeed):
        data = feed.store.read()
        return Opened(None, data.X, data.y, data.weight)
    import scipy.sparse as sp

    chunks = [feed.load(k, True) for k in range(feed.chunks)]
    blocks = [
        sp.csr_array((c.rows.values, c.rows.columns.astype(np.int64), c.rows.starts), shape=(c.y.size, feed.d))
        for c in chunks
    ]
    weight = np.concatenate([np.ones(c.y.size) if c.weight is None else c.weight for c in chunks])
    return Opened(None, sp.vstack(blocks, format="csr"), np.concatenate([c.y for c in chunks]), weight)
