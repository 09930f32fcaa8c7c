"""Models: weights with their certificate, ready to predict, to be measured, verified and saved."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._version import __version__
from ..runtime.arrays import Floats
from ..runtime.errors import InputError
from .scoring import (
    check_finite,
    codes_of,
    indicators_of,
    labels_of,
    probabilities_of,
    rows_for,
    scores_of,
    shifted,
)

if TYPE_CHECKING:  # Numba comes with these, and loading a model to predict does without
    from ..core.certificate import Certificate
    from ..data.dataset import DataSpec
    from ..data.schema import Schema
    from .metrics import Measured
    from .verification import Verification


class Proof(NamedTuple):
    """The certificate of one row of ``coef``, and how it was reached."""

    lam: float
    total_weight: float
    certificate: dict[str, Any]  # the fields of a Certificate, in J form
    converged: bool
    stop_reason: str
    message: str
    epochs: float
    visits: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Model:
    """A linear model with its certificates: one for each row of ``coef``, or none; a joint model of K classes
    (``task="classes"``) has one for all of them.

    ``classes`` are the labels behind the scores: (negative, positive) where ``coef`` has one row, one a row
    where it has more, None for regression. A negative class of None stands for every label but the positive
    one. With ``task="multilabel"`` a row may have any number of the classes: those whose score is positive.

    ``dual`` has a row for each row of ``coef``, in the scale of ``Outcome.dual`` and ``LinearSVC.dual_``: one
    signed number beta_i for each training row (in a joint model K of them, one for each class). No weights w
    have an objective ``1/2 |w|^2 + C sum_i c_i phi_i`` below ``-C sum_i c_i phi*(-beta_i) - 1/2 |w(beta)|^2``
    with ``w(beta) = C sum_i c_i beta_i x_i``. For the hinge, where beta_i lies between 0 and y_i, that is ``C
    sum_i c_i y_i beta_i - 1/2 |w(beta)|^2``.
    """

    coef: Floats
    intercept: Floats
    task: str
    loss: str
    loss_parameters: dict[str, float]
    bias: str
    rho: float
    classes: tuple[Any, ...] | None
    C: float
    n_samples: int
    proofs: tuple[Proof, ...]
    solver: str
    options: dict[str, Any]
    seed: int
    threads: int
    fingerprint: str | None = None  # of the training rows, see fingerprint.py; None: the model knows no rows
    dual: Any = None  # scipy CSR array of shape (k, n_samples), or None where it was left out
    zero_based: bool | None = (
        None  # whether indices in the training file count from 0; None if it was no file
    )
    feature_names: tuple[str, ...] | None = None
    expand: str | None = None  # what makes features of rows, as `make_expansion` reads it
    hash_bits: int | None = None
    n_inputs: int | None = None  # columns of the rows before they are expanded
    scale: str | None = None  # how rows are scaled before that: "max-abs", "unit-rows" or a factor
    scale_columns: Any = None  # of "max-abs": what each column is divided by
    rows_in_order: str | None = (
        None  # a fingerprint made of hashes of single rows (None in models of earlier versions),
    )
    rows_in_any_order: str | None = None  # and one for the same rows in whatever order
    dual_hashes: Any = None  # of the rows that have the nonzero duals: these are found again in another order
    class_weight: tuple[float, ...] | None = None  # factors of the weights of each class's rows
    held_rows: Any = None  # the numbers of rows that were held out of training for validation, if any were,
    held_hashes: Any = None  # and their hashes, with the weights that the data gives them
    offsets: bool = False  # training rows had offsets, a known part of their scores that is not kept
    absent: tuple[Any, ...] = ()  # labels of training rows that all have weight 0, and are no classes
    regions: Any = None  # where the optimum lies, for bounds on scores: a Region for each proof, or None
    auto_reason: str = ""  # why ``solver="auto"`` chose this solver
    data_name: str | None = None  # the file of the training rows
    trained: str | None = None  # when training ended, in UTC
    written_by: str = field(default=__version__)

    def __repr__(self) -> str:
        """In one line: the arrays may be long."""
        rows, columns = self.coef.shape
        kind = self.task if rows == 1 else f"{rows} classes"
        return f"<Model: {kind}, {self.loss} loss, {columns:,} features>"

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.coef.shape[1])

    @property
    def multilabel(self) -> bool:
        """Whether a row may have any number of labels."""
        return self.task == "multilabel"

    @property
    def joint(self) -> bool:
        """Whether all classes were trained at once, with one certificate for the whole."""
        return self.task == "classes"

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """The certificates of all rows of ``coef``, in J form; empty where the model has none."""
        from ..core.certificate import Certificate

        return tuple(Certificate(**proof.certificate) for proof in self.proofs)

    @property
    def certificate(self) -> Certificate:
        """The certificate, in J form; of several, the one with the largest relative gap."""
        if not self.proofs:
            raise InputError("the model has no certificate")
        return max(self.certificates, key=lambda found: found.relative_gap)

    @property
    def n_columns(self) -> int:
        """The number of columns of its rows, before any expansion."""
        return self.n_features if self.n_inputs is None else self.n_inputs

    @property
    def schema(self) -> Schema:
        """The columns, features and labels that rows must have for this model."""
        from ..data.features import make_expansion
        from ..data.label_sets import LabelSets
        from ..data.labels import ClassNumbers, Labels
        from ..data.scaling import Scaling
        from ..data.schema import Schema

        expansion = make_expansion(self.expand, self.hash_bits)
        kind = LabelSets if self.multilabel else ClassNumbers if self.joint else Labels
        labels = None if self.classes is None else kind(self.classes)
        scaling = None if self.scale is None else Scaling(self.scale, self.scale_columns)
        columns = self.n_columns, self.zero_based, self.feature_names
        return Schema(*columns, expansion, labels, "the model", scaling)

    def decision_function(self, X: Any, offset: Any = None) -> Floats:
        """``<w, x> + b`` in float64: one number a row, or K of them where there are K classes; plus the
        offsets of the rows, if they are given.

        X is a matrix, dense or sparse, or what names rows (a path, a Store, a DataSpec), which are then read
        in bounded memory. The rows are as they were before any scaling and expansion.
        """
        if not isinstance(X, np.ndarray | list) and not sp.issparse(X):
            from ..data.dataset import DataSpec

            spec = X if isinstance(X, DataSpec) else DataSpec(X)
            if isinstance(X, DataSpec) or spec.named:
                k = self.coef.shape[0]
                return shifted(
                    np.concatenate([np.zeros(0) if k == 1 else np.zeros((0, k)), *self.scores(spec)]), offset
                )
        return shifted(check_finite(self._scored(rows_for(X, self.n_columns))), offset)

    def predict(self, X: Any, offset: Any = None) -> Any:
        """Labels of rows, as an array; for regression their scores. X and ``offset`` are as in
        ``decision_function``.

        A model of one class against the rest has None for rows of the rest. A multilabel model returns a
        matrix of 0 and 1, with a column for each of ``classes``.
        """
        scores = self.decision_function(X, offset)
        if self.multilabel:
            return indicators_of(scores)
        return scores if self.classes is None else labels_of(scores, self.classes)

    def predict_proba(self, X: Any, offset: Any = None) -> Floats:
        """The probabilities of the classes, a column for each of ``classes``, where the loss has them: the
        logistic and the multinomial loss do. X and ``offset`` are as in ``decision_function``.
        """
        self.check_probabilistic()
        return probabilities_of(self.decision_function(X, offset))

    def check_probabilistic(self) -> None:
        """Refuse a model that has no probabilities."""
        from ..core.losses import loss_named

        if self.classes is None or not loss_named(self.loss, self.loss_parameters).probabilistic:
            raise InputError(
                f"the {self.loss} loss has no probabilities; train with the logistic or the multinomial loss"
            )
        if self.coef.shape[0] > 1 and not self.joint:
            raise InputError(
                "models of one class against the rest have no probabilities that add up to 1; train all "
                "classes at once, with loss='multinomial'"
            )

    def decision_bounds(self, X: Any, offset: Any = None) -> tuple[Floats, Floats]:
        """The least and the greatest score that the exact optimum of the training problem can give each row:
        proven by the certificate, rounding errors included. X is a matrix, as in ``decision_function``.

        A model from ``outcome.bounded_model``, ``with_bounds`` or ``train --bounds`` has the tightest bounds,
        which need the training rows once; an intercept that is not regularised has no others.
        """
        from .bounding import certified_regions, score_bounds

        low, high = score_bounds(certified_regions(self), self._features(rows_for(X, self.n_columns)))
        return shifted(low, offset), shifted(high, offset)

    def decided(self, X: Any, offset: Any = None) -> Any:
        """Which rows have a label that no further training can change: the exact optimum gives the same."""
        from .bounding import certified_regions, decided

        if self.classes is None:
            raise InputError("a model for regression has scores, but no labels; see decision_bounds")
        features = self._features(rows_for(X, self.n_columns))
        moved = None if offset is None else shifted(np.zeros(features.shape[0]), offset)
        return decided(certified_regions(self), features, self.multilabel, moved)

    def with_bounds(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> Model:
        """The same model with the tightest bounds on scores, from its training rows in their order, which are
        verified here.
        """
        from .bounding import with_bounds

        return with_bounds(self, _spec(X, y, sample_weight), offset)

    def scores(self, spec: DataSpec) -> Iterator[Floats]:
        """The decision values of the rows of a file, some thousands at a time, in bounded memory."""
        from ..data.dataset import scan

        for table in scan(spec.to_be_scored(), self.schema):
            yield self._scored(table.X)

    def bounds(self, spec: DataSpec) -> Iterator[Floats]:
        """``decision_bounds`` of the rows of a file, likewise: two numbers for each score of a row."""
        from ..data.dataset import scan

        for table in scan(spec.to_be_scored(), self.schema):
            yield np.stack(self.decision_bounds(table.X), axis=-1).reshape(table.n, -1)

    def labels(self, scores: Floats) -> list[Any]:
        """The labels that decision values stand for, as plain Python values, or lists of them (multilabel); a
        score of 0 counts as negative.
        """
        if self.classes is None:
            raise InputError("a model for regression has scores, but no labels")
        from ..data.labels import plain

        classes = [plain(label) for label in self.classes]
        if self.multilabel:
            return [[classes[k] for k in np.flatnonzero(row)] for row in indicators_of(scores)]
        return [classes[k] for k in codes_of(scores).tolist()]

    def evaluate(self, X: Any, y: Any = None) -> Measured:
        """Measures of how well it does on labelled rows: a matrix with its labels, or what names rows. All
        rows count alike.
        """
        from .metrics import measure

        return measure(self, _spec(X, y, None))

    def score(self, X: Any, y: Any = None) -> float:
        """The accuracy, for regression R2, on labelled rows as scikit-learn's estimators have it. Multilabel:
        the share of rows whose labels are all right.
        """
        name = "r2" if self.classes is None else "subset_accuracy" if self.multilabel else "accuracy"
        return self.evaluate(X, y).values[name]

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> Verification:
        """Recompute the certificates from the training rows and compare them with the stored ones.

        X is a matrix with its labels y, a path, a DataSpec, or a Dataset opened in this schema. Weights and
        offsets are those given to ``fit``; class weights are applied here.
        """
        from .verification import verify

        return verify(self, _spec(X, y, sample_weight), offset)

    def identified(self, X: Any, y: Any = None, sample_weight: Any = None) -> Model:
        """The same model with the fingerprints of its training rows, so that it is verified from them in any
        order. They must be the training rows in their order, which is verified here.
        """
        from .verification import identified

        return identified(self, _spec(X, y, sample_weight))

    def save(self, path: str | os.PathLike[str], *, sparse: bool = False) -> None:
        """Write the model to a file, whole or not at all. With ``sparse`` the file holds only coefficients
        that are not 0: smaller where most are, as with many classes of text; it is read like any other.
        """
        from .saving import save_model

        save_model(path, self, sparse=sparse)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Model:
        """Read a model that was saved."""
        from .saving import load_model

        return load_model(path)

    def _scored(self, X: Any) -> Floats:
        """The scores of a matrix of rows, which are scaled and expanded if the model was trained so."""
        return scores_of(self._features(X), self.coef, self.intercept)

    def _features(self, X: Any) -> Any:
        """Rows scaled and expanded as those of training."""
        features = X if self.expand is None and self.scale is None else self.schema.expand(X)
        if features.shape[1] != self.n_features:
            raise InputError(
                f"the model's expansion {self.expand} makes {features.shape[1]} columns, and the model has "
                f"weights for {self.n_features}"
            )
        return features


def _spec(X: Any, y: Any, weight: Any) -> Any:
    """Rows as a caller names them."""
    from ..data.dataset import Dataset, DataSpec

    if not isinstance(X, DataSpec | Dataset):
        return DataSpec(X, y, weight)
    if y is not None or weight is not None:
        raise InputError(f"labels and weights belong to the {type(X).__name__} that X is; leave them out")
    return X
