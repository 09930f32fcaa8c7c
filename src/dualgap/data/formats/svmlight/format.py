"""Svmlight text as a format of the registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ....runtime.errors import InputError
from ....runtime.writing import replacing
from ...table import Table
from .. import ReadOptions, WriteOptions
from ..text import read_once, shown
from .reading import counts_from_zero, read_svmlight, stream_svmlight
from .writing import packed, write_blocks


class Svmlight:
    """Text of one row a line; it can only be read whole, or streamed once."""

    name, title, indexed = "svmlight", "svmlight text", True
    rows_alone = False
    suffixes: tuple[str, ...] = (".svm", ".svmlight", ".libsvm", ".txt", ".dat", ".t")

    def sniff(self, head: bytes, path: Path) -> bool:
        """Text has no mark of its own: what no other format takes is read as text."""
        return True

    def read(self, path: Path, options: ReadOptions) -> Table:
        """All rows, in memory."""
        return read_svmlight(
            path,
            n_features=options.n_features,
            zero_based=options.zero_based,
            threads=options.threads,
            too_wide=options.too_wide,
            label_sets=options.label_sets,
        )

    def scan(self, path: Path, options: ReadOptions) -> Iterator[Table]:
        """The rows in blocks; the text is read twice where it must first be seen from where it counts
        columns.
        """
        zero_based = options.zero_based
        if zero_based == "auto":
            if read_once(path):
                raise InputError(
                    f"{shown(path)}: can be read only once, so say how its indices count, with --zero-based "
                    "yes or no"
                )
            zero_based = "yes" if counts_from_zero(path, options.label_sets) else "no"
        return stream_svmlight(
            path,
            n_features=options.n_features,
            zero_based=zero_based,
            threads=options.threads,
            too_wide=options.too_wide,
            block=options.block,
            label_sets=options.label_sets,
        )

    def feed(self, path: Path, options: ReadOptions) -> None:
        """None: text has no chunks that could be found again without parsing all that comes before."""
        return

    def write(self, path: Path, tables: Iterable[Table], options: WriteOptions) -> None:
        """Write rows and labels; text has no place for weights and names."""
        blocks = ((table.X, table.y) for table in tables)
        with replacing(path) as raw, packed(path, raw) as stream:
            write_blocks(stream, blocks, zero_based=options.zero_based)


FORMAT = Svmlight()
