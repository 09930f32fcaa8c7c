"""Preconditioners S of stochastic gradient descent, from a name, an array or a file, and what they make of
the lengths of rows.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ...core.problem import Problem
from ...runtime.arrays import Floats, canonical
from ...runtime.errors import InputError
from ...runtime.jit import kernel
from ...runtime.npy import DAMAGE, array_of
from ...runtime.paths import kind_of_path

IDENTITY, FEATURES = NAMES = ("identity", "features")


def inverse_of(preconditioner: Any, problem: Problem) -> Floats:
    """S^-1: empty for the identity, else d x 1, its diagonal, or d x d."""
    if isinstance(preconditioner, str) and preconditioner == IDENTITY:
        return np.zeros((0, 1))
    if isinstance(preconditioner, str) and preconditioner == FEATURES:
        return (1.0 / _mean_squares(problem)).reshape(-1, 1)
    if isinstance(preconditioner, str | os.PathLike):
        preconditioner = _from_file(os.fspath(preconditioner))
    d, given = problem.source.d, np.asarray(preconditioner)
    if given.dtype.kind not in "iuf" or given.shape not in ((d,), (d, d)):
        raise InputError(
            f"preconditioner has shape {given.shape}; it must be {d} numbers, or {d} x {d}, one a column"
        )
    given = given.astype(np.float64)
    if given.ndim == 1:
        wrong = ~(np.isfinite(given) & (given > 0.0))
        if wrong.any():
            bad = int(np.argmax(wrong))
            raise InputError(f"preconditioner[{bad}] is {given[bad]:g}; it must be positive")
        return canonical(1.0 / given, np.float64).reshape(-1, 1)
    if not np.isfinite(given).all() or not np.allclose(given, given.T):
        raise InputError(
            "preconditioner is not symmetric and finite; it must be a symmetric positive definite matrix"
        )
    try:
        np.linalg.cholesky(given)
    except np.linalg.LinAlgError:
        raise InputError("preconditioner is not positive definite; add a multiple of the identity") from None
    return canonical(np.linalg.inv(given), np.float64)


def squared_lengths(problem: Problem, inverse: Floats) -> Floats:
    """``<x, S^-1 x>`` of every row."""
    source = problem.source
    return _lengths(source.batch.rows, inverse, source.n, source.d) if inverse.size else source.squared_norms


def _from_file(path: str) -> Floats:
    """The numbers of a file, read once as long as it stays the same."""
    if kind_of_path(path) != "file":
        raise InputError(f"preconditioner={path!r} is none of {', '.join(NAMES)}, and no file")
    status = Path(path).stat()
    return _numbers(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _numbers(path: str, modified: int, size: int) -> Floats:
    """An array of NumPy, or text with a row of numbers a line."""
    try:
        if path.endswith(".npy"):
            return np.asarray(array_of(Path(path).read_bytes()), dtype=np.float64)
        return np.loadtxt(path, dtype=np.float64, ndmin=1)
    except DAMAGE as error:
        raise InputError(
            f"preconditioner: {path} is neither an array of NumPy (.npy) nor text with numbers: {error}"
        ) from None


def _mean_squares(problem: Problem) -> Floats:
    """Of the features, with a floor for those that are always 0."""
    squares = np.zeros(problem.source.d)
    _add_squares(problem.source.batch.rows, problem.source.weight, squares)
    squares /= problem.total_weight
    top = squares.max()
    return np.maximum(squares, 1e-12 * top if top > 0.0 else 1.0)


@kernel
def _add_squares(rows: Any, weight: Floats, squares: Floats) -> None:
    for i in range(weight.shape[0]):
        for k in range(rows.count(i)):
            column, value = rows.entry(i, k)
            squares[column] += weight[i] * value * value


@kernel
def _lengths(rows: Any, inverse: Floats, n: int, d: int) -> Floats:
    """``<x, S^-1 x>`` of every row."""
    found = np.zeros(n)
    dense = np.zeros(d)
    for i in range(n):
        total = 0.0
        if inverse.shape[1] == 1:
            for k in range(rows.count(i)):
                column, value = rows.entry(i, k)
                total += value * value * inverse[column, 0]
        else:
            for j in range(d):
                dense[j] = 0.0
            rows.add(i, 1.0, dense)
            for k in range(rows.count(i)):
                column, value = rows.entry(i, k)
                total += value * np.dot(inverse[column], dense)
        found[i] = total
    return found
