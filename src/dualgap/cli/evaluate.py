"""``dualgap evaluate``: how well a model does on labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..runtime.errors import InputError
from .console import counted, emit, json_option, table
from .data import data_argument, model_argument, model_targets, shown, stream_for, zero_based_option

if TYPE_CHECKING:
    from ..models.model import Model
    from ..runtime.arrays import Floats

_MEANINGS = {
    "accuracy": "share of rows predicted right",
    "error": "share of rows predicted wrong",
    "precision": "share of positive predictions that are right",
    "recall": "share of positive rows that are found",
    "f1": "harmonic mean of precision and recall",
    "break_even": "precision = recall, at the threshold where they meet",
    "auc": "area under the ROC curve",
    "mse": "mean squared error",
    "mae": "mean absolute error",
    "r2": "share of the variance that is explained",
}


@click.command(short_help="Measure a model on labelled rows.")
@model_argument
@data_argument
@zero_based_option
@json_option
def command(model_file: Path, data_file: Path, zero_based: str, as_json: bool) -> None:
    """Measure MODEL on the labelled rows of DATA.

    Classification: accuracy, error, precision, recall, F1, the break-even point and the area under the ROC
    curve. The break-even point takes as many rows for positive as there are, those of the highest scores;
    rows that tie at that threshold count in proportion (linear interpolation between the two neighbouring
    thresholds).

    Regression: mean squared error, mean absolute error and R2. What is not defined (recall without positive
    rows) is shown as a dash, and as null with --json.
    """
    from ..models.model import load_model

    model = load_model(model_file)
    targets, scores = _answers(model, data_file, zero_based)
    values = regression(targets, scores) if model.classes is None else classification(targets, scores)
    if as_json:
        emit({"n_samples": int(targets.size), **values})
        return
    positives = ""
    if model.classes is not None:
        positives = (
            f", {counted(int((targets > 0).sum()), 'row')} of the positive class {shown(model.classes[1])}"
        )
    click.echo(f"{model_file} on {data_file}: {counted(int(targets.size), 'row')}{positives}")
    shown_values = {name: "-" if value != value else f"{value:.6g}" for name, value in values.items()}
    table([(name.replace("_", "-"), text, _MEANINGS[name]) for name, text in shown_values.items()])


def _answers(model: Model, data_file: Path, zero_based: str) -> tuple[Floats, Floats]:
    """The targets of all rows and their scores; the rows themselves are read in blocks."""
    import numpy as np

    targets, scores = [], []
    for data in stream_for(model, data_file, zero_based):
        targets.append(model_targets(model, data))
        scores.append(model.decision(data.X))
    if not targets or not sum(part.size for part in targets):
        raise InputError(f"{data_file}: no rows in it, only blank lines or comments")
    return np.concatenate(targets), np.concatenate(scores)


def classification(targets: Floats, scores: Floats) -> dict[str, float]:
    """Measures of scores for targets of -1 and +1; a positive score predicts +1."""
    positive, predicted = targets > 0, scores > 0
    hits = int((positive & predicted).sum())
    accuracy = float((positive == predicted).mean())
    precision = _ratio(hits, int(predicted.sum()))
    recall = _ratio(hits, int(positive.sum()))
    taken, found = _curve(positive, scores)
    return {
        "accuracy": accuracy,
        "error": 1.0 - accuracy,
        "precision": precision,
        "recall": recall,
        "f1": _ratio(2 * hits, int(predicted.sum() + positive.sum())),
        "break_even": _break_even(taken, found),
        "auc": _area(taken, found),
    }


def regression(targets: Floats, scores: Floats) -> dict[str, float]:
    """Measures of predictions for any targets."""
    residual = targets - scores
    spread = float(((targets - targets.mean()) ** 2).sum())
    return {
        "mse": float((residual**2).mean()),
        "mae": float(abs(residual).mean()),
        "r2": 1.0 - _ratio(float((residual**2).sum()), spread),
    }


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def _curve(positive: Any, scores: Floats) -> tuple[Floats, Floats]:
    """For every threshold, from none to all: how many rows are taken for positive, and how many of them
    are.
    """
    import numpy as np

    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), scores.size - 1)  # ties are taken together
    return np.append(0.0, ends + 1.0), np.append(0.0, np.cumsum(positive[order])[ends])


def _break_even(taken: Floats, found: Floats) -> float:
    """Precision found/taken equals recall found/positives where taken = positives; linear between
    thresholds.
    """
    import numpy as np

    return _ratio(float(np.interp(found[-1], taken, found)), float(found[-1]))


def _area(taken: Floats, found: Floats) -> float:
    import numpy as np

    return _ratio(float(np.trapezoid(found, taken - found)), float(found[-1] * (taken[-1] - found[-1])))
