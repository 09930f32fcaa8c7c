"""``dualgap evaluate``: how well a model does on labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .console import counted, emit, json_option, table
from .data import data_argument, model_argument, reading_options, spec_of


@click.command(short_help="Measure a model on labelled rows.")
@model_argument
@data_argument
@reading_options
@json_option
def command(model_file: Path, data_file: Path, as_json: bool, **reading: Any) -> None:
    """Measure MODEL on the labelled rows of DATA.

    Classification: accuracy, error, precision, recall, F1, the break-even point and the area under the ROC
    curve. The break-even point takes as many rows for positive as there are, those of the highest scores;
    rows that tie at that threshold count in proportion (linear interpolation between the two neighbouring
    thresholds).

    Regression: mean squared error, mean absolute error and R2. What is not defined (recall without positive
    rows) is shown as a dash, and as null with --json.
    """
    from ..data.labels import shown_label
    from ..models.metrics import SUMMARIES, measure
    from ..models.model import load_model

    model = load_model(model_file)
    found = measure(model, spec_of(data_file, reading))
    if as_json:
        emit({"n_samples": found.rows, **found.values})
        return
    positives = ""
    if model.classes is not None:
        positives = (
            f", {counted(found.positives, 'row')} of the positive class {shown_label(model.classes[1])}"
        )
    click.echo(f"{model_file} on {data_file}: {counted(found.rows, 'row')}{positives}")
    shown = {name: "-" if value != value else f"{value:.6g}" for name, value in found.values.items()}
    table([(name.replace("_", "-"), text, SUMMARIES[name]) for name, text in shown.items()])
