"""``dualgap predict``: a label, or a decision value, for every row."""

from __future__ import annotations

from pathlib import Path

import click

from .console import emit, json_option
from .data import data_argument, model_argument, plain, read_for, shown, zero_based_option


@click.command(short_help="Predict labels or scores, one a line.")
@model_argument
@data_argument
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write there instead of to stdout."
)
@click.option("--scores", is_flag=True, help="Decision values instead of labels.")
@zero_based_option
@json_option
def command(
    model_file: Path, data_file: Path, output: Path | None, scores: bool, zero_based: str, as_json: bool
) -> None:
    """Apply MODEL to the rows of DATA and print one label a line, as the training file wrote them.

    A model of one class against the rest predicts that class or the word "rest". Models for regression print
    their predictions. Labels in DATA are read but not used.
    """
    from ..files.model import load_model
    from ..files.writing import check_destination, replacing

    if output is not None:
        check_destination(output, DATA=data_file, MODEL=model_file)
    model = load_model(model_file)
    data = read_for(model, data_file, zero_based)
    found = model.decision(data.X)
    numeric = scores or model.classes is None
    if numeric:
        lines = [" ".join(map(repr, row)) if isinstance(row, list) else repr(row) for row in found.tolist()]
    else:
        lines = [shown(label) for label in model.labels(found)]
    text = "\n".join(lines) + "\n"
    if output is not None:
        with replacing(output) as stream:
            stream.write(text.encode())
    if as_json:
        key = "scores" if numeric else "labels"
        values = found.tolist() if numeric else [shown(None) if v is None else plain(v) for v in model.labels(found)]
        emit({"n_samples": len(lines), **({key: values} if output is None else {"output": str(output)})})
    elif output is None:
        click.echo(text, nl=False)
