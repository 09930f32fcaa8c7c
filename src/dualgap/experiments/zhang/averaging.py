"""Claims of sections 5.2 and 5.3: averaging by learning rate, v_T beside w_(T/2), and random stopping."""

from __future__ import annotations

import numpy as np

from ..lab import Lab
from ..report import Cell, Claim, Curve, Figure, Panel, Report, Table, verdict_on
from . import common, figure_2
from .reuters import Collection

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
            "the averaged v_T resembles w_(T/2) (here: within 2 points)",
            [abs(mean - half) <= 2.0 for _, mean, half, _ in levels],
            f"at most {max(abs(mean - half) for _, mean, half, _ in levels):.1f} points apart; from w_T it "
            f"is up to {max(abs(mean - last) for last, mean, *_ in levels):.1f} away; nearer to w_(T/2) "
            "than to w_T "
            f"in {sum(abs(mean - half) < abs(mean - last) for last, mean, half, _ in levels)} of "
            f"{len(levels)} cases",
        ),
        verdict_on(
            "stopping at a random time is about as good (here: within 3 points on average)",
            [abs(drawn - mean) <= 3.0 for _, mean, _, drawn in levels],
            f"on average at most {max(mean - drawn for _, mean, _, drawn in levels):.1f} points below the "
            "averaged point",
        ),
        _towards_perceptron(lab, found, list(rates), [level[0] for level in levels[: len(rates)]], epochs),
    )
    header = ("loss", "eta", "last, %", "averaged, %", "last, half way, %", "mean over stopping times, %")
    figure = Figure("zhang-averaging", f"Averaging by learning rate on {found.name}", panels)
    return Report(
        claims, (Table(f"Break-even points after {epochs} passes", header, table),), (figure,), (), lab.data
    )


def _towards_perceptron(
    lab: Lab, found: Collection, rates: list[float], ends: list[float], epochs: int
) -> Claim:
    """Whether SGD with the hinge loss comes near the perceptron as its learning rate grows."""
    last = common.levels(lab, found, figure_2.PERCEPTRON, figure_2.passes(lab)).each[epochs - 1]
    perceptron = 100.0 * last
    far = [abs(end - perceptron) for end in ends]
    return verdict_on(
        "the perceptron is SGD with the hinge loss and eta to infinity (sections 5.3 and 7.2; here: at the "
        "largest "
        "eta the break-even point is within 2 points of the perceptron's, and nearer than at the default)",
        [far[-1] <= 2.0, far[-1] < far[rates.index(common.ETA)] if common.ETA in rates else None],
        f"after {epochs} passes the perceptron {perceptron:.1f}%, SGD "
        + ", ".join(f"{end:.1f}% (eta = {eta:g})" for eta, end in zip(rates, ends, strict=True)),
    )
