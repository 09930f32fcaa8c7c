"""``fit``: the functional face of the library, from arrays to an outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from .core.bias import Bias, make_bias
from .core.losses import Loss, make_loss
from .core.problem import Form, Point, Problem
from .data.chunks import OnDisk
from .data.dataset import Dataset, DataSpec
from .inputs import data_of, held_out, opened
from .models.model import Model
from .runtime.checks import functions, number, shown, whole
from .runtime.errors import InputError
from .solvers import check_from_disk, check_regulariser, check_seed, make_solver
from .solvers.auto import choose
from .training.callbacks import Callback, as_callback
from .training.interruption import CtrlC
from .training.jobs import Job
from .training.loop import Measures, Running, Settings, running, solve
from .training.outcome import Outcome
from .training.records import Record
from .training.run import Run
from .training.schedule import Size
from .training.solver import AnySolver
from .training.stopping import GapBelow, MaxEpochs, MaxVisits, NotImproving, Rules, Stalled, TimeLimit
from .training.validation import Validation
from .warm_starts import run_to_resume, starting_point

_OTHERS = "scikit-learn's SGDClassifier and LogisticRegression(solver='saga'), skglm and celer offer it"


def fit(
    X: Any,
    y: Any = None,
    *,
    loss: str | Loss = "hinge",
    C: float | None = None,
    lam: float | None = None,
    solver: str = "auto",
    tol: float = 1e-3,
    bias: str | Bias = "none",
    rho: float = 1.0,
    sample_weight: Any = None,
    max_epochs: float | None = 1000,
    max_visits: int | None = None,
    time_limit: float | None = None,
    threads: int = 1,
    seed: int = 0,
    callbacks: Sequence[Callback | Callable[[Record, Run], Any]] = (),
    measures: Sequence[Measures] = (),
    record_every: int | None = None,
    warm: Outcome | Model | Point | None = None,
    resume: Run | Outcome | None = None,
    validation: Any = None,
    patience: int = 5,
    penalty: str = "l2",
    in_memory: bool | None = None,
    memory_budget: int | None = None,
    expand: Any = None,
    hash_bits: int | None = None,
    **options: Any,
) -> Outcome:
    """Train a linear model and prove how good it is.

    Minimises ``1/2 |w|^2 + C sum_i c_i phi_i`` (given ``C``) or ``lam/2 |w|^2 + 1/N sum_i c_i phi_i`` with
    ``N = sum c_i`` (given ``lam``); the two agree at ``C = 1/(lam N)``.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d), or a path, a Store, a ChunkFeed, a DataSpec or a Dataset
        Float32 and float64 are used as they are, without a copy. A file is svmlight text, a store or a
        Parquet file (labels in its column ``label``); rows of the latter two that do not fit into memory stay
        on disk.
    y : array of n labels
        Two distinct labels for a classification loss, numbers or words (the larger one counts as +1), any
        numbers for regression.
    loss : str or loss
        ``"hinge"``, ``"logistic"``, ``"huber:threshold=2"``...; ``dualgap losses`` lists them. Underscores
        will do for hyphens, and scikit-learn's names for the same functions: ``"log_loss"``,
        ``"squared_error"``...
    C, lam : float
        Give one of the two; ``C=1`` if neither. ``C=inf`` is the hard margin (hinge loss, ``bias="exact"``).
    solver : str
        ``"auto"`` or one that ``dualgap solvers`` lists.
    tol : float
        The relative gap at which to stop: the objective is then proven to be at most that fraction above its
        minimum.
    bias : {"none", "augmented", "exact"}
        ``"augmented"`` adds a constant feature ``rho``, regularised like the others; ``"exact"`` is not
        regularised.
    sample_weight : array of n numbers >= 0
        Weight 2 is the row twice, weight 0 is no row.
    max_epochs, max_visits, time_limit : numbers or None
        Limits: epochs (visits of rows over their number), visits of rows, seconds. ``decomposition`` and
        ``smo`` count the rows that they move, not all that they read. Some solvers (``newton``, ``asdca``,
        ``svmperf``, ``ocas``, ``decomposition``, ``smo``) pass a limit by up to one of their steps; the
        reason then says how far they came.
    threads : int
        Threads for passes over all rows.
    seed : int
        The same seed gives the same model, bit for bit.
    callbacks : list of functions of (record, run), or of Callback objects
        Called with every record and the run as it is then, which ``save_state`` can write to a file.
        Something true that one returns ends the run; a sentence becomes the reason.
    measures : functions of a Point that return a dict of numbers
        Stored in every certified record (a validation error, say).
    record_every : int
        Certify after every so many visits, besides the certificates of a schedule that keeps them
        cheap.
    validation : float, pair (X, y), path or Dataset
        Hold out that part of the rows, or these, and stop early: when the loss on them has not fallen for
        ``patience`` certificates, one an epoch unless ``record_every`` says otherwise. The best model on them
        is handed back. A part of the rows is held out by giving them weight 0 in ``outcome.problem``:
        ``outcome.dual`` has an entry for every row, and those of held-out rows do not count.
    in_memory : bool, optional
        False leaves the rows of a store or a feed on disk even if they fit into memory, True reads them all.
        By default their size decides.
    memory_budget : int, optional
        Bytes for rows of a store or a feed, what is being read, and working copies of duals and weights;
        duals and weights themselves (8 bytes a row, 24 a column) come on top. What does not fit is streamed
        (``cached-loops`` by default). Without it rows are streamed if they need more than 60% of the free
        memory, with a warning.
    expand : str or transformer, optional
        Features made as rows are read, and again when predicting: ``"poly2"``, ``"kmer:8"``, or any
        transformer of scikit-learn that needs no fitting. ``outcome.expansion`` has it.
    hash_bits : int
        ``poly2`` and ``kmer`` have ``2**hash_bits`` columns (20 by default).
    warm : Outcome, Model or Point
        Where the run starts: the best point of another run, a saved model, or any point.
    resume : Run or Outcome
        A run to go on with, bit for bit as if it had never stopped (``outcome.run``, ``load_state``). Solver,
        options, data, targets, weights, loss, lam or C and bias must be those that it was made with. Limits
        count from its beginning.
    **options
        Options of the solver; ``dualgap solvers`` lists them.

    Returns
    -------
    Outcome
        ``coef``, ``intercept``, ``dual``, ``certificate``, ``trace``, ``reason``, ``converged``, ``solver``,
        ``state``. ``dual`` holds one signed number beta_i a row: ``w(beta) = C sum_i c_i beta_i x_i``, and
        the lower bound is ``-C sum_i c_i phi*(-beta_i) - 1/2 |w(beta)|^2``, which for the hinge, where beta_i
        lies between 0 and y_i, is ``C sum_i c_i y_i beta_i - 1/2 |w(beta)|^2`` (given ``lam``: C = 1/(lam N),
        and the bound times lam). Ctrl-C ends a run early with the best model so far and ``reason.name ==
        "interrupted"``.
    """
    prepared = _prepared(locals())
    task = prepared.task
    outcome = solve(task.solver, task.problem, prepared.rules, prepared.settings, prepared.callbacks)
    return task.named(outcome)


def job(
    key: Any,
    X: Any,
    y: Any = None,
    *,
    adapt: Callable[[AnySolver], tuple[AnySolver, float]] | None = None,
    **arguments: Any,
) -> Job:
    """A run of ``fit`` with these arguments, for ``run_jobs``.

    ``adapt`` makes of the solver one that takes turns with others, and says how many visits a turn has.
    """
    bound = signature(fit).bind(X, y, **arguments)
    bound.apply_defaults()
    task, rules, settings, callbacks = _prepared(bound.arguments)
    if adapt is not None:
        solver, quantum = adapt(task.solver)
        task, settings = task._replace(solver=solver), replace(settings, max_quantum=quantum)

    def begin(ctrl_c: CtrlC) -> Running:
        run = running(task.solver, task.problem, rules, settings, callbacks, ctrl_c)
        return task.named((yield from run))

    return Job(key, begin)


def plan(X: Any, y: Any = None, **arguments: Any) -> list[str]:
    """What ``fit`` with the same arguments would do, and what the theory of its solver promises, in
    sentences.

    Takes all that ``fit`` takes. Bad data and bad options raise the same errors as in ``fit``.
    """
    bound = signature(fit).bind(X, y, **arguments)
    bound.apply_defaults()
    task = _prepared(bound.arguments).task
    problem, solver = task.problem, task.solver
    source, size = problem.source, Size.of(problem)
    share = size.evaluation_cost() / size.training_cost(size.epoch)
    chosen = f" (chosen as {task.auto_reason})" if task.auto_reason else ""
    in_c_form = f", {problem.value_at_zero / problem.lam:.6g} in C-form" if problem.lam > 0.0 else ""
    often = "they are meant to take a quarter of the time at most"
    if solver.capabilities.evaluated_steps:
        often = "each step begins with one"
    return [
        f"solver {solver.name}: {solver.summary}{chosen}",
        f"{problem.epoch_size:,} rows, {source.d:,} features, {source.nnz:,} nonzeros; C = {problem.C:.6g}, "
        f"lam = {problem.lam:.6g}",
        f"at w = 0 the objective is {problem.value_at_zero:.6g} in mean form{in_c_form}",
        f"a certificate costs about as much as {share:.2g} epochs; {often}",
        *solver.plan(problem, task.tol),
    ]


class Prepared(NamedTuple):
    """A run that has been checked and can begin."""

    task: Task
    rules: Rules
    settings: Settings
    callbacks: list[Callback]


def _prepared(given: Mapping[str, Any]) -> Prepared:
    """Check all arguments of ``fit``, by their names, and open the data."""
    if given["penalty"] != "l2":
        raise InputError(
            f"penalty={shown(given['penalty'])} is not offered: dualgap regularises by the squared l2 norm "
            f"only; {_OTHERS}"
        )
    record_every, measures = given["record_every"], given["measures"]
    if record_every is not None:
        record_every = whole("record_every", record_every, 1)
    callbacks = functions("callbacks", given["callbacks"], "functions of (record, run)")
    measures = functions("measures", measures, "functions of a Point that return a dict")
    names = ("loss", "C", "lam", "solver", "tol", "bias", "rho", "seed", "options", "validation")
    limits = Limits(given["max_epochs"], given["max_visits"], given["time_limit"])
    task = prepare(data_of(given), limits=limits, **{name: given[name] for name in names})
    rules, problem = task.rules, task.problem
    if task.validate is not None:
        rules = rules | NotImproving(whole("patience", given["patience"], 1))
        record_every = record_every or problem.epoch_size
    if record_every is not None and not problem.source.in_memory:
        if task.validate is None:
            raise InputError(
                f"record_every={record_every}: rows on disk are certified once a pass, in passing"
            )
        record_every = None
    settings = Settings(
        tol=task.tol,
        form=task.form,
        record_every=record_every,
        measures=[_measure(each) for each in measures],
        validate=task.validate,
        warm=starting_point(given["warm"], task.classes, problem),
        resume=run_to_resume(given["resume"], given["warm"]),
        auto_reason=task.auto_reason,
    )
    patient = max(1000 * problem.epoch_size, 200_000)  # on tiny data a thousand epochs are nothing
    listeners = [as_callback(each) for each in callbacks]
    return Prepared(task, rules | Stalled(patient), settings, listeners)


class Limits(NamedTuple):
    """Where a run ends at the latest."""

    max_epochs: float | None
    max_visits: int | None
    time_limit: float | None

    def rules(self, tol: float, epoch_size: int) -> Rules:
        """Stop at the gap, or at a limit."""
        rules = Rules((GapBelow(tol),))
        if self.max_visits is not None:
            rules = rules | MaxVisits(whole("max_visits", self.max_visits, 1))
        if self.max_epochs is not None:
            rules = rules | MaxEpochs(number("max_epochs", self.max_epochs), epoch_size)
        if self.time_limit is not None:
            rules = rules | TimeLimit(number("time_limit", self.time_limit))
        return rules


class Task(NamedTuple):
    """What is to be solved, by whom, until when."""

    problem: Problem
    solver: AnySolver
    rules: Rules
    form: Form
    classes: Any
    validate: Validation | None
    auto_reason: str  # "auto" chose this solver
    tol: float  # the relative gap asked for
    data: Dataset

    def named(self, outcome: Outcome) -> Outcome:
        """The outcome with what the loop does not know: labels, expansion, the reason of ``auto``."""
        return replace(
            outcome, classes=self.classes, expansion=self.data.schema.expansion, auto_reason=self.auto_reason
        )


def prepare(
    rows: DataSpec | Dataset,
    loss: str | Loss,
    C: float | None,
    lam: float | None,
    solver: str,
    tol: float,
    bias: str | Bias,
    rho: float,
    limits: Limits,
    seed: int,
    options: dict[str, Any],
    validation: Any = None,
) -> Task:
    """Check everything; nothing is computed yet that takes long."""
    tol, seed = number("tol", tol, zero=True), check_seed(seed)
    chosen, kind = make_loss(loss), make_bias(bias, rho)
    data = opened(rows, chosen.task, depth=4)
    source, held = held_out(validation, data, chosen.task, seed)
    classes = None if data.labels is None else data.labels.classes
    if isinstance(C, float | np.floating) and math.isinf(C) and C > 0 and lam is None:
        if chosen.hard_margin is None:
            raise InputError(
                f"C={C!r} is the hard margin, which belongs to the hinge loss and not to {chosen.name!r}"
            )
        chosen, C = chosen.hard_margin, 1.0  # J is then 1/2 |w|^2
    lam, form = strength(C, lam, source.total_weight)
    problem = Problem(source, chosen, lam, kind)
    name, why = choose(problem, options) if isinstance(solver, str) and solver == "auto" else (solver, "")
    if isinstance(source, OnDisk):
        check_from_disk(name, problem.bias.kind)
        source.check = problem.check_targets
    trainer = make_solver(name, options, seed=seed, loss=chosen, bias=problem.bias.kind)
    check_regulariser(name, lam)
    trainer = trainer.resolved(problem)
    rules = limits.rules(tol, problem.epoch_size)
    trainer.check(problem, rules.allowance(0))
    validate = None if held is None else Validation(held, chosen)
    return Task(problem, trainer, rules, form, classes, validate, why, tol, data)


def strength(C: float | None, lam: float | None, weight: float) -> tuple[float, Form]:
    """Lam, and the form of the objective that the caller thinks in."""
    if C is not None and lam is not None:
        raise InputError(
            f"both C={shown(C)} and lam={shown(lam)} are given; give one (C = 1/(lam N), N the sum of the "
            "weights)"
        )
    if lam is not None:
        return number("lam", lam, zero=True), "mean"
    given = number("C", 1.0 if C is None else C)
    low, high = 1e-100 / weight, 1e100 / weight  # the same range for lam
    if not low <= given <= high:
        raise InputError(
            f"C={given!r} is out of range: for these rows it must lie between {low:.3g} and {high:.3g}"
        )
    return 1.0 / (given * weight), "J"


def _measure(function: Measures) -> Measures:
    """The same function, with its results checked."""

    def measured(point: Point) -> dict[str, float]:
        found: Any = function(point)
        if not isinstance(found, dict):
            name = getattr(function, "__name__", "a measure")
            raise InputError(f"measures: {name} returned {shown(found)}; it must return a dict of numbers")
        return found

    return measured
