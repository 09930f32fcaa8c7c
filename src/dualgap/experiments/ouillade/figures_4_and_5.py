"""Figures 4 and 5: SDCA with rows drawn at random, in fresh permutations, and in one fixed order."""

from __future__ import annotations

from ..lab import Lab
from ..report import Cell, Figure, Panel, Report, Table, sooner, verdict_on, within
from . import common
from .common import Algorithm

ORDERS = {"random": "random", "permutation": "permutation", "cyclic": "cyclic"}
SEEDS = 5
NEAR = 0.05  # above the optimum: has arrived


def run(lab: Lab) -> Report:
    """Run the three orders on genomic and skin data."""
    plans = [
        ("Figure 4", common.genomic(lab), 5.0 if lab.quick else 40.0, 1),
        ("Figure 5", common.skin(lab), 3.0 if lab.quick else 40.0, 500 if lab.quick else 50_000),
    ]
    panels, medians, spreads = [], [], []
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
        spreads.append({order: values[-1] - values[0] for order, values in found.items()})
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
    spread = spreads[1]
    claims = (
        verdict_on(
            "on the genomic set all three orders converge to the same value at almost the same rate",
            max(genomic.values()) <= NEAR,
            f"within {max(genomic.values()):.2g} of the optimum in the end: {_shown(genomic)}",
        ),
        verdict_on(
            "on the genomic set the random permutation is the slowest of the three",
            [sooner(genomic[order], genomic["permutation"]) for order in ("random", "cyclic")],
            _shown(genomic),
        ),
        verdict_on(
            "on skin the cyclic order is the slowest",
            [sooner(skin[order], skin["cyclic"]) for order in ("random", "permutation")],
            _shown(skin),
        ),
        verdict_on(
            "on skin permutations converge as fast as random draws",
            within(skin["permutation"], skin["random"], 1.25),
            _shown(skin),
        ),
        verdict_on(
            "on skin permutations vary more than random draws",
            None if lab.quick else sooner(spread["random"], spread["permutation"]),
            f"largest minus smallest excess over {SEEDS} seeds: {_shown(spread)}",
        ),
        verdict_on(
            "random draws are a good default: no other order is better by more than a tenth",
            [
                sooner(found[order], found["random"]) is not True
                for found in medians
                for order in ("permutation", "cyclic")
            ],
            "; ".join(_shown(found) for found in medians),
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
