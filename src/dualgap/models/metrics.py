"""Measures of how well a model does on labelled rows: scikit-learn's wherever it has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.losses import loss_named
from ..core.measures import break_even
from ..data.dataset import DataSpec, scan
from ..runtime.arrays import Floats
from ..runtime.errors import InputError
from .scoring import codes_of

if TYPE_CHECKING:
    from .model import Model

SUMMARIES = {
    "accuracy": "share of rows predicted right",
    "error": "share of rows predicted wrong",
    "precision": "share of positive predictions that are right",
    "recall": "share of positive rows that are found",
    "f1": "harmonic mean of precision and recall",
    "break_even": "precision = recall, at the threshold where they meet",
    "auc": "area under the ROC curve",
    "average_precision": "area under the precision-recall curve",
    "log_loss": "mean of -ln(probability of the true class)",
    "precision_macro": "precision, the mean over classes",
    "recall_macro": "recall, the mean over classes",
    "f1_macro": "F1, the mean over classes",
    "precision_micro": "precision of all predictions (for one label a row: the accuracy)",
    "recall_micro": "recall of all rows (for one label a row: the accuracy)",
    "f1_micro": "F1 of all predictions (for one label a row: the accuracy)",
    "auc_macro": "area under the ROC curve, the mean over classes against the rest",
    "average_precision_macro": "area under the precision-recall curve, the mean over classes",
    "subset_accuracy": "share of rows whose labels are all predicted right",
    "hamming_loss": "share of all labels of all rows predicted wrong",
    "break_even_macro": "break-even point, the mean over labels, a threshold for each",
    "break_even_micro": "break-even point of all labels together, a threshold for each",
    "break_even_macro_pooled": "precision = recall, both means over labels, one threshold for all",
    "break_even_micro_pooled": "break-even point of all labels together, one threshold for all",
    "decided": "share of rows whose label no further training can change: the exact optimum has it, too",
    "mse": "mean squared error",
    "mae": "mean absolute error",
    "r2": "share of the variance that is explained",
}


class Measured(NamedTuple):
    """Measures by name, and what they rest on; NaN where a measure is not defined."""

    rows: int
    values: dict[str, float]
    classes: tuple[Any, ...] | None = None  # None: regression
    confusion: Any = None  # rows by their class (down) and the one that was predicted (across)
    per_class: tuple[dict[str, float], ...] = ()  # more than two classes: the measures of each
    positives: tuple[int, ...] = ()  # several labels a row: how many rows have each
    unknown: dict[str, int] | None = None  # and labels that the model does not know, with their rows

    @property
    def counts(self) -> list[int]:
        """The number of rows of each class."""
        if self.confusion is None:
            return list(self.positives)
        return [int(count) for count in self.confusion.sum(axis=1)]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain numbers and lists, for JSON."""
        found: dict[str, Any] = {"n_samples": self.rows, **self.values}
        if self.classes is not None:
            found["classes"] = list(self.classes)
        if self.confusion is not None:
            found["confusion"] = self.confusion.tolist()
        if self.unknown is not None:
            found["unknown_labels"] = self.unknown
        if self.per_class:
            found["per_class"] = [
                {"class": label, "n_samples": count, **values}
                for label, count, values in zip(self.classes or (), self.counts, self.per_class, strict=True)
            ]
        return found


def measure(model: Model, spec: DataSpec) -> Measured:
    """Score all rows, in one pass that keeps labels and scores alone, and compare."""
    if model.multilabel:
        from .label_metrics import measure_labels

        return measure_labels(model, spec)
    schema, k = model.schema, model.coef.shape[0]
    sure: list[Any] = []
    targets, scores = [np.zeros(0)], [np.zeros(0) if k == 1 else np.zeros((0, k))]
    for table in scan(spec, schema):
        if table.y is None:
            raise InputError("y is missing: give one label a row")
        if np.shape(table.codes) != (table.n,):
            raise InputError(
                f"y has shape {np.shape(table.codes)} and X has {table.n} rows; it must be one label a row"
            )
        targets.append(schema.targets(table))
        scores.append(model.decision_function(table.X))
        if model.regions is not None and model.classes is not None:
            sure.append(model.decided(table.X))
    y, found = np.concatenate(targets), np.concatenate(scores)
    if not y.size:
        raise InputError(f"{spec.X}: no rows in it, only blank lines or comments")
    if model.classes is None:
        return Measured(int(y.size), regression(y, found))
    if k == 1:
        probabilistic = loss_named(model.loss, model.loss_parameters).probabilistic
        values = classification(y, found, probabilistic=probabilistic) | _decided(sure)
        confusion = confusion_of(codes_of(y), codes_of(found), 2)
        return Measured(int(y.size), values, model.classes, confusion)
    signed = len(model.classes) == 2 and not model.joint
    codes = codes_of(y) if signed else y.astype(np.intp)
    values, per_class = multiclass(codes, found)
    values |= _decided(sure)
    if model.joint and loss_named(model.loss, model.loss_parameters).probabilistic:
        own = found[np.arange(codes.size), codes]
        values["log_loss"] = float((np.logaddexp.reduce(found, axis=1) - own).mean())
    confusion = confusion_of(codes, codes_of(found), k)
    return Measured(int(y.size), values, model.classes, confusion, per_class)


def _decided(sure: list[Any]) -> dict[str, float]:
    """The share of rows whose label is decided, where the model has bounds."""
    return {"decided": float(np.concatenate(sure).mean())} if sure else {}


def classification(targets: Floats, scores: Floats, *, probabilistic: bool = False) -> dict[str, float]:
    """Measures of scores for targets of -1 and +1; a positive score predicts +1.

    ``probabilistic``: the probability of +1 is 1 / (1 + exp(-score)), so there is a log-loss. It is computed
    from the scores, as a probability that rounds to 0 or 1 has lost them.
    """
    positive, predicted = targets > 0, scores > 0
    values = {**_accuracy(positive, predicted), **_found(positive, predicted, 2)[1]}
    values["break_even"] = break_even(positive, scores)
    values |= areas(positive, scores)
    if probabilistic:
        values["log_loss"] = float(np.logaddexp(0.0, -targets * scores).mean())
    return values


def multiclass(codes: Any, scores: Floats) -> tuple[dict[str, float], tuple[dict[str, float], ...]]:
    """Measures of K scores a row, the highest of which tells the class; and those of each class.

    A mean of areas leaves out the classes for which they are not defined.
    """
    predicted, count = codes_of(scores), scores.shape[1]
    per_class = [
        {**found, **areas(codes == k, scores[:, k])}
        for k, found in enumerate(_found(codes, predicted, count))
    ]
    values = _accuracy(codes, predicted)
    values |= means(codes, predicted)
    for name in ("auc", "average_precision"):
        values[f"{name}_macro"] = mean([found[name] for found in per_class])
    return values, tuple(per_class)


def regression(targets: Floats, scores: Floats) -> dict[str, float]:
    """Measures of predictions for any targets."""
    from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

    varied = bool((targets != targets[0]).any())
    return {
        "mse": float(mean_squared_error(targets, scores)),
        "mae": float(mean_absolute_error(targets, scores)),
        "r2": float(r2_score(targets, scores)) if varied else float("nan"),
    }


def confusion_of(codes: Any, predicted: Any, count: int) -> Any:
    """How many rows of class i were taken for class j, in row i and column j."""
    from sklearn.metrics import confusion_matrix

    return confusion_matrix(codes, predicted, labels=range(count))


NAMES = ("precision", "recall", "f1")


def _accuracy(codes: Any, predicted: Any) -> dict[str, float]:
    from sklearn.metrics import accuracy_score

    accuracy = float(accuracy_score(codes, predicted))
    return {"accuracy": accuracy, "error": 1.0 - accuracy}


def _found(codes: Any, predicted: Any, count: int) -> list[dict[str, float]]:
    """Precision, recall and F1 of each class."""
    from sklearn.metrics import precision_recall_fscore_support

    columns = precision_recall_fscore_support(
        codes, predicted, labels=range(count), average=None, zero_division=np.nan
    )[:3]
    return [
        {name: float(column[k]) for name, column in zip(NAMES, columns, strict=True)} for k in range(count)
    ]


def means(wanted: Any, predicted: Any) -> dict[str, float]:
    """Macro and micro means of precision, recall and F1, with 0 for what is not defined, as scikit-learn has
    them: over all labels of a matrix, or over the classes that rows have or are predicted to have.
    """
    from sklearn.metrics import precision_recall_fscore_support

    found: dict[str, float] = {}
    for average in ("macro", "micro"):
        values = precision_recall_fscore_support(wanted, predicted, average=average, zero_division=0)
        found |= {f"{name}_{average}": float(value) for name, value in zip(NAMES, values, strict=False)}
    return found


def areas(positive: Any, scores: Floats) -> dict[str, float]:
    """The areas under the two curves of one class; NaN where it has no rows, or all of them."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    some, all_ = bool(positive.any()), bool(positive.all())
    return {
        "auc": float(roc_auc_score(positive, scores)) if some and not all_ else float("nan"),
        "average_precision": float(average_precision_score(positive, scores)) if some else float("nan"),
    }


def mean(values: list[float]) -> float:
    """The mean of what is defined."""
    defined = [value for value in values if value == value]
    return float(np.mean(defined)) if defined else float("nan")
