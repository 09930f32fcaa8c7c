"""Figures 8 to 11: the influence of lam on each of the four algorithms (genomic data)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..lab import Lab
from ..report import Curve, Figure, Panel, Part, Report, Table, sooner, verdict_on
from . import common

FACTORS = (0.1, 1.0, 10.0, 100.0)  # of lam = 1/n
ACCURACY = 0.05
CAPTION = (
    "The objective for four values of lam; a curve that ends early has a gap of 0 there (SDCA at large lam, "
    "once every row was drawn)"
)


def run(lab: Lab) -> Report:
    """Run the four algorithms for four values of lam."""
    rows = common.genomic(lab)
    epochs = 4.0 if lab.quick else 30.0
    panels, table = [], []
    ends: list[Part] = []
    rising: list[bool] = []
    for number, algorithm in enumerate(common.algorithms(8), start=8):
        curves, reached, values = [], [], []
        for factor in FACTORS:
            lam = factor / rows.n
            optimum = common.limit(lab, rows, algorithm, lam)
            one = common.run(lab, rows, algorithm, epochs=epochs, lam=lam)
            curves.append(Curve(f"lam = {factor:g}/n", one.iterations, one.primal))
            reached.append(one.settles(optimum, ACCURACY))
            values.append(float(np.median(one.primal[-len(one.primal) // 4 :])))
            table.append(
                [
                    algorithm.label,
                    f"{factor:g}/n",
                    common.count(reached[-1]),
                    values[-1],
                    optimum,
                ]
            )
        ends += [sooner(more, less) for less, more in pairwise(reached)]
        rising.append(values == sorted(values))
        panels.append(Panel(f"Figure {number}: {algorithm.label}", "iterations", "P", curves, "log", "log"))
    claims = (
        verdict_on(
            "the higher lam, the faster convergence",
            ends,
            f"of {len(ends)} steps to a tenfold lam {ends.count(True)} converge sooner, {ends.count(False)} "
            "later; where neither arrives, nothing is known",
        ),
        verdict_on("the final objective rises with lam", rising, f"for {sum(rising)} of 4 algorithms"),
    )
    return Report(
        claims,
        (
            Table(
                f"Iterations until within {ACCURACY:.0%} of what it tends to, and the objective in the end",
                ("algorithm", "lam", "iterations", "P in the end", "what it tends to"),
                table,
                f"{common.SETTLED} The paper does not say which values of lam it took.",
            ),
        ),
        (Figure("ouillade-figures-8-to-11", CAPTION, panels),),
        (),
        lab.data,
    )
