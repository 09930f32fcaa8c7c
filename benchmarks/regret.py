"""``python -m benchmarks.regret``: the time of ``solver="auto"`` over that of the better of ``dcd`` and
``newton``.

Real sets as they come, scaled to [-1, 1] or standardised, dense and sparse; C = 0.01, 1 and 100; exact
bias, to a relative gap of 1e-3. Sets marked "tune" are those that the constants of ``auto`` were read off,
those marked "report" are for the report. Then ``LinearSVC`` with its defaults on unscaled sets: none should
end in a warning. Writes ``REGRET.md``.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import dualgap

from . import CACHE, machine
from .appendix import taken_on
from .cells import markdown
from .sets import data_folder

CS = (0.01, 1.0, 100.0)
TOL, LIMIT, REPEATS = 1e-3, 3.0, 3
SOLVERS = ("dcd", "newton", "auto")


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


def timed(X: Any, y: Any, solver: str, loss: str, C: float, repeats: int, limit: float) -> dict[str, Any]:
    """The fastest of some fits."""
    best: dict[str, Any] = {"seconds": math.inf}
    for _ in range(repeats):
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = dualgap.fit(
                X, y, loss=loss, C=C, solver=solver, bias="exact", tol=TOL, time_limit=limit, max_epochs=None
            )
        seconds = time.perf_counter() - began
        last = outcome.trace[-1]
        if seconds < best["seconds"]:
            best = {
                "seconds": seconds,
                "converged": bool(outcome.converged),
                "gap": outcome.certificate.relative_gap,
                "reason": outcome.reason.name,
                "auto_reason": outcome.auto_reason,
                "epochs": last.epochs,
                "certificates": len(outcome.trace),
                "trace": [
                    [
                        r.visits,
                        r.entries,
                        r.current.primal,
                        r.current.dual,
                        r.certificate.relative_gap,
                        r.seconds,
                    ]
                    for r in outcome.trace
                ],
            }
        if seconds > limit / 3:
            break
    return best


def regret(cell: dict[str, Any]) -> float:
    """The time of ``auto`` over that of the better one; infinite if it alone did not arrive, NaN if nobody
    did.
    """
    others = [cell[name]["seconds"] for name in ("dcd", "newton") if cell[name]["converged"]]
    if not cell["auto"]["converged"]:
        return math.inf if others else math.nan
    return cell["auto"]["seconds"] / min(others) if others else 0.0


def summary(found: list[dict[str, Any]], half: str) -> list[str]:
    """A line of the table of halves."""
    ratios = np.array([regret(cell) for cell in found if cell["half"] == half])
    alone, lost = int((ratios == 0.0).sum()), int(np.isinf(ratios).sum())
    finite = ratios[np.isfinite(ratios) & (ratios > 0.0)]
    mean = float(np.exp(np.log(finite).mean())) if finite.size else math.nan
    return [
        half, str(ratios.size), f"{mean:.3f}", f"{finite.mean():.3f}", f"{finite.max():.2f}",
        str(int((finite > 1.5).sum())), str(lost), str(alone), str(int(np.isnan(ratios).sum())),
    ]  # fmt: skip


def shown(run: dict[str, Any]) -> str:
    """Seconds, or the gap where a run did not arrive."""
    return f"{run['seconds']:.3g}" if run["converged"] else f"gap {run['gap']:.0e}"


def unscaled(folder: Path) -> list[list[str]]:
    """``LinearSVC`` with its defaults on the sets as they come."""
    lines = []
    for name, file, columns, dense in UNSCALED:
        X, y = rows_of(Source(name, "report", file, columns, "raw", dense), folder)
        for loss in ("hinge", "logistic", "squared-hinge"):
            began = time.perf_counter()
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                model = dualgap.LinearSVC(loss=loss, random_state=0).fit(X, y)
            seconds = time.perf_counter() - began
            gap = model.certificate_[0].relative_gap
            lines.append([name, loss, f"{gap:.1e}", f"{seconds:.2f}", "warning" if told else ""])
            print(*lines[-1], flush=True)
    return lines


def main() -> int:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regret", description=__doc__)
    parser.add_argument("--losses", default="hinge,logistic")
    parser.add_argument("--solvers", default=",".join(SOLVERS))
    parser.add_argument("--sets", default="", help="only sets whose names hold one of these words")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--into", default="", help="a JSON file for all figures")
    parser.add_argument("--out", type=Path, default=None, help="folder for the page; none without it")
    given = parser.parse_args()
    folder = data_folder(None)
    if folder is None:
        sys.exit("DUALGAP_DATA names no folder of data sets")
    before = machine.describe()
    solvers = given.solvers.split(",")
    words = [word for word in given.sets.split(",") if word]
    found: list[dict[str, Any]] = []
    for source in SOURCES:
        if words and not any(word in source.name for word in words):
            continue
        X, y = rows_of(source, folder)
        for loss in given.losses.split(","):
            for solver in solvers:  # compile, outside of all times
                timed(X[:50], np.sign(np.arange(50) - 20.5), solver, loss, 1.0, 1, 0.5)
            for C in CS:
                cell: dict[str, Any] = {"set": source.name, "half": source.half, "loss": loss, "C": C}
                for solver in solvers:
                    cell[solver] = timed(X, y, solver, loss, C, given.repeats, given.limit)
                found.append(cell)
                print(line(cell, solvers), flush=True)
        if given.into:
            Path(given.into).write_text(json.dumps(found))
    if given.out is not None:
        before["load_at_end"] = machine.describe()["load"]
        (given.out / "REGRET.md").write_text(page(found, unscaled(folder), before, given))
    return 0


def page(
    found: list[dict[str, Any]], defaults: list[list[str]], before: dict[str, Any], given: argparse.Namespace
) -> str:
    """The report."""
    heads = [
        "half", "cells", "mean, geometric", "mean", "worst", "above 1.5", "lost: only auto did not arrive",
        "auto alone arrived", "nobody arrived",
    ]  # fmt: skip
    cells = [
        [
            f"{cell['set']}, {cell['loss']}, C = {cell['C']:g}", cell["half"], shown(cell["dcd"]),
            shown(cell["newton"]), shown(cell["auto"]), f"{regret(cell):.2f}",
        ]
        for cell in found
    ]  # fmt: skip
    warned = sum(bool(line[-1]) for line in defaults)
    parts = [
        "# The regret of `auto`",
        taken_on(before),
        f"Seconds to a proven relative gap of {TOL:g}, exact bias, {given.limit:g} s a run at most, "
        f"the fastest of up to {given.repeats}. The regret is the time of `auto` over that of the better of "
        "`dcd` and `newton`.",
        markdown(heads, [summary(found, half) for half in ("tune", "report")]),
        "## Cells",
        markdown(["cell", "half", "dcd", "newton", "auto", "regret"], cells),
        f"## `LinearSVC` with its defaults, unscaled: {warned} of {len(defaults)} end in a warning",
        markdown(["set", "loss", "relative gap", "seconds", ""], defaults),
    ]
    return "\n\n".join(parts) + "\n"


def line(cell: dict[str, Any], solvers: list[str]) -> str:
    """A cell for the terminal."""
    parts = []
    for solver in solvers:
        run = cell[solver]
        mark = "" if run["converged"] else f"!{run['gap']:.0e}"
        parts.append(f"{solver} {run['seconds']:.4f}{mark} ({run['epochs']:.0f}e {run['certificates']}c)")
    return f"{cell['set']:20} {cell['loss']:9} {cell['C']:<6g} " + "  ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
