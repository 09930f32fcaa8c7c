"""``dualgap inspect``: describe a file of data or a model."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .console import Spinner, emit, json_option, note, printable, quiet_option, size_of
from .data import array_options, check_columns, column_options, multilabel_option, zero_based_option
from .model_card import Lines, inspect_model

if TYPE_CHECKING:
    from ..data.dataset import DataSpec
    from ..data.formats.arrow.header import Header
    from ..data.summary import Summary

_NAMES = 5  # of columns, shown
_CLASSES = 12  # labels shown
_UNEVEN = 1e3  # scales of columns that far apart make training slow


@click.command(short_help="Show what is in a file: data or a model.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--n-features", type=int, help="Number of columns of data; a higher index is an error.")
@zero_based_option("of svmlight text count from 0; auto: if there is an index 0.")
@column_options
@array_options
@multilabel_option
@json_option
@quiet_option
def command(
    file: Path,
    n_features: int | None,
    zero_based: Any,
    label: str,
    weight: str | None,
    labels: Path | None,
    weights: Path | None,
    multilabel: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show what is in FILE. Its content tells what kind it is, not its name.

    A model: what it was trained on, the objective it minimises, what its certificate proves, the solver and
    its effort, its largest weights with their names, and how to use it; of K classes, a line for each.

    Data (svmlight text, a store, a Parquet file or a NumPy array): rows, columns, nonzeros, labels, empty and
    repeated rows, the range of values, the scale of columns, and how much memory training will take.
    """
    from ..data.formats import ReadOptions, format_of, is_model

    if is_model(file):
        if n_features is not None or zero_based != "auto":
            raise click.UsageError("--n-features and --zero-based are for data, and this is a model")
        inspect_model(file, as_json=as_json, quiet=quiet)
    else:
        from ..data.dataset import DataSpec

        check_columns(file, label, weight)
        bare = labels is None and format_of(file).rows_alone
        columns = ReadOptions(n_features, zero_based, label, weight, multilabel, labelled=not bare)
        _inspect_data(DataSpec(file, labels, weights, columns=columns), file, as_json, quiet)


def _print(heading: str, lines: Lines) -> None:
    width = max(len(name) for name, _ in lines)
    click.echo(heading)
    for name, text in lines:
        click.echo(f"  {name:<{width}}  {printable(text)}")


def _inspect_data(spec: DataSpec, file: Path, as_json: bool, quiet: bool) -> None:
    from ..data.formats import format_of
    from ..data.formats.arrow.store import Store
    from ..data.labels import shown_label
    from ..data.summary import summarise

    form = format_of(file)
    size = file.stat().st_size if file.is_file() else None
    with Spinner(not quiet) as spinner:
        spinner.say(f"reading {file}")
        found = summarise(file, spec.columns, spec.y, spec.weight)
    header = Store(file).header if form.name == "store" else None
    if as_json:
        values = asdict(found)
        values["labels"] = (
            {shown_label(key): n for key, n in found.labels.items()}
            if found.labels is not None and spec.columns.labelled
            else None
        )
        told = {} if header is None else {"store": asdict(header)}
        kind = {"svmlight": "text"}.get(form.name, form.name)
        emit({"kind": kind, "bytes": size, **values, "density": found.density, **told})
    if as_json or quiet:
        return
    _print(
        f"{file}: {form.title}{'' if size is None else f' ({size_of(size)})'}",
        _data_lines(found, labelled=spec.columns.labelled) + _store_lines(header),
    )
    low, high = found.scales
    if 0.0 < low * _UNEVEN < high < math.inf:
        note(
            f"the scales of columns differ {high / low:.2g}-fold; training is faster on columns of like "
            "scale (train --scale max-abs)"
        )


def _data_lines(found: Summary, *, labelled: bool) -> Lines:
    per_row = found.nnz / found.n
    base = {True: ", counted from 0", False: ", counted from 1", None: ""}[found.zero_based]
    return [
        (
            "rows",
            f"{found.n:,} ({found.empty:,} empty, {found.duplicates:,} repeat an earlier row and its label)",
        ),
        ("columns", f"{found.d:,}{base} ({found.unused:,} without entries)"),
        ("nonzeros", f"{found.nnz:,} ({per_row:.3g} a row, density {100 * found.density:.3g}%)"),
        ("labels", _labels(found) if labelled else "none: the file holds rows alone (--labels)"),
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
    counts = ", ".join(f"{shown_label(label)}: {count:,}" for label, count in ordered[:_CLASSES]) + more
    if not found.multilabel:
        return counts
    return f"{counts}; any number a row, {found.unlabelled:,} rows without (--task multilabel)"


def _store_lines(header: Header | None) -> Lines:
    if header is None:
        return []
    names = "none" if header.feature_names is None else ", ".join(header.feature_names[:_NAMES])
    if header.feature_names is not None and header.d > _NAMES:
        names += ", ..."
    count = len(header.batch_rows)
    batches = f"{count:,} batch{'es' * (count != 1)}"
    return [
        ("order", "as it came in" if header.seed is None else f"shuffled, seed {header.seed}"),
        ("stored as", f"{header.value_type}, {header.compression or 'not compressed'}, in {batches}"),
        ("weights", f"sum {header.total_weight:.6g}" if header.weighted else "none"),
        ("names", names),
    ]
