"""The output of ``dualgap train``: what is about to be trained, and what came out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..models.building import bias_words, loss_spec, rho_of
from ..training.callbacks import Callback
from .console import Spinner, counted, headline, said, size_of, table

if TYPE_CHECKING:
    from ..core.losses import Loss
    from ..core.problem import Problem
    from ..data.dataset import Dataset
    from ..models.model import Model
    from ..training.outcome import Outcome
    from ..training.records import Record
    from ..training.solver import AnySolver
    from ..training.stopping import Reason

SLOW = "max_epochs", "max_visits", "time_limit", "stalled"  # reasons that may come of the scales of columns
PREPARING = "preparing"


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
    trace: Path | None
    checkpoint: Path | None
    checkpoint_every: str
    resume: Path | None
    record_every: int | None
    validation: Path | None
    patience: int
    plan: bool
    no_duals: bool
    in_memory: bool | None
    memory_budget: int | None
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
    last: Record
    model: Model
    interrupted: Reason | None  # by a signal after training began, be it while the model was saved
    trace_failure: str | None = None

    def summary(self) -> dict[str, Any]:
        """The object that ``--json`` prints; primal, dual and gap are in C-form."""
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
            "visits": self.last.visits,
            "seconds": self.last.seconds,
            "train_seconds": self.last.train_seconds,
            "certify_seconds": self.last.certify_seconds,
            "compile_seconds": self.last.compile_seconds,
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
        """The report for people; data and problem have been printed before training (`Introduction`)."""
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
                seconds_line(self.last),
            ]
        )
        if self.outcome.remark:
            click.echo("Note that " + self.outcome.remark.replace("output='last'", "--keep last") + ".")
        click.echo(statement(certificate, self.outcome.problem.lam))
        size = size_of(self.file.stat().st_size)
        duals = "no duals" if model.dual is None else counted(model.dual.nnz, "nonzero dual")
        click.echo(f"model: {self.file} ({size}, {duals})")

    def _likely_cause(self) -> str:
        """A sentence about bad scales of the data, if they may have made training slow; rows on disk are not
        read again.
        """
        from ..data.scales import scales

        if not self.outcome.problem.source.in_memory or self.settings.expand is not None:
            return ""
        return scales(self.data.X)


class Introduction(Callback):
    """A callback that prints what is about to be trained, on what, by which solver and why.

    To stdout, as the beginning of the report; and to stderr, where progress is shown, if only that is a
    terminal.
    """

    def __init__(self, settings: Settings, data: Dataset, spinner: Spinner) -> None:
        self._settings, self._data, self._spinner = settings, data, spinner

    def begin(self, problem: Problem, solver: AnySolver, auto_reason: str) -> None:
        """Print, once problem and solver are known."""
        text = "\n".join(self._lines(problem, solver.name, auto_reason)) + "\n"
        self._spinner.stop()
        said(text)
        self._spinner.say(PREPARING)

    def _lines(self, problem: Problem, solver: str, auto_reason: str) -> list[str]:
        from ..data.labels import shown_label

        settings, data = self._settings, self._data
        n, d = data.source.n, data.schema.n_columns
        C = problem.C if settings.lam is not None else settings.C or 1.0  # as given, free of rounding
        strength = f"C = {C:g}" if problem.lam > 0.0 else "lam = 0 (no regulariser)"
        bias = bias_words(problem.bias.kind, rho_of(problem.bias))
        rows, columns, entries = counted(n, "row"), counted(d, "feature"), counted(data.nnz, "nonzero")
        lines = [
            f"{settings.data_file}: {rows}, {columns}, {entries}",
            *(f"  {remark}" for remark in data.notes),
        ]
        if data.labels is not None:
            negative, positive = map(shown_label, data.labels.classes)
            lines.append(f"  positive class: {positive}, negative: {negative}")
        lines.append(f"{_loss_words(problem.loss)} loss, {strength}, {bias}, solver {solver}")
        if auto_reason:
            lines.append(f"  auto chose {solver}: {auto_reason}")
        return lines


def _loss_words(loss: Loss) -> str:
    """The loss, with the parameters that are not at their defaults."""
    from ..core.losses import parameters_of

    return loss_spec(loss.name, parameters_of(loss), parameters_of(type(loss)))


def seconds_line(last: Record) -> tuple[str, str, str]:
    """Where the time of a run went."""
    parts = [f"training {last.train_seconds:.2f}", f"certifying {last.certify_seconds:.2f}"]
    if last.compile_seconds >= 0.005:
        parts.append(f"compiling {last.compile_seconds:.2f} (once for this loss and kind of data)")
    return "seconds", f"{last.seconds:.2f}", ", ".join(parts)


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
