"""What ``dualgap train`` does between its options and its report: open data, train, save."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..runtime.errors import CheckpointWarning, TrivialModelWarning
from ..training.callbacks import Callback
from .console import Spinner, warn
from .data import label_of
from .report import PREPARING, Introduction, Settings, Trained

if TYPE_CHECKING:
    from ..data.dataset import Dataset
    from ..training.interruption import CtrlC
    from ..training.outcome import Outcome
    from ..training.records import Record
    from ..training.run import Run
    from ..training.stopping import Reason


def run(settings: Settings, file: Path, options: dict[str, Any], spinner: Spinner) -> Trained:
    """Read, train and save. Once training has begun, no Ctrl-C or SIGTERM loses what has been learned."""
    from ..models.building import model_of
    from ..training.interruption import CtrlC

    data = opened(settings, spinner)
    held_out = _held_out(settings, data, spinner)
    trace = None if settings.trace is None else Trace(settings.trace)
    with CtrlC(terminate=True) as ctrl_c:
        outcome, last = _fit(settings, options, data, held_out, trace, spinner, ctrl_c)
        C = settings.C if settings.lam is not None else settings.C or 1.0
        model = model_of(outcome, data, C=C, last=last, duals=not settings.no_duals)
        model.save(file)
    failure = None if trace is None else trace.failure
    return Trained(settings, file, data, outcome, last, model, ctrl_c.reason, failure)


def forecast(settings: Settings, options: dict[str, Any], spinner: Spinner) -> list[str]:
    """The plan of a run, as sentences."""
    from ..api import plan

    return plan(opened(settings, spinner), **_arguments(settings), **options)


def _arguments(settings: Settings) -> dict[str, Any]:
    """The arguments that ``fit`` and ``plan`` share."""
    names = ("loss", "C", "lam", "solver", "tol", "bias", "max_epochs", "max_visits", "time_limit", "seed")
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
    from ..core.losses import make_loss
    from ..data.dataset import DataSpec, open_data
    from ..data.features import make_expansion
    from ..data.formats import ReadOptions

    spinner.say(f"reading {settings.data_file}")
    columns = ReadOptions(settings.n_features, settings.zero_based, settings.label, settings.weight)
    spec = DataSpec(
        settings.data_file,
        columns=columns,
        expansion=make_expansion(settings.expand, settings.hash_bits),
        positive=label_of(settings.positive),
        in_memory=settings.in_memory,
        memory_budget=settings.memory_budget,
        threads=settings.threads,
    )
    return open_data(spec, make_loss(settings.loss).task)


def _held_out(settings: Settings, data: Dataset, spinner: Spinner) -> Dataset | None:
    """The rows of ``--validation``, in the columns and classes of the training rows."""
    from ..core.losses import make_loss
    from ..data.dataset import DataSpec, open_data

    if settings.validation is None:
        return None
    spinner.say(f"reading {settings.validation}")
    columns = data.spec.columns._replace(n_features=None, zero_based="auto")
    spec = DataSpec(settings.validation, columns=columns, in_memory=True)
    return open_data(spec, make_loss(settings.loss).task, data.schema)


class Trace(Callback):
    """The JSON lines of a run. The file is created with the first record, so that bad input leaves none."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines: Any = None
        self.failure: str | None = None  # a history that cannot be written is no reason to lose the model

    def __call__(self, record: Record, run: Run) -> None:
        """Write a certified record."""
        if self.failure is not None:
            return
        try:
            if self._lines is None:
                from ..training.callbacks import JsonLines

                self._lines = JsonLines(self._file)
            self._lines(record, run)
        except OSError as error:
            self.failure = f"{self._file}: cannot be written: {error.strerror or error}"

    def close(self, reason: Reason | None) -> None:
        """Close the file."""
        if self._lines is None:
            return
        try:
            self._lines.close(reason)
        except OSError as error:
            self.failure = self.failure or f"{self._file}: cannot be written: {error.strerror or error}"


def _fit(
    settings: Settings,
    options: dict[str, Any],
    data: Dataset,
    held_out: Dataset | None,
    trace: Trace | None,
    spinner: Spinner,
    ctrl_c: CtrlC,
) -> tuple[Outcome, Record]:
    from ..api import fit
    from ..training.callbacks import Progress

    spinner.say(PREPARING)
    last: list[Record] = []

    def listen(record: Record, run: Run) -> Any:
        last[:] = [record]
        return ctrl_c.reason

    callbacks: list[Any] = [listen, spinner]
    if not settings.quiet:
        callbacks.append(Progress(settings.tol))
        if not settings.as_json:
            callbacks.append(Introduction(settings, data, spinner))
    if trace is not None:
        callbacks.append(trace)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrivialModelWarning)  # the report has it
        warnings.simplefilter("always", CheckpointWarning)
        warnings.showwarning = lambda message, *_: warn(str(message))
        outcome = fit(
            data,
            callbacks=callbacks,
            record_every=settings.record_every,
            validation=held_out,
            patience=settings.patience,
            **_arguments(settings),
            **options,
        )
    return outcome, last[0] if last else outcome.trace[-1]
