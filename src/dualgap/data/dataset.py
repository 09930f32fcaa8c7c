"""From what a user names as training data to a source: rows in memory if they fit, rows on disk if not."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..runtime.arrays import Floats
from ..runtime.checks import shown, whole
from ..runtime.errors import InputError
from .chunks import Feed, FromMemory, OnDisk
from .features import Expanded, Expansion
from .formats.arrow.store import Store
from .formats.feeds import ChunkFeed, StoreFeed
from .formats.reading import kind_of, read_data
from .memory import available_memory, training_bytes
from .rows import CSR
from .sources import View, view

SHARE = 0.6  # of the free memory that training may take by itself


class Given(NamedTuple):
    """What a caller of ``fit`` gives for rows, and how they are to be held."""

    X: Any
    y: Any
    sample_weight: Any
    memory_budget: int | None = None
    by_rows: bool = (
        False  # an option of the solver says how many rows to keep in memory: the others stay on disk
    )
    expansion: Expansion | None = None
    threads: int = 1

    @property
    def named(self) -> bool:
        """X is the name of a file, or something open, instead of rows."""
        return isinstance(self.X, str | os.PathLike | Store | StoreFeed | ChunkFeed | OnDisk)


def source_of(given: Given, task: str) -> tuple[View | OnDisk, Any, str | None]:
    """A source, the two labels behind -1 and +1 if there are such, and what a user should know.

    ``task`` is "classification" or "regression".
    """
    budget, classification = given.memory_budget, task == "classification"
    if budget is not None:
        if not given.named and given.expansion is None:
            raise InputError(f"memory_budget={shown(budget)} is for rows on disk (a store, a feed)")
        budget = whole("memory_budget", budget, 1)
    given = given._replace(memory_budget=budget, threads=whole("threads", given.threads, 1))
    if not given.named and given.y is None:
        raise InputError("y is missing: give one label a row")
    if given.named and (given.y is not None or given.sample_weight is not None):
        raise InputError("labels and weights come from the file; leave y and sample_weight out")
    if isinstance(given.X, OnDisk):
        return given.X, None, None
    X, y, weight = given.X, given.y, given.sample_weight
    if isinstance(X, str | os.PathLike) and kind_of(X) != "store":
        if budget is not None and given.expansion is None:
            raise InputError(
                f"{X}: text is read whole; `dualgap convert` makes a store of it, which can stay on disk"
            )
        data = read_data(X)
        X, y, weight = data.X, data.y, data.weight
    feed: Feed | None = None
    classes: Any = None
    if isinstance(X, str | os.PathLike | Store):
        feed = StoreFeed(X if isinstance(X, Store) else Store(X))
    elif isinstance(X, StoreFeed | ChunkFeed):
        feed = X
    else:
        if classification:
            y, classes = two_labels(y)
        rows = view(X, y, weight, threads=given.threads)
        if given.expansion is None:
            return rows, classes, None
        feed = FromMemory(rows)
    return _from_feed(feed, classes, given, classification)


def _from_feed(
    feed: Feed, classes: Any, given: Given, classification: bool
) -> tuple[View | OnDisk, Any, str | None]:
    known = classes is not None  # the labels are targets already
    if classification and not known:
        classes = np.array(two_classes(feed))
    targets = targets_of(None if known or not classification else classes)
    if given.expansion is not None:
        feed = Expanded(feed, given.expansion)
    size = training_bytes(feed.n, feed.d, feed.nnz, feed.value_bytes)
    budget = streaming_budget(size, given.memory_budget)
    if budget is None and not (given.by_rows and given.named):
        X, y, weight = all_of(feed)
        return view(X, targets(y), weight, threads=given.threads), classes, None
    note = (
        streaming_note(feed.name, size, budget)
        if budget is not None and given.memory_budget is None
        else None
    )
    return OnDisk(feed, targets, memory_budget=budget), classes, note


def streaming_budget(size: int, memory_budget: int | None) -> int | None:
    """The bytes to stream within, or None if everything fits."""
    budget = int(SHARE * available_memory()) if memory_budget is None else memory_budget
    return None if size <= budget else budget


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
        raise InputError(
            f"{feed.name}: all rows have the label {shown}; a classifier needs rows of two classes"
        )
    if positive is None:
        if len(found) > 2:
            raise InputError(
                f"{feed.name}: {len(found)} classes ({shown}) where two are needed; dualgap.one_vs_rest "
                "trains a model "
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


def all_of(feed: Feed) -> tuple[Any, Floats, Floats | None]:
    """All rows of a feed, in memory, with labels and weights."""
    if isinstance(feed, StoreFeed):
        data = feed.store.read()
        return data.X, data.y, data.weight
    chunks = [feed.load(k, True) for k in range(feed.chunks)]
    blocks = [_matrix(chunk.rows, feed.d) for chunk in chunks]
    labels = np.concatenate([chunk.y for chunk in chunks])
    weights = [np.ones(chunk.y.size) if chunk.weight is None else chunk.weight for chunk in chunks]
    return sp.vstack(blocks, format="csr"), labels, np.concatenate(weights)


def _matrix(rows: CSR, d: int) -> Any:
    part = slice(int(rows.starts[0]), int(rows.starts[-1]))
    starts = rows.starts - rows.starts[0]
    return sp.csr_array(
        (rows.values[part], rows.columns[part].astype(np.int64), starts), shape=(starts.size - 1, d)
    )


def two_labels(y: Any) -> tuple[Any, Any]:
    """Labels as -1 and +1, and the two labels they stand for."""
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.size == 0:
        return labels, None  # in_memory has the words for this
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        return labels, None
    classes = distinct(labels)
    if classes.size == 1:
        raise InputError(f"y holds one class only ({classes[0]}); a classifier needs rows of two")
    if classes.size > 2:
        raise InputError(
            f"y holds {classes.size} classes "
            f"({', '.join(map(str, classes[:4]))}{', ...' * (classes.size > 4)}) where "
            "two are needed; use dualgap.LinearSVC, which trains one against the rest, or a regression loss"
        )
    return np.where(labels == classes[1], 1.0, -1.0), classes


def distinct(labels: Any) -> Any:
    """The labels that there are, in order; two numbers are found without sorting."""
    if labels.size and labels.dtype.kind in "biuf":
        low, high = labels.min(), labels.max()
        if low < high and ((labels == low) | (labels == high)).all():
            return np.array([low, high])
    try:
        return np.unique(labels)
    except TypeError:  # some are words, some are numbers
        raise InputError(
            "y holds labels of different types that cannot be sorted; give all as numbers or all as words"
        ) from None
