"""Claims of sections 5.2 and 5.3: averaging by learning rate, v_T beside w_(T/2), and random stopping."""

from __future__ import annotations

import numpy as np

from ..lab import Lab
from ..report import Cell, Curve, Figure, Panel, Report, Table, verdict_on
from . import common

RATES = (0.0002, 0.002, 0.02, 0.05)


def run(lab: Lab) -> Report:
    """Least squares and the hinge loss at several learning rates, averaged or not."""
    found = common.collection(lab)
    epochs = 10 if lab.quick else 40
    table: list[list[Cell]] = []
    gains: dict[str, list[float]] = {}
    panels = []
    for loss in ("hinge", "logistic"):
        gains[loss] = []
        for eta in RATES:
            last = common.levels(lab, found, common.sgd("last", loss, eta), epochs)
            mean = common.levels(lab, found, common.sgd("averaged", loss, eta, averaged=True), epochs)
            drawn = float(np.mean(last.each))  # of a stopping time drawn evenly from the passes
            gains[loss].append(100.0 * (mean.each[-1] - last.each[-1]))
            half = last.each[epochs // 2 - 1]
            table.append(
                [loss, eta, 100.0 * last.each[-1], 100.0 * mean.each[-1], 100.0 * half, 100.0 * drawn]
            )
        panels.append(
            Panel(
                f"{loss}: what averaging gains after {epochs} passes",
                "eta",
                "points of break-even",
                [Curve("averaged minus last", list(RATES), gains[loss], marker="o")],
                "log",
                levels={"no difference": 0.0},
            )
        )
    claims = (
        verdict_on(
            "averaging helps at large learning rates and can hurt at small ones",
            [gain[-1] > gain[0] for gain in gains.values()],
            "; ".join(f"{loss}: " + ", ".join(f"{g:+.1f}" for g in gain) for loss, gain in gains.items())
            + f" points at eta = {', '.join(f'{eta:g}' for eta in RATES)}",
        ),
        verdict_on(
            "the averaged v_T resembles w_(T/2)",
            [abs(float(str(row[3])) - float(str(row[4]))) <= 2.0 for row in table],
            "columns 'averaged' and 'last, half way'",
        ),
        verdict_on(
            "stopping at a random time is about as good",
            [abs(float(str(row[5])) - float(str(row[3]))) <= 3.0 for row in table],
            "columns 'mean over stopping times' and 'averaged'",
        ),
    )
    header = ("loss", "eta", "last, %", "averaged, %", "last, half way, %", "mean over stopping times, %")
    figure = Figure("zhang-averaging", f"Averaging by learning rate on {found.name}", panels)
    return Report(
        claims, (Table(f"Break-even points after {epochs} passes", header, table),), (figure,), (), lab.data
    )
