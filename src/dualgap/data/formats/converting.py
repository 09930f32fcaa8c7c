"""From one file of rows to another: text to store, store to text, and either to itself, packed or shuffled
anew.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ...runtime.arrays import Floats
from ...runtime.errors import InputError
from ...runtime.writing import check_destination, replacing
from ..table import Data
from .arrow.store import Header, Store
from .arrow.writing import BUDGET, Counting, Options, write_blocks
from .reading import kind_of, stream_data
from .svmlight.reading import ZeroBased, counts_from_zero, stream_svmlight
from .svmlight.writing import packed
from .svmlight.writing import write_blocks as write_text
from .text import PIECE, pieces, read_once

_STORES = (".arrow", ".feather", ".ipc")
_TEXTS = (".svm", ".svmlight", ".libsvm", ".txt", ".dat", ".t")
_PACKED = (".gz", ".bz2", ".xz", ".zst")


def is_store_name(path: str | os.PathLike[str]) -> bool:
    """Whether a file of that name is to be a store; other names are for text."""
    name = Path(path).name.lower()
    if name.endswith(_STORES):
        return True
    for suffix in _PACKED:
        name = name.removesuffix(suffix)
    if not name.endswith(_TEXTS):
        raise InputError(
            f"{path}: the name does not tell what to write; {', '.join(_STORES)} for a store, "
            f"{', '.join(_TEXTS)} for "
            f"svmlight text, which {', '.join(_PACKED)} may follow"
        )
    return False


def convert(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    keep_order: bool = False,
    seed: int = 0,
    dtype: str = "auto",
    compression: str | None = None,
    memory_budget: int = BUDGET,
    weights: str | os.PathLike[str] | None = None,
    names: str | os.PathLike[str] | None = None,
    told: Callable[[str], None] = lambda text: None,
    warned: Callable[[str], None] | None = None,
) -> Header | None:
    """Convert a file of rows; the names of the files say which way.

    Parameters
    ----------
    source : path
        Svmlight text (plain or packed, ``-`` for the standard input) or a store.
    destination : path
        ``.arrow`` for a store, ``.svm`` (perhaps ``.svm.gz`` and so on) for text.
    n_features : int, optional
        The number of columns; by default as many as the highest index asks for.
    zero_based : {"auto", "yes", "no"}
        Whether the text counts columns from 0.
    keep_order : bool
        For a store: leave the rows in their order, where they are shuffled otherwise. Text keeps it always.
    seed : int
        Of the shuffle.
    dtype : {"auto", "float32", "float64"}
        How a store keeps values. "auto" takes float32 if it holds every value exactly.
    compression : {"lz4", "zstd"}, optional
        Of a store.
    memory_budget : int
        Bytes that may be used for rows on the way.
    weights, names : path, optional
        For a store: files with one weight a row, and with one name a column, a line each.
    told, warned : callables
        Get a line of text now and then: how far it is, and what cannot be kept.

    Returns
    -------
    Header or None
        What is known of a store.
    """
    source, destination = Path(source), Path(destination)
    to_store = is_store_name(destination)
    extra = {"WEIGHTS": weights, "NAMES": names}
    inputs = {name: None if file is None else Path(file) for name, file in extra.items()}
    check_destination(destination, IN=source, **inputs)
    if not to_store:
        if weights or names or compression or dtype != "auto":
            raise InputError(
                "weights, names, dtype and compression are for stores; text has no place for them"
            )
        _to_text(source, destination, n_features, zero_based, told, warned or told)
        return None
    options = Options(None if keep_order else seed, dtype, compression, memory_budget)
    options.check()
    if kind_of(source) == "store":
        if n_features is not None:
            raise InputError(f"{source}: a store knows its columns; leave --n-features out")
        store = Store(source)
        n_features = store.header.d
        blocks = stream_data(source, zero_based=zero_based)
        known: Counting | None = Counting(0, store.header.zero_based)
    else:
        size = min(
            PIECE, max(50_000, memory_budget // 500)
        )  # rows of a piece take up to three times its bytes, on every thread
        blocks = stream_svmlight(source, n_features=n_features, zero_based=zero_based, block=size)
        known = None if zero_based == "auto" else Counting(0, zero_based == "yes")
    if names is not None:
        titles = _names(Path(names))
        blocks = (replace(data, feature_names=titles) for data in blocks)
    if weights is not None:
        blocks = _weighted(blocks, Path(weights))

    def counting(lowest: int) -> Counting:
        return known or Counting(int(lowest != 0), lowest == 0)

    return write_blocks(destination, blocks, options, n_features=n_features, counting=counting, told=told)


def _to_text(
    source: Path,
    destination: Path,
    n_features: int | None,
    zero_based: ZeroBased,
    told: Callable[[str], None],
    warned: Callable[[str], None],
) -> None:
    """Columns count from where they counted before, or from 1."""
    if kind_of(source) == "store":
        header = Store(source).header
        from_zero = bool(header.zero_based)
        lost = [word for word, has in (("weights", header.weighted), ("names", header.feature_names)) if has]
        if lost:
            warned(
                f"{source}: text has no place for the {' and '.join(lost)} of this store: they are left out"
            )
    else:
        from_zero = zero_based == "yes" or (
            zero_based == "auto" and not read_once(source) and counts_from_zero(source)
        )
        zero_based = "yes" if from_zero else "no"

    def blocks() -> Iterator[tuple[Any, Floats]]:
        rows = 0
        for data in stream_data(source, n_features=n_features, zero_based=zero_based):
            yield data.X, data.y
            rows += data.y.size
            told(f"wrote {rows:,} rows" + (f" ({100 * data.done:.0f}%)" if data.done else ""))

    with replacing(destination) as raw, packed(destination, raw) as stream:
        write_text(stream, blocks(), zero_based=from_zero)


def _weighted(blocks: Iterable[Data], file: Path) -> Iterator[Data]:
    """The rows with weights from a file that has one a line."""
    numbers = _numbers(file)
    rows = 0
    for data in blocks:
        weight = np.fromiter(islice(numbers, data.y.size), dtype=np.float64)
        rows += data.y.size
        if weight.size < data.y.size:
            raise InputError(f"{file}: {rows - data.y.size + weight.size} weights, and there are more rows")
        yield replace(data, weight=weight)
    if next(numbers, None) is not None:
        raise InputError(f"{file}: more weights than the {rows} rows; give one a row")


def _numbers(file: Path) -> Iterator[float]:
    for number, line in _lines(file):
        try:
            value = float(line)
        except ValueError:
            value = math.nan
        if not 0.0 <= value < math.inf:
            raise InputError(f"{file}, line {number}: weight {line[:40]!r} is not a number >= 0")
        yield value


def _names(file: Path) -> tuple[str, ...]:
    return tuple(line for _, line in _lines(file))


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text, numbered from 1, without their ends."""
    number = 0
    for piece in pieces(file):
        try:
            lines = piece.text.tobytes().decode().split("\n")[:-1]  # splitlines() knows of many more ends
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: not UTF-8 text ({error.reason})") from None
        for line in lines:
            number += 1
            yield number, line.strip()
