"""``python -m benchmarks.classes``: K classes at once beside scikit-learn's multinomial solvers.

Generated embeddings (rows of unit length in float32, a power-law spectrum, one cloud a class, which overlap)
and, where they are, mnist and news20. Each peer gets the loosest of its tolerances whose objective is within
1e-3 of ours, found in hindsight; we stop at a certified 1e-3. Then one-vs-rest with its common start and
without, and the accuracy of a probe over C. Writes ``CLASSES.md`` and ``classes.png``.

Seconds are processor time of one thread, the least of several runs in turns.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

import dualgap

from . import HERE, machine
from .appendix import taken_on
from .cells import markdown, short
from .probe_growth import section
from .sets import data_folder

PEERS = ("lbfgs", "newton-cg", "newton-cholesky")
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
TARGET = 1e-3
OVERLAP = 0.3  # the spread of the centres of classes, in units of that about them


class Cell(NamedTuple):
    """A set and the values of C."""

    name: str
    rows: Callable[[], tuple[Any, Any]]
    Cs: tuple[float, ...]
    peers: tuple[str, ...] = PEERS[:1]


def embeddings(n: int, d: int, classes: int, seed: int = 0) -> tuple[Any, Any]:
    """Rows like those of a text or image encoder: clouds about a centre for each class, unit length."""
    rng = np.random.default_rng(seed)
    spectrum = (1.0 + np.arange(d)) ** -0.6
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    centres = OVERLAP * rng.standard_normal((classes, d)) * spectrum
    mean = rng.standard_normal(d) * spectrum * 2.0
    y = rng.integers(0, classes, n)
    X = np.empty((n, d), dtype=np.float32)
    for first in range(0, n, 10_000):
        some = slice(first, min(first + 10_000, n))
        cloud = centres[y[some]] + rng.standard_normal((some.stop - first, d)) * spectrum + mean
        X[some] = normalize(cloud @ turn)
    return X, y


def cells(folder: Path | None, quick: bool) -> Iterator[Cell]:
    """Those that can be had."""
    if quick:
        yield Cell("embeddings 3,000 x 64, 10 classes", lambda: embeddings(3000, 64, 10), (1.0, 10.0), PEERS)
        return
    yield Cell(
        "embeddings 30,000 x 512, 100 classes",
        lambda: embeddings(30_000, 512, 100),
        (1.0, 10.0, 100.0),
        PEERS[:2],
    )
    yield Cell(
        "embeddings 100,000 x 768, 20 classes", lambda: embeddings(100_000, 768, 20), (1.0, 10.0), PEERS[:2]
    )
    yield Cell("embeddings 30,000 x 256, 1,000 classes", lambda: embeddings(30_000, 256, 1000), (10.0,))
    if folder is not None:
        yield Cell("mnist, pixels / 255", lambda: _mnist(folder), (1.0,), PEERS[:2])
        yield Cell("news20, rows of unit length", lambda: _news20(folder), (1.0, 10.0))


def _mnist(folder: Path) -> tuple[Any, Any]:
    X, y = load_svmlight_file(str(folder / "mnist-multiclass.svm.bz2"))
    return X.toarray().astype(np.float32) / 255.0, y


def _news20(folder: Path) -> tuple[Any, Any]:
    X, y = load_svmlight_file(str(folder / "news20-multiclass.svm.bz2"))
    return normalize(X), y


def objective(X: Any, codes: Any, C: float, coef: Any, intercept: Any) -> float:
    """J, in float64."""
    coef = np.asarray(coef, dtype=np.float64)
    total = 0.5 * float(np.vdot(coef, coef))
    for first in range(0, codes.size, 4096):
        some = slice(first, first + 4096)
        scores = np.asarray(X[some] @ coef.T) + intercept
        scores -= scores.max(axis=1, keepdims=True)
        own = scores[np.arange(scores.shape[0]), codes[some]]
        total += C * float((np.log(np.exp(scores).sum(axis=1)) - own).sum())
    return total


def least(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Seconds, and what the last run found."""
    seconds, found = [], None
    for _ in range(repeats):
        begin = time.process_time()
        found = run()
        seconds.append(time.process_time() - begin)
    return min(seconds), found


def compared(cell: Cell, repeats: int) -> Iterator[list[str]]:
    """A line for each C."""
    X, y = cell.rows()
    codes = np.unique(y, return_inverse=True)[1]
    for C in cell.Cs:
        ours, outcome = least(partial(dualgap.fit, X, y, loss="multinomial", C=C, bias="exact"), repeats)
        line = [
            cell.name,
            f"{C:g}",
            outcome.solver.name,
            short(ours),
            f"{outcome.certificate.relative_gap:.1e}",
        ]
        best = outcome.certificate.dual
        for peer in PEERS:
            line.append(_peer(X, y, codes, C, peer, best, ours) if peer in cell.peers else "")
        print(" | ".join(line), flush=True)
        yield line


def _peer(X: Any, y: Any, codes: Any, C: float, solver: str, best: float, ours: float) -> str:
    """Seconds of a peer at its loosest sufficient tolerance, and how many times ours that is."""
    for tol in TOLERANCES:
        model = LogisticRegression(C=C, solver=solver, tol=tol, max_iter=10_000)
        seconds, _ = least(partial(model.fit, X, y), 1)
        excess = objective(X, codes, C, model.coef_, model.intercept_) / best - 1.0
        if excess <= TARGET:
            return f"{short(seconds)} ({seconds / ours:.1f} x, tol {tol:g})"
    return f"not within {TARGET:g}"


def separate(quick: bool, repeats: int) -> Iterator[list[str]]:
    """One-vs-rest with a common start, and without."""
    n, d, classes = (3000, 400, 10) if quick else (30_000, 512, 100)
    X, y = embeddings(n, d, classes)
    for loss, C in (("logistic", 1.0), ("logistic", 10.0), ("hinge", 1.0), ("hinge", 10.0)):
        told: dict[str, Any] = {"loss": loss, "C": C, "bias": "exact"}
        common, found = least(partial(dualgap.one_vs_rest, X, y, **told), repeats)
        alone, other = least(partial(dualgap.one_vs_rest, X, y, max_epochs=999, **told), 1)
        gaps = [max(one.relative_gap for one in many.certificates) for many in (found, other)]
        line = [
            f"{n:,} x {d}, {classes} classes",
            loss,
            f"{C:g}",
            short(common),
            short(alone),
            f"{alone / common:.1f}",
        ]
        line += [f"{gap:.1e}" for gap in gaps]
        print(" | ".join(line), flush=True)
        yield line


def picture(path: Path, quick: bool) -> None:
    """Accuracy of a probe over C, on rows trained on and on others."""
    from matplotlib.figure import Figure

    n, d, classes = (2000, 64, 10) if quick else (20_000, 256, 50)
    X, y = embeddings(2 * n, d, classes)
    Cs = np.logspace(-2, 4, 13)
    seen, unseen = [], []
    for C in Cs:
        model = dualgap.fit(X[:n], y[:n], loss="multinomial", C=float(C), bias="exact").model
        seen.append(float((model.predict(X[:n]) == y[:n]).mean()))
        unseen.append(float((model.predict(X[n:]) == y[n:]).mean()))
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    axes.semilogx(Cs, seen, "o-", color="#0072b2", label="rows trained on")
    axes.semilogx(Cs, unseen, "s--", color="#d55e00", label="other rows")
    axes.set_xlabel("C")
    axes.set_ylabel("accuracy")
    axes.set_title(f"A probe over C: {n:,} x {d} embeddings, {classes} classes")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=HERE, help="folder for CLASSES.md and classes.png")
    parser.add_argument("--data", help="folder of data sets (DUALGAP_DATA)")
    parser.add_argument("--quick", action="store_true", help="small sets: does it work?")
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found, began = machine.describe(), time.time()
    least(lambda: dualgap.fit(*embeddings(500, 16, 4), loss="multinomial", bias="exact"), 1)  # kernels
    joint = [
        line
        for cell in cells(data_folder(options.data), options.quick)
        for line in compared(cell, options.repeats)
    ]
    apart = list(separate(options.quick, options.repeats))
    picture(options.out / "classes.png", options.quick)
    text = [
        "# K classes at once",
        "`python -m benchmarks.classes`. Processor seconds of one thread; ours to a certified relative gap "
        f"of 1e-3, peers at the loosest tolerance of {', '.join(f'{tol:g}' for tol in TOLERANCES)} whose "
        "objective is within 1e-3 of the lower bound; in brackets how many times our time that is.",
        taken_on(found) + f" The run took {(time.time() - began) / 60.0:.0f} minutes.",
        "## Multinomial, intercepts not regularised",
        markdown(["set", "C", "solver", "ours", "gap", *(f"scikit-learn {peer}" for peer in PEERS)], joint),
        "## One-vs-rest: a common start for all classes, and none",
        markdown(
            ["set", "loss", "C", "common start", "each alone", "ratio", "worst gap", "worst gap alone"], apart
        ),
        *section(options.quick, options.repeats),
        "## Accuracy over C",
        "![accuracy of a probe over C](classes.png)",
    ]
    (options.out / "CLASSES.md").write_text("\n\n".join(text) + "\n")


if __name__ == "__main__":
    main()
