"""Stores of any size, made on the spot: text-like rows, written block by block in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from dualgap.data.formats.arrow import writing as store_writing
from dualgap.data.formats.arrow.header import Header
from dualgap.data.formats.arrow.spool import Rows
from dualgap.data.table import Table

WORDS, COLUMNS, BLOCK = 70, 50_000, 20_000
_POOL = 20_000_000  # words drawn once; a block takes its rows from a place of its own


class Text:
    """Rows of words by Zipf's law, of Euclidean length 1; labels by a hidden taste, one in 25 flipped."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        cumulative = np.cumsum(1.0 / np.arange(3, COLUMNS + 3))
        drawn = np.searchsorted(cumulative, rng.random(_POOL) * cumulative[-1])
        self._pool = rng.permutation(COLUMNS).astype(np.uint32)[drawn]
        self._taste = (rng.normal(size=COLUMNS) * (rng.random(COLUMNS) < 0.3)).astype(np.float32)
        self._seed = seed

    def block(self, k: int) -> Table:
        """The k-th block of rows."""
        rng = np.random.default_rng([self._seed, k])
        first = rng.integers(0, _POOL - BLOCK * WORDS)
        words = self._pool[first : first + BLOCK * WORDS].copy()
        swapped = rng.integers(0, words.size, words.size // 3)  # no window of the pool comes twice
        words[swapped] = self._pool[rng.integers(0, _POOL, swapped.size)]
        words = np.sort(words.reshape(BLOCK, WORDS), axis=1)
        own = np.ones(words.shape, dtype=bool)
        own[:, 1:] = words[:, 1:] != words[:, :-1]
        counts = own.sum(axis=1)
        taste = np.where(own, self._taste[words], 0.0).sum(axis=1) / np.sqrt(counts)
        labels = np.where(taste + 0.3 * rng.normal(size=BLOCK) > 0, 1.0, -1.0)
        labels[rng.random(BLOCK) < 0.04] *= -1.0
        starts = np.concatenate([[0], np.cumsum(counts)])
        values = np.repeat((1.0 / np.sqrt(counts)).astype(np.float32), counts)
        X = sp.csr_array((values, words[own].astype(np.int32), starts), shape=(BLOCK, COLUMNS))
        return Table(Path("generated"), X, labels)


class _Made:
    """Stands where the spool does: blocks are made when they are to be written, and looked at on the way."""

    def __init__(self, text: Text, blocks: int, seen: store_writing._Seen) -> None:
        self._text, self._blocks, self._seen = text, blocks, seen

    def rows(self) -> Iterator[Rows]:
        for k in range(self._blocks):
            data = self._text.block(k)
            self._seen.look(data)
            yield Rows(data.X, data.y, None)


def write(path: Path, gigabytes: float, seed: int = 0) -> Header:
    """A store of about that size."""
    text = Text(seed)
    sample = text.block(0)
    blocks = max(1, round(gigabytes * 1e9 / (8 * sample.X.nnz + 16 * BLOCK)))
    seen = store_writing._Seen()
    options = store_writing.Options(seed=None, value_type="float32")
    counting = store_writing.Counting(0, None)
    return store_writing._write(
        path, _Made(text, blocks, seen), seen, options, counting, COLUMNS, lambda line: None
    )  # type: ignore[arg-type]
