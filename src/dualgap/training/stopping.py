"""When to stop. A rule looks at a record and gives a reason or None; rules are combined with ``|``.

Only certified records can prove a gap. Limits on visits and seconds count at any record; the loop then
certifies what it has before it hands it back.

A rule keeps nothing itself. What it has to remember between records is a NamedTuple of numbers and arrays
that the loop hands over and keeps in the `Run`, so that a resumed run stops where an uninterrupted one does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from ..runtime.errors import InputError

if TYPE_CHECKING:
    from ..core.problem import Certificate
    from .records import Record


class Reason(NamedTuple):
    """Why a run ended: a short name for programs, a sentence for people that says what to do next."""

    name: str
    message: str


DECIDED = "decided"  # the name of the reason that all labels asked about are those of the optimum
BROKEN = "broken"  # the name of the reason where the data fail
INTERRUPTED = Reason("interrupted", "interrupted; this is the best model so far")
TERMINATED = Reason("terminated", "terminated by a signal; this is the best model so far")
SIGNALS = INTERRUPTED.name, TERMINATED.name


def broken(message: str) -> Reason:
    """The reason where the data fail under way; what has been learned until then is not lost."""
    return Reason(BROKEN, f"{message} (this is the best model so far)")


FORMS = {"J": "C-form", "mean": "mean form"}  # of an objective, in words

Memory = Any  # a NamedTuple of numbers and arrays, or None


def recalled(name: str, kept: Memory, fresh: Memory) -> Memory:
    """What a run that is resumed has kept under a name, if it is of the kind of what is new under it."""
    if type(kept) is not type(fresh):
        raise InputError(
            f"resume: memory.{name} of the run is a {type(kept).__name__}, and must be a "
            f"{type(fresh).__name__}: it is damaged; resume another checkpoint, or start anew"
        )
    return kept


class Rule(Protocol):
    """A stopping rule."""

    @property
    def name(self) -> str: ...  # under which its memory is kept; no two rules of a run have the same
    def begin(self) -> Memory: ...
    def look(self, record: Record, memory: Memory) -> tuple[Reason | None, Memory]: ...
    def look_again(
        self, record: Record, memory: Memory
    ) -> Reason | None: ...  # seen before; nothing is counted
    def allowance(self, visits: int) -> float: ...  # visits that may pass before it wants to see a record


class Memoryless:
    """A rule that depends on the present record alone."""

    def begin(self) -> Memory:
        """Nothing to remember."""
        return None

    def look(self, record: Record, memory: Memory) -> tuple[Reason | None, Memory]:
        """Apply the rule."""
        return self.reason(record), None

    def look_again(self, record: Record, memory: Memory) -> Reason | None:
        """The same."""
        return self.reason(record)

    def reason(self, record: Record) -> Reason | None:
        """Why to stop at this record, if there is a reason."""
        raise NotImplementedError

    def allowance(self, visits: int) -> float:
        """No limit on visits."""
        return math.inf


@dataclass(frozen=True)
class Rules:
    """Stop for whichever reason comes first; of several at once, the first rule's."""

    rules: tuple[Rule, ...]

    def __or__(self, other: Rule) -> Rules:
        """With one more rule."""
        return Rules((*self.rules, other))

    def begin(self, kept: Mapping[str, Memory]) -> dict[str, Memory]:
        """What the rules remember: as kept in a run that is resumed, or nothing yet."""
        memory = {rule.name: rule.begin() for rule in self.rules}
        return {
            name: recalled(name, kept[name], fresh) if name in kept else fresh
            for name, fresh in memory.items()
        }

    def look(self, record: Record, memory: dict[str, Memory]) -> tuple[Reason | None, dict[str, Memory]]:
        """Ask every rule, as some keep count; and what they remember now."""
        found = {rule.name: rule.look(record, memory[rule.name]) for rule in self.rules}
        reasons = (reason for reason, _ in found.values() if reason is not None)
        return next(reasons, None), {name: kept for name, (_, kept) in found.items()}

    def look_again(self, record: Record, memory: dict[str, Memory]) -> Reason | None:
        """Ask about a record that the rules have seen before, in the run that is resumed."""
        reasons = (rule.look_again(record, memory[rule.name]) for rule in self.rules)
        return next((reason for reason in reasons if reason is not None), None)

    def met(self, certificate: Certificate) -> bool:
        """Whether a model with this certificate is what one of the goals asks for."""
        return any(isinstance(rule, Goal) and rule.met(certificate) for rule in self.rules)

    def allowance(self, visits: int) -> float:
        """That of the strictest."""
        return min((rule.allowance(visits) for rule in self.rules), default=math.inf)


class Goal(Memoryless):
    """A rule that ends a run because it has what was asked for: the run has then converged.

    Only a certificate counts, that of the model which would be handed back.
    """

    name: ClassVar[str]

    def met(self, certificate: Certificate) -> bool:
        """Whether a model with this certificate is good enough."""
        raise NotImplementedError

    def said(self, certificate: Certificate) -> str:
        """What has been reached, in words."""
        raise NotImplementedError

    def reason(self, record: Record) -> Reason | None:
        """Only a certificate counts."""
        if record.kind == "certified" and self.met(record.output):
            return Reason(self.name, f"converged: {self.said(record.output)}")
        return None


@dataclass(frozen=True)
class GapBelow(Goal):
    """The certified relative gap is at most ``tol``."""

    tol: float
    name: ClassVar[str] = "gap"

    def met(self, certificate: Certificate) -> bool:
        """The relative gap is small enough."""
        return certificate.relative_gap <= self.tol

    def said(self, certificate: Certificate) -> str:
        """Both numbers."""
        return f"relative gap {certificate.relative_gap:.3g} <= {self.tol:.3g}"


@dataclass(frozen=True)
class AbsoluteGapBelow(Goal):
    """The certified gap is at most ``atol``, in the form that the records of the run have."""

    atol: float
    name: ClassVar[str] = "atol"

    def met(self, certificate: Certificate) -> bool:
        """The gap is small enough."""
        return certificate.gap <= self.atol

    def said(self, certificate: Certificate) -> str:
        """Both numbers."""
        return f"gap {certificate.gap:.4g} <= {self.atol:.4g} ({FORMS[certificate.form]})"


@dataclass(frozen=True)
class TargetReached(Goal):
    """The objective is at most ``target``, in the form that the records of the run have, or a lower bound
    proves that no model gets there.
    """

    target: float
    name: ClassVar[str] = "target"

    def met(self, certificate: Certificate) -> bool:
        """The objective is small enough."""
        return certificate.primal <= self.target

    def said(self, certificate: Certificate) -> str:
        """Both numbers."""
        return f"objective {certificate.primal:.9g} <= target {self.target:.9g} ({FORMS[certificate.form]})"

    def reason(self, record: Record) -> Reason | None:
        """Only certificates count, of a model or of a bound."""
        bound = record.output
        if record.kind == "certified" and bound.dual - bound.rounding > self.target:
            return Reason(
                "unreachable",
                f"no model reaches target={self.target:.9g}: the lower bound is {bound.dual:.9g} "
                f"({FORMS[bound.form]}), and this model has {bound.primal:.9g}; raise the target",
            )
        return super().reason(record)


@dataclass(frozen=True)
class MaxVisits(Memoryless):
    """A number of visits has been made."""

    limit: int
    name: ClassVar[str] = "max_visits"

    def reason(self, record: Record) -> Reason | None:
        """Count visits of rows."""
        if record.visits < self.limit:
            return None
        return _limit_reached(
            self.name, "visits", self.limit, record.visits, record.visits > self.limit, record
        )

    def look_again(self, record: Record, memory: Memory) -> Reason | None:
        """A run that is resumed may be past the limit already."""
        if record.visits < self.limit:
            return None
        return _limit_passed(self.name, "visits", self.limit, record.visits, record)

    def allowance(self, visits: int) -> float:
        """What is left."""
        return max(0, self.limit - visits)


@dataclass(frozen=True)
class MaxEpochs(Memoryless):
    """A number of epochs has been made: visits over the number of rows with positive weight."""

    limit: float
    epoch_size: int
    name: ClassVar[str] = "max_epochs"

    @property
    def visits(self) -> int:
        """The limit in visits."""
        return math.ceil(min(self.limit * self.epoch_size, 2.0**62))

    def reason(self, record: Record) -> Reason | None:
        """Count visits of rows."""
        if record.visits < self.visits:
            return None
        return _limit_reached(
            self.name, "epochs", self.limit, record.epochs, record.visits > self.visits, record
        )

    def look_again(self, record: Record, memory: Memory) -> Reason | None:
        """A run that is resumed may be past the limit already."""
        if record.visits < self.visits:
            return None
        return _limit_passed(self.name, "epochs", self.limit, record.epochs, record)

    def allowance(self, visits: int) -> float:
        """What is left."""
        return max(0, self.visits - visits)


def _limit_reached(name: str, unit: str, limit: float, done: float, exceeded: bool, record: Record) -> Reason:
    """A solver may exceed a limit by what it cannot cut; the reason then says how far it came."""
    made = (
        f"{done:.6g} {unit} ({name}={limit:g}, and the last step was not cut)"
        if exceeded
        else f"{limit:g} {unit}"
    )
    return Reason(
        name,
        f"stopped after {made} at relative gap {record.output.relative_gap:.3g}; "
        f"raise {name} or loosen the gap asked for",
    )


def _limit_passed(name: str, unit: str, limit: float, done: float, record: Record) -> Reason:
    """Limits count from the beginning of a run, so one that is resumed may have none left."""
    return Reason(
        name,
        f"nothing to do: the run that is resumed has made {done:.6g} {unit} already ({name}={limit:g}), and "
        f"is at relative gap {record.output.relative_gap:.3g}; raise {name} to go on",
    )


@dataclass(frozen=True)
class TimeLimit(Memoryless):
    """So many seconds have passed: training, certifying and compiling together."""

    limit: float
    name: ClassVar[str] = "time_limit"

    def reason(self, record: Record) -> Reason | None:
        """Wall-clock time of the run."""
        if record.seconds < self.limit:
            return None
        return Reason(
            "time_limit",
            f"stopped after {self.limit:g} s at relative gap {record.output.relative_gap:.3g}; "
            "raise time_limit or loosen the gap asked for",
        )
