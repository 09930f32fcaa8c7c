"""What ``dualgap train`` does between its options and its report: open data, train, save."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..runtime.errors import CheckpointWarning, InputError, TrivialModelWarning
from .class_report import TrainedClasses
from .console import Spinner, warn
from .progress import ClassProgress, Trace
from .report import PREPARING, Introduction, Settings, Trained

if TYPE_CHECKING:
    from ..data.dataset import Dataset
    from ..many import OneVsRest
    from ..models.model import Model
    from ..outcome import Outcome
    from ..training.interruption import CtrlC
    from ..training.records import Record
    from ..training.run import Run


def run(
    settings: Settings, file: Path, options: dict[str, Any], spinner: Spinner
) -> Trained | TrainedClasses:
    """Read, train and save. Once training has begun, no Ctrl-C or SIGTERM loses what has been learned."""
    from ..data.label_sets import LabelSets
    from ..training.interruption import CtrlC

    data = opened(settings, spinner)
    held_out = _held_out(settings, data, spinner)
    if held_out is not None and isinstance(held_out.labels, LabelSets) and held_out.labels.left_out:
        data = data._replace(notes=(*data.notes, f"{settings.validation}: {held_out.labels.left_out}"))
    trace = None if settings.trace is None else Trace(settings.trace, resumed=settings.resume is not None)
    began, several = time.perf_counter(), is_one_vs_rest(data)
    for name, given in (("--checkpoint", settings.checkpoint), ("--resume", settings.resume)):
        if several and given is not None:
            only = f"{name} {given}: only a run of two classes, or a regression, is saved and resumed"
            if settings.task == "multilabel":
                raise InputError(f"{only}, and --task multilabel has a run for each label; leave it out")
            raise InputError(f"{only}; add --positive LABEL to train one class against the rest")
    arguments = {
        "record_every": settings.record_every,
        "record_start": settings.record_start,
        "validation": held_out,
        "patience": settings.patience,
        "metric": settings.metric,
        **_arguments(settings),
        **options,
    }
    with CtrlC(terminate=True) as ctrl_c:
        found: Any = _Training(settings, arguments, data, trace, spinner, ctrl_c).run()
        seconds = time.perf_counter() - began
        model: Model = found.model
        if settings.bounds:
            from ..models.bounding import bounded

            model = bounded(model, found.outcomes if several else [found])
        if settings.no_duals:
            model = replace(model, dual=None, dual_hashes=None)
        model.save(file, sparse=settings.sparse_coef)
    failure = None if trace is None else trace.failure
    if several:
        return TrainedClasses(settings, file, data, found, seconds, model, ctrl_c.reason, failure)
    return Trained(settings, file, data, found, model, ctrl_c.reason, failure)


def is_one_vs_rest(data: Dataset) -> bool:
    """Whether there are several models: one for each of more than two classes, or for each label."""
    return data.labels is not None and data.labels.models > 1


def forecast(settings: Settings, options: dict[str, Any], spinner: Spinner) -> list[str]:
    """The plan of a run, as sentences."""
    from ..api import plan
    from ..data.labels import listed, shown_label

    data = opened(settings, spinner)
    if data.labels is None or not is_one_vs_rest(data):
        return plan(data, **_arguments(settings), **options)
    from ..many import against_rest

    classes = data.labels.classes
    kind = "labels" if settings.task == "multilabel" else "classes"
    return [
        f"{len(classes)} {kind} ({listed(classes)}): one model for each, against the rest; "
        f"for class {shown_label(classes[0])}:",
        *plan(against_rest(data, 0), **_arguments(settings), **options),
    ]


def _arguments(settings: Settings) -> dict[str, Any]:
    """The arguments that ``fit`` and ``plan`` share."""
    names = (
        *("loss", "C", "lam", "solver", "bias", "seed"),
        *("tol", "atol", "target", "max_epochs", "max_visits", "time_limit"),
    )
    given = settings._asdict()
    return {name: given[name] for name in names} | {
        "rho": 1.0 if settings.rho is None else settings.rho,
        "stall": stall_of(settings.stall),
        "output": settings.keep,
        "checkpoint": settings.checkpoint,
        "checkpoint_every": settings.checkpoint_every,
        "resume": settings.resume,
    }


def stall_of(text: str) -> float | str:
    """What ``--stall`` says: a number of epochs where it is one, else a word."""
    try:
        return float(text)
    except ValueError:
        return text


def opened(settings: Settings, spinner: Spinner) -> Dataset:
    """The training rows."""
    from ..data.dataset import DataSpec, open_data
    from ..data.features import make_expansion
    from ..data.formats import ReadOptions

    spinner.say(f"reading {settings.data_file}")
    columns = ReadOptions(settings.n_features, settings.zero_based, settings.label, settings.weight)
    spec = DataSpec(
        settings.data_file,
        settings.labels,
        settings.weights,
        columns=columns,
        scale=settings.scale,
        expansion=make_expansion(settings.expand, settings.hash_bits),
        positive=settings.positive,
        in_memory=settings.in_memory,
        memory_budget=settings.memory_budget,
        threads=settings.threads,
    )
    return open_data(spec, _task(settings))


def _task(settings: Settings) -> str:
    """What is to be told apart: any number of classes, or one that is named from the rest."""
    from ..core.losses import make_loss
    from ..preparing import task_of

    if settings.task == "multilabel":
        return settings.task
    task = task_of(settings.task, make_loss(settings.loss))
    return "one-vs-rest" if task == "classification" and settings.positive is None else task


def _held_out(settings: Settings, data: Dataset, spinner: Spinner) -> Dataset | None:
    """The rows of ``--validation``, in the columns and classes of the training rows."""
    from ..data.dataset import DataSpec, open_data

    if settings.validation is None:
        return None
    spinner.say(f"reading {settings.validation}")
    columns = data.spec.columns._replace(n_features=None, zero_based="auto")
    spec = DataSpec(
        settings.validation, settings.validation_labels, columns=columns, in_memory=True, leave_out=True
    )
    if spec.rows_alone and spec.y is None:
        raise InputError(
            f"--validation {settings.validation}: an array of rows has no labels; add them, in a file, by "
            "--validation-labels"
        )
    return open_data(spec, _task(settings), data.schema)


class _Training(NamedTuple):
    """A run, or one for each of K classes, that is about to begin."""

    settings: Settings
    arguments: dict[str, Any]  # of ``fit``
    data: Dataset
    trace: Trace | None
    spinner: Spinner
    ctrl_c: CtrlC

    def run(self) -> Outcome | OneVsRest:
        """Train."""
        self.spinner.say(PREPARING)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TrivialModelWarning)  # the report has it
                warnings.filterwarnings("ignore", message="(fit|one_vs_rest).* ended at a relative gap")
                warnings.simplefilter("always", CheckpointWarning)
                warnings.showwarning = lambda message, *_: warn(str(message))
                return self._fit_classes() if is_one_vs_rest(self.data) else self._fit()
        finally:
            if self.trace is not None:
                self.trace.close()

    def _fit(self) -> Outcome:
        from ..api import fit
        from ..training.progress import Progress

        callbacks = self._callbacks()
        if not self.settings.quiet:
            callbacks.append(Progress(self.settings.tol))
        if self.trace is not None:
            callbacks.append(self.trace.of())
        return fit(self.data, callbacks=callbacks, **self.arguments)

    def _fit_classes(self) -> OneVsRest:
        """One model a class, in threads; they share the rows, the line of progress and the trace."""
        from ..data.labels import plain, shown_label
        from ..many import one_vs_rest

        assert self.data.labels is not None
        progress = ClassProgress(len(self.data.labels.classes), not self.settings.quiet)
        shared = self._callbacks()

        def callbacks_for(label: Any) -> list[Any]:
            traced = [] if self.trace is None else [self.trace.of(**{"class": plain(label)})]
            return [*shared, progress.of(shown_label(label)), *traced]

        threads = self.settings.threads
        try:
            return one_vs_rest(self.data, threads=threads, callbacks_for=callbacks_for, **self.arguments)
        finally:
            progress.close()

    def _callbacks(self) -> list[Any]:
        """Those that every run has; the introduction comes before any line of progress."""

        def listen(record: Record, run: Run) -> Any:
            return self.ctrl_c.reason

        return [Introduction(self.settings, self.data, self.spinner), listen]
