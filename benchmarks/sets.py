"""The data sets: where each comes from, how large it is, and to which half it belongs.

The halves: whatever ``solver="auto"`` chooses is tuned on the sets marked "tune" and reported on those marked
"report". This table is the only place that says which is which. Each kind of data has members in both halves.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from . import CACHE, generated

Arrays = tuple[Any, Any]


@dataclass(frozen=True)
class DataSet:
    """A data set by name; ``make`` gives its arrays, from the file where there is one."""

    name: str
    half: Literal["tune", "report"]
    tier: Literal["quick", "default", "full"]
    make: partial[Arrays]
    file: str | None = None

    def available(self, folder: Path | None) -> bool:
        """Whether it can be had here."""
        return self.file is None or (folder is not None and (folder / self.file).is_file())


@dataclass(frozen=True)
class Info:
    """What the reports say about a data set, and where its arrays are kept."""

    name: str
    half: str
    path: str
    fingerprint: str
    layout: str
    dtype: str
    n: int
    d: int
    entries: int
    bytes: int


def _svmlight(
    path: Path, *, columns: int, scale: float = 1.0, positive: float | None = None, dense: bool = False
) -> Arrays:
    from sklearn.datasets import (
        load_svmlight_file,
    )  # slow to import, and not there in every peer's environment

    X, y = load_svmlight_file(str(path), n_features=columns, zero_based=False)
    X = sp.csr_matrix((X.data * scale, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    y = np.where(y == positive, 1.0, -1.0) if positive is not None else y
    return (X.toarray() if dense else X), y


def _file(columns: int, **options: Any) -> partial[Arrays]:
    return partial(_svmlight, columns=columns, **options)


SETS: dict[str, DataSet] = {
    item.name: item
    for item in (
        DataSet("a9a", "tune", "default", _file(123), "a9a.svm.bz2"),
        DataSet("w8a", "report", "default", _file(300), "w8a.svm.bz2"),
        DataSet("reuters-earn", "report", "default", _file(11520), "reuters21578-modapte-earn.svm.bz2"),
        DataSet("wikitox-bow", "tune", "default", _file(69356), "wikitox-bow.svm.bz2"),
        DataSet("20news-bigram", "report", "default", _file(1283064), "20news-bigram.svm.bz2"),
        DataSet(
            "mnist-8", "report", "default", _file(784, scale=1 / 255, positive=8), "mnist-multiclass.svm.bz2"
        ),
        DataSet("covtype", "tune", "default", _file(54, scale=0.001), "covtype.svm.bz2"),
        DataSet("skin", "report", "default", _file(3, dense=True), "skin_nonskin.svm.bz2"),
        DataSet("prostate-ge", "tune", "default", _file(5966, dense=True), "prostate-ge.svm.bz2"),
        DataSet("text", "tune", "default", partial(generated.text, 200_000, 47_000, 68)),
        DataSet(
            "text-ordered", "report", "default", partial(generated.text, 80_000, 30_000, 60, ordered=True)
        ),
        DataSet("dense-tall", "report", "default", partial(generated.dense_tall, 100_000, 30)),
        DataSet("dense-wide", "report", "default", partial(generated.dense_wide, 500, 20_000)),
        DataSet("separable", "tune", "default", partial(generated.separable, 50_000, 2_000, 30)),
        DataSet("duplicated", "tune", "default", partial(generated.duplicated, 3_000, 150_000, 400, 12)),
        DataSet("text-million", "report", "full", partial(generated.text, 1_000_000, 100_000, 60, seed=11)),
        DataSet("dense-tall-million", "tune", "full", partial(generated.dense_tall, 1_000_000, 20, seed=12)),
        DataSet("quick-text", "tune", "quick", partial(generated.text, 1_500, 600, 12, topics=5, seed=13)),
        DataSet("quick-dense", "report", "quick", partial(generated.dense_tall, 800, 8, seed=14)),
    )
}


def data_folder(given: str | None) -> Path | None:
    """The folder of real data sets: as given, else ``DUALGAP_DATA``, else none."""
    chosen = given or os.environ.get("DUALGAP_DATA")
    return Path(chosen) if chosen else None


def cached(item: DataSet, folder: Path | None, cache: Path = CACHE) -> Info:
    """Parse or make a set once; afterwards its arrays come from an npz file."""
    source = _stamp(item, folder)
    path = cache / "data" / f"{item.name}.npz"
    described = path.with_suffix(".json")
    if path.exists() and described.exists():
        known = json.loads(described.read_text())
        if known.pop("source") == source:
            return Info(**{**known, "half": item.half, "path": str(path)})
    X, y = item.make() if item.file is None else item.make(folder / item.file)  # type: ignore[operator]
    info = _store(item, path, X, np.ascontiguousarray(y, dtype=np.float64))
    described.write_text(json.dumps({**asdict(info), "source": source}))
    return info


def load(path: str | Path) -> Arrays:
    """The arrays of a cached set, the same for every solver."""
    with np.load(path, allow_pickle=False) as stored:
        if "X" in stored.files:
            return stored["X"], stored["y"]
        parts = stored["data"], stored["indices"], stored["indptr"]
        return sp.csr_matrix(parts, shape=tuple(stored["shape"])), stored["y"]


def _stamp(item: DataSet, folder: Path | None) -> str:
    """Changes when the file or the recipe changes."""
    recipe = repr((item.make.func.__name__, item.make.args, sorted(item.make.keywords.items())))
    if item.file is None:
        return recipe + hashlib.sha256(Path(generated.__file__).read_bytes()).hexdigest()
    found = (folder / item.file).stat()  # type: ignore[operator]
    return f"{recipe} {item.file} {found.st_size} {found.st_mtime_ns}"


def _store(item: DataSet, path: Path, X: Any, y: Any) -> Info:
    arrays = {"y": y}
    layout = "csr" if sp.issparse(X) else "dense"
    if layout == "csr":
        X.sort_indices()
        arrays |= {"data": X.data, "indices": X.indices.astype(np.int32), "indptr": X.indptr.astype(np.int32)}
        entries = X.nnz
    else:
        arrays["X"] = X = np.ascontiguousarray(X)
        entries = X.size
    digest = hashlib.sha256(repr(X.shape).encode())
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    size = sum(array.nbytes for name, array in arrays.items() if name != "y")
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".tmp.npz")
    np.savez(scratch, shape=np.array(X.shape), **arrays)
    scratch.replace(path)
    n, d = X.shape
    return Info(
        item.name,
        item.half,
        str(path),
        digest.hexdigest(),
        layout,
        str(X.dtype),
        n,
        d,
        int(entries),
        int(size),
    )
