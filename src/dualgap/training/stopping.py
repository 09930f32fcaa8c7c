"""When to stop. A rule looks at a record and gives a reason or None; rules combine with ``|``.

Only certified records can prove a gap. Limits on steps and seconds count at any record; the loop then
certifies what it has before it hands it back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from .loop import Record


class Reason(NamedTuple):
    """Why a run ended: a short name for programs, a sentence for people that says what to do next."""

    name: str
    message: str


class Rule(Protocol):
    """A stopping rule."""

    def __call__(self, record: Record) -> Reason | None: ...
    def allowance(self, visits: int) -> float: ...
    def __or__(self, other: Rule) -> Rule: ...


class _Combines:
    def allowance(self, visits: int) -> float:
        """How many more row visits this rule lets pass before it wants to see a record."""
        return math.inf

    def __or__(self, other: Rule) -> Rule:
        return Either(self, other)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Either(_Combines):
    """Stop for whichever reason comes first; the left one wins a tie."""

    left: Rule
    right: Rule

    def __call__(self, record: Record) -> Reason | None:
        """Ask both."""
        found = self.left(record)
        other = self.right(record)  # asked in any case: a rule may keep count
        return found or other

    def allowance(self, visits: int) -> float:
        """The stricter of the two."""
        return min(self.left.allowance(visits), self.right.allowance(visits))


@dataclass(frozen=True)
class GapBelow(_Combines):
    """The certified relative gap is at most ``tol``."""

    tol: float

    def __call__(self, record: Record) -> Reason | None:
        """Only a certificate counts."""
        if record.kind == "certified" and record.certificate.relative_gap <= self.tol:
            return Reason(
                "gap", f"converged: relative gap {record.certificate.relative_gap:.3g} <= {self.tol:.3g}"
            )
        return None


@dataclass(frozen=True)
class Visits(_Combines):
    """A number of row presentations has been made; ``name`` and ``what`` say in whose terms."""

    limit: int
    name: str = "max_steps"
    what: str = "steps"
    shown: float | None = None

    def __call__(self, record: Record) -> Reason | None:
        """Count row presentations."""
        if record.visits < self.limit:
            return None
        shown = self.limit if self.shown is None else self.shown
        done = f"{shown:g} {self.what}"
        if record.visits > self.limit:  # a solver may pass it by one step that it does not cut
            made = record.visits if self.shown is None else record.epochs
            done = f"{made:.6g} {self.what} ({self.name}={shown:g}, and the last step was not cut)"
        return Reason(
            self.name,
            f"stopped after {done} at relative gap {record.certificate.relative_gap:.3g}; "
            f"raise {self.name} or loosen the gap asked for",
        )

    def allowance(self, visits: int) -> float:
        """What is left."""
        return max(0, self.limit - visits)


def steps(limit: int) -> Visits:
    """At most so many row presentations."""
    return Visits(limit)


def epochs(limit: float, rows: int) -> Visits:
    """At most so many times the number of rows in presentations."""
    return Visits(math.ceil(min(limit * rows, 2.0**62)), "max_epochs", "epochs", limit)


@dataclass(frozen=True)
class Seconds(_Combines):
    """So many seconds have passed, training and certifying together."""

    limit: float

    def __call__(self, record: Record) -> Reason | None:
        """Wall-clock time of the run."""
        if record.seconds < self.limit:
            return None
        return Reason(
            "time_limit",
            f"stopped after {self.limit:g} s at relative gap {record.certificate.relative_gap:.3g}; "
            "raise time_limit or loosen the gap asked for",
        )


@dataclass
class Stalled(_Combines):
    """The relative gap is not below ``factor`` times what it was ``visits`` presentations ago, or it is all
    rounding.

    The relative gap, because where the primal value is far off a dual value that still rises is progress too.
    """

    visits: int
    factor: float = 0.99
    _seen: list[tuple[int, float]] = field(default_factory=list, repr=False)

    def __call__(self, record: Record) -> Reason | None:
        """Look back over the certified records."""
        if record.kind != "certified":
            return None
        certificate = record.certificate
        if certificate.rounding >= 0.5 * certificate.gap > 0.0:
            return Reason(
                "rounding",
                f"the gap of {certificate.gap:.3g} is mostly rounding error ({certificate.rounding:.3g}): "
                "float64 cannot prove more; rescale the columns of X or loosen the gap asked for",
            )
        self._seen.append((record.visits, certificate.relative_gap))
        while len(self._seen) > 1 and self._seen[1][0] <= record.visits - self.visits:
            del self._seen[0]
        then, gap = self._seen[0]
        if record.visits - then >= self.visits and certificate.relative_gap > self.factor * gap:
            return Reason(
                "stalled",
                f"no progress in the last {record.visits - then} steps at relative gap "
                f"{certificate.relative_gap:.3g}; "
                "rescale the columns of X, regularise more (smaller C) or try another solver",
            )
        return None


@dataclass
class NotImproving(_Combines):
    """The loss on held-out rows has not fallen for ``patience`` certificates in a row: early stopping."""

    patience: int
    _best: float = field(default=math.inf, repr=False)
    _since: int = field(default=0, repr=False)

    def __call__(self, record: Record) -> Reason | None:
        """Compare with the best so far."""
        if record.kind != "certified":
            return None
        value = record.measures["validation"]
        self._best, self._since = (value, 0) if value < self._best else (self._best, self._since + 1)
        if self._since < self.patience:
            return None
        return Reason(
            "early",
            f"stopped early: the loss on held-out rows was last seen to fall {self._since} certificates "
            "ago, to "
            f"{self._best:.6g}, and that model is handed back",
        )


@dataclass(frozen=True)
class Callback(_Combines):
    """A function of the record that stops the run by returning something true (a sentence becomes the
    reason).
    """

    function: Callable[[Any], Any]

    def __call__(self, record: Record) -> Reason | None:
        """Ask the function."""
        answer = self.function(record)
        if isinstance(answer, Reason):
            return answer
        return (
            Reason("callback", answer if isinstance(answer, str) else "stopped by a callback")
            if answer
            else None
        )
