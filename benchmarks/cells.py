"""Questions that tables and plots ask of the results of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

Results = dict[str, Any]
Cell = dict[str, Any]


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column is text, the others numbers."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def short(seconds: float) -> str:
    """Two significant digits, never in exponents."""
    if seconds >= 9.95:
        return f"{seconds:.0f}"
    digits = max(0, 1 - math.floor(math.log10(max(seconds, 1e-6))))
    return f"{seconds:.{digits}f}"


def targets(results: Results) -> list[float]:
    """From loose to tight."""
    return sorted(results["options"]["targets"], reverse=True)


def losses(results: Results) -> list[str]:
    """In the order in which they were run."""
    return list(dict.fromkeys(problem["loss"] for problem in results["problems"]))


def autos(results: Results) -> list[str]:
    """``auto`` at each number of threads."""
    return [
        name for name, item in results["solvers"].items() if item["ours"] and name.split("@")[0] == "auto"
    ]


def cells_at(problem: Results, target: float) -> dict[str, Cell]:
    """The cells of a problem at a target, by solver."""
    return {cell["solver"]: cell for cell in problem["cells"] if cell["target"] == target}


def rivals(results: Results, cells: dict[str, Cell], threads: int) -> list[float]:
    """Seconds of the peers that reached the target with no more than so many threads."""
    return [
        cell["seconds"]
        for name, cell in cells.items()
        if cell["status"] == "ok"
        and not results["solvers"][name]["ours"]
        and results["solvers"][name]["threads"] <= threads
    ]


def advantage(results: Results, cells: dict[str, Cell], name: str) -> float | None:
    """Seconds of the best peer over ours: above 1 we win.

    Infinite where no peer reached the target, 0 where a peer did and we did not, None where nobody did.
    """
    others = min(rivals(results, cells, results["solvers"][name]["threads"]), default=math.inf)
    cell = cells.get(name)
    mine = cell["seconds"] if cell is not None and cell["status"] == "ok" else math.inf
    if math.isinf(mine):
        return None if math.isinf(others) else 0.0
    return float(others / mine)


def unsure(problem: Results, target: float) -> bool:
    """Whether the optimum is known too poorly to judge this target by."""
    return problem["optimum"] is None or problem["optimum"] > (1.0 + 0.1 * target) * problem["dual"]
