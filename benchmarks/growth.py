"""``python -m benchmarks.growth``: time, passes and the share of certificates as rows become more, at one lam
and gap.

Writes ``GROWTH.md`` and ``growth.png``. The rows are the first so many of one generated text-like set, so
that every size is a sample of the same source.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

import dualgap

from . import HERE, generated, machine
from .appendix import taken_on
from .cells import markdown

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
LAM, GAP = 1e-5, 1e-2
COLUMNS, WORDS = 20_000, 25
REPEATS = 3


def measure(X: Any, y: Any, rows: int, threads: int) -> dict[str, float]:
    """The fastest of some fits to the first rows."""
    best: dict[str, float] = {"seconds": math.inf}
    part = X[:rows]
    for _ in range(REPEATS):
        began = time.perf_counter()
        outcome = dualgap.fit(part, y[:rows], lam=LAM, tol=GAP, threads=threads)
        seconds = time.perf_counter() - began
        last = outcome.trace[-1]
        if not outcome.converged:
            raise RuntimeError(f"{rows} rows: {outcome.reason.message}")
        if seconds < best["seconds"]:
            best = {
                "rows": rows,
                "entries": part.nnz,
                "seconds": seconds,
                "passes": last.entries / part.nnz,
                "certificates": len(outcome.trace),
                "share": last.certify_seconds / seconds,
            }
    return best


def table(found: list[dict[str, float]]) -> str:
    """One line a size."""
    heads = [
        "rows",
        "entries",
        "seconds",
        "seconds a million rows",
        "passes",
        "certificates",
        "their share of the time",
    ]
    lines = [
        [
            f"{line['rows']:,.0f}",
            f"{line['entries']:,.0f}",
            f"{line['seconds']:.3g}",
            f"{1e6 * line['seconds'] / line['rows']:.3g}",
            f"{line['passes']:.1f}",
            f"{line['certificates']:.0f}",
            f"{line['share']:.2f}",
        ]
        for line in found
    ]
    return markdown(heads, lines)


def figure(found: dict[int, list[dict[str, float]]], path: Path) -> None:
    """Seconds against rows, both logarithmic, with the line of equal time a row."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(6, 4.2), layout="constrained")
    axes = picture.subplots()
    for threads, lines in found.items():
        rows, seconds = [line["rows"] for line in lines], [line["seconds"] for line in lines]
        axes.loglog(rows, seconds, "o-", label=f"{threads} thread{'s' * (threads > 1)}")
    first = next(iter(found.values()))[0]
    ends = [first["rows"], max(line["rows"] for line in next(iter(found.values())))]
    axes.loglog(ends, [first["seconds"] * n / first["rows"] for n in ends], "k:", label="the same time a row")
    axes.set_xlabel("rows")
    axes.set_ylabel(f"seconds to a proven gap of {GAP:g}")
    axes.grid(visible=True, which="both", alpha=0.2)
    axes.legend(frameon=False)
    picture.savefig(path, dpi=130)


def main() -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument(
        "--most", type=int, default=SIZES[-1], help="rows of the largest set (default 3,000,000)"
    )
    parser.add_argument("--out", type=Path, default=HERE, help="folder for the page and the picture")
    options = parser.parse_args()
    sizes = [size for size in SIZES if size <= options.most] or [options.most]
    before = machine.describe()
    X, y = generated.text(sizes[-1], COLUMNS, WORDS)
    measure(X, y, min(1000, sizes[0]), 1)  # compiles
    found: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for size in sizes:
        for threads, lines in found.items():
            lines.append(measure(X, y, size, threads))
            print(f"{size:,} rows, {threads} thread(s): {lines[-1]['seconds']:.3g} s", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    figure(found, options.out / "growth.png")
    before["load_at_end"] = machine.describe()["load"]
    page = [
        "# Time against rows",
        taken_on(before),
        f"`auto` on the hinge loss, lam = {LAM:g}, to a proven relative gap of {GAP:g}: the first so many "
        "rows of one "
        f"generated text-like set ({COLUMNS:,} columns, {WORDS} words a row). Seconds from arrays to the "
        "model, the "
        f"fastest of {REPEATS}; passes are entries read or written over stored ones, certificates apart.",
        "![Seconds against rows](growth.png)",
        *(f"## {threads} thread{'s' * (threads > 1)}\n\n{table(lines)}" for threads, lines in found.items()),
    ]
    (options.out / "GROWTH.md").write_text("\n\n".join(page) + "\n")
    print(options.out / "GROWTH.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
