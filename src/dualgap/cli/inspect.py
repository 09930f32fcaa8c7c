"""``dualgap inspect``: describe a file of data or a model."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..models.building import bias_words
from .console import Spinner, counted, emit, json_option, note, size_of
from .data import column_options, zero_based_option

if TYPE_CHECKING:
    from ..data.formats import ReadOptions
    from ..data.formats.arrow.header import Header
    from ..data.summary import Summary
    from ..models.model import Model

_LARGEST = 5  # weights shown
_CLASSES = 12  # labels shown
_UNEVEN = 1e3  # scales of columns that far apart make training slow

Lines = list[tuple[str, str]]


@click.command(short_help="Show what is in a file: data or a model.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--n-features", type=int, help="Number of columns of data; a higher index is an error.")
@zero_based_option("of svmlight text count from 0; auto: if there is an index 0.")
@column_options
@json_option
def command(
    file: Path, n_features: int | None, zero_based: Any, label: str, weight: str | None, as_json: bool
) -> None:
    """Show what is in FILE. Its content tells what kind it is, not its name.

    A model: the problem, the certificate, how it was trained, and its largest weights.

    Data (svmlight text, a store or a Parquet file): rows, columns, nonzeros, labels, empty and repeated rows,
    the range of values, the scale of columns, and how much memory training will take.
    """
    from ..data.formats import ReadOptions, is_model

    if is_model(file):
        if n_features is not None or zero_based != "auto":
            raise click.UsageError("--n-features and --zero-based are for data, and this is a model")
        _inspect_model(file, as_json)
    else:
        _inspect_data(file, ReadOptions(n_features, zero_based, label, weight), as_json)


def _print(heading: str, lines: Lines) -> None:
    width = max(len(name) for name, _ in lines)
    click.echo(heading)
    for name, text in lines:
        click.echo(f"  {name:<{width}}  {text}")


def _inspect_data(file: Path, columns: ReadOptions, as_json: bool) -> None:
    from ..data.formats import format_of
    from ..data.formats.arrow.store import Store
    from ..data.labels import shown_label
    from ..data.summary import summarise

    form = format_of(file)
    size = file.stat().st_size if file.is_file() else None
    with Spinner() as spinner:
        spinner.say(f"reading {file}")
        found = summarise(file, columns)
    header = Store(file).header if form.name == "store" else None
    if as_json:
        values = asdict(found)
        values["labels"] = (
            None if found.labels is None else {shown_label(key): n for key, n in found.labels.items()}
        )
        told = {} if header is None else {"store": asdict(header)}
        kind = {"svmlight": "text"}.get(form.name, form.name)
        emit({"kind": kind, "bytes": size, **values, "density": found.density, **told})
        return
    _print(
        f"{file}: {form.title}{'' if size is None else f' ({size_of(size)})'}",
        _data_lines(found) + _store_lines(header),
    )
    low, high = found.scales
    if 0.0 < low * _UNEVEN < high < math.inf:
        note(
            f"the scales of columns differ {high / low:.2g}-fold; training is faster on columns of like scale"
        )


def _data_lines(found: Summary) -> Lines:
    per_row = found.nnz / found.n
    base = {True: ", counted from 0", False: ", counted from 1", None: ""}[found.zero_based]
    return [
        (
            "rows",
            f"{found.n:,} ({found.empty:,} empty, {found.duplicates:,} repeat an earlier row and its label)",
        ),
        ("columns", f"{found.d:,}{base} ({found.unused:,} without entries)"),
        ("nonzeros", f"{found.nnz:,} ({per_row:.3g} a row, density {100 * found.density:.3g}%)"),
        ("labels", _labels(found)),
        ("values", f"{found.values[0]:.6g} to {found.values[1]:.6g}"),
        ("scale of columns", f"root mean squares from {found.scales[0]:.3g} to {found.scales[1]:.3g}"),
        ("length of rows", f"{found.norms[0]:.4g} to {found.norms[2]:.4g}, mean {found.norms[1]:.4g}"),
        ("memory", f"about {size_of(found.training_bytes)} to train on it, beside the program's own"),
    ]


def _labels(found: Summary) -> str:
    from ..data.labels import shown_label

    if found.labels is None:
        low, high = found.label_range or (None, None)
        return f"more than 1,000 different {'words' if low is None else f'ones, {low:.6g} to {high:.6g}'}"
    ordered = sorted(found.labels.items())
    more = f", and {len(ordered) - _CLASSES} more" if len(ordered) > _CLASSES else ""
    return ", ".join(f"{shown_label(label)}: {count:,}" for label, count in ordered[:_CLASSES]) + more


def _store_lines(header: Header | None) -> Lines:
    if header is None:
        return []
    names = "none" if header.feature_names is None else ", ".join(header.feature_names[:_LARGEST])
    if header.feature_names is not None and header.d > _LARGEST:
        names += ", ..."
    count = len(header.batch_rows)
    batches = f"{count:,} batch{'es' * (count != 1)}"
    return [
        ("order", "as it came in" if header.seed is None else f"shuffled, seed {header.seed}"),
        ("stored as", f"{header.value_type}, {header.compression or 'not compressed'}, in {batches}"),
        ("weights", f"sum {header.total_weight:.6g}" if header.weighted else "none"),
        ("names", names),
    ]


def _inspect_model(file: Path, as_json: bool) -> None:
    from ..models.model import header_of, load_model

    model = load_model(file)
    if as_json:
        dual = None if model.dual is None else int(model.dual.nnz)
        told = {"nonzero_weights": _nonzeros(model), "nonzero_duals": dual}
        emit({"kind": "model", **header_of(model), **told})
        return
    _print(
        f"{file}: dualgap model ({size_of(file.stat().st_size)}, by dualgap {model.written_by})",
        _lines(model),
    )


def _nonzeros(model: Model) -> int:
    import numpy as np

    return int(np.count_nonzero(model.coef))


def _lines(model: Model) -> Lines:
    from ..data.labels import shown_label

    labels = None if model.classes is None else " and ".join(map(shown_label, model.classes))
    base = {True: "0", False: "1", None: ""}[model.zero_based]
    lines = [
        ("task", model.task if labels is None else f"{model.task} of {labels}"),
        (
            "loss",
            " ".join([model.loss, *(f"{key}={value:g}" for key, value in model.loss_parameters.items())]),
        ),
        ("bias", bias_words(model.bias, model.rho)),
        ("C", f"{model.C:g}"),
        ("trained on", f"{counted(model.n_samples, 'row')}, {counted(model.n_features, 'feature')}"),
        ("solver", f"{model.solver}, seed {model.seed}, {counted(model.threads, 'thread')}"),
    ]
    if base:
        lines.append(("indices", f"count from {base} in the training file"))
    if model.expand is not None:
        lines.append(
            ("expansion", f"{model.expand}, from {counted(model.n_columns, 'column')} to 2^{model.hash_bits}")
        )
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
