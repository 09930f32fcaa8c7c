"""``fit``: the functional face of the library, from arrays to an outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from .core.bias import Bias, make_bias
from .core.losses import Loss, hard_margin, make_loss
from .core.problem import Form, Point, Problem
from .data.chunks import OnDisk
from .data.dataset import Dataset, DataSpec
from .inputs import data_of, held_out, opened
from .models.model import Model
from .runtime.arrays import Floats
from .runtime.checks import functions, number, shown, whole
from .runtime.errors import InputError
from .solvers import check_from_disk, check_regulariser, check_seed, choose, make_solver
from .training.jobs import Job
from .training.loop import (
    Counts,
    CtrlC,
    Measures,
    Outcome,
    Record,
    Run,
    Solver,
    evaluation_cost,
    running,
    solve,
    training_cost,
)
from .training.stopping import Callback, GapBelow, NotImproving, Rule, Seconds, Stalled, epochs, steps
from .training.validation import Validation

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
    max_steps: int | None = None,
    time_limit: float | None = None,
    threads: int = 1,
    seed: int = 0,
    watchers: Sequence[Callable[[Record], None]] = (),
    callback: Callable[[Record], Any] | None = None,
    measures: Sequence[Measures] = (),
    record_every: int | None = None,
    warm: Outcome | Run | Model | Point | None = None,
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
    max_epochs, max_steps, time_limit : numbers or None
        Limits: row presentations in units of n, row presentations, seconds. ``decomposition`` and ``smo``
        count the rows that they move, not all that they read. Some solvers (``newton``, ``asdca``,
        ``svmperf``, ``ocas``, ``decomposition``, ``smo``) pass a limit by up to one of their steps; the
        reason then says how far they came.
    threads : int
        Threads for passes over all rows.
    seed : int
        The same seed gives the same model, bit for bit.
    watchers : functions of a Record
        Called with every record; they cannot stop a run.
    callback : function of a Record
        Stops the run by returning something true; a sentence becomes the reason.
    measures : functions of a Point that return a dict of numbers
        Stored in every certified record (a validation error, say).
    record_every : int
        Certify after every so many row presentations, besides the certificates of a schedule that keeps them
        cheap.
    validation : float, pair (X, y), path or Dataset
        Hold out that part of the rows, or these, and stop early: when the loss on them has not fallen for
        ``patience`` certificates, one an epoch unless ``record_every`` says otherwise. The best model on them
        is handed back.
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
    warm : Outcome, Run, Model or Point
        An outcome of the same solver and problem (data, targets, weights, loss, lam or C, bias) goes on where
        it ended, bit for bit. One of another problem, a saved model, or a point is where the run starts.
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
    for watcher in prepared.told["watchers"]:
        begin = getattr(watcher, "begin", None)
        if begin is not None:
            begin(prepared.task)
    return prepared.named(solve(*prepared[:3], **prepared.told))


def job(
    key: Any, X: Any, y: Any = None, *, most: Callable[[Any], int] | None = None, **arguments: Any
) -> Job:
    """A run of ``fit`` with these arguments, for ``run_jobs``.

    ``most`` tells from the solver how many visits may pass before another run has its turn.
    """
    bound = signature(fit).bind(X, y, **arguments)
    bound.apply_defaults()
    prepared = _prepared(bound.arguments)
    told = prepared.told if most is None else {**prepared.told, "most": most(prepared.solver)}

    def begin(ctrl_c: CtrlC) -> Generator[Record, None, Outcome]:
        return prepared.named((yield from running(*prepared[:3], ctrl_c, **told)))

    return Job(key, begin)


def plan(X: Any, y: Any = None, **arguments: Any) -> list[str]:
    """What ``fit`` with the same arguments would do, and what the theory of its solver promises, in
    sentences.

    Takes all that ``fit`` takes. Bad data and bad options raise the same errors as in ``fit``.
    """
    bound = signature(fit).bind(X, y, **arguments)
    bound.apply_defaults()
    task = _prepared(bound.arguments).task
    problem, trainer = task.problem, task.solver
    source = problem.source
    visits = Counts(problem.epoch_size, 0, int(1.5 * source.nnz))
    share = evaluation_cost(problem) / training_cost(problem, visits)
    evaluated = getattr(trainer, "evaluated_steps", False)
    lines = [
        f"solver {trainer.name}: {trainer.summary}"
        + (f" (chosen as {task.auto_reason})" if task.auto_reason else ""),
        f"{problem.epoch_size:,} rows, {source.d:,} features, {source.nnz:,} nonzeros; C = "
        f"{problem.C:.6g}, "
        f"lam = {problem.lam:.6g}",
        f"at w = 0 the objective is {problem.value_at_zero:.6g} in mean form"
        + (f", {problem.value_at_zero / problem.lam:.6g} in C-form" if problem.lam > 0.0 else ""),
        f"a certificate costs about as much as {share:.2g} epochs; "
        + (
            "each step begins with one"
            if evaluated
            else "they are meant to take a quarter of the time at most"
        ),
    ]
    forecast = getattr(trainer, "plan", None)
    if forecast is None:
        return [
            *lines,
            f"{trainer.name} has no useful bound on its steps; it stops when its certificate proves the gap",
        ]
    return [*lines, *forecast(problem, task.tol)]


class Prepared(NamedTuple):
    """A run that has been checked and can begin."""

    solver: Solver
    problem: Problem
    rule: Rule
    told: dict[str, Any]  # what else the loop is told
    task: Task

    def named(self, outcome: Outcome) -> Outcome:
        """The outcome with what the loop does not know: labels, expansion, the reason of ``auto``."""
        task = self.task
        return replace(
            outcome, classes=task.classes, expansion=task.data.schema.expansion, auto_reason=task.auto_reason
        )


def _prepared(given: Mapping[str, Any]) -> Prepared:
    """Check all arguments of ``fit``, by their names, and open the data."""
    if not isinstance(given["penalty"], str) or given["penalty"] != "l2":
        raise InputError(
            f"penalty={shown(given['penalty'])} is not offered: dualgap regularises by the squared l2 norm "
            f"only; {_OTHERS}"
        )
    record_every, callback = given["record_every"], given["callback"]
    if record_every is not None:
        record_every = whole("record_every", record_every, 1)
    watchers = functions("watchers", given["watchers"], "functions of a Record")
    measures = functions("measures", given["measures"], "functions of a Point that return a dict")
    if callback is not None and not callable(callback):
        raise InputError(f"callback={shown(callback)} cannot be called; it must be a function of a Record")
    limits = Limits(given["max_epochs"], given["max_steps"], given["time_limit"])
    names = ("loss", "C", "lam", "solver", "tol", "bias", "rho", "seed", "options", "validation")
    task = prepare(data_of(given), limits=limits, **{name: given[name] for name in names})
    problem, rule = task.problem, task.rule if callback is None else task.rule | Callback(callback)
    if task.validate is not None:
        rule = rule | NotImproving(whole("patience", given["patience"], 1))
        record_every = record_every or problem.epoch_size
    if record_every is not None and not problem.source.in_memory:
        if task.validate is None:
            raise InputError(
                f"record_every={record_every}: rows on disk are certified once a pass, in passing"
            )
        record_every = None
    told = {
        "tol": task.tol,
        "warm": _warm(_start(given["warm"], task.classes), problem),
        "watchers": watchers,
        "measures": [_measure(each) for each in measures],
        "record_every": record_every,
        "form": task.form,
        "validate": task.validate,
    }
    stalled = Stalled(max(1000 * problem.epoch_size, 200_000))  # on tiny data a thousand epochs are nothing
    return Prepared(task.solver, problem, rule | stalled, told, task)


class Limits(NamedTuple):
    """Where a run ends at the latest."""

    max_epochs: float | None
    max_steps: int | None
    time_limit: float | None

    def rule(self, tol: float, epoch_size: int) -> Rule:
        """Stop at the gap, or at a limit."""
        rule: Rule = GapBelow(tol)
        if self.max_steps is not None:
            rule = rule | steps(whole("max_steps", self.max_steps, 1))
        if self.max_epochs is not None:
            rule = rule | epochs(number("max_epochs", self.max_epochs), epoch_size)
        if self.time_limit is not None:
            rule = rule | Seconds(number("time_limit", self.time_limit))
        return rule


class Task(NamedTuple):
    """What is to be solved, by whom, until when."""

    problem: Problem
    solver: Solver
    rule: Rule
    form: Form
    classes: Any
    validate: Validation | None
    auto_reason: str  # "auto" chose this solver
    tol: float  # the relative gap asked for
    data: Dataset


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
        if chosen.name != "hinge":
            raise InputError(
                f"C={C!r} is the hard margin, which belongs to the hinge loss and not to {chosen.name!r}"
            )
        chosen, C = hard_margin(chosen), 1.0  # J is then 1/2 |w|^2
    lam, form = strength(C, lam, source.total_weight)
    problem = Problem(source, chosen, lam, kind)
    name, why = choose(problem, options) if isinstance(solver, str) and solver == "auto" else (solver, "")
    if isinstance(source, OnDisk):
        check_from_disk(name, problem.bias.kind)
        source.check = problem.check_targets
    trainer = make_solver(name, options, seed=seed, loss=chosen, bias=problem.bias.kind)
    check_regulariser(name, lam)
    rule = limits.rule(tol, problem.epoch_size)
    check = getattr(trainer, "check", None)
    if check is not None:
        check(problem, rule.allowance(0))
    validate = None if held is None else Validation(held, chosen)
    return Task(problem, trainer, rule, form, classes, validate, why, tol, data)


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


def _start(warm: Any, classes: Any) -> Outcome | Run | Point | None:
    """What ``warm`` may be; a model that was saved becomes the point that it holds."""
    if isinstance(warm, Model):
        if warm.coef.shape[0] > 1:
            raise InputError(f"warm: a model of {warm.coef.shape[0]} classes; start from a model of two")
        turned = warm.classes is not None and classes is not None and warm.classes == tuple(classes[::-1])
        sign = -1.0 if turned else 1.0  # its positive class is the negative one here
        beta = None if warm.dual is None else sign * warm.dual.toarray()[0]
        return Point(sign * warm.coef[0], sign * float(warm.intercept[0]), beta)
    if isinstance(warm, Point):
        beta = None if warm.beta is None else _floats("beta", warm.beta)
        return Point(_floats("w", warm.w), float(_floats("b", [warm.b])[0]), beta)
    if warm is None or isinstance(warm, Outcome | Run):
        return warm
    raise InputError(
        f"warm={shown(warm)} must be an Outcome, a Run (load_state), a Model (load_model) or a Point(w, b, "
        "beta)"
    )


def _floats(name: str, values: Any) -> Floats:
    """A vector of a warm start in float64."""
    try:
        array = np.asarray(values)
        if array.ndim == 1 and array.dtype.kind in "iuf":
            return array.astype(np.float64, copy=False)
    except ValueError:  # rows of different lengths
        pass
    raise InputError(
        f"warm: {name} is {shown(values)}; it must be {'a number' if name == 'b' else 'a vector of numbers'}"
    )


def _warm(warm: Outcome | Run | Point | None, problem: Problem) -> Run | Point | None:
    if warm is None:
        return None
    if isinstance(warm, Outcome):
        warm = warm.state
    source = problem.source
    d, n = warm.w.shape[0], source.n if warm.beta is None else warm.beta.shape[0]
    if (d, n) != (source.d, source.n):
        raise InputError(
            f"warm start of {n} rows and {d} columns for data of {source.n} rows and {source.d} columns"
        )
    for name, part in (("w", warm.w), ("b", warm.b), ("beta", warm.beta)):
        if part is not None and not np.isfinite(part).all():
            raise InputError(f"the warm start has {name} with NaN or infinity; begin without it")
    return warm
