"""Rows as they are trained on: scaled, then expanded, as they are read from a feed or from memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..runtime.arrays import Floats, canonical
from ..runtime.checks import shown
from ..runtime.errors import InputError
from .chunks import Chunk, Feed
from .features import Expanded, Expansion
from .rows import CSR, sparse_rows
from .scaling import Scaling, fitted
from .sources import Stored, View, view


class ScaledFeed:
    """A feed whose rows are scaled as they are read."""

    value_bytes = 8
    dense_bytes = 0

    def __init__(self, feed: Feed, scaling: Scaling) -> None:
        if scaling.columns is not None and feed.d > scaling.columns.size:
            raise InputError(
                f"{feed.name}: has {feed.d} columns, and those of the training rows, by which it is to be "
                f"scaled, are {scaling.columns.size}; drop the others"
            )
        self.inner, self.scaling = feed, scaling
        self.origin = feed.origin
        self.name, self.n, self.d, self.nnz = feed.name, feed.n, feed.d, feed.nnz
        self.labels, self.total_weight, self.epoch_size = feed.labels, feed.total_weight, feed.epoch_size
        self.chunks, self.steady = feed.chunks, feed.steady
        self.chunk_bytes = 2 * feed.chunk_bytes  # the rows as they were read stay while they are used

    def load(self, k: int, first: bool) -> Chunk:
        """A chunk of the other feed, scaled."""
        chunk = self.inner.load(k, first)
        rows = sparse_rows(chunk.rows, 0, chunk.y.size)
        values = self.scaling.values(*rows)
        part = slice(int(rows.starts[0]), int(rows.starts[-1]))
        starts = canonical(rows.starts - rows.starts[0], np.int64)
        return chunk._replace(rows=CSR(canonical(values, np.float64), rows.columns[part], starts))

    def labelled(self, k: int) -> tuple[Floats, Floats | None]:
        """Labels and weights of a chunk."""
        return self.inner.labelled(k)


def derived_feed(feed: Feed, scaling: Scaling | None, expansion: Expansion | None) -> Feed:
    """The feed of rows as they are trained on."""
    scaled = feed if scaling is None else ScaledFeed(feed, scaling)
    return scaled if expansion is None else Expanded(scaled, expansion)


def stored_feed(feed: Feed) -> Feed:
    """The feed of rows as they are stored, before they are scaled and expanded."""
    while isinstance(feed, Expanded | ScaledFeed):
        feed = feed.inner
    return feed


def scaled_view(scale: str | Scaling, X: Any, source: View) -> tuple[Scaling, View]:
    """The scaling of rows in memory, and a view of the scaled rows. ``source`` is the view of X as it is."""
    if isinstance(X, View | Stored):
        raise InputError(f"scale={shown(scale)}: X is open already; give the matrix itself")
    matrix = X if sp.issparse(X) else np.asarray(X)
    scaling = fitted(scale, [matrix], source.d) if isinstance(scale, str) else scale
    return scaling, view(scaling.apply(matrix), source.y, source.weight, threads=source.threads)
