"""Figures 1 to 3: the objective of four algorithms on simulated, genomic and skin data."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..lab import Lab
from ..report import Cell, Claim, Figure, Panel, Part, Report, Table, mostly, sooner, tally, verdict_on
from . import common

ACCURACY = 0.05  # of what an algorithm tends to
EVERY = 50_000  # iterations between two points of the curves on skin
FIGURES = {
    common.SIMULATED: "Figure 1",
    common.GENOMIC: "Figure 2",
    common.AS_MEASURED: "(2)",
    common.SKIN: "Figure 3",
}
SIZES = ("data", "rows", "columns", "rows, in the paper", "columns, in the paper")
PAPER = {  # Table 1
    common.SIMULATED: (1000, 10),
    common.GENOMIC: (184, 4654),
    common.AS_MEASURED: (184, 4654),
    common.SKIN: (245_057, 3),
}
Reached = dict[str, dict[str, float]]  # set: algorithm: iterations


def run(lab: Lab) -> Report:
    """Run the four on each of the three sets, and on the genes as they come."""
    long = not lab.quick
    plans = [
        (common.SIMULATED, common.simulated(lab)[0], 8, 25.0 if long else 5.0, 1),
        (common.GENOMIC, common.genomic(lab), 8, 40.0 if long else 5.0, 1),
        (common.AS_MEASURED, common.genomic_as_measured(lab), 8, 40.0 if long else 5.0, 1),
        (common.SKIN, common.skin(lab), 2, 40.0 if long else 3.0, EVERY if long else 500),
    ]
    panels = []
    table: list[list[Cell]] = []
    reached: Reached = {}
    levels: Reached = {}  # at equal iterations
    ends: Reached = {}  # after equal epochs
    for name, rows, batch, epochs, every in plans:
        optimum = lab.optimum(rows, lam=1.0 / rows.n)
        reached[name], levels[name] = {}, {}
        runs = []
        for algorithm in common.algorithms(batch):
            one = common.run(lab, rows, algorithm, epochs=epochs, every=every)
            end = common.limit(lab, rows, algorithm)
            reached[name][one.label] = one.settles(end, ACCURACY)
            runs.append(one)
            table.append(
                [
                    rows.name,
                    one.label,
                    common.count(reached[name][one.label]),
                    end / optimum - 1.0,
                    one.level(optimum),
                ]
            )
        shared = min(one.iterations[-1] for one in runs)  # batches make fewer steps in as many epochs
        levels[name] = {one.label: one.level(optimum, shared) for one in runs}
        ends[name] = {one.label: one.level(optimum) for one in runs}
        curves = common.curves(runs, optimum)
        panels.append(
            Panel(f"{FIGURES[name]}: {rows.name}", "iterations", "P / P* - 1", curves, "log", "log")
        )
    sizes = [[rows.name, *rows.X.shape, *PAPER[name]] for name, rows, *_ in plans]
    return Report(
        _claims(Compared(reached, levels), ends),
        (Table("Table 1: the sets", SIZES, sizes), _table(table)),
        (_figure(panels),),
        REMARKS,
        lab.data,
    )


def _table(rows: list[list[Cell]]) -> Table:
    return Table(
        f"Iterations until an algorithm is within {ACCURACY:.0%} of what it tends to, and where it ends",
        (
            "data",
            "algorithm",
            "iterations",
            "what it tends to, above the optimum",
            "excess in the end (median of the last quarter)",
        ),
        rows,
        "An iteration is one row, or one batch of 8 (2 on skin). The end is after equally many epochs, that "
        "is, fewer iterations of batches; the claims' evidence has the excess at equal iterations instead, "
        f"where the shortest run ends. {common.SETTLED} The figures of the paper have no numbers.",
    )


def _figure(panels: list[Panel]) -> Figure:
    return Figure(
        "ouillade-figures-1-to-3",
        "The hinge objective of each algorithm's own point above the optimum, by iteration, lam = 1/n "
        "(Figure 1; Figure 2 with rows of length 1 and as measured; Figure 3)",
        panels,
    )


REMARKS = (
    "ASDCA trains with the hinge smoothed by gamma = 1, as in the paper; its hinge objective ends above the "
    "optimum for that reason, which the paper does not say. It is measured against what it tends to.",
    "The scale of the rows decides on genomic data: at lam = 1/n and |x|^2 of 280,000, as log-expressions "
    "come, none of the four gets near the optimum in 40 epochs. The paper does not say how it scaled them; "
    "on rows of length 1 mini-batch PEGASOS is first here too, with ASDCA close behind.",
    "Iterations of mini-batches read 8 (or 2) times as many rows. Per row mini-batch PEGASOS loses what it "
    "wins per iteration, and so does ASDCA on genomic rows, but not on simulated ones (ouillade-batch-sizes "
    "has the rows read).",
    f"On skin the objective is recorded every {EVERY:,} iterations, as in the paper.",
)


def _excesses(found: dict[str, float]) -> str:
    return ", ".join(f"{label} {excess:.3g}" for label, excess in found.items())


class Compared(NamedTuple):
    """Who is ahead of whom, on which set, and the sentence that says so."""

    reached: Reached
    levels: Reached

    def ahead(self, name: str, one: str, other: str) -> Part:
        """By iterations to convergence, or where neither arrives by the excess at equal iterations."""
        first, second = self.reached[name][one], self.reached[name][other]
        if math.isinf(first) and math.isinf(second):
            return sooner(self.levels[name][one], self.levels[name][other])
        return sooner(first, second)

    def text(self, *names: str) -> str:
        """The iterations of all algorithms on these sets."""
        return "; ".join(
            f"{n}: " + ", ".join(self._shown(n, label) for label in self.reached[n]) for n in names
        )

    def _shown(self, name: str, label: str) -> str:
        count = self.reached[name][label]
        if math.isfinite(count):
            return f"{label} {count:,.0f} iterations"
        return f"{label} not reached (excess at equal iterations {self.levels[name][label]:.3g})"


SETS = (common.SIMULATED, common.GENOMIC, common.AS_MEASURED, common.SKIN)
FEW = (common.SIMULATED, common.SKIN)  # sets of few features


def _claims(found: Compared, ends: Reached) -> list[Claim]:
    return [*_on_all_sets(found, ends), *_on_some_sets(found), *_best_with_few_features(found, ends)]


def _on_all_sets(found: Compared, ends: Reached) -> list[Claim]:
    others = ("SDCA", "ASDCA", "mini-batch PEGASOS")
    last = sum(max(end, key=end.__getitem__) == "PEGASOS" for end in ends.values())
    return [
        verdict_on(
            "vanilla PEGASOS is the slowest of the four to converge, whatever the data (by iterations)",
            [found.ahead(name, label, "PEGASOS") for name in SETS for label in others],
            f"{found.text(*SETS)}. After equal epochs, as in the table, its hinge objective is the last on "
            f"{last} of {len(ends)} sets",
        ),
        verdict_on(
            "SDCA always converges faster than PEGASOS",
            [found.ahead(name, "SDCA", "PEGASOS") for name in SETS],
            found.text(*SETS),
        ),
    ]


def _on_some_sets(found: Compared) -> list[Claim]:
    genomic = (common.GENOMIC, common.AS_MEASURED)
    return [
        verdict_on(
            "on high-dimensional genomic data mini-batch PEGASOS converges first",
            [
                found.ahead(name, "mini-batch PEGASOS", label)
                for name in genomic
                for label in ("SDCA", "PEGASOS", "ASDCA")
            ],
            found.text(*genomic),
        ),
        verdict_on(
            "on the other two SDCA and ASDCA are both faster than mini-batch PEGASOS",
            [found.ahead(name, label, "mini-batch PEGASOS") for name in FEW for label in ("SDCA", "ASDCA")],
            found.text(*FEW),
        ),
        verdict_on(
            "on simulated data ASDCA converges extremely fast, closely followed by SDCA",
            [
                *(
                    found.ahead(common.SIMULATED, "ASDCA", label)
                    for label in ("SDCA", "PEGASOS", "mini-batch PEGASOS")
                ),
                found.ahead(common.SIMULATED, "SDCA", "mini-batch PEGASOS"),
            ],
            found.text(common.SIMULATED),
        ),
        verdict_on(
            "on skin SDCA and ASDCA converge at the same rate",
            found.ahead(common.SKIN, "SDCA", "ASDCA") == "tie",
            found.text(common.SKIN),
        ),
    ]


def _best_with_few_features(found: Compared, ends: Reached) -> list[Claim]:
    variants = {"ASDCA": "SDCA", "mini-batch PEGASOS": "PEGASOS"}
    ahead = [found.ahead(name, batched, plain) for name in SETS for batched, plain in variants.items()]
    lasts = [max(end, key=end.__getitem__) in variants for end in ends.values()]
    return [
        verdict_on(
            "with many rows and few features ASDCA outperforms all others",
            [
                part
                for name in FEW
                for label in ("SDCA", "PEGASOS", "mini-batch PEGASOS")
                for part in (
                    found.ahead(name, "ASDCA", label),
                    sooner(ends[name]["ASDCA"], ends[name][label]),
                )
            ],
            f"to what it tends to itself it is first: {found.text(*FEW)}; by the hinge objective in the end: "
            + "; ".join(f"{name}: {_excesses(ends[name])}" for name in FEW),
        ),
        verdict_on(
            "the mini-batch variants, ASDCA and mini-batch PEGASOS, yield better results overall (here: are "
            "sooner there by iterations than SDCA and PEGASOS, and not the last in the end)",
            [mostly(ahead), mostly([not last for last in lasts])],
            f"each against its own plain variant, by iterations: {tally(ahead, 'pairs')}; in the end, "
            "after equal "
            f"epochs, one of them is the last of the four on {sum(lasts)} of {len(lasts)} sets; "
            f"{found.text(*SETS)}; "
            "an iteration of theirs reads a batch of rows",
        ),
    ]
