"""Tables 2, 4 and 6: epochs and seconds of the SGD algorithms to 1% of the optimum (C = 1, 10, 0.05)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from ..lab import Lab
from ..report import Cell, Claim, Part, Report, Table, mostly, sooner, tally, verdict_on
from ..sets import Rows
from . import common
from .common import Theirs

PAPER: dict[float, dict[str, Theirs]] = {
    # C: set: T and s of Pegasos and of SGD-r; epsilon, T and s of SGD-s and of SGD-m; None: it failed
    1.0: {
        "Adult": (181, 2.4, 116, 0.52, 0.105, 111, 0.52, 0.33, 50, 0.23),
        "Web": (53, 0.67, 46, 0.31, 0.054, 26, 0.19, 0.1, 14, 0.11),
        "Physics": (2, 0.11, 6, 0.09, 2.1, 1, 0.02, 0.14, 3, 0.05),
        "Realsim": (66, 2.8, 70, 2.0, 0.046, 20, 0.56, 0.061, 16, 0.45),
        "News20": (89, 9.4, 88, 7.0, 0.023, 39, 3.1, 0.029, 25, 2.1),
        "Webspam": (8, 2.9, 9, 2.0, 0.068, 14, 2.9, 0.21, 5, 1.2),
        "Covertype": (None, None, 62, 10.6, 0.264, 65, 8.2, 1.12, 18, 2.4),
        "C11": (41, 28.8, 39, 20.8, 0.05, 16, 7.7, 0.136, 8, 4.1),
        "CCAT": (37, 29.0, 36, 19.5, 0.055, 16, 7.8, 0.163, 7, 4.0),
    },
    10.0: {
        "Adult": (None, None, 1146, 5.1, 0.098, 1172, 5.4, 0.35, 455, 2.2),
        "Web": (338, 4.3, 330, 2.3, 0.049, 220, 1.5, 0.105, 99, 0.70),
        "Physics": (12, 0.66, 51, 0.75, 0.203, 17, 0.27, 0.223, 19, 0.33),
        "Realsim": (746, 27.7, 738, 20.7, 0.0162, 487, 12.7, 0.027, 261, 6.9),
        "News20": (796, 72.0, 797, 58.3, 0.0104, 719, 52.4, 0.012, 279, 21.0),
        "Webspam": (None, None, 64, 14.1, 0.125, 62, 12.1, 0.4, 26, 5.6),
        "Covertype": (None, None, 472, 80.3, 0.343, 462, 56.8, 0.77, 269, 34.4),
        "C11": (446, 308.2, 441, 234.2, 0.0415, 178, 81.1, 0.085, 116, 53.2),
        "CCAT": (None, None, 387, 207.9, 0.0471, 170, 78.0, 0.112, 98, 46.2),
    },
    0.05: {
        "Adult": (7, 0.09, 12, 0.05, 0.07, 10, 0.05, 0.15, 6, 0.03),
        "Web": (4, 0.06, 4, 0.03, 0.06, 2, 0.02, 0.06, 2, 0.02),
        "Physics": (1, 0.06, 1, 0.02, 0.11, 1, 0.02, 0.06, 1, 0.02),
        "Realsim": (3, 0.19, 3, 0.08, 0.09, 1, 0.06, 0.14, 1, 0.06),
        "News20": (4, 0.66, 3, 0.31, 0.08, 1, 0.19, 0.12, 1, 0.20),
        "Webspam": (1, 0.39, 2, 0.45, 0.4, 1, 0.42, 0.18, 1, 0.42),
        "Covertype": (5, 2.4, 4, 0.69, 0.25, 4, 0.59, 0.27, 5, 0.75),
        "C11": (2, 1.4, 3, 1.6, 0.03, 2, 1.4, 0.1, 1, 0.95),
        "CCAT": (2, 1.7, 2, 1.1, 0.12, 1, 0.95, 0.12, 1, 0.98),
    },
}
TABLES = {1.0: 2, 10.0: 4, 0.05: 6}
SOLVERS = ("pegasos", "sgd-r", "sgd-s", "sgd-m")
OPTIONS: dict[str, dict[str, Any]] = {"pegasos": {"projection": True, "duals": False, "polish": 0}}
LIMIT = 4000  # epochs
SEEDS = 3


class Found(NamedTuple):
    """The first epoch within 1%, the bound that the solver's own rule had to have there, and seconds."""

    epochs: float
    epsilon: float | None
    seconds: float


def run(lab: Lab) -> Report:
    """All sets at hand at the three values of C."""
    tables: list[Table] = []
    found: dict[float, dict[str, dict[str, Found]]] = {}
    failed: list[list[Cell]] = []
    for C in [1.0] if lab.quick else PAPER:
        table: list[list[Cell]] = []
        found[C] = {}
        for row in common.sets(lab, C):
            theirs: Theirs = PAPER[C][row.name] if not row.stands_for else (None,) * 10
            if row.rows is None:
                table.append([common.heading(row), *([None] * 10), *theirs])
                continue
            here = found[C][row.rows.name] = measured(lab, row.rows, C)
            table.append([common.heading(row), *_cells(here), *theirs])
            if PAPER[C][row.name][0] is None:
                failed.append([common.heading(row), C, _shown(here["pegasos"].epochs)])
        tables.append(Table(f"Table {TABLES[C]}: C = {C:g}", HEADER, table, NOTE))
    if failed:
        header = ("data", "C", "epochs of our Pegasos to 1%")
        tables.append(Table("Cells where the paper's Pegasos failed (numerical problems)", header, failed))
    trial = seeds(lab)
    tables.append(trial)
    return Report(_claims(found, failed, trial), tables, (), REMARKS, lab.data)


def _shown(epochs: float) -> Cell:
    return f"not within {LIMIT:,}" if math.isinf(epochs) else round(epochs)


def seeds(lab: Lab) -> Table:
    """The first epoch within 1% on Adult at C = 1 for several seeds: how much of a difference is chance."""
    rows = lab.rows("a9a", 500)
    goal = (1.0 + common.ACCURACY) * lab.optimum(rows, C=1.0)
    theirs = dict(zip(SOLVERS, (PAPER[1.0]["Adult"][place] for place in (0, 2, 5, 8)), strict=True))
    table: list[list[Cell]] = []
    for solver in SOLVERS:
        counts = []
        for seed in range(1 if lab.quick else SEEDS):
            options = {**OPTIONS.get(solver, {}), "seed": seed}
            key = {"first epoch": rows.name, "rows": rows.n, "C": 1.0, "solver": solver, "seed": seed}
            counts.append(
                lab.once(
                    key,
                    lambda solver=solver, options=options: common.first_epoch(  # type: ignore[misc]
                        lab, rows, solver, 1.0, goal, LIMIT, **options
                    )[0],
                )
            )
        table.append([solver, *(_shown(count) for count in counts), theirs[solver]])
    header = ("solver", *(f"seed {seed}" for seed in range(len(table[0]) - 2)), "paper")
    return Table(f"First epoch within 1% on {rows.name} at C = 1, by seed", header, table)


COLUMNS = (
    *(f"{solver}: {what}" for solver in SOLVERS[:2] for what in ("T", "s")),
    *(f"{solver}: {what}" for solver in SOLVERS[2:] for what in ("epsilon", "T", "s")),
)
HEADER = ("data", *COLUMNS, *(f"{column}, paper" for column in COLUMNS))
NOTE = (
    "T: the first whole number of epochs at which the algorithm's own point is within 1% of the optimum. "
    "epsilon: the relative gap of its own dual point there, which the paper's rule would have to be given. "
    f"{common.TIMED}An empty cell: not at hand, not within {LIMIT:,} epochs, or failed."
)
REMARKS = (
    "Pegasos here has the projection and takes one row a step (k = 1), as the program that the paper ran. "
    "Where that program failed and ours does not, its numerical problems were those of one implementation.",
    "Seconds of the paper are those of a 2.5 GHz Core 2 Duo; ratios between solvers compare, seconds do not. "
    "They stand in panagiotakopoulos-orderings.",
    "At C = 10 the stand-in for News20 is not run, for lack of time: Pegasos alone took 81 seconds of the "
    "processor to its 1%, as the objective is evaluated after each of some 800 epochs, and three more "
    "solvers and the runs that are timed come on top.",
    "The paper's seconds of SGD-s and SGD-m include their own evaluations of both objectives; ours do not.",
)


def measured(lab: Lab, rows: Rows, C: float) -> dict[str, Found]:
    """Every solver on one problem: epochs first, then seconds in turns."""
    goal = (1.0 + common.ACCURACY) * lab.optimum(rows, C=C)
    key = {"tables-2-4-6": rows.name, "rows": rows.n, "C": C}
    epochs: dict[str, tuple[float, float | None]] = lab.once(
        {**key, "what": "epochs"},
        lambda: {
            solver: common.first_epoch(lab, rows, solver, C, goal, LIMIT, **OPTIONS.get(solver, {}))
            for solver in SOLVERS
        },
    )
    runs = {
        solver: partial(common.trained, lab, rows, solver, C, count, **OPTIONS.get(solver, {}))
        for solver, (count, _) in epochs.items()
        if math.isfinite(count)
    }
    seconds = common.seconds(lab, rows, key, runs)
    return {solver: Found(*epochs[solver], seconds.get(solver, math.inf)) for solver in SOLVERS}


def _cells(found: dict[str, Found]) -> list[Cell]:
    cells: list[Cell] = []
    for solver in SOLVERS:
        item = found[solver]
        if math.isinf(item.epochs):
            cells += [None, None, None] if solver in SOLVERS[2:] else [None, None]
        else:
            cells += [*([item.epsilon] if solver in SOLVERS[2:] else []), round(item.epochs), item.seconds]
    return cells


def _claims(
    found: dict[float, dict[str, dict[str, Found]]], failed: list[list[Cell]], trial: Table
) -> list[Claim]:
    def epochs(one: str, other: str, C: float) -> list[Part]:
        return [sooner(item[one].epochs, item[other].epochs) for item in found.get(C, {}).values()]

    def text(C: float) -> str:
        return "; ".join(
            f"{name}: " + ", ".join(f"{solver} {_shown(item.epochs)}" for solver, item in here.items())
            for name, here in found.get(C, {}).items()
        )

    def fewer(one: str, other: str, C: float) -> str:
        return f"{one} {tally(epochs(one, other, C))}; {text(C)}"

    closer = [
        sooner(item["sgd-s"].epsilon or 0.0, item["sgd-m"].epsilon or 0.0)
        for here in found.values()
        for item in here.values()
        if item["sgd-s"].epsilon is not None and item["sgd-m"].epsilon is not None
    ]
    claims = [
        verdict_on(
            f"{why} (C = {C:g})",
            mostly(epochs(one, other, C)),
            fewer(one, other, C),
        )
        for why, one, other in (
            ("multiple updates save epochs: SGD-m needs fewer than SGD-s", "sgd-m", "sgd-s"),
            ("complete epochs beat rows drawn at random: SGD-s needs fewer than SGD-r", "sgd-s", "sgd-r"),
        )
        for C in found
    ]
    claims += [
        _alike(found),
        _implementation(found),
        verdict_on(
            "SGD-s achieves a relative accuracy closer to its epsilon than SGD-m",
            mostly(closer),
            f"SGD-s has the smaller epsilon at the same 1% by more than a tenth in {closer.count(True)} of "
            f"{len(closer)} cells, by less or not in {closer.count('tie')}, the greater one in "
            f"{closer.count(False)}",
        ),
        *_cells_of_the_paper(failed, trial),
    ]
    return claims


def _alike(found: dict[float, dict[str, dict[str, Found]]]) -> Claim:
    pairs = [
        (item["pegasos"].epochs, item["sgd-r"].epochs) for here in found.values() for item in here.values()
    ]
    known = [pair for pair in pairs if math.isfinite(max(pair))]
    apart = [max(pair) / min(pair) for pair in known]
    return verdict_on(
        "(ours) our Pegasos and SGD-r need about equally many epochs: within a factor of 1.5",
        [ratio <= 1.5 for ratio in apart] or None,
        f"at most a factor of {max(apart, default=math.nan):.2g} in {len(apart)} cells; in the paper it "
        "is more: "
        "Adult 181 and 116, Physics 2 and 6 (C = 1)",
    )


def _implementation(found: dict[float, dict[str, dict[str, Found]]]) -> Claim:
    """Seconds an epoch at C = 1, where runs are not too short to be measured."""
    each = {
        name: [item[solver].seconds / item[solver].epochs for solver in ("pegasos", "sgd-r")]
        for name, item in found[1.0].items()
        if math.isfinite(max(item[solver].epochs for solver in ("pegasos", "sgd-r")))
    }
    parts = [sooner(ours, pegasos) for pegasos, ours in each.values()]
    ratios = [pegasos / ours for pegasos, ours in each.values()]
    theirs = PAPER[1.0]["Adult"]
    paper = (float(str(theirs[1])) / float(str(theirs[0]))) / (float(str(theirs[3])) / float(str(theirs[2])))
    return verdict_on(
        "the change of variable (4) makes an implementation more efficient: an epoch of SGD-r takes less "
        "time than "
        "one of Pegasos (C = 1)",
        mostly(parts),
        f"SGD-r {tally(parts)}; seconds an epoch of Pegasos over those of SGD-r: "
        f"{min(ratios, default=math.nan):.2g} "
        f"to {max(ratios, default=math.nan):.2g}, {paper:.2g} in the paper on Adult; ours share their data "
        "structures",
    )


def _near(row: Sequence[Cell]) -> bool | None:
    """Whether the median of the seeds is within a third of the paper's count."""
    counts = sorted(cell for cell in row[1:-1] if isinstance(cell, int))
    theirs = row[-1]
    if not counts or not isinstance(theirs, int):
        return None
    return abs(counts[len(counts) // 2] / theirs - 1.0) <= 1 / 3


def _stands_in(row: Sequence[Cell]) -> bool:
    return "(for " in str(row[0])


def _cells_of_the_paper(failed: list[list[Cell]], trial: Table) -> list[Claim]:
    """Claims on single cells of its tables."""
    return [
        verdict_on(
            "Pegasos runs into numerical problems (Covertype at C = 1; four sets at C = 10)",
            [isinstance(row[2], str) for row in failed if not _stands_in(row)] or None,
            "; ".join(f"{row[0]}, C = {row[1]:g}: {row[2]} epochs to 1%" for row in failed)
            + f". {len(failed)} of the paper's five cells were run, {sum(map(_stands_in, failed))} of them "
            "on "
            "stand-ins, which settle nothing about the sets that they stand for",
        ),
        verdict_on(
            "Adult at C = 1 takes Pegasos 181, SGD-r 116, SGD-s 111 and SGD-m 50 epochs",
            [_near(row) for row in trial.rows],
            "; ".join(
                f"{row[0]} {', '.join(map(str, row[1:-1]))} ({row[-1]} in the paper)" for row in trial.rows
            )
            + " by seed; counted as the same where the median of the seeds is within a third",
        ),
    ]
