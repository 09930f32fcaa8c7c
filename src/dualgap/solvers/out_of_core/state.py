"""The state of a run on rows that are not all in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...core.problem import Point
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...training.states import Extent, GrowingReals, Position, Signed, invariant, state_class
from .cache_sweeper import Sweeps


@state_class
class Place(NamedTuple):
    """The row that goes into the cache next."""

    pass_number: int = 0  # over the data, from 0
    chunk: int = 0  # of that pass, in its order
    row: int = 0  # of that chunk


@state_class
class Frozen(NamedTuple):
    """The point that a pass over the data evaluates: a copy, made when the pass began.

    Its arrays are empty where a pass evaluates none.
    """

    w: GrowingReals
    b: float
    beta: GrowingReals
    pass_number: Position  # -1 before the first pass
    seen: int = 0  # chunks of that pass, so far

    @classmethod
    def empty(cls, pass_number: int = -1) -> Frozen:
        """For a pass that evaluates no point."""
        return cls(np.zeros(0), 0.0, np.zeros(0), pass_number)

    @property
    def point(self) -> Point | None:
        """The point, if there is one."""
        return Point(self.w, self.b, self.beta) if self.w.size else None


@state_class
class State(NamedTuple):
    """w = w(beta) at all times. The rows in the cache are named by ``sweeps.ids`` and read again by a run
    that is resumed.
    """

    w: Floats
    beta: Floats
    sweeps: Sweeps
    place: Place
    owed: Signed  # visits before further rows are taken in; negative where rows are awaited
    room: int  # entries that the cache holds, which decides when rows must leave; 0 before there is one
    frozen: Frozen

    @property
    def counts(self) -> Counts:
        """Work done so far."""
        return self.sweeps.cursor.counts

    @property
    def b(self) -> float:
        """The bias."""
        return self.sweeps.cursor.b

    @property
    def size(self) -> int:
        """How many rows are in the cache."""
        return self.sweeps.cursor.size

    def at(self, **changes: Any) -> State:
        """The same with other values in the cursor of the sweeps."""
        return self._replace(sweeps=self.sweeps._replace(cursor=self.sweeps.cursor._replace(**changes)))


@invariant(State)
def _check(state: State, extent: Extent) -> Iterator[tuple[bool, str]]:
    frozen, place = state.frozen, state.place
    sizes = frozen.w.size, frozen.beta.size
    yield sizes in ((0, 0), (extent.d, extent.n)), "frozen is no point of this problem"
    same = frozen.pass_number == place.pass_number
    yield (
        not same or frozen.seen - place.chunk in ((1,) if place.row else (0, 1)),
        "frozen.seen is not what was read",
    )
