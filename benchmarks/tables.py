"""RESULTS.md from the results of a run, and from nothing else."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from . import appendix
from .cells import Cell, Results, advantage, autos, cells_at, losses, markdown, short, targets, unsure

LOST = "✗"
_BLANK = {
    "missed": "missed",
    "skipped": "not tried",
    "unknown": "?",
    "crashed": "crashed",
    "error": "failed",
    "unsupported": "–",
}

HOW_TO_READ = """\
Seconds of wall-clock time from arrays in memory to the model, the fastest of the repeats; conversions into a
library's own format count. A run counts if its objective, computed by one NumPy function from the weights alone, is at
most (1 + target) times the optimum. Of a peer the loosest setting that reaches the target counts, chosen in hindsight;
`auto` and the other solvers of dualgap stop by themselves, when their certificate proves the target, and the time of
the proof counts. *Hindsight* is the moment at which the model of `auto` was good enough, proven or not. No bias. `@2`
means two threads; all others have one. Compiled kernels are in the cache (cold starts are listed apart).

**Bold**: the fastest of the row. In brackets: how many times the fastest of the row it took. ✗: `auto` is slower than
a peer with no more threads. `> t`: no setting reached the target within t seconds a run. `not tried`: nor did any at a
smaller C, which is easier, or the set is known to be too large for it. `missed`: all settings that there are ended too
far from the optimum. †: the optimum is not known well enough, and its lower bound stands in for it; where even that
says nothing, peers are not tried (`?`).
"""


PICTURE = "![Seconds of the best peer over seconds of ours, one dot a cell](plots/overview.png)"


def report(results: Results) -> str:
    """The whole page."""
    parts = ["# Results", appendix.machine(results), HOW_TO_READ, "## `auto` against the best peer", PICTURE]
    parts += [_summary(results, name) for name in autos(results)]
    for loss in losses(results):
        parts.append(f"## {loss.capitalize()}")
        for C in sorted({problem["C"] for problem in results["problems"] if problem["loss"] == loss}):
            parts += [_seconds(results, loss, C, target) for target in targets(results)]
    parts += [_own(results, loss) for loss in losses(results)]
    parts += appendix.parts(results)
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _summary(results: Results, name: str) -> str:
    """How many times faster than the best peer, cell by cell, and the means over each half of the sets."""
    columns = {(problem["C"], target) for problem in results["problems"] for target in targets(results)}
    ordered = sorted(columns, key=lambda pair: (pair[0], -pair[1]))
    rows = []
    ratios: dict[str, list[float]] = {"tune": [], "report": []}
    for loss in losses(results):
        for title, info in results["sets"].items():
            found = {p["C"]: p for p in results["problems"] if (p["set"], p["loss"]) == (title, loss)}
            line = [_ratio(results, found.get(C), target, name) for C, target in ordered]
            ratios[info["half"]] += [ratio for ratio in line if ratio is not None]
            if found:
                rows.append([f"{title}, {loss}", *map(_verdict, line)])
    every = ratios["tune"] + ratios["report"]
    lost, alone = sum(ratio < 1 for ratio in every), sum(math.isinf(ratio) for ratio in every)
    return (
        f"`{name}`: seconds of the best peer with no more threads, divided by ours; above 1 we are faster. "
        "Geometric "
        f"mean {_mean(every)} over the cells that both reached; {_mean(ratios['tune'])} over the sets that "
        "choices of "
        f"`auto` are tuned on, {_mean(ratios['report'])} over those they are reported on. Lost cells: "
        f"{lost} of "
        f"{len(every)}. Cells that no peer reached: {alone}.\n\n"
        + markdown(["", *(f"C={C:g}, {target:g}" for C, target in ordered)], rows)
    )


def _ratio(results: Results, problem: Results | None, target: float, name: str) -> float | None:
    return None if problem is None else advantage(results, cells_at(problem, target), name)


def _verdict(ratio: float | None) -> str:
    if ratio is None:
        return ""
    if math.isinf(ratio):
        return "alone"
    shown = f"{ratio:.2f}" if ratio > 0 else "not reached"
    return f"{shown} {LOST}" if ratio < 1 else shown


def _mean(ratios: Sequence[float]) -> str:
    both = [ratio for ratio in ratios if 0 < ratio < math.inf]
    return f"{statistics.geometric_mean(both):.2f}" if both else "–"


def _seconds(results: Results, loss: str, C: float, target: float) -> str:
    """One row a set, one column a solver."""
    problems = [p for p in results["problems"] if (p["loss"], p["C"]) == (loss, C)]
    taking_part = {cell["solver"] for problem in problems for cell in problem["cells"]}
    mine = [name for name in autos(results) if name in taking_part]
    others = [name for name, item in results["solvers"].items() if not item["ours"] and name in taking_part]
    rows = []
    for problem in problems:
        cells = cells_at(problem, target)
        best = min(_time(cells.get(name)) for name in [*mine, *others])
        line = [problem["set"] + (" †" if unsure(problem, target) else "")]
        for name in mine:
            ratio = advantage(results, cells, name)
            lost = f" {LOST}" if ratio is not None and ratio < 1 else ""
            line.append(_shown(cells.get(name), best) + lost)
        if mine:
            proven = cells.get(mine[0], {})
            line.append(short(proven["hindsight_seconds"]) if "hindsight_seconds" in proven else "")
        rows.append([*line, *(_shown(cells.get(name), best) for name in others)])
    header = ["set", *mine, *(["hindsight"] if mine else []), *others]
    return f"### {loss}, C = {C:g}, to {target:g}\n\n" + markdown(header, rows)


def _own(results: Results, loss: str) -> str:
    """All solvers of ours: one row a solver, one column a set."""
    mine = [name for name, item in results["solvers"].items() if item["ours"]]
    problems = [problem for problem in results["problems"] if problem["loss"] == loss]
    if not mine or not problems:
        return ""
    parts = [f"## The solvers of dualgap, {loss}: seconds to a certified gap"]
    for C in sorted({problem["C"] for problem in problems}):
        here = [problem for problem in problems if problem["C"] == C]
        asked = {
            cell["solver"] for problem in here for cell in problem["cells"] if cell["status"] != "unsupported"
        }
        names = [name for name in mine if name in asked]
        if names == autos(results):
            continue  # the tables above say it all
        for target in targets(results):
            columns = [{name: cells_at(problem, target).get(name) for name in names} for problem in here]
            best = [min(map(_time, column.values())) for column in columns]
            rows = [
                [
                    name,
                    *(_shown(column[name], fastest) for column, fastest in zip(columns, best, strict=True)),
                ]
                for name in names
            ]
            parts.append(markdown([f"C = {C:g}, to {target:g}", *(problem["set"] for problem in here)], rows))
    return "\n\n".join(parts) if len(parts) > 1 else ""


def _time(cell: Cell | None) -> float:
    return cell["seconds"] if cell is not None and cell["status"] == "ok" else math.inf


def _shown(cell: Cell | None, best: float) -> str:
    if cell is None:
        return ""
    if cell["status"] != "ok":
        return _BLANK.get(cell["status"], f"> {short(cell['limit'])}")
    ratio = cell["seconds"] / best
    return f"**{short(cell['seconds'])}**" if ratio <= 1 else f"{short(cell['seconds'])} ({ratio:.1f}x)"
