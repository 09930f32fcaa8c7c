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
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from .. import __version__
from ..runtime.writing import replacing
from . import EXPERIMENTS, PAPERS, Experiment
from .report import Cell, Claim, Report, Table
from .untested import untested

INTRODUCTION = (
    "Tables, figures and claims of five documents on linear SVMs, redone by `dualgap reproduce`, with their "
    "numbers beside ours; claims that were not tested are listed as such. The papers' seconds come from "
    "the machines of their time and do not compare with "
    "ours; epochs, passes over the data and ratios between solvers do. Our seconds are the least of two runs "
    "(one on large sets), times the share of the time in which the process ran, as the machine was busy; "
    "those from disk are by the clock. Claims marked (ours) are not the papers'."
)
RULE = (
    "One rule gives the verdicts. A claim is divided into comparisons; it holds where all of them were "
    "found, "
    "in part where some were. A comparison of two methods on one set is found where one is ahead by more "
    "than "
    "a tenth; a smaller difference is none. One said of data in general is found where it is on more than "
    "half of the sets at hand, and no difference is where neither side is ahead on so many; one said of "
    "named "
    'sets, or "always", has to be found on each of them. Where several seeds were run, ranges over seeds '
    "that "
    "overlap are no difference. A verdict found on a stand-in says nothing of the set that it stands for; "
    "a claim on "
    "one named set that is not at hand counts as not tested. The counts stand in the evidence. "
    "What a paper calls large, alike or about so many it rarely measures: such thresholds, and the rule "
    "itself, "
    "are ours, and were set with the figures known."
)
WORDS = {
    "certificate": "the objective at a point together with a lower bound of the optimum; their difference, "
    "the gap, says how far from the optimum the point is at most",
    "own point": "the vector that an algorithm itself would return at that time, and not the best one seen",
    "C-form": "the objective J = |w|^2 / 2 + C times the sum of losses; P is the same in mean form, "
    "lam |w|^2 / 2 plus the mean loss, where lam = 1/(C n)",
    "excess": "how far an objective is above the optimum, divided by it: P / P* - 1",
    "epochs, passes": "visits of rows divided by their number n; rows read from disk divided by n. A "
    "certificate from disk is complete when a block of rows was read, which may be within a pass (2.952)",
    "eviction": "which rows leave the memory to make room: as published, those whose gradient is beyond a "
    "threshold; by slack (ours), those that are farthest from mattering; or at random",
    "stand-in": "rows that take the place of a set that is not at hand, under a name of their own; "
    "(generated) "
    "and names that end in -like say that they are drawn at random",
    "SGD-r, SGD-s, SGD-m": "rows drawn at random; in complete epochs; in complete epochs with repeated "
    "updates of "
    "a row",
    "DCD, MPU, OCAS, SVMperf": "the linear SVM solvers of the first paper",
    "BEP": "break-even point: precision and recall at the threshold at which they are equal",
    "kmer:6, poly2": "features made while rows are read: all subsequences of 6 letters; all products of two "
    "columns",
    "moving centre": "a bias that is not regularised, found by a penalty on its distance from a centre that "
    "moves to the bias found after every epoch; so coordinates can still be moved one at a time",
}
MARKS = {
    "holds": "✔",
    "holds in part": "◐",
    "does not hold here": "✘",
    "no difference here": "=",
    "not settled here": "?",
    "not tested here": "–",
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
    yield from ("# The papers, redone", "", INTRODUCTION, "", RULE, "", *_missing(reports))
    yield from (f"- *{word}*: {meaning}." for word, meaning in WORDS.items())
    yield from ("", "## Claims", "")
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
    for cells in _claims(reports):
        yield _line(cells)
    yield ""


def _claims(reports: dict[str, Saved]) -> Iterator[list[str]]:
    """Paper by paper, what was tested and then what was not."""
    for paper in PAPERS:
        mine = {name: saved for name, saved in reports.items() if EXPERIMENTS[name].paper == paper}
        for name, saved in mine.items():
            yield from (_cells(name, claim) for claim in saved.report.claims)
        if mine:
            yield from (_cells(paper, claim) for claim in untested(paper))


def _line(cells: Iterable[str]) -> str:
    """A row of a table in Markdown."""
    return "| " + " | ".join(_plain(cell) for cell in cells) + " |"


def _plain(text: str) -> str:
    """Text in which bars and asterisks are themselves and no marks."""
    return text.replace("|", "\\|").replace("*", "\\*")


def _report_markdown(report: Report) -> Iterator[str]:
    for table in report.tables:
        yield from (f"**{_plain(table.title)}**", "")
        yield _line(table.header)
        yield "|---" * len(table.header) + "|"
        for row in table.rows:
            yield _line(shown(cell) for cell in row)
        yield from ("", *((_plain(table.note), "") if table.note else ()))
    for figure in report.figures:
        yield from (f"![{figure.caption}](figures/{figure.name}.png)", "", f"*{_plain(figure.caption)}*", "")
    for remark in report.remarks:
        yield f"- {_plain(remark)}"
    for note in report.data:
        yield f"- data: {_plain(note)}"
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
    yield f"<style>{STYLE}</style><h1>The papers, redone</h1>"
    yield f"<p>{_prose(INTRODUCTION)}</p><p>{_prose(RULE)}</p>"
    yield from (f"<p>{_prose(line)}</p>" for line in _missing(reports) if line)
    words = "".join(f"<li><i>{_prose(word)}</i>: {_prose(meaning)}.</li>" for word, meaning in WORDS.items())
    yield f"<ul>{words}</ul><h2>Claims</h2>"
    yield _table_html(Table("", ("", "claim", "where", "here", "evidence"), list(_claims(reports))))
    for paper, title in PAPERS.items():
        mine = {name: saved for name, saved in reports.items() if EXPERIMENTS[name].paper == paper}
        if mine:
            yield f"<h2>{_prose(title)}</h2>"
        for name, saved in mine.items():
            yield f"<h3 id='{name}'>{_prose(EXPERIMENTS[name].title)}</h3>"
            yield f"<p class='made'><code>dualgap reproduce {name}</code> ({_prose(saved.made)})</p>"
            yield from _report_html(saved.report)


def _cells(name: str, claim: Claim) -> list[str]:
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
