"""``dualgap inspect``: what is in a model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .console import counted, emit, json_option, size_of
from .data import model_argument, shown
from .modelling import bias_words

if TYPE_CHECKING:
    from ..files.model import Model

_LARGEST = 5  # weights shown


@click.command(short_help="Show what is in a model file.")
@model_argument
@json_option
def command(model_file: Path, as_json: bool) -> None:
    """Show what is in MODEL: the problem, the certificate, how it was trained, and its largest weights."""
    from ..files.model import header_of, load_model

    model = load_model(model_file)
    if as_json:
        dual = None if model.dual is None else int(model.dual.nnz)
        emit({**header_of(model), "nonzero_weights": _nonzeros(model), "nonzero_duals": dual})
        return
    lines = _lines(model)
    width = max(len(name) for name, _ in lines)
    click.echo(f"{model_file}: dualgap model ({size_of(model_file.stat().st_size)}, by dualgap {model.written_by})")
    for name, text in lines:
        click.echo(f"  {name:<{width}}  {text}")


def _nonzeros(model: Model) -> int:
    import numpy as np

    return int(np.count_nonzero(model.coef))


def _lines(model: Model) -> list[tuple[str, str]]:
    labels = None if model.classes is None else " and ".join(shown(label) for label in model.classes)
    base = {True: "0", False: "1", None: ""}[model.zero_based]
    lines = [
        ("task", model.task if labels is None else f"{model.task} of {labels}"),
        ("loss", " ".join([model.loss, *(f"{key}={value:g}" for key, value in model.loss_parameters.items())])),
        ("bias", bias_words(model)),
        ("C", f"{model.C:g}"),
        ("trained on", f"{counted(model.n_samples, 'row')}, {counted(model.n_features, 'feature')}"),
        ("solver", f"{model.solver}, seed {model.seed}, {counted(model.threads, 'thread')}"),
    ]
    if base:
        lines.append(("indices", f"count from {base} in the training file"))
    for proof in model.proofs:
        certificate = proof.certificate
        lines += [
            ("lam", f"{proof.lam:g}"),
            ("objective", f"{certificate['primal']:.8g} (form {certificate['form']})"),
            ("lower bound", f"{certificate['dual']:.8g}"),
            ("relative gap", f"{certificate['relative_gap']:.3g}"),
            ("effort", f"{proof.epochs:.1f} epochs, {proof.seconds:.2f} s"),
            ("stopped", proof.message),
        ]
    lines.append(("weights", f"{counted(_nonzeros(model), 'nonzero')}, intercept {model.intercept.tolist()}"))
    lines.append(("largest", _largest(model)))
    lines.append(("duals", "left out" if model.dual is None else counted(int(model.dual.nnz), "nonzero")))
    lines.append(("fingerprint", str(model.fingerprint)))
    return lines


def _largest(model: Model) -> str:
    """The largest weights of the first row, by the numbers that the training file has for their columns."""
    import numpy as np

    row: Any = model.coef[0]
    base = 0 if model.zero_based else 1
    columns = np.argsort(-np.abs(row), kind="stable")[:_LARGEST]
    names = model.feature_names or range(base, row.size + base)
    return ", ".join(f"{names[j]}: {row[j]:.4g}" for j in columns if row[j] != 0.0) or "none"
