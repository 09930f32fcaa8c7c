"""What ``dualgap train`` does between its options and its exit code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..models.building import bias_words, loss_spec, model_of
from ..runtime.errors import InputError
from .console import Spinner, counted, headline, said, size_of, table
from .data import label_of, plain, shown, signs, training_targets

if TYPE_CHECKING:
    from ..api import Task
    from ..core.losses import Loss
    from ..models.model import Model
    from ..runtime.arrays import Floats
    from ..training.loop import CtrlC, Outcome, Record
    from ..training.stopping import Reason


SLOW = (
    "max_epochs",
    "max_steps",
    "time_limit",
    "stalled",
)  # reasons that the scales of the data may be behind
PREPARING = "preparing (the first run with a loss compiles for some seconds)"


class Settings(NamedTuple):
    """The options of ``train``, as click names them."""

    data_file: Path
    model_file: Path | None
    loss: str
    C: float | None
    lam: float | None
    solver: str
    tol: float
    max_epochs: float
    max_steps: int | None
    time_limit: float | None
    bias: str
    rho: float | None
    positive: str | None
    seed: int
    threads: int
    option: tuple[str, ...]
    n_features: int | None
    zero_based: Any
    trace: Path | None
    record_every: int | None
    validation: Path | None
    patience: int
    plan: bool
    no_duals: bool
    memory_budget: int | None
    expand: str | None
    hash_bits: int | None
    as_json: bool
    quiet: bool


@dataclass(frozen=True, eq=False)
class Rows:
    """What ``fit`` is given: rows in memory with their targets and weights, or rows on disk, which have
    them.
    """

    X: Any
    targets: Floats | None
    weight: Floats | None
    classes: tuple[Any, Any] | None
    shape: tuple[int, int]
    nnz: int
    zero_based: bool | None
    feature_names: tuple[str, ...] | None
    digests: tuple[str, ...] | None
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Trained:
    """A run that is over, its model saved."""

    settings: Settings
    file: Path
    data: Rows
    outcome: Outcome
    last: Record
    model: Model
    interrupted: bool  # Ctrl-C was pressed after training began, be it while the model was saved
    trace_failure: str | None = None

    def summary(self) -> dict[str, Any]:
        """What ``--json`` prints; primal, dual and gap in C-form."""
        settings, outcome, model = self.settings, self.outcome, self.model
        certificate = model.certificate
        return {
            "solver": model.solver,
            "solver_why": self.outcome.auto_reason or None,
            "loss": _loss_words(outcome.problem.loss),
            "C": model.C,
            "lam": outcome.problem.lam,
            "bias": model.bias,
            "n_samples": model.n_samples,
            "n_features": model.n_features,
            "nnz": self.data.nnz,
            "epochs": self.last.epochs,
            **({"passes": self.last.measures["passes"]} if "passes" in self.last.measures else {}),
            "steps": self.last.visits,
            "seconds": self.last.seconds,
            "primal": certificate.primal,
            "dual": certificate.dual,
            "gap": certificate.gap,
            "relative_gap": certificate.relative_gap,
            "objective": certificate.form,
            "converged": bool(outcome.converged),
            "stop_reason": outcome.reason.name,
            "seed": settings.seed,
            "threads": settings.threads,
        }

    def report(self) -> None:
        """The same for people; what was trained on what has been said before training (`Introduction`)."""
        settings, model, certificate = self.settings, self.model, self.model.certificate
        fact, _, remedy = self.outcome.reason.message.partition("; ")
        cause = self._likely_cause() if self.outcome.reason.name in SLOW else ""
        headline(fact if cause else self.outcome.reason.message, bool(self.outcome.converged))
        if cause:
            click.echo(f"{cause}Otherwise {remedy}." if remedy else cause.rstrip())
        table(
            [
                ("objective", f"{certificate.primal:.8g}", f"{_objective(certificate.form)}, of this model"),
                ("lower bound", f"{certificate.dual:.8g}", "no model can have a smaller objective"),
                (
                    "gap",
                    f"{certificate.gap:.4g}",
                    f"relative: {certificate.relative_gap:.3g}, asked: {settings.tol:g}",
                ),
                ("epochs", f"{self.last.epochs:.1f}", counted(self.last.visits, "row visit")),
                *_passes(self.last),
                (
                    "seconds",
                    f"{self.last.seconds:.2f}",
                    f"of which {self.last.certify_seconds:.2f} for the certificates",
                ),
            ]
        )
        click.echo(statement(certificate, self.outcome.problem.lam))
        size = size_of(self.file.stat().st_size)
        duals = "no duals" if model.dual is None else counted(model.dual.nnz, "nonzero dual")
        click.echo(f"model: {self.file} ({size}, {duals})")

    def _likely_cause(self) -> str:
        """A sentence about scales of the data that make training slow; rows on disk are not read again for
        it.
        """
        from ..data.scales import scales

        if not self.outcome.problem.source.in_memory or self.settings.expand is not None:
            return ""
        return scales(self.data.X)


class Introduction:
    """A watcher that says what is about to be trained, on what, by which solver and why.

    To stdout, as the beginning of the report; and to stderr, where progress is shown, if only that is a
    terminal.
    """

    def __init__(self, settings: Settings, data: Rows, spinner: Spinner) -> None:
        self._settings, self._data, self._spinner = settings, data, spinner

    def begin(self, task: Task) -> None:
        """Called when problem and solver are known."""
        text = "\n".join(self._lines(task)) + "\n"
        self._spinner.stop()
        said(text)
        self._spinner.say(PREPARING)

    def __call__(self, record: Record) -> None:
        """Progress is shown by others."""

    def _lines(self, task: Task) -> list[str]:
        settings, data, problem = self._settings, self._data, task.problem
        n, d = data.shape
        C = problem.C if settings.lam is not None else settings.C or 1.0  # as given, free of rounding
        strength = f"C = {C:g}" if problem.lam > 0.0 else "lam = 0 (no regulariser)"
        bias = bias_words(problem.bias.kind, problem.bias.rho)
        rows, columns, entries = counted(n, "row"), counted(d, "feature"), counted(data.nnz, "nonzero")
        lines = [
            f"{settings.data_file}: {rows}, {columns}, {entries}",
            *(f"  {remark}" for remark in data.notes),
        ]
        if data.classes is not None:
            lines.append(f"  positive class: {shown(data.classes[1])}, negative: {shown(data.classes[0])}")
        lines.append(f"{_loss_words(problem.loss)} loss, {strength}, {bias}, solver {task.solver.name}")
        if task.auto_reason:
            lines.append(f"  auto chose {task.solver.name}: {task.auto_reason}")
        return lines


def _loss_words(loss: Loss) -> str:
    """The loss, with the parameters that are not at their defaults."""
    from ..core.losses import parameters_of

    return loss_spec(loss.name, parameters_of(loss), parameters_of(type(loss)))


def _passes(last: Record) -> list[tuple[str, str, str]]:
    passes = last.measures.get("passes")
    return [] if passes is None else [("passes", f"{passes:.2f}", "over the data on disk")]


def _objective(form: str) -> str:
    return "|w|^2/2 + C * sum of losses" if form == "J" else "mean of the losses"


def statement(certificate: Any, lam: float) -> str:
    """What a certificate proves, in one sentence."""
    if lam == 0:
        return (
            "Nothing is proven: at lam = 0 no lower bound is known but 0, as a dual point would have to make "
            "a combination of the rows vanish exactly."
        )
    if certificate.dual > 0:
        share = 100 * certificate.relative_gap
        return f"Proven: the objective is at most {share:.3g}% above the smallest possible."
    return f"Proven: the objective is at most {certificate.gap:.3g} above the smallest possible."


def run(settings: Settings, file: Path, options: dict[str, Any], spinner: Spinner) -> Trained:
    """Read, train and save. From the first step of training on, Ctrl-C does not lose what has been
    learned.
    """
    from ..models.model import save_model
    from ..training.loop import CtrlC

    data = _read(settings, options, spinner)
    held_out = _held_out(settings, data, spinner)
    trace = None if settings.trace is None else _Trace(settings.trace)
    with CtrlC() as ctrl_c:
        outcome, last = _fit(settings, options, data, held_out, trace, spinner, ctrl_c)
        given = settings.C if settings.lam is not None else settings.C or 1.0
        model = model_of(
            outcome,
            last,
            data.X,
            classes=data.classes,
            C=given,
            threads=settings.threads,
            zero_based=data.zero_based,
            duals=not settings.no_duals,
            feature_names=data.feature_names,
            digests=data.digests,
            n_inputs=data.shape[1],
        )
        save_model(file, model)
    failure = None if trace is None else trace.failure
    return Trained(settings, file, data, outcome, last, model, ctrl_c.pressed, failure)


def forecast(settings: Settings, options: dict[str, Any], spinner: Spinner) -> list[str]:
    """What ``run`` would do."""
    from ..api import plan

    data = _read(settings, options, spinner)
    return plan(data.X, data.targets, sample_weight=data.weight, **_arguments(settings), **options)


def _arguments(settings: Settings) -> dict[str, Any]:
    """What ``fit`` and ``plan`` are told."""
    names = (
        "loss",
        "C",
        "lam",
        "solver",
        "tol",
        "bias",
        "max_epochs",
        "max_steps",
        "time_limit",
        "threads",
        "seed",
        "expand",
        "hash_bits",
    )
    return {name: getattr(settings, name) for name in names} | {
        "rho": 1.0 if settings.rho is None else settings.rho
    }


def _read(settings: Settings, options: dict[str, Any], spinner: Spinner) -> Rows:
    """The rows in memory, or a store opened where they do not fit or are not to be there."""
    from ..core.losses import make_loss
    from ..data.formats.reading import kind_of, read_data

    spinner.say(f"reading {settings.data_file}")
    classification = make_loss(settings.loss).task == "classification"
    if kind_of(settings.data_file) == "store":
        rows = _on_disk(settings, classification, "cache" in options)
        if rows is not None:
            return rows
    elif settings.memory_budget is not None or "cache" in options:
        raise InputError(
            f"{settings.data_file}: text is read whole; `dualgap convert` makes a store of it, which "
            "--memory-budget "
            "can train from disk"
        )
    data = read_data(settings.data_file, n_features=settings.n_features, zero_based=settings.zero_based)
    targets, classes = training_targets(data, settings.positive) if classification else (data.y, None)
    shape = (int(data.X.shape[0]), int(data.X.shape[1]))
    return Rows(
        data.X,
        targets,
        data.weight,
        classes,
        shape,
        int(data.X.nnz),
        data.zero_based,
        data.feature_names,
        data.digests,
        data.notes,
    )


def _on_disk(settings: Settings, classification: bool, stream: bool) -> Rows | None:
    """The rows of a store that stay on disk; None if they are to be read into memory."""
    from ..data.chunks import Feed, OnDisk
    from ..data.dataset import streaming_budget, streaming_note, targets_of, two_classes
    from ..data.features import Expanded, make_expansion
    from ..data.formats.arrow.store import Store
    from ..data.formats.feeds import StoreFeed
    from ..data.memory import training_bytes

    store = Store(settings.data_file)
    header = store.header
    feed: Feed = StoreFeed(store)
    expansion = make_expansion(settings.expand, settings.hash_bits)
    if expansion is not None:
        feed = Expanded(feed, expansion)
    size = training_bytes(feed.n, feed.d, feed.nnz, feed.value_bytes)
    budget = streaming_budget(size, settings.memory_budget)
    if budget is None and not stream:
        return None
    if settings.n_features is not None or settings.zero_based != "auto":
        raise InputError(
            f"{settings.data_file}: a store knows its columns; leave --n-features and --zero-based out"
        )
    classes = None
    if classification:
        negative, positive = two_classes(
            feed, None if settings.positive is None else label_of(settings.positive)
        )
        classes = (None if negative is None else plain(negative), plain(positive))
    source = OnDisk(feed, targets_of(classes), memory_budget=budget)
    notes = () if budget is None else (streaming_note(feed.name, size, budget),)
    names = None if header.feature_names is None else tuple(header.feature_names)
    return Rows(
        source,
        None,
        None,
        classes,
        (header.n, header.d),
        header.nnz,
        header.zero_based,
        names,
        tuple(header.digests),
        notes,
    )


def _held_out(settings: Settings, data: Rows, spinner: Spinner) -> tuple[Any, Floats] | None:
    """The rows of ``--validation``, in the columns and classes of the training rows."""
    from ..data.formats.reading import kind_of, read_data

    if settings.validation is None:
        return None
    spinner.say(f"reading {settings.validation}")
    zero_based: Any = "auto"
    if data.zero_based is not None and kind_of(settings.validation) != "store":
        zero_based = "yes" if data.zero_based else "no"
    rows = read_data(settings.validation, n_features=data.shape[1], zero_based=zero_based)
    return rows.X, (rows.y if data.classes is None else signs(rows, *data.classes, "the training rows'"))


class Last:
    """A watcher that remembers the latest record."""

    record: Record

    def __call__(self, record: Record) -> None:
        self.record = record


class _Trace:
    """The JSON lines of a run; the file is begun with the first record, so that bad input leaves no file
    behind.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines: Any = None
        self.failure: str | None = None  # a history that cannot be written is no reason to lose the model

    def __call__(self, record: Record) -> None:
        if self.failure is not None:
            return
        try:
            if self._lines is None:
                from ..training.callbacks import JsonLines

                self._lines = JsonLines(self._file)
            self._lines(record)
        except OSError as error:
            self.failure = f"{self._file}: cannot be written: {error.strerror or error}"

    def close(self, reason: Reason | None = None) -> None:
        if self._lines is None:
            return
        try:
            self._lines.close(reason)
        except OSError as error:
            self.failure = self.failure or f"{self._file}: cannot be written: {error.strerror or error}"


def _fit(
    settings: Settings,
    options: dict[str, Any],
    data: Rows,
    held_out: tuple[Any, Floats] | None,
    trace: _Trace | None,
    spinner: Spinner,
    ctrl_c: CtrlC,
) -> tuple[Outcome, Record]:
    from ..api import fit
    from ..training.callbacks import Progress
    from ..training.stopping import Reason

    spinner.say(PREPARING)
    last = Last()
    watchers: list[Any] = [last, spinner]
    if not settings.quiet:
        watchers.append(Progress(settings.tol))
        if not settings.as_json:
            watchers.append(Introduction(settings, data, spinner))
    if trace is not None:
        watchers.append(trace)

    def interrupted(record: Record) -> Reason | None:
        return Reason("interrupted", "interrupted; this is the best model so far") if ctrl_c.pressed else None

    outcome = fit(
        data.X,
        data.targets,
        sample_weight=data.weight,
        watchers=watchers,
        record_every=settings.record_every,
        callback=interrupted,
        validation=held_out,
        patience=settings.patience,
        **_arguments(settings),
        **options,
    )
    return outcome, last.record
