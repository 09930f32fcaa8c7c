"""Advice where a run ends above the gap asked for: columns or rows of bad scale, if they are the likely
cause.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..runtime.arrays import Floats

UNEVEN = 1e3  # columns whose norms differ by more than this are a likely cause
FAR = 1e2  # rows longer than this, or shorter than one over it, are one too


def advice(X: Any, remedy: str, option: str = "") -> str:
    """Sentences for whoever trained on X; ``remedy`` is what else can be done, in the words of the caller."""
    scale = scales(X, option)
    return f"{scale}{'Otherwise' if scale else 'You can'} {remedy}."


def column_norms(X: Any) -> Floats:
    """Euclidean lengths of the columns of a CSR or dense matrix, without a float64 copy of a dense one."""
    sparse: bool = sp.issparse(X)
    if sparse:
        squares = np.zeros(X.shape[1])
        step = max(X.shape[1], 1_000_000)  # entries at a time: their squares and places take 16 bytes each
        for first in range(0, X.data.size, step):
            part = slice(first, first + step)
            squares += np.bincount(
                X.indices[part], np.square(X.data[part], dtype=np.float64), minlength=X.shape[1]
            )
    else:
        squares = np.einsum("ij,ij->j", X, X, dtype=np.float64)
    return np.sqrt(squares)


def _row_norms(X: Any) -> Floats:
    """Euclidean lengths of the rows, alike."""
    from sklearn.utils.extmath import row_norms

    dense = not sp.issparse(X)
    found: Floats = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64)) if dense else row_norms(X)
    return found


def scales(X: Any, option: str = "") -> str:
    """A sentence about the scale of X where that is the likely cause, else an empty string. ``option`` is how
    the caller is told to scale, with {} for the kind of scaling; without it scikit-learn does that.
    """
    columns = column_norms(X)
    columns = columns[columns > 0]
    rows = _row_norms(X)
    rows = rows[rows > 0]
    by_columns, by_rows = "StandardScaler, or MaxAbsScaler for sparse data", "Normalizer"
    if option:
        by_columns, by_rows = option.format("max-abs"), option.format("unit-rows")
    remedy = f"scale the columns first ({by_columns})"
    if columns.size and columns.max() > UNEVEN * columns.min():
        what, norms, trouble = "columns", columns, f"a factor of {columns.max() / columns.min():.1g} apart"
    elif rows.size and (rows.max() > FAR or rows.max() < 1 / FAR):
        what, norms, trouble = "rows", rows, "far from 1"
        remedy += f" or the rows ({by_rows})"
    else:
        return ""
    return (
        f"The likely cause is the scale of X: its {what} have norms from {norms.min():.2g} to "
        f"{norms.max():.2g}, "
        f"{trouble}; {remedy}. "
    )
