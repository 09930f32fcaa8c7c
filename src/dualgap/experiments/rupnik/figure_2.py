"""Figure 2: several runs of Pegasos from different random vectors, and why they do not differ."""

from __future__ import annotations

from ..lab import Lab
from ..report import Figure, Panel, Report, verdict_on
from . import common

EARLY = 10  # iterations, after which starts should be forgotten


def run(lab: Lab) -> Report:
    """The same rows drawn from different starts, then different rows too."""
    split = common.documents(lab)
    optimum = lab.optimum(split.training, lam=common.LAM)
    iterations, starts = (20, 3) if lab.quick else (100, 6)
    apart = [common.pegasos(lab, split, split.k, iterations, seed=seed) for seed in range(starts)]
    alike = [
        common.pegasos(lab, split, split.k, iterations, seed=0, first_seed=seed) for seed in range(1, starts)
    ]
    ends = [one.primal[-1] for one in apart]
    apart_by = max(abs(one.primal[-1] / alike[0].primal[-1] - 1.0) for one in alike)
    on_the_way = max(
        abs(one.primal[t] / alike[0].primal[t] - 1.0) for one in alike for t in range(EARLY, iterations)
    )
    panels = [
        Panel(
            title,
            "iterations",
            "P / P* - 1",
            [one.curve(f"start {number}", optimum) for number, one in enumerate(runs)],
            yscale="log",
        )
        for title, runs in (
            ("different starts, different rows", apart),
            ("different starts, the same rows", alike),
        )
    ]
    claims = (
        verdict_on(
            "Pegasos behaves more or less independently of its initial vector",
            max(ends) - min(ends) <= 0.05 * optimum,
            f"after {iterations} iterations the objectives of {starts} runs are within "
            f"{(max(ends) - min(ends)) / optimum:.2%} of the optimum of each other",
        ),
        verdict_on(
            "(ours) the start is forgotten: the first step multiplies it by 0",
            [apart_by <= 1e-3, on_the_way <= 0.1],
            f"runs that draw the same rows differ by {apart_by:.1e} of the objective in the end, but by "
            "up to "
            f"{on_the_way:.2g} of it on the way, after iteration {EARLY}: the start decides which rows of "
            "the "
            "first batch have a loss",
        ),
    )
    figure = Figure("rupnik-figure-2", f"Pegasos from random starts, batches of {split.k:,} rows", panels)
    remarks = (
        "Right: of starts that draw the same rows some leave the common curve for a while and come back: the "
        "start decides which rows of the first batch have a loss. The paper's figure is not in its text, so "
        "nothing can be said of its noise.",
        common.PROBLEM,
    )
    return Report(claims, (), (figure,), remarks, lab.data)
