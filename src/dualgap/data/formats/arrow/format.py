"""Stores as a format of the registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ...table import Table, in_columns
from .. import ReadOptions, WriteOptions
from ..reading import refuse_index_base
from .feed import StoreFeed
from .header import Header
from .store import MAGIC, Store


class Stores:
    """Arrow files that ``dualgap convert`` makes: rows in batches that can be read one by one."""

    name, title, indexed = "store", "dualgap store (Arrow)", False
    rows_alone = False
    suffixes: tuple[str, ...] = (".arrow", ".feather", ".ipc")

    def sniff(self, head: bytes, path: Path) -> bool:
        """Arrow files begin with their name."""
        return head.startswith(MAGIC)

    def read(self, path: Path, options: ReadOptions) -> Table:
        """All rows, in memory."""
        refuse_index_base(path, "a store", options)
        return in_columns(Store(path).read(), options.n_features, options.too_wide)

    def scan(self, path: Path, options: ReadOptions) -> Iterator[Table]:
        """Batch by batch."""
        refuse_index_base(path, "a store", options)
        for table in Store(path).blocks():
            yield in_columns(table, options.n_features, options.too_wide)

    def feed(self, path: Path, options: ReadOptions) -> StoreFeed:
        """The batches, as often as they are asked for."""
        return StoreFeed(Store(path))

    def write(self, path: Path, tables: Iterable[Table], options: WriteOptions) -> Header:
        """Write rows, shuffled by default."""
        from .writing import Counting, write_blocks

        counting = options.counting or (lambda lowest: Counting(0, None))
        return write_blocks(
            path, tables, options.store, n_features=options.n_features, counting=counting, told=options.told
        )


FORMAT = Stores()
