"""``one_vs_rest``: one model for each of K classes, against the rest; rows on disk are read once for all.

Each class has a run of its own, with its own duals, weights and cache of rows (a K-th of the memory budget).
Runs from disk take turns (`training/jobs.py`), and a chunk that has been read serves all. (``block`` and
``selective-block`` want many chunks at a time, and read them for every class.)
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np

from .api import ended_unasked, fit, job, warn_unconverged
from .common_start import common_start
from .core.losses import JOINT, make_loss
from .core.problem import Certificate
from .data.chunks import OnDisk
from .data.dataset import Dataset, array_of
from .data.label_sets import LabelSets, as_label_matrix, is_label_matrix
from .data.labels import Labels, listed, shown_label
from .data.shared import Shared
from .data.sources import View
from .inputs import ARGUMENTS, data_of, in_view, opened, other_rows
from .models.building import model_of
from .models.model import Model
from .models.scoring import indicators_of, labels_of
from .outcome import Outcome, remarks_on_classes
from .runtime.arrays import Floats
from .runtime.checks import one_of, whole
from .runtime.errors import InputError, TrivialModelWarning
from .solvers.out_of_core.solver import OutOfCore
from .training.callbacks import Callback
from .training.interruption import CtrlC
from .training.jobs import Job, run_jobs
from .training.outcome import Result
from .training.records import Record
from .training.run import Run
from .training.solver import AnySolver


@dataclass(frozen=True, eq=False)
class OneVsRest:
    """Models of one class each against the rest, in the order of ``classes``, every one with its certificate.

    Of two classes there is one model, which tells ``classes[1]`` from ``classes[0]``.
    """

    classes: Any
    outcomes: list[Outcome]
    data: Dataset  # what they were trained on

    def __repr__(self) -> str:
        """In one line: it holds all rows."""
        gap = max(outcome.certificate.relative_gap for outcome in self.outcomes)
        return f"<OneVsRest of {len(self.classes)} classes, largest relative gap {gap:.3g}>"

    @property
    def coef(self) -> Floats:
        """A row a class."""
        return np.stack([outcome.coef for outcome in self.outcomes])

    @property
    def intercept(self) -> Floats:
        """A number a class."""
        return np.array([outcome.intercept for outcome in self.outcomes])

    @property
    def certificates(self) -> list[Certificate]:
        """The certificate of each class."""
        return [outcome.certificate for outcome in self.outcomes]

    @property
    def converged(self) -> bool:
        """Whether every class has reached the gap asked for."""
        return all(outcome.converged for outcome in self.outcomes)

    @property
    def passes(self) -> float:
        """Over the data, of the run that needed most; 0 where all rows were in memory."""
        return max(
            outcome.trace[-1].measures.get("passes", 0.0) for outcome in self.outcomes if outcome.trace
        )

    @property
    def without_positives(self) -> list[Any]:
        """The labels that no training row has; their models are of the others' rows alone."""
        return self._without(1.0)

    @property
    def without_negatives(self) -> list[Any]:
        """The labels that every training row has; their models have nothing to tell them from."""
        return self._without(-1.0)

    @property
    def remark(self) -> str:
        """A sentence about labels that no training row has, or that all have, or nothing."""
        told = []
        for labels, kind in ((self.without_positives, "positive"), (self.without_negatives, "negative")):
            have = "has" if len(labels) == 1 else "have"
            if labels:
                told.append(
                    f"{len(labels)} of {len(self.classes)} labels {have} no {kind} rows ({listed(labels)})"
                )
        return ", and ".join(told)

    def _without(self, sign: float) -> list[Any]:
        return [
            label
            for label, outcome in zip(self.classes, self.outcomes, strict=False)
            if len(self.outcomes) > 1 and _weight(outcome, sign) == 0.0
        ]

    @cached_property
    def model(self) -> Model:
        """All of it as one model: to be saved, and to be verified."""
        return self._model()

    @cached_property
    def bounded_model(self) -> Model:
        """The model with the tightest bounds on the scores of the exact optima, as in `Outcome`."""
        from .models.bounding import bounded

        return bounded(self.model, self.outcomes)

    def decision_function(self, X: Any) -> Floats:
        """A score a class for every row of a matrix, a file, a Store or a DataSpec; of two classes one."""
        return self._weights.decision_function(X)

    def predict(self, X: Any) -> Any:
        """The class of the highest score; with several labels a row, a matrix of 1 where a score is positive,
        else 0.
        """
        scores = self.decision_function(X)
        several = isinstance(self.data.labels, LabelSets)
        return indicators_of(scores) if several else labels_of(scores, self.classes)

    @cached_property
    def _weights(self) -> Model:
        """A model that predicts; it does not know the training rows, which saves a pass over them."""
        return self._model(duals=False, identify=False)

    def _model(self, **parts: bool) -> Model:
        first = self.outcomes[0]
        date = max(outcome.date or "" for outcome in self.outcomes)
        reason = first.auto_reason if len(self.outcomes) == 1 else self.auto_reason
        return model_of(self.outcomes, self.data, C=first.C, auto_reason=reason, date=date, **parts)

    @property
    def auto_reason(self) -> str:
        """Why ``solver="auto"`` began as it did, and what it changed on the way, class by class."""
        first = self.outcomes[0].auto_reason.partition("; then ")[0]
        changes = (
            f"class {shown_label(label)}: {change}"
            for label, outcome in zip(self.classes, self.outcomes, strict=False)
            for change in outcome.story
        )
        return "; ".join(filter(None, [first, *changes]))


def one_vs_rest(
    X: Any,
    y: Any = None,
    *,
    threads: int = 1,
    callbacks_for: Callable[[Any], Sequence[Callback | Callable[[Record, Run], Any]]] | None = None,
    **arguments: Any,
) -> OneVsRest:
    """Train one model for each class, against the rest. Everything else is as in :func:`fit`.

    Parameters
    ----------
    y : array of n labels, or a matrix of n rows
        A matrix of 0 and 1, dense or sparse, has a column for each label, and a row may have any number of
        them; a label that no row has, or that all have, is allowed, and warned of. The columns of a data
        frame give the labels their names. Files have such labels as ``1,5,7`` at the beginning of a line,
        and are read so with ``task="multilabel"``.
    threads : int
        In memory, so many classes are trained at a time, on one copy of the rows; threads beyond the number
        of classes share the passes over all rows. From disk, all classes are trained in the same passes.
        On large dense data of several classes all runs begin where training all classes at once ends, usually
        within ``tol``; its time is in none of their records.
    callbacks_for : function of a label that returns callbacks
        The callbacks of that class's run, besides ``callbacks``, which see the runs of all classes. With
        threads they are called from several of them.
    """
    bound = signature(fit).bind(X, as_label_matrix(array_of(y)), threads=threads, **arguments)
    bound.apply_defaults()
    loss = make_loss(bound.arguments["loss"])
    if loss.task == JOINT:
        raise InputError(
            f"the {loss.name} loss trains all classes at once, and not one against the rest: use fit"
        )
    if bound.arguments["offset"] is not None:
        raise InputError("offset= is for one score a row; train one class at a time, by fit")
    data = opened(data_of(bound.arguments), _task(bound.arguments), depth=2)
    if data.labels is None:
        raise InputError("X is open already, for other targets than classes; give a path, a Store or a feed")
    told = {name: value for name, value in arguments.items() if name not in (*ARGUMENTS, "task")}
    runs = _Runs(data, data.labels, told, callbacks_for)
    if isinstance(data.source, OnDisk):
        found = runs.from_disk(data.source)
    else:
        found = runs.in_memory(data.source, whole("threads", threads, 1))
    classes = [data.labels.classes[k] for k in found]
    for remark in remarks_on_classes(classes, list(found.values())):
        warnings.warn(remark, TrivialModelWarning, stacklevel=2)
    limits = [bound.arguments[name] for name in ("tol", "max_epochs", "stall")]
    _warn_of_the_worst(found, data.labels, *limits)
    many = OneVsRest(np.asarray(data.labels.classes), [found[k] for k in runs.positive], data)
    if many.remark:
        warnings.warn(many.remark, TrivialModelWarning, stacklevel=2)
    return many


def _task(given: Mapping[str, Any]) -> str:
    """Whether a row has one label or any number of them."""
    task = given["task"]
    if task is None:
        return "multilabel" if is_label_matrix(given["y"]) else "one-vs-rest"
    wanted: str = one_of("task", task, ("classification", "multilabel"))
    return "one-vs-rest" if wanted == "classification" else wanted


def _warn_of_the_worst(found: dict[int, Outcome], labels: Labels, tol: float, *limits: Any) -> None:
    """Warn of the class that ended furthest from its tolerance, by a limit that nobody set."""
    behind = [k for k, outcome in found.items() if ended_unasked(outcome, tol, *limits)]
    if behind:
        worst = max(behind, key=lambda k: found[k].certificate.relative_gap)
        which = f"{len(behind)} of {len(found)} classes; the worst is {shown_label(labels.classes[worst])}"
        warn_unconverged(f"one_vs_rest ({which})", found[worst], tol, stacklevel=4)


@dataclass(frozen=True, eq=False)
class _Runs:
    """The runs of all classes on the same rows."""

    data: Dataset
    labels: Labels
    told: dict[str, Any]
    callbacks_for: Callable[[Any], Sequence[Any]] | None

    @property
    def positive(self) -> range:
        """The numbers of the classes that have a run: of two classes one will do."""
        return range(self.labels.models) if self.labels.models > 1 else range(1, 2)

    def in_memory(self, rows: View, threads: int) -> dict[int, Outcome]:
        """Runs in threads; targets are made when a run begins, the rows are shared."""
        workers = min(threads, len(self.positive))
        rows = replace(rows, threads=max(1, threads // workers))
        held = self._held_out()
        with CtrlC() as ctrl_c:
            start = common_start(
                replace(rows, threads=threads), self.labels, self.told, lambda: ctrl_c.pressed
            )

            def prepared(k: int) -> Job:
                told = self._arguments(k, held)
                known = None
                if start is not None:
                    told["warm"], known = start.pop(k)
                return job(k, against_rest(self.data._replace(source=rows), k), known=known, **told)

            return _outcomes(run_jobs(map(prepared, self.positive), threads=workers, ctrl_c=ctrl_c))

    def from_disk(self, rows: OnDisk) -> dict[int, Outcome]:
        """Runs that take turns over the chunks of one feed, each with its share of the memory."""
        count, feed = len(self.positive), rows.feed
        budget = None if rows.memory_budget is None else rows.memory_budget // count
        held = self._held_out()

        def sharing(solver: AnySolver) -> tuple[AnySolver, float]:
            """In lockstep with the reader; a turn has as many visits as a chunk asks for."""
            turn = feed.n / feed.chunks
            if isinstance(solver, OutOfCore):
                return solver.in_lockstep(), math.ceil(solver.visits_per_row * turn)
            return solver, math.ceil(turn)

        with Shared(feed, count) as shared:
            jobs = []
            for k in self.positive:
                source = OnDisk(shared, rows.targets, memory_budget=budget, models=count)
                class_data = against_rest(self.data._replace(source=source), k)
                jobs.append(job(k, class_data, adapt=sharing, **self._arguments(k, held)))
            return _outcomes(run_jobs(jobs, together=True))

    def _held_out(self) -> Dataset | None:
        """Rows for early stopping that are no part of the training rows, opened once for all classes."""
        validation = self.told.get("validation")
        if validation is None or isinstance(validation, float | np.floating):
            return None
        task = "multilabel" if isinstance(self.labels, LabelSets) else "one-vs-rest"
        rows = other_rows(validation, self.data, task, depth=4)
        return rows._replace(source=in_view(rows))

    def _arguments(self, k: int, held: Dataset | None) -> dict[str, Any]:
        """The arguments of ``fit`` for class k."""
        told = dict(self.told)
        if held is not None:
            told["validation"] = against_rest(held, k)
        if self.callbacks_for is not None:
            told["callbacks"] = [*told.get("callbacks", ()), *self.callbacks_for(self.labels.classes[k])]
        return told


def against_rest(data: Dataset, k: int) -> Dataset:
    """The same rows with the targets of class k against the rest; two classes have them."""
    source, labels = data.source, data.labels
    assert labels is not None
    if labels.models == 1:
        return data
    data = data._replace(schema=data.schema._replace(labels=Labels((None, labels.classes[k]))))
    if isinstance(source, View):
        return data._replace(source=source.with_targets(labels.against(source.y, k)))
    codes, budget = source.targets, source.memory_budget
    return data._replace(
        source=OnDisk(
            source.feed, lambda y: labels.against(codes(y), k), memory_budget=budget, models=source.models
        )
    )


def _weight(outcome: Outcome, sign: float) -> float | None:
    """The total weight of the rows of a run whose targets have that sign, where it is known."""
    known = outcome.problem.source.target_weights
    return None if known is None else sum(weight for target, weight in known if target * sign > 0.0)


def _outcomes(found: Iterable[tuple[Any, Result]]) -> dict[int, Outcome]:
    outcomes = {}
    for k, outcome in found:
        assert isinstance(outcome, Outcome)  # as jobs of ``job`` have it
        outcomes[k] = outcome
    return outcomes
