"""The output of ``dualgap train``: what is about to be trained, and what came out."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..models.building import bias_words, loss_spec, rho_of, scale_words
from ..training.callbacks import Callback
from .console import Spinner, counted, headline, said, size_of, table
from .words import in_options

if TYPE_CHECKING:
    from ..core.losses import Loss
    from ..core.problem import Certificate, Regularised
    from ..data.dataset import Dataset
    from ..models.model import Model
    from ..outcome import Outcome
    from ..training.run import Seconds
    from ..training.solver import AnySolver
    from ..training.stopping import Reason

_CLASSES = 20  # labels that a line lists
LOADED = 0.4  # seconds: to compile anything takes longer, to load all that a run needs takes less
SLOW = "max_epochs", "max_visits", "time_limit", "stalled"  # reasons that may come of the scales of columns
PREPARING = "preparing"


def saving_options(function: Any) -> Any:
    """What of a model is saved."""
    duals = click.option(
        "--no-duals", is_flag=True, help="Leave the duals out: smaller, but `certify` can prove less."
    )
    sparse = click.option(
        "--sparse-coef", is_flag=True, help="Save only coefficients that are not 0: smaller where most are."
    )
    bounds = click.option(
        "--bounds",
        is_flag=True,
        help="Keep what bounds the scores of the exact optimum, for `predict --bounds`; some more passes.",
    )
    return bounds(duals(sparse(function)))


class Settings(NamedTuple):
    """The options of ``train``, as click names them."""

    data_file: Path
    model_file: Path | None
    loss: str
    C: float | None
    lam: float | None
    solver: str
    tol: float
    atol: float | None
    target: float | None
    max_epochs: float
    max_visits: int | None
    time_limit: float | None
    stall: str
    keep: str
    bias: str
    rho: float | None
    positive: str | None
    seed: int
    threads: int
    option: tuple[str, ...]
    n_features: int | None
    zero_based: Any
    label: str
    weight: str | None
    labels: Path | None
    weights: Path | None
    trace: Path | None
    checkpoint: Path | None
    checkpoint_every: str
    resume: Path | None
    record_every: str | None
    record_start: bool
    validation: Path | None
    validation_labels: Path | None
    patience: int | None
    metric: str
    task: str | None
    plan: bool
    no_duals: bool
    sparse_coef: bool
    bounds: bool
    in_memory: bool | None
    memory_budget: int | None
    scale: str | None
    expand: str | None
    hash_bits: int | None
    as_json: bool
    quiet: bool


@dataclass(frozen=True, eq=False)
class Trained:
    """A finished run whose model has been saved."""

    settings: Settings
    file: Path
    data: Dataset
    outcome: Outcome
    model: Model
    interrupted: Reason | None  # by a signal after training began, be it while the model was saved
    trace_failure: str | None = None

    @property
    def converged(self) -> bool:
        """Whether the gap asked for has been reached."""
        return bool(self.outcome.converged)

    @property
    def reason(self) -> Reason:
        """Why the run ended."""
        return self.outcome.reason

    def summary(self) -> dict[str, Any]:
        """The object that ``--json`` prints; the certificate is in C-form."""
        settings, model, proof = self.settings, self.model, self.model.proofs[0]
        seconds = self.outcome.seconds
        return {
            **problem_fields(settings, self.data, self.outcome, model),
            "epochs": proof.epochs,
            **({} if self._passes is None else {"passes": self._passes}),
            "visits": proof.visits,
            "seconds": proof.seconds,
            "train_seconds": seconds.training,
            "certify_seconds": seconds.certifying,
            "compile_seconds": seconds.compiling,
            **model.certificate._asdict(),
            "converged": self.converged,
            "stop_reason": self.reason.name,
            "stop_message": in_options(self.reason.message),
            "notes": self._notes,
            "remark": in_options(self.outcome.remark) or None,
            "seed": settings.seed,
            "threads": settings.threads,
            "model": str(self.file),
        }

    def report(self) -> None:
        """The report for people; data and problem have been printed before training (`Introduction`)."""
        from ..models.card import statement

        settings, model = self.settings, self.model
        certificate = in_given_form(settings, self.outcome, model.certificate)
        proof, reason = model.proofs[0], in_options(self.reason.message)
        fact, _, remedy = reason.partition("; ")
        cause = self._cause
        headline(fact if cause else reason, self.converged)
        if cause:
            click.echo(f"{cause}Otherwise {remedy}." if remedy else cause.rstrip())
        passes = [] if self._passes is None else [("passes", f"{self._passes:.2f}", "over the data on disk")]
        atol = "" if settings.atol is None else f"asked: {settings.atol:g}; "
        table(
            [
                ("primal", f"{certificate.primal:.8g}", f"{self._objective}, of this model"),
                ("dual", f"{certificate.dual:.8g}", "lower bound: no model can have a smaller objective"),
                (
                    "gap",
                    f"{certificate.gap:.4g}",
                    f"{atol}rounding included, {certificate.rounding:.2g} at most",
                ),
                ("relative gap", f"{certificate.relative_gap:.3g}", f"asked: {settings.tol:g}"),
                ("epochs", f"{proof.epochs:.1f}", counted(proof.visits, "row visit")),
                *passes,
                seconds_line(self.outcome.seconds),
            ]
        )
        for change in self.outcome.story:
            click.echo(f"auto went over to {change}.")
        if self.outcome.remark:
            click.echo(f"Note that {in_options(self.outcome.remark)}.")
        click.echo(statement(certificate, self.outcome.problem.lam))
        click.echo(model_line(self.file, model))
        if settings.checkpoint is not None and not self.converged:
            click.echo(f"The run is saved: go on with --resume {settings.checkpoint} (and the same options).")

    @property
    def _cause(self) -> str:
        return likely_cause(self.reason.name, self.outcome, self.settings, self.data)

    @property
    def _notes(self) -> list[str]:
        """What the report says besides: of the data, of ``auto``, of a likely cause of slow training."""
        changes = [f"auto went over to {change}" for change in self.outcome.story]
        return [*self.data.notes, *changes, *filter(None, [self._cause.rstrip()])]

    @property
    def _objective(self) -> str:
        """What is minimised, in the form that C or lam implies."""
        target = "" if self.settings.target is None else f" (target: {self.settings.target:g})"
        if self.settings.lam is None:
            return f"|w|^2/2 + C * sum of losses{target}"
        lam = "lam/2 |w|^2 + " if self.outcome.problem.lam > 0.0 else ""
        return f"{lam}mean of the losses{target}"

    @property
    def _passes(self) -> float | None:
        return self.outcome.trace[-1].measures.get("passes") if self.outcome.trace else None


def problem_fields(settings: Settings, data: Dataset, outcome: Outcome, model: Model) -> dict[str, Any]:
    """What was trained, on what and by whom, for ``--json``."""
    return {
        "solver": model.solver,
        "auto_reason": outcome.auto_reason or None,
        "loss": _loss_words(outcome.problem.loss),
        "C": model.C,
        "lam": outcome.problem.lam,
        "bias": model.bias,
        "n_samples": model.n_samples,
        "n_features": model.n_features,
        "nnz": data.nnz,
        "classes": None if model.classes is None else list(model.classes),
    }


def in_given_form(settings: Settings, outcome: Outcome, certificate: Certificate) -> Certificate:
    """The certificate of a model in the form that C or lam implies."""
    return certificate if settings.lam is None else outcome.problem.in_form(certificate, "mean")


def model_line(file: Path, model: Model) -> str:
    """Where the model is, and how large."""
    duals = "no duals" if model.dual is None else counted(model.dual.nnz, "nonzero dual")
    return f"model: {file} ({size_of(file.stat().st_size)}, {duals})"


def likely_cause(reason: str, outcome: Outcome, settings: Settings, data: Dataset) -> str:
    """A sentence about bad scales of the data, if they may have made training slow; rows on disk are not
    read again.
    """
    from ..data.scales import scales

    if reason not in SLOW or not outcome.problem.source.in_memory:
        return ""
    if settings.expand is not None or settings.scale is not None:
        return ""
    return scales(data.X, "--scale {}")


class Introduction(Callback):
    """A callback that prints what is about to be trained, on what, by which solver and why.

    To stdout, as the beginning of the report; and to stderr, where progress is shown, if only that is a
    terminal. The line that says what is being prepared goes away: training shows its own progress. Of the
    runs of several classes, the first one is introduced.
    """

    def __init__(self, settings: Settings, data: Dataset, spinner: Spinner) -> None:
        self._settings, self._data, self._spinner = settings, data, spinner
        self._lock, self._printed = threading.Lock(), False

    def begin(self, problem: Regularised, solver: AnySolver, auto_reason: str) -> None:
        """Print, once problem and solver are known."""
        with self._lock:
            if self._printed:
                return
            self._printed = True
            self._spinner.stop()
            if not self._settings.quiet and not self._settings.as_json:
                said("\n".join(self._lines(problem, solver.name, auto_reason)) + "\n")

    def _lines(self, problem: Regularised, solver: str, auto_reason: str) -> list[str]:
        from ..data.labels import ClassNumbers, listed, shown_label

        settings, data = self._settings, self._data
        n, d = data.source.n, data.schema.n_columns
        strength = f"C = {settings.C or 1.0:g}"  # as given, free of rounding
        if settings.lam is not None:
            same = "no regulariser" if problem.lam == 0.0 else f"C = {problem.C:.6g}"
            strength = f"lam = {settings.lam:g} ({same})"
        bias = bias_words(problem.bias.kind, rho_of(problem.bias))
        rows, columns, entries = counted(n, "row"), counted(d, "feature"), counted(data.nnz, "nonzero")
        lines = [
            f"{settings.data_file}: {rows}, {columns}, {entries}",
            *(f"  {remark}" for remark in data.notes),
        ]
        if isinstance(data.labels, ClassNumbers):
            classes = data.labels.classes
            lines.append(f"  {len(classes)} classes ({listed(classes, _CLASSES)}): one model of all of them")
        elif data.labels is not None and data.labels.models == 1:
            negative, positive = map(shown_label, data.labels.classes)
            lines.append(f"  positive class: {positive}, negative: {negative}")
        elif data.labels is not None:
            classes = data.labels.classes
            kind = "labels" if settings.task == "multilabel" else "classes"
            lines.append(
                f"  {len(classes)} {kind} ({listed(classes, _CLASSES)}): one model each, against the rest"
            )
        if data.schema.scaling is not None:
            lines.append(f"  {scale_words(data.schema.scaling.name)}")
        if data.schema.expansion is not None:
            width = counted(data.schema.width, "column")
            lines.append(f"  expanded by {data.schema.expansion.name} to {width}")
        lines.append(f"{_loss_words(problem.loss)} loss, {strength}, {bias}, solver {solver}")
        if auto_reason:
            lines.append(f"  auto begins with {solver}: {auto_reason}")
        return lines


def _loss_words(loss: Loss) -> str:
    """The loss, with the parameters that are not at their defaults."""
    from ..core.losses import parameters_of

    return loss_spec(loss.name, parameters_of(loss), parameters_of(type(loss)))


def seconds_line(seconds: Seconds) -> tuple[str, str, str]:
    """Where the time of a run went."""
    parts = [f"training {seconds.training:.2f}", f"certifying {seconds.certifying:.2f}"]
    if seconds.compiling >= LOADED:
        parts.append(f"compiling {seconds.compiling:.2f} (once for this loss and kind of data)")
    elif seconds.compiling >= 0.005:
        parts.append(f"loading compiled code {seconds.compiling:.2f}")
    return "seconds", f"{sum(seconds):.2f}", ", ".join(parts)
