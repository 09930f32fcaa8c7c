"""Who is asked to solve which problem: minutes are spent where they tell something."""

from __future__ import annotations

from typing import Any

from .options import Options
from .roster import Contestant
from .sets import Info

What = tuple[str, str, float]  # set, loss, C


def taking_part(
    options: Options, present: list[Contestant], results: dict[str, Any], info: Info, what: What
) -> tuple[list[Contestant], dict[str, str]]:
    """Who is asked, and who is not, with the reason. By default solvers other than ``auto`` run at C = 1
    alone.
    """
    asked, skipped = [], {}
    for item in present:
        elsewhere = item.ours and item.solver != "auto" and what[2] != 1.0
        if not item.takes(what[1]) or (elsewhere and not options.everything):
            continue
        reason = hopeless(results, item.name, what)
        if not options.everything:
            reason = reason or item.too_large(info.n, info.entries)
        if reason:
            skipped[item.name] = reason
        else:
            asked.append(item)
    return asked, skipped


def hopeless(results: dict[str, Any], name: str, what: What) -> str:
    """A contestant that met no target in time at a smaller C, which is easier, is not asked at a larger
    one.
    """
    for entry in results["problems"]:
        if (entry["set"], entry["loss"]) == what[:2] and entry["C"] < what[2]:
            statuses = {cell["status"] for cell in entry["cells"] if cell["solver"] == name}
            if statuses and statuses <= {"timeout", "skipped"}:
                return f"no target was met in time at C={entry['C']:g}"
    return ""
