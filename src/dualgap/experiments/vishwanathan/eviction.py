"""Does active eviction work? Dual cached loops with uninformative rows evicted first, and at random."""

from __future__ import annotations

from ..lab import Lab
from ..page import shown
from ..report import Cell, Claim, Panel, Part, Report, Table, mostly, sooner, tally, verdict_on
from . import common

SIZES = "The sets of the lecture and those generated in their place"
THRESHOLD = "threshold"  # as published
RULES = {THRESHOLD: "active, as published", "score": "active, by slack (ours)", "random": "at random"}
EPOCHS = 120.0
REMARKS = (
    "The lecture has 5 to 63 gigabytes; these rows are generated, and from some hundreds to a thousand times "
    "smaller.",
    "Reading and training take turns here (lockstep), so that passes are the same each time and the rule of "
    "eviction is all that differs. Both at once, as in the lecture: vishwanathan-dual-loops.",
    "A certificate is made as rows are streamed: the first is there after almost two passes, where curves "
    "begin, and the next ones a pass later each.",
)


def run_of(lab: Lab, place: common.Place, rule: str) -> common.Run:
    """Cached loops in lockstep, under a rule of eviction."""
    return common.run(lab, place, "cached-loops", EPOCHS, eviction=rule, lockstep=True)


def run(lab: Lab) -> Report:
    """The three rules, several shares of the rows in memory."""
    panels: dict[float, list[Panel]] = {}
    table: list[list[Cell]] = []
    ahead: dict[str, list[Part]] = {THRESHOLD: [], "score": []}
    for place in common.places(lab):
        runs = {rule: run_of(lab, place, rule) for rule in RULES}
        reached = {rule: one.reaches(common.ACCURACY) for rule, one in runs.items()}
        table.append([place.rows.name, place.share, *map(common.counted, reached.values())])
        for rule, found in ahead.items():
            found.append(sooner(reached[rule], reached["random"]))
        panels.setdefault(place.share, []).append(common.panel(place, runs, RULES, "passes"))
    header = ("data", "share in memory", *RULES.values())
    sizes = [common.sizes(shape, common.rows_of(lab, shape)) for shape in common.shapes(lab)]
    return Report(
        [_claim(rule, found, table) for rule, found in ahead.items()],
        (
            Table(f"Passes over the disk to {common.ACCURACY:.0%}", header, table),
            Table(SIZES, common.SIZES, sizes),
        ),
        common.figures("vishwanathan-eviction", "Dual cached loops under three rules of eviction", panels),
        REMARKS,
        lab.data,
    )


def _shares(ahead: list[Part], table: list[list[Cell]]) -> dict[Cell, list[Part]]:
    """The sets at each share of the rows in memory."""
    found: dict[Cell, list[Part]] = {}
    for part, row in zip(ahead, table, strict=True):
        found.setdefault(row[1], []).append(part)
    return found


def _by_share(ahead: list[Part], table: list[list[Cell]]) -> str:
    return "; ".join(
        f"{share:.0%} in memory: {tally(parts)}" for share, parts in _shares(ahead, table).items()
    )


def _claim(rule: str, ahead: list[Part], table: list[list[Cell]]) -> Claim:
    column = 2 + list(RULES).index(rule)
    cells = "; ".join(
        f"{row[0]}, {row[1]:.0%} in memory: {shown(row[column])} against {shown(row[-1])}" for row in table
    )
    return verdict_on(
        f"active eviction needs fewer passes than random eviction: {RULES[rule].removeprefix('active, ')} "
        "(at each "
        "share of the rows in memory)",
        [mostly(parts) for parts in _shares(ahead, table).values()],
        f"{tally(ahead, common.CELLS)} ({_by_share(ahead, table)}); {cells}",
    )
