"""What estimators can prove of scores, and offsets of rows."""

from __future__ import annotations

from typing import Any

from ..core.losses import JOINT, Loss
from ..models.scoring import shifted
from ..runtime.arrays import Floats
from ..runtime.errors import InputError
from ._fitted import Fitted
from ._input import rows_of


def checked_offset(offset: Any, models: int, loss: Loss) -> Any:
    """Refuse offsets where a row has several scores."""
    if offset is not None and (models > 1 or loss.task == JOINT):
        raise InputError("offset= is for one score a row: two classes, or one target; leave it out")
    return offset


class CertifiedScores(Fitted):
    """``decision_bounds``."""

    def decision_bounds(
        self, X: Any, training: tuple[Any, ...] | None = None, offset: Any = None
    ) -> tuple[Floats, Floats]:
        """The least and the greatest score that the exact optimum of the training problem can give each row:
        proven by the certificate, rounding errors included.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        training : tuple (X, y) or (X, y, sample_weight), default=None
            The training rows in their order, for the tightest bounds, which need ``keep_dual=True`` as well.
            An intercept that is not regularised (``bias="exact"``) has no bounds without them.
        offset : array of shape (n_samples,), default=None
            Offsets of the rows.

        Returns
        -------
        low, high : ndarrays of shape (n_samples,) or (n_samples, n_classes)
            The bounds.
        """
        model = self.to_model()
        if training is not None:
            if "dual_" not in vars(self):
                raise InputError("bounds from the training rows need the duals: fit with keep_dual=True")
            rows, *rest = training
            model = model.with_bounds(rows_of(self, rows, training=False), *rest)
        low, high = model.decision_bounds(rows_of(self, X, training=False))
        return shifted(low, offset), shifted(high, offset)
