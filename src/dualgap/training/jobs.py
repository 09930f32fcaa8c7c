"""Several runs as one: lazily one after another, in threads, or taking turns over shared chunks of rows on
disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from .interruption import CtrlC
from .outcome import Result
from .running import Running, finished


class Job(NamedTuple):
    """A run that has been prepared, and the key that its outcome is known by.

    ``begin`` starts it: a generator that pauses at every record and returns the outcome.
    """

    key: Any
    begin: Callable[[CtrlC], Running]


def run_jobs(
    jobs: Iterable[Job], *, threads: int = 1, together: bool = False, ctrl_c: CtrlC | None = None
) -> Iterator[tuple[Any, Result]]:
    """Run all jobs and yield their outcomes in the order of the jobs; those in memory begin when they are
    due.

    ``threads`` of them run at a time. With ``together`` all of them take turns, the one with the fewest
    passes over the data first: so they want the same chunks at about the same time, and chunks that are read
    once serve all. One Ctrl-C ends all: jobs under way keep their best model so far, and those that have not
    begun get one quantum of work each. Whoever wants to know that it was pressed passes a ``CtrlC`` that has
    been entered.
    """
    if ctrl_c is None:
        with CtrlC() as ctrl_c:
            yield from run_jobs(jobs, threads=threads, together=together, ctrl_c=ctrl_c)
    elif together:
        listed = list(jobs)
        yield from zip(
            (job.key for job in listed), _in_turns([job.begin(ctrl_c) for job in listed]), strict=True
        )
    elif threads == 1:
        for job in jobs:
            yield job.key, finished(job.begin(ctrl_c))
    else:
        yield from _in_threads(jobs, threads, ctrl_c)


def _in_threads(jobs: Iterable[Job], threads: int, ctrl_c: CtrlC) -> Iterator[tuple[Any, Result]]:
    waiting: deque[tuple[Any, Future[Result]]] = deque()
    with ThreadPoolExecutor(threads) as pool:  # ends with the last job: safe to fork
        for job in jobs:
            waiting.append((job.key, pool.submit(lambda job: finished(job.begin(ctrl_c)), job)))
            if len(waiting) > threads:
                key, done = waiting.popleft()
                yield key, done.result()
        for key, done in waiting:
            yield key, done.result()


def _in_turns(runs: list[Running]) -> list[Result]:
    """Let the run go on that has made the fewest passes, until all are done."""
    passes = dict.fromkeys(range(len(runs)), 0.0)
    outcomes: dict[int, Result] = {}
    try:
        while passes:
            turn = min(passes, key=lambda k: passes[k])
            try:
                passes[turn] = next(runs[turn]).measures["passes"]
            except StopIteration as end:
                outcomes[turn] = end.value
                del passes[turn]
    finally:
        for run in runs:
            run.close()
    return [outcomes[k] for k in range(len(runs))]
