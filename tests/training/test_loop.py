"""The loop: records, schedule, limits, stopping rules, watchers, Ctrl-C, resuming, warm starts."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import math
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
from dualgap.core.losses import LOSSES, Hinge
from dualgap.core.problem import Certificate, Evaluation, Point, Problem
from dualgap.data.sources import in_memory
from dualgap.solvers import SOLVERS
from dualgap.solvers.dual.dcd import DCD
from dualgap.solvers.second_order.quadratic import ROUNDS
from dualgap.training.callbacks import JsonLines, Progress
from dualgap.training.loop import Counts, Loop, Record, solve
from dualgap.training.stopping import Callback, GapBelow, Reason, Seconds, Stalled, epochs, steps
from support.commands import heed_ctrl_c
from support.problems import linear_data
from support.states import assert_same

toy = partial(linear_data, n=200, d=5, seed=1, noise=2.0)


def record(**changes: Any) -> Record:
    certificate = Certificate(
        2.0, 1.0, 1.0, changes.pop("relative_gap", 1.0), changes.pop("rounding", 0.0), "mean"
    )
    values = {
        "kind": "certified",
        "visits": 10,
        "epochs": 1.0,
        "updates": 0,
        "entries": 0,
        "train_seconds": 1.0,
    }
    values |= {"certify_seconds": 0.5, "certificate": certificate, "measures": {}} | changes
    return Record(**values)  # type: ignore[arg-type]


class TestRules:
    def test_only_a_certificate_proves_a_gap(self) -> None:
        assert GapBelow(0.1)(record(relative_gap=0.05)) is not None
        assert GapBelow(0.1)(record(relative_gap=0.05, kind="estimate")) is None
        assert GapBelow(0.1)(record(relative_gap=math.nan)) is None

    def test_limits_say_what_to_do_next(self) -> None:
        for rule, name in (
            (steps(10), "max_steps"),
            (epochs(0.5, 20), "max_epochs"),
            (Seconds(1.5), "time_limit"),
        ):
            reason = rule(record())
            assert reason is not None
            assert reason.name == name
            assert name in reason.message

    def test_rules_combine_and_the_stricter_allowance_holds(self) -> None:
        rule = GapBelow(1e-9) | steps(100) | epochs(3, 20)
        assert rule.allowance(40) == 20
        assert rule(record(visits=60)).name == "max_epochs"
        assert rule(record(visits=59)) is None

    def test_stalled_needs_a_whole_window_without_progress(self) -> None:
        rule = Stalled(visits=100)

        def at(visits: int, gap: float) -> Reason | None:
            certificate = Certificate(1 + gap, 1.0, gap, gap, 0.0, "mean")
            return rule(record(visits=visits, certificate=certificate))

        assert at(0, 1.0) is None
        assert at(90, 1.0) is None
        assert at(100, 0.9) is None
        assert at(199, 0.9) is None
        assert at(200, 0.9).name == "stalled"

    def test_a_gap_of_rounding_errors_is_recognised(self) -> None:
        certificate = Certificate(1.0, 1.0, 1e-12, 1e-12, 9e-13, "mean")
        assert Stalled(visits=1)(record(certificate=certificate)).name == "rounding"

    def test_callback_answers(self) -> None:
        assert Callback(lambda r: None)(record()) is None
        assert Callback(lambda r: True)(record()).name == "callback"
        assert Callback(lambda r: "enough")(record()).message == "enough"


def test_limits_are_met_exactly() -> None:
    X, y = toy()
    assert dualgap.fit(X, y, tol=0.0, max_steps=777).trace[-1].visits == 777
    outcome = dualgap.fit(X, y, tol=0.0, max_epochs=2.5)
    assert outcome.trace[-1].visits == 500
    assert outcome.reason.name == "max_epochs"
    assert not outcome.converged


STEPS = {  # row visits of one step at most, which may pass a limit, in units of n
    "asdca": 1.0, "svmperf": 1.0, "ocas": 1.0, "smo": 1.1, "decomposition": 1.5, "newton": ROUNDS + 2.0,
}  # fmt: skip


@pytest.mark.parametrize("name", SOLVERS)
def test_limits_are_passed_by_one_step_at_most_and_the_reason_says_so(name: str) -> None:
    """The certificate and the reason belong to what was done, and not to what was asked for."""
    X, y = toy(n=120, d=6)
    bias = "exact" if name in ("smo", "decomposition") else "none"
    for key, value in (("max_epochs", 0.5), ("max_epochs", 2.5), ("max_steps", 7), ("max_steps", 501)):
        limits: dict[str, Any] = {"max_epochs": None, key: value}
        outcome = dualgap.fit(X, y, solver=name, bias=bias, tol=0.0, C=10.0, **limits)
        limit = value if key == "max_steps" else value * 120
        done = outcome.trace[-1].visits
        assert outcome.reason.name == key
        assert limit <= done <= limit + STEPS.get(name, 0.0) * 120
        made = done if key == "max_steps" else done / 120
        assert outcome.reason.message.startswith(f"stopped after {made:.6g} ")
        assert (f"{key}={value:g}, " in outcome.reason.message) == (done > limit)


def test_time_limit_ends_a_run_that_would_go_on() -> None:
    X, y = toy(n=2000)
    outcome = dualgap.fit(X, y, C=1e4, tol=0.0, time_limit=0.3, max_epochs=None, shrinking=False)
    assert outcome.reason.name == "time_limit"
    assert outcome.trace[-1].kind == "certified"


def test_record_every() -> None:
    X, y = toy()
    outcome = dualgap.fit(X, y, tol=0.0, max_steps=1000, record_every=130)
    assert [r.visits for r in outcome.trace] == [130, 260, 390, 520, 650, 780, 910, 1000]


def test_best_values_are_kept_and_never_worsen() -> None:
    X, y = toy()
    trace = dualgap.fit(X, y, C=10.0, tol=0.0, max_steps=4000, record_every=100).trace
    for before, after in itertools.pairwise(trace):
        assert after.certificate.primal <= before.certificate.primal + before.certificate.rounding
        assert after.certificate.dual >= before.certificate.dual - before.certificate.rounding


def test_certifying_takes_less_than_a_quarter_of_the_counted_work() -> None:
    """The schedule, in the counted nanoseconds it is made of; benchmarks/ has the measured share."""
    from dualgap.training.loop import evaluation_cost, training_cost

    X, y = toy(n=3000, d=40)
    outcome = dualgap.fit(X, y, C=10.0, tol=1e-6, max_epochs=None, solver="dcd")
    last = outcome.trace[-1]
    evaluating = (len(outcome.trace) - 1) * evaluation_cost(outcome.problem)
    assert len(outcome.trace) > 4
    assert evaluating <= 0.25 * (
        evaluating + training_cost(outcome.problem, Counts(last.visits, last.updates, last.entries))
    )


@pytest.mark.parametrize(
    ("before", "gap", "evaluations", "expected"),
    [
        (1e-1, 1e-2, 1, 1250),  # a tenth in 1,000 visits: as much again, and a quarter for good measure
        (1e-1, 2e-2, 1, 2327),
        (1e-1, 5e-2, 1, 2000),  # 7,055 are left: too far away to aim at
        (1e-1, 1.1e-3, 1, 600),  # 26 are left: not as soon as that
        (1e-1, 5e-3, 1, 672),
        (1e-1, 5e-3, 10**6, 2000),  # there have been too many to hurry
        (1e-1, 1e-2, 10**6, 2000),
        (1e-2, 1e-2, 1, 2000),  # it does not fall
        (math.inf, 1e-2, 1, 2000),  # nobody knows how fast it falls
        (1e-1, 1e-3, 1, 2000),  # it has arrived
    ],
)
def test_evaluations_aim_at_the_gap_asked_for(
    before: float, gap: float, evaluations: int, expected: int
) -> None:
    X, y = toy(n=4000, d=40)
    loop = Loop(DCD(), Problem(in_memory(X, y), Hinge(), 1e-3), tol=1e-3)
    loop.certificate = loop.certificate._replace(relative_gap=gap)
    loop._gap, loop._evaluations = before, evaluations
    loop.state = loop.state._replace(sweep=loop.state.sweep._replace(visits=400_000, entries=20_000_000))
    assert loop._aimed(2000, Counts(1000, 500, 60_000)) == expected
    loop.tol = 0.0
    assert loop._aimed(2000, Counts(1000, 500, 60_000)) == 2000


def test_watchers_see_every_record_and_are_closed_even_on_errors(tmp_path: Path) -> None:
    X, y = toy()
    path = tmp_path / "trace.jsonl"
    outcome = dualgap.fit(X, y, tol=0.0, max_steps=900, record_every=300, watchers=[JsonLines(path)])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["steps"] for line in lines] == [300, 600, 900]
    assert lines[-1]["primal"] == outcome.certificate.primal
    assert lines[-1]["objective"] == "J"
    assert lines[-1]["train_seconds"] + lines[-1]["certify_seconds"] == pytest.approx(lines[-1]["seconds"])

    class Watcher:
        closed = False

        def __call__(self, record: Record) -> None:
            raise ZeroDivisionError

        def close(self, reason: Reason | None) -> None:
            self.closed = True

    watcher = Watcher()
    with pytest.raises(ZeroDivisionError):
        dualgap.fit(X, y, watchers=[watcher])
    assert watcher.closed


def test_progress_is_silent_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    dualgap.fit(*toy(), watchers=[Progress(1e-3, stream)])
    assert stream.getvalue() == ""


def test_measures_are_stored_and_a_callback_can_use_them() -> None:
    X, y = toy()

    def error(point: Point) -> dict[str, float]:
        return {"error": float(np.mean(np.sign(X @ point.w + point.b) != y))}

    outcome = dualgap.fit(
        X, y, tol=0.0, record_every=50, measures=[error], callback=lambda r: r.measures.get("error", 1) < 0.35
    )
    assert outcome.reason.name == "callback"
    assert outcome.trace[-1].measures["error"] < 0.35


def test_warm_start_from_an_outcome_goes_on_and_leaves_it_alone() -> None:
    X, y = toy()
    loose = dualgap.fit(X, y, C=3.0, tol=1e-2, record_every=200)
    before = loose.state.solver.w.copy()
    tight = dualgap.fit(X, y, C=3.0, tol=1e-6, record_every=200, warm=loose)
    cold = dualgap.fit(X, y, C=3.0, tol=1e-6, record_every=200)
    assert np.array_equal(loose.state.solver.w, before)
    assert_same(tight.state, cold.state)
    again = dualgap.fit(X, y, C=3.0, tol=1e-2, warm=tight)
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
    paused: bool = False


class LyingSolver:
    """It drifts: its w has nothing to do with its beta, and it claims to be finished."""

    name = summary = "liar"

    def start(self, problem: Problem, warm: Point | None) -> Liar:
        return Liar(np.ones(problem.source.d), problem.source.y * 0.5, Counts())

    def step(self, problem: Problem, state: Liar, budget: int, last: Evaluation | None) -> Liar:
        return state._replace(counts=Counts(state.counts.visits + budget, 0, 1))

    def point(self, problem: Problem, state: Liar) -> Point:
        return Point(state.w, 0.0, state.beta)

    def finished(self, state: Liar) -> Reason | None:
        return Reason("sure", "finished, believe me") if state.counts.visits > 500 else None


def test_a_solver_cannot_talk_its_way_to_a_certificate() -> None:
    X, y = toy()
    problem = Problem(in_memory(X, y), LOSSES["hinge"](), 0.01)
    outcome = solve(LyingSolver(), problem, GapBelow(1e-3), tol=1e-3)
    assert outcome.reason.name == "sure"
    assert not outcome.converged
    assert outcome.certificate.relative_gap > 1e-3
    exact = 0.005 * outcome.coef @ outcome.coef + np.mean(np.maximum(0, 1 - y * (X @ outcome.coef)))
    assert outcome.certificate.primal == pytest.approx(exact, rel=1e-12)


LONG_RUN = """
    import numpy as np, dualgap
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 50)); y = np.sign(X[:, 0] + rng.normal(size=20000))
    started = lambda record: print("started", flush=True) if record.visits < 100_000 else None
    o = dualgap.fit(X, y, C=1e5, tol=0.0, max_epochs=None, shrinking=False, watchers=[started])
    print(o.reason.name, o.certificate.relative_gap < 1e9, np.abs(o.coef).max() > 0, len(o.trace) > 0)
"""


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
