"""Rows on their way into a store: gathered in bounded memory, returned in their order or in a random one.

The random order is that of a random key of 64 bits for every row, drawn as the rows come in. So it depends on
the seed and on the rows alone, not on the memory there is. When memory is short, rows go to files, each of
which takes an interval of keys; the files are then read, sorted and handed out one by one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ....runtime.arrays import Floats, Words
from ....runtime.errors import InputError
from ....runtime.leftovers import affixes, remove_leftovers

_COPIES = 6  # of what is gathered that may be in memory while it is sorted and written
_MOST_FILES = 1024


class Rows(NamedTuple):
    """Some rows; their matrix is as wide as its highest column needs."""

    X: Any
    y: Floats
    weight: Floats | None

    @property
    def size(self) -> int:
        """The size in bytes."""
        arrays = (self.X.data, self.X.indices, self.X.indptr, self.y, self.weight)
        return sum(array.nbytes for array in arrays if array is not None)


class Spool:
    """Takes rows by ``add`` and returns all of them by ``rows``; ``close`` removes its files.

    ``seed`` is None for rows that stay in their order.
    """

    def __init__(self, folder: Path, budget: int, seed: int | None) -> None:
        self._folder, self._budget = folder, budget
        self._random = None if seed is None else np.random.default_rng(seed)
        self._gathered: list[Rows] = []
        self._keys: list[Words] = []
        self._size = 0
        self._files: list[Path] = []
        self._temporary: Any = None

    def add(self, rows: Rows, done: float = 0.0) -> None:
        """Add rows; ``done`` is the share of the input that has been read by now, if known."""
        self._gathered.append(rows)
        self._size += rows.size
        if self._random is not None:
            self._keys.append(self._random.integers(0, 2**64, size=rows.y.size, dtype=np.uint64))
        if self._size > self._budget / _COPIES:
            self._spill(done)

    def rows(self) -> Iterator[Rows]:
        """All rows, in blocks of any size; only one block is in memory at a time."""
        if not self._files:
            yield from self._sorted(self._gathered, self._keys)
            return
        if self._gathered:
            self._spill(1.0)
        for file in self._files:
            if not file.exists():
                continue
            parts = list(_load(file))
            if self._random is None:
                yield from (rows for rows, _ in parts)
            else:
                yield from self._sorted([rows for rows, _ in parts], [keys for _, keys in parts])
            file.unlink()

    def close(self) -> None:
        """Remove the files."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def _sorted(self, parts: list[Rows], keys: list[Words]) -> Iterator[Rows]:
        if self._random is None:
            yield from parts
        elif parts:
            rows = joined(parts)
            yield _taken(rows, np.argsort(np.concatenate(keys), kind="stable"))

    def _spill(self, done: float) -> None:
        """Write the rows gathered so far to the files."""
        if self._temporary is None:
            remove_leftovers(self._folder)
            prefix, suffix = affixes("rows")
            self._temporary = tempfile.TemporaryDirectory(
                dir=self._folder, prefix=prefix, suffix=suffix, ignore_cleanup_errors=True
            )
        folder = Path(self._temporary.name)
        try:
            if self._random is None:
                self._files.append(folder / f"{len(self._files)}")
                _save(self._files[-1], joined(self._gathered), np.zeros(0, dtype=np.uint64))
            else:
                if not self._files:
                    expected = self._size / done if done else self._budget * _MOST_FILES
                    count = min(max(2, int(2 * _COPIES * expected / self._budget)), _MOST_FILES)
                    self._files = [folder / f"{k}" for k in range(count)]
                self._scatter()
        except OSError as error:
            raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from error
        self._gathered, self._keys, self._size = [], [], 0

    def _scatter(self) -> None:
        keys = np.concatenate(self._keys)
        rows = joined(self._gathered)
        self._gathered, self._keys = [], []
        order = np.argsort(keys, kind="stable")
        count = len(self._files)
        bounds = np.array([(2**64 * k) // count for k in range(1, count)], dtype=np.uint64)
        edges = [0, *np.searchsorted(keys[order], bounds).tolist(), keys.size]
        for k, file in enumerate(self._files):
            chosen = order[edges[k] : edges[k + 1]]
            if chosen.size:
                _save(file, _taken(rows, chosen), keys[chosen])


def joined(parts: list[Rows]) -> Rows:
    """All rows of several parts, in their order."""
    if len(parts) == 1:
        return parts[0]
    width = max(rows.X.shape[1] for rows in parts)
    for rows in parts:
        rows.X.resize(rows.X.shape[0], width)
    weight = None if parts[0].weight is None else np.concatenate([rows.weight for rows in parts])
    return Rows(
        sp.vstack([rows.X for rows in parts], format="csr"),
        np.concatenate([rows.y for rows in parts]),
        weight,
    )


def _taken(rows: Rows, which: Any) -> Rows:
    return Rows(rows.X[which], rows.y[which], None if rows.weight is None else rows.weight[which])


def _save(file: Path, rows: Rows, keys: Words) -> None:
    weight = np.zeros(0) if rows.weight is None else rows.weight
    with file.open("ab") as stream:
        for array in (
            keys,
            rows.y,
            weight,
            rows.X.indptr,
            rows.X.indices,
            rows.X.data,
            np.array(rows.X.shape),
        ):
            np.save(stream, array)


def _load(file: Path) -> Iterator[tuple[Rows, Words]]:
    end = file.stat().st_size
    with file.open("rb") as stream:
        while stream.tell() < end:
            keys, y, weight, starts, columns, values, shape = (np.load(stream) for _ in range(7))
            X = sp.csr_array((values, columns, starts), shape=tuple(shape))
            yield Rows(X, y, weight if weight.size else None), keys
