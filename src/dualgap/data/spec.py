"""Rows as a user names them: arrays, files, stores, feeds, with labels and weights."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..runtime.checks import flag, shown, whole
from ..runtime.errors import InputError
from ..runtime.npy import read_array
from .chunks import OnDisk
from .features import Expansion, Kmers
from .formats import ReadOptions, format_of
from .formats.arrow.feed import StoreFeed
from .formats.arrow.store import Store
from .formats.dense_feed import DenseFeed
from .formats.feeds import ChunkFeed
from .scaling import scale_name


class DataSpec(NamedTuple):
    """Rows as a user names them, and how they are to be held.

    ``X`` is a matrix, the path of a file, or something open: a Store, a feed, a source on disk. ``y`` and
    perhaps ``weight`` belong to a matrix, and to a file that holds rows alone (``.npy``): arrays, or paths of
    ``.npy`` files.
    """

    X: Any
    y: Any = None
    weight: Any = None
    format: str = "auto"  # of a file; auto: its first bytes tell
    columns: ReadOptions = ReadOptions()
    scale: Any = None  # a factor, "max-abs" or "unit-rows": applied to rows as they are read
    expansion: Expansion | None = None  # comes after it
    positive: Any = None  # the class to tell from all others; None: of two, the one that sorts last
    in_memory: bool | None = None  # False: rows stay on disk; True: they do not; None: if they fit
    memory_budget: int | None = None
    threads: int = 1
    leave_out: bool = False  # of several labels a row, those that a schema does not know; else refused

    @property
    def path(self) -> Path | None:
        """The file that is named, if it is one."""
        return Path(self.X) if isinstance(self.X, str | os.PathLike) else None

    @property
    def named(self) -> bool:
        """Whether X names rows, instead of holding them."""
        return isinstance(self.X, str | os.PathLike | Store | StoreFeed | ChunkFeed | DenseFeed | OnDisk)

    @property
    def read_options(self) -> ReadOptions:
        """How its file is read, with the labels and weights that are given apart from it."""
        return self.columns._replace(labels=self.y, weights=self.weight)

    @property
    def rows_alone(self) -> bool:
        """Whether X is a file that holds rows alone."""
        return self.path is not None and format_of(self.path, self.format).rows_alone

    def to_be_scored(self) -> DataSpec:
        """The same rows, which need no labels if their file has no place for them."""
        return self._replace(columns=self.columns._replace(labelled=False)) if self.rows_alone else self

    def with_arrays(self) -> DataSpec:
        """The same, with labels and weights that are named by paths in memory."""
        return self._replace(y=array_of(self.y), weight=array_of(self.weight))


def checked(spec: DataSpec) -> DataSpec:
    """The same, after what contradicts itself has been refused."""
    if not spec.named and spec.expansion is None and not isinstance(spec.X, np.memmap):
        if spec.memory_budget is not None:
            raise InputError(
                f"memory_budget={shown(spec.memory_budget)} is for rows on disk (a store, a feed)"
            )
        if spec.in_memory is False:
            raise InputError("in_memory=False is for rows on disk (a store, a feed), and these are in memory")
    if spec.memory_budget is not None:
        spec = spec._replace(memory_budget=whole("memory_budget", spec.memory_budget, 1))
    if spec.in_memory is not None:
        spec = spec._replace(in_memory=flag("in_memory", spec.in_memory))
    if not spec.named and spec.y is None:
        raise InputError("y is missing: give one label a row")
    refuse_labels(spec)
    if spec.scale is not None and isinstance(spec.expansion, Kmers):
        raise InputError(
            f"scale={shown(spec.scale)}: kmer reads symbols, which must stay what they are; leave scale out"
        )
    return spec._replace(scale=scale_name(spec.scale), threads=whole("threads", spec.threads, 1))


def refuse_labels(spec: DataSpec) -> None:
    """Refuse labels and weights beside a file that has its own."""
    if (spec.y is None and spec.weight is None) or not spec.named:
        return
    if not spec.rows_alone:
        raise InputError("labels and weights come from the file; leave y and sample_weight out")


def array_of(values: Any) -> Any:
    """Labels or weights as they are given, or the array of the ``.npy`` file that is named."""
    return read_array(values) if isinstance(values, str | os.PathLike) else values
