"""The loop: records, limits, callbacks, Ctrl-C, warm starts, saved runs."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import dualgap
from dualgap.core.losses import LOSSES
from dualgap.core.problem import Evaluation, Point, Problem
from dualgap.data.sources import view
from dualgap.runtime.counts import Counts
from dualgap.solvers.second_order.quadratic import ROUNDS
from dualgap.training.callbacks import Callback, JsonLines
from dualgap.training.loop import Settings
from dualgap.training.progress import Progress
from dualgap.training.records import Record
from dualgap.training.run import Run
from dualgap.training.running import solve
from dualgap.training.solver import Solver, Status
from dualgap.training.stopping import GapBelow, Reason, Rules
from support.commands import heed_ctrl_c
from support.problems import SINGLE_SCORE, linear_data
from support.states import assert_same

toy = partial(linear_data, n=200, d=5, seed=1, noise=2.0)


def test_limits_are_met_exactly() -> None:
    X, y = toy()
    assert dualgap.fit(X, y, tol=0.0, max_visits=777).trace[-1].visits == 777
    outcome = dualgap.fit(X, y, tol=0.0, max_epochs=2.5)
    assert outcome.trace[-1].visits == 500
    assert outcome.reason.name == "max_epochs"
    assert not outcome.converged


STEPS = {  # row visits of one step at most, which may pass a limit, in units of n
    "asdca": 1.0, "svmperf": 1.0, "ocas": 1.0, "smo": 1.1, "decomposition": 1.5, "newton": ROUNDS + 2.0,
    "interior-point": 3.0,
}  # fmt: skip


@pytest.mark.parametrize("name", SINGLE_SCORE)
def test_limits_are_passed_by_one_step_at_most_and_the_reason_says_so(name: str) -> None:
    """The certificate and the reason belong to what was done, and not to what was asked for."""
    X, y = toy(n=120, d=6)
    bias = "exact" if name in ("smo", "decomposition") else "none"
    for key, value in (("max_epochs", 0.5), ("max_epochs", 2.5), ("max_visits", 7), ("max_visits", 501)):
        limits: dict[str, Any] = {"max_epochs": None, key: value}
        outcome = dualgap.fit(X, y, solver=name, bias=bias, tol=0.0, C=10.0, **limits)
        limit = value if key == "max_visits" else value * 120
        done = outcome.trace[-1].visits
        assert outcome.reason.name == key
        assert limit <= done <= limit + STEPS.get(name, 0.0) * 120
        made = done if key == "max_visits" else done / 120
        assert outcome.reason.message.startswith(f"stopped after {made:.6g} ")
        assert (f"{key}={value:g}, " in outcome.reason.message) == (done > limit)


def test_time_limit_ends_a_run_that_would_go_on() -> None:
    X, y = toy(n=2000)
    outcome = dualgap.fit(X, y, C=1e4, tol=0.0, time_limit=0.3, max_epochs=None, shrinking=False)
    assert outcome.reason.name == "time_limit"
    assert outcome.trace[-1].kind == "certified"


def test_record_every() -> None:
    X, y = toy()
    outcome = dualgap.fit(X, y, tol=0.0, max_visits=1000, record_every=130)
    assert [r.visits for r in outcome.trace] == [130, 260, 390, 520, 650, 780, 910, 1000]


def test_best_values_are_kept_and_never_worsen() -> None:
    X, y = toy()
    trace = dualgap.fit(X, y, C=10.0, tol=0.0, max_visits=4000, record_every=100).trace
    for before, after in itertools.pairwise(trace):
        assert after.certificate.primal <= before.certificate.primal + before.certificate.rounding
        assert after.certificate.dual >= before.certificate.dual - before.certificate.rounding


def test_callbacks_see_every_record_and_are_closed_even_on_errors(tmp_path: Path) -> None:
    X, y = toy()
    path = tmp_path / "trace.jsonl"
    outcome = dualgap.fit(X, y, tol=0.0, max_visits=900, record_every=300, callbacks=[JsonLines(path)])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["visits"] for line in lines] == [300, 600, 900]
    assert lines[-1]["primal"] == outcome.certificate.primal
    assert lines[-1]["form"] == "J"
    parts = [lines[-1][f"{kind}_seconds"] for kind in ("train", "certify", "compile")]
    assert sum(parts) == pytest.approx(lines[-1]["seconds"])

    class Failing(Callback):
        closed = False

        def __call__(self, record: Record, run: Run) -> None:
            raise ZeroDivisionError

        def close(self, reason: Reason | None) -> None:
            self.closed = True

    failing = Failing()
    with pytest.raises(ZeroDivisionError):
        dualgap.fit(X, y, callbacks=[failing])
    assert failing.closed


def test_a_callback_is_told_the_problem_and_the_solver_before_training() -> None:
    told: list[Any] = []

    class Listener(Callback):
        def begin(self, problem: Problem, solver: Any, auto_reason: str) -> None:
            told.append((problem.source.n, solver.name, auto_reason))

        def __call__(self, record: Record, run: Run) -> None:
            told.append(run.timetable.certificates)

    dualgap.fit(*toy(), callbacks=[Listener()], solver="dcd")
    assert told[0] == (200, "dcd", "")
    assert told[-1] >= 1


def test_a_run_can_be_saved_by_a_callback_and_goes_on_the_same(tmp_path: Path) -> None:
    X, y = toy()
    path = tmp_path / "run.npz"

    def save(record: Record, run: Run) -> None:
        if record.visits == 400:
            dualgap.save_state(path, run)

    options: dict[str, Any] = {"tol": 0.0, "max_visits": 900, "record_every": 200, "solver": "dcd"}
    whole = dualgap.fit(X, y, callbacks=[save], **options)
    resumed = dualgap.fit(X, y, resume=dualgap.load_state(path), **options)
    assert_same(whole.run, resumed.run)


class Calls(NamedTuple):
    """What a callback remembers."""

    count: int


class Counting(Callback):
    """Ends a run with its tenth record."""

    name = "counting"

    def __init__(self) -> None:
        self.memory = Calls(0)

    def __call__(self, record: Record, run: Run) -> bool:
        self.memory = Calls(self.memory.count + (record.kind == "certified"))
        return self.memory.count == 10


def test_what_a_callback_remembers_is_part_of_the_run(tmp_path: Path) -> None:
    X, y = toy()
    options: dict[str, Any] = {"tol": 0.0, "record_every": 100, "solver": "sdca"}
    whole = dualgap.fit(X, y, callbacks=[Counting()], **options)
    assert (whole.reason.name, whole.trace[-1].visits) == ("callback", 1000)
    first = dualgap.fit(X, y, callbacks=[Counting()], max_visits=400, **options)
    resumed = dualgap.fit(X, y, callbacks=[Counting()], resume=first, **options)
    assert_same(whole.run, resumed.run)


def test_progress_is_silent_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    dualgap.fit(*toy(), callbacks=[Progress(1e-3, stream)])
    assert stream.getvalue() == ""


def test_measures_are_stored_and_a_callback_can_use_them() -> None:
    X, y = toy()

    def error(point: Point) -> dict[str, float]:
        return {"error": float(np.mean(np.sign(X @ point.w + point.b) != y))}

    outcome = dualgap.fit(
        X,
        y,
        tol=0.0,
        record_every=50,
        measures=[error],
        callbacks=[lambda r, run: r.measures.get("error", 1) < 0.35],
    )
    assert outcome.reason.name == "callback"
    assert outcome.trace[-1].measures["error"] < 0.35


def test_a_run_goes_on_and_leaves_the_one_it_came_from_alone() -> None:
    X, y = toy()
    options: dict[str, Any] = {"C": 3.0, "solver": "dcd", "record_every": 200}
    loose = dualgap.fit(X, y, tol=1e-2, **options)
    before = loose.run.state.w.copy()
    tight = dualgap.fit(X, y, tol=1e-6, resume=loose, **options)
    cold = dualgap.fit(X, y, tol=1e-6, **options)
    assert np.array_equal(loose.run.state.w, before)
    assert_same(tight.run, cold.run)
    again = dualgap.fit(X, y, C=3.0, solver="dcd", tol=1e-2, resume=tight)
    assert again.trace[0].visits == tight.trace[-1].visits
    assert len(again.trace) == 1


def test_warm_start_from_a_point_of_another_problem() -> None:
    X, y = toy()
    first = dualgap.fit(X, y, C=1.0, tol=1e-6)
    point = Point(first.coef, first.intercept, first.dual)
    warm = dualgap.fit(X, y, C=1.1, tol=1e-4, warm=point, record_every=100)
    cold = dualgap.fit(X, y, C=1.1, tol=1e-4, record_every=100)
    assert warm.converged
    assert warm.trace[-1].visits < cold.trace[-1].visits
    infeasible = Point(first.coef, 0.0, np.full(len(y), 7.0))
    assert dualgap.fit(X, y, C=1.1, tol=1e-4, warm=infeasible).converged
    with pytest.raises(dualgap.InputError, match="warm start of 3 rows"):
        dualgap.fit(X, y, warm=Point(first.coef, 0.0, np.zeros(3)))


def test_a_saved_run_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    path.write_bytes(b"not a zip file")
    with pytest.raises(dualgap.InputError, match="not a saved run"):
        dualgap.load_state(path)
    np.savez(path, name="dcd")
    with pytest.raises(dualgap.InputError, match="has no"):
        dualgap.load_state(path)
    with pytest.raises(dualgap.InputError, match="not a saved run"):
        dualgap.load_state(tmp_path / "missing.npz")
    np.save(tmp_path / "array.npy", np.ones(3))
    with pytest.raises(dualgap.InputError, match="not a saved run"):
        dualgap.load_state(tmp_path / "array.npy")
    dualgap.save_state(path, dualgap.fit(np.eye(2), [-1, 1]))
    content = path.read_bytes()
    for k in range(0, len(content), 97):
        path.write_bytes(content[:k] + b"?" + content[k + 1 :] if k % 2 else content[:k])
        with contextlib.suppress(dualgap.InputError):  # one line, or a byte that does not matter
            dualgap.load_state(path)


def test_a_run_is_saved_whole_or_not_at_all(tmp_path: Path) -> None:
    outcome = dualgap.fit(np.eye(2), [-1, 1])
    with pytest.raises(dualgap.InputError, match="does not exist; make it first"):
        dualgap.save_state(tmp_path / "no" / "run.npz", outcome)
    (tmp_path / "link").symlink_to("/dev/null")
    dualgap.save_state(tmp_path / "link", outcome)
    assert (tmp_path / "link").is_symlink(), "a device is written to, and not replaced"


class Liar(NamedTuple):
    """The state of a solver whose own sums are wrong."""

    w: np.ndarray
    beta: np.ndarray
    counts: Counts


class LyingSolver(Solver[Liar]):
    """It drifts: its w has nothing to do with its beta, and it claims to be finished."""

    name = summary = "liar"

    def start(self, problem: Problem, warm: Point | None) -> Liar:
        return Liar(np.ones(problem.source.d), problem.source.y * 0.5, Counts())

    def step(
        self, problem: Problem, state: Liar, budget: int, news: Evaluation | None
    ) -> tuple[Liar, Status]:
        visits = state.counts.visits + budget
        ended = Reason("sure", "finished, believe me") if visits > 500 else None
        return state._replace(counts=Counts(visits, 0, 1)), Status("target_expected", ended)

    def point(self, problem: Problem, state: Liar) -> Point:
        return Point(state.w, 0.0, state.beta)


def test_a_solver_cannot_talk_its_way_to_a_certificate() -> None:
    X, y = toy()
    problem = Problem(view(X, y), LOSSES["hinge"](), 0.01)
    outcome = solve(LyingSolver(), problem, Rules((GapBelow(1e-3),)), Settings(tol=1e-3))
    assert outcome.reason.name == "sure"
    assert not outcome.converged
    assert outcome.certificate.relative_gap > 1e-3
    exact = 0.005 * outcome.coef @ outcome.coef + np.mean(np.maximum(0, 1 - y * (X @ outcome.coef)))
    assert outcome.certificate.primal == pytest.approx(exact, rel=1e-12)


LONG_RUN = """
    import numpy as np, dualgap
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 50)); y = np.sign(X[:, 0] + rng.normal(size=20000))
    started = lambda record, run: print("started", flush=True) if record.visits < 100_000 else None
    o = dualgap.fit(X, y, C=1e5, tol=0.0, max_epochs=None, shrinking=False, callbacks=[started])
    print(o.reason.name, o.certificate.relative_gap < 1e9, np.abs(o.coef).max() > 0, len(o.trace) > 0)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to send")
def test_ctrl_c_keeps_the_best_model() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(LONG_RUN)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
        preexec_fn=heed_ctrl_c,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert rest.splitlines()[-1] == "interrupted True True True"


@pytest.mark.parametrize(("part", "value"), [("w", np.nan), ("b", np.inf), ("beta", np.nan)])
def test_warm_starts_that_are_not_numbers_are_refused(part: str, value: float) -> None:
    X, y = toy()
    point = Point(np.zeros(X.shape[1]), 0.0, np.zeros(len(y)))
    spoilt = value if part == "b" else np.full_like(getattr(point, part), value)
    with pytest.raises(ValueError, match=f"the warm start has {part} with NaN or infinity"):
        dualgap.fit(X, y, warm=point._replace(**{part: spoilt}))
