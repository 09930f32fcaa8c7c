"""The page of all experiments, as Markdown and as HTML, made of the reports that a folder holds.

folder/results/NAME.json    a report, with the date and the machine it was made on
folder/figures/NAME.png
folder/RESULTS.md, folder/index.html
"""

from __future__ import annotations

import html
import json
import os
import platform
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from .. import __version__
from ..runtime.writing import replacing
from . import EXPERIMENTS, PAPERS, Experiment
from .report import Cell, Claim, Report, Table

INTRODUCTION = (
    "Every table and figure of five documents on linear SVMs, redone by `dualgap reproduce`, with their "
    "numbers beside ours. The papers' seconds come from the machines of their time and do not compare with "
    "ours; epochs, passes over the data and ratios between solvers do. Our seconds are the least of two runs "
    "(one on large sets), times the share of the time in which the process ran, as the machine was busy; "
    "those from disk are by the clock. A difference of less than a tenth between two methods is called none. "
    "Claims marked (ours) are not the papers'."
)
MARKS = {
    "holds": "✔",
    "holds in part": "◐",
    "does not hold here": "✘",
    "no difference here": "=",
    "not settled here": "?",
}


class Saved(NamedTuple):
    """A report and when it was made."""

    report: Report
    made: str  # date, machine and version


def save(folder: Path, experiment: Experiment, report: Report) -> Path:
    """Put a report into the folder of reports."""
    results = folder / "results"
    results.mkdir(parents=True, exist_ok=True)
    path = results / f"{experiment.name}.json"
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    made = f"{when}, dualgap {__version__}, {os.cpu_count()} cores ({platform.machine()})"
    with replacing(path) as stream:
        stream.write(json.dumps({"made": made, **report.thinned().as_dict()}).encode())
    return path


def load(folder: Path) -> dict[str, Saved]:
    """The reports of a folder, in the order of the papers."""
    found = {}
    for name in EXPERIMENTS:
        path = folder / "results" / f"{name}.json"
        if path.is_file():
            saved: dict[str, Any] = json.loads(path.read_text())
            found[name] = Saved(Report.of(saved), saved["made"])
    return found


def shown(cell: Cell) -> str:
    """A cell as text: four digits of a number are enough to compare."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.4g}" if abs(cell) < 1e4 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def markdown(folder: Path) -> str:
    """The page as Markdown."""
    return "\n".join(_markdown(load(folder))) + "\n"


def _markdown(reports: dict[str, Saved]) -> Iterator[str]:
    yield from ("# The papers, redone", "", INTRODUCTION, "", *_missing(reports), "## Claims", "")
    yield from _claims_markdown(reports)
    for paper, title in PAPERS.items():
        mine = {name: saved for name, saved in reports.items() if EXPERIMENTS[name].paper == paper}
        if mine:
            yield from (f"## {title}", "")
        for name, saved in mine.items():
            yield from (
                f"### {EXPERIMENTS[name].title}",
                "",
                f"`dualgap reproduce {name}` ({saved.made})",
                "",
            )
            yield from _report_markdown(saved.report)


def _missing(reports: dict[str, Saved]) -> list[str]:
    """What this page does not have yet."""
    names = [name for name in EXPERIMENTS if name not in reports]
    return [f"Not run for this page: {', '.join(names)}.", ""] if names else []


def _claims_markdown(reports: dict[str, Saved]) -> Iterator[str]:
    yield from ("| | claim | where | here | evidence |", "|---|---|---|---|---|")
    for name, saved in reports.items():
        for claim in saved.report.claims:
            cells = (MARKS[claim.verdict], claim.text, name, claim.verdict, claim.evidence)
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def _report_markdown(report: Report) -> Iterator[str]:
    for table in report.tables:
        yield from (f"**{table.title}**", "")
        yield "| " + " | ".join(table.header) + " |"
        yield "|---" * len(table.header) + "|"
        for row in table.rows:
            yield "| " + " | ".join(shown(cell) for cell in row) + " |"
        yield from ("", *((table.note, "") if table.note else ()))
    for figure in report.figures:
        yield from (f"![{figure.caption}](figures/{figure.name}.png)", "", f"*{figure.caption}*", "")
    for remark in report.remarks:
        yield f"- {remark}"
    for note in report.data:
        yield f"- data: {note}"
    yield ""


STYLE = """
:root { color-scheme: light dark; --line: #8886; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .25rem .6rem; text-align: left; vertical-align: top; }
th { position: sticky; top: 0; }
img { max-width: 100%; background: white; }
figure { margin: 1rem 0; }
figcaption, .made { opacity: .75; font-size: .9rem; }
"""


def _prose(text: str) -> str:
    """Text as HTML: what stands between backticks is code, the name of an experiment leads to it."""
    text = re.sub("`([^`]*)`", r"<code>\1</code>", html.escape(text))
    return f"<a href='#{text}'>{text}</a>" if text in EXPERIMENTS else text


def page(folder: Path) -> str:
    """The page as HTML, complete but for its pictures."""
    return "\n".join(_html(load(folder)))


def _html(reports: dict[str, Saved]) -> Iterator[str]:
    yield "<!doctype html><html lang='en'><meta charset='utf-8'><title>The papers, redone</title>"
    yield "<meta name='viewport' content='width=device-width, initial-scale=1'>"
    yield f"<style>{STYLE}</style><h1>The papers, redone</h1><p>{_prose(INTRODUCTION)}</p>"
    yield from (f"<p>{_prose(line)}</p>" for line in _missing(reports) if line)
    yield "<h2>Claims</h2>"
    claims = [(name, claim) for name, saved in reports.items() for claim in saved.report.claims]
    yield _table_html(
        Table("", ("", "claim", "where", "here", "evidence"), [_cells(*item) for item in claims])
    )
    for paper, title in PAPERS.items():
        mine = {name: saved for name, saved in reports.items() if EXPERIMENTS[name].paper == paper}
        if mine:
            yield f"<h2>{_prose(title)}</h2>"
        for name, saved in mine.items():
            yield f"<h3 id='{name}'>{_prose(EXPERIMENTS[name].title)}</h3>"
            yield f"<p class='made'><code>dualgap reproduce {name}</code> ({_prose(saved.made)})</p>"
            yield from _report_html(saved.report)


def _cells(name: str, claim: Claim) -> list[Cell]:
    return [MARKS[claim.verdict], claim.text, name, claim.verdict, claim.evidence]


def _table_html(table: Table) -> str:
    head = "".join(f"<th>{_prose(cell)}</th>" for cell in table.header)
    body = "".join(
        "<tr>" + "".join(f"<td>{_prose(shown(cell))}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _report_html(report: Report) -> Iterator[str]:
    for table in report.tables:
        yield f"<p><b>{_prose(table.title)}</b></p>{_table_html(table)}<p>{_prose(table.note)}</p>"
    for figure in report.figures:
        alt = html.escape(figure.caption)
        yield f"<figure><img src='figures/{figure.name}.png' alt='{alt}'>"
        yield f"<figcaption>{_prose(figure.caption)}</figcaption></figure>"
    notes = [*report.remarks, *(f"data: {note}" for note in report.data)]
    yield "<ul>" + "".join(f"<li>{_prose(note)}</li>" for note in notes) + "</ul>"


def write(folder: Path) -> list[Path]:
    """Both pages, from all reports in the folder."""
    written = []
    for name, text in (("RESULTS.md", markdown(folder)), ("index.html", page(folder))):
        with replacing(folder / name) as stream:
            stream.write(text.encode())
        written.append(folder / name)
    return written
