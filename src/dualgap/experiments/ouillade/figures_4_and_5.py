"""Figures 4 and 5: SDCA with rows drawn at random, in fresh permutations, and in one fixed order."""

from __future__ import annotations

from ..lab import Lab
from ..report import Cell, Figure, Panel, Report, Table, sooner, verdict_on
from . import common
from .common import Algorithm

ORDERS = {"random": "random", "permutation": "permutation", "cyclic": "cyclic"}
SEEDS = 5


def run(lab: Lab) -> Report:
    """Run the three orders on genomic and skin data."""
    plans = [
        ("Figure 4", common.genomic(lab), 5.0 if lab.quick else 40.0, 1),
        ("Figure 5", common.skin(lab), 3.0 if lab.quick else 8.0, 500 if lab.quick else 25_000),
    ]
    panels, medians = [], []
    table: list[list[Cell]] = []
    for title, rows, epochs, every in plans:
        optimum = lab.optimum(rows, lam=1.0 / rows.n)
        runs = {
            order: [
                common.run(
                    lab,
                    rows,
                    Algorithm(label, "sdca", {"order": order}),
                    epochs=epochs,
                    every=every,
                    seed=seed,
                )
                for seed in range(1 if lab.quick else SEEDS)
            ]
            for order, label in ORDERS.items()
        }
        found = {order: sorted(one.level(optimum) for one in ones) for order, ones in runs.items()}
        medians.append({order: values[len(values) // 2] for order, values in found.items()})
        table += [
            [rows.name, ORDERS[order], values[len(values) // 2], values[0], values[-1]]
            for order, values in found.items()
        ]
        firsts = [ones[0] for ones in runs.values()]
        panels.append(
            Panel(
                f"{title}: {rows.name}",
                "epochs",
                "P / P* - 1",
                common.curves(firsts, optimum, rows.n),
                yscale="log",
            )
        )
    genomic, skin = medians
    claims = (
        verdict_on(
            "on the genomic set the random permutation is the slowest of the three",
            sooner(max(genomic["random"], genomic["cyclic"]), genomic["permutation"]),
            _shown(genomic),
        ),
        verdict_on(
            "on skin the cyclic order is the slowest",
            sooner(max(skin["random"], skin["permutation"]), skin["cyclic"]),
            _shown(skin),
        ),
        verdict_on(
            "on skin permutations converge as fast as random draws",
            sooner(skin["permutation"], skin["random"], within=1.25),
            _shown(skin),
        ),
    )
    return Report(
        claims,
        (
            Table(
                "The excess of SDCA's own point in the end (median of the last quarter of a run)",
                ("data", "order", "median", "least", "most"),
                table,
                f"{1 if lab.quick else SEEDS} seeds. The paper gives one curve each.",
            ),
        ),
        (Figure("ouillade-figures-4-and-5", "SDCA in three orders, first seed", panels),),
        ("The paper shows one run each; its differences are to be measured by the spread over seeds.",),
        lab.data,
    )


def _shown(found: dict[str, float]) -> str:
    return ", ".join(f"{order} {value:.3g}" for order, value in found.items())
