"""The base of all classifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from ..core.losses import JOINT, Loss, loss_named, make_loss
from ..core.measures import threshold_for
from ..data.labels import ClassNumbers, Labels, shown_label, signs
from ..models.scoring import indicators_of, labels_of
from ..runtime.arrays import Floats
from ..runtime.checks import shown
from ..runtime.errors import InputError
from ._base import LinearModel, Targets
from ._certified import checked_offset
from ._fitted import dense
from ._input import check_labels, class_factors, loss_for, rows_of, two_or_more, weights_of
from ._peers import Peer, ToSklearn, peer_of_loss
from ._probabilities import PROBABILISTIC, advice, class_probabilities, of_positive
from ._support import SupportVectors
from ._warm import Start

# A joint loss of two classes is a loss of their difference in scores, at twice the C.
_OF_TWO = {"multinomial": "logistic", "crammer-singer": "hinge"}


class Encoded(NamedTuple):
    """Labels as targets, with what a classifier keeps of them."""

    targets: Targets
    weight: Floats  # of rows, times that of their classes
    classes: Any
    absent: tuple[Any, ...] = ()  # labels whose rows all have weight 0
    factors: tuple[float, ...] | None = None  # the weights of the classes


def _has_probabilities(estimator: Any) -> bool:
    loss = make_loss(estimator._loss_spec()).name
    if loss not in PROBABILISTIC:
        raise AttributeError(advice(estimator._loss_spec()))
    return True


class LinearClassifierBase(ClassifierMixin, SupportVectors, ToSklearn, LinearModel):  # type: ignore[misc]
    """A linear classifier of two classes, of K classes (one against the rest, or all at once) or of any
    number of labels a row.
    """

    class_weight: Any = None
    classes_: Any
    _multilabel: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _tasks(self) -> tuple[str, ...]:
        """The tasks that losses may be for."""
        return ("classification",)

    def _two_class_factor(self) -> float:
        """What C is multiplied by where a joint loss is given two classes."""
        return 2.0

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        offset: Any = None,
    ) -> Self:
        """Train on rows and their labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array of shape (n_samples,) or (n_samples, n_labels)
            Their labels, of two classes at least. A matrix of 0 and 1 has a column for each label, of which a
            row may have any number.
        sample_weight : array of shape (n_samples,) or float, default=None
            Weights of the rows, 1 by default. Weight 2 is the row twice, weight 0 is no row.
        X_val, y_val : rows and labels, default=None
            Held-out rows by which to stop early, in place of a part of X.
        offset : array of shape (n_samples,), default=None
            A known part of every score, which is not trained: scores are ``<w, x> + b + offset``. For one
            score a row; ``predict`` is given the offsets of its own rows.

        Returns
        -------
        self
            The estimator itself.
        """
        return self._fit(X, y, sample_weight, X_val, y_val, offset=offset)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        X_val: Any,
        y_val: Any,
        start: Start | None = None,
        offset: Any = None,
    ) -> Self:
        """Train, if need be from given weights."""
        self._validate()
        loss = loss_for(self._loss_spec(), self._tasks(), type(self).__name__)
        several = y is not None and len(_shape(y)) == 2 and _shape(y)[1] > 1
        X, y = rows_of(self, X, y, training=True, several=several)
        weight = weights_of(sample_weight, X.shape[0])
        if several:
            encoded = self._label_targets(y, weight, X_val, y_val)
        else:
            encoded = self._class_targets(y, weight, loss, X_val, y_val)
        targets = encoded.targets
        if loss.task == JOINT and targets.labels is None:
            loss = make_loss(_OF_TWO[loss.name])
            targets = targets._replace(factor=1.0 if several else self._two_class_factor())
        targets = targets._replace(offset=checked_offset(offset, targets.models, loss))
        models, pressed = self._train(X, targets, encoded.weight, loss, start)
        self.classes_, self._multilabel = encoded.classes, several
        self._absent, self._class_weight = encoded.absent, encoded.factors
        if self.keep_dual:
            self._row_weight = encoded.weight
        self._conclude(X, models, pressed, targets.names)
        return self

    def _class_targets(self, y: Any, weight: Floats, loss: Loss, X_val: Any, y_val: Any) -> Encoded:
        """The targets of one label a row, and the weights of rows times those of their classes."""
        check_labels(y)
        labels = Labels.of(y).classes
        codes = Labels(labels).encode(y)
        factors = class_factors(self.class_weight, labels, codes, weight)
        weight = weight * factors[codes]
        present = np.flatnonzero(np.bincount(codes[weight != 0], minlength=labels.size))
        classes, absent = labels[present], Labels(np.delete(labels, present)).plain
        two_or_more(classes.tolist(), labels.tolist())
        joint = loss.task == JOINT and classes.size > 2
        if joint:
            place = np.zeros(labels.size)
            place[present] = np.arange(present.size)

            def of_codes(found: Any) -> Callable[[int], Floats]:
                return lambda k: place[found]
        else:
            positive = present if classes.size > 2 else present[1:]

            def of_codes(found: Any) -> Callable[[int], Floats]:
                return lambda k: signs(found, positive[k])

        names = ["all classes"] if joint else [f"class {label!r}" for label in labels[positive].tolist()]

        def held_targets(y: Any) -> Callable[[int], Floats]:
            found = Labels(labels).encode(y)
            if (found < 0).any():
                row = int(np.argmin(found))
                raise InputError(f"y_val[{row}] is {shown_label(y[row])}, which is no label of y")
            return of_codes(found)

        held = self._held_rows_of(X_val, y_val, held_targets)
        kept = ClassNumbers(classes) if joint else None
        targets = Targets(of_codes(codes), names, codes.astype(np.float64), kept, held)
        kept_factors = None if self.class_weight is None else tuple(factors[present].tolist())
        return Encoded(targets, weight, classes, absent, kept_factors)

    def _label_targets(self, y: Any, weight: Floats, X_val: Any, y_val: Any) -> Encoded:
        """The targets of any number of labels a row."""
        if self.class_weight is not None:
            raise InputError(
                f"class_weight={shown(self.class_weight)} is for one label a row; with several, weigh rows "
                "by sample_weight"
            )
        matrix = dense(y)
        if not np.isin(matrix, (0, 1)).all():
            raise InputError("a matrix of labels holds 0 and 1 only, a column for each label")

        def targets_of(found: Any) -> Callable[[int], Floats]:
            columns = dense(found)
            return lambda k: np.where(columns[:, k] > 0, 1.0, -1.0)

        held = self._held_rows_of(X_val, y_val, targets_of)
        names = [f"label {k}" for k in range(matrix.shape[1])]
        targets = Targets(targets_of(matrix), names, matrix.astype(np.float64), None, held)
        return Encoded(targets, weight, np.arange(matrix.shape[1]))

    def _labels(self) -> tuple[Any, ...] | None:
        return Labels(self.classes_).plain

    def _task(self) -> str | None:
        if self._multilabel:
            return "multilabel"
        return None if loss_named(self._fitted_loss(), {}).task == JOINT else "classification"

    def _fitted_loss(self) -> str:
        """The name of the loss that was trained with; of weights that a user has set, that asked for."""
        name: str = self._origin["loss"] if "_origin" in vars(self) else make_loss(self._loss_spec()).name
        return name

    def _peer(self) -> Peer:
        return peer_of_loss(self._fitted_loss())

    def decision_function(self, X: Any, offset: Any = None) -> Any:
        """Signed scores of rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        offset : array of shape (n_samples,), default=None
            Offsets of the rows, added to their scores.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes one score a row, positive for ``classes_[1]``; else one for each class or label.
        """
        scores = self._scores(X, offset)
        return scores.reshape(-1, 1) if self._multilabel and scores.ndim == 1 else scores

    def predict(self, X: Any, offset: Any = None) -> Any:
        """Labels of rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        offset : array of shape (n_samples,), default=None
            Offsets of the rows, added to their scores.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            For each row the class of the highest score; with any number of labels a row, 1 for those with a
            positive score, else 0.
        """
        scores = self.decision_function(X, **_moved(offset))
        return indicators_of(scores).astype(np.intp) if self._multilabel else labels_of(scores, self.classes_)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, offset: Any = None) -> Floats:
        """The probabilities of the classes, where the loss has them (logistic, multinomial, modified-huber).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        offset : array of shape (n_samples,), default=None
            Offsets of the rows, added to their scores.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            A column for each of ``classes_``. The probabilities of one-against-rest models are divided by
            their sum; with any number of labels a row each column is for itself.
        """
        scores, loss = self.decision_function(X, **_moved(offset)), self._fitted_loss()
        return of_positive(loss, scores) if self._multilabel else class_probabilities(loss, scores)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any, offset: Any = None) -> Floats:
        """The logarithms of ``predict_proba``.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        offset : array of shape (n_samples,), default=None
            Offsets of the rows, added to their scores.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            A column for each of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            logarithms: Floats = np.log(self.predict_proba(X, **_moved(offset)))
        return logarithms

    def decision_threshold(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        precision: float | None = None,
        recall: float | None = None,
    ) -> Any:
        """The threshold for scores at the break-even point, or for a wanted precision or recall.

        Give rows that training has not seen. Rows are taken for positive whose score is above the threshold;
        ``sklearn.model_selection.FixedThresholdClassifier(model, threshold=...,
        response_method="decision_function")`` predicts with it.

        Parameters
        ----------
        X, y, sample_weight : rows, labels and weights
            As in ``fit``.
        precision : float, default=None
            The threshold is the lowest one at which at least this part of the rows taken is positive.
        recall : float, default=None
            The threshold is the highest one at which at least this part of the positive rows is taken.

        Returns
        -------
        float or ndarray of shape (n_classes,)
            With neither, the threshold at which precision equals recall. With more than two classes, or any
            number of labels a row, one for each; NaN where there is none.
        """
        if precision is not None and recall is not None:
            raise InputError(
                "precision and recall exclude each other; give one, or neither for the break-even"
            )
        scores = self.decision_function(X)
        weight = weights_of(sample_weight, scores.shape[0])
        if self._multilabel:
            positives = list((dense(y) > 0).T)
        else:
            positives = [np.asarray(y) == label for label in self.classes_]
        wanted = {"precision": precision, "recall": recall}
        if scores.ndim == 1:
            return threshold_for(positives[1], scores, weight, **wanted)
        return np.array(
            [threshold_for(p, s, weight, **wanted) for p, s in zip(positives, scores.T, strict=True)]
        )


def _shape(y: Any) -> tuple[int, ...]:
    """The shape of labels: an array, a sparse matrix, a data frame or lists."""
    return tuple(y.shape) if hasattr(y, "shape") else np.asarray(y, dtype=object).shape


def _moved(offset: Any) -> dict[str, Any]:
    """An offset as an argument, where there is one: subclasses may define methods of rows alone."""
    return {} if offset is None else {"offset": offset}
