"""From the arguments of ``fit`` to a run that can begin: everything is checked, nothing is trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from .core.bias import Bias, make_bias
from .core.losses import JOINT, Loss, make_loss
from .core.problem import AnyProblem, Form, Point, make_problem
from .data.chunks import OnDisk
from .data.dataset import Dataset, DataSpec
from .data.labels import ClassNumbers, shown_label
from .inputs import data_of, held_out, opened, rows_with_offsets
from .limits import Limits, parsed_period, period_in_visits, stall_visits
from .outcome import Outcome
from .runtime.checks import duration, flag, functions, number, one_of, shown, whole
from .runtime.compiling import Stopwatch
from .runtime.errors import InputError
from .solvers import check_from_disk, check_regulariser, check_seed, make_solver, preset_named
from .solvers.auto import choose, switching
from .training.callbacks import Callback, as_callback
from .training.checkpoint import Checkpoint
from .training.loop import Measures, Settings
from .training.outcome import Result
from .training.patience import GapIsRounding, NotImproving, Stalled
from .training.solver import AnySolver
from .training.stopping import Rules
from .training.validation import METRICS, Validation
from .warm_starts import run_to_resume, second_order_first, starting_point

_PATIENCE = 5  # certificates without a fall before early stopping, unless given
_OTHERS = "scikit-learn's SGDClassifier and LogisticRegression(solver='saga'), skglm and celer offer it"


class Prepared(NamedTuple):
    """A run that has been checked and can begin."""

    task: Task
    rules: Rules
    settings: Settings
    callbacks: Sequence[Callback]


def prepared_run(given: Mapping[str, Any]) -> Prepared:
    """Check all arguments of ``fit``, by their names, and open the data."""
    if given["penalty"] != "l2":
        raise InputError(
            f"penalty={shown(given['penalty'])} is not offered: dualgap regularises by the squared l2 norm "
            f"only; {_OTHERS}"
        )
    watch = Stopwatch()
    record_every, measures = given["record_every"], given["measures"]
    if record_every is not None:
        parsed_period(record_every)
    callbacks = functions("callbacks", given["callbacks"], "functions of (record, run)")
    measures = functions("measures", measures, "functions of a Point that return a dict")
    output = one_of("output", given["output"], ("best", "last"))
    every = duration("checkpoint_every", given["checkpoint_every"])
    checkpoint = [] if given["checkpoint"] is None else [Checkpoint(given["checkpoint"], every)]
    names = [
        *("loss", "C", "lam", "solver", "tol", "bias", "rho", "seed", "options"),
        *("validation", "metric", "task", "offset"),
    ]
    limits = Limits(**{name: given[name] for name in Limits._fields})
    resume = run_to_resume(given["resume"], given["warm"])
    task = prepare(
        data_of(given),
        limits=limits,
        arguments=set(given) - {"options"},
        second_first=second_order_first(given["warm"], resume),
        **{name: given[name] for name in names},
    )
    rules, problem = task.rules, task.problem
    record_every = period_in_visits(record_every, problem, task.solver)
    if task.validate is not None:
        patience = _PATIENCE if given["patience"] is None else whole("patience", given["patience"], 1)
        rules = rules | NotImproving(patience, METRICS[task.validate.metric])
        record_every = record_every or problem.epoch_size
    elif given["patience"] is not None:
        raise InputError(
            f"patience={shown(given['patience'])} is for early stopping; give validation= as well, or leave "
            "it out"
        )
    if record_every is not None and not problem.source.in_memory:
        if task.validate is None:
            raise InputError(
                f"record_every={shown(given['record_every'])}: rows on disk are certified once a pass, in "
                "passing"
            )
        record_every = None
    settings = Settings(
        tol=task.tol,
        form=task.form,
        record_every=record_every,
        record_start=flag("record_start", given["record_start"]),
        output=output,
        measures=[_measure(each) for each in measures],
        validate=task.validate,
        warm=starting_point(given["warm"], task.classes, problem),
        resume=resume,
        auto_reason=task.auto_reason,
        compile_seconds=watch.elapsed().compiling,
    )
    rules = rules | GapIsRounding()
    stalled = stall_visits(given["stall"], problem.epoch_size)
    if stalled is not None:
        rules = rules | Stalled(stalled)
    told = [as_callback(each) for each in callbacks]
    if given["stop_when_decided"] is not None:
        from .deciding import WhenDecided

        if output == "last":
            raise InputError("stop_when_decided= is about the best model; leave output='last' out")
        told.append(WhenDecided(given["stop_when_decided"], task.data))
    return Prepared(task, rules, settings, [*told, *checkpoint])  # it saves what the others remember


class Task(NamedTuple):
    """What is to be solved, by whom, until when."""

    problem: AnyProblem
    solver: AnySolver
    rules: Rules
    form: Form
    classes: Any
    validate: Validation | None
    auto_reason: str  # "auto" chose this solver
    tol: float  # the relative gap asked for
    data: Dataset
    C: float | None  # as it was given, free of rounding; None: lam was
    offsets: bool = False  # the rows have offsets

    def named(self, result: Result) -> Outcome:
        """The outcome: what the run found, with labels, expansion, the reason of ``auto`` and the date."""
        return Outcome.of(
            result,
            classes=self.classes,
            expansion=self.data.schema.expansion,
            auto_reason="; then ".join([self.auto_reason, *result.story]),
            data=self.data,
            C=self.C,
            offsets=self.offsets,
            date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
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
    metric: str = "loss",
    task: str | None = None,
    offset: Any = None,
    arguments: Collection[str] = (),
    second_first: bool = False,
) -> Task:
    """Check everything; nothing is computed yet that takes long."""
    tol, seed = number("tol", tol, zero=True), check_seed(seed)
    chosen, kind = make_loss(loss), make_bias(bias, rho)
    kind_of_targets = task_of(task, chosen)
    data = opened(rows, kind_of_targets, depth=4)
    source, held = held_out(validation, data, kind_of_targets, seed)
    if offset is not None:
        if is_hard(C, lam):
            raise InputError(f"C={C!r} is the hard margin, which takes no offset; give a finite C")
        source, held, chosen = rows_with_offsets(source, held, chosen, offset, validation, metric)
    classes = None if data.labels is None else data.labels.classes
    hard = is_hard(C, lam)
    if hard:
        if chosen.hard_margin is None:
            raise InputError(
                f"C={C!r} is the hard margin, which belongs to the hinge loss and not to {chosen.name!r}"
            )
        chosen, C = chosen.hard_margin, 1.0  # J is then 1/2 |w|^2
    lam, form = strength(C, lam, source.total_weight)
    joint = _classes_at_once(chosen, data)
    problem = make_problem(source, chosen, lam, kind, joint, data.schema.derivation)
    if joint and classes is not None:
        problem.check_bounded([shown_label(label) for label in classes])
    name, why = choose(problem, options) if isinstance(solver, str) and solver == "auto" else (solver, "")
    if isinstance(source, OnDisk):
        check_from_disk(name, problem.bias.kind, chosen.name, asked=data.spec.in_memory is False)
        source.check = problem.check_targets
    trainer: AnySolver
    if name == "auto":
        trainer, why = switching(problem, seed, second_first)
    else:
        trainer = make_solver(
            name, options, seed=seed, loss=chosen, bias=problem.bias.kind, arguments=arguments
        )
    if name != "auto":
        check_regulariser(name, lam)
    rules = limits.rules(tol, problem.epoch_size)
    try:
        trainer = trainer.resolved(problem)
        trainer.check(problem, rules.allowance(0))
    except InputError as error:
        raise (error if name == "auto" else preset_named(error, name, options)) from None
    measure = metric_of(metric, data, held is not None)
    validate = None if held is None else Validation(held, chosen, measure, joint)
    given = None if form == "mean" else math.inf if hard else 1.0 if C is None else float(C)
    has = offset is not None
    return Task(problem, trainer, rules, form, classes, validate, why, tol, data, given, has)


def _classes_at_once(loss: Any, data: Dataset) -> int | None:
    """The number of classes of a joint loss; None for other losses."""
    if loss.task != JOINT:
        return None
    if not isinstance(data.labels, ClassNumbers):
        raise InputError(
            f"the {loss.name} loss trains all classes at once: open the data for task 'classes', or give X "
            "and y to fit"
        )
    return len(data.labels.classes)


def task_of(task: Any, loss: Loss) -> str:
    """Whether labels are two classes, any number of them, or numbers: as the loss has it, unless ``task``
    says otherwise.

    A regression loss takes the targets -1 and +1 as any other numbers, so it can train a classifier.
    """
    if task is None:
        return loss.task
    if isinstance(task, str) and task == "multilabel":
        raise InputError(
            "task='multilabel': fit trains one model; dualgap.one_vs_rest trains one for each label"
        )
    wanted: str = one_of("task", task, ("classification", "regression", JOINT))
    if wanted == JOINT and loss.task != JOINT:
        raise InputError(
            f"task='classes': the {loss.name} loss has one score a row; multinomial and crammer-singer train "
            "K classes at once"
        )
    if wanted == "classification" and loss.task == JOINT:
        return JOINT
    if wanted == "regression" and loss.task != wanted:
        raise InputError(
            f"task='regression': the {loss.name} loss is for classes; take a loss such as squared or huber"
        )
    return wanted


def metric_of(metric: Any, data: Dataset, validated: bool) -> str:
    """By what early stopping goes."""
    name = metric.replace("_", "-") if isinstance(metric, str) else metric
    wanted: str = one_of("metric", name, tuple(METRICS))
    if wanted != "loss" and not validated:
        raise InputError(
            f"metric={shown(metric)} is for early stopping; give validation= as well, or leave it out"
        )
    if wanted != "loss" and data.labels is None:
        raise InputError(
            f"metric={shown(metric)} is for classes, and this is a regression; stop by the loss, or say "
            "task='classification'"
        )
    return wanted


def is_hard(C: float | None, lam: float | None) -> bool:
    """Whether the hard margin is asked for."""
    return isinstance(C, float | np.floating) and math.isinf(C) and C > 0 and lam is None


def checked_C(C: Any) -> float:
    """C as a number: positive, or inf for the hard margin (not a number beyond float64)."""
    if is_hard(C, None):
        return math.inf
    try:
        return number("C", C)
    except InputError as error:
        raise InputError(f"{error}, or inf for the hard margin") from None


def strength(C: float | None, lam: float | None, weight: float) -> tuple[float, Form]:
    """Lam, and the form of the objective that the caller thinks in."""
    if C is not None and lam is not None:
        raise InputError(
            f"both C={shown(C)} and lam={shown(lam)} are given; give one (C = 1/(lam N), N the sum of the "
            "weights)"
        )
    if lam is not None:
        return number("lam", lam, zero=True), "mean"
    given = checked_C(1.0 if C is None else C)
    low, high = 1e-100 / weight, 1e100 / weight  # the same range for lam
    if not low <= given <= high:
        raise InputError(
            f"C={given!r} is out of range: for these rows it must lie between {low:.3g} and {high:.3g}"
        )
    return 1.0 / (given * weight), "J"


def _measure(function: Callable[..., Any]) -> Measures:
    """A user's function of the solver's own point, or of that and the best, with its results checked."""
    alone = _takes_one(function)

    def measured(point: Point, best: Point) -> dict[str, float]:
        found: Any = function(point) if alone else function(point, best)
        if not isinstance(found, dict):
            name = getattr(function, "__name__", "a measure")
            raise InputError(f"measures: {name} returned {shown(found)}; it must return a dict of numbers")
        return found

    return measured


def _takes_one(function: Callable[..., Any]) -> bool:
    """Whether a measure can be called with one point; else it must take two."""
    try:
        form = signature(function)
    except (TypeError, ValueError):  # some builtins have none
        return True
    for count in (1, 2):
        try:
            form.bind(*range(count))
        except TypeError:
            continue
        return count == 1
    name = getattr(function, "__name__", "a measure")
    raise InputError(f"measures: {name}{form} must be a function of (point) or of (point, best)")
