"""The sets of ``regret.py``: real ones as they come, scaled to [-1, 1] or standardised, dense and sparse."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from . import CACHE


class Source(NamedTuple):
    """A file, what is made of it, and its half."""

    name: str
    half: str
    file: str
    columns: int
    form: str = "raw"  # raw, unit (to [-1, 1] by columns) or standard (columns of mean 0 and deviation 1)
    dense: bool = False
    positive: float | None = None


SOURCES = (
    Source("a1a", "tune", "a1a.svm.bz2", 123),
    Source("a9a", "report", "a9a.svm.bz2", 123),
    Source("w8a", "tune", "w8a.svm.bz2", 300),
    Source("mushrooms", "tune", "mushrooms.svm.bz2", 112),
    Source("mushrooms standard", "report", "mushrooms.svm.bz2", 112, "standard", True),
    Source("splice", "report", "splice-scale.svm.bz2", 60, "raw", True),
    Source("madelon standard", "tune", "madelon.svm.bz2", 500, "standard", True),
    Source("madelon raw", "report", "madelon.svm.bz2", 500, "raw", True),
    Source("higgs standard", "report", "higgs-subset7000.svm.bz2", 28, "standard", True),
    Source("higgs", "tune", "higgs-subset7000.svm.bz2", 28, "raw", True),
    Source("skin", "tune", "skin_nonskin.svm.bz2", 3, "raw", True),
    Source("skin unit", "report", "skin_nonskin.svm.bz2", 3, "unit", True),
    Source("reuters-moneyfx", "report", "reuters-moneyfx.svm.bz2", 8315),
    Source("reuters-earn", "tune", "reuters21578-modapte-earn.svm.bz2", 11520),
    Source("rcv1", "tune", "rcv1-vw-small.svm.bz2", 47236),
    Source("news20", "report", "news20-multiclass.svm.bz2", 62061, positive=1.0),
    Source("wikitox-bow", "report", "wikitox-bow.svm.bz2", 69356),
    Source("20news-bigram", "tune", "20news-bigram.svm.bz2", 1283064),
    Source("prostate standard", "tune", "prostate-ge.svm.bz2", 5966, "standard", True),
    Source("prostate raw", "report", "prostate-ge.svm.bz2", 5966, "raw", True),
    Source("arcene raw", "report", "arcene.svm.bz2", 10000, "raw", True),
    Source("allaml raw", "tune", "allaml.svm.bz2", 7129, "raw", True),
    Source("breast", "report", "vert-breast-lassogenes.svm.bz2", 184, "raw", True),
    Source("mnist-8 unit", "tune", "mnist-multiclass.svm.bz2", 784, "unit", positive=8.0),
)


UNSCALED = (
    ("a1a", "a1a.svm.bz2", 123, False),
    ("a9a", "a9a.svm.bz2", 123, False),
    ("w8a", "w8a.svm.bz2", 300, False),
    ("mushrooms", "mushrooms.svm.bz2", 112, False),
    ("splice", "splice-scale.svm.bz2", 60, True),
    ("madelon raw", "madelon.svm.bz2", 500, True),
    ("higgs", "higgs-subset7000.svm.bz2", 28, True),
    ("skin", "skin_nonskin.svm.bz2", 3, True),
    ("reuters-moneyfx", "reuters-moneyfx.svm.bz2", 8315, False),
    ("prostate raw", "prostate-ge.svm.bz2", 5966, True),
    ("arcene raw", "arcene.svm.bz2", 10000, True),
    ("allaml raw", "allaml.svm.bz2", 7129, True),
    ("breast", "vert-breast-lassogenes.svm.bz2", 184, True),
)


def rows_of(source: Source, folder: Path) -> tuple[Any, Any]:
    """The arrays of a set, kept for the next time."""
    kept = CACHE / "regret" / (source.name.replace(" ", "-") + ".npz")
    if kept.exists():
        with np.load(kept, allow_pickle=False) as stored:
            if "X" in stored.files:
                return stored["X"], stored["y"]
            parts = stored["data"], stored["indices"], stored["indptr"]
            return sp.csr_matrix(parts, shape=tuple(stored["shape"])), stored["y"]
    from dualgap.files import read_svmlight

    table = read_svmlight(folder / source.file, n_features=source.columns)
    X, y = sp.csr_matrix(table.X), np.asarray(table.y)
    if source.positive is not None:
        y = np.where(y == source.positive, 1.0, -1.0)
    if source.form == "unit":
        most = abs(X).max(axis=0).toarray().ravel()
        X = sp.csr_matrix(X @ sp.diags_array(1.0 / np.where(most > 0, most, 1.0)))
    if source.form == "standard":
        A = X.toarray()
        deviation = A.std(axis=0)
        X = (A - A.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    kept.parent.mkdir(parents=True, exist_ok=True)
    if source.dense and sp.issparse(X):
        X = X.toarray()
    if sp.issparse(X):
        np.savez(kept, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
    else:
        np.savez(kept, X=X, y=y)
    return X, y
