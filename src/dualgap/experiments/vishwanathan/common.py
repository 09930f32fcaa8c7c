"""What the experiments of this lecture share: rows of the shape of its four sets, on disk, and runs on them.

    ocr        3.5 M x 1,156, dense, 45 GB            here: fewer rows and columns, dense
    dna        50 M x 800, a quarter full, 63 GB      three positives in a thousand
    webspam-t  0.35 M x 16.6 M, 20 GB                 long sparse rows, very many columns
    kddb       20 M x 29.9 M, 4.8 GB                  short sparse rows, very many columns

None of them is at hand: all rows are generated. What decides between the methods is the share of the rows
that fits into memory, which is the same here.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...api import fit
from ...data.formats.arrow.writing import write_store
from ...outcome import Outcome
from ..lab import Lab, certified
from ..report import Cell, Curve, Figure, Panel
from ..sets import Rows

C = 1.0
MEBIBYTE = 2**20
GAP = 1e-3  # the relative gap at which runs end
ACCURACY = 1e-2  # to which passes and seconds are counted
SHARES = (0.05, 0.1, 0.25)  # of the rows in memory
CELLS = "cells"  # a set with a share of its rows in memory
DOTS = "a dot is a certificate, the first after about two passes"


class Shape(NamedTuple):
    """A generated set: rows, columns, entries a row, and the share of positive labels."""

    name: str
    n: int
    d: int
    entries: int
    positive: float
    seed: int


FULL = (
    Shape("ocr-like", 40_000, 256, 256, 0.49, 1),
    Shape("dna-like", 200_000, 200, 50, 0.003, 2),
    Shape("webspam-t-like", 20_000, 1_000_000, 400, 0.6, 3),
    Shape("kddb-like", 200_000, 1_000_000, 12, 0.86, 4),
)
QUICK = (Shape("ocr-like", 1200, 40, 40, 0.49, 1), Shape("kddb-like", 3000, 2000, 8, 0.86, 4))


SIZES = (
    "data",
    *("n", "d", "entries, %", "n+ : n-", "size"),
    *(f"{name}, lecture" for name in ("n", "d", "entries, %", "n+ : n-", "size")),
)
LECTURE: dict[str, tuple[Cell, ...]] = {
    "ocr": ("3.5 M", "1156", "100", "0.96", "45.28 GB"),
    "dna": ("50 M", "800", "25", "3e-3", "63.04 GB"),
    "webspam-t": ("0.35 M", "16.61 M", "0.022", "1.54", "20.03 GB"),
    "kddb": ("20.01 M", "29.89 M", "1e-4", "6.18", "4.75 GB"),
}


def sizes(shape: Shape, rows: Rows) -> list[Cell]:
    """A set beside that of the lecture; its size is that of its entries in single precision, and of their
    columns where it is sparse.
    """
    sparse = sp.issparse(rows.X)
    entries = rows.X.nnz if sparse else rows.X.size
    positive = int((rows.y > 0).sum())
    return [
        rows.name,
        *(shape.n, shape.d, 100.0 * entries / (shape.n * shape.d), positive / (shape.n - positive)),
        f"{entries * (8 if sparse else 4) / 1e6:.0f} MB",
        *LECTURE[shape.name.removesuffix("-like")],
    ]


def shapes(lab: Lab) -> tuple[Shape, ...]:
    """The sets of a sitting."""
    return QUICK if lab.quick else FULL


def rows_of(lab: Lab, shape: Shape) -> Rows:
    """Rows of a shape, of a length of about 1, generated; text-like ones have columns by Zipf's law."""
    rng = np.random.default_rng(shape.seed)
    X: Any
    if shape.entries == shape.d:
        X = (rng.normal(size=(shape.n, shape.d)) / np.sqrt(shape.d)).astype(np.float32)
    else:
        row = np.repeat(np.arange(shape.n), shape.entries)
        share = rng.random(row.size) ** (1.0 if shape.d < 10_000 else 3.0)
        column = (share * shape.d).astype(np.int64)
        values = rng.random(row.size).astype(np.float32) + 0.5
        X = sp.csr_matrix((values, (row, column)), shape=(shape.n, shape.d))
        X.sum_duplicates()
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        X = sp.csr_matrix(sp.diags_array((1.0 / norms).astype(np.float32)) @ X)
    theirs = shape.name.removesuffix("-like")
    score = X @ rng.normal(size=shape.d).astype(np.float32)
    score = score + 0.7 * float(np.std(score)) * rng.normal(size=shape.n)
    y = np.where(score > np.quantile(score, 1.0 - shape.positive), 1.0, -1.0)
    return lab.given(Rows(shape.name, X, y, f"{shape.n:,} x {shape.d:,}, generated; {theirs} is not at hand"))


@contextmanager
def stored(rows: Rows) -> Iterator[Path]:
    """The rows in a store on disk, shuffled as stores are, for as long as they are needed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.arrow"
        write_store(path, rows.X, rows.y)
        yield path


class Place(NamedTuple):
    """One cell of a comparison: rows on disk, their optimum, and the share of them that memory holds."""

    rows: Rows
    path: Path
    optimum: float
    share: float

    @property
    def budget(self) -> int:
        """Bytes that are never the limit: the option `cache` says how many rows are kept, and duals, weights
        and blocks come on top of them.
        """
        columns = int(self.rows.X.shape[1])
        return 2 * self.path.stat().st_size + 64 * columns + 256 * self.rows.n + 8 * MEBIBYTE


def places(lab: Lab) -> Iterator[Place]:
    """All sets at all shares; one share where it is to be quick."""
    for shape in shapes(lab):
        rows = rows_of(lab, shape)
        optimum = lab.optimum(rows, C=C)
        with stored(rows) as path:
            for share in SHARES[1:2] if lab.quick else SHARES:
                yield Place(rows, path, optimum, share)


class Run(NamedTuple):
    """How far above the optimum the best model was, by passes over the disk and by seconds."""

    passes: list[float]
    seconds: list[float]
    excess: list[float]

    def reaches(self, accuracy: float, by: str = "passes") -> float:
        """Passes or seconds until the objective is within an accuracy; inf if it never is."""
        places = zip(self.passes if by == "passes" else self.seconds, self.excess, strict=True)
        return next((when for when, value in places if value <= accuracy), math.inf)

    def curve(self, label: str, by: str) -> Curve:
        """As a line of a figure; with markers, as a run may have one point only."""
        when = self.passes if by == "passes" else self.seconds
        return Curve(label, when, [max(e, 1e-9) for e in self.excess], marker="o")


def run(lab: Lab, place: Place, solver: str, epochs: float, **options: Any) -> Run:
    """Train from disk with a share of the rows in memory."""
    rows = place.rows
    options = {"cache": place.share, **options}
    key = {"disk": rows.name, "rows": rows.n, "solver": solver, "epochs": epochs, **options}

    def measure() -> dict[str, list[float]]:
        lab.tell(f"{rows.name} from disk: {solver} {options}")
        outcome = fit(
            place.path,
            C=C,
            solver=solver,
            in_memory=False,
            memory_budget=place.budget,
            tol=GAP,
            stall=None,
            max_epochs=epochs,
            **options,
        )
        return {
            **curve_of(outcome, place.optimum),
            "seconds": [record.seconds for record in certified(outcome)],
        }

    return Run(**lab.once(key, measure))


def curve_of(outcome: Outcome, optimum: float) -> dict[str, list[float]]:
    """Passes over the disk, and how far above the optimum the best model was."""
    records = certified(outcome)
    return {
        "passes": [float(record.passes or 0.0) for record in records],
        "excess": [record.certificate.primal / optimum - 1.0 for record in records],
    }


def panel(place: Place, runs: Mapping[str, Run], labels: Mapping[str, str], by: str) -> Panel:
    """The runs of one cell as curves, by passes or by seconds."""
    xlabel = "passes over the disk" if by == "passes" else by
    curves = [one.curve(labels[name], by) for name, one in runs.items()]
    levels = {f"{ACCURACY:.0%} above": ACCURACY}
    return Panel(place.rows.name, xlabel, "J / J* - 1", curves, yscale="log", levels=levels)


def figures(name: str, caption: str, panels: Mapping[float, Sequence[Panel]]) -> list[Figure]:
    """A figure for every share of the rows in memory."""
    return [
        Figure(f"{name}-{100 * share:.0f}", f"{caption}, {share:.0%} of the rows in memory; {DOTS}", found)
        for share, found in panels.items()
    ]


def counted(count: float) -> Cell:
    """Passes or seconds as a cell."""
    return "not reached" if math.isinf(count) else count
