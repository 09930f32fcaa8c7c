"""The table of results, on the screen and in RELIABILITY.md."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from pathlib import Path

from .parts import PARTS
from .workers import Result

BEGIN, END = "<!-- written by python -m torture --write: begin -->", "<!-- end -->"
_HEAD = ("| part | tried | of | broken | seed | day | what was seen |", "|---|---:|---:|---:|---:|---|---|")


def rows(results: Sequence[Result], seed: int) -> dict[str, str]:
    """A line of Markdown for each part."""
    found, day = {}, time.strftime("%Y-%m-%d", time.gmtime())
    for result in results:
        part = PARTS[result.name]
        seen = ", ".join(f"{name} {count:,}" for name, count in result.counts.most_common())
        tried = f"{result.tried:,} | {part.tries:,} | {len(result.failures)}"
        found[part.title] = f"| {part.title} | {tried} | {seed} | {day} | {seen} |"
    return found


def table(results: Sequence[Result], seed: int) -> list[str]:
    """The results of a run, in lines of Markdown."""
    return [*_HEAD, *rows(results, seed).values()]


def write(page: Path, results: Sequence[Result], seed: int) -> None:
    """Put the results between the two marks of the page. Parts that were not tried keep theirs."""
    first, rest = page.read_text().split(BEGIN)
    before, last = rest.split(END)
    kept = {line.split("|")[1].strip(): line for line in before.splitlines() if line.startswith("| ")}
    kept |= rows(results, seed)
    lines = [kept[part.title] for part in PARTS.values() if part.title in kept]
    system = f"Python {platform.python_version()}, {platform.system()} on {platform.machine()}; "
    told = f'{system}"of" is how often `make torture` tries a part.'
    page.write_text("\n".join([f"{first}{BEGIN}", "", told, "", *_HEAD, *lines, "", f"{END}{last}"]))
