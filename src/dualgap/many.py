"""One model for each of K classes, against the rest; rows on disk are read once for all of them.

Each class has a run of its own, with its own duals, weights and cache of rows (a K-th of the memory budget).
Runs from disk take turns (`training/jobs.py`), and a chunk that has been read serves all. (``block`` and
``selective-block`` want many chunks at a time, and read them for every class.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from .api import fit, job
from .data.chunks import Chunk, Feed, OnDisk
from .data.dataset import Dataset
from .data.features import expanded
from .data.labels import Labels, for_codes, signs
from .data.sources import View
from .inputs import ARGUMENTS, data_of, opened
from .runtime.arrays import Floats
from .runtime.errors import InputError
from .solvers.out_of_core.solver import OutOfCore
from .training.jobs import Job, run_jobs
from .training.outcome import Outcome
from .training.solver import AnySolver

_KEPT = 3  # chunks that stay for the runs that are behind


@dataclass(frozen=True, eq=False)
class OneVsRest:
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


def one_vs_rest(X: Any, y: Any = None, **arguments: Any) -> OneVsRest:
    """Train one model for each class, against the rest. Everything else is as in :func:`fit`."""
    bound = signature(fit).bind(X, y, **arguments)
    bound.apply_defaults()
    data = opened(data_of(bound.arguments), "one-vs-rest", depth=2)
    if data.labels is None:
        raise InputError("X is open already, for other targets than classes; give a path, a Store or a feed")
    told = {name: value for name, value in arguments.items() if name not in ARGUMENTS}
    if isinstance(data.source, OnDisk):
        outcomes = _from_disk(data, data.source, data.labels, told)
    else:
        outcomes = dict(run_jobs(_jobs(data, data.source, data.labels, told)))
    return OneVsRest(np.asarray(data.labels.classes), [outcomes[k] for k in range(len(outcomes))])


def _jobs(data: Dataset, rows: View, labels: Labels, told: dict[str, Any]) -> Iterator[Job]:
    """A run for each class; targets are made when it begins, the rows are shared."""
    for k, label in enumerate(labels.classes):
        yield job(k, _against_rest(data, rows.with_targets(signs(rows.y, k)), label), **told)


def _from_disk(data: Dataset, rows: OnDisk, labels: Labels, told: dict[str, Any]) -> dict[Any, Outcome]:
    """Runs that take turns over the chunks of one feed, each with its share of the memory."""
    count, feed = len(labels.classes), rows.feed
    budget = None if rows.memory_budget is None else rows.memory_budget // count

    def sharing(solver: AnySolver) -> tuple[AnySolver, float]:
        """In lockstep with the reader; a turn has as many visits as a chunk asks for."""
        assert isinstance(solver, OutOfCore)  # no others train from disk
        return solver.in_lockstep(), math.ceil(solver.visits_per_row * feed.n / feed.chunks)

    with Shared(feed, count) as shared:
        jobs = []
        for k, label in enumerate(labels.classes):
            targets = for_codes(partial(labels.signs, k=k), feed.origin.label_names)
            source = OnDisk(shared, targets, memory_budget=budget, models=count)
            jobs.append(job(k, _against_rest(data, source, label), adapt=sharing, **told))
        return dict(run_jobs(jobs, together=True))


def _against_rest(data: Dataset, source: View | OnDisk, label: Any) -> Dataset:
    """The same rows with the targets of one class against the rest."""
    return data._replace(source=source, schema=data.schema._replace(labels=Labels((None, label))))


class Shared:
    """A feed whose chunks are read once for several runs; the next one is read while they train."""

    def __init__(self, feed: Feed, runs: int) -> None:
        self._feed = feed
        self.name, self.n, self.d, self.nnz = feed.name, feed.n, feed.d, feed.nnz
        self.value_bytes, self.labels, self.chunks = feed.value_bytes, feed.labels, feed.chunks
        self.total_weight, self.epoch_size, self.steady = feed.total_weight, feed.epoch_size, feed.steady
        self.origin = feed.origin
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
