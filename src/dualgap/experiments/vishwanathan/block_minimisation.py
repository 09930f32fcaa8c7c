"""Dual cached loops and selective block minimisation against block minimisation, at several cache sizes."""

from __future__ import annotations

import math

from ..lab import Lab
from ..report import Cell, Claim, Figure, Panel, Part, Report, Table, sooner, verdict_on
from . import common

ACCURACY = 1e-2
SHARES = (0.05, 0.1, 0.25)
EPOCHS = 150.0
METHODS = {
    "cached-loops": ("dual cached loops", {"lockstep": True}),
    "selective-block": ("selective block minimisation", {}),
    "block": ("block minimisation", {}),
}


def run(lab: Lab) -> Report:
    """Three methods, several shares of the rows in memory."""
    table: list[list[Cell]] = []
    panels: dict[float, list[Panel]] = {}
    fewer: dict[str, list[Part]] = {solver: [] for solver in ("selective-block", "block")}
    quicker: dict[str, list[Part]] = {solver: [] for solver in fewer}
    for shape in common.shapes(lab):
        rows = common.rows_of(lab, shape)
        optimum = lab.optimum(rows, C=common.C)
        with common.stored(rows) as path:
            for share in SHARES[1:2] if lab.quick else SHARES:
                runs = {
                    solver: common.run(lab, rows, path, solver, optimum, EPOCHS, cache=share, **options)
                    for solver, (_, options) in METHODS.items()
                }
                passes = {solver: one.reaches(ACCURACY) for solver, one in runs.items()}
                seconds = {solver: one.reaches(ACCURACY, "seconds") for solver, one in runs.items()}
                for other in fewer:
                    fewer[other].append(sooner(passes["cached-loops"], passes[other]))
                    quicker[other].append(sooner(seconds["cached-loops"], seconds[other]))
                table.append([rows.name, share, *map(_shown, (*passes.values(), *seconds.values()))])
                panels.setdefault(share, []).append(_panel(rows.name, runs))
    labels = [label for label, _ in METHODS.values()]
    header = (
        "data",
        "share in memory",
        *(f"{label}: {what}" for what in ("passes", "s") for label in labels),
    )
    return Report(
        _claims(fewer, quicker),
        (Table(f"Passes over the disk, and seconds, to {ACCURACY:.0%}", header, table, NOTE),),
        [_figure(share, found) for share, found in panels.items()],
        REMARKS,
        lab.data,
    )


NOTE = "Seconds are those of the clock, reading included, on a machine that others used too."
REMARKS = (
    "Rows of these sizes stay in the system's file cache, so reading costs less than it did from the "
    "lecture's disks; passes are what carries over.",
    "The lecture's figures have no numbers in its text; what is compared is which method is ahead.",
)


def _panel(name: str, runs: dict[str, common.Run]) -> Panel:
    curves = [one.curve(METHODS[solver][0], by="seconds") for solver, one in runs.items()]
    return Panel(name, "seconds", "f / f* - 1", curves, yscale="log")


def _figure(share: float, panels: list[Panel]) -> Figure:
    return Figure(
        f"vishwanathan-block-minimisation-{100 * share:.0f}",
        f"The objective above the optimum by seconds, {share:.0%} of the rows in memory",
        panels,
    )


def _claims(fewer: dict[str, list[Part]], quicker: dict[str, list[Part]]) -> list[Claim]:
    def text(found: dict[str, list[Part]]) -> str:
        return "; ".join(
            f"{METHODS[other][0]}: ahead in {parts.count(True)} of {len(parts)} cells, behind in "
            f"{parts.count(False)}"
            for other, parts in found.items()
        )

    return [
        verdict_on(
            f"dual cached loops need fewer {what} than block minimisation, selective or not",
            [part for parts in found.values() for part in parts],
            text(found),
        )
        for what, found in (("passes over the disk", fewer), ("seconds", quicker))
    ]


def _shown(count: float) -> Cell:
    return "not reached" if math.isinf(count) else count
