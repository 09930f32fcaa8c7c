"""Stopping rules that remember: a gap that is rounding, a gap that does not fall, early stopping.

What they remember is part of the `Run` (see ``stopping.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

import numpy as np

from ..runtime.arrays import Floats
from .states import Extended, Extent, GrowingReals, Magnitude, Numbers, invariant, state_class
from .stopping import Memory, Reason

if TYPE_CHECKING:
    from .records import Record


UNBOUNDED = 1e100  # stands for 1 over a lower bound that is not positive


@state_class
class Rounding(NamedTuple):
    """The bound on rounding errors at the last certificate."""

    bound: Magnitude


@dataclass(frozen=True)
class GapIsRounding:
    """Half of the certified gap or more is a bound on rounding errors, which has not fallen by half since
    the last certificate, though the point was evaluated with compensated sums: float64 cannot prove much
    more.
    """

    name: ClassVar[str] = "rounding"

    def begin(self) -> Rounding:
        """No certificate yet."""
        return Rounding(math.inf)

    def look(self, record: Record, memory: Rounding) -> tuple[Reason | None, Rounding]:
        """Only a certificate counts."""
        certificate = record.output
        if record.kind != "certified":
            return None, memory
        now = Rounding(certificate.rounding)
        if not certificate.rounding >= 0.5 * certificate.gap > 0.0 or now.bound < 0.5 * memory.bound:
            return None, now
        reason = Reason(
            "rounding",
            f"the gap of {certificate.gap:.3g} is mostly rounding error ({certificate.rounding:.3g}): "
            "float64 cannot prove more; rescale the columns of X or loosen the gap asked for",
        )
        return reason, now

    def look_again(self, record: Record, memory: Rounding) -> Reason | None:
        """The bound has not fallen since: it is that of this record."""
        return self.look(record, memory)[0]

    def allowance(self, visits: int) -> float:
        """No limit on visits."""
        return math.inf


@state_class
class History(NamedTuple):
    """Certified records, as far back as `Stalled` looks."""

    visits: GrowingReals
    gaps: Annotated[Floats, Numbers(0.0, infinite=True, shape=(None,))]  # as `Stalled` measures them


@invariant(History)
def _check(history: History, extent: Extent) -> Iterator[tuple[bool, str]]:
    yield history.visits.size == history.gaps.size, "visits and gaps differ in size"
    yield bool((np.diff(history.visits) >= 0.0).all()), "visits fall"


@dataclass(frozen=True)
class Stalled:
    """The relative gap is not below ``factor`` times what it was ``visits`` visits ago.

    The relative gap, because where the primal value is far off a dual value that still rises is progress too.
    As long as no positive lower bound makes it finite, the gap itself, in a unit that makes every relative
    gap progress.
    """

    visits: int
    factor: float = 0.99
    name: ClassVar[str] = "stalled"

    def begin(self) -> History:
        """No record yet."""
        return History(np.zeros(0), np.zeros(0))

    def look(self, record: Record, memory: History) -> tuple[Reason | None, History]:
        """Compare with the last record that is at least ``visits`` visits old."""
        if record.kind != "certified":
            return None, memory
        certificate = record.certificate
        visits = np.append(memory.visits, record.visits)
        old = max(0, int(np.count_nonzero(visits <= record.visits - self.visits)) - 1)
        now = certificate.relative_gap
        now = now if math.isfinite(now) else UNBOUNDED * certificate.gap
        memory = History(visits[old:], np.append(memory.gaps, now)[old:])
        since, gap = record.visits - int(memory.visits[0]), memory.gaps[0]
        if since >= self.visits and now > self.factor * gap:
            reason = Reason(
                "stalled",
                f"no progress in the last {since} visits at relative gap {certificate.relative_gap:.3g}; "
                "rescale the columns of X, regularise more (smaller C) or try another solver",
            )
            return reason, memory
        return None, memory

    def look_again(self, record: Record, memory: Memory) -> Reason | None:
        """It has been counted before."""
        return None

    def allowance(self, visits: int) -> float:
        """No limit on visits."""
        return math.inf


@state_class
class Patience(NamedTuple):
    """What early stopping remembers: the smallest loss (or other measure) on held-out rows, and how many
    certificates ago it was.
    """

    best: Extended
    since: int


@dataclass(frozen=True)
class NotImproving:
    """The loss on held-out rows, or another measure of them, has not fallen for ``patience`` certificates in
    a row: early stopping.
    """

    patience: int
    measure: str = "the loss"
    name: ClassVar[str] = "early"

    def begin(self) -> Patience:
        """No certificate yet."""
        return Patience(math.inf, 0)

    def look(self, record: Record, memory: Patience) -> tuple[Reason | None, Patience]:
        """Compare with the best so far."""
        if record.kind != "certified":
            return None, memory
        value = record.measures["validation"]
        memory = Patience(value, 0) if value < memory.best else Patience(memory.best, memory.since + 1)
        if memory.since < self.patience:
            return None, memory
        reason = Reason(
            "early",
            f"stopped early: {self.measure} on held-out rows was last seen to fall {memory.since} "
            f"certificates ago, to {memory.best:.6g}, and that model is handed back",
        )
        return reason, memory

    def look_again(self, record: Record, memory: Memory) -> Reason | None:
        """It has been counted before."""
        return None

    def allowance(self, visits: int) -> float:
        """No limit on visits."""
        return math.inf
