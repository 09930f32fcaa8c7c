"""The door for data: from arrays, files and feeds to a source of rows with targets.

``open_data`` opens rows for training, for certifying and for validation, in memory if they fit and from disk
if not. ``scan`` reads rows in one pass of bounded memory, for predicting and evaluating. Where a ``Schema``
is given, ``open_data`` applies its columns, classes, scaling and expansion; ``scan`` reads rows in its
columns, checks their names and leaves labels as they are. No other module decides how data are opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..runtime.arrays import Floats, Words
from ..runtime.checks import shown
from ..runtime.errors import InputError
from .chunks import Feed, FromMemory, OnDisk
from .derived import derived_feed, scaled_view, stored_feed
from .features import Expanded
from .fingerprint import RowDigests, combined, fingerprint, row_hashes
from .formats import format_of
from .formats.arrow.feed import StoreFeed
from .formats.arrow.store import Store
from .formats.dense_feed import DenseFeed, DenseRows
from .formats.feeds import ChunkFeed, read_feed, scan_feed
from .label_sets import LabelSets, is_label_matrix, label_matrix, sets_of_feed
from .labels import (
    ClassNumbers,
    Labels,
    classes_of,
    for_codes,
    one_label,
    refuse_sets,
    refuse_words,
    targets_of,
    words_of,
)
from .memory import CLASS_BYTES, check_width, streaming_budget, streaming_note, training_bytes
from .scaling import fitted
from .schema import Schema
from .sources import View, view
from .spec import DataSpec, array_of, checked, refuse_labels
from .table import Table

__all__ = ["DataSpec", "Dataset", "RowIdentity", "array_of", "open_data", "scan"]

_ARRAYS = Path("X")  # stands for the name of a file where rows come from arrays
_WHOLE = (
    "text is read whole; `dualgap convert` makes a store of it, which --memory-budget can train from disk"
)


class RowIdentity(NamedTuple):
    """What tells training rows from others: a fingerprint of all, and a hash of each with its target and
    weight.
    """

    fingerprint: str
    hashes: Words


class Dataset(NamedTuple):
    """Rows that are open for training or certifying."""

    source: View | OnDisk
    schema: Schema
    spec: DataSpec
    notes: tuple[str, ...] = ()
    X: Any = None  # the rows before any scaling and expansion, where they are in memory
    digests: tuple[str, ...] | None = None  # of the rows, where the file keeps them (see `fingerprint`)

    @property
    def labels(self) -> Labels | None:
        """The classes; None for regression."""
        return self.schema.labels

    @property
    def nnz(self) -> int:
        """The number of stored entries, before any expansion."""
        if self.X is None:
            assert isinstance(self.source, OnDisk)
            return stored_feed(self.source.feed).nnz
        return self.source.nnz if self.schema.expansion is None else int(self.X.nnz)

    def identity(self, *, fresh: bool = False) -> RowIdentity:
        """Fingerprint and hashes of the rows. ``fresh``: digests that the file keeps are not relied on."""
        digests = None if fresh else self.digests
        if self.X is not None:
            y, weight = self._labelled()
            return RowIdentity(fingerprint(self.X, y, weight, digests=digests), row_hashes(self.X, y, weight))
        found = RowDigests()
        targets, weights, hashes = [], [], []
        for table in scan(self.spec, self.schema):
            if digests is None:
                found.add(table.X)
            targets.append(self.schema.targets(table))
            weights.append(np.ones(table.n) if table.weight is None else table.weight)
            hashes.append(row_hashes(table.X, targets[-1], table.weight))
        digests = found.digests() if digests is None else digests
        return RowIdentity(combined(digests, targets, weights), np.concatenate(hashes))

    def _labelled(self) -> tuple[Floats, Floats]:
        """The targets and weights of all rows."""
        source = self.source
        if isinstance(source, View):
            return source.y, source.weight
        parts = [source.feed.labelled(k) for k in range(source.feed.chunks)]
        weights = [np.ones(y.size) if weight is None else weight for y, weight in parts]
        return np.concatenate([source.targets(y) for y, _ in parts]), np.concatenate(weights)


def open_data(spec: DataSpec, task: str, schema: Schema | None = None) -> Dataset:
    """Open rows for training; with a schema, in the columns, classes and features of a model.

    ``task`` is "classification" (of two classes), "regression", "one-vs-rest" (of two classes or more),
    "classes" (the same for a joint model of all of them), or "multilabel" (any number of labels a row).
    Targets are -1 and +1 for two classes, the positions in ``labels.classes`` for more of them and for a
    joint model, and those in ``labels.sets`` for sets of labels.
    """
    spec = checked(spec.with_arrays())
    if task == "multilabel":
        spec = spec._replace(y=label_matrix(spec.y), columns=spec.columns._replace(label_sets=True))
    if schema is not None:
        spec = spec._replace(expansion=schema.expansion)
    if isinstance(spec.X, OnDisk):
        if spec.scale is not None:
            raise InputError(f"scale={shown(spec.scale)}: X is open already; give scale where it is opened")
        return Dataset(spec.X, Schema(spec.X.d), spec)
    feed = _feed_of(spec)
    if feed is not None:
        if schema is None:
            check_width(feed.name, feed.d)
        size = _training_bytes(derived_feed(feed, None, spec.expansion))
        if (spec.scale if schema is None else schema.scaling) is not None:
            size += 8 * feed.nnz  # the scaled values; the others stay
        if task == "classes" and feed.labels is not None:
            size += CLASS_BYTES * feed.n * len(feed.labels)
        budget = None if spec.in_memory else streaming_budget(size, spec.memory_budget)
        if budget is not None or spec.in_memory is False:
            return _on_disk(spec, task, schema, feed, budget)
    return _in_memory(spec, task, schema, _table(spec, schema, feed), whole_file=feed is None)


def scan(spec: DataSpec, schema: Schema | None = None) -> Iterator[Table]:
    """The rows in tables, in one pass of bounded memory, in the columns of a schema; nothing is expanded."""
    path, spec = spec.path, spec.with_arrays()
    if path is not None:
        form = format_of(path, spec.format)
        refuse_labels(spec)
        options = spec.read_options if schema is None else schema.reading(spec.read_options, form)
        tables = form.scan(path, options)
    elif isinstance(spec.X, Store):
        tables = spec.X.blocks()
    elif isinstance(spec.X, OnDisk):
        tables = scan_feed(stored_feed(spec.X.feed))
    elif spec.named:
        tables = scan_feed(spec.X)
    else:
        tables = iter([_table(spec, schema, None)])
    return tables if schema is None else map(schema.check_names, tables)


def _feed_of(spec: DataSpec) -> Feed | None:
    """The rows as a feed; None for arrays in memory and for formats that must be read whole."""
    if isinstance(spec.X, StoreFeed | ChunkFeed | DenseFeed):
        return spec.X
    if isinstance(spec.X, np.memmap):
        return _feed_of_map(spec)
    if isinstance(spec.X, Store):
        return StoreFeed(spec.X)
    path = spec.path
    if path is None:
        return None
    feed = format_of(path, spec.format).feed(path, spec.read_options)
    if (
        feed is None
        and spec.expansion is None
        and (spec.memory_budget is not None or spec.in_memory is False)
    ):
        raise InputError(f"{path}: {_WHOLE}")
    return feed


def _feed_of_map(spec: DataSpec) -> Feed | None:
    """The rows of a memory map that does not fit into memory; None for others, which are used like arrays."""
    X = spec.X
    if X.ndim != 2 or X.dtype.kind not in "biuf" or not X.flags.c_contiguous or not X.size:
        return None
    wanted = spec.in_memory is False or spec.memory_budget is not None
    if not wanted and streaming_budget(X.nbytes, None) is None:
        return None
    rows = DenseRows("X", X.shape, X.dtype, lambda first, last: np.asarray(X[first:last]), False)
    return DenseFeed(rows, np.zeros(X.shape[0]) if is_label_matrix(spec.y) else spec.y, spec.weight)


def _table(spec: DataSpec, schema: Schema | None, feed: Feed | None) -> Table:
    """All rows, in memory."""
    path = spec.path
    if path is not None:
        form = format_of(path, spec.format)
        if schema is None:
            return form.read(path, spec.read_options)
        return schema.check_names(form.read(path, schema.reading(spec.read_options, form)))
    if feed is not None and spec.named:
        return read_feed(feed)
    return Table(_ARRAYS, spec.X, spec.y, weight=spec.weight)


def _training_bytes(feed: Feed) -> int:
    if isinstance(feed, DenseFeed):
        return training_bytes(feed.n, feed.d, feed.nnz, feed.dense_bytes, 0)
    return training_bytes(feed.n, feed.d, feed.nnz, feed.value_bytes)


def _in_memory(
    spec: DataSpec, task: str, schema: Schema | None, table: Table, *, whole_file: bool
) -> Dataset:
    """Rows in memory. Those that no longer fit once they are expanded are streamed (``whole_file``)."""
    labels, targets = _targets(spec, task, schema, table)
    try:
        source = view(table.X, targets, table.weight, threads=spec.threads)
    except InputError as error:
        raise InputError(f"{table.path}: {error}" if spec.named else str(error)) from None
    if schema is not None and source.d != schema.n_columns:
        have = "have" if schema.owner.endswith("s") else "has"
        theirs = f"{schema.owner} {have} {schema.n_columns}"
        raise InputError(f"X has {source.d} columns and {theirs}; they must be equally many")
    scaling = spec.scale if schema is None else schema.scaling
    if scaling is not None:
        scaling, source = scaled_view(scaling, table.X, source)
    columns = source.d, table.zero_based, table.feature_names
    found = Schema(*columns, spec.expansion, labels, scaling=scaling)
    if spec.expansion is not None:
        grown = Expanded(FromMemory(source), spec.expansion)
        size = _training_bytes(grown)
        budget = streaming_budget(size, spec.memory_budget) if whole_file and not spec.in_memory else None
        if budget is not None:
            notes = (*table.notes, streaming_note(grown.name, size, budget))
            streamed = OnDisk(grown, memory_budget=budget)
            return Dataset(streamed, found, spec, notes, table.X, table.digests)
        rows = read_feed(grown)
        source = view(rows.X, rows.y, rows.weight, threads=spec.threads)
    return Dataset(source, found, spec, table.notes, table.X, table.digests)


def _on_disk(spec: DataSpec, task: str, schema: Schema | None, feed: Feed, budget: int | None) -> Dataset:
    """Rows that stay on disk."""
    if spec.columns.n_features is not None or spec.columns.zero_based != "auto":
        raise InputError(f"{feed.name}: a store knows its columns; leave --n-features and --zero-based out")
    sets, known = None, None if schema is None else schema.labels
    if isinstance(feed, DenseFeed) and is_label_matrix(spec.y):
        if task != "multilabel":
            raise InputError(
                f"{feed.name}: a matrix of labels is for dualgap.one_vs_rest, a model for each label"
            )
        matrix = spec.y, None, feed.name
        sets = known.for_rows(*matrix) if isinstance(known, LabelSets) else LabelSets.of_rows(*matrix)
        feed = feed.with_labels(sets.set_numbers(spec.y, None))
    scaling = spec.scale if schema is None else schema.scaling
    if isinstance(scaling, str):
        scaling = fitted(scaling, (table.X for table in scan_feed(feed)), feed.d)
    grown = derived_feed(feed, scaling, spec.expansion)
    size = _training_bytes(grown)
    notes = () if budget is None else (streaming_note(grown.name, size, budget),)
    zero_based, names, digests, label_names = feed.origin
    if schema is not None:
        schema.check_columns(feed.name, names)
    if task != "multilabel" and schema is None:
        refuse_sets(label_names, feed.name)
    if task == "regression":
        refuse_words(label_names, feed.name)
    if task == "multilabel":
        targets: Callable[[Floats], Floats] = _as_they_are
        if sets is None:
            sets, targets = sets_of_feed(feed, known)
        columns = feed.d, zero_based, names
        schema = schema or Schema(*columns, spec.expansion, scaling=scaling)
        source = OnDisk(grown, targets, memory_budget=budget, d=schema.width, threads=spec.threads)
        return Dataset(source, schema._replace(labels=sets), spec, notes, None, digests)
    if schema is not None:
        schema.check_labels(feed.name, None if feed.labels is None else classes_of(feed))
        targets = targets_of(schema.labels, label_names)
        source = OnDisk(grown, targets, memory_budget=budget, d=schema.width, threads=spec.threads)
        return Dataset(source, schema, spec, notes, None, digests)
    labels = None
    if task == "classification":
        labels = Labels.binary(np.array(classes_of(feed)), feed.name, spec.positive)
    elif task in ("one-vs-rest", "classes"):
        several = ClassNumbers if task == "classes" else Labels
        labels = several.several(np.array(classes_of(feed)), feed.name, feed.n)
    targets = targets_of(labels, label_names)
    found = Schema(feed.d, zero_based, names, spec.expansion, labels, scaling=scaling)
    return Dataset(
        OnDisk(grown, targets, memory_budget=budget, threads=spec.threads), found, spec, notes, None, digests
    )


def _as_they_are(labels: Floats) -> Floats:
    return labels


def _targets(spec: DataSpec, task: str, schema: Schema | None, table: Table) -> tuple[Labels | None, Any]:
    """The classes of rows in memory, and their targets."""
    name = str(table.path) if spec.named else None
    if task != "multilabel" and schema is None:
        refuse_sets(table.label_names, str(table.path))
    if task == "regression":
        refuse_words(words_of(table), name or "y")
        return None, table.codes
    if task == "multilabel":
        known, rows = None if schema is None else schema.labels, (table.codes, table.label_names, name)
        if isinstance(known, LabelSets):
            sets = known.for_rows(*rows, spec.leave_out)
        else:
            sets = LabelSets.of_rows(*rows)
        return sets, sets.set_numbers(table.codes, table.label_names)
    labels = one_label(table.codes)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        return None, labels  # `view` says what is wrong with it
    if schema is not None:
        return schema.labels, _known(spec, schema, table, labels)
    if labels.size == 0:
        return None, labels
    found = Labels.of_table(table).classes
    if task in ("one-vs-rest", "classes"):
        classes = (ClassNumbers if task == "classes" else Labels).several(found, name, labels.size)
    else:
        classes = Labels.binary(found, name, spec.positive)
    return classes, for_codes(classes.targets, table.label_names)(labels)


def _known(spec: DataSpec, schema: Schema, table: Table, labels: Any) -> Any:
    """The targets of labels that must be among those of a schema."""
    if spec.named or schema.labels is None:
        return schema.targets(table)
    row = schema.labels.first_unknown(labels)
    if row is not None:
        raise InputError(f"y[{row}] is {labels[row]}, which is no class of {schema.owner}")
    return schema.labels.targets(labels)
