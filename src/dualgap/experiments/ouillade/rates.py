"""The rates of section 2.3, measured: how iterations grow as the accuracy asked for falls."""

from __future__ import annotations

import math

import numpy as np

from ..lab import Lab
from ..report import Curve, Figure, Panel, Report, Table, verdict_on
from . import common
from .common import Algorithm

ACCURACIES = tuple(float(value) for value in np.geomspace(0.1, 1e-4, 7))


def run(lab: Lab) -> Report:
    """Fit a power of 1/epsilon to the iterations that SDCA and Pegasos need."""
    rows = common.simulated(lab)[0]
    optimum = lab.optimum(rows, lam=1.0 / rows.n)
    plans = [
        (Algorithm("PEGASOS", "pegasos", {"iterate": "average"}), 20.0 if lab.quick else 3000.0),
        (Algorithm("SDCA", "sdca", {"order": "random"}), 20.0 if lab.quick else 300.0),
    ]
    table, curves, powers = [], [], {}
    for algorithm, epochs in plans:
        one = common.run(lab, rows, algorithm, epochs=epochs, every=rows.n // 4)
        reached = [(accuracy, one.reaches(optimum, accuracy)) for accuracy in ACCURACIES]
        known = [(a, t) for a, t in reached if math.isfinite(t)]
        powers[algorithm.label] = slope(known)
        table += [[algorithm.label, a, common.count(t)] for a, t in reached]
        curves.append(Curve(algorithm.label, [1.0 / a for a, _ in known], [t for _, t in known], marker="o"))
    sdca, pegasos = powers["SDCA"], powers["PEGASOS"]
    claims = (
        verdict_on(
            "SGD needs a number of iterations of the order of 1/(lam epsilon) at most",
            _at_most(pegasos, 1.15),
            f"measured power of 1/epsilon: {pegasos:.2f}",
        ),
        verdict_on(
            "SDCA needs n + 1/(lam epsilon) iterations in order of magnitude, and fewer where the loss is "
            "smooth almost everywhere",
            _at_most(sdca, 1.0),
            f"measured power of 1/epsilon: {sdca:.2f}",
        ),
    )
    return Report(
        claims,
        (
            Table(
                "Iterations until the own point stays within epsilon P*",
                ("algorithm", "epsilon", "iterations"),
                table,
            ),
        ),
        (
            Figure(
                "ouillade-rates",
                "Iterations against the accuracy asked for (Pegasos: mean of its later iterates)",
                [Panel(rows.name, "1 / epsilon", "iterations", curves, "log", "log")],
            ),
        ),
        (),
        lab.data,
    )


def slope(points: list[tuple[float, float]]) -> float:
    """The power of 1/epsilon that fits best, in logarithms; nan where too few points are known."""
    if len(points) < 3:
        return math.nan
    x, y = np.log([1.0 / a for a, _ in points]), np.log([t for _, t in points])
    return float(np.polyfit(x, y, 1)[0])


def _at_most(power: float, bound: float) -> bool | None:
    return None if math.isnan(power) else power <= bound
