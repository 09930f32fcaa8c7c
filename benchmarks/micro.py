"""``python -m benchmarks.micro``: the cost of the parts, where ``python -m benchmarks`` times the whole.

Writes ``micro.json`` and ``MICRO.md``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from . import HERE, costs, machine, memory, startup
from .appendix import taken_on
from .cells import markdown
from .run import finite

Row = dict[str, Any]


def imports() -> list[Row]:
    """Seconds of a process that only imports."""
    return [{"process": name, "seconds": seconds} for name, seconds in startup.imports().items()]


def first_fits() -> list[Row]:
    """Seconds in a new process on a small set; "filled" is the process after the one that filled the kernel
    cache.
    """
    return [{"kernel cache": name, **times} for name, times in startup.first_fits().items()]


def memories(tier: str) -> list[Row]:
    """Growth of the peak memory of a process during a fit, over the size of the arrays of X; the vectors of y
    count.
    """
    found = []
    for kind in memory.KINDS:
        grown = memory.growth(kind, costs.SIZES[tier][-1 if tier == "quick" else 2])
        share = grown["grown"] / grown["bytes"]
        found.append(
            {"data": kind, "MB of X": grown["bytes"] / 1e6, "MB grown": grown["grown"] / 1e6, "share": share}
        )
    return found


def measure(tier: str, solvers: Sequence[str], chosen: Sequence[str]) -> dict[str, Any]:
    """The chosen parts, as rows of plain numbers, each with a sentence on what it says."""
    parts: dict[str, tuple[Callable[..., Iterable[Row]], tuple[Any, ...]]] = {
        "imports": (imports, ()),
        "first_fits": (first_fits, ()),
        "steps": (costs.steps, (tier, solvers)),
        "rows": (costs.rows, (tier, solvers)),
        "columns": (costs.columns, (tier, solvers)),
        "threads": (costs.threads, (tier, solvers)),
        "memory": (memories, (tier,)),
        "certificates": (costs.certificates, (tier, solvers)),
    }
    for name in chosen:
        if name not in parts:
            raise ValueError(f"unknown part {name!r}; there are: {', '.join(parts)}")
    found: dict[str, Any] = {}
    for name in chosen or parts:
        part, arguments = parts[name]
        print(name, file=sys.stderr, flush=True)
        found[name] = {"meaning": part.__doc__, "rows": list(part(*arguments))}
    return found


def report(results: dict[str, Any]) -> str:
    """One table a part."""
    sections = ["# Costs of the parts", taken_on(results["machine"])]
    for name, part in results["parts"].items():
        header = list(part["rows"][0])
        rows = [[_shown(row[key]) for key in header] for row in part["rows"]]
        sections.append(
            f"## {name.replace('_', ' ').capitalize()}\n\n{part['meaning']}\n\n{markdown(header, rows)}"
        )
    return "\n\n".join(sections) + "\n"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value or "")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and write both files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.micro", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", dest="tier", action="store_const", const="quick", help="tiny data: does it work?"
    )
    size.add_argument("--full", dest="tier", action="store_const", const="full", help="up to 3 million rows")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=[], help="parts by name")
    usual = ["dcd", "sdca", "mpu"]  # scaling is measured to a fixed accuracy, which takes the others minutes
    parser.add_argument("--solvers", type=lambda text: text.split(","), default=usual, help="solvers by name")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder for the results")
    given = parser.parse_args(argv)
    parts = measure(given.tier or "default", given.solvers, given.parts)
    results = finite({"machine": machine.describe(), "parts": parts})
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "micro.json").write_text(json.dumps(results, indent=1, allow_nan=False))
    (given.out / "MICRO.md").write_text(report(results))
    print(given.out / "MICRO.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
