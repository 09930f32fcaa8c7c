"""The output of ``dualgap train`` for K classes: a certificate for each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .console import columns, counted, headline
from .report import Settings, in_given_form, likely_cause, model_line, problem_fields
from .words import in_options

if TYPE_CHECKING:
    from ..data.dataset import Dataset
    from ..many import OneVsRest
    from ..models.model import Model
    from ..training.stopping import Reason

GOALS = "atol", "target"  # reasons that say more than that a class converged


@dataclass(frozen=True, eq=False)
class TrainedClasses:
    """Finished runs of one class each, whose model has been saved."""

    settings: Settings
    file: Path
    data: Dataset
    found: OneVsRest
    seconds: float  # of all runs together, by the clock
    model: Model
    interrupted: Reason | None  # by a signal after training began, be it while the model was saved
    trace_failure: str | None = None

    @property
    def converged(self) -> bool:
        """Whether every class has reached the gap asked for."""
        return self.found.converged

    @property
    def reason(self) -> Reason:
        """Why the run of the worst class ended; a run that broke down comes first."""
        outcomes = self.found.outcomes
        broken = [outcome for outcome in outcomes if outcome.reason.name == "broken"]
        worst = max(broken or outcomes, key=lambda outcome: outcome.certificate.relative_gap)
        return worst.reason

    @property
    def _goal(self) -> str:
        """What was asked for, in words."""
        asked = {"absolute gap": self.settings.atol, "target": self.settings.target}
        more = (f"the {name} {value:g}" for name, value in asked.items() if value is not None)
        return " or ".join([f"the relative gap asked for ({self.settings.tol:g})", *more])

    def summary(self) -> dict[str, Any]:
        """The object that ``--json`` prints; certificates are in C-form, one for each class."""
        from ..data.labels import plain

        proofs, certificates = self.model.proofs, self.model.certificates
        passes = self.found.passes
        return {
            **problem_fields(self.settings, self.data, self.found.outcomes[0], self.model),
            "epochs": max(proof.epochs for proof in proofs),
            **({"passes": passes} if passes else {}),
            "visits": sum(proof.visits for proof in proofs),
            "seconds": self.seconds,
            "relative_gap": self.model.certificate.relative_gap,
            "converged": self.converged,
            "stop_reason": self.reason.name,
            "stop_message": in_options(self.reason.message),
            "notes": list(self.data.notes),
            "without_positives": [plain(label) for label in self.found.without_positives],
            "without_negatives": [plain(label) for label in self.found.without_negatives],
            "per_class": [
                {
                    "class": label,
                    "epochs": proof.epochs,
                    "visits": proof.visits,
                    "seconds": proof.seconds,
                    **certificate._asdict(),
                    "converged": proof.converged,
                    "stop_reason": proof.stop_reason,
                    "stop_message": in_options(outcome.reason.message),
                    "solver": outcome.solver.name,
                    "auto_reason": outcome.auto_reason or None,
                    "remark": in_options(outcome.remark) or None,
                }
                for label, proof, certificate, outcome in zip(
                    self.model.classes or (), proofs, certificates, self.found.outcomes, strict=True
                )
            ],
            "seed": self.settings.seed,
            "threads": self.settings.threads,
            "model": str(self.file),
        }

    def report(self) -> None:
        """The report for people; data and problem have been printed before training (`Introduction`)."""
        from ..data.labels import shown_label
        from ..models.card import statements
        from ..outcome import remarks_on_classes

        model = self.model
        kind = "labels" if model.multilabel else "classes"
        behind = [proof for proof in model.proofs if not proof.converged]
        if not behind:
            headline(f"all {len(model.proofs)} {kind} reached {self._goal}")
        else:
            of = f"{len(behind)} of {len(model.proofs)} {kind} did not reach {self._goal}"
            headline(f"{of}; the worst: {in_options(self.reason.message)}", False)
            cause = likely_cause(self.reason.name, self.found.outcomes[0], self.settings, self.data)
            if cause:
                click.echo(cause.rstrip())
        certificates = [
            in_given_form(self.settings, self.found.outcomes[0], certificate)
            for certificate in model.certificates
        ]
        rows = [
            [
                shown_label(label),
                f"{certificate.primal:.8g}",
                f"{certificate.dual:.8g}",
                f"{certificate.gap:.4g}",
                f"{certificate.relative_gap:.3g}",
                f"{proof.epochs:.1f}",
                f"{proof.seconds:.2f}",
                "gap" if proof.converged and proof.stop_reason not in GOALS else proof.stop_reason,
            ]
            for label, proof, certificate in zip(model.classes or (), model.proofs, certificates, strict=True)
        ]
        columns(["class", "primal", "dual", "gap", "relative gap", "epochs", "seconds", "stopped by"], rows)
        for label, outcome in zip(model.classes or (), self.found.outcomes, strict=True):
            for change in outcome.story:
                click.echo(f"class {shown_label(label)}: auto went over to {change}.")
        for remark in remarks_on_classes(model.classes or (), self.found.outcomes):
            click.echo(f"Note on {in_options(remark)}.")
        if self.found.remark:
            click.echo(f"Note that {self.found.remark}.")
        click.echo(statements(model))
        visits = counted(sum(proof.visits for proof in model.proofs), "row visit")
        passes = f", {self.found.passes:.2f} passes over the data on disk" if self.found.passes else ""
        threads = counted(self.settings.threads, "thread")
        click.echo(f"{visits}{passes}, {self.seconds:.2f} s with {threads}")
        click.echo(model_line(self.file, model))
