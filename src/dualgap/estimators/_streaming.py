"""``partial_fit``: online learning, where the solver can do it (`Stream`)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from ..core.problem import Point
from ..data.labels import Labels, signs
from ..runtime.arrays import Floats
from ..runtime.checks import shown
from ..runtime.errors import InputError
from ..stream import Stream
from ._base import LinearModel
from ._classifier import LinearClassifierBase
from ._fitted import Trained
from ._input import class_factors, loss_for, rows_of, seed_of, weights_of
from ._regressor import LinearRegressorBase
from ._strengths import scaled


def _streams(estimator: Any) -> bool:
    solver = estimator._solver()[0]
    if solver not in Stream.solvers():
        raise AttributeError(
            f"solver={solver!r} cannot learn from a stream; these can: {', '.join(Stream.solvers())}"
        )
    return True


class Streaming(LinearModel):
    """What the online learning of classifiers and regressors shares."""

    t_: float
    _learners: list[Stream]
    _seen_before: float

    def _begin(self, count: int) -> list[Stream]:
        """A learner for each model, which goes on from the model that there is."""
        strength = scaled(self._strength(), self._loss_factor())
        if "lam" not in strength:
            raise InputError(
                f"partial_fit needs alpha: how many rows are still to come is unknown, and C={shown(self.C)} "
                "depends on it"
            )
        solver, options = self._solver()
        options.pop("order", None)
        coef, intercept = self._weights() if "coef_" in vars(self) else (None, None)
        seed = seed_of(self.random_state)
        learners = []
        for k in range(count):
            warm = None if coef is None or intercept is None else Point(coef[k], float(intercept[k]), None)
            more = {"bias": self._bias(), "seed": seed, "warm": warm, **options}
            learners.append(Stream(strength["lam"], loss=self._loss_spec(), solver=solver, **more))
        return learners

    def _conclude(self, X: Any, models: list[Trained], *given: Any) -> None:
        self.__dict__.pop("_learners", None)  # a stream goes on from this model
        self.t_ = 1.0 + max(model.visits for model in models)
        super()._conclude(X, models, *given)

    def _check_online(self) -> None:
        """Refuse what needs all rows."""
        self._validate()
        if self.early_stopping:
            raise InputError("early_stopping should be False with partial_fit: rows are not kept")

    def _learn(self, X: Any, targets: list[Floats], weight: Floats, *, begin: bool) -> None:
        """Present rows to the learners of all models, and take over what they have learned."""
        if begin:
            self._seen_before = vars(self).get("t_", 1.0)
            self._learners = self._begin(len(targets))
        for learner, target in zip(self._learners, targets, strict=True):
            if learner.loss.task == "classification" and learner.classes is None:
                learner.classes = (-1.0, 1.0)
            learner.learn(X, target, weight)
        if all(learner.state is not None for learner in self._learners):
            self._set_weights(
                np.stack([learner.coef for learner in self._learners]),
                np.array([learner.intercept for learner in self._learners]),
            )
        elif "coef_" not in vars(self):  # rows of weight 0 only, so far
            self._set_weights(np.zeros((len(targets), X.shape[1])), np.zeros(len(targets)))
        self.t_ = self._seen_before + self._learners[0].visits
        self.n_iter_ = 1
        self._certificates, self._proofs = [], []
        self._origin = {"loss": self._learners[0].loss.name}
        self.__dict__.pop("dual_", None)


class StreamingClassifier(Streaming, LinearClassifierBase):
    """A classifier with ``partial_fit``."""

    @available_if(_streams)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from some rows, each once, in their order, and go on from the model that there is.

        There is no certificate: the rows are not kept.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array of shape (n_samples,)
            Their labels.
        classes : array of shape (n_classes,), default=None
            All the labels that will come; needed in the first call.
        sample_weight : array of shape (n_samples,) or float, default=None
            Weights of the rows, 1 by default. Rows of weight 0 change nothing.

        Returns
        -------
        self
            The estimator itself.
        """
        self._check_online()
        loss_for(self._loss_spec(), self._tasks(), type(self).__name__)
        first = "classes_" not in vars(self)
        if first and classes is None:
            raise InputError("classes must be passed on the first call to partial_fit: all labels to come")
        if isinstance(self.class_weight, str):
            raise InputError(
                f"class_weight '{self.class_weight}' is not supported for partial_fit. In order to use "
                "'balanced' weights, use compute_class_weight('balanced', classes=classes, y=y). In place of "
                "y you can use a large enough sample of the full training set target to properly estimate "
                "the class frequency distributions. Pass the resulting weights as the class_weight parameter."
            )
        X, y = rows_of(self, X, y, training=first)
        check_classification_targets(y)
        labels = Labels.of(np.asarray(classes)).classes if first else self.classes_
        if not first and classes is not None and not np.array_equal(labels, np.unique(classes)):
            raise InputError(
                f"classes={shown(classes)} are not those of the first call of partial_fit: {shown(labels)}"
            )
        if labels.size < 2:
            raise InputError(f"The number of classes has to be greater than one; got {labels.size} class")
        codes = Labels(labels).encode(y)
        if (codes < 0).any():
            row = int(np.argmin(codes))
            raise InputError(f"y[{row}] is {y[row]!r}, which is no label of classes")
        weight = weights_of(sample_weight, X.shape[0])
        weight = weight * class_factors(self.class_weight, labels, codes, weight)[codes]
        positive = range(labels.size) if labels.size > 2 else (1,)
        self._learn(X, [signs(codes, k) for k in positive], weight, begin="_learners" not in vars(self))
        self.classes_, self._multilabel = labels, False
        return self


class StreamingRegressor(Streaming, LinearRegressorBase):
    """A regressor with ``partial_fit``."""

    @available_if(_streams)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from some rows, each once, in their order, and go on from the model that there is.

        There is no certificate: the rows are not kept.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array of shape (n_samples,)
            Their targets.
        sample_weight : array of shape (n_samples,) or float, default=None
            Weights of the rows, 1 by default. Rows of weight 0 change nothing.

        Returns
        -------
        self
            The estimator itself.
        """
        self._check_online()
        loss_for(self._loss_spec(), ("regression",), type(self).__name__)
        X, y = rows_of(self, X, y, training="coef_" not in vars(self))
        self._one_number = not self._intercept_is_array
        target = np.asarray(y, dtype=np.float64)
        self._learn(X, [target], weights_of(sample_weight, X.shape[0]), begin="_learners" not in vars(self))
        return self
