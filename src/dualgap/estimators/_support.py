"""Support vectors: rows with a dual variable other than 0, where the duals are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.arrays import Floats
from ._fitted import Fitted


class SupportVectors(Fitted):
    """``support_``, ``n_support_`` and ``dual_coef_`` as ``sklearn.svm.SVC`` has them."""

    _row_weight: Floats

    @property
    def support_(self) -> Any:
        """The numbers of the rows that have a dual variable other than 0, in any of the models."""
        return np.flatnonzero(self._duals("support_").any(axis=0))

    @property
    def n_support_(self) -> Any:
        """The number of support vectors of each class where there are two, else of each model."""
        dual = self._duals("n_support_")
        labels = self._labels()
        if labels is not None and dual.shape[0] == 1:  # the sign of a dual is that of its class
            return np.array([np.count_nonzero(dual < 0.0), np.count_nonzero(dual > 0.0)])
        return np.count_nonzero(dual, axis=1)

    @property
    def dual_coef_(self) -> Floats:
        """``C c_i beta_i`` of the support vectors, by which ``coef_`` is a sum of rows."""
        dual, support = self._duals("dual_coef_"), self.support_
        scale = np.array([1.0 / (proof["lam"] * proof["total_weight"]) for proof in self._proofs])
        found: Floats = scale[:, None] * self._row_weight[support] * dual[:, support]
        return found

    def _duals(self, name: str) -> Floats:
        """The dual variables; without them there are none of these attributes."""
        dual = vars(self).get("dual_")
        if dual is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}: fit it with keep_dual=True"
            )
        found: Floats = dual
        return found
