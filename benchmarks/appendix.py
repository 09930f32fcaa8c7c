"""The lesser parts of RESULTS.md: machine, spreads, training alone, memory, cold starts, optima, sets,
absentees.
"""

from __future__ import annotations

import statistics
from typing import Any

from .cells import Results, cells_at, markdown, short, targets


def taken_on(found: dict[str, Any]) -> str:
    """Where and with what figures were taken."""
    software = ", ".join(f"{name} {version}" for name, version in found["libraries"].items())
    load = f"{found['load']:.2f}" + (
        f", at the end {found['load_at_end']:.2f}" if "load_at_end" in found else ""
    )
    return (
        f"Taken on {found['date']} on {found['cpu']}, {found['cores']} cores, {found['memory_gb']} GB, "
        f"{found['system']}, Python {found['python']}, {software}, commit {found['commit']}; load average "
        "at the start "
        f"{load}."
    )


def machine(results: Results) -> str:
    """The same with the rules of the run."""
    options = results["options"]
    return (
        f"{taken_on(results['machine'])} {options['repeats']} repeats in turns, fewer once those of a "
        "setting have "
        f"taken {options['repeat_seconds']:g} s; {options['time_limit']:g} s a run at most"
        + (
            f", or {options['give_up']:g} times the fastest (a second at least)."
            if options["give_up"]
            else "."
        )
        + ("" if results["finished"] else "\n\n**The run is not finished: these are partial results.**")
    )


def parts(results: Results) -> list[str]:
    """All of them, in order."""
    return [
        _spread(results),
        _alone(results),
        _memory(results),
        _cold(results),
        _optima(results),
        _sets(results),
        _absent(results),
        _broken(results),
    ]


def _ok(results: Results) -> list[dict[str, Any]]:
    return [cell for problem in results["problems"] for cell in problem["cells"] if cell["status"] == "ok"]


def _spread(results: Results) -> str:
    """How far the repeats of a setting lie apart, and what certificates cost."""
    rows = []
    for name, item in results["solvers"].items():
        mine = [cell for cell in _ok(results) if cell["solver"] == name]
        apart = [cell["slowest"] / cell["seconds"] for cell in mine if cell["count"] > 1]
        shares = [cell["certify_share"] for cell in mine if item["ours"]]
        if mine:
            rows.append(
                [
                    name,
                    str(len(mine)),
                    f"{statistics.median(apart):.2f}" if apart else "–",
                    f"{max(apart):.2f}" if apart else "–",
                    f"{statistics.median(shares):.0%}" if shares else "",
                    f"{max(shares):.0%}" if shares else "",
                ]
            )
    header = ["", "cells", "slowest / fastest repeat", "worst", "certifying, share of time", "worst"]
    return "## Spread of repeats, share of certificates\n\n" + markdown(header, rows)


def _alone(results: Results) -> str:
    """Training alone, for the peers with a conversion of their own."""
    converting = sorted(
        {c["solver"] for c in _ok(results) if c["seconds"] - c["train_seconds"] > 0.02 * c["seconds"]}
    )
    converting = [name for name in converting if not results["solvers"][name]["ours"]]
    if not converting:
        return ""
    rows = []
    for problem in results["problems"]:
        for target in targets(results):
            cells = cells_at(problem, target)
            times = [
                short(cells[name]["train_seconds"]) if cells.get(name, {}).get("status") == "ok" else ""
                for name in converting
            ]
            if any(times):
                rows.append([f"{problem['set']}, {problem['loss']}, C={problem['C']:g}, {target:g}", *times])
    note = "Seconds without the conversion of the arrays into the library's own format."
    return f"## Training alone\n\n{note}\n\n" + markdown(["", *converting], rows)


def _memory(results: Results) -> str:
    """Growth of memory during a fit, over what the arrays take."""
    problems = [problem for problem in results["problems"] if problem.get("memory")]
    if not problems:
        return ""
    names = [name for name in results["solvers"] if any(name in problem["memory"] for problem in problems)]
    rows = []
    for problem in problems:
        size = results["sets"][problem["set"]]["bytes"]
        line = [
            f"{problem['memory'][name] / size:.2f}" if name in problem["memory"] else "" for name in names
        ]
        rows.append([f"{problem['set']}, {size / 1e6:.0f} MB", *line])
    note = (
        "Growth of the peak resident memory of a fresh process during a fit (hinge, C = 1, to the loosest "
        "target), "
        "divided by the size of the arrays of X."
    )
    return f"## Memory\n\n{note}\n\n" + markdown(["", *names], rows)


def _cold(results: Results) -> str:
    """First fits, which the tables above leave out."""
    found = results.get("first_fit")
    if not found:
        return ""
    rows = [
        [name, *(short(entry[part]) for part in ("import_seconds", "first_seconds", "second_seconds"))]
        for name, entry in found.items()
    ]
    note = "Seconds in a new process, on a small generated set; the kernel cache was an empty folder before."
    header = ["kernel cache", "import", "first fit", "second fit"]
    return f"## Cold start\n\n{note}\n\n" + markdown(header, rows)


def _optima(results: Results) -> str:
    """The reference values, so that anyone can check them."""
    rows = []
    for problem in results["problems"]:
        known = problem["reference"]
        if known is not None:
            gap = "unknown" if known["relative_gap"] is None else f"{known['relative_gap']:.1e}"
            values = [f"{known['dual']:.10g}", f"{known['primal']:.10g}", gap, short(known["seconds"])]
            rows.append([f"{problem['set']}, {problem['loss']}, C={problem['C']:g}", *values])
    note = "J = 1/2 |w|^2 + C sum of losses; the optimum lies between the dual and the primal value."
    return f"## Optima\n\n{note}\n\n" + markdown(["", "dual", "primal", "relative gap", "seconds"], rows)


def _sets(results: Results) -> str:
    rows = [
        [name, f"{s['n']:,}", f"{s['d']:,}", f"{s['entries']:,}", f"{s['layout']} {s['dtype']}", s["half"]]
        for name, s in results["sets"].items()
    ]
    note = "Choices that `auto` makes are tuned on the sets marked tune and reported on those marked report."
    return f"## Sets\n\n{note}\n\n" + markdown(["", "rows", "columns", "stored entries", "as", "half"], rows)


def _absent(results: Results) -> str:
    lines = [
        f"- {name}: {item['version']}" for name, item in results["solvers"].items() if not item["problem"]
    ]
    lines += [
        f"- {name}: left out, {item['problem']}"
        for name, item in results["solvers"].items()
        if item["problem"]
    ]
    lines += [f"- set {name}: left out, {reason}" for name, reason in results["missing_sets"].items()]
    return "## Who took part\n\n" + "\n".join(lines)


def _broken(results: Results) -> str:
    lines = [
        f"- {problem['set']}, {problem['loss']}, C={problem['C']:g}: {line}"
        for problem in results["problems"]
        for line in problem["broken"]
    ]
    return "## What went wrong\n\n" + "\n".join(lines) if lines else ""
