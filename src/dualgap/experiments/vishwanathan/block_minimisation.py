"""Dual cached loops and selective block minimisation against block minimisation, at several cache sizes."""

from __future__ import annotations

import math

from ..lab import Lab
from ..report import Cell, Figure, Panel, Report, Table, sooner, verdict_on
from . import common

ACCURACY = 1e-2
SHARES = (0.05, 0.1, 0.25)
METHODS = {
    "cached-loops": ("dual cached loops", {"lockstep": True}),
    "selective-block": ("selective block minimisation", {}),
    "block": ("block minimisation", {}),
}


def run(lab: Lab) -> Report:
    """Three methods, several shares of the rows in memory."""
    table: list[list[Cell]] = []
    panels = []
    verdicts: list[bool | None] = []
    for shape in common.shapes(lab):
        rows = common.rows_of(lab, shape)
        optimum = lab.optimum(rows, C=common.C)
        with common.stored(rows) as path:
            for share in SHARES[1:2] if lab.quick else SHARES:
                runs = {
                    solver: common.run(lab, rows, path, solver, optimum, 300.0, cache=share, **options)
                    for solver, (_, options) in METHODS.items()
                }
                reached = {solver: one.reaches(ACCURACY) for solver, one in runs.items()}
                verdicts.append(
                    sooner(reached["cached-loops"], min(reached["selective-block"], reached["block"]))
                )
                table.append([rows.name, share, *(_shown(count) for count in reached.values())])
                if share == 0.1:
                    panels.append(
                        Panel(
                            f"{rows.name}, a tenth in memory",
                            "seconds",
                            "f / f* - 1",
                            [one.curve(METHODS[solver][0], by="seconds") for solver, one in runs.items()],
                            yscale="log",
                        )
                    )
    claim = verdict_on(
        "dual cached loops need fewer passes than block minimisation, selective or not",
        verdicts,
        f"in {sum(map(bool, verdicts))} of {len(verdicts)} cells",
    )
    header = ("data", "share in memory", *(label for label, _ in METHODS.values()))
    return Report(
        (claim,),
        (Table(f"Passes over the disk to {ACCURACY:.0%}", header, table),),
        (Figure("vishwanathan-block-minimisation", "The objective above the optimum by seconds", panels),),
        (
            "Rows of these sizes stay in the system's file cache, so reading costs less than it did from "
            "the lecture's disks; passes are what carries over.",
        ),
        lab.data,
    )


def _shown(count: float) -> Cell:
    return "not reached" if math.isinf(count) else count
