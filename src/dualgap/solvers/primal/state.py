"""The state of solvers that visit one row a step (``row_by_row.py``), as their kernels are given it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from ...data.rows import Batch
from ...runtime.counts import Counts
from ...runtime.jit import kernel
from ...runtime.random import GIVEN, PERMUTATION, RANDOM, lay_out
from ...training.states import Extent, invariant, state_class
from ..order import Order
from .slopes import SlopeMeans

FIXED = "fixed"  # one permutation for all epochs
ORDERS = (GIVEN, PERMUTATION, RANDOM, FIXED)


class AnyCursor(Protocol):
    """What the cursors of these solvers have in common."""

    @property
    def position(self) -> int: ...  # of the next pick in the epoch; -1 before an epoch is laid out
    @property
    def counts(self) -> Counts: ...
    def _replace(self, *args: Any, **changes: Any) -> Self: ...


M = TypeVar("M")
C = TypeVar("C", bound=AnyCursor)


@state_class
class State(NamedTuple, Generic[M, C]):
    """The state of a solver that visits one row a step."""

    model: M
    order: Order
    means: SlopeMeans
    cursor: C

    @property
    def counts(self) -> Counts:
        """Work done so far."""
        return self.cursor.counts

    def before(self, batch: Batch) -> State[M, C]:
        """The same model, about to visit the rows of another batch."""
        rows = np.flatnonzero(batch.weight).astype(np.uint32)
        order = Order(rows, rows.copy(), self.order.rng)
        return self._replace(order=order, cursor=self.cursor._replace(position=-1))


@invariant(State)
def _check(state: State[Any, Any], extent: Extent) -> Iterator[tuple[bool, str]]:
    yield state.cursor.position <= state.order.picks.size, "cursor.position is beyond the picks"


@kernel
def begin_epoch(order: Any, how: int, first: bool) -> int:
    """Lay out the rows of the next epoch, perhaps the ``first``, in the order that ORDERS has under ``how``;
    the first position.
    """
    rows, picks, rng = order
    if how == 3:  # fixed: a permutation, then the same as before
        how = 1 if first else 0
    lay_out(rng, how, rows, picks)
    return 0
