"""Several problems on the same rows, trained one after another, at once in threads, or in turns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple, TypeVar

from ..core.problem import Problem
from .callbacks import Callback
from .interruption import CtrlC
from .loop import Running, Settings, finished, running
from .outcome import Outcome
from .solver import AnySolver
from .stopping import Rules

K = TypeVar("K", bound=Hashable)


class Job(NamedTuple):
    """One problem to be solved, with all that the loop needs to know."""

    problem: Problem
    solver: AnySolver
    rules: Rules
    settings: Settings
    callbacks: Sequence[Callback] = ()

    def running(self, ctrl_c: CtrlC) -> Running:
        """The run, which pauses at every record."""
        return running(self.solver, self.problem, self.rules, self.settings, self.callbacks, ctrl_c)


def run_jobs(
    jobs: Iterable[tuple[K, Callable[[], Job]]], *, threads: int = 1, ctrl_c: CtrlC | None = None
) -> Iterator[tuple[K, Outcome]]:
    """Train the jobs and yield their outcomes in order; a job is made when its turn comes.

    One Ctrl-C ends all of them: those under way hand back the best model so far, those that have not begun
    get one quantum of work each. At most ``threads`` jobs exist at a time.
    """
    with ctrl_c or CtrlC() as pressed:

        def train(make: Callable[[], Job]) -> Outcome:
            return finished(make().running(pressed))

        if threads == 1:
            for key, make in jobs:
                yield key, train(make)
            return
        waiting = iter(jobs)
        with ThreadPoolExecutor(threads) as pool:  # ends with the jobs: safe to fork afterwards
            ahead = [(key, pool.submit(train, make)) for key, make in islice(waiting, threads)]
            while ahead:
                key, future = ahead.pop(0)
                outcome = future.result()
                ahead += [(other, pool.submit(train, make)) for other, make in islice(waiting, 1)]
                yield key, outcome


def run_in_turns(jobs: Sequence[Job]) -> list[Outcome]:
    """Train the jobs at once on one thread: the one furthest behind in its passes over the disk goes on
    first.

    So all of them want the same chunk of rows at about the same time, and one reading serves all.
    """
    outcomes: dict[int, Outcome] = {}
    with CtrlC() as ctrl_c:
        runs = [job.running(ctrl_c) for job in jobs]
        passed = dict.fromkeys(range(len(runs)), 0.0)
        try:
            while passed:
                turn = min(passed, key=lambda k: passed[k])
                try:
                    passed[turn] = next(runs[turn]).measures["passes"]
                except StopIteration as end:
                    outcomes[turn] = end.value
                    del passed[turn]
        finally:
            for run in runs:
                run.close()
    return [outcomes[k] for k in range(len(runs))]
