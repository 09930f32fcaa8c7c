"""States are data: what a saved run may be made of, and what its numbers may be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import dualgap
from dualgap.solvers import SOLVERS
from dualgap.training.states import kinds_of, registered, state_class
from support.commands import TESTS
from support.damage import CASES, COMMON, arguments, with_part
from support.problems import noisy
from support.states import assert_same

X, Y = noisy(1, 200, 5)
EVERY = [pytest.param(name, marks=[] if name in COMMON else pytest.mark.slow) for name in CASES]
FEW = ["dcd", "sdca", "asdca", "newton", "cached-loops disk"]


@pytest.mark.parametrize("name", EVERY)
def test_the_state_of_every_solver_is_saved_and_read(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    outcome = dualgap.fit(max_visits=case.cut, max_epochs=None, **arguments(case))
    dualgap.save_state(tmp_path / "run.npz", outcome)
    assert_same(dualgap.load_state(tmp_path / "run.npz"), outcome.run)


def test_every_solver_is_among_the_cases() -> None:
    assert {case.options["solver"] for case in CASES.values()} == set(SOLVERS)


def test_a_process_that_has_trained_nothing_reads_every_run(tmp_path: Path) -> None:
    """Solvers are imported when they are asked for, and a file may be of any of them."""
    path = tmp_path / "run.npz"
    dualgap.save_state(path, dualgap.fit(X, Y, solver="pegasos", bias="exact", max_epochs=2, lam=1e-3))
    program = "import sys, dualgap; print(dualgap.load_state(sys.argv[1]).solver)"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("pegasos(seed=0"), done.stderr


def test_every_class_says_what_its_numbers_may_be() -> None:
    assert len(tuple(SOLVERS.values())) == len(SOLVERS)  # imported, all of them
    classes = {name: cls for name, cls in registered().items() if name.startswith("dualgap.")}
    assert len(classes) > 50
    for cls in classes.values():
        assert set(kinds_of(cls)) == set(cls._fields)  # type: ignore[attr-defined]

    @state_class
    class Undeclared(NamedTuple):
        rows: np.ndarray

    with pytest.raises(TypeError, match=r"Undeclared.rows.* does not say what its numbers may be"):
        kinds_of(Undeclared)


class Stranger(NamedTuple):
    """A class that nobody has registered."""

    count: int


def test_a_class_outside_the_registry_is_neither_written_nor_read(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    outcome = dualgap.fit(X, Y, solver="dcd")
    strange = outcome.run._replace(memory={"mine": Stranger(1)})
    with pytest.raises(dualgap.InputError, match=r"memory\.mine of the run is a Stranger, which cannot be"):
        dualgap.save_state(path, strange)
    dualgap.save_state(path, outcome)
    with np.load(path) as file:
        arrays = dict(file)
    for name in ("dualgap.cli.__main__:main", "os:system", "dualgap.api:fit", "this:d"):
        np.savez(path, **{**arrays, "state.class": np.asarray(name)})
        with pytest.raises(dualgap.InputError, match=f"made of '{name}', and no state of this version is"):
            dualgap.load_state(path)
    assert "this" not in sys.modules, "nothing is imported that a file names"


@state_class
class Calls(NamedTuple):
    """What a callback of a user's remembers."""

    count: int
    seen: npt.NDArray[np.float64]


class Counting(dualgap.Callback):
    """Counts the records that it has seen."""

    name = "counting"

    def __init__(self) -> None:
        self.memory = Calls(0, np.zeros(1))

    def __call__(self, record: dualgap.Record, run: dualgap.Run) -> None:
        self.memory = Calls(self.memory.count + 1, self.memory.seen + 1.0)


def test_the_memory_of_a_callback_can_be_registered(tmp_path: Path) -> None:
    common: dict[str, Any] = {"solver": "sdca", "record_every": 200, "tol": 0.0}
    whole, first, rest = Counting(), Counting(), Counting()
    long = dualgap.fit(X, Y, callbacks=[whole], max_visits=1000, **common)
    path = tmp_path / "run.npz"
    dualgap.fit(X, Y, callbacks=[first], max_visits=400, checkpoint=path, **common)
    resumed = dualgap.fit(X, Y, callbacks=[rest], max_visits=1000, resume=path, **common)
    assert_same(resumed.run, long.run)
    assert rest.memory.count == whole.memory.count


SWEEPS = "state.sweeps"
FLAWS: dict[str, tuple[str, Any, str]] = {
    "an order": (f"{SWEEPS}.active_rows", 2**31, r"active_rows\[0\] is 2147483648, and must be .* up to 199"),
    "a schedule": (f"{SWEEPS}.schedule", 200, r"schedule\[0\] is 200"),
    "a length": (f"{SWEEPS}.cursor.active", 2**40, "cursor.active is beyond active_rows"),
    "a negative count": (
        f"{SWEEPS}.cursor.counts.visits",
        -(10**18),
        "counts.visits is -1000000000000000000",
    ),
    "a generator": (f"{SWEEPS}.rng", 0, "rng is 0 in all its words"),
    "a wide word": (f"{SWEEPS}.rng", 2**40, r"rng\[0\] is 1099511627776"),
    "NaN": ("state.beta", np.nan, r"state.beta\[0\] is nan, and must be within 1e\+150 of 0"),
    "infinity": ("w", np.inf, r"w\[0\] is inf"),
    "rows twice": (f"{SWEEPS}.active_rows", 3, "active_rows has a row twice"),
    "absent rows": (f"{SWEEPS}.cooldown", 254, "cooldown does not fit the weights"),
    "a date": ("timetable.due", 2**50, "timetable.due is too far away"),
    "a float": (f"{SWEEPS}.cursor.active", 1.0, "cursor.active is 1.0, and must be a whole number"),
    "a flag": (f"{SWEEPS}.search.settled", 1, "search.settled is 1, and must be True or False"),
    "a value": ("current.primal", -1.0, "current has a primal value below the dual one"),
}


@pytest.mark.parametrize("what", FLAWS)
def test_numbers_that_cannot_be_are_refused(what: str, tmp_path: Path) -> None:
    name, number, message = FLAWS[what]
    path = tuple(name.split("."))
    run = dualgap.fit(X, Y, solver="dcd", max_epochs=2.5, tol=0.0).run
    old = run
    for field in path:
        old = getattr(old, field)
    new = np.full_like(old, number) if isinstance(old, np.ndarray) else number
    damaged = with_part(run, path, new)
    with pytest.raises(dualgap.InputError, match=message):
        dualgap.fit(X, Y, solver="dcd", tol=0.0, resume=damaged)
    dualgap.save_state(tmp_path / "run.npz", damaged)
    with pytest.raises(dualgap.InputError, match=message):
        dualgap.fit(X, Y, solver="dcd", tol=0.0, resume=tmp_path / "run.npz")


def test_the_own_point_of_a_run_is_no_better_than_what_is_proven() -> None:
    run = dualgap.fit(X, Y, solver="dcd", max_epochs=20, tol=0.0).run
    assert run.value.dual > 0.0
    damaged = run._replace(current=run.current._replace(primal=0.5 * run.value.dual, dual=0.0))
    with pytest.raises(dualgap.InputError, match="current has a primal value below the best dual one"):
        dualgap.fit(X, Y, solver="dcd", tol=0.0, resume=damaged)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_single_precision_is_checked_as_well(number: float) -> None:
    common: dict[str, Any] = {"solver": "svmsgd", "precision": "float32", "tol": 0.0}
    run = dualgap.fit(X, Y, max_epochs=3, **common).run
    v = run.state.model.v.copy()
    v[2] = number
    with pytest.raises(dualgap.InputError, match=r"state.model.v\[2\] is (-?inf|nan), and must be within"):
        dualgap.fit(X, Y, resume=with_part(run, ("state", "model", "v"), v), **common)


def test_parts_of_the_wrong_kind_are_refused(tmp_path: Path) -> None:
    """A number, a dictionary or another class where the run has something else."""
    path = tmp_path / "run.npz"
    dualgap.save_state(path, dualgap.fit(X, Y, solver="dcd", max_epochs=3, tol=0.0))
    with np.load(path) as file:
        arrays = dict(file)
    counts = {name: arrays[f"timetable.at.{name}"] for name in ("class", "visits", "updates", "entries")}
    for part in ("memory", "state", "timetable", "w"):
        others = {name: array for name, array in arrays.items() if name.partition(".")[0] != part}
        for wrong in (
            {part: np.asarray(3.0)},
            {part: np.asarray("text")},
            {f"{part}.{name}": array for name, array in counts.items()},
            {f"{part}.keys": np.array(["a"]), f"{part}.a": np.asarray(1)},
        ):
            if part == "memory" and "memory.keys" in wrong:
                continue  # it is a dictionary
            np.savez(path, **others, **wrong)
            with pytest.raises(dualgap.InputError, match=r"(is|be) damaged|run, or damaged"):
                dualgap.fit(X, Y, solver="dcd", tol=0.0, resume=path)


def test_what_a_callback_remembers_must_be_its_own() -> None:
    common: dict[str, Any] = {"solver": "sdca", "tol": 0.0}
    first = dualgap.fit(X, Y, callbacks=[Counting()], max_epochs=2, **common).run
    for wrong in (3.0, first.timetable.at):
        memory = {**first.memory, "counting": wrong}
        with pytest.raises(dualgap.InputError, match=r"memory.counting of the run is a \w+, and must"):
            dualgap.fit(X, Y, callbacks=[Counting()], resume=first._replace(memory=memory), **common)


def test_what_a_rule_remembers_must_be_its_own() -> None:
    first = dualgap.fit(X, Y, solver="sgd", validation=0.2, max_epochs=3, tol=0.0)
    mixed = {"stalled": first.run.memory["early"]}
    with pytest.raises(
        dualgap.InputError, match=r"memory.stalled of the run is a Patience, and must be a His"
    ):
        dualgap.fit(X, Y, solver="sgd", validation=0.2, resume=first.run._replace(memory=mixed))


def _damage(examples: int, *names: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "support.damage", str(examples), *names],
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    last = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, f"{last}\n{done.stderr[-3000:]}"
    for name in names:
        line = next(line for line in done.stdout.splitlines() if line.startswith(f"{name}: {{"))
        assert "refused" in line, "some damage should be refused"
        assert line.count(":") > 2, "and some should not matter"


@pytest.mark.slow
def test_damaged_states_are_refused_or_do_no_harm() -> None:
    _damage(25, *FEW)


@pytest.mark.slow
@pytest.mark.parametrize("group", range(6))
def test_damaged_states_of_all_solvers(group: int) -> None:
    _damage(60, *list(CASES)[group::6])
