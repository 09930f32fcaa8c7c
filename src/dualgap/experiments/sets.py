"""The papers' data sets: where each is found, what it stands for, and what runs where it is missing.

Real sets come from the folder that ``DUALGAP_DATA`` names, as svmlight text. A set of a paper that nobody
has here is never imitated under its name: an experiment names the stand-in that it takes instead, and a set
that is missing on this machine is replaced by generated rows of the same kind, under a name that says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..runtime.errors import InputError
from . import generated


class Rows(NamedTuple):
    """Rows with their labels, and how they are called on the page."""

    name: str
    X: Any
    y: Any
    note: str = ""  # what they are, in a sentence

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])


class Home(NamedTuple):
    """A set: its file, its width, the rows that stand in for it, and what is done to it."""

    file: str
    columns: int
    substitute: Callable[[int], generated.Rows]
    scale: float = 1.0
    test: str = ""  # the file of the test part


SETS = {
    "a9a": Home("a9a", 123, generated.adult_like, test="a9a.t"),
    "w8a": Home("w8a", 300, generated.web_like, test="w8a.t"),
    "covtype": Home("covtype", 54, generated.measured_like, scale=0.001),
    "skin": Home("skin_nonskin", 3, generated.skin_like),
    "20news-bigram": Home("20news-bigram", 1_283_064, generated.text_like),
    "wikitox-bow": Home("wikitox-bow", 69_356, generated.text_like),
    "prostate-ge": Home("prostate-ge", 5966, lambda n: generated.genomic_like(min(n, 102), 5966)),
    "reuters-earn": Home(
        "reuters21578-modapte-earn", 11_520, generated.text_like, test="reuters21578-modapte-earn.t"
    ),
    "splice": Home("splice-scale", 60, lambda n: generated.measured_like(min(n, 1000), 60)),
}
LIKE = {
    "a9a": "adult-like",
    "w8a": "web-like",
    "covtype": "covertype-like",
    "skin": "skin-like",
    "20news-bigram": "text-like",
    "wikitox-bow": "text-like",
    "prostate-ge": "genomic-like",
    "reuters-earn": "text-like",
    "splice": "splice-like",
}


def folder() -> Path | None:
    """Where real sets are, if anywhere."""
    named = os.environ.get("DUALGAP_DATA", "")
    return Path(named) if named and Path(named).is_dir() else None


def file_of(name: str) -> Path | None:
    """The file of a real set, if it is there."""
    home = folder()
    if home is None:
        return None
    for ending in (".svm.bz2", ".svm", ".svm.gz", ".svm.zst", ".arrow"):
        if (home / (name + ending)).is_file():
            return home / (name + ending)
    return None


@cache
def _read(file: Path, columns: int) -> tuple[Any, Any]:
    from ..files import read_data

    table = read_data(file, n_features=columns)
    return table.X, np.asarray(table.y, dtype=np.float64)


def load(name: str, rows: int | None = None) -> Rows:
    """A set, or generated rows of its kind; at most ``rows`` of them, drawn at random in a fixed way."""
    if name not in SETS:
        raise InputError(f"unknown data set {name!r}; these are known: {', '.join(SETS)}")
    home = SETS[name]
    file = file_of(home.file)
    if file is None:
        n = 2000 if rows is None else rows
        X, y = home.substitute(n)
        return Rows(
            f"{LIKE[name]} (generated)",
            X,
            y,
            f"{name} is not at hand; {n:,} generated rows of its kind instead",
        )
    X, y = _read(file, home.columns)
    note = ""
    if home.scale != 1.0:
        X, note = X * home.scale, f"all features times {home.scale:g}"
    if rows is not None and rows < X.shape[0]:
        kept = np.sort(np.random.default_rng(0).choice(X.shape[0], rows, replace=False))
        X, y = X[kept], y[kept]
        return Rows(f"{name} ({rows:,} rows)", X, y, f"{rows:,} rows drawn from {name}; {note}".rstrip("; "))
    return Rows(name, X, y, note)
