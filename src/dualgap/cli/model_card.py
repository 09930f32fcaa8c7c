"""How ``dualgap inspect`` prints a model."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from .console import columns, counted, emit, printable, size_of

if TYPE_CHECKING:
    from ..models.model import Model, Proof

_CLASSES = 20  # labels that a line lists

Lines = list[tuple[str, str]]


def inspect_model(file: Path, *, as_json: bool, quiet: bool) -> None:
    """Print what there is to know of a model."""
    from ..models.card import card
    from ..models.saving import load_model

    model = load_model(file)
    if as_json:
        emit({"kind": "model", **card(model)})
    if as_json or quiet:
        return
    click.echo(
        f"{file}: dualgap model ({size_of(file.stat().st_size)}, by dualgap {printable(model.written_by)})"
    )
    lines = [*_origin(model), *_certificate(model), *_weights(model), *_use(file, model)]
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        click.echo(f"  {name:<{width}}  {printable(text)}")
    if model.joint:
        _joint_classes(model)
    elif len(model.proofs) > 1:
        _classes(model)


def _origin(model: Model) -> Lines:
    """What it was trained for, on what, by which solver."""
    from ..data.labels import listed, shown_label
    from ..models.building import scale_words
    from ..models.card import objective

    task = model.task
    if model.multilabel:
        assert model.classes is not None
        task = f"{task} of {len(model.classes)} labels ({listed(model.classes, _CLASSES)})"
    elif model.classes is not None and len(model.classes) == 2 and not model.joint:
        task = f"{task} of {' and '.join(map(shown_label, model.classes))}"
    elif model.classes is not None:
        count, listing = len(model.classes), listed(model.classes, _CLASSES)
        how = "all at once" if model.joint else "one against the rest"
        task = f"classification of {count} classes ({listing}), {how}"
    rows, columns = counted(model.n_samples, "row"), counted(model.n_columns, "feature")
    if model.held_rows is not None:
        rows += f" ({len(model.held_rows):,} of them held out)"
    lines = [
        ("task", task),
        ("trained on", f"{'' if model.data_name is None else f'{model.data_name}: '}{rows}, {columns}"),
        ("date", "unknown" if model.trained is None else model.trained),
        ("objective", objective(model)),
    ]
    if model.class_weight is not None:
        factors = zip(model.classes or (), model.class_weight, strict=True)
        lines.append(("class weights", ", ".join(f"{shown_label(key)}: {value:g}" for key, value in factors)))
    if model.zero_based is not None:
        lines.append(("indices", f"count from {0 if model.zero_based else 1} in the training file"))
    if model.scale is not None:
        lines.append(("scale", scale_words(model.scale)))
    if model.expand is not None:
        width = counted(model.n_columns, "column")
        lines.append(("expansion", f"{model.expand}, from {width} to 2^{model.hash_bits}"))
    return lines


def _certificate(model: Model) -> Lines:
    """What is proven, and how much work it took."""
    from ..models.card import statements

    lines = [("certificate", statements(model))]
    if len(model.proofs) == 1:
        proof, found = model.proofs[0], model.certificate
        gap = f"gap {found.gap:.4g}, relative gap {found.relative_gap:.3g}, rounding {found.rounding:.2g}"
        lines.append(("", f"primal {found.primal:.8g}, dual {found.dual:.8g}, {gap} (form {found.form})"))
        lines.append(("stopped", proof.message))
    chosen = f" (auto: {model.auto_reason})" if model.auto_reason else ""
    lines.append(("solver", f"{model.solver}{chosen}, seed {model.seed}, {counted(model.threads, 'thread')}"))
    if model.proofs:
        lines.append(("effort", _effort(model.proofs)))
    return lines


def _effort(proofs: tuple[Proof, ...]) -> str:
    epochs = max(proof.epochs for proof in proofs)
    visits, seconds = sum(proof.visits for proof in proofs), sum(proof.seconds for proof in proofs)
    most = " at most" if len(proofs) > 1 else ""
    return f"{epochs:.1f} epochs{most}, {counted(visits, 'row visit')}, {seconds:.2f} s"


def _weights(model: Model) -> Lines:
    """Its largest weights, and what else it holds."""
    import numpy as np

    from ..models.card import largest_weights

    nonzeros = counted(int(np.count_nonzero(model.coef)), "nonzero")
    lines = []
    if model.coef.shape[0] == 1:
        lines = [
            (f"largest {sign}", ", ".join(f"{name}: {value:.4g}" for name, value in found) or "none")
            for sign, found in largest_weights(model).items()
        ]
    intercept = f", intercept {model.intercept[0]:.6g}" if model.coef.shape[0] == 1 else ""
    duals = "left out" if model.dual is None else f"{counted(int(model.dual.nnz), 'nonzero')}"
    known = "no fingerprint: `certify` proves it of its rows in their order"
    return [
        *lines,
        ("weights", f"{nonzeros} of {model.coef.size:,}{intercept}"),
        ("duals", duals),
        ("fingerprint", known if model.fingerprint is None else model.fingerprint),
    ]


def _use(file: Path, model: Model) -> Lines:
    data = "DATA" if model.data_name is None else quote(model.data_name)
    name = quote(str(file))
    return [
        ("use", f"dualgap predict {name} DATA, dualgap evaluate {name} DATA, dualgap certify {name} {data}"),
        ("", f'dualgap.Model.load("{file}").predict(X) in Python'),
    ]


def _classes(model: Model) -> None:
    """A line for each class."""
    from ..data.labels import shown_label
    from ..models.card import largest_weights

    rows = []
    for k, (label, proof, found) in enumerate(
        zip(model.classes or (), model.proofs, model.certificates, strict=True)
    ):
        first = [f"{name}: {value:.3g}" for name, value in largest_weights(model, k)["positive"][:2]]
        rows.append(
            [
                shown_label(label),
                f"{found.primal:.8g}",
                f"{found.dual:.8g}",
                f"{found.relative_gap:.3g}",
                f"{proof.epochs:.1f}",
                f"{model.intercept[k]:.4g}",
                ", ".join(first) or "none",
                "yes" if proof.converged else proof.stop_reason,
            ]
        )
    columns(
        ["class", "primal", "dual", "relative gap", "epochs", "intercept", "largest weights", "converged"],
        [[printable(cell) for cell in row] for row in rows],
    )


def _joint_classes(model: Model) -> None:
    """The same for a joint model, whose classes have one certificate together."""
    from ..data.labels import shown_label
    from ..models.card import largest_weights

    rows = []
    for k, label in enumerate(model.classes or ()):
        first = [f"{name}: {value:.3g}" for name, value in largest_weights(model, k)["positive"][:2]]
        rows.append([shown_label(label), f"{model.intercept[k]:.4g}", ", ".join(first) or "none"])
    columns(["class", "intercept", "largest weights"], [[printable(cell) for cell in row] for row in rows])
