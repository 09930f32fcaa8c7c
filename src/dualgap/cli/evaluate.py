"""``dualgap evaluate``: how well a model does on labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .console import columns, counted, emit, json_option, quiet_option, table
from .data import array_options, data_argument, model_argument, reading_options, spec_of

if TYPE_CHECKING:
    from ..models.metrics import Measured

_CLASSES = 20  # a confusion matrix of more classes is not printed whole
_WORST = 10  # what is shown of it instead


@click.command(short_help="Measure a model on labelled rows.")
@model_argument
@data_argument
@reading_options
@array_options
@json_option
@quiet_option
def command(model_file: Path, data_file: Path, as_json: bool, quiet: bool, **reading: Any) -> None:
    """Measure MODEL on the labelled rows of DATA.

    Two classes: accuracy, error, precision, recall, F1, the break-even point, the areas under the ROC and the
    precision-recall curve, the log-loss of models that have probabilities (logistic), and the confusion
    matrix. The break-even point takes as many rows for positive as there are, those of the highest scores;
    rows that tie at that threshold count in proportion (linear interpolation between the two neighbouring
    thresholds).

    More classes: precision, recall, F1 and the areas of each class and their means (macro: of the classes;
    micro: of the rows), the log-loss of a multinomial model, and the confusion matrix; of more than 20
    classes, the worst ones and the most frequent confusions.

    Several labels a row (multilabel): precision, recall, F1, the break-even point and the areas of each
    label, their macro and micro means, and the share of rows whose labels are all right. Break-even points
    are with a threshold for each label, or with one for all (pooled). Labels that the model does not know are
    left out, and named.

    Macro and micro means of precision, recall and F1 are scikit-learn's with zero_division=0.

    Regression: mean squared error, mean absolute error and R2. What is not defined (recall without positive
    rows) is shown as a dash, and as null with --json.
    """
    from ..models.metrics import SUMMARIES
    from ..models.saving import load_model

    found = load_model(model_file).evaluate(spec_of(data_file, reading))
    if as_json:
        emit(found.as_dict())
    if as_json or quiet:
        return
    click.echo(f"{model_file} on {data_file}: {counted(found.rows, 'row')}{_classes(found)}")
    table([(name.replace("_", "-"), _shown(value), SUMMARIES[name]) for name, value in found.values.items()])
    if found.per_class:
        _per_class(found)
    if found.confusion is not None:
        _confusion(found)
    if found.unknown:
        labels = ", ".join(f"{label}: {count:,}" for label, count in list(found.unknown.items())[:_CLASSES])
        click.echo(f"\nlabels that the model does not know, left out (with their rows): {labels}")


def _shown(value: float) -> str:
    return "-" if value != value else f"{value:.6g}"


def _classes(found: Measured) -> str:
    from ..data.labels import shown_label

    if found.classes is None:
        return ""
    if found.confusion is None:
        empty = found.counts.count(0)
        left_out = "0 in means of precision, recall and F1, left out of those of break-even points and areas"
        without = f", {empty} of them without rows ({left_out})" if empty else ""
        return f", {len(found.classes)} labels{without}"
    if len(found.classes) > 2:
        return f" of {len(found.classes)} classes"
    return f", {counted(found.counts[1], 'row')} of the positive class {shown_label(found.classes[1])}"


def _per_class(found: Measured) -> None:
    """The measures of each class, or of the worst ones."""
    from ..data.labels import shown_label

    assert found.classes is not None
    order = list(range(len(found.classes)))
    if len(order) > _CLASSES:
        defined = [k for k in order if found.per_class[k]["f1"] == found.per_class[k]["f1"]]
        order = sorted(defined, key=lambda k: found.per_class[k]["f1"])[:_WORST]
        click.echo(f"\nthe {_WORST} classes of the smallest F1")
    else:
        click.echo()
    names = list(found.per_class[0])
    rows = [
        [
            shown_label(found.classes[k]),
            f"{found.counts[k]:,}",
            *(_shown(found.per_class[k][name]) for name in names),
        ]
        for k in order
    ]
    columns(["class", "rows", *(name.replace("_", "-") for name in names)], rows)


def _confusion(found: Measured) -> None:
    """The confusion matrix, or the most frequent confusions."""
    from ..data.labels import shown_label

    assert found.classes is not None
    labels = [shown_label(label) for label in found.classes]
    matrix = found.confusion.tolist()
    if len(labels) <= _CLASSES:
        click.echo("\nconfusion matrix: rows of a class (down), by the class predicted (across)")
        columns(["", *labels], [[label, *map(str, row)] for label, row in zip(labels, matrix, strict=True)])
        return
    pairs = [(count, i, j) for i, row in enumerate(matrix) for j, count in enumerate(row) if i != j and count]
    pairs.sort(key=lambda pair: (-pair[0], pair[1:]))
    click.echo("\nthe most frequent confusions (--json has the whole matrix)")
    columns(
        ["class", "predicted", "rows"],
        [[labels[i], labels[j], f"{count:,}"] for count, i, j in pairs[: 2 * _WORST]],
    )
