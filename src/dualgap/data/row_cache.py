"""A cache of rows in a fixed amount of memory: rows come in blocks and leave one by one. It is a set: a row
that is read again while it is in the cache is passed over.

Entries lie in one arena, always written at its head. Rows that leave become holes; when the head meets the
end, the rows that are left move down. A row keeps its slot as long as it stays. The arena is CSR with two
offsets a slot, where it begins and where it ends, so that row ``2 s`` of ``rows`` is the row in slot s.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..runtime.arrays import Columns, Floats, Offsets, Values, canonical
from ..runtime.errors import InputError
from ..runtime.jit import kernel
from .rows import CSR, Rows
from .sources import Part

SLOT_BYTES = 112  # that a row takes beside its entries, and while others are moved or chosen to leave
MEMBER_BYTES = 1  # that every row takes, in the cache or not: whether it is
# arena for this many times the entries that rows have on average: holes, and rows longer than others
ROOM = 1.25


class _Slots(NamedTuple):
    """The arrays of a cache, as its kernel sees them."""

    values: Values
    columns: Columns
    bounds: Offsets
    y: Floats
    weight: Floats
    squared_norms: Floats
    ids: Offsets
    slack: Floats
    present: Any  # bool; whether a row is in the cache, by its number among all


class RowCache:
    """Rows in slots; ``ids``, ``order`` and ``slack`` are arrays of the solver's state, and the slots
    ``order[:size]`` hold rows.
    """

    def __init__(
        self, ids: Offsets, order: Any, slack: Floats, entries: int, dtype: Any, *, n: int, grows: bool
    ) -> None:
        slots = ids.size
        self.present = np.zeros(n, dtype=bool)  # of all rows, those in the cache
        self.ids, self.order, self.slack = ids, order, slack
        self.values, self.columns = np.empty(entries, dtype=dtype), np.empty(entries, dtype=np.uint32)
        self.bounds = np.zeros(2 * slots + 1, dtype=np.int64)
        self.y, self.weight, self.squared_norms = np.empty(slots), np.empty(slots), np.empty(slots)
        self.head = self.live = 0
        self._grows = grows
        # slots in the order in which their rows lie in the arena, those that left included
        self._laid: list[Any] = []

    @property
    def slots(self) -> int:
        """The number of rows that there is room for."""
        return int(self.ids.size)

    @property
    def room(self) -> int:
        """The number of entries that there is room for."""
        return int(self.values.size)

    @property
    def rows(self) -> Rows:
        """The arena; the row of slot s is number 2 s."""
        values, columns = canonical(self.values, self.values.dtype), canonical(self.columns, np.uint32)
        return CSR(values, columns, canonical(self.bounds, np.int64))

    def fits(self, part: Part, first: int, size: int) -> int:
        """How many rows of a part, from that one on, go in without eviction. Rows that are in the cache
        already take no room, nor do those of weight 0. At most as many rows as there are slots are looked at.
        """
        last = min(part.batch.y.shape[0], first + self.slots)
        new, entries = self._needed(part, first, last)
        rows = np.searchsorted(np.cumsum(entries), self.values.size - self.live, side="right")
        return int(min(rows, np.searchsorted(np.cumsum(new), self.slots - size, side="right")))

    def _needed(self, part: Part, first: int, last: int) -> tuple[Any, Any]:
        """Of some rows of a part, which would enter, and how many entries each would bring (others: 0)."""
        starts: Any = part.batch.rows.starts  # type: ignore[union-attr]  # chunks are CSR
        new = ~self.present[part.span][first:last] & (part.batch.weight[first:last] > 0.0)
        return new, np.where(new, np.diff(starts[first : last + 1]), 0)

    def insert(self, part: Part, first: int, last: int, size: int) -> int:
        """Copy rows of a part into free slots; the number of rows present then."""
        needed = int(self._needed(part, first, last)[1].sum())
        if self.head + needed > self.values.size:
            self._compact(size)
        if self.head + needed > self.values.size:
            if not self._grows:
                row = part.span.start + first
                held = self.values.nbytes + self.columns.nbytes + SLOT_BYTES * self.slots
                more = -(-(needed - self.values.size) * held // self.values.size)
                raise InputError(
                    f"row {row} has {needed} entries and memory_budget leaves room for {self.values.size}; "
                    "raise it by "
                    f"{more} bytes"
                )
            self._grow(self.head + needed)
        before = size
        slots = _Slots(
            self.values,
            self.columns,
            self.bounds,
            self.y,
            self.weight,
            self.squared_norms,
            self.ids,
            self.slack,
            self.present,
        )
        place = (first, last, part.span.start)
        self.head, size = _insert(part.batch, place, slots, self.order, self.head, size)
        taken = self.order[before:size].astype(np.int64)
        self._laid.append(taken)
        self.live += int((self.bounds[2 * taken + 1] - self.bounds[2 * taken]).sum())
        return int(size)

    def evict(self, leaving: Any, size: int) -> int:
        """Remove the rows at these places of the order; returns the number of rows left."""
        self.count_evicted(self.order[leaving])
        stay = np.ones(size, dtype=bool)
        stay[leaving] = False
        order = self.order[:size]
        self.order[:size] = np.concatenate([order[stay], order[~stay]])
        return int(stay.sum())

    def count_evicted(self, slots: Any) -> None:
        """Account for rows that have left these slots."""
        slots = slots.astype(np.int64)
        self.present[self.ids[slots]] = False
        self.live -= int((self.bounds[2 * slots + 1] - self.bounds[2 * slots]).sum())

    def _compact(self, size: int) -> None:
        """Move the rows that are present to the front. Of a slot filled twice the last time counts."""
        present = np.zeros(self.slots, dtype=bool)
        present[self.order[:size]] = True
        laid = np.concatenate(self._laid) if self._laid else np.zeros(0, dtype=np.int64)
        kept = np.empty(size, dtype=np.int64)
        self.head = int(_compact(self.values, self.columns, self.bounds, laid, present, kept))
        self._laid = [kept]

    def _grow(self, needed: int) -> None:
        for name in ("values", "columns"):
            grown = np.empty(2 * needed, dtype=getattr(self, name).dtype)
            grown[: self.head] = getattr(self, name)[: self.head]
            setattr(self, name, grown)


@kernel
def _insert(batch: Any, place: Any, slots: Any, order: Any, head: int, size: int) -> tuple[int, int]:
    """Put rows of a part into the slots behind those in use; the new head of the arena and number of rows.

    ``place`` is the first row, the row after the last one, and the number that row 0 of the part has in all.
    """
    rows, y, weight, squared_norms = batch
    first, last, number = place
    values, columns, bounds = slots.values, slots.columns, slots.bounds
    for i in range(first, last):
        if weight[i] == 0.0 or slots.present[number + i]:
            continue
        slot = order[size]
        size += 1
        bounds[2 * slot] = head
        for p in range(rows.starts[i], rows.starts[i + 1]):
            values[head] = rows.values[p]
            columns[head] = rows.columns[p]
            head += 1
        bounds[2 * slot + 1] = head
        slots.y[slot], slots.weight[slot], slots.squared_norms[slot] = y[i], weight[i], squared_norms[i]
        slots.ids[slot] = number + i
        slots.slack[slot] = 0.0
        slots.present[number + i] = True
    return head, size


@kernel
def _compact(
    values: Values, columns: Columns, bounds: Offsets, laid: Offsets, present: Any, kept: Offsets
) -> int:
    """Move the rows that are present to the front, in the order they lie in; where they end."""
    last = np.full(present.shape[0], -1, dtype=np.int64)
    for k in range(laid.shape[0]):
        last[laid[k]] = k
    head = count = 0
    for k in range(laid.shape[0]):
        slot = laid[k]
        if not present[slot] or last[slot] != k:
            continue
        kept[count] = slot
        count += 1
        p, end = bounds[2 * slot], bounds[2 * slot + 1]
        bounds[2 * slot] = head
        if p == head:
            head = end
        else:
            while p < end:
                values[head] = values[p]
                columns[head] = columns[p]
                head += 1
                p += 1
        bounds[2 * slot + 1] = head
    return head
