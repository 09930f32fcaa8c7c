"""Runs of every kind of solver whose states are damaged in single values, then resumed.

As a program (``python -m support.damage EXAMPLES CASE...``) it is a process of its own, so that a crash of
compiled code is seen as one. Either the run is refused in one line, or it ends, and its certificate is true.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import dualgap
from dualgap.files import ChunkFeed
from dualgap.solvers import SOLVERS
from dualgap.training.run import Run
from support.problems import noisy

SECONDS = 20.0  # that a resumed run of this size may take
ROWS, COLUMNS = 60, 6


class Case(NamedTuple):
    """Arguments of ``fit``, and the visits at which the run is cut."""

    options: dict[str, Any]
    cut: int = 217
    from_disk: bool = False


CASES = {name: Case({"solver": name}) for name in SOLVERS} | {
    "joint-dual": Case({"solver": "joint-dual", "loss": "multinomial"}),
    "joint-dual exact": Case({"solver": "joint-dual", "loss": "crammer-singer", "bias": "exact"}),
    "joint-newton": Case({"solver": "joint-newton", "loss": "multinomial", "bias": "exact"}),
    "dcd exact": Case({"solver": "dcd", "bias": "exact"}),
    "dcd scanning": Case({"solver": "dcd", "C": 0.05}, 2000),
    "sdca average": Case({"solver": "sdca", "iterate": "average", "order": "importance"}),
    "sdca gaps": Case({"solver": "sdca", "order": "gaps", "bias": "augmented"}),
    "sdca random": Case({"solver": "sdca", "iterate": "random", "order": "random"}),
    "asdca average": Case({"solver": "asdca", "iterate": "average", "m": 5, "loss": "logistic"}),
    "mpu float32": Case({"solver": "mpu", "precision": "float32", "bias": "exact"}),
    "newton smooth": Case({"solver": "newton", "loss": "logistic", "bias": "exact"}),
    "smo hard": Case({"solver": "smo", "C": np.inf, "bias": "exact"}, 70),
    "smo": Case({"solver": "smo", "bias": "exact"}, 70),
    "decomposition": Case({"solver": "decomposition", "bias": "exact", "q": 4}, 70),
    "pegasos average": Case({"solver": "pegasos", "iterate": "average", "k": 3, "sampling": "epochs"}),
    "pegasos stopping": Case({"solver": "pegasos", "stop_within": 200, "projection": True}),
    "sgd-m float32": Case({"solver": "sgd-m", "precision": "float32", "epsilon": 1e-3}),
    "sgd average": Case({"solver": "sgd", "average": True, "weights": "simple", "bias": "exact"}),
    "perceptron voted": Case({"solver": "perceptron", "voted": True}),
    "ocas": Case({"solver": "ocas", "bias": "exact"}, 400),
    "svmperf": Case({"solver": "svmperf", "bias": "augmented"}, 400),
    "cached-loops": Case({"solver": "cached-loops", "cache": 11, "eviction": "threshold"}),
    "block": Case({"solver": "block", "cache": 11, "inner": 2, "bias": "exact"}),
    "selective-block": Case({"solver": "selective-block", "cache": 11, "inner": 2}),
    "cached-loops disk": Case({"solver": "cached-loops", "cache": 11, "lockstep": True}, 500, from_disk=True),
    "joint-block": Case({"solver": "joint-block", "loss": "multinomial", "cache": 11}, 300, from_disk=True),
    "streamed-newton": Case(
        {"solver": "streamed-newton", "loss": "logistic", "sample": 31}, 300, from_disk=True
    ),
    "block disk": Case({"solver": "block", "cache": 11, "inner": 2}, 300, from_disk=True),
}

WAYS = ["one", "one", "one", "all", "short", "long", "empty", "dtype", "deep", "swap"]
COMMON = {"dcd", "sdca", "newton", "sgd", "pegasos", "cached-loops disk"}  # the others are slow: many alike
NUMBERS = [-1, 0, 1, 7, 255, 2**31 - 1, 2**31, 2**32, 2**40, 2**60, 2**62, -(10**18), -3]
FLOATS = [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-320, -1.0, 0.0, 0.5, 1e18]


def data(hard: bool = False) -> tuple[Any, Any]:
    """Rows that a line almost tells apart, or does."""
    X, y = noisy(3, ROWS, COLUMNS)
    if hard:
        X = X + 3.0 * y[:, None]
    return X, y


def arguments(case: Case) -> dict[str, Any]:
    """What ``fit`` is given, data included."""
    X, y = data(case.options.get("C") == np.inf)
    common = {"C": 1.0, "tol": 1e-12, "seed": 1, **case.options}
    if not case.from_disk:
        weight = np.where(np.arange(ROWS) % 9 == 4, 0.0, 1.0)
        return {"X": sp.csr_array(X), "y": y, "sample_weight": weight, **common}

    def chunks() -> Any:
        for k in range(0, ROWS, 15):
            yield sp.csr_array(X[k : k + 15]), y[k : k + 15]

    return {"X": ChunkFeed(chunks), "in_memory": False, **common}


def leaves(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths of all numbers and arrays of a run."""
    if isinstance(value, tuple):
        items = value._asdict().items()  # type: ignore[attr-defined]
    elif isinstance(value, dict):
        items = value.items()
    else:
        return [] if isinstance(value, str) else [path]
    return [leaf for name, item in items for leaf in leaves(item, (*path, name))]


def part(value: Any, path: tuple[str, ...]) -> Any:
    """What stands at a path."""
    for name in path:
        value = value[name] if isinstance(value, dict) else getattr(value, name)
    return value


def with_part(value: Any, path: tuple[str, ...], new: Any) -> Any:
    """The same with something else at a path."""
    if not path:
        return new
    name, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {**value, name: with_part(value[name], rest, new)}
    return value._replace(**{name: with_part(getattr(value, name), rest, new)})


def damaged(old: Any, draw: Any) -> Any:
    """Another value in place of an old one."""
    if not isinstance(old, np.ndarray):
        return draw(st.sampled_from([*NUMBERS, *FLOATS, True, False, np.zeros(2), "text"]))
    way = draw(
        st.sampled_from(["one", "one", "one", "all", "short", "long", "empty", "dtype", "deep", "swap"])
    )
    if way in ("short", "long", "empty"):
        return {"short": old[:-1], "long": np.concatenate([old, old[:1]]), "empty": old[:0]}[way]
    if way == "dtype":
        return old.astype(draw(st.sampled_from(["f4", "f8", "i4", "i8", "u4", "u8", "u1", "U3", ">f8", "?"])))
    if way == "deep":
        return old[None]
    new = old.copy()
    if old.size == 0:
        return np.ones(3, dtype=old.dtype)
    place = draw(st.integers(0, old.size - 1))
    with np.errstate(all="ignore"):
        if way == "swap":
            new.flat[place] = old.flat[draw(st.integers(0, old.size - 1))]
        else:
            value = draw(st.sampled_from(NUMBERS if old.dtype.kind in "iu" else [*NUMBERS, *FLOATS]))
            cast = np.array(value).astype(old.dtype)
            if way == "all":
                new[...] = cast
            else:
                new.flat[place] = cast
    return new


def check_truth(outcome: dualgap.Outcome) -> None:
    """The certificate is what the problem finds at the point that is handed back."""
    again = outcome.problem.certify(outcome.point)
    claimed = outcome.problem.in_form(outcome.certificate, "mean")
    slack = 2.0 * (again.rounding + claimed.rounding) + 1e-300
    assert again.primal == claimed.primal or abs(again.primal - claimed.primal) <= slack, (again, claimed)
    assert again.dual == claimed.dual or claimed.dual - again.dual <= slack, (again, claimed)
    if outcome.reason.name in ("optimal", "gap"):
        proven = again.relative_gap <= 2e-12 or again.gap <= 3.0 * again.rounding
        assert proven, (outcome.reason, again)


def check_damage(name: str, run: Run, path: tuple[str, ...], new: Any, file: Path) -> str:
    """Resume the run with something else at a path; what became of it."""
    case = CASES[name]
    print(f"{name}: {'.'.join(path)} = {str(new)[:60]}", flush=True)  # the last line tells what crashed
    broken = with_part(run, path, new)
    signal.alarm(int(SECONDS))
    try:
        if isinstance(new, str | bool | float | int) or new.dtype.kind != "U":
            dualgap.save_state(file, broken)
            broken = dualgap.load_state(file)
        outcome = dualgap.fit(resume=broken, max_epochs=60, **arguments(case))
    except dualgap.InputError:
        return "refused"
    finally:
        signal.alarm(0)
    check_truth(outcome)
    return outcome.reason.name


def main(name: str, examples: int) -> None:
    """Damage the run of a case in so many ways."""
    faulthandler.enable()
    case = CASES[name]
    run = dualgap.fit(max_visits=case.cut, max_epochs=None, **arguments(case)).run
    paths = leaves(run)
    found: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.data())
        def attempt(drawn: st.DataObject) -> None:
            path = drawn.draw(st.sampled_from(paths))
            new = damaged(part(run, path), drawn.draw)
            became = check_damage(name, run, path, new, Path(folder) / "run.npz")
            found[became] = found.get(became, 0) + 1

        attempt()
    print(f"{name}: {found}")


if __name__ == "__main__":
    for chosen in sys.argv[2:]:
        main(chosen, int(sys.argv[1]))
