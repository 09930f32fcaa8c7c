"""The base of all regressors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_array

from ..runtime.arrays import Floats
from ..runtime.errors import InputError
from ._base import LinearModel, Targets
from ._certified import checked_offset
from ._input import loss_for, rows_of, weights_of
from ._peers import Peer, ToSklearn
from ._support import SupportVectors
from ._warm import Start


class LinearRegressorBase(MultiOutputMixin, RegressorMixin, SupportVectors, ToSklearn, LinearModel):  # type: ignore[misc]
    """A linear regressor of one target, or of several, each with a model of its own."""

    _intercept_is_array: ClassVar[bool] = False  # of a single target, as in scikit-learn's class of the name
    _one_number: bool  # whether the intercept is a number

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
        """Train on rows and their targets.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Their targets. Of several, each has a model and a certificate of its own.
        sample_weight : array of shape (n_samples,) or float, default=None
            Weights of the rows, 1 by default. Weight 2 is the row twice, weight 0 is no row.
        X_val, y_val : rows and targets, default=None
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
        loss = loss_for(self._loss_spec(), ("regression",), type(self).__name__)
        X, y = rows_of(self, X, y, training=True, several=True)
        matrix = _columns(y)
        self._one_number = y.ndim == 1 and not self._intercept_is_array
        weight = weights_of(sample_weight, X.shape[0])
        if not weight.any():
            raise InputError("all sample weights are zero; some rows must have a positive weight")

        def targets_of(found: Any) -> Callable[[int], Floats]:
            columns = _columns(np.asarray(found))
            return lambda k: np.ascontiguousarray(columns[:, k])

        names = [f"target {k}" for k in range(matrix.shape[1])]
        numbers = matrix[:, 0] if matrix.shape[1] == 1 else matrix
        held = self._held_rows_of(X_val, y_val, targets_of)
        moved = checked_offset(offset, len(names), loss)
        targets = Targets(targets_of(matrix), names, numbers, None, held, offset=moved)
        models, pressed = self._train(X, targets, weight, loss, start)
        if self.keep_dual:
            self._row_weight = weight
        self._conclude(X, models, pressed, names)
        return self

    def _set_weights(self, coef: Floats, intercept: Floats) -> None:
        self.coef_ = coef[0] if coef.shape[0] == 1 else coef
        self.intercept_ = intercept[0] if self._one_number else intercept

    def _weights(self) -> tuple[Floats, Floats]:
        coef, intercept = super()._weights()
        return coef, np.broadcast_to(intercept, coef.shape[:1])

    def _peer(self) -> Peer:
        return Peer("sklearn.linear_model", "Ridge", {"fit_intercept": self.fit_intercept})

    def predict(self, X: Any, offset: Any = None) -> Any:
        """Predictions ``<w, x> + b`` for rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        offset : array of shape (n_samples,), default=None
            Offsets of the rows, added to their scores.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            In float64.
        """
        return self._scores(X, offset)


def _columns(y: Any) -> Floats:
    """Targets in float64, a column for each."""
    numbers: Floats = check_array(
        y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_all_finite=True
    )
    return numbers.reshape(-1, 1) if numbers.ndim == 1 else numbers
