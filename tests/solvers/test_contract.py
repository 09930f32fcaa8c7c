"""The contract of solvers: the wrapper for the exact bias decides about every part of it, and nothing asks by
name.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import dualgap.solvers
from dualgap.core.bias import Centred, ExactBias
from dualgap.core.problem import Evaluation, Point, Problem
from dualgap.runtime.counts import Counts
from dualgap.runtime.options import option, options_of
from dualgap.solvers import SOLVERS
from dualgap.solvers.exact_bias import ExactBiasSolver
from dualgap.solvers.switching import Switching
from dualgap.training.solver import Capabilities, Solver, Status
from support.problems import small_problem

# What the wrapper calls itself, between the steps of the inner solver; nobody calls it on the wrapper, whose
# own bias cannot be moved from outside.
CALLED_BY_THE_WRAPPER = {"shift_bias", "recompute_primal", "take_news", "epochs_per_centre"}
# The inner solver has been checked when it was made.
CHECKED_ALREADY = {"check_together"}


class State(NamedTuple):
    b: float = 0.0
    counts: Counts = Counts()


@dataclass(frozen=True)
class Recording(Solver[State]):
    """A solver that answers every hook in a way of its own and writes down which were called."""

    rate: float = option(0.5, "an option", low=0)

    name = "recording"
    summary = "a solver for this test"
    capabilities = Capabilities(moves_bias=True, estimates_gap=True, own_stops=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "calls", [])
        super().__post_init__()

    def note(self, name: str) -> None:
        self.calls.append(name)  # type: ignore[attr-defined]

    def start(self, problem: Problem, warm: Point | None) -> State:
        self.note("start")
        return State()

    def step(
        self, problem: Problem, state: State, budget: int, news: Evaluation | None
    ) -> tuple[State, Status]:
        self.note("step")
        assert isinstance(problem.bias, Centred)
        visits = state.counts.visits + budget
        return State(state.b + 0.25, Counts(visits, 0, 0)), Status("target_expected")

    def point(self, problem: Problem, state: State) -> Point:
        self.note("point")
        return Point(np.zeros(problem.source.d), state.b, np.zeros(problem.source.n))

    def check(self, problem: Problem, visits: float) -> None:
        self.note("check")

    def plan(self, problem: Problem, tol: float) -> list[str]:
        self.note("plan")
        return ["a bound for a regularised bias"]

    def resolved(self, problem: Problem) -> Recording:
        self.note("resolved")
        return Recording(0.75)

    def at_work(self, state: State | None) -> Recording:
        self.note("at_work")
        return self

    def fresh_like(self, problem: Problem, state: State) -> State:
        self.note("fresh_like")
        return State(0.5, Counts())

    def story(self, problem: Problem, state: State) -> list[str]:
        self.note("story")
        return ["a decision"]

    def set_target(self, state: State, tol: float) -> State:
        self.note("set_target")
        return state._replace(b=tol)

    @contextmanager
    def opened(self, problem: Problem, state: State) -> Iterator[Recording]:  # type: ignore[override]
        self.note("opened")
        yield self
        self.note("closed")

    def rows_per_iteration(self, problem: Problem) -> int:
        self.note("rows_per_iteration")
        assert isinstance(problem.bias, Centred)
        return 5

    @property
    def dual_sweeps(self) -> int:
        self.note("dual_sweeps")
        return 3

    def improve_dual(self, problem: Problem, beta: Any, b: float, visits: int) -> Any:
        self.note("improve_dual")
        return beta + 1.0

    def shift_bias(self, state: State, centre: float) -> tuple[State, float]:
        self.note("shift_bias")
        return state, state.b

    def recompute_primal(self, problem: Problem, state: State) -> State:
        self.note("recompute_primal")
        return state

    def take_news(self, problem: Problem, state: State, news: Evaluation) -> State:
        self.note("take_news")
        return state

    @property
    def epochs_per_centre(self) -> int:
        self.note("epochs_per_centre")
        return 2


def public_names(cls: type[Any]) -> set[str]:
    """Methods and properties of a class, its parents' too."""
    return {
        name
        for name, member in inspect.getmembers(cls)
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
    }


def test_the_wrapper_for_the_exact_bias_decides_about_every_method_and_property() -> None:
    """A hook that is added to `Solver` needs a decision in `ExactBiasSolver`, or a reason above."""
    undecided = public_names(Solver) - set(vars(ExactBiasSolver)) - CALLED_BY_THE_WRAPPER - CHECKED_ALREADY
    assert not undecided
    assert public_names(Solver) >= CALLED_BY_THE_WRAPPER | CHECKED_ALREADY  # none of them is out of date


def test_the_wrapper_asks_the_inner_solver() -> None:
    """Every hook of the inner solver is called, whatever way leads to it."""
    problem = small_problem(n=12, d=3, lam=0.1, seed=1, bias=ExactBias())
    inner = Recording()
    wrapper = ExactBiasSolver(inner)
    assert (wrapper.name, wrapper.summary, wrapper.identity) == (inner.name, inner.summary, inner.identity)
    assert wrapper.capabilities == inner.capabilities._replace(biases=("exact",))
    assert wrapper.dual_sweeps == 3
    assert wrapper.resolved(problem) == ExactBiasSolver(Recording(0.75))
    assert "bias=exact" in wrapper.plan(problem, 1e-3)[0]  # bounds for a regularised bias do not hold here
    wrapper.check(problem, 100.0)
    state = wrapper.set_target(wrapper.start(problem, None), 0.125)
    assert state.inner.b == 0.125
    news = problem.evaluate(wrapper.point(problem, state))
    with wrapper.opened(problem, state) as steps:
        state, status = steps.step(problem, state, 10 * problem.epoch_size, news)
    assert status.evaluate == "target_expected"
    assert state.counts.visits == 2 * problem.epoch_size  # where the centre moves, and not beyond
    assert state.centre == 0.375
    assert state.inner.b == 0.125  # the target, said anew
    improved = wrapper.improve_dual(problem, np.zeros(problem.source.n), 0.0, 0)
    assert improved is not None
    assert improved.all()
    assert wrapper.at_work(state) == inner
    assert wrapper.rows_per_iteration(problem) == 5
    assert wrapper.fresh_like(problem, state).inner == State(0.5, Counts())
    assert wrapper.story(problem, state) == ["a decision"]
    called = set(inner.calls)  # type: ignore[attr-defined]
    assert public_names(Solver) - called == {"identity", "check_together", "plan"}
    assert "closed" in called


def test_the_registry_has_every_solver_by_its_own_name() -> None:
    assert {name: solver.name for name, solver in SOLVERS.items()} == {name: name for name in SOLVERS}
    for path in Path(dualgap.solvers.__file__).parent.rglob("*.py"):
        import_module(".".join(["dualgap", "solvers", *_module_of(path)]))
    named = {solver for solver in _descendants(Solver) if vars(solver).get("name")}
    ours = {solver for solver in named if solver.__module__.startswith("dualgap.")}
    assert ours - {ExactBiasSolver, Switching} == set(SOLVERS.values())


def _module_of(path: Path) -> tuple[str, ...]:
    return path.relative_to(Path(dualgap.solvers.__file__).parent).with_suffix("").parts


def _descendants(cls: type) -> set[type]:
    return {cls}.union(*map(_descendants, cls.__subclasses__()))


@pytest.mark.parametrize("solver", SOLVERS)
def test_capabilities_agree_with_the_class(solver: str) -> None:
    cls = SOLVERS[solver]
    assert issubclass(cls, Solver)
    own = cls.__mro__[: cls.__mro__.index(Solver)]
    assert cls.capabilities.moves_bias == any("shift_bias" in vars(parent) for parent in own)
    assert set(cls.capabilities.own_stops) <= {item.name for item in options_of(cls)}
    assert not (cls.capabilities.moves_bias and "exact" in cls.capabilities.biases)


# Names by which solvers and their states go in the code; in the solvers' own files also ``self``.
SOLVERS_AND_STATES = {"solver", "inner", "made", "trainer", "steps", "state", "fresh"}


def asks_by_name(path: Path, asked: set[str]) -> bool:
    """Whether a file has hasattr or getattr on one of these names, or on an attribute of such a name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            target = node.args[0] if node.func.id in ("hasattr", "getattr") else None
            parts = [] if target is None else list(ast.walk(target))
            names = {part.id for part in parts if isinstance(part, ast.Name)}
            names |= {part.attr for part in parts if isinstance(part, ast.Attribute)}
            if names & asked:
                return True
    return False


def test_nothing_asks_solvers_or_states_by_name() -> None:
    """What a solver may have is declared in its base class, so hasattr and getattr are never needed."""
    package = Path(dualgap.__file__).parent
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        asked = SOLVERS_AND_STATES | ({"self"} if name.startswith("solvers/") else set())
        assert not asks_by_name(path, asked), name


def test_the_search_finds_what_it_is_for(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    for line in (
        "hasattr(solver, 'aim')",
        "getattr(self.state, 'paused', False)",
        "getattr(outcome.solver, 'x')",
    ):
        path.write_text(line)
        assert asks_by_name(path, SOLVERS_AND_STATES)
    path.write_text("getattr(error, 'strerror', None)")
    assert not asks_by_name(path, SOLVERS_AND_STATES)
