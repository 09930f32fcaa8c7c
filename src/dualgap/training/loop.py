"""The training loop, the only one in the project.

``iterate`` lets a solver work in quanta, has the problem evaluate its points on a schedule, keeps the best
primal and the best dual point seen, and yields a record after every quantum, for ever. ``solve`` shows the
records to watchers and stopping rules and hands back an outcome.

The schedule counts work and never looks at a clock, so a run is the same on a fast machine as on a slow one.
A clock decides only how long one call of a solver lasts (some 0.2 s, so that Ctrl-C, time limits and progress
stay live); solvers promise that it makes no difference into which budgets their work is cut.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..core.problem import Certificate, Evaluation, Form, Identity, Point, Problem
from ..runtime.arrays import Floats
from ..runtime.counts import Counts as Counts
from ..runtime.errors import InputError
from .stopping import Reason, Rule

SHARE = 0.3  # time for evaluations over time for training: less than a quarter of the whole
SELDOM = 0.15  # the same where the solver can tell how far it is, and nothing calls for an evaluation
PROMISE = 2.0  # and, at most, where it believes that the gap asked for is reached
EARLY, LATE = 4, 8  # epochs until the first evaluation at most; LATE if the solver can tell how far it is
CAUTION = 0.25  # by how much smaller a gap it must believe in where an evaluation takes an epoch
AIM = 1.25  # times the work after which the gap asked for is expected: the next evaluation may come then
SOONER, LATER = 0.3, 2.0  # times the usual period, if that is between these two
HURRY = 0.6  # time for evaluations over time for training, at most, where one comes sooner than usual
OUTSET = 3.0  # the relative gap from which the first evaluation's is taken to have fallen
QUANTUM = 0.2  # seconds that one call of a solver should last
HASTE = 0.5  # after Ctrl-C, an evaluation that takes longer than this is not waited for
STILL, CRAWL = 3, 10_000  # evaluations in a row without a visit after which a run ends: all alike, or any

Measures: TypeAlias = Callable[[Point], dict[str, float]]
DualOrigin: TypeAlias = Literal["none", "warm start", "solver", "polish"]


class State(Protocol):
    """A NamedTuple of arrays and numbers, the random generator's words and the counts among them."""

    @property
    def counts(self) -> Counts: ...
    @property
    def paused(self) -> bool: ...  # the solver stopped by itself: a good moment to evaluate


class Solver(Protocol):
    """A frozen dataclass whose fields are its options."""

    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    def start(self, problem: Problem, warm: Point | None) -> Any: ...
    def step(self, problem: Problem, state: Any, budget: int, last: Evaluation | None) -> Any: ...
    def point(self, problem: Problem, state: Any) -> Point: ...
    def finished(self, state: Any) -> Reason | None: ...


@dataclass(frozen=True)
class Record:
    """The state of a run at one moment.

    ``kind`` is "certified" where the certificate was computed at this moment; an "estimate" repeats the last
    one and only brings the counts up to date.
    """

    kind: Literal["certified", "estimate"]
    visits: int
    epochs: float
    updates: int
    entries: int
    train_seconds: float
    certify_seconds: float
    certificate: Certificate
    measures: dict[str, float]

    @property
    def seconds(self) -> float:
        """Training and certifying together."""
        return self.train_seconds + self.certify_seconds

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, for JSON."""
        values = {
            "kind": self.kind,
            "steps": self.visits,
            "epochs": self.epochs,
            "updates": self.updates,
            "entries": self.entries,
            "seconds": self.seconds,
            "train_seconds": self.train_seconds,
            "certify_seconds": self.certify_seconds,
            **self.certificate._asdict(),
            **({"measures": self.measures} if self.measures else {}),
        }
        values["objective"] = values.pop("form")
        return values


class Value(NamedTuple):
    """A primal and a dual value in mean form, with bounds on their rounding errors."""

    primal: float
    primal_error: float
    dual: float
    dual_error: float

    def agrees(self, other: Value) -> bool:
        """Whether both may be the values of one point of one problem."""
        primal = abs(self.primal - other.primal) <= self.primal_error + other.primal_error
        dual = abs(self.dual - other.dual) <= self.dual_error + other.dual_error
        return (primal or self.primal == other.primal) and (
            dual or self.dual == other.dual
        )  # they may be infinite


class Run(NamedTuple):
    """Everything that a run needs to go on as if it had never stopped: ``np.savez`` of it is a checkpoint."""

    name: str  # of the solver
    problem: Identity
    solver: Any  # the solver's State
    w: Floats  # the best primal point so far
    b: float
    beta: Floats  # the best dual point so far
    value: Value  # of these two
    evaluated: Counts  # at the last evaluation
    due: int  # row presentations at which the next one is due
    evaluations: int  # so far
    gap: float  # relative, at the last one
    polished: int  # row presentations when the dual point was last improved apart from the solver


@dataclass(frozen=True, eq=False)
class Outcome:
    """A model with its proof and its history.

    ``dual`` is the dual point behind the lower bound: one signed number beta_i a row (-beta_i is a slope of
    its loss), with ``w(beta) = 1/(lam N) sum_i c_i beta_i x_i = C sum_i c_i beta_i x_i``. It is None where no
    dual point beats the trivial one, beta = 0. ``LinearSVC.dual_``, ``Point.beta`` and model files have the
    same scale.
    """

    coef: Floats
    intercept: float
    dual: Floats | None
    certificate: Certificate
    trace: list[Record]
    reason: Reason
    converged: bool
    solver: Solver
    problem: Problem
    state: Run
    dual_origin: DualOrigin = (
        "none"  # whose dual point the bound is: the solver's own, or improved by dual sweeps
    )
    interrupted: bool = (
        False  # Ctrl-C was pressed, even if the run ended for another reason at that very moment
    )
    classes: Any = None  # the two labels behind -1 and +1, in that order, where ``fit`` translated them
    expansion: Any = None  # what made the features of the rows, if anything did
    auto_reason: str = ""  # ``solver="auto"`` chose this solver


@dataclass
class _Best:
    """The best primal and the best dual point seen, which may come from different moments."""

    merit: float = math.inf
    primal: float = math.inf
    primal_error: float = 0.0
    dual: float = -math.inf
    dual_error: float = 0.0
    w: Floats = field(default_factory=lambda: np.zeros(0))
    b: float = 0.0
    beta: Floats = field(default_factory=lambda: np.zeros(0))
    origin: DualOrigin = "none"

    def see(
        self,
        point: Point,
        found: Evaluation,
        origin: DualOrigin,
        merit: float | None = None,
        *,
        frozen: bool = False,
    ) -> None:
        """The model with the smallest merit counts; that is the primal value, unless another measure is
        given.

        A frozen point is nobody else's, and is kept as it is.
        """
        merit = found.primal + found.primal_error if merit is None else merit
        if merit < self.merit:
            self.merit = merit
            self.primal, self.primal_error = found.primal, found.primal_error
            self.w, self.b = point.w if frozen else point.w.copy(), float(point.b)
        if found.dual - found.dual_error > self.dual - self.dual_error:
            self.dual, self.dual_error = found.dual, found.dual_error
            beta = np.zeros_like(self.beta) if point.beta is None else point.beta
            self.beta = beta if frozen or point.beta is None else beta.copy()
            self.origin = origin

    def certificate(self, problem: Problem) -> Certificate:
        return problem.certificate(self.primal, self.primal_error, self.dual, self.dual_error)


def evaluation_cost(problem: Problem, duals: float = 0.0) -> float:
    """Roughly how many nanoseconds an evaluation takes: it reads all entries in order, and has work a row and
    a column.

    Rows with duals, a share ``duals`` of all, are added up besides. The figures here and in ``training_cost``
    were measured on one machine. They enter the schedule as fixed numbers, so the schedule depends on counts
    alone; elsewhere they need only be right in proportion.
    """
    source = problem.source
    gather = (
        1.0 + 1.2 * min(1.0, source.d / 60_000) + 2.0 * min(1.0, source.d / 1_200_000)
    )  # wider than the caches
    add = (0.6 + min(1.0, source.d / 30_000)) * duals
    return (gather + add) * source.nnz + 12.0 * source.n + 4.0 * source.d + 80_000.0


def training_cost(problem: Problem, counts: Counts) -> float:
    """The same for row visits in random order, which cost more where rows and model do not fit into the
    caches.
    """
    source = problem.source
    entry = 1.2 + 1.2 * min(1.0, source.nnz / 4_000_000) + 0.9 * min(1.0, source.d / 1_200_000)
    return entry * counts.entries + 30.0 * counts.visits


def _copy(state: Any) -> Any:
    """A state that a solver may change without changing the one it came from."""
    if hasattr(state, "_fields"):
        return type(state)(*map(_copy, state))
    return state.copy() if isinstance(state, np.ndarray) else state


def _alike(fresh: Any, state: Any) -> bool:
    """Whether a state is one that a solver with these options may have; those that grow say so."""
    if hasattr(fresh, "_fields"):
        same = type(fresh) is type(state)
        return same and (getattr(fresh, "grows", False) or all(map(_alike, fresh, state)))
    if isinstance(fresh, np.ndarray):
        return isinstance(state, np.ndarray) and (fresh.dtype, fresh.shape) == (state.dtype, state.shape)
    return True


class Loop:
    """One run under way. ``iterate`` yields its records; ``solve`` reads the best point from it at the
    end.
    """

    def __init__(
        self,
        solver: Solver,
        problem: Problem,
        *,
        warm: Point | Run | None = None,
        measures: Sequence[Measures] = (),
        record_every: int | None = None,
        form: Form = "mean",
        validate: Callable[[Point], float] | None = None,
        most: int | None = None,
        tol: float = 0.0,
    ) -> None:
        self.tol = tol
        self.most = math.inf if most is None else most  # visits in one call of the solver
        self.solver, self.problem, self.measures, self.form = solver, problem, measures, form
        self.validate = validate
        self.validated = math.inf  # the last model's
        self.record_every = record_every
        self.train_seconds = self.certify_seconds = 0.0
        self.best = _Best(w=np.zeros(problem.source.d), beta=np.zeros(problem.source.n))
        self.last: Evaluation | None = None
        self.allowance: Callable[[int], float] = lambda visits: math.inf
        self._chunk = 10_000
        sweeps = getattr(
            solver, "polish", 0
        )  # each costs about three evaluations, and the result another one
        self._cost_factor = 2.0 + 3.0 * sweeps if sweeps else 1.0  # that one counts as
        self._evaluations = 0
        self._polished = (
            -problem.epoch_size
        )  # visits at which the dual point was last improved apart from the solver
        self._idle = self._still = 0
        self._values = math.nan, math.nan  # primal and dual, of the solver's point when it was last evaluated
        self._share, self._first = (SELDOM, LATE) if hasattr(solver, "aim") else (SHARE, EARLY)
        self._gap = OUTSET
        self._epoch = Counts(
            problem.source.n, 0, int(1.5 * problem.source.nnz)
        )  # of dots, and adds for every other
        zero, evaluated = problem.zero_point()
        self.best.see(zero, evaluated, "none", None if validate is None else validate(zero))
        self.certificate = self.best.certificate(problem)
        began = time.perf_counter()
        if isinstance(warm, Run) and not self._continues(warm):
            warm = Point(warm.w, warm.b, warm.beta)  # a starting point, and not a state to go on from
        if isinstance(warm, Run):
            self.state, self.evaluated, self.due = _copy(warm.solver), warm.evaluated, warm.due
            self._evaluations, self._gap, self._polished = warm.evaluations, warm.gap, warm.polished
        else:
            self.state, self.evaluated = solver.start(problem, warm), Counts()
            self.due = self._due(self._period(self._epoch))
        if hasattr(solver, "aim"):  # it can tell roughly how far it is
            dear = evaluation_cost(problem, 0.5) / training_cost(problem, self._epoch)
            self.state = solver.aim(self.state, tol / (1.0 + CAUTION * dear))
        self.train_seconds += time.perf_counter() - began
        if isinstance(warm, Run):
            self.last = None
            if (
                self.visits == self.evaluated.visits and not self._rides()
            ):  # bring back what the solver was to be told
                self._evaluate(solver.point(problem, self.state), "solver")
        elif warm is not None:
            self._evaluate(warm, "warm start")
            self._evaluate(solver.point(problem, self.state), "solver")
        self._fresh = warm is not None

    def _continues(self, run: Run) -> bool:
        """Whether a run is one of this solver and this problem: its best point must still have the value it
        had.
        """
        if run.name != self.solver.name or run.problem != self.problem.identity:
            return False
        if not _alike(self.solver.start(self.problem, None), run.solver):  # of other options
            return False
        self._evaluate(Point(run.w, run.b, run.beta), "warm start")
        found = self.last
        assert found is not None
        return run.value.agrees(Value(found.primal, found.primal_error, found.dual, found.dual_error))

    @property
    def visits(self) -> int:
        """Row presentations so far."""
        return int(self.state.counts.visits)

    def __iter__(self) -> Iterator[Record]:
        if self._fresh:  # a warm start may be good enough as it is
            yield self.record("certified")
        while True:
            visits = self.visits
            self._work()
            if self._rides():  # the solver's own passes over the data carry the certificates
                yield self.record("certified" if self._take_evaluation() else "estimate")
            elif self.visits > visits:
                self._idle = self._still = 0
                yield self.evaluate() if self._is_due() else self.record("estimate")
            else:  # whatever the schedule says: no limit that counts visits could ever end this run
                before = self._values
                record = self.evaluate()
                self._idle += 1
                self._still = self._still + 1 if self._values == before else 0
                yield record

    def ended(self, record: Record) -> Reason | None:
        """Whether the solver is done, or nothing more can come of it. "Optimal" is said by a certificate
        alone.
        """
        found = self.solver.finished(self.state)
        certificate = record.certificate
        proven = certificate.relative_gap <= self.tol or certificate.gap <= 2.0 * certificate.rounding
        if found is not None and (found.name != "optimal" or (record.kind == "certified" and proven)):
            return found
        if self._still >= STILL or self._idle >= CRAWL:
            return Reason(
                "stalled",
                f"{self.solver.name} finds nothing to improve at relative gap "
                f"{certificate.relative_gap:.3g}; "
                "rescale the columns of X or try another solver",
            )
        return None

    def _is_due(self) -> bool:
        """Whether the solver's point is to be evaluated now.

        Where a solver pauses by itself is a good moment, if evaluating stays cheap.
        """
        every = self.record_every
        if every and self.visits // every > self.evaluated.visits // every:
            return True
        if self._strict:
            return False
        return self.visits >= self.due or (self.state.paused and self._affordable())

    @property
    def _strict(self) -> bool:
        """Early stopping counts evaluations: it gets those of ``record_every`` and no others."""
        return self.record_every is not None and self.validate is not None

    def _affordable(self) -> bool:
        """Whether another evaluation keeps all of them cheap, is likely the last, or is part of the solver's
        work.
        """
        if getattr(self.solver, "evaluated_steps", False):
            return True
        most = PROMISE if getattr(self.state, "hopeful", False) else SHARE
        return (self._evaluations + 1) * self._cost() <= most * training_cost(self.problem, self.state.counts)

    def _cost(self) -> float:
        """Of an evaluation, roughly."""
        duals = np.count_nonzero(self.best.beta) / max(1, self.best.beta.size)
        return self._cost_factor * evaluation_cost(self.problem, duals)

    def _rides(self) -> bool:
        return not self.problem.source.in_memory

    def failure(self) -> Reason | None:
        """What went wrong with the data under way; what has been learned until then is not lost."""
        ask = getattr(self.solver, "failure", None)
        message = None if ask is None else ask(self.problem)
        return None if message is None else self.broken(message)

    def broken(self, message: str) -> Reason:
        """The reason where the data fail."""
        return Reason("broken", f"{message} (this is the best model so far)")

    def _take_evaluation(self) -> bool:
        """See what the problem found at a point that the solver carried through a pass over the data."""
        ready: Any = self.solver
        found = ready.evaluated(self.problem, self.state)
        if found is None:
            return False
        point, evaluation = found
        self._see(point, evaluation, "solver", frozen=True)
        self.evaluated = self.state.counts
        return True

    def evaluate(self, *, final: bool = False) -> Record:
        """Have the problem evaluate the solver's present point, and a better dual point if the solver makes
        one of it.

        That takes dual sweeps, which are training too: one round of them an epoch at most, however often a
        run is evaluated, and one in the end.
        """
        point = self.solver.point(self.problem, self.state)
        self._evaluate(point, "solver")
        improve = getattr(self.solver, "improve_dual", None)
        if improve is not None and (final or self.visits - self._polished >= self.problem.epoch_size):
            self._polished = self.visits
            began, last = time.perf_counter(), self.last
            beta = improve(self.problem, self.best.beta, point.b, self.visits)
            self.certify_seconds += time.perf_counter() - began
            if beta is not None:
                self._evaluate(point._replace(beta=beta), "polish")
                self.last = last
        assert self.last is not None
        self._values = self.last.primal, self.last.dual
        self._evaluations += 1
        counts = self.state.counts
        since = Counts(*(now - then for now, then in zip(counts, self.evaluated, strict=True)))
        self.evaluated = counts
        if since.visits > 0:
            self.due = self._due(self._aimed(self._period(since), since))
        self._gap = self.certificate.relative_gap
        return self.record("certified")

    def record(self, kind: Literal["certified", "estimate"]) -> Record:
        """A record of this moment."""
        counts = self.state.counts
        values: dict[str, float] = {}
        if kind == "certified":
            if self.validate is not None:
                values["validation"] = self.validated
            for measure in self.measures:
                values.update(measure(Point(self.best.w, self.best.b, self.best.beta)))
        figures = getattr(self.solver, "figures", None)
        if figures is not None:
            values.update(figures(self.problem, self.state))
        return Record(
            kind,
            int(counts.visits),
            counts.visits / self.problem.epoch_size,
            int(counts.updates),
            int(counts.entries),
            self.train_seconds,
            self.certify_seconds,
            self.problem.in_form(self.certificate, self.form),
            values,
        )

    def run(self) -> Run:
        """All that is needed to go on later."""
        best = self.best
        return Run(
            self.solver.name,
            self.problem.identity,
            self.state,
            best.w,
            best.b,
            best.beta,
            Value(best.primal, best.primal_error, best.dual, best.dual_error),
            self.evaluated,
            self.due,
            self._evaluations,
            self._gap,
            self._polished,
        )

    def _period(self, recent: Counts) -> int:
        """Row visits until the next evaluation, such that evaluating takes less than a quarter of the time.

        On tiny data that is hundreds of epochs, which take no time and look odd, and on very wide data too
        many: there the first evaluations come earlier, after 4, 8, 16... epochs.
        """
        period = math.ceil(self._cost() / self._share * recent.visits / training_cost(self.problem, recent))
        return max(1, min(period, max(self._first * self.problem.epoch_size, self.visits)))

    def _due(self, period: int) -> int:
        """The visits at which a period that begins now ends."""
        due = self.visits + period
        if getattr(self.solver, "in_epochs", False):  # its points are best where an epoch ends
            due += -due % self.problem.epoch_size
        return due

    def _aimed(self, period: int, recent: Counts) -> int:
        """The period, or what is left to the gap asked for where that is about as long and the gap falls on
        as it did.

        Runs are a few periods long, so ending them half a period late matters. A gap that does not fall as
        expected must not make evaluating expensive: hurrying has a budget of its own.
        """
        gap = self.certificate.relative_gap
        if not 0.0 < self.tol < gap < self._gap < math.inf:
            return period
        left = AIM * recent.visits * math.log(gap / self.tol) / math.log(self._gap / gap)
        if left > LATER * period:
            return period
        left = max(left, SOONER * period)
        counts = self.state.counts
        then = Counts(
            *(int(now + left / recent.visits * part) for now, part in zip(counts, recent, strict=True))
        )
        if left < period and (self._evaluations + 1) * self._cost() > HURRY * training_cost(
            self.problem, then
        ):
            return period
        return math.ceil(left)

    def _work(self) -> None:
        """Let the solver work for one quantum."""
        visits = self.visits
        left = math.inf if self._rides() or self._strict else self.due - visits
        if self.record_every:
            left = min(left, self.record_every - visits % self.record_every)
        budget = int(max(1, min(left, self._chunk, self.most, self.allowance(visits))))
        last, self.last = self.last, None  # told once: a checkpoint need not hold it
        began = time.perf_counter()
        self.state = self.solver.step(self.problem, self.state, budget, last)
        spent = time.perf_counter() - began
        self.train_seconds += spent
        done = self.visits - visits
        if done > 0 and spent > 0:
            self._chunk = int(min(max(done * QUANTUM / spent, 1), 8 * self._chunk, 2**62))

    def _evaluate(self, point: Point, origin: DualOrigin) -> None:
        began = time.perf_counter()
        self.last = self.problem.evaluate(point)
        self._see(point, self.last, origin)
        self.certify_seconds += time.perf_counter() - began

    def _see(self, point: Point, found: Evaluation, origin: DualOrigin, *, frozen: bool = False) -> None:
        merit = None
        if self.validate is not None:
            merit = self.validated = self.validate(point)
        self.best.see(point, found, origin, merit, frozen=frozen)
        self.certificate = self.best.certificate(self.problem)


def _hasty(reason: Reason, loop: Loop, trace: list[Record]) -> bool:
    """Whether there is no time, or no way, to evaluate the last point."""
    if reason.name == "broken":
        return True
    if not trace:
        return False
    if not loop.problem.source.in_memory:  # it takes a pass over the disk
        return reason.name in ("interrupted", "time_limit", "gap")
    return reason.name == "interrupted" and loop.certify_seconds > HASTE * len(trace)


class CtrlC:
    """While a run is on, the first Ctrl-C only raises a flag; a second one interrupts at once, as usual."""

    def __enter__(self) -> CtrlC:
        self.pressed = False
        self._before: Any = None
        self._here = threading.current_thread() is threading.main_thread()
        if self._here:
            self._before = signal.getsignal(signal.SIGINT)
            self._here = (
                self._before is signal.default_int_handler
            )  # leave an application's own handler alone
        if self._here:
            signal.signal(signal.SIGINT, self._press)
        return self

    def _press(self, number: int, frame: Any) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True

    def __exit__(self, *_: object) -> None:
        if self._here:
            signal.signal(signal.SIGINT, self._before)


def solve(solver: Solver, problem: Problem, rule: Rule, **options: Any) -> Outcome:
    """Train until the rule finds a reason to stop, or the solver is finished, or Ctrl-C is pressed; see
    `running`.
    """
    with CtrlC() as ctrl_c:
        run = running(solver, problem, rule, ctrl_c, **options)
        while True:
            try:
                next(run)
            except StopIteration as end:
                outcome: Outcome = end.value
                return outcome


def running(
    solver: Solver,
    problem: Problem,
    rule: Rule,
    ctrl_c: CtrlC,
    *,
    tol: float,
    warm: Point | Run | None = None,
    watchers: Sequence[Callable[[Record], None]] = (),
    measures: Sequence[Measures] = (),
    record_every: int | None = None,
    form: Form = "mean",
    validate: Callable[[Point], float] | None = None,
    most: int | None = None,
) -> Generator[Record, None, Outcome]:
    """A run that pauses at every record and returns its outcome, so that several can take turns.

    The model handed back is the one with the smallest primal value seen, or the smallest value of
    ``validate``.
    """
    trace: list[Record] = []

    def show(record: Record) -> None:
        if record.kind == "certified":
            trace.append(record)
        for watcher in watchers:
            watcher(record)

    reason: Reason | None = None
    run: Run | None = None
    try:
        loop = Loop(
            solver,
            problem,
            warm=warm,
            measures=measures,
            record_every=record_every,
            form=form,
            validate=validate,
            most=most,
            tol=tol,
        )
        loop.allowance = rule.allowance
        for record in loop:
            show(record)
            reason = rule(record) or loop.ended(record) or loop.failure()
            if ctrl_c.pressed:
                reason = reason or Reason("interrupted", "interrupted; this is the best model so far")
            if reason is None:
                yield record
                continue
            run = loop.run()  # taken first: evaluating now is no part of the run that goes on from here
            if loop.visits > loop.evaluated.visits and not _hasty(reason, loop, trace):
                if hasattr(solver, "close"):  # who reads the data now must be alone with them
                    solver.close(problem)
                try:
                    record = loop.evaluate(
                        final=True
                    )  # what was learned since the last certificate counts too
                except InputError as error:  # rows on disk that cannot be read any more: what is proven stays
                    if problem.source.in_memory:
                        raise
                    reason = loop.broken(str(error))
                    break
                show(record)
                reason = rule(record) or reason
            break
    finally:
        if hasattr(solver, "close"):  # threads and files end with the run
            solver.close(problem)
        for watcher in watchers:
            close = getattr(watcher, "close", None)
            if close is not None:
                close(reason)
    assert reason is not None  # the loop ends
    assert run is not None  # in no other way
    certificate = record.certificate
    dual = problem.bias.feasible(loop.best.beta, problem.source.weight) if loop.best.beta.any() else None
    return Outcome(
        loop.best.w,
        loop.best.b,
        dual,
        certificate,
        trace,
        reason,
        certificate.relative_gap <= tol,
        solver,
        problem,
        run,
        loop.best.origin,
        ctrl_c.pressed,
    )
