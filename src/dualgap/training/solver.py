"""The contract between the training loop and a solver.

A solver is a frozen dataclass whose fields are its options. It keeps no state of its own: ``start`` makes a
state, a NamedTuple of arrays and numbers, and ``step`` takes it further. Arrays may be changed in place,
numbers are replaced. Saved with NumPy, a state is a checkpoint, and a run that goes on from it is the same
bit for bit.

A solver never reports a value. It offers points, and the problem evaluates them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar

from ..core.problem import AnyProblem, Evaluation, Intercept, Point
from ..runtime.arrays import Floats
from ..runtime.counts import Counts
from ..runtime.options import check_options
from .stopping import Reason

_NONE: Mapping[str, float] = MappingProxyType({})


class State(Protocol):
    """What the loop asks of a state: a NamedTuple of arrays, numbers and further such tuples."""

    @property
    def counts(self) -> Counts: ...


S = TypeVar("S", bound=State)


class Status(NamedTuple):
    """What a step says besides its new state.

    ``evaluate`` tells how good a moment this is to evaluate the solver's point: "no" better than another,
    "convenient" (an epoch ends, or the work at hand is done), "target_expected" (by the solver's own estimate
    the gap asked for is reached) or "required" (the next step begins with the evaluation).
    """

    evaluate: Literal["no", "convenient", "target_expected", "required"] = "no"
    ended: Reason | None = None  # the solver is done, by a rule of its own
    evaluated: tuple[Point, Evaluation] | None = None  # carried by a pass over the rows on disk
    measures: Mapping[str, float] = _NONE  # figures for the records, such as passes over the disk


class Capabilities(NamedTuple):
    """What a solver is made for, known before there are data."""

    losses: tuple[str, ...] | None = None  # None: every loss but the hard margin
    offsets: bool = True  # rows may have offsets; False where kernels multiply labels themselves
    biases: tuple[str, ...] = ("none", "augmented")  # that it handles itself
    moves_bias: bool = False  # with the wrapper `ExactBiasSolver` it can have bias="exact" as well
    package: str | None = None  # an optional package that it needs
    unregularised: bool = False  # lam = 0 will do
    from_disk: bool = False  # it can train on rows that are not all in memory
    streams: bool = False  # it can learn from rows that come and go
    in_epochs: bool = False  # its points are best where an epoch ends
    estimates_gap: bool = False  # its steps may say "target_expected"
    evaluated_steps: bool = False  # its steps say "required": each begins with an evaluation
    evaluation_cost: float = 1.0  # of an evaluation, in units of the solver's own work on as many entries
    own_stops: tuple[str, ...] = ()  # options that end a run by a rule of its own


class Preset(NamedTuple):
    """A solver as a paper has it: where it stands, and the options that differ from the defaults."""

    source: str  # "Shalev-Shwartz, Singer and Srebro (2007), figure 1"
    options: Mapping[str, Any]
    remark: str = ""  # what else the paper did that is no option of the solver, such as a bias or a C


class Steps(Protocol[S]):
    """What works on a state: a solver, or a solver together with the threads and files that it has open."""

    def step(
        self, problem: AnyProblem, state: S, budget: int, news: Evaluation | None
    ) -> tuple[S, Status]: ...


@dataclass(frozen=True)
class Solver(ABC, Generic[S]):
    """A solver; its fields are its options (``runtime/options.option``), whose ranges are checked here."""

    name: ClassVar[str]
    summary: ClassVar[str]
    capabilities: ClassVar[Capabilities] = Capabilities()
    papers: ClassVar[Mapping[str, Preset]] = MappingProxyType({})  # the first is what `paper=true` stands for

    def __post_init__(self) -> None:
        check_options(self)
        self.check_together()

    @property
    def identity(self) -> str:
        """The solver with its options, but for those that only end a run: a run is resumed by the same."""
        stops = self.capabilities.own_stops
        options = (
            f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.name not in stops
        )
        return f"{self.name}({', '.join(options)})"

    # What every solver has.

    @abstractmethod
    def start(self, problem: AnyProblem, warm: Point | None) -> S:
        """The first state, at a starting point if one is given and of use."""

    @abstractmethod
    def step(self, problem: AnyProblem, state: S, budget: int, news: Evaluation | None) -> tuple[S, Status]:
        """Work for ``budget`` visits of rows, or less where a pause is worth while.

        A solver may exceed the budget by what it cannot cut (a batch, a cut, a step of Newton). It must make
        no difference into which budgets the work is cut. ``news`` is the evaluation of the present point; it
        is handed over exactly once, right after it was made, so it is no part of the state.
        """

    @abstractmethod
    def point(self, problem: AnyProblem, state: S) -> Point:
        """The solver's present output."""

    # Hooks: what a solver may add. Each says when it is called.

    def check_together(self) -> None:
        """Refuse options that do not go together; called when a solver is made, after the ranges."""

    def check(self, problem: AnyProblem, visits: float) -> None:
        """Refuse options that do not suit the data, or a run of that many visits; called before ``start``."""

    def plan(self, problem: AnyProblem, tol: float) -> list[str]:
        """What the solver's theory promises for this problem, in sentences; called by ``plan`` instead of
        training.
        """
        return [f"{self.name} has no useful bound on its steps; it stops when its certificate proves the gap"]

    def resolved(self, problem: AnyProblem) -> AnySolver:
        """The solver that trains on this problem, usually this one; called once the problem is known."""
        return self

    def at_work(self, state: S | None) -> AnySolver:
        """The solver that makes the steps of a state, or the first ones where there is none yet; usually this
        one. Called for every record.
        """
        return self

    def fresh_like(self, problem: AnyProblem, state: Any) -> S:
        """A first state that has the parts of a given one, whatever that is; called when a run is resumed."""
        return self.start(problem, None)

    def story(self, problem: AnyProblem, state: S) -> list[str]:
        """What the solver has decided on the way, in sentences; called when a run has ended."""
        return []

    def set_target(self, state: S, tol: float) -> S:
        """The state of a run that is to end at a relative gap of ``tol``; called when a run begins or is
        resumed.
        """
        return state

    def opened(self, problem: AnyProblem, state: S) -> AbstractContextManager[Steps[S]]:
        """What the loop calls ``step`` of, for as long as it trains; threads and files are open within."""
        return nullcontext(self)

    def rows_per_iteration(self, problem: AnyProblem) -> int:
        """Visits of rows in one iteration of the algorithm, such as a batch; 0 where that is no fixed
        number. Records are counted and asked for in iterations by it.
        """
        return 1

    @property
    def dual_sweeps(self) -> int:
        """How many sweeps over the rows `improve_dual` makes; the schedule counts their cost."""
        return 0

    def improve_dual(self, problem: AnyProblem, beta: Floats, b: Intercept, visits: int) -> Floats | None:
        """A dual point at least as good as ``beta``; called by the loop once an epoch at most, and in the
        end.
        """
        return None

    # Hooks of solvers whose bias can be moved (``moves_bias``), for `ExactBiasSolver`; a solver may use them
    # itself.

    def shift_bias(self, state: S, centre: float) -> tuple[S, float]:
        """The same duals under a bias centred at the present one, and that bias."""
        raise NotImplementedError(f"{self.name} cannot move its bias")

    def recompute_primal(self, problem: AnyProblem, state: S) -> S:
        """The state with w(beta) computed anew, so that rounding errors do not accumulate."""
        return state

    def take_news(self, problem: AnyProblem, state: S, news: Evaluation) -> S:
        """The state after an evaluation, but for w and b: its scores tell which rows are worth a visit."""
        return state

    @property
    def epochs_per_centre(self) -> int:
        """Epochs of visits after which the centre of the bias moves."""
        return 1


AnySolver = Solver[Any]
