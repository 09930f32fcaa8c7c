"""Prefetching of rows that will be visited soon, in an order that the processor cannot foresee.

On rows in random order it halves the time of an epoch and more. A row's numbers are asked for `FAR` visits
ahead, its entries, which need the offset among these numbers, `NEAR` visits ahead.

There are no branches at the end of an order: Numba removes the counting of references to the arrays of a
batch only where a function is inlined as one block, and counting takes longer than a visit.
"""

from __future__ import annotations

from typing import Any

from ..runtime.jit import kernel, prefetch

FAR, NEAR = 12, 5  # visits


@kernel
def fetch_ahead(batch: Any, order: Any, position: int, end: int) -> None:
    """Ask for the rows of a batch that are visited `FAR` and `NEAR` places after ``position`` in
    ``order[:end]``, or for the last one.
    """
    rows, y, weight, squared_norms = batch
    ahead = order[min(position + FAR, end - 1)]
    rows.prefetch_offsets(ahead)
    prefetch(y, ahead)
    prefetch(weight, ahead)
    prefetch(squared_norms, ahead)
    rows.prefetch_row(order[min(position + NEAR, end - 1)])


@kernel
def fetch_number(numbers: Any, order: Any, position: int, end: int) -> None:
    """Ask for one number of the row that is visited `FAR` places after ``position`` in ``order[:end]``, or of
    the last one.
    """
    prefetch(numbers, order[min(position + FAR, end - 1)])
