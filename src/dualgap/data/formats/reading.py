"""The one reader of the program: what kind a file is shows in its content, and every kind becomes
``Data``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ...runtime import archive
from ...runtime.errors import InputError
from ..table import Data
from .arrow.store import MAGIC, Store
from .svmlight.reading import ZeroBased, counts_from_zero, read_svmlight, stream_svmlight
from .text import head_of, read_once, shown

Kind = Literal["model", "store", "text"]
_MEND = "raise n_features (--n-features) or mend the row"


def kind_of(path: str | os.PathLike[str]) -> Kind:
    """Whether a file is a model, a store, or something to be read as svmlight text."""
    if read_once(Path(path)):
        return "text"
    head = head_of(Path(path))
    if head.startswith(MAGIC):
        return "store"
    return "model" if head.startswith(archive.MAGIC) else "text"


def read_data(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    threads: int | None = None,
    too_wide: str = _MEND,
) -> Data:
    """All rows of a file, in memory: a store or svmlight text, see :func:`read_svmlight`."""
    if kind_of(path) != "store":
        return read_svmlight(
            path, n_features=n_features, zero_based=zero_based, threads=threads, too_wide=too_wide
        )
    _refuse_base(path, zero_based)
    return _widened(Store(path).read(), n_features, too_wide)


def stream_data(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    threads: int | None = None,
    too_wide: str = _MEND,
    block: int | None = None,
) -> Iterator[Data]:
    """The rows of a file in blocks, in bounded memory. Text is read twice where it must first be seen how it
    counts.
    """
    if kind_of(path) == "store":
        _refuse_base(path, zero_based)
        for data in Store(path).blocks():
            yield _widened(data, n_features, too_wide)
        return
    path = Path(path)
    if zero_based == "auto":
        if read_once(path):
            raise InputError(
                f"{shown(path)}: can be read only once, so say how its indices count, with --zero-based yes "
                "or no"
            )
        zero_based = "yes" if counts_from_zero(path) else "no"
    yield from stream_svmlight(
        path, n_features=n_features, zero_based=zero_based, threads=threads, too_wide=too_wide, block=block
    )


def _refuse_base(path: str | os.PathLike[str], zero_based: ZeroBased) -> None:
    if zero_based != "auto":
        raise InputError(f"{path}: a store knows its columns; leave --zero-based out")


def _widened(data: Data, n_features: int | None, too_wide: str) -> Data:
    """The same rows in a matrix of that many columns."""
    if n_features is None or n_features == data.X.shape[1]:
        return data
    if n_features < 1:
        raise InputError(f"n_features={n_features!r} must be at least 1")
    beyond = data.X.indices >= n_features
    if beyond.any():
        entry = int(beyond.argmax())
        row = int((data.X.indptr > entry).argmax()) - 1
        raise InputError(
            f"{data.place(row)}: column {data.X.indices[entry]} is beyond the {n_features} features; "
            f"{too_wide}"
        )
    X = data.X.copy() if not data.X.data.flags.writeable else data.X
    X.resize(X.shape[0], n_features)
    names = data.feature_names
    if names is not None:
        names = names[:n_features]
    return replace(data, X=X, feature_names=names)
