"""``python -m benchmarks.regret``: the time of ``solver="auto"`` over that of the better of ``dcd`` and
``newton``.

Real sets as they come, scaled to [-1, 1] or standardised, dense and sparse; C = 0.01, 1 and 100; exact
bias, to a relative gap of 1e-3. Sets marked "tune" are those that the constants of ``auto`` were read off,
those marked "report" are for the report. ``--losses all`` takes every loss; those of regression are fitted
to the labels. Then ``LinearSVC`` with its defaults on unscaled sets: none should end in a warning. Writes
``REGRET.md``.

Seconds are processor time, so other programs on the machine count for little, and runs during which a
kernel was compiled or loaded do not count.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import dualgap
from dualgap.core.losses import LOSSES
from dualgap.runtime.compiling import compile_seconds

from . import machine
from .appendix import taken_on
from .cells import markdown
from .regret_sets import SOURCES, UNSCALED, Source, rows_of
from .sets import data_folder

CS = (0.01, 1.0, 100.0)
TOL, LIMIT, REPEATS = 1e-3, 3.0, 4
WALL = 60.0  # seconds of a clock, at most, in which a second of processor time has passed
SOLVERS = ("dcd", "newton", "auto")


class Limit:
    """Ends a run after so many seconds of processor time."""

    def __init__(self, seconds: float) -> None:
        self._end = time.process_time() + seconds

    def __call__(self, record: Any, run: Any) -> bool:
        return time.process_time() > self._end


def timed(X: Any, y: Any, solver: str, loss: str, C: float, limit: float) -> dict[str, Any]:
    """A fit during which nothing was compiled. One of more than ``limit`` seconds has not arrived."""
    while True:
        began, compiled = time.process_time(), compile_seconds()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = dualgap.fit(
                X, y, loss=loss, C=C, solver=solver, bias="exact", tol=TOL, max_epochs=None,
                callbacks=[Limit(limit)], time_limit=WALL * limit,
            )  # fmt: skip
        seconds = time.process_time() - began
        if compile_seconds() == compiled:
            break
    return {
        "seconds": seconds,
        "converged": bool(outcome.converged) and seconds <= limit,
        "gap": outcome.certificate.relative_gap,
        "reason": outcome.reason.name,
        "auto_reason": outcome.auto_reason,
        "epochs": outcome.trace[-1].epochs,
        "certificates": len(outcome.trace),
        "trace": [
            [r.visits, r.entries, r.current.primal, r.current.dual, r.certificate.relative_gap, r.solver]
            for r in outcome.trace
        ],
    }


def in_turns(
    X: Any, y: Any, solvers: list[str], loss: str, C: float, given: argparse.Namespace
) -> dict[str, Any]:
    """The fastest run of each solver. Those that take a third of the limit run once."""
    best: dict[str, Any] = {}
    for _ in range(given.repeats):
        for solver in solvers:
            if solver not in best or best[solver]["seconds"] < given.limit / 3.0:
                run = timed(X, y, solver, loss, C, given.limit)
                best[solver] = min(best.get(solver, run), run, key=lambda each: float(each["seconds"]))
    return best


def regret(cell: dict[str, Any]) -> float:
    """The time of ``auto`` over that of the better one; infinite if it alone did not arrive, NaN if nobody
    did.
    """
    others = [cell[name]["seconds"] for name in ("dcd", "newton") if cell[name]["converged"]]
    if not cell["auto"]["converged"]:
        return math.inf if others else math.nan
    return cell["auto"]["seconds"] / min(others) if others else 0.0


def summary(found: list[dict[str, Any]], name: str) -> list[str]:
    """A line of a table of summaries."""
    ratios = np.array([regret(cell) for cell in found])
    alone, lost = int((ratios == 0.0).sum()), int(np.isinf(ratios).sum())
    finite = ratios[np.isfinite(ratios) & (ratios > 0.0)]
    if not finite.size:
        finite = np.array([math.nan])
    return [
        name, str(ratios.size), f"{math.exp(np.log(finite).mean()):.3f}", f"{finite.mean():.3f}",
        f"{finite.max():.2f}", str(int((finite > 1.5).sum())), str(lost), str(alone),
        str(int(np.isnan(ratios).sum())),
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
            began = time.process_time()
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                model = dualgap.LinearSVC(loss=loss, random_state=0).fit(X, y)
            seconds = time.process_time() - began
            gap = model.certificate_[0].relative_gap
            lines.append([name, loss, f"{gap:.1e}", f"{seconds:.2f}", "warning" if told else ""])
            print(*lines[-1], flush=True)
    return lines


def main() -> int:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regret", description=__doc__)
    parser.add_argument("--losses", default="hinge,logistic", help="names, or all")
    parser.add_argument("--solvers", default=",".join(SOLVERS))
    parser.add_argument("--sets", default="", help="only sets whose names hold one of these words")
    parser.add_argument("--without", default="", help="no sets whose names hold one of these words")
    parser.add_argument("--C", default=",".join(f"{C:g}" for C in CS))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--into", default="", help="a JSON file for all figures")
    parser.add_argument("--add", nargs="*", default=[], help="JSON files of other runs, for the page")
    parser.add_argument("--only-add", action="store_true", help="measure nothing but the defaults")
    parser.add_argument("--out", type=Path, default=None, help="folder for the page; none without it")
    given = parser.parse_args()
    folder = data_folder(None)
    if folder is None:
        sys.exit("DUALGAP_DATA names no folder of data sets")
    before = machine.describe()
    kept = [cell for name in given.add for cell in json.loads(Path(name).read_text())]
    found = kept if given.only_add else measured(folder, given) + kept
    if given.out is not None:
        before["load_at_end"] = machine.describe()["load"]
        (given.out / "REGRET.md").write_text(page(found, unscaled(folder), before, given))
    return 0


def measured(folder: Path, given: argparse.Namespace) -> list[dict[str, Any]]:
    """All cells."""
    solvers = given.solvers.split(",")
    losses = [name for name in LOSSES if name != "hard-margin"]
    losses = losses if given.losses == "all" else given.losses.split(",")
    words = [word for word in given.sets.split(",") if word]
    unwanted = [word for word in given.without.split(",") if word]
    found: list[dict[str, Any]] = []
    for source in SOURCES:
        if words and not any(word in source.name for word in words):
            continue
        if any(word in source.name for word in unwanted):
            continue
        X, y = rows_of(source, folder)
        for loss in losses:
            for C in map(float, given.C.split(",")):
                cell = {"set": source.name, "half": source.half, "loss": loss, "C": C}
                found.append(cell | in_turns(X, y, solvers, loss, C, given))
                print(line(found[-1], solvers), flush=True)
        if given.into:
            Path(given.into).write_text(json.dumps(found))
    return found


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
    halves = {half: [cell for cell in found if cell["half"] == half] for half in ("tune", "report")}
    losses = list(dict.fromkeys(cell["loss"] for cell in found))
    parts = [
        "# The regret of `auto`",
        taken_on(before),
        f"Seconds of processor time to a proven relative gap of {TOL:g}, exact bias, {given.limit:g} s a run "
        f"at most, the fastest of up to {given.repeats}, in turns; runs that compile something do not count. "
        "The regret is the time of `auto` over that of the better of `dcd` and `newton`.",
        markdown(heads, [summary(cells, half) for half, cells in halves.items()]),
        "The same for each loss, on the half that is for the report:",
        markdown(
            ["loss", *heads[1:]],
            [summary([cell for cell in halves["report"] if cell["loss"] == loss], loss) for loss in losses],
        ),
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
    whole = f"{regret(cell):.2f}" if set(SOLVERS) <= set(solvers) else ""
    return f"{cell['set']:20} {cell['loss']:9} {cell['C']:<6g} {whole:6} " + "  ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
