"""The batch size, which the paper leaves open: mini-batch Pegasos and ASDCA with batches of 1 to 64 rows."""

from __future__ import annotations

from ..lab import Lab
from ..report import Cell, Curve, Figure, Panel, Report, Table, verdict_on, within
from . import common
from .common import Algorithm

SIZES = (1, 2, 4, 8, 16, 32, 64)
ACCURACY = 0.05


def run(lab: Lab) -> Report:
    """Rows read and iterations until near what the algorithm tends to, for every batch size."""
    rows = common.simulated(lab)[0]
    optimum = lab.optimum(rows, lam=1.0 / rows.n)
    epochs = 10.0 if lab.quick else 60.0
    table: list[list[Cell]] = []
    panels = []
    gained: dict[str, list[float]] = {}
    for label, solver in (("mini-batch PEGASOS", "pegasos"), ("ASDCA", "asdca")):
        sizes = SIZES[::3] if lab.quick else SIZES
        curves, iterations = [], []
        for size in sizes:
            options = {"m": size, "gamma": "1"} if solver == "asdca" else {"k": size, "sampling": "distinct"}
            one = common.run(lab, rows, Algorithm(label, solver, options, size), epochs=epochs)
            reached = one.settles(common.limit(lab, rows, Algorithm(label, solver, options)), ACCURACY)
            iterations.append(reached)
            table.append([label, size, common.count(reached), common.count(reached * size)])
            curves.append(
                Curve(f"batches of {size}", [i * size / rows.n for i in one.iterations], one.excess(optimum))
            )
        gained[label] = iterations
        panels.append(Panel(label, "epochs (rows read / n)", "P / P* - 1", curves, "log", "log"))
    claims = [
        verdict_on(
            f"the batch size has a significant effect on the convergence of {label}",
            within(2.0 * min(found), max(found), 1.0),
            f"{common.count(found[0])} iterations with batches of {SIZES[0]}, {common.count(found[-1])} with "
            f"batches of {SIZES[-1]}",
        )
        for label, found in gained.items()
    ]
    return Report(
        claims,
        (
            Table(
                f"Iterations and rows read until within {ACCURACY:.0%} of what it tends to",
                ("algorithm", "batch", "iterations", "rows read"),
                table,
                common.SETTLED,
            ),
        ),
        (Figure("ouillade-batch-sizes", "Batches of 1 to 64 rows on simulated data, by rows read", panels),),
        (),
        lab.data,
    )
