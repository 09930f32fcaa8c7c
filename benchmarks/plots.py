"""Figures of a run: ``python -m benchmarks.plots results.json folder``. Needs matplotlib and no other
library.

One figure a problem: how far above the optimum, against seconds and against passes. Our solvers are lines
through the certified records of one run; a peer is one point a setting of its grid, joined in order. An
overview has one dot a cell: seconds of the best peer over ours.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from .cells import Results, advantage, autos, cells_at, targets

# Okabe and Ito's colours, which people of every colour vision can tell apart; markers say the same once more
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h")
MOST = 8  # curves of ours in one figure
FLOOR = 1e-8  # the optimum itself is known to about 1e-7
EDGES = (1 / 32, 32.0)  # of the overview

Points = list[tuple[float, float | None, float]]  # seconds, passes, distance from the optimum


def curves(problem: Results, results: Results) -> Iterator[tuple[str, bool, Points]]:
    """Name, whether it is ours, and points, of everyone who has some."""
    best = problem["optimum"]
    for name in leading(problem["traces"], min(targets(results))):
        trace = problem["traces"][name]
        points: Points = [(r["seconds"], r["passes"], r["primal"] / best - 1.0) for r in trace]
        yield name, True, points
    for name, item in results["solvers"].items():
        if item["ours"]:
            continue
        runs = [run for run in problem["runs"] if run["solver"] == name and run["status"] == "ok"]
        for arm in dict.fromkeys(run["arm"] for run in runs):
            mine = fastest_of_each(run for run in runs if run["arm"] == arm)
            many = len({run["arm"] for run in runs}) > 1
            points = [(r["seconds"], r["passes"], r["J"] / best - 1.0) for r in mine]
            yield (
                f"{name} ({arm})" if many else name,
                False,
                sorted(points, key=lambda p: (p[1] or 0.0, p[0])),
            )


def leading(traces: dict[str, list[dict[str, float]]], tightest: float) -> list[str]:
    """So many of our solvers as a figure can hold: ``auto``, then those that were soonest, or else got
    farthest.
    """
    first = [name for name in traces if name.split("@")[0] == "auto"]
    others = [name for name in traces if name not in first]

    def rank(name: str) -> tuple[bool, float]:
        last = traces[name][-1]
        gap = math.inf if last["relative_gap"] is None else last["relative_gap"]
        return gap > tightest, gap if gap > tightest else last["seconds"]

    shown = sorted(others, key=rank)[: MOST - len(first)]
    return first + [name for name in others if name in shown]


def fastest_of_each(runs: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """One run a value."""
    found: dict[float, dict[str, Any]] = {}
    for run in runs:
        known = found.get(run["value"])
        if known is None or run["seconds"] < known["seconds"]:
            found[run["value"]] = run
    return list(found.values())


def style(position: int, ours: bool, points: int) -> dict[str, Any]:
    """Ours thick with a few markers, peers thin with a marker a setting."""
    look = {"color": COLOURS[position % len(COLOURS)], "marker": MARKERS[position % len(MARKERS)]}
    if ours:
        return {
            **look,
            "linewidth": 2.2,
            "markersize": 5,
            "markevery": max(1, points // 10),
            "linestyle": ("-", "--", ":")[position // 8 % 3],
            "zorder": 3,
        }
    return {
        **look,
        "linewidth": 0.9,
        "markersize": 5,
        "linestyle": "-",
        "markerfacecolor": "white",
        "zorder": 2,
    }


def figure(problem: Results, results: Results, path: Path) -> None:
    """Distance from the optimum against seconds, and against passes."""
    drawn = list(curves(problem, results))
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.6), sharey=True, layout="constrained")
    for position, (name, ours, points) in enumerate(drawn):
        shown = [(seconds, passes, max(gap, FLOOR)) for seconds, passes, gap in points if gap < 10.0]
        look = style(position, ours, len(shown))
        left.plot([p[0] for p in shown], [p[2] for p in shown], label=name, **look)
        counted = [(passes, gap) for _, passes, gap in shown if passes]
        right.plot([p[0] for p in counted], [p[1] for p in counted], **look)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.grid(True, which="major", color="0.9", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        for target in targets(results):
            axes.axhline(target, color="0.4", linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    low = min((max(gap, FLOOR) for _, _, points in drawn for *_, gap in points), default=FLOOR)
    left.set_ylim(max(low / 2, FLOOR / 2), 3.0)
    for target in targets(results):
        left.annotate(
            f"target {target:g}", (0.01, target), xycoords=("axes fraction", "data"), fontsize=8, va="bottom"
        )
    left.set_ylabel("objective above the optimum, relative")
    left.set_xlabel("seconds, conversions and certificates included")
    right.set_xlabel("passes over the rows, as each library counts them")
    left.set_title(f"{problem['set']}, {problem['loss']} loss, C = {problem['C']:g}", loc="left")
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def overview(results: Results, path: Path) -> None:
    """One dot a cell: how many times faster than the best peer; filled for the half that is reported."""
    names = autos(results)
    rows = [(p, target) for p in results["problems"] for target in targets(results) if p["cells"]]
    if not names or not rows:
        return
    figure, axes = plt.subplots(figsize=(9, 1.6 + 0.21 * len(rows)), layout="constrained")
    for position, name in enumerate(names):
        for height, (problem, target) in enumerate(reversed(rows)):
            ratio = advantage(results, cells_at(problem, target), name)
            if ratio is None:
                continue
            marker = MARKERS[position] if 0.0 < ratio < math.inf else "<" if ratio == 0.0 else ">"
            ratio = min(max(ratio, EDGES[0]), EDGES[1])
            reported = results["sets"][problem["set"]]["half"] == "report"
            colour = COLOURS[position]
            face = colour if reported else "white"
            axes.plot(
                ratio,
                height + 0.16 * (-1) ** position,
                marker,
                color=colour,
                markerfacecolor=face,
                markersize=6,
            )
        axes.plot([], [], MARKERS[position], color=COLOURS[position], label=name)
    axes.axvline(1.0, color="0.3", linewidth=1.2)
    axes.set_xscale("log")
    axes.set_xlim(EDGES[0] / 1.15, EDGES[1] * 1.15)
    ticks = [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16]
    axes.set_xticks(ticks, [f"{tick:g}x" if tick >= 1 else f"1/{1 / tick:g}" for tick in ticks])
    axes.minorticks_off()
    labels = [f"{p['set']}, {p['loss']}, C={p['C']:g}, {target:g}" for p, target in reversed(rows)]
    axes.set_yticks(range(len(rows)), labels, fontsize=8)
    axes.set_ylim(-1, len(rows))
    axes.grid(True, axis="both", color="0.92", linewidth=0.8)
    axes.set_xlabel("times faster than the best peer with no more threads, certificate included")
    note = "filled: sets reported on; open: tuned on; at the edge: only one side got there"
    axes.set_title(note, loc="left", fontsize=10)
    figure.legend(loc="outside upper right", ncols=len(names), frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    """Draw everything."""
    results = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    for problem in results["problems"]:
        if problem["optimum"] is not None:
            figure(problem, results, folder / f"{problem['set']}-{problem['loss']}-C{problem['C']:g}.png")
    overview(results, folder / "overview.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
