"""Scores of rows and the labels they stand for: models, one-vs-rest and estimators all compute them here.

A score is ``sum_j w_j x_ij + b``, added up in float64 over the stored entries of row i in their order,
whatever the type of X; a dense row stores every column. So the score of a row depends on that row alone, to
the bit: neither on the rows beside it, nor on how many are scored at a time, nor, as a zero adds nothing, on
whether it is stored dense or sparse. (A product by BLAS has none of these properties: the order of its sums
depends on the shape of the whole matrix.) SciPy's CSR product adds up so; many dense rows are for a kernel
that does the same in a quarter of the time (`dense_scores`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..runtime.arrays import Floats
from ..runtime.checks import as_matrix
from ..runtime.errors import InputError

_ENTRIES = 1 << 19  # converted to float64 at a time; scores do not depend on it
_MANY = 1 << 28  # products of dense rows that take SciPy 0.1 s, which a kernel is worth; converting a number
_CONVERTING = 20  # takes as long as so many


def shifted(scores: Floats, offset: Any) -> Floats:
    """Scores with the offsets of their rows, where they have some."""
    if offset is None:
        return scores
    if scores.ndim != 1:
        raise InputError("offset= is for one score a row, and the model has one for each class; leave it out")
    from ..core.offsets import offsets_of

    return scores + offsets_of(offset, scores.shape[0])


def scores_of(X: Any, coef: Floats, intercept: Floats) -> Floats:
    """One score a row where ``coef`` has one row, else one a row of X and of ``coef``; all in float64."""
    n, k = int(X.shape[0]), coef.shape[0]
    weights = coef[0] if k == 1 else np.ascontiguousarray(coef.T)
    scores: Floats = np.empty(n if k == 1 else (n, k))
    sparse = sp.issparse(X)
    if not sparse and X.size * (k + _CONVERTING) >= _MANY:
        from .dense_scores import add_scores

        add_scores(X, weights.reshape(-1, k), scores.reshape(n, k))
        scores += intercept[0] if k == 1 else intercept
        return scores
    rows: Any = X.tocsr() if sparse else X
    entries = int(rows.nnz) if sparse else rows.size
    whole = sparse and rows.dtype == np.float64
    step = n if whole else max(1, _ENTRIES * n // max(entries, 1))
    for first in range(0, n, max(step, 1)):
        last = min(first + step, n)
        scores[first:last] = _sparse(rows if whole else rows[first:last], sparse) @ weights
    scores += intercept[0] if k == 1 else intercept
    return scores


def codes_of(scores: Floats) -> Any:
    """The number of the class that each row's scores stand for; a single score of 0 counts as negative."""
    return (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)


def labels_of(scores: Floats, classes: Any) -> Any:
    """The labels that scores stand for, as an array; numbers beside words stay numbers."""
    mixed = not isinstance(classes, np.ndarray) and len({isinstance(label, str) for label in classes}) > 1
    return np.asarray(classes, dtype=object if mixed else None)[codes_of(scores)]


def probabilities_of(scores: Floats) -> Floats:
    """The probabilities that scores stand for: exp(s_k) / sum_j exp(s_j) of K scores a row, and of a single
    one those of 0 and s.
    """
    rows = np.stack([np.zeros(scores.size), scores], axis=1) if scores.ndim == 1 else scores
    raised: Floats = np.exp(rows - rows.max(axis=1, keepdims=True))
    raised /= raised.sum(axis=1, keepdims=True)
    return raised


def indicators_of(scores: Floats) -> Any:
    """The labels that scores stand for where a row may have any number: 1 for a positive score, else 0."""
    return (scores > 0).astype(np.int8)


def rows_for(X: Any, columns: int) -> Any:
    """A matrix that a caller gave, if a model of that many columns can score it."""
    if not sp.issparse(X):
        X = as_matrix(X)
        try:
            X = X if X.dtype.kind in "biuf" else X.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError("X must hold numbers, in rows that are equally long") from None
    if X.ndim != 2:
        raise InputError(f"X has shape {X.shape}; it must have two dimensions, and a row for each sample")
    if X.shape[1] != columns:
        raise InputError(f"X has {X.shape[1]} columns and the model has {columns}; they must be equally many")
    return X


def check_finite(scores: Floats) -> Floats:
    """The same scores, if none is NaN or infinite."""
    sound = np.isfinite(scores) if scores.ndim == 1 else np.isfinite(scores).all(axis=1)
    if not sound.all():
        row = int(np.argmin(sound))
        raise InputError(
            f"the score of row {row} is {scores[row]}: X holds NaN, infinity or numbers that are too large"
        )
    return scores


def _sparse(rows: Any, sparse: bool) -> Any:
    """Rows as CSR in float64; dense ones with all their columns, zeros too, which is cheaper than leaving
    them out.
    """
    if sparse:
        return rows.astype(np.float64, copy=False)
    n, d = rows.shape
    columns = np.tile(np.arange(d, dtype=np.int32), n)
    values = np.ascontiguousarray(rows, dtype=np.float64).reshape(-1)
    return sp.csr_array((values, columns, np.arange(0, n * d + 1, max(d, 1))[: n + 1]), shape=(n, d))
