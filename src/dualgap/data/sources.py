"""Sources of rows: what the rest of the library trains on and evaluates.

``Stored`` is one validated matrix; a ``View`` shows it with targets and weights, and is the source for rows
in memory (``chunks.OnDisk`` is the other one). One-vs-rest, class weights and folds are views of the same
stored rows: none of them copies a row, and a row of weight 0 is absent.

``parts`` yields what is loaded at a time, which in memory is everything. ``reduce`` adds things up over parts
of its own, which do not depend on the number of threads, nor does the order of its additions: so a
certificate does not either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from ..runtime.arrays import Floats, canonical
from ..runtime.errors import InputError
from ..runtime.sums import LONGEST, total_of
from ..runtime.threads import OrderedMerge, in_threads
from .rows import Batch, Dense, Rows, as_rows, entry_count, row_count, slice_rows

T = TypeVar("T")


class Part(NamedTuple):
    """A batch of rows, and the slice of all rows that it holds."""

    batch: Batch
    span: slice


class Source(Protocol):
    """What problems and solvers may ask of a source.

    ``y``, ``squared_norms`` and ``batch`` are available only where ``in_memory`` is true.
    """

    @property
    def n(self) -> int: ...
    @property
    def d(self) -> int: ...
    @property
    def nnz(self) -> int: ...  # stored entries
    @property
    def in_memory(self) -> bool: ...  # all rows are in memory
    @property
    def y(self) -> Floats: ...
    @property
    def weight(self) -> Floats: ...
    @property
    def squared_norms(self) -> Floats: ...
    @property
    def target_weights(self) -> list[tuple[float, float]] | None: ...  # (target, its total weight), if known
    @property
    def total_weight(self) -> float: ...  # within two units of the sum of the weights (see `sums.Total`)
    @property
    def epoch_size(self) -> int: ...  # rows of positive weight
    @property
    def threads(self) -> int: ...  # that a pass over all rows may use
    @property
    def digest(self) -> str: ...  # of sizes and samples: a different one almost surely means different data
    @property
    def batch(self) -> Batch: ...  # all rows
    def parts(self) -> Iterator[Part]: ...
    def reduce(self, visit: Callable[[Part], T], merge: Callable[[T, T], T]) -> T: ...


class Stored(NamedTuple):
    """A validated matrix of n rows and d columns, without targets."""

    rows: Rows
    d: int
    nnz: int
    squared_norms: Floats

    @property
    def n(self) -> int:
        """The number of rows."""
        return row_count(self.rows)

    def head(self, count: int) -> Stored:
        """The first rows, without a copy."""
        rows = slice_rows(self.rows, 0, count)
        return Stored(rows, self.d, entry_count(rows), self.squared_norms[:count])


@dataclass(frozen=True, eq=False)
class View:
    """Stored rows with targets and weights: a source whose rows are all in memory (or mapped into it)."""

    data: Stored
    y: Floats
    weight: Floats
    threads: int = 1
    in_memory = True

    @property
    def rows(self) -> Rows:
        """The stored rows."""
        return self.data.rows

    @property
    def n(self) -> int:
        """The number of rows, those of weight 0 included."""
        return int(self.y.shape[0])

    @property
    def d(self) -> int:
        """The number of columns."""
        return self.data.d

    @property
    def nnz(self) -> int:
        """The number of stored entries, those of rows of weight 0 included."""
        return self.data.nnz

    @property
    def squared_norms(self) -> Floats:
        """Squared Euclidean lengths of the rows."""
        return self.data.squared_norms

    @cached_property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return total_of(self.weight)

    @cached_property
    def target_weights(self) -> list[tuple[float, float]] | None:
        """The total weights of the labels -1 and +1; None where there are other targets."""
        if np.any(np.abs(self.y) != 1.0):
            return None
        return [(label, total_of(self.weight[self.y == label])) for label in (-1.0, 1.0)]

    @cached_property
    def epoch_size(self) -> int:
        """How many rows have a positive weight."""
        return int(np.count_nonzero(self.weight))

    @cached_property
    def digest(self) -> str:
        """Of sizes, and of samples of every array."""
        stored = [self.rows.matrix] if isinstance(self.rows, Dense) else [self.rows.values, self.rows.columns]
        return digest_of((self.n, self.d, self.nnz), [*stored, self.y, self.weight, self.squared_norms])

    @cached_property
    def batch(self) -> Batch:
        """All rows."""
        return Batch(self.rows, self.y, self.weight, self.squared_norms)

    def with_targets(self, y: Any) -> View:
        """The same rows and weights with other targets."""
        return replace(self, y=canonical(vector(y, "y", self.n), np.float64))

    def with_weight(self, weight: Any) -> View:
        """The same rows and targets with other weights; a row of weight 0 is absent."""
        return replace(self, weight=canonical(_weights(weight, self.n), np.float64))

    def parts(self) -> Iterator[Part]:
        """All rows, as one part."""
        yield self._whole

    @cached_property
    def _whole(self) -> Part:
        return Part(self.batch, slice(0, self.n))

    def reduce(self, visit: Callable[[Part], T], merge: Callable[[T, T], T]) -> T:
        """``visit`` every part, on up to ``threads`` threads, and ``merge`` the results in their order."""
        if len(self._edges) == 2:
            return visit(self._whole)
        parts = [self._part(first, last) for first, last in pairwise(self._edges)]
        merged = OrderedMerge(merge)
        numbers = list(range(len(parts)))
        in_threads(lambda k: merged.add(k, visit(parts[k])), numbers, min(self.threads, len(parts)))
        return merged.total

    @cached_property
    def _edges(self) -> list[int]:
        """Row numbers at which parts begin. Parts have equally many rows, and many more entries than the d
        numbers that a part may add up.
        """
        count = min(64, self.n, 1 + self.nnz // (4 * self.d + 1_000_000))
        count = max(count, -(-self.n // LONGEST))  # as long as compensated sums may be
        count += count % 2 if 1 < count < self.n else 0  # shared evenly by two threads
        return [self.n * k // count for k in range(count + 1)]

    def _part(self, first: int, last: int) -> Part:
        span = slice(first, last)
        rows = slice_rows(self.rows, first, last)
        return Part(Batch(rows, self.y[span], self.weight[span], self.squared_norms[span]), span)


_SAMPLES, _SAMPLE = 64, 256  # places at which numbers of a large array are hashed, and how many at each


def digest_of(sizes: tuple[Any, ...], arrays: Sequence[Any] = ()) -> str:
    """A digest of some numbers and of evenly spaced samples of some arrays, small arrays whole.

    It tells other data at no cost worth mentioning. Whoever must be sure compares values that rest on all the
    data.
    """
    digest = hashlib.blake2b(repr(sizes).encode(), digest_size=16)
    for array in arrays:
        flat = array.reshape(-1)
        if flat.size <= _SAMPLES * _SAMPLE:
            digest.update(np.ascontiguousarray(flat).data)
            continue
        for first in np.linspace(0, flat.size - _SAMPLE, _SAMPLES).astype(np.int64):
            digest.update(np.ascontiguousarray(flat[first : first + _SAMPLE]).data)
    return digest.hexdigest()


def view(X: Any, y: Any, sample_weight: Any = None, *, threads: int = 1) -> View:
    """Validate rows, targets and weights; arrays that fit as they are are not copied.

    X may be a View or Stored itself: its rows are used again, with these targets and weights.
    """
    if isinstance(X, View):
        data = X.data
    elif isinstance(X, Stored):
        data = X
    else:
        rows, d, squared_norms = as_rows(X, threads)
        data = Stored(rows, d, entry_count(rows), squared_norms)
    n, d = data.n, data.d
    if n == 0:
        raise InputError(f"X has no rows (shape {(n, d)}); there is nothing to train on")
    if d == 0:
        raise InputError(f"X has 0 features (shape {(n, d)}); at least 1 is needed")
    target = vector(y, "y", n)
    weight = np.ones(n) if sample_weight is None else _weights(sample_weight, n)
    return View(data, canonical(target, np.float64), canonical(weight, np.float64), threads)


def check_weights(weight: Floats, name: str, first: int = 0) -> None:
    """Refuse weights that are negative, or so extreme that products with them may not fit into float64.

    A message counts rows from ``first``.
    """
    sound = (weight == 0.0) | ((weight >= 1e-100) & (weight <= 1e100))  # NaN is not
    if sound.all():
        return
    bad = int(np.argmin(sound))
    place = f"{name}[{first + bad}] is {weight[bad]:g}"
    if weight[bad] < 0:
        raise InputError(f"{place}; weights must be >= 0 (0 leaves the row out)")
    raise InputError(f"{place}; weights must be 0 or between 1e-100 and 1e100")


def _weights(values: Any, n: int) -> Floats:
    weight = vector(values, "sample_weight", n)
    check_weights(weight, "sample_weight")
    if not weight.any():
        raise InputError("all sample weights are zero; at least one row must have a positive weight")
    return weight


def vector(values: Any, name: str, n: int) -> Floats:
    """One finite float64 a row, or an error that names the array."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(
            f"{name} has shape {array.shape}; it must be one number a row, so {n} of them in one dimension"
        )
    if array.shape[0] != n:
        raise InputError(f"{name} has {array.shape[0]} entries and X has {n} rows; they must be equally many")
    try:
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise InputError(f"{name} holds {array.dtype} values; they must be numbers") from None
    finite = np.isfinite(array)
    if not finite.all():
        bad = int(np.argmin(finite))
        raise InputError(f"{name}[{bad}] is {array[bad]}; {name} must hold finite numbers only")
    return array
