"""Does active eviction work? Dual cached loops with uninformative rows evicted first, and at random."""

from __future__ import annotations

import math
from pathlib import Path

from ..lab import Lab
from ..page import shown
from ..report import Cell, Figure, Panel, Part, Report, Table, mostly, sooner, tally, verdict_on
from ..sets import Rows
from . import common

ACCURACY = 1e-2
SHARE = 0.1
SIZES = "The sets of the lecture and those generated in their place"
THRESHOLD = "threshold"  # as published
RULES = {THRESHOLD: "active, as published", "score": "active, by slack (ours)", "random": "at random"}
REMARKS = (
    "The lecture has 5 to 63 gigabytes; these rows are generated, and from some hundreds to a thousand times "
    "smaller.",
    "Reading and training take turns here (lockstep), so that passes are the same each time.",
    "A certificate is made as rows are streamed: the first is there after almost two passes, where curves "
    "begin, and the next ones a pass later each.",
)


def run_of(lab: Lab, rows: Rows, path: Path, optimum: float, rule: str) -> common.Run:
    """Cached loops in lockstep with a tenth of the rows in memory, under a rule of eviction."""
    return common.run(
        lab, rows, path, "cached-loops", optimum, 120.0, cache=SHARE, eviction=rule, lockstep=True
    )


def run(lab: Lab) -> Report:
    """The three rules with a tenth of the rows in memory."""
    panels = []
    sizes: list[list[Cell]] = []
    ahead: dict[str, list[Part]] = {THRESHOLD: [], "score": []}
    table: list[list[Cell]] = []
    for shape in common.shapes(lab):
        rows = common.rows_of(lab, shape)
        optimum = lab.optimum(rows, C=common.C)
        with common.stored(rows) as path:
            runs = {rule: run_of(lab, rows, path, optimum, rule) for rule in RULES}
        reached = {rule: one.reaches(ACCURACY) for rule, one in runs.items()}
        sizes.append(common.sizes(shape, rows))
        table.append([rows.name, *("not reached" if math.isinf(t) else t for t in reached.values())])
        for rule, found in ahead.items():
            found.append(sooner(reached[rule], reached["random"]))
        panels.append(
            Panel(
                rows.name,
                "passes over the disk",
                "J / J* - 1",
                [one.curve(RULES[rule]) for rule, one in runs.items()],
                yscale="log",
            )
        )
    claims = [
        verdict_on(
            f"active eviction needs fewer passes than random eviction: "
            f"{RULES[rule].removeprefix('active, ')}",
            mostly(ahead[rule]),
            f"{tally(ahead[rule])} sets; "
            + "; ".join(f"{row[0]}: {shown(row[column])} against {shown(row[3])}" for row in table),
        )
        for column, rule in enumerate(ahead, start=1)
    ]
    header = ("data", *RULES.values())
    title = f"Passes over the disk to {ACCURACY:.0%}, a tenth of the rows in memory"
    return Report(
        claims,
        (Table(title, header, table), Table(SIZES, common.SIZES, sizes)),
        (Figure("vishwanathan-eviction", "Dual cached loops under three rules of eviction", panels),),
        REMARKS,
        lab.data,
    )
