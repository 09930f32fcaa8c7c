"""The training loop.

A `Loop` lets a solver work in quanta, has the problem evaluate its points when the `Schedule` wants it, keeps
the best in an `Incumbent`, and yields a record after every quantum, for ever. `running` shows the records to
callbacks and stopping rules and hands back an `Outcome`; `solve` does so in one go.

A clock decides only how long one call of a solver lasts (some 0.2 s, so that Ctrl-C, time limits and progress
stay live); solvers promise that it makes no difference into which budgets their work is cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..core.problem import Certificate, Evaluation, Form, Intercept, Point, Regularised
from ..runtime.arrays import Floats
from ..runtime.compiling import Stopwatch
from .callbacks import Callback
from .incumbent import DualOrigin, Incumbent, Known, kept, scaled
from .records import Record
from .run import FORMAT, Run, Seconds, Value, check_resumable, check_value, copied
from .schedule import Schedule
from .solver import AnySolver, Status, Steps
from .stopping import Reason, Rules

QUANTUM = 0.2  # seconds that one call of a solver should last
MAX_UNCHANGED, MAX_IDLE = 3, 10_000  # evaluations in a row without a visit that end a run: all alike, or any

Measures: TypeAlias = Callable[[Point, Point], dict[str, float]]  # of the solver's own point and the best
Output: TypeAlias = Literal[
    "best", "last"
]  # which model a run hands back: the best seen, or the solver's own


@dataclass(frozen=True)
class Settings:
    """How a run is trained and what it tells, apart from solver, problem and stopping rules."""

    tol: float = 0.0  # the relative gap asked for
    form: Form = "mean"  # of the certificates in records
    record_every: int | None = None  # visits after each of which a certificate is asked for
    record_start: bool = False  # a record of the starting point, before the first step
    output: Output = "best"
    measures: Sequence[Measures] = ()
    validate: Callable[[Point], float] | None = (
        None  # early stopping: this measure of held-out rows decides what is best
    )
    max_quantum: float = math.inf  # visits in one call of the solver
    warm: Point | None = None
    known: Known | None = None  # the evaluation of ``warm``
    resume: Run | None = None
    auto_reason: str = ""  # why this solver was chosen, for callbacks
    compile_seconds: float = 0.0  # spent on kernels while the run was prepared


class Loop:
    """One run under way. Iterating over it trains and yields its records."""

    def __init__(self, solver: AnySolver, problem: Regularised, rules: Rules, settings: Settings) -> None:
        self.solver, self.problem, self.rules, self.settings = solver, problem, rules, settings
        self.in_memory = problem.source.in_memory
        self.schedule = Schedule.of(
            solver,
            problem,
            settings.tol,
            settings.record_every,
            only_every=settings.record_every is not None and settings.validate is not None,
        )
        self.best = Incumbent.of(problem)
        self.validated = math.inf  # measure of the last point on held-out rows
        self.news: Evaluation | None = None  # of the present point, until the solver has been told
        self.rows_per_iteration = solver.rows_per_iteration(problem)
        self.at_start = False  # the present record is that of the starting point
        self.repeats = False  # rules and callbacks have seen the present record in the run that is resumed
        self.status = Status()
        self.steps: Steps[Any] = solver
        self.polished = -problem.epoch_size
        self.seconds = Seconds(compiling=settings.compile_seconds)
        self._quantum = 10_000
        self._idle = self._unchanged = 0
        self._values = math.nan, math.nan  # primal and dual, of the solver's point at its last evaluation
        zero, evaluation = problem.zero_point()
        merit = None if settings.validate is None else settings.validate(zero)
        if merit is not None:
            self.validated = merit
        self.best.see(zero, evaluation, "none", merit)
        self.certificate = self.best.certificate(problem)
        self.point = zero  # the solver's own, when it was last evaluated
        self.current = Value.of(evaluation)  # its values
        self.last: tuple[Floats, Intercept] | None = None  # its w and b, kept for ``output="last"``
        if settings.resume is not None:
            self._resume(settings.resume)
        else:
            self._start(settings.warm)

    def _start(self, warm: Point | None) -> None:
        known = self.settings.known
        if warm is not None and known is not None and self.problem.has_values_of(known.problem):
            self._see(warm, known.found, "warm start", owned=True)
            self.point, self.current = warm, Value.of(known.found)
            if self.certificate.relative_gap <= self.settings.tol:
                warm = None  # no step will be made
        watch = Stopwatch()
        self.state = self.solver.set_target(self.solver.start(self.problem, warm), self.schedule.target)
        self._trained(watch)
        self.timetable = self.schedule.begin(self.visits)
        self.memory = self.rules.begin({})
        if warm is not None:
            self._evaluate(warm, "warm start")
            self._evaluate(self.solver.point(self.problem, self.state), "solver")

    def _resume(self, run: Run) -> None:
        """Go on with a run, once it is sure that it is one of this solver and this problem."""
        check_resumable(run, self.solver, self.problem)
        self._evaluate(Point(run.w, run.b, run.beta), "warm start")
        assert self.news is not None
        check_value(run, self.news)
        self.state = self.solver.set_target(copied(run.state), self.schedule.target)
        self.timetable, self.polished = run.timetable, run.polished
        before = self.settings.compile_seconds
        self.seconds = run.seconds._replace(compiling=run.seconds.compiling + before)
        self.current, self.point = run.current, self.solver.point(self.problem, self.state)
        self.memory = self.rules.begin(run.memory)
        self.news = None
        if self.visits == self.timetable.at.visits and self.in_memory:  # what the solver was to be told
            self._evaluate(self.solver.point(self.problem, self.state), "solver")

    @property
    def visits(self) -> int:
        """Of rows, so far."""
        return int(self.state.counts.visits)

    def __iter__(self) -> Iterator[Record]:
        # the point to start from may be good enough as it is
        if self.settings.warm is not None or self.settings.resume is not None:
            self.repeats = self.settings.resume is not None
            yield self.record("certified")
            self.repeats = False
        elif self.settings.record_start:
            yield self._starting_record()
            self.at_start = False
        while True:
            before, values = self.visits, self._values
            self._work()
            moved = self.visits > before
            if not self.in_memory:  # the solver's own passes over the rows on disk carry the evaluations
                yield self.record("certified" if self._take_evaluation() else "estimate")
                continue
            certified = self._wants_evaluation(moved)
            record = self.evaluate() if certified else self.record("estimate")
            self._idle = 0 if moved else self._idle + 1
            self._unchanged = self._unchanged + 1 if not moved and self._values == values else 0
            yield record

    def _starting_record(self) -> Record:
        """A record of the point before the first step. Neither solver nor timetable nor rules learn of it, so
        the run is the same as without. (From disk a run begins at 0, whose values are known.)
        """
        self.at_start = True
        if self.in_memory:
            self._evaluate(self.solver.point(self.problem, self.state), "solver")
            self.news = None
        return self.record("certified")

    def _wants_evaluation(self, moved: bool) -> bool:
        counts, status = self.state.counts, self.status
        asks = status.evaluate not in ("no", "required")
        return self.schedule.wants(
            self.timetable, counts, status, moved, self.best.dual_density if asks else 0.0
        )

    def ended(self, record: Record) -> Reason | None:
        """Whether the solver is done, or nothing more can come of it. "Optimal" is said by a certificate
        alone.
        """
        found = self.status.ended
        certificate = record.output
        proven = (
            certificate.relative_gap <= self.settings.tol or certificate.gap <= 2.0 * certificate.rounding
        )
        if found is not None and (found.name != "optimal" or (record.kind == "certified" and proven)):
            return found
        if self._unchanged >= MAX_UNCHANGED or self._idle >= MAX_IDLE:
            return Reason(
                "stalled",
                f"{self.solver.name} finds nothing to improve at relative gap "
                f"{certificate.relative_gap:.3g}; "
                "rescale the columns of X or try another solver",
            )
        return None

    def evaluate(self, *, final: bool = False) -> Record:
        """Have the problem evaluate the solver's present point, and a better dual point if the solver makes
        one of it.

        That takes dual sweeps, which are training too: one round of them an epoch at most, however often a
        run is evaluated, and one in the end.
        """
        point = self.solver.point(self.problem, self.state)
        self._evaluate(point, "solver")
        assert self.news is not None
        self._values = self.news.primal, self.news.dual
        if final or self.visits - self.polished >= self.problem.epoch_size:
            self._improve_dual(point)
        self.timetable = self.schedule.after(
            self.timetable,
            self.state.counts,
            self.certificate.relative_gap,
            self.best.dual_density,
            expected=self.status.evaluate == "target_expected",
        )
        return self.record("certified")

    def _improve_dual(self, point: Point) -> None:
        self.polished = self.visits
        watch, news = Stopwatch(), self.news
        beta = self.solver.improve_dual(self.problem, self.best.beta, point.b, self.visits)
        self._certified(watch)
        if beta is not None:
            self._evaluate(point._replace(beta=beta), "polish")
            self.news = news

    def record(self, kind: Literal["certified", "estimate"]) -> Record:
        """A record of this moment."""
        counts = self.state.counts
        values: dict[str, float] = {}
        if kind == "certified":
            if self.settings.validate is not None:
                values["validation"] = self.validated
            for measure in self.settings.measures:
                values.update(measure(self.point, self.best.point))
        values.update(self.status.measures)
        return Record(
            kind,
            int(counts.visits),
            counts.visits / self.problem.epoch_size,
            int(counts.updates),
            int(counts.entries),
            self.seconds.training,
            self.seconds.certifying,
            self.seconds.compiling,
            self._in_form(self.certificate),
            self._in_form(self.problem.certificate(*self.current)),
            self._in_form(self.output_certificate),
            values,
            self.solver.at_work(self.state).name,
            int(counts.visits) // self.rows_per_iteration if self.rows_per_iteration else None,
        )

    @property
    def output_certificate(self) -> Certificate:
        """What is proven of the model that the run would hand back now."""
        if self.last is None:
            return self.certificate
        current, best = self.current, self.best
        return self.problem.certificate(current.primal, current.primal_error, best.dual, best.dual_error)

    @property
    def output(self) -> tuple[Floats, Intercept]:
        """That model: w and b."""
        return (self.best.w, self.best.b) if self.last is None else self.last

    def _in_form(self, certificate: Certificate) -> Certificate:
        return self.problem.in_form(certificate, self.settings.form)

    def run(self, callbacks: Sequence[Callback] = ()) -> Run:
        """All that is needed to go on later."""
        best = self.best
        kept = {callback.name: callback.memory for callback in callbacks if callback.name is not None}
        memory = {name: value for name, value in (self.memory | kept).items() if value is not None}
        return Run(
            format=FORMAT,
            solver=self.solver.identity,
            problem=self.problem.identity,
            state=self.state,
            w=best.w,
            b=best.b,
            beta=best.beta,
            value=best.value,
            current=self.current,
            timetable=self.timetable,
            polished=self.polished,
            seconds=self.seconds,
            memory=memory,
        )

    def _work(self) -> None:
        """Let the solver work for one quantum."""
        visits = self.visits
        left = self.schedule.budget(self.timetable, visits) if self.in_memory else math.inf
        most = min(self._quantum, self.settings.max_quantum, self.rules.allowance(visits))
        budget = int(max(1, min(left, most)))
        news, self.news = self.news, None
        watch = Stopwatch()
        self.state, self.status = self.steps.step(self.problem, self.state, budget, news)
        spent = self._trained(watch)
        done = self.visits - visits
        if done > 0 and spent > 0:
            self._quantum = int(min(max(done * QUANTUM / spent, 1), 8 * self._quantum, 2**62))

    def _take_evaluation(self) -> bool:
        """See what the problem found at a point that the solver carried through a pass over the data."""
        if self.status.evaluated is None:
            return False
        self._see(*self.status.evaluated, "solver", owned=True)
        self.timetable = self.timetable._replace(at=self.state.counts)
        return True

    def _evaluate(self, point: Point, origin: DualOrigin) -> None:
        watch = Stopwatch()
        self.news = self.problem.evaluate(point)
        self._see(point, self.news, origin)
        if 0.0 < self.settings.tol < self.certificate.relative_gap and self.best.is_hidden(self.news):
            self.news = self.problem.evaluate(point, compensated=True)
            self._see(point, self.news, origin)
        if not self.best.has_bound and not self.solver.dual_sweeps:
            self._see_scaled(point, self.news, origin)
        self._certified(watch)

    def _see_scaled(self, point: Point, found: Evaluation, origin: DualOrigin) -> None:
        """A poor lower bound, but one that makes the relative gap finite."""
        smaller = scaled(self.problem, point, found)
        if smaller is not None:
            self.best.see(smaller, self.problem.evaluate(smaller), origin, math.inf)
            self.certificate = self.best.certificate(self.problem)

    def _see(self, point: Point, found: Evaluation, origin: DualOrigin, *, owned: bool = False) -> None:
        merit = None
        if self.settings.validate is not None:
            merit = self.validated = self.settings.validate(point)
        self.best.see(point, found, origin, merit, owned=owned)
        self.certificate = self.best.certificate(self.problem)
        if origin == "solver":
            self.point, self.current = point, Value.of(found)
            if self.settings.output == "last":
                self.last = (point.w if owned else point.w.copy()), kept(point.b)

    def _trained(self, watch: Stopwatch) -> float:
        elapsed = watch.elapsed()
        self.seconds = self.seconds.trained(elapsed)
        return elapsed.working

    def _certified(self, watch: Stopwatch) -> None:
        self.seconds = self.seconds.certified(watch.elapsed())
