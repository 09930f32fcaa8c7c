"""Measures of models whose rows may have any number of labels each: of every label, and their means.

Macro means are over labels, micro ones over all pairs of a row and a label. Precision, recall and F1 that are
not defined (of a label that no row has, or that is never predicted) count as 0 in their means, as in
scikit-learn with ``zero_division=0``; break-even points and areas that are not defined are left out.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.measures import break_even
from ..data.dataset import DataSpec, scan
from ..data.label_sets import LabelSets, label_matrix
from ..runtime.arrays import Floats
from ..runtime.errors import InputError
from .metrics import NAMES, Measured, areas, mean, means

if TYPE_CHECKING:
    from .model import Model


def measure_labels(model: Model, spec: DataSpec) -> Measured:
    """Score all rows, and compare; labels that the model does not know are counted and left out."""
    schema, labels = model.schema, model.schema.labels
    assert isinstance(labels, LabelSets)
    wanted, scores, unknown = [], [], Counter[str]()
    spec = spec.with_arrays()
    for table in scan(spec._replace(y=label_matrix(spec.y)), schema):
        if table.codes is None:
            raise InputError("y is missing: give a row of labels for each row")
        has, others = labels.indicators(table.codes, table.label_names)
        if has.shape[0] != table.n:
            raise InputError(f"y has {has.shape[0]} rows and X has {table.n}; they must be equally many")
        wanted.append(has)
        scores.append(model.decision_function(table.X))
        unknown.update(others)
    if not wanted:
        raise InputError(f"{spec.X}: no rows in it, only blank lines or comments")
    Y, found = np.concatenate(wanted), np.concatenate(scores)
    values, per_label = multilabel(Y, found)
    positives = tuple(Y.sum(axis=0).tolist())
    return Measured(Y.shape[0], values, model.classes, None, per_label, positives, dict(unknown))


def multilabel(Y: Any, scores: Floats) -> tuple[dict[str, float], tuple[dict[str, float], ...]]:
    """Measures of K scores a row, of which the positive ones predict a label; and those of each label."""
    from sklearn.metrics import accuracy_score, hamming_loss, precision_recall_fscore_support

    predicted = scores > 0
    each = precision_recall_fscore_support(Y, predicted, average=None, zero_division=np.nan)[:3]
    per_label = tuple(
        {name: float(column[k]) for name, column in zip(NAMES, each, strict=True)}
        | {"break_even": break_even(Y[:, k], scores[:, k])}
        | areas(Y[:, k], scores[:, k])
        for k in range(Y.shape[1])
    )
    values = {
        "subset_accuracy": float(accuracy_score(Y, predicted)),
        "hamming_loss": float(hamming_loss(Y, predicted)),
    }
    values |= means(Y, predicted)
    points, rows = np.array([found["break_even"] for found in per_label]), Y.sum(axis=0)
    values["break_even_macro"] = mean(points.tolist())
    # each label takes as many rows as it has, so precision and recall of all of them are equal as well
    values["break_even_micro"] = float(np.nansum(points * rows) / rows.sum()) if rows.any() else float("nan")
    values["break_even_macro_pooled"] = macro_break_even(Y, scores)
    values["break_even_micro_pooled"] = break_even(Y.reshape(-1), scores.reshape(-1))
    for name in ("auc", "average_precision"):
        values[f"{name}_macro"] = mean([found[name] for found in per_label])
    return values, per_label


def macro_break_even(Y: Any, scores: Floats) -> float:
    """Where the mean precision over labels equals their mean recall, at one threshold for all labels.

    Labels without rows are left out; precision is a mean over the labels of which rows are taken. As the
    threshold falls, recall grows from 0 to 1: the first threshold at which it is not below precision counts,
    linear between it and the one before.
    """
    some = Y.any(axis=0)
    Y, scores = Y[:, some], scores[:, some]
    n, k = Y.shape
    if not k:
        return float("nan")
    order = np.argsort(-scores, axis=0, kind="stable")
    right = np.take_along_axis(Y, order, axis=0)
    precision = np.cumsum(right, axis=0) / np.arange(1.0, n + 1.0)[:, None]
    falling = np.take_along_axis(scores, order, axis=0).reshape(-1)
    pooled = np.argsort(-falling, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(falling[pooled])), pooled.size - 1)  # ties are taken together
    taken = np.zeros((n, k))
    taken[0] = 1.0  # the first row of a label makes its precision defined
    changes = np.diff(precision, axis=0, prepend=0.0)
    means, defined, recall = (
        np.cumsum(part.reshape(-1)[pooled])[ends] for part in (changes, taken, right / right.sum(axis=0) / k)
    )
    means = means / defined
    met = int(np.argmax(recall >= means - 1e-12))  # at the latest where all rows are taken
    above = (means[met - 1], recall[met - 1]) if met else (means[0], 0.0)
    short, over = above[0] - above[1], recall[met] - means[met]
    share = 1.0 if short + over <= 0.0 else short / (short + over)
    return float(above[1] + share * (recall[met] - above[1]))
