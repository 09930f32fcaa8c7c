"""Prefetching of rows that will be visited soon, in an order that the processor cannot foresee.

On rows in random order it halves the time of an epoch and more. A row's numbers are asked for `FAR` visits
ahead, its entries, which need the offset among these numbers, `NEAR` visits ahead.
"""

from __future__ import annotations

from typing import Any

from ..runtime.jit import kernel, prefetch

FAR, NEAR = 12, 5  # visits


@kernel(forceinline=True)
def fetch_ahead(batch: Any, order: Any, position: int, end: int) -> None:
    """Ask for the rows of a batch that are visited `FAR` and `NEAR` places after ``position`` in
    ``order[:end]``.
    """
    rows, y, weight, squared_norms = batch
    if position + FAR < end:
        ahead = order[position + FAR]
        rows.prefetch_offsets(ahead)
        prefetch(y, ahead)
        prefetch(weight, ahead)
        prefetch(squared_norms, ahead)
    if position + NEAR < end:
        rows.prefetch_row(order[position + NEAR])


@kernel(forceinline=True)
def fetch_number(numbers: Any, order: Any, position: int, end: int) -> None:
    """Ask for one number of the row that is visited `FAR` places after ``position`` in ``order[:end]``."""
    if position + FAR < end:
        prefetch(numbers, order[position + FAR])
