"""Claims of sections 5.2 and 5.3: averaging by learning rate, v_T beside w_(T/2), and random stopping."""

from __future__ import annotations

import numpy as np

from ..lab import Lab
from ..report import Cell, Curve, Figure, Panel, Report, Table, verdict_on
from . import common

RATES = (0.0002, 0.002, 0.02, 0.05, 0.2)


def run(lab: Lab) -> Report:
    """Least squares and the hinge loss at several learning rates, averaged or not."""
    found = common.collection(lab)
    epochs = 10 if lab.quick else 40
    rates = RATES[::4] if lab.quick else RATES
    table: list[list[Cell]] = []
    levels: list[list[float]] = []
    gains: dict[str, list[float]] = {}
    panels = []
    for loss in ("hinge", "logistic"):
        gains[loss] = []
        for eta in rates:
            last = common.levels(lab, found, common.sgd("last", loss, eta), epochs)
            mean = common.levels(lab, found, common.sgd("averaged", loss, eta, averaged=True), epochs)
            drawn = float(np.mean(last.each))  # of a stopping time drawn evenly from the passes
            gains[loss].append(100.0 * (mean.each[-1] - last.each[-1]))
            half = last.each[epochs // 2 - 1]
            levels.append([100.0 * value for value in (last.each[-1], mean.each[-1], half, drawn)])
            table.append([loss, eta, *levels[-1]])
        panels.append(
            Panel(
                f"{loss}: what averaging gains after {epochs} passes",
                "eta",
                "points of break-even",
                [Curve("averaged minus last", list(rates), gains[loss], marker="o")],
                "log",
                levels={"no difference": 0.0},
            )
        )
    claims = (
        verdict_on(
            "averaging helps at large learning rates and can hurt at small ones",
            [
                part
                for gain in gains.values()
                for part in (common.sign(max(gain[len(rates) // 2 :])), common.sign(-gain[0]))
            ],
            "; ".join(f"{loss}: " + ", ".join(f"{g:+.1f}" for g in gain) for loss, gain in gains.items())
            + f" points at eta = {', '.join(f'{eta:g}' for eta in rates)}",
        ),
        verdict_on(
            "the averaged v_T resembles w_(T/2)",
            [abs(mean - half) <= 2.0 for _, mean, half, _ in levels],
            f"at most {max(abs(mean - half) for _, mean, half, _ in levels):.1f} points apart; from w_T it "
            f"is up to {max(abs(mean - last) for last, mean, *_ in levels):.1f} away",
        ),
        verdict_on(
            "stopping at a random time is about as good",
            [abs(drawn - mean) <= 3.0 for _, mean, _, drawn in levels],
            f"on average at most {max(mean - drawn for _, mean, _, drawn in levels):.1f} points below the "
            "averaged point",
        ),
    )
    header = ("loss", "eta", "last, %", "averaged, %", "last, half way, %", "mean over stopping times, %")
    figure = Figure("zhang-averaging", f"Averaging by learning rate on {found.name}", panels)
    return Report(
        claims, (Table(f"Break-even points after {epochs} passes", header, table),), (figure,), (), lab.data
    )
