"""Several runs as one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.api import job
from dualgap.training.interruption import CtrlC
from dualgap.training.jobs import Job, run_jobs


def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    return X, np.where(X @ rng.normal(size=5) + rng.normal(size=80) > 0, 1.0, -1.0)


def test_jobs_begin_when_they_are_due_and_outcomes_are_those_of_fit() -> None:
    X, y = rows()
    made: list[float] = []

    def jobs() -> Iterator[Job]:
        for C in (0.1, 1.0, 10.0):
            made.append(C)
            yield job(C, X, y, C=C, seed=3)

    found = run_jobs(jobs())
    assert made == []
    key, first = next(found)
    assert (key, made) == (0.1, [0.1])
    assert np.array_equal(first.coef, dualgap.fit(X, y, C=0.1, seed=3).coef)
    assert [key for key, _ in found] == [1.0, 10.0]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_make_no_difference(threads: int) -> None:
    X, y = rows()
    strengths = (0.1, 1.0, 10.0, 100.0)
    found = dict(run_jobs((job(C, X, y, C=C) for C in strengths), threads=threads))
    assert list(found) == list(strengths)
    for C, outcome in found.items():
        assert np.array_equal(outcome.coef, dualgap.fit(X, y, C=C).coef)


def test_one_ctrl_c_ends_all() -> None:
    X, y = rows()

    def press(record: Any, run: Any) -> None:
        if not ctrl_c.pressed:
            os.kill(os.getpid(), signal.SIGINT)

    assert threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with CtrlC() as ctrl_c:
            first = job(0, X, y, tol=0.0, callbacks=[press])
            found = dict(run_jobs([first, job(1, X, y, tol=0.0)], ctrl_c=ctrl_c))
            assert ctrl_c.pressed
    finally:
        signal.signal(signal.SIGINT, before)
    assert [outcome.reason.name for outcome in found.values()] == ["interrupted", "interrupted"]


def test_runs_together_take_turns_by_their_passes() -> None:
    order: list[str] = []

    class Record:
        def __init__(self, passes: float) -> None:
            self.measures = {"passes": passes}

    def run(name: str, step: float, steps: int) -> Generator[Any, None, Any]:
        for k in range(1, steps + 1):
            order.append(name)
            yield Record(k * step)
        return name

    jobs = [Job(k, lambda ctrl_c, a=a: run(*a)) for k, a in enumerate((("slow", 0.5, 4), ("fast", 1.0, 2)))]
    assert dict(run_jobs(jobs, together=True)) == {0: "slow", 1: "fast"}
    assert order == ["slow", "fast", "slow", "slow", "fast", "slow"]
