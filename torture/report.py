"""The table of results, on the screen and in RELIABILITY.md."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from pathlib import Path

from .parts import PARTS
from .workers import Result

BEGIN, END = "<!-- written by python -m torture --write: begin -->", "<!-- end -->"


def table(results: Sequence[Result]) -> list[str]:
    """Lines of Markdown."""
    lines = ["| part | tried | broken | what was seen |", "|---|---:|---:|---|"]
    for result in results:
        seen = ", ".join(f"{name} {count:,}" for name, count in result.counts.most_common())
        title = PARTS[result.name].title
        lines.append(f"| {title} | {result.tried:,} | {len(result.failures)} | {seen} |")
    return lines


def write(page: Path, results: Sequence[Result], seed: int, seconds: float) -> None:
    """Put the results between the two marks of the page, and what was run."""
    text = page.read_text()
    first, rest = text.split(BEGIN)
    _, last = rest.split(END)
    day = time.strftime("%Y-%m-%d", time.gmtime())
    full = all(result.tried >= PARTS[result.name].count for result in results) and len(results) == len(PARTS)
    how = "in full" if full else "in part: fewer tries than `make torture` makes"
    head = (
        f"Run {how}, with seed {seed}, on {day}, in {seconds / 60:.0f} minutes; Python "
        f"{platform.python_version()}, {platform.system()} on {platform.machine()}."
    )
    page.write_text("\n".join([f"{first}{BEGIN}", "", head, "", *table(results), "", f"{END}{last}"]))
