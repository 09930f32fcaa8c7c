"""File formats of rows, in a registry of dotted names: the module of a format is imported when a file asks
for it.

A new format is one module with an object that satisfies ``Format``, and one line in ``FORMATS``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from ...runtime import archive
from ...runtime.errors import InputError, nearest
from .text import head_of, read_once

if TYPE_CHECKING:
    from ..chunks import Feed
    from ..table import Table

ZeroBased = Literal["auto", "yes", "no"]
MEND = "raise n_features (--n-features) or mend the row"


class ReadOptions(NamedTuple):
    """How the columns of a file become features, a label and a weight."""

    n_features: int | None = None  # None: as many columns as there are
    zero_based: ZeroBased = "auto"  # whether text counts columns from 0
    label: str = "label"  # the column of a Parquet file that holds the labels
    weight: str | None = None  # and that of the weights, if there is one
    label_sets: bool = False  # a row may have any number of labels, "1,5,7" (multilabel)
    labelled: bool = True  # False: rows may come without labels, for predicting
    threads: int | None = None
    too_wide: str = MEND  # what to do about a column beyond n_features
    block: int | None = None  # bytes of text to parse at a time
    labels: Any = None  # an array, where files of a format hold rows alone (.npy)
    weights: Any = None  # alike


class WriteOptions(NamedTuple):
    """How a file is written; formats refuse what they have no place for."""

    zero_based: bool = False  # text: count columns from 0
    store: Any = None  # a store: its `arrow.writing.Options`
    n_features: int | None = None
    counting: Any = None  # a store: how columns count, see `arrow.writing.write_blocks`
    told: Callable[[str], None] = lambda text: None  # is told how far it is


class Format(Protocol):
    """A file format."""

    name: str
    title: str  # for people
    suffixes: tuple[str, ...]
    indexed: bool  # its rows name columns by indices that count from 0 or from 1
    rows_alone: bool  # its files hold no labels and weights: these are arrays or files of their own

    def sniff(self, head: bytes, path: Path) -> bool:
        """Whether a file that begins like this is one of this format."""

    def read(self, path: Path, options: ReadOptions) -> Table:
        """All rows, in memory."""

    def scan(self, path: Path, options: ReadOptions) -> Iterator[Table]:
        """The rows in tables of some megabytes, in one pass."""

    def feed(self, path: Path, options: ReadOptions) -> Feed | None:
        """The rows for training from disk; None where a file of this format can only be read whole."""

    def write(self, path: Path, tables: Iterable[Table], options: WriteOptions) -> Any:
        """Write rows, whole or not at all; what is known of the file, if the format keeps that."""


FORMATS = {  # in the order in which they are tried on a file; the last takes everything
    "store": "arrow.format",
    "parquet": "parquet",
    "npy": "npy",
    "svmlight": "svmlight.format",
}


def format_named(name: str) -> Format:
    """A format by its name."""
    if name not in FORMATS:
        raise InputError(f"unknown format {name!r}; {nearest(name, [*FORMATS, 'auto'])}")
    form: Format = import_module(f"{__name__}.{FORMATS[name]}").FORMAT
    return form


def format_of(path: str | os.PathLike[str], name: str = "auto") -> Format:
    """The format of a file: the one named, or the one that its first bytes show, whatever it is called."""
    if name != "auto":
        return format_named(name)
    head = b"" if read_once(Path(path)) else head_of(Path(path))
    return next(form for form in map(format_named, FORMATS) if form.sniff(head, Path(path)))


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a saved model, and no data."""
    return not read_once(Path(path)) and head_of(Path(path)).startswith(archive.MAGIC)
