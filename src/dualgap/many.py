"""One model for each of K classes, against the rest; rows on disk are read once for all of them.

Each class has a run of its own, with its own duals, weights and cache of rows (a K-th of the memory budget).
The runs take turns, the one that is furthest behind first, so that all of them want the same chunk at about
the same time; and a chunk that has been read serves all. (``block`` and ``selective-block`` want many chunks
at a time, and read them for every class.)
"""

from __future__ import annotations

import os
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .api import Limits, fit, prepare
from .data.chunks import Chunk, Feed, OnDisk
from .data.dataset import Given, all_of, distinct, streaming_budget, targets_of
from .data.features import Expanded, expanded, make_expansion
from .data.formats.arrow.store import Store
from .data.formats.feeds import ChunkFeed, StoreFeed
from .data.memory import training_bytes
from .runtime.arrays import Floats
from .runtime.checks import shown, whole
from .runtime.errors import InputError
from .training.loop import CtrlC, Outcome, Record, running

_KEPT = 3  # chunks that stay for the runs that are behind


@dataclass(frozen=True, eq=False)
class Many:
    """Models of one class each, in the order of ``classes``, every one with its certificate."""

    classes: Floats
    outcomes: list[Outcome]

    @property
    def coef(self) -> Floats:
        """A row a class."""
        return np.stack([outcome.coef for outcome in self.outcomes])

    @property
    def intercept(self) -> Floats:
        """A number a class."""
        return np.array([outcome.intercept for outcome in self.outcomes])

    @property
    def passes(self) -> float:
        """Over the data, of the run that needed most; 0 where all rows were in memory."""
        return max(
            outcome.trace[-1].measures.get("passes", 0.0) for outcome in self.outcomes if outcome.trace
        )

    def decision(self, X: Any) -> Floats:
        """A score a class for every row."""
        expansion = self.outcomes[0].expansion
        rows = X if expansion is None else expanded(X, expansion)
        return np.asarray(rows @ self.coef.T) + self.intercept

    def predict(self, X: Any) -> Floats:
        """The class of the highest score."""
        chosen: Floats = self.classes[self.decision(X).argmax(axis=1)]
        return chosen


def one_vs_rest(X: Any, y: Any = None, **options: Any) -> Many:
    """Train one model for each class, against the rest. Everything else is as in :func:`fit`."""
    given_budget = options.pop("memory_budget", None)
    feed = _feed(X, y, options)
    if feed is not None:
        if given_budget is not None:
            given_budget = whole("memory_budget", given_budget, 1)
        if feed.labels is None:
            raise InputError(f"{feed.name}: more than 1,000 different labels, where classes are needed")
        classes = np.array([label for label, _ in feed.labels])
        size = training_bytes(feed.n, feed.d, feed.nnz, feed.value_bytes)
        budget = streaming_budget(size, given_budget)
        if budget is not None or "cache" in options:
            return _from_disk(feed, classes, budget, options)
        X, y, weight = all_of(feed)  # grown already, if they were to grow
        options = {**options, "sample_weight": weight}
        expansion = make_expansion(options.pop("expand", None), options.pop("hash_bits", None))
        found = one_vs_rest(X, y, **options)
        return Many(found.classes, [replace(outcome, expansion=expansion) for outcome in found.outcomes])
    if given_budget is not None:
        raise InputError(f"memory_budget={shown(given_budget)} is for rows on disk (a store, a feed)")
    if y is None:
        raise InputError("y is missing: give one label a row")
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise InputError(f"y has shape {labels.shape}; it must be one label a row, in one dimension")
    classes = distinct(labels)
    if classes.size < 2:
        raise InputError("y holds one class only; a classifier needs rows of two")
    return Many(classes, [fit(X, np.where(labels == label, 1.0, -1.0), **options) for label in classes])


def _feed(X: Any, y: Any, options: dict[str, Any]) -> Feed | None:
    if isinstance(X, StoreFeed | ChunkFeed):
        feed: Feed = X
    elif isinstance(X, str | os.PathLike | Store):
        feed = StoreFeed(X if isinstance(X, Store) else Store(X))
    else:
        return None
    if y is not None or options.get("sample_weight") is not None:
        raise InputError("labels and weights come from the file; leave y and sample_weight out")
    expansion = make_expansion(options.get("expand"), options.get("hash_bits"))
    return feed if expansion is None else Expanded(feed, expansion)


def _from_disk(feed: Feed, classes: Floats, budget: int | None, options: dict[str, Any]) -> Many:
    """Runs in lockstep over one feed."""
    defaults: dict[str, Any] = {
        "loss": "hinge", "C": None, "lam": None, "solver": "auto", "tol": 1e-3, "bias": "none", "rho": 1.0,
    }  # fmt: skip
    settings = {key: options.pop(key, value) for key, value in defaults.items()}
    limits = Limits(
        options.pop("max_epochs", 1000), options.pop("max_steps", None), options.pop("time_limit", None)
    )
    seed, watchers = options.pop("seed", 0), options.pop("watchers", ())
    expansion = make_expansion(options.pop("expand", None), options.pop("hash_bits", None))
    with Shared(feed, classes.size) as shared, CtrlC() as ctrl_c:
        runs: list[Generator[Record, None, Outcome]] = []
        for label in classes:
            share = None if budget is None else budget // classes.size
            source = OnDisk(shared, targets_of((None, label)), memory_budget=share, models=classes.size)
            task = prepare(
                Given(source, None, None), limits=limits, seed=seed, options=dict(options), **settings
            )
            solver: Any = task.solver
            if hasattr(solver, "lockstep"):
                solver = replace(solver, lockstep=True)
            most = int(np.ceil(getattr(solver, "sweeps", 1.0) * feed.n / feed.chunks))
            told: dict[str, Any] = {"tol": task.tol, "form": task.form, "watchers": watchers, "most": most}
            runs.append(running(solver, task.problem, task.rule, ctrl_c, **told))
        outcomes = _in_turns(runs)
    return Many(classes, [replace(outcome, expansion=expansion) for outcome in outcomes])


def _in_turns(runs: list[Generator[Record, None, Outcome]]) -> list[Outcome]:
    """Let the run go on that is furthest behind, until all are done."""
    passed = dict.fromkeys(range(len(runs)), 0.0)
    outcomes: dict[int, Outcome] = {}
    try:
        while passed:
            turn = min(passed, key=lambda k: passed[k])
            try:
                passed[turn] = next(runs[turn]).measures["passes"]
            except StopIteration as end:
                outcomes[turn] = end.value
                del passed[turn]
    finally:
        for run in runs:
            run.close()
    return [outcomes[k] for k in range(len(runs))]


class Shared:
    """A feed whose chunks are read once for several runs; the next one is read while they train."""

    def __init__(self, feed: Feed, runs: int) -> None:
        self._feed = feed
        self.name, self.n, self.d, self.nnz = feed.name, feed.n, feed.d, feed.nnz
        self.value_bytes, self.labels, self.chunks = feed.value_bytes, feed.labels, feed.chunks
        self.total_weight, self.epoch_size, self.steady = feed.total_weight, feed.epoch_size, feed.steady
        self.chunk_bytes = feed.chunk_bytes // runs  # they share what has been read
        self.loads = 0  # chunks that were really read
        self._kept: dict[int, Future[Chunk]] = {}
        self._pool = ThreadPoolExecutor(1, "dualgap-reader")
        self._seen: set[int] = set()

    def __enter__(self) -> Shared:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def load(self, k: int, first: bool) -> Chunk:
        """A chunk, perhaps read before; the one behind it is fetched meanwhile."""
        chunk = self._fetched(k).result()
        self._fetched((k + 1) % self.chunks)
        return chunk

    def labelled(self, k: int) -> tuple[Floats, Floats | None]:
        """Labels and weights of a chunk."""
        return self._feed.labelled(k)

    def _fetched(self, k: int) -> Future[Chunk]:
        if k not in self._kept:
            while len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[k] = self._pool.submit(self._feed.load, k, k not in self._seen)
            self._seen.add(k)
            self.loads += 1
        return self._kept[k]
