"""``dualgap predict``: a label, or a decision value, for every row."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ..runtime.errors import InputError
from .console import emit, finite, json_option
from .data import check_files, data_argument, model_argument, reading_options, spec_of


@click.command(short_help="Predict labels or scores, one a line.")
@model_argument
@data_argument
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write there instead of to stdout.",
)
@click.option("--scores", is_flag=True, help="Decision values instead of labels.")
@click.option(
    "--probabilities", is_flag=True, help="Probabilities of the classes, of logistic and multinomial models."
)
@click.option(
    "--bounds",
    is_flag=True,
    help="The least and the greatest score that the exact optimum can give each row.",
)
@reading_options
@json_option
@click.option(
    "--quiet", is_flag=True, help="No progress, no remarks: there are none, and labels are printed."
)
def command(
    model_file: Path,
    data_file: Path,
    output: Path | None,
    scores: bool,
    probabilities: bool,
    bounds: bool,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Apply MODEL to the rows of DATA and print one label a line, as the training file wrote them.

    DATA is read in one pass of bounded memory, so it may be of any size; - is the standard input, whose rows
    are answered as they come. A model of K classes predicts the one of the highest score; --scores prints K
    numbers a line, in the order of its classes (`dualgap inspect MODEL`), and so does --probabilities.
    --bounds prints two numbers for each score: the least and the greatest that the exact optimum of the
    training problem can give the row, as the certificate proves (the tightest after `train --bounds`). A
    model of one class against the rest predicts that class or the word "rest". A multilabel model prints all
    labels whose scores are positive, with commas between them: an empty line for none. Models for regression
    print their predictions. Labels in DATA are read but not used.
    """
    from ..data.labels import REST
    from ..models.saving import load_model
    from ..models.scoring import probabilities_of

    output = None if output == Path("-") else output
    check_files({"FILE": output}, {"DATA": data_file, "MODEL": model_file}, prints=output is None or as_json)
    model = load_model(model_file)
    if probabilities:
        model.check_probabilistic()
    if bounds and (scores or probabilities):
        raise InputError("--bounds does not go with --scores or --probabilities; ask for one of them")
    numeric = scores or probabilities or bounds or model.classes is None
    kind = "probabilities" if probabilities else "bounds" if bounds else "scores" if numeric else "labels"
    spec = spec_of(data_file, {**reading, "labelled": False})
    n = 0
    as_list = as_json and output is None
    with _writer(output) as write:
        for found in model.bounds(spec) if bounds else model.scores(spec):
            answers: list[Any] = (probabilities_of(found) if probabilities else found).tolist()
            if not numeric:
                answers = [REST if label is None else label for label in model.labels(found)]
            if not numeric and model.multilabel and not as_list:
                answers = [",".join(map(str, labels)) for labels in answers]
            if as_list:
                listed = ", ".join(json.dumps(finite(answer)) for answer in answers)
                lead = ", " if n else f'{{"{kind}": ['
                write(lead + listed if answers else "")
            else:
                write("".join((_number(answer) if numeric else str(answer)) + "\n" for answer in answers))
            n += len(answers)
        if not n:
            raise InputError(f"{data_file}: no rows in it, only blank lines or comments")
        if as_list:
            write(f'], "n_samples": {n}}}\n')
    if as_json and output is not None:
        emit({"n_samples": n, "output": str(output)})


def _number(score: Any) -> str:
    return " ".join(map(repr, score)) if isinstance(score, list) else repr(score)


@contextmanager
def _writer(output: Path | None) -> Iterator[Callable[[str], Any]]:
    """Writes text to the file, which appears when all is written, or to stdout."""
    from ..runtime.writing import replacing

    if output is None:
        yield lambda text: (sys.stdout.write(text), sys.stdout.flush())
        return
    with replacing(output) as stream:
        yield lambda text: stream.write(text.encode())
