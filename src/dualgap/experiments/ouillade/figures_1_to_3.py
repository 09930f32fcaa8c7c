"""Figures 1 to 3: the objective of four algorithms on simulated, genomic and skin data."""

from __future__ import annotations

from ..lab import Lab
from ..report import Claim, Figure, Panel, Report, Table, verdict_on
from ..sets import Rows
from . import common
from .common import Run

ACCURACY = 0.05  # of the optimum; the curves of the paper end at about that


def run(lab: Lab) -> Report:
    """Run the four on each of the three sets."""
    plans = [
        (common.SIMULATED, common.simulated(lab)[0], 8, 5.0 if lab.quick else 25.0, 1),
        (common.GENOMIC, common.genomic(lab), 8, 5.0 if lab.quick else 40.0, 1),
        (common.SKIN, common.skin(lab), 2, 3.0 if lab.quick else 8.0, 500 if lab.quick else 25_000),
    ]
    panels, rows_of_table, levels = [], [], {}
    for name, rows, batch, epochs, every in plans:
        optimum = lab.optimum(rows, lam=1.0 / rows.n)
        runs = [common.run(lab, rows, a, epochs=epochs, every=every) for a in common.algorithms(batch)]
        common_end = min(one.iterations[-1] for one in runs)  # batches make fewer steps in as many epochs
        levels[name] = {one.label: one.level(optimum, common_end) for one in runs}
        panels.append(_panel(name, rows, runs, optimum))
        rows_of_table += [
            [rows.name, one.label, common.count(one.reaches(optimum, ACCURACY)), one.level(optimum)]
            for one in runs
        ]
    table = Table(
        f"Iterations until the own point is within {ACCURACY:.0%} of the optimum, and where it ends",
        ("data", "algorithm", "iterations", "excess, median of the last quarter"),
        rows_of_table,
        "An iteration is one row, or one batch of 8 (2 on skin). The figures of the paper have no numbers.",
    )
    figure = Figure(
        "ouillade-figures-1-to-3",
        "The hinge objective of each algorithm's own point above the optimum, by iteration (lam = 1/n)",
        panels,
    )
    remarks = (
        "ASDCA trains with the hinge smoothed by gamma = 1, as in the paper; its hinge objective ends above "
        "the optimum for that reason, which the paper does not say.",
        "Iterations of mini-batches read 8 (or 2) times as many rows: per row the batch algorithms lose what "
        "they win per iteration.",
    )
    return Report(_claims(levels), (table,), (figure,), remarks, lab.data)


def _panel(name: str, rows: Rows, runs: list[Run], optimum: float) -> Panel:
    return Panel(
        f"{name}: {rows.name}", "iterations", "P / P* - 1", common.curves(runs, optimum), "log", "log"
    )


def _claims(levels: dict[str, dict[str, float]]) -> list[Claim]:
    def text(name: str) -> str:
        return name + ": " + ", ".join(f"{label} {value:.3g}" for label, value in levels[name].items())

    rest = (common.SIMULATED, common.SKIN)
    return [
        verdict_on(
            "vanilla PEGASOS is the slowest of the four to converge, whatever the data",
            [found["PEGASOS"] >= max(found.values()) for found in levels.values()],
            "excess at equal iterations: " + "; ".join(text(name) for name in levels),
        ),
        verdict_on(
            "on high-dimensional genomic data mini-batch PEGASOS converges first",
            levels[common.GENOMIC]["mini-batch PEGASOS"] <= min(levels[common.GENOMIC].values()),
            text(common.GENOMIC),
        ),
        verdict_on(
            "on the other two SDCA and ASDCA are both faster than mini-batch PEGASOS",
            [
                levels[name][label] < levels[name]["mini-batch PEGASOS"]
                for name in rest
                for label in ("SDCA", "ASDCA")
            ],
            "; ".join(text(name) for name in rest),
        ),
    ]
