"""NumPy arrays (``.npy``) as files of dense rows; labels and weights are arrays, or files, of their own.

The array is mapped into memory, read-only, and used as it is where it holds floats. It is never unpickled.
Where it does not fit into memory, its rows are read as they are needed (`dense_feed`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...runtime.errors import InputError
from ...runtime.npy import Layout, layout_of_file, mapped
from ..label_sets import NamedColumns, is_label_matrix
from ..table import Table
from ..words import Names
from . import ReadOptions, WriteOptions
from .dense_feed import DenseFeed, DenseRows, labels_of, weights_of
from .reading import refuse_index_base

MAGIC = b"\x93NUMPY"
_ENTRIES = 1 << 22  # of a table of a scan, at most
_TYPES = "float16, float32, float64, bool and integers of up to 64 bits"


class Npy:
    """Arrays that ``np.save`` writes."""

    name, title, indexed = "npy", "NumPy array", False
    rows_alone = True
    suffixes: tuple[str, ...] = (".npy",)

    def sniff(self, head: bytes, path: Path) -> bool:
        """Such files begin with a mark."""
        return head.startswith(MAGIC)

    def read(self, path: Path, options: ReadOptions) -> Table:
        """All rows, mapped; labels are as they are given, as with arrays in memory."""
        layout = _layout(path, options)
        if options.labels is None:
            raise _unlabelled(path)
        return Table(path, mapped(path, layout), options.labels, weight=options.weights)

    def scan(self, path: Path, options: ReadOptions) -> Iterator[Table]:
        """Some thousand rows at a time; labels are 0 where there are none and none are needed."""
        layout = _layout(path, options)
        (n, d), rows = layout.shape, _File(path, layout)
        codes, names = _codes(path, options, n)
        weight = None if options.weights is None else weights_of(str(path), options.weights, n)
        step = max(1, _ENTRIES // d)
        for first in range(0, n, step):
            last = min(first + step, n)
            share = None if weight is None else weight[first:last]
            X, y = rows.read(first, last), _some(codes, first, last)
            yield Table(path, X, y, None, share, first=first, done=last / n, label_names=names)

    def feed(self, path: Path, options: ReadOptions) -> DenseFeed:
        """The rows for training from disk."""
        layout = _layout(path, options)
        if options.labels is None:
            raise _unlabelled(path)
        n, d = layout.shape
        # whoever gives a matrix of labels makes numbers of its rows (`DenseFeed.with_labels`)
        y = np.zeros(n) if is_label_matrix(options.labels) else options.labels
        file = _File(path, layout)
        return DenseFeed(DenseRows(str(path), (n, d), layout.dtype, file.read, True), y, options.weights)

    def write(self, path: Path, tables: Iterable[Table], options: WriteOptions) -> None:
        """Refused."""
        raise InputError(f"{path}: NumPy arrays are read and not written; write a store (.arrow) instead")


FORMAT = Npy()


def _layout(path: Path, options: ReadOptions) -> Layout:
    """The layout of an array of rows; all others are refused."""
    refuse_index_base(path, "an array", options)
    layout = layout_of_file(path)
    shape, dtype = layout.shape, layout.dtype
    if len(shape) != 2:
        raise InputError(
            f"{path}: holds an array of {len(shape)} dimension{'s' * (len(shape) != 1)}, shape {shape}; rows "
            "need 2 (X.reshape(-1, 1) for a single column)"
        )
    if not shape[0] or not shape[1]:
        raise InputError(f"{path}: holds no rows or no columns (shape {shape})")
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise InputError(f"{path}: holds {dtype} values; rows are read from {_TYPES}")
    if layout.fortran_order:
        raise InputError(
            f"{path}: is in Fortran order, column by column, and rows are needed one by one; save it anew "
            "with np.save(path, np.ascontiguousarray(X))"
        )
    if options.n_features not in (None, shape[1]):
        wanted = f"{options.n_features} are wanted; they must be equally many"
        raise InputError(f"{path}: has {shape[1]} columns, and {wanted}")
    return layout


def _unlabelled(path: Path) -> InputError:
    return InputError(
        f"{path}: an array of rows has no labels; give them as y, an array or another file (--labels y.npy)"
    )


def _codes(path: Path, options: ReadOptions, n: int) -> tuple[Any, Names]:
    """The labels of n rows, and their names if they are words."""
    if options.labels is None:
        if options.labelled:
            raise _unlabelled(path)
        return np.zeros(n), None
    if is_label_matrix(options.labels):
        named = isinstance(options.labels, NamedColumns)
        count = (options.labels.matrix if named else options.labels).shape[0]
        if count != n:
            raise InputError(f"{path}: has {n} rows and the matrix of labels {count}")
        return options.labels, None
    return labels_of(str(path), options.labels, n)


def _some(codes: Any, first: int, last: int) -> Any:
    """The labels of rows first to last - 1."""
    if isinstance(codes, NamedColumns):
        return NamedColumns(codes.matrix[first:last], codes.labels)
    return codes[first:last]


class _File:
    """The rows of a file, read when they are asked for, with no memory map: what is read stays read."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self._path, self._layout = path, layout
        try:
            self._file = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        self._signature = self._look()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def read(self, first: int, last: int) -> Any:
        """Rows first to last - 1."""
        if self._look() != self._signature:
            raise InputError(
                f"{self._path}: the file was changed while it was being read; start the run anew"
            )
        rows = np.empty((last - first, self._layout.shape[1]), self._layout.dtype)
        view = rows.reshape(-1).view(np.uint8).data
        at = self._layout.start + first * rows.strides[0]
        while view:
            try:
                count = os.preadv(self._file, [view], at)
            except OSError as error:
                raise InputError(f"{self._path}: row {first} cannot be read: {error.strerror}") from None
            if count == 0:
                raise InputError(f"{self._path}: ends within rows {first} to {last - 1}: it was cut short")
            view, at = view[count:], at + count
        return rows

    def _look(self) -> tuple[int, int]:
        """Size and time of change of the file: other ones mean that it was changed."""
        found = os.fstat(self._file)
        return found.st_size, found.st_mtime_ns
