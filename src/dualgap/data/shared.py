"""A feed that several runs read at a time."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from ..runtime.arrays import Floats
from .chunks import Chunk, Feed

_KEPT = 3  # chunks that stay for the runs that are behind


class Shared:
    """A feed whose chunks are read once for several runs; the next one is read while they train."""

    def __init__(self, feed: Feed, runs: int) -> None:
        self._feed = feed
        self.name, self.n, self.d, self.nnz = feed.name, feed.n, feed.d, feed.nnz
        self.value_bytes, self.labels, self.chunks = feed.value_bytes, feed.labels, feed.chunks
        self.total_weight, self.epoch_size, self.steady = feed.total_weight, feed.epoch_size, feed.steady
        self.origin, self.dense_bytes = feed.origin, feed.dense_bytes
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
