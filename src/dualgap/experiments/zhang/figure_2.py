"""Figure 2: the perceptron against SGD with the hinge loss and no regulariser, averaged or not."""

from __future__ import annotations

from ..lab import Lab
from ..report import Cell, Claim, Figure, Panel, Report, Table, verdict_on
from . import common
from .common import Levels, Method

PERCEPTRON = Method("perceptron", "perceptron", "hinge", {}, marker="x")


def passes(lab: Lab) -> int:
    """Passes over the data."""
    return 12 if lab.quick else 60


def run(lab: Lab) -> Report:
    """Four methods by passes over the data."""
    found = common.collection(lab)
    epochs = passes(lab)
    methods = [
        PERCEPTRON,
        Method("averaged perceptron", "perceptron", "hinge", {"averaged": True}, True, "x"),
        common.sgd("SGD, hinge loss", "hinge", marker="o"),
        common.sgd("averaged SGD, hinge loss", "hinge", averaged=True, marker="o"),
    ]
    runs = {method.label: common.levels(lab, found, method, epochs) for method in methods}
    bare = {method.label: common.levels(lab, found, method, epochs, bias="none") for method in methods}
    table: list[list[Cell]] = [
        [label, bias, *levels.best, 100.0 * levels.each[-1], 100.0 * max(levels.pooled)]
        for bias, ones in ((common.CONSTANT, runs), ("none", bare))
        for label, levels in ones.items()
    ]
    claims = _claims(runs)
    curves = [runs[method.label].curve(method) for method in methods]
    header = ("method", "bias", "best BEP, %", "after passes", "BEP in the end, %", "best, one threshold, %")
    return Report(
        claims,
        (Table("Micro-averaged break-even points on test documents", header, table),),
        (
            Figure(
                "zhang-figure-2",
                f"Perceptron and SGD with the hinge loss on {found.name}, eta = {common.ETA}",
                [Panel(found.name, "passes over the data", "break-even point, %", curves, "log")],
            ),
        ),
        (
            "Both perceptrons stay some five points behind, averaged or not.",
            "Without a constant feature every method loses points; the paper does not say if it had one.",
        ),
        lab.data,
    )


def _claims(runs: dict[str, Levels]) -> tuple[Claim, ...]:
    best = {label: levels.best[0] for label, levels in runs.items()}
    gain = {label: best[f"averaged {label}"] - best[label] for label in ("perceptron", "SGD, hinge loss")}
    late = [runs[label].each[-1] for label in ("perceptron", "averaged perceptron")]
    early = [runs[label].each[0] for label in ("perceptron", "averaged perceptron")]
    return (
        verdict_on(
            "perceptron-based methods are clearly inferior to SGD with the hinge loss",
            [
                common.sign(best["SGD, hinge loss"] - best["perceptron"]),
                common.sign(best["averaged SGD, hinge loss"] - best["averaged perceptron"]),
            ],
            "; ".join(f"{label} {value:.1f}%" for label, value in best.items()),
        ),
        verdict_on(
            "only a small number of passes is needed for optimal stopping (here: 20 at most, of SGD)",
            [runs[label].best[1] <= 20 for label in ("SGD, hinge loss", "averaged SGD, hinge loss")],
            "; ".join(f"{label}: best after {levels.best[1]:.0f} passes" for label, levels in runs.items()),
        ),
        verdict_on(
            "averaged and plain perceptron become alike in the end",
            [
                abs(late[1] - late[0]) < abs(early[1] - early[0]),
                100.0 * abs(late[1] - late[0]) <= common.NOTHING,
            ],
            f"{100 * abs(early[1] - early[0]):.1f} points apart after one pass, "
            f"{100 * abs(late[1] - late[0]):.1f} in the end (up to {common.NOTHING:g} is alike)",
        ),
        verdict_on(
            "averaging is useful for the perceptron, and much less so for SGD with a small learning rate",
            [common.sign(gain["perceptron"]), gain["SGD, hinge loss"] <= common.NOTHING],
            f"SGD {gain['SGD, hinge loss']:+.1f} points, the perceptron {gain['perceptron']:+.1f} (up to "
            f"{common.NOTHING:g} is no difference)",
        ),
    )
