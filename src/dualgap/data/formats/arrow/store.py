"""The store: rows in an Arrow file, in blocks that can be read one by one, without a copy and without
parsing.

Every record batch is a block of rows:

    row     large_list<struct<column: uint32, value: float32 or float64>>    the entries, by columns
    label   double                                                            a number, or a code for a word
    weight  double                                                            only where rows are weighted

Arrow keeps the members of a struct apart, so offsets, columns and values of a batch are three arrays: CSR as
it stands, each at a multiple of 64 bytes in the file. The metadata of the schema hold one key, ``dualgap``,
with a JSON object (``header``): what is known of all rows, and a checksum for every batch. To other programs
it is an ordinary Arrow file.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ....runtime.errors import InputError
from ....runtime.paths import kind_of_path
from ...memory import available_memory
from ...table import Table, csr_over
from .header import header_of

MAGIC = b"ARROW1"


def arrow() -> Any:
    """The package pyarrow, or an error that says how to install it."""
    try:
        import pyarrow
    except ImportError:
        raise InputError("stores need the package pyarrow: pip install 'dualgap[store]'") from None
    return pyarrow


def schema(value_type: str, weighted: bool) -> Any:
    """The columns of a store."""
    pa = arrow()
    entry = pa.struct(
        [
            pa.field("column", pa.uint32(), nullable=False),
            pa.field("value", {"float32": pa.float32(), "float64": pa.float64()}[value_type], nullable=False),
        ]
    )
    fields = [
        pa.field("row", pa.large_list(pa.field("entry", entry, nullable=False)), nullable=False),
        pa.field("label", pa.float64(), nullable=False),
    ]
    if weighted:
        fields.append(pa.field("weight", pa.float64(), nullable=False))
    return pa.schema(fields)


def batch_of(layout: Any, X: Any, y: Any, weight: Any) -> tuple[Any, str]:
    """Rows as a record batch, and its checksum."""
    pa = arrow()
    rows = layout.field("row").type
    column, value = rows.value_type.field("column"), rows.value_type.field("value")
    starts = X.indptr.astype(np.int64)
    columns = X.indices.astype(np.uint32, copy=False)
    values = X.data.astype(value.type.to_pandas_dtype(), copy=False)
    entries = pa.StructArray.from_arrays([pa.array(columns), pa.array(values)], fields=[column, value])
    arrays = [pa.LargeListArray.from_arrays(pa.array(starts), entries, type=rows), pa.array(y)]
    if weight is not None:
        arrays.append(pa.array(weight))
    return pa.RecordBatch.from_arrays(arrays, schema=layout), checksum(starts, columns, values, y, weight)


def checksum(*arrays: Any) -> str:
    """CRC-32 of offsets, columns, values, labels and weights, one after another, as they stand in the
    file.
    """
    total = 0
    for array in arrays:
        if array is not None:
            total = zlib.crc32(_bytes(array), total)
    return f"{total:08x}"


class Store:
    """A store that is open for reading. Batches are read on demand, and each is checked."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        pa = arrow()
        self.path = Path(path)
        if (kind := kind_of_path(self.path)) in ("folder", "device"):
            raise InputError(f"{self.path}: is a {kind}; give a file")
        try:
            self._reader = pa.ipc.open_file(pa.OSFile(os.fspath(path)))
            found = self._reader.schema
            batches = self._reader.num_record_batches
        except FileNotFoundError:
            raise InputError(f"{self.path}: no such file") from None
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
            raise InputError(f"{self.path}: no Arrow file, or a damaged one: {_one_line(error)}") from None
        self.header = header_of(self.path, found)
        expected = schema(self.header.value_type, self.header.weighted)
        if not found.equals(expected) or batches != len(self.header.checksums):
            raise InputError(
                f"{self.path}: its columns or batches are not those of a dualgap store; convert it anew"
            )
        from .extents import Extents  # needs pyarrow

        self.extents = Extents(self.path, self.header)

    @cached_property
    def starts(self) -> Any:
        """The row numbers at which batches begin, and the number of rows."""
        return np.concatenate([[0], np.cumsum(self.header.batch_rows, dtype=np.int64)])

    def batch(self, k: int) -> Table:
        """The rows of a batch: views of its buffers, after the checksum has been compared."""
        header = self.header
        first = int(self.starts[k])
        where = f"{self.path}: batch {k} (rows {first} to {first + header.batch_rows[k] - 1})"
        self.extents.check(k, where)
        batch = sound_batch(self._reader, k, where, full=True)
        if any(column.null_count for column in batch.columns) or batch.num_rows != header.batch_rows[k]:
            raise InputError(
                f"{where} is damaged: it has other rows than the header says; convert the file anew"
            )
        rows = batch.column(0)
        starts, entries = rows.offsets.to_numpy(), rows.values
        columns, values = (entries.field(m).to_numpy() for m in (0, 1))
        label = batch.column(1).to_numpy()
        weight = batch.column(2).to_numpy() if header.weighted else None
        found = checksum(starts, columns, values, label, weight)
        if found != header.checksums[k]:
            raise InputError(
                f"{where} is damaged: its checksum is {found} and should be {header.checksums[k]}; "
                "convert the file anew"
            )
        if starts[0] != 0 or not starts[-1] == columns.size == header.batch_entries[k]:
            raise InputError(
                f"{where} is damaged: it has other entries than the header says; convert the file anew"
            )
        if columns.size and int(columns.max()) >= header.d:
            raise InputError(
                f"{where} is damaged: it names column {columns.max()} of {header.d}; convert the file anew"
            )
        if not header.knows(label):
            raise InputError(f"{where} is damaged: it has labels without names; convert the file anew")
        return Table(
            self.path,
            csr_over(values, columns, starts, (label.size, header.d)),
            label,
            header.zero_based,
            weight,
            None if header.feature_names is None else tuple(header.feature_names),
            first=first,
            done=float(self.starts[k + 1]) / header.n,
            digests=tuple(header.digests),
            label_names=header.names,
        )

    def blocks(self) -> Iterator[Table]:
        """All batches, one after another."""
        for k in range(len(self.header.checksums)):
            yield self.batch(k)

    def read(self) -> Table:
        """All rows, in memory."""
        header = self.header
        if self.extents.total > available_memory():
            raise InputError(
                f"{self.path}: {header.n} rows with {header.nnz} entries do not fit into memory; "
                "train from disk (memory_budget=, --memory-budget)"
            )
        try:
            values = np.empty(header.nnz, dtype=header.value_type)
            columns = np.empty(header.nnz, dtype=np.uint32)
            starts = np.zeros(header.n + 1, dtype=np.int64)
            label = np.empty(header.n)
            weight = np.empty(header.n) if header.weighted else None
        except (MemoryError, ValueError):  # beyond what there is, or beyond what can be counted
            raise InputError(
                f"{self.path}: {header.n} rows with {header.nnz} entries do not fit into memory"
            ) from None
        entry = 0
        for data in self.blocks():
            rows, entries = slice(data.first, data.first + data.n), slice(entry, entry + data.X.nnz)
            values[entries], columns[entries] = data.X.data, data.X.indices
            starts[rows.start + 1 : rows.stop + 1] = data.X.indptr[1:] + np.int64(entry)
            label[rows] = data.codes
            if weight is not None:
                weight[rows] = data.weight
            entry = entries.stop
        X = csr_over(values, columns, starts, (header.n, header.d))
        names = None if header.feature_names is None else tuple(header.feature_names)
        return Table(
            self.path,
            X,
            label,
            header.zero_based,
            weight,
            names,
            digests=tuple(header.digests),
            label_names=header.names,
        )


def sound_batch(reader: Any, k: int, where: str, *, full: bool) -> Any:
    """A record batch whose lengths and buffers agree; Arrow aborts the process where a child of any other is
    read.
    """
    pa = arrow()
    try:
        batch = reader.get_batch(k)
        batch.validate(full=full)
    except (pa.ArrowException, OSError, ValueError, KeyError, IndexError, TypeError, MemoryError) as error:
        raise InputError(f"{where} is damaged: {_one_line(error)}; convert the file anew") from None
    return batch


def _bytes(array: Any) -> Any:
    packed: Any = np.ascontiguousarray(array)
    return memoryview(packed).cast("B") if packed.size else b""


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
