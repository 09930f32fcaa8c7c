"""A run as something that can be put away: all that is needed to go on later as if it had never stopped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import inf
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..core.losses import every_loss
from ..core.problem import Evaluation, Identity, Regularised
from ..runtime.arrays import Floats
from ..runtime.compiling import Elapsed
from ..runtime.errors import InputError
from .schedule import Timetable
from .solver import AnySolver
from .states import (
    Extended,
    Extent,
    FlawError,
    Magnitude,
    NotNegative,
    Numbers,
    Signed,
    check_state,
    invariant,
    state_class,
)

FORMAT = 4  # of a Run; one of another format cannot be resumed

LATEST_DUE = 32  # epochs until an evaluation that was never due before

state_class(Identity)


@state_class
class Value(NamedTuple):
    """A primal and a dual value in mean form, with bounds on their rounding errors."""

    primal: Extended
    primal_error: Magnitude
    dual: Extended
    dual_error: Magnitude

    @classmethod
    def of(cls, found: Evaluation) -> Value:
        """What an evaluation found."""
        return cls(found.primal, found.primal_error, found.dual, found.dual_error)

    def agrees(self, other: Value) -> bool:
        """Whether both may be the values of one point of one problem."""
        primal = abs(self.primal - other.primal) <= self.primal_error + other.primal_error
        dual = abs(self.dual - other.dual) <= self.dual_error + other.dual_error
        primal, dual = primal or self.primal == other.primal, dual or self.dual == other.dual  # both infinite
        return primal and dual


@state_class
class Seconds(NamedTuple):
    """Time spent so far."""

    training: NotNegative = 0.0
    certifying: NotNegative = 0.0
    compiling: NotNegative = 0.0  # kernels, or loading them from their cache

    def trained(self, elapsed: Elapsed) -> Seconds:
        """After some more training."""
        return Seconds(self.training + elapsed.working, self.certifying, self.compiling + elapsed.compiling)

    def certified(self, elapsed: Elapsed) -> Seconds:
        """After some more certifying."""
        return Seconds(self.training, self.certifying + elapsed.working, self.compiling + elapsed.compiling)


@state_class
class Run(NamedTuple):
    """Everything that a run needs to go on as if it had never stopped; ``save_state`` writes it to a file.

    Its arrays are those that the solver works on: a callback that keeps a run for later saves or copies it.
    """

    format: int
    solver: str  # the solver with its options, as Python would write it
    problem: Identity
    state: Any  # the solver's
    w: Annotated[Floats, Numbers(shape=("d",), several=True)]  # the best primal point so far
    b: Annotated[float, Numbers(several=True)]
    beta: Annotated[Floats, Numbers(shape=("n",), several=True)]  # the best dual point so far
    value: Value  # of these two
    current: Value  # of the solver's own point, when it was last evaluated
    timetable: Timetable
    polished: Signed  # visits when the dual point was last improved apart from the solver
    seconds: Seconds
    memory: dict[str, Any]  # of stopping rules and callbacks, by name


@invariant(Run)
def _check(run: Run, extent: Extent) -> Iterator[tuple[bool, str]]:
    visits, timetable = run.state.counts.visits, run.timetable
    yield timetable.at.visits <= visits, "timetable.at is in the future"
    # a period has at most twice as many visits as came before, and some epochs more (``schedule.py``)
    yield timetable.due <= 4 * visits + LATEST_DUE * extent.epoch_size, "timetable.due is too far away"
    yield run.polished <= visits, "polished is in the future"
    for name, value in (("value", run.value), ("current", run.current)):
        gap = value.primal - value.dual + value.primal_error + value.dual_error
        yield not gap < 0.0, f"{name} has a primal value below the dual one"
    (primal, primal_error, *_), (*_, dual, dual_error) = run.current, run.value
    yield not primal + primal_error < dual - dual_error, "current has a primal value below the best dual one"


def copied(state: Any) -> Any:
    """A state that a solver may change without changing the one it came from."""
    if isinstance(state, tuple):
        cls: Any = type(state)
        return cls(*map(copied, state))
    return state.copy() if isinstance(state, np.ndarray) else state


_REMEDY = "resume with what it was trained with, or start anew (in Python: from its point, warm=)"
_BIASES = {"NoBias": "none", "AugmentedBias": "augmented", "ExactBias": "exact"}


def _solver_difference(then: str, now: str) -> str:
    """What tells two identities of solvers apart, as a user would write it."""
    (name, then_options), (other, now_options) = map(_taken_apart, (then, now))
    if name != other:
        return f"solver='{name}', and now it is solver='{other}'"
    both = zip(then_options, now_options, strict=False)
    pairs = [f"{old}, and now it is {new}" for old, new in both if old != new]
    if not pairs or len(then_options) != len(now_options):
        return f"other options of solver '{name}', or by another version"
    return "; with ".join(pairs)


def _taken_apart(identity: str) -> tuple[str, list[str]]:
    """The name of a solver and its options, those of solvers within it included."""
    return identity.partition("(")[0], re.findall(r"\w+=[^,()]+", identity)


def _problem_difference(then: Identity, problem: Regularised) -> str:
    """What tells the problem of a run from one at hand, or nothing. Lam depends on the number of rows."""
    now = problem.identity
    if then.data != now.data:
        made, making = (data.partition(" ")[2] or "rows as they are given" for data in (then.data, now.data))
        return "different rows, targets or weights" if made == making else f"{made}, and now it is {making}"
    if then.loss != now.loss:
        return f"loss='{_spelt(then.loss)}', and now it is loss='{_spelt(now.loss)}'"
    if then.bias != now.bias:
        return f"{_bias_spelt(then.bias)}, and now it is {_bias_spelt(now.bias)}"
    if then.lam != now.lam:
        weight = problem.total_weight
        strengths = [
            f"lam={lam:.6g} (C={1.0 / (lam * weight) if lam else inf:.6g})" for lam in (then.lam, now.lam)
        ]
        return f"{strengths[0]}, and now it is {strengths[1]}"
    return ""


def _bias_spelt(written: str) -> str:
    name, _, rho = _spelt(written).partition(":")
    return f"bias='{name}'{', ' * bool(rho)}{rho}"


def _spelt(written: str) -> str:
    """A loss or a bias as a user names it, from what Python would write: ``huber:threshold=2``."""
    name, _, rest = written.rstrip(")").partition("(")
    known = _BIASES | {loss.__name__: key for key, loss in every_loss().items()}
    parameters = ",".join(part.strip().removesuffix(".0") for part in rest.split(",") if part.strip())
    return f"{known.get(name, name)}{':' * bool(parameters)}{parameters}"


def check_resumable(run: Run, solver: AnySolver, problem: Regularised) -> None:
    """Refuse to resume a run of another version, solver or problem, and say what differs.

    That the data are the same is only as sure as a digest of samples; `check_value` looks at all of them.
    """
    if not isinstance(run.format, int) or run.format != FORMAT:
        raise InputError(
            f"resume: the run has format {run.format!r}, and this version has {FORMAT}; {_REMEDY}"
        )
    if run.solver != solver.identity:
        what = _solver_difference(run.solver, solver.identity)
        raise InputError(f"resume: the run was trained with {what}; {_REMEDY}")
    what = _problem_difference(run.problem, problem)
    if what:
        raise InputError(f"resume: the run was trained with {what}; {_REMEDY}")
    source = problem.source
    weight = source.weight if source.in_memory else None
    extent = Extent(source.n, source.d, source.epoch_size, weight, problem.scores_per_row)
    try:
        check_state(run, run._replace(state=solver.fresh_like(problem, run.state)), extent)
    except FlawError as flaw:
        raise InputError(
            f"resume: the run cannot be one of solver '{solver.name}', {flaw}: it is damaged; "
            "resume another checkpoint, or start anew"
        ) from None


def check_value(run: Run, found: Evaluation) -> None:
    """Refuse to resume a run whose best point no longer has the value that it had: the data are others."""
    if not run.value.agrees(Value.of(found)):
        raise InputError(
            f"resume: the best point of the run had a primal value of {run.value.primal:.9g}, and has "
            f"{found.primal:.9g} "
            f"with these rows, targets and weights: they are others; {_REMEDY}"
        )
