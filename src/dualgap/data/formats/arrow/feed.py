"""The batches of a store as a feed, for training from disk."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from ....runtime.arrays import Floats, canonical
from ....runtime.errors import InputError
from ....runtime.sums import Total, TotalByLabel
from ...chunks import Chunk, Origin
from ...rows import CSR
from .store import Store, arrow, checksum, sound_batch

_KEPT = 8  # buffers for batches, more than are in use at a time
_UNUSED = 3  # references to a buffer that only its list, a loop variable and the question itself hold
_PADDING = 64
_COUNTS = sys.version_info < (3, 14)  # later ones borrow references without counting them


class StoreFeed:
    """The batches of a store, read with ``preadv`` into buffers of their own: no memory maps, nothing kept.

    The first time, a batch must have its checksum. Later it must have the sums of words that it had then,
    which take a tenth of the time, in a file that nobody has touched.
    """

    steady = True
    dense_bytes = 0

    def __init__(self, store: Store) -> None:
        self.store = store
        header = store.header
        self.name = str(store.path)
        self.n, self.d, self.nnz = header.n, header.d, header.nnz
        self.value_bytes = np.dtype(header.value_type).itemsize
        self.total_weight, self.epoch_size = header.total_weight, header.present
        self.labels: list[tuple[float, float]] | None = None
        if header.classes is not None and header.class_weights is not None:
            pairs = zip(header.classes, header.class_weights, strict=True)
            self.labels = [(label, weight) for (label, _), weight in pairs]
        names = None if header.feature_names is None else tuple(header.feature_names)
        self.origin = Origin(header.zero_based, names, tuple(header.digests), header.names)
        self.chunks = len(header.checksums)
        sizes = [
            rows * 24 + entries * (4 + self.value_bytes)
            for rows, entries in zip(header.batch_rows, header.batch_entries, strict=True)
        ]
        self.chunk_bytes = max(sizes)
        try:
            self._file = os.open(store.path, os.O_RDONLY)
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read: {error.strerror}") from None
        self._signature = self._look()
        self._places = None if header.compression else _places(store)
        if self._places is not None:
            self.chunk_bytes = max(end - begin for begin, end, _ in self._places)
        self._buffers: list[Any] = []
        self._sums: dict[int, tuple[int, int]] = {}
        if header.weighted and not header.compensated:
            self._add_up_weights()

    def _add_up_weights(self) -> None:
        """Compensated totals of an older store, whose header has plain sums."""
        total, by_label = Total(), TotalByLabel()
        for k in range(self.chunks):
            y, weight = self.labelled(k)
            assert weight is not None
            total.add(weight)
            if self.labels is not None:
                by_label.add(*np.unique(y, return_inverse=True), weight)
        self.total_weight = total.value
        self.labels = None if self.labels is None else by_label.sorted()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def load(self, k: int, first: bool) -> Chunk:
        """A batch as a chunk."""
        span = slice(int(self.store.starts[k]), int(self.store.starts[k + 1]))
        if self._look() != self._signature:
            raise InputError(f"{self.name}: the file was changed while it was being read; start the run anew")
        if self._places is None:
            data = self.store.batch(k)
            rows = CSR(
                canonical(data.X.data, data.X.dtype),
                canonical(data.X.indices.astype(np.uint32, copy=False), np.uint32),
                canonical(data.X.indptr, np.int64),
            )
            return Chunk(rows, canonical(data.codes, np.float64), data.weight, span)
        begin, end, parts = self._places[k]
        buffer = self._buffer(end - begin)
        self._fill(buffer, begin, k)
        starts, columns, values, y, *rest = (
            buffer[at - begin : at - begin + size].view(dtype) for at, size, dtype in parts
        )
        weight = rest[0] if rest else None
        if first or k not in self._sums:
            found = checksum(starts, columns, values, y, weight)
            if found != self.store.header.checksums[k]:
                raise InputError(
                    f"{self.name}: batch {k} (rows {span.start} to {span.stop - 1}) is damaged: its "
                    "checksum is "
                    f"{found} and should be {self.store.header.checksums[k]}; convert the file anew"
                )
            sound = starts[0] == 0 and starts[-1] == columns.size and bool((np.diff(starts) >= 0).all())
            sound = sound and self.store.header.knows(y)
            if not sound or (columns.size and int(columns.max()) >= self.d):
                raise InputError(
                    f"{self.name}: batch {k} (rows {span.start} to {span.stop - 1}) is damaged: its entries "
                    "or labels are not those of the header; convert the file anew"
                )
            self._sums[k] = _sums(buffer)
        elif self._sums[k] != _sums(buffer):
            raise InputError(
                f"{self.name}: batch {k} is not what it was when it was read before; start the run anew"
            )
        rows = CSR(
            canonical(values, values.dtype), canonical(columns, np.uint32), canonical(starts, np.int64)
        )
        return Chunk(rows, canonical(y, np.float64), weight, span)

    def _buffer(self, size: int) -> Any:
        """A buffer that nothing refers to any more, or a new one: fresh pages cost as much as reading."""
        for whole in self._buffers:
            if _COUNTS and sys.getrefcount(whole) <= _UNUSED:  # every view of a buffer holds on to it
                return whole[:size]
        whole = np.empty(max(self.chunk_bytes, size) + _PADDING, dtype=np.uint8)
        if len(self._buffers) < _KEPT:
            self._buffers.append(whole)
        return whole[:size]

    def labelled(self, k: int) -> tuple[Floats, Floats | None]:
        """Labels and weights of a batch; the rows are not read."""
        if self._places is None:
            data = self.store.batch(k)
            return data.codes, data.weight
        found = []
        for at, size, dtype in self._places[k][2][3:]:
            buffer = np.empty(size, dtype=np.uint8)
            self._fill(buffer, at, k)
            found.append(buffer.view(dtype))
        return found[0], found[1] if len(found) > 1 else None

    def _fill(self, buffer: Any, at: int, k: int) -> None:
        view = memoryview(buffer)
        while view:
            try:
                count = os.preadv(self._file, [view], at)
            except OSError as error:
                raise InputError(f"{self.name}: batch {k} cannot be read: {error.strerror}") from None
            if count == 0:
                raise InputError(
                    f"{self.name}: ends within batch {k}: the file was cut short; convert it anew"
                )
            view, at = view[count:], at + count

    def _look(self) -> tuple[int, int]:
        """Size and time of change of the file: other ones mean that it was changed."""
        found = os.fstat(self._file)
        return found.st_size, found.st_mtime_ns


def _sums(buffer: Any) -> tuple[int, int]:
    """The sum and the exclusive or of all words: a flipped bit changes at least one of them."""
    whole = buffer.size - buffer.size % 8
    words = buffer[:whole].view(np.uint64)
    rest = int.from_bytes(buffer[whole:].tobytes(), "little")
    return int(np.add.reduce(words)) + rest, int(np.bitwise_xor.reduce(words)) ^ rest


def _places(store: Store) -> list[tuple[int, int, list[tuple[int, int, Any]]]]:
    """The extent of each batch in the file, and in it offsets, columns, values, labels and weights."""
    pa = arrow()
    header = store.header
    types: list[Any] = [np.int64, np.uint32, header.value_type, np.float64] + [np.float64] * header.weighted
    places = []
    with pa.memory_map(str(store.path)) as file:
        whole = file.read_buffer()
        reader = pa.ipc.open_file(whole)
        for k in range(reader.num_record_batches):
            store.extents.check(k, f"{store.path}: batch {k}")
            batch = sound_batch(reader, k, f"{store.path}: batch {k}", full=False)
            entry = batch.column(0).values
            buffers = [batch.column(0).buffers()[1], *(entry.field(m).buffers()[1] for m in (0, 1))]
            buffers += [batch.column(m).buffers()[1] for m in range(1, batch.num_columns)]
            sizes = [
                8 * (header.batch_rows[k] + 1),
                4 * header.batch_entries[k],
                np.dtype(header.value_type).itemsize * header.batch_entries[k],
                *[8 * header.batch_rows[k]] * (1 + header.weighted),
            ]
            parts = [
                (buffer.address - whole.address if buffer is not None and size else 0, size, dtype)
                for buffer, size, dtype in zip(buffers, sizes, types, strict=True)
            ]
            real = [(at, size) for at, size, _ in parts if size]
            begin, end = min(at for at, _ in real), max(at + size for at, size in real)
            if not 0 <= begin <= end <= whole.size:
                raise InputError(f"{store.path}: batch {k} lies outside of the file; convert it anew")
            places.append((begin, end, [(at if size else begin, size, dtype) for at, size, dtype in parts]))
            del batch, entry, buffers
        del reader, whole
    return places
