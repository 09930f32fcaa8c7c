"""Runs from beginning to end: a `Loop`, shown to stopping rules and callbacks until there is a reason to
stop.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from typing import TypeAlias

import numpy as np

from ..core.problem import Regularised
from ..runtime.errors import InputError
from .callbacks import Callback, stop_reason
from .interruption import CtrlC
from .loop import Loop, Settings
from .outcome import Result
from .records import Record
from .solver import AnySolver
from .stopping import BROKEN, DECIDED, SIGNALS, Reason, Rules, broken, recalled

PATIENCE_AFTER_CTRL_C = 0.5  # seconds: an evaluation that takes longer is not waited for after Ctrl-C

# reasons after which rows on disk are not read once more: what they are about has just been shown, or time
# is up
SHOWN = "time_limit", "gap", "atol", "target", "unreachable"

Running: TypeAlias = Generator[Record, None, Result]


def solve(
    solver: AnySolver,
    problem: Regularised,
    rules: Rules,
    settings: Settings,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Train until a rule finds a reason to stop, or the solver is done, or Ctrl-C is pressed."""
    with CtrlC() as ctrl_c:
        return finished(running(solver, problem, rules, settings, callbacks, ctrl_c))


def finished(run: Running) -> Result:
    """The outcome of a run that is left to itself."""
    while True:
        try:
            next(run)
        except StopIteration as end:
            outcome: Result = end.value
            return outcome


def running(
    solver: AnySolver,
    problem: Regularised,
    rules: Rules,
    settings: Settings,
    callbacks: Sequence[Callback],
    ctrl_c: CtrlC,
) -> Running:
    """A run that pauses at every record and returns its outcome, so that several can take turns.

    The model handed back is the one with the smallest primal value seen, or the smallest value of
    ``validate``; with ``output="last"`` it is the solver's own.
    """
    reason: Reason | None = None
    for callback in callbacks:
        callback.begin(problem, solver.at_work(None), settings.auto_reason)
    try:
        loop = Loop(solver, problem, rules, settings)
        if settings.resume is not None:
            for callback in callbacks:
                if callback.name in settings.resume.memory:
                    kept = settings.resume.memory[callback.name]
                    new = callback.memory is None
                    callback.memory = kept if new else recalled(callback.name, kept, callback.memory)
        trace: list[Record] = []
        with ExitStack() as open_:
            loop.steps = open_.enter_context(solver.opened(problem, loop.state))
            for record in loop:
                reason = _look(loop, record, trace, callbacks) or loop.ended(record)
                reason = reason or ctrl_c.reason
                if reason is not None:
                    break
                yield record
        assert reason is not None  # a loop goes on for ever
        run = loop.run(callbacks)  # taken first: the last evaluation is no part of the resumable run
        for callback in callbacks:
            callback.ended(run)
        if loop.visits > loop.timetable.at.visits and not _leave_unevaluated(reason, loop, trace):
            reason = _evaluate_last(loop, reason, trace, callbacks)
        reason = _with_alternative(reason, loop)
    finally:
        for callback in callbacks:
            callback.close(reason)
    beta = loop.best.beta
    w, b = loop.output
    certificate = problem.in_form(loop.output_certificate, settings.form)
    return Result(
        coef=w if w.ndim == 1 else np.ascontiguousarray(w.T),
        intercept=b,
        dual=problem.feasible(beta) if beta.any() else None,
        certificate=certificate,
        trace=trace,
        reason=reason,
        converged=certificate.relative_gap <= settings.tol
        or rules.met(certificate)
        or reason.name == DECIDED,
        solver=solver.at_work(loop.state),
        story=solver.story(problem, loop.state),
        problem=problem,
        run=run,
        dual_origin=loop.best.origin,
        interrupted=ctrl_c.pressed,
    )


def _look(loop: Loop, record: Record, trace: list[Record], callbacks: Sequence[Callback]) -> Reason | None:
    """Show a record to the stopping rules and the callbacks; the first reason to stop."""
    if record.kind == "certified":
        trace.append(record)
    if loop.repeats:
        return loop.rules.look_again(record, loop.memory)
    if loop.at_start:
        found = loop.rules.look_again(record, loop.memory)
    else:
        found, loop.memory = loop.rules.look(record, loop.memory)
    answers = [stop_reason(callback(record, loop.run(callbacks))) for callback in callbacks]
    return found or next((answer for answer in answers if answer is not None), None)


def _leave_unevaluated(reason: Reason, loop: Loop, trace: list[Record]) -> bool:
    """Whether there is no time, or no way, to evaluate the last point."""
    if reason.name == BROKEN:
        return True
    if not trace:
        return False
    if not loop.in_memory:  # it takes a pass over the disk
        return reason.name in (*SIGNALS, *SHOWN)
    return reason.name in SIGNALS and loop.seconds.certifying > PATIENCE_AFTER_CTRL_C * len(trace)


def _with_alternative(reason: Reason, loop: Loop) -> Reason:
    """The reason, with another remedy where coordinate descent, by the user's choice, is too slow."""
    slow = reason.name in ("max_epochs", "max_visits", "time_limit", "stalled")
    choice = loop.in_memory and loop.problem.lam > 0.0 and not loop.problem.loss.hard
    if not (slow and choice and loop.solver.name == "dcd" and loop.settings.tol > 0.0):
        return reason
    return reason._replace(
        message=f"{reason.message}, or take solver='auto', which leaves dcd where it is slow"
    )


def _evaluate_last(loop: Loop, reason: Reason, trace: list[Record], callbacks: Sequence[Callback]) -> Reason:
    """What was learned since the last certificate counts too."""
    try:
        record = loop.evaluate(final=True)
    except InputError as error:  # rows on disk that cannot be read any more: what is proven stays
        if loop.in_memory:
            raise
        return broken(str(error))
    return _look(loop, record, trace, callbacks) or reason
