"""What to say when training ends above the tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from ..arrays import Floats

UNEVEN = 1e3  # columns whose norms differ by more than this are a likely cause
FAR = 1e2  # rows longer than this, or shorter than one over it, are one too


def column_norms(X: Any) -> Floats:
    """Euclidean lengths of the columns of a CSR or dense matrix, without a float64 copy of a dense one."""
    sparse: bool = sp.issparse(X)
    if sparse:
        squares = np.bincount(X.indices, np.square(X.data, dtype=np.float64), minlength=X.shape[1])
    else:
        squares = np.einsum("ij,ij->j", X, X, dtype=np.float64)
    return np.sqrt(squares)


def scales(X: Any) -> str:
    """A sentence about the norms of the columns or rows of X where they are the likely cause, else nothing."""
    columns = column_norms(X)
    columns = columns[columns > 0]
    rows = row_norms(X)
    rows = rows[rows > 0]
    remedy = "scale the columns first (StandardScaler, or MaxAbsScaler for sparse data)"
    if columns.size and columns.max() > UNEVEN * columns.min():
        what, norms, trouble = "columns", columns, f"a factor of {columns.max() / columns.min():.1g} apart"
    elif rows.size and (rows.max() > FAR or rows.max() < 1 / FAR):
        what, norms, trouble = "rows", rows, "far from 1"
        remedy += " or the rows (Normalizer)"
    else:
        return ""
    return (
        f"The likely cause is the scale of X: its {what} have norms from {norms.min():.2g} to {norms.max():.2g}, "
        f"{trouble}; {remedy}. "
    )


_REMEDIES = {
    "max_epochs": "raise max_iter (now {max_iter:g}), loosen tol or take a smaller C",
    "rounding": "loosen tol: float64 cannot prove a smaller gap here",
    "optimal": "loosen tol: float64 cannot prove a smaller gap here",
}


def message(
    estimator: str, X: Any, *, gap: float, tol: float, epochs: float, max_iter: float, reason: str, who: str
) -> str:
    """The text of a ConvergenceWarning: the gap reached, the tolerance, the likely cause and the remedy."""
    remedy = _REMEDIES.get(reason, "loosen tol, take a smaller C or try another solver").format(max_iter=max_iter)
    scale = scales(X)
    return (
        f"{estimator} ended at a relative gap of {gap:.3g} after {epochs:.4g} epochs, above tol={tol:g}{who}: its "
        f"objective may be up to that fraction above the minimum. "
        f"{scale}{'Otherwise' if scale else 'You can'} {remedy}."
    )
