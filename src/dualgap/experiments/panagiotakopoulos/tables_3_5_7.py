"""Tables 3, 5 and 7: seconds of linear SVMs to 1% of the optimum, each by its own rule (C = 1, 10, 0.05)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from time import process_time
from typing import Any, NamedTuple

from ...training.records import Record
from ...training.run import Run
from ..lab import Lab
from ..report import Cell, Claim, Part, Report, Table, mostly, sooner, tally, verdict_on
from ..sets import Rows
from . import common
from .common import Theirs

PAPER: dict[float, dict[str, Theirs]] = {  # SVMperf: epsilon, s; OCAS: s; DCD: epsilon, s; MPU: epsilon, s
    1.0: {
        "Adult": (0.7, 1.3, 0.06, 2.8, 0.14, 0.02, 0.09),
        "Web": (0.2, 0.27, 0.27, 6, 0.06, 0.01, 0.03),
        "Physics": (1.0, 0.30, 0.02, 23, 0.06, 0.06, 0.06),
        "Realsim": (0.08, 0.75, 0.59, 0.7, 0.20, 0.06, 0.22),
        "News20": (0.14, 12.5, 6.0, 0.4, 0.64, 0.03, 1.5),
        "Webspam": (0.5, 7.3, 4.2, 2.5, 1.4, 0.1, 0.95),
        "Covertype": (4.2, 45.6, 3.3, 6.5, 9.1, 0.1, 5.8),
        "C11": (0.09, 12.7, 8.9, 1.4, 3.5, 0.09, 2.4),
        "CCAT": (0.25, 19.1, 12.9, 1.6, 3.6, 0.1, 3.1),
    },
    10.0: {
        "Adult": (0.6, 37.0, 0.30, 2.6, 1.1, 0.04, 0.59),
        "Web": (0.23, 1.2, 0.50, 8, 0.17, 0.02, 0.06),
        "Physics": (1.3, 2.8, 0.09, 23, 0.30, 0.05, 0.20),
        "Realsim": (0.031, 4.2, 2.4, 0.25, 0.45, 0.02, 0.39),
        "News20": (0.019, 146.2, 40.7, 0.2, 1.5, 0.02, 2.1),
        "Webspam": (0.36, 36.6, 6.8, 2.2, 5.2, 0.2, 2.5),
        "Covertype": (2.1, 51.8, 15.8, 6.1, 90.8, 0.08, 36.3),
        "C11": (0.079, 38.6, 25.0, 0.65, 9.1, 0.02, 5.5),
        "CCAT": (0.14, 71.1, 35.2, 0.85, 11.7, 0.02, 7.8),
    },
    0.05: {
        "Adult": (1.1, 0.11, 0.05, 3, 0.02, 0.01, 0.03),
        "Web": (0.3, 0.08, 0.09, 4, 0.03, 0.01, 0.02),
        "Physics": (1.1, 0.08, 0.02, 12, 0.03, 0.02, 0.02),
        "Realsim": (0.7, 0.23, 0.19, 0.7, 0.14, 0.2, 0.14),
        "News20": (0.9, 1.3, 0.72, 3, 0.23, 0.2, 0.55),
        "Webspam": (1.1, 2.8, 2.3, 1, 1.1, 0.2, 0.69),
        "Covertype": (2.9, 53.2, 1.5, 6, 1.2, 0.3, 1.3),
        "C11": (0.11, 4.6, 2.9, 4, 1.4, 0.1, 1.4),
        "CCAT": (0.25, 7.1, 5.7, 1, 2.6, 0.1, 1.6),
    },
}
TABLES = {1.0: 3, 10.0: 5, 0.05: 7}
SOLVERS = ("svmperf", "ocas", "dcd", "mpu")
# Settings of the own rules from loose to tight, in the steps of the paper's tables.
GRIDS = {
    "svmperf": (
        0.05,
        0.03,
        0.02,
        0.014,
        0.01,
        0.007,
        0.005,
        0.003,
        0.002,
        0.0014,
        0.001,
        0.0005,
        0.0002,
        0.0001,
    ),
    "dcd": (32.0, 23.0, 16.0, 12.0, 8.0, 6.0, 4.0, 2.8, 2.0, 1.4, 1.0, 0.7, 0.4, 0.2, 0.1, 0.05, 0.02, 0.01),
    "mpu": (0.3, 0.2, 0.1, 0.06, 0.04, 0.02, 0.01, 0.006),
}
LIMIT = 10.0  # seconds of processor time a run; 1 where it is to be quick
LONGER = 100.0  # at C = 10 where SGD-m takes longer than that, of solvers that arrive
LARGE = {"covtype": SOLVERS, "wikitox-bow": ("ocas",)}
HEADER = (
    "data",
    *("svmperf: epsilon, %", "svmperf: s", "ocas: s", "dcd: epsilon", "dcd: s", "mpu: epsilon", "mpu: s"),
    *(f"{name}, paper" for name in ("svmperf: epsilon", "svmperf: s", "ocas: s", "dcd: epsilon", "dcd: s")),
    *(f"{name}, paper" for name in ("mpu: epsilon", "mpu: s")),
)
NOTE = (
    "epsilon: the loosest setting of the solver's own rule that ends within 1% of the optimum, as in the "
    f"paper. {common.TIMED}The paper's epsilon of SVMperf is in percent. "
    f"Not reached: with no setting, within {LIMIT:g} s of processor time ({LONGER:g} at C = 10 on "
    "Covertype, and of OCAS on wikitox-bow) and 1,000 passes a run."
)
REMARKS = (
    "All four are our implementations and not the authors' programs; mpu is a reconstruction from its "
    "description.",
    "The largest setting of a grid (5, 32, 0.3) means that any looser one might have done too.",
    "At C = 10 the stand-in for News20 is not run, as in Table 4.",
    "DCD here visits rows in fresh permutations with shrinking, as LIBLINEAR does.",
)


class Found(NamedTuple):
    """The loosest sufficient setting, and the seconds that it takes."""

    setting: float | None
    seconds: float


def run(lab: Lab) -> Report:
    """All sets at hand at the three values of C."""
    tables = []
    found: dict[float, dict[str, dict[str, Found]]] = {}
    for C in [1.0] if lab.quick else PAPER:
        table: list[list[Cell]] = []
        found[C] = {}
        for row in common.sets(lab, C):
            theirs: Theirs = PAPER[C][row.name] if not row.stands_for else (None,) * 7
            if row.rows is None:
                table.append([common.heading(row), *([None] * 7), *theirs])
                continue
            here = found[C][row.rows.name] = measured(lab, row.rows, C)
            table.append([common.heading(row), *_cells(here), *theirs])
        tables.append(Table(f"Table {TABLES[C]}: C = {C:g}", HEADER, table, NOTE))
    return Report(_claims(found), tables, (), REMARKS, lab.data)


def measured(lab: Lab, rows: Rows, C: float) -> dict[str, Found]:
    """Settings first, then seconds in turns."""
    goal = (1.0 + common.ACCURACY) * lab.optimum(rows, C=C)
    key = {"tables-3-5-7": rows.name, "rows": rows.n, "C": C}
    if any(limit(lab, rows, solver, C) > LIMIT for solver in SOLVERS):
        key["limit"] = LONGER
    settings: dict[str, float | None] = lab.once(
        {**key, "what": "settings"},
        lambda: {solver: loosest(lab, rows, solver, C, goal) for solver in SOLVERS},
    )
    runs = {
        solver: partial(trained, lab, rows, solver, C, setting)
        for solver, setting in settings.items()
        if setting is not None
    }
    seconds = common.seconds(lab, rows, key, runs)
    return {solver: Found(settings[solver], seconds.get(solver, math.inf)) for solver in SOLVERS}


def limit(lab: Lab, rows: Rows, solver: str, C: float) -> float:
    """Seconds of processor time that a run may take."""
    if lab.quick:
        return 1.0
    return LONGER if C == 10.0 and solver in LARGE.get(rows.name, ()) else LIMIT


def loosest(lab: Lab, rows: Rows, solver: str, C: float, goal: float, **options: Any) -> float | None:
    """The loosest setting of a solver's own rule whose model is good enough; None: none within the time."""
    if solver == "ocas":  # is told the value to stop at
        return goal if trained(lab, rows, solver, C, goal).certificate.primal <= goal else None
    for setting in GRIDS[solver][::3] if lab.quick else GRIDS[solver]:
        outcome = trained(lab, rows, solver, C, setting, **options)
        if outcome.certificate.primal <= goal:
            return setting
        if outcome.reason.name in ("callback", "max_epochs"):
            return None  # a tighter setting would take longer still
    return None


def trained(lab: Lab, rows: Rows, solver: str, C: float, setting: float, **options: Any) -> Any:
    """A run that ends by the solver's own rule."""
    own: dict[str, Any] = {
        "svmperf": {"epsilon": setting},
        "ocas": {"q": setting},
        "dcd": {"pg_tol": setting},
        "mpu": {"delta": setting, "delta_stop": setting},
    }[solver]
    started, most = process_time(), limit(lab, rows, solver, C)

    def over(record: Record, run: Run) -> bool:
        return process_time() - started > most

    return lab.own(
        rows,
        C=C,
        solver=solver,
        callbacks=[over],
        **own,
        **options,
    )


def _cells(found: dict[str, Found]) -> list[Cell]:
    cells: list[Cell] = []
    for solver in SOLVERS:
        item = found[solver]
        known = item.setting is not None
        if solver != "ocas":
            percent = 100.0 if solver == "svmperf" else 1.0
            cells.append(percent * item.setting if item.setting is not None else None)
        cells.append(item.seconds if known else "not reached")
    return cells


def _claims(found: dict[float, dict[str, dict[str, Found]]]) -> list[Claim]:
    def faster(C: float, one: str, other: str) -> list[Part]:
        return [sooner(item[one].seconds, item[other].seconds) for item in found.get(C, {}).values()]

    def text(C: float, *solvers: str) -> str:
        return "; ".join(
            f"{name}: " + ", ".join(f"{solver} {_seconds(item[solver].seconds)}" for solver in solvers)
            for name, item in found.get(C, {}).items()
        )

    def claim(said: str, one: str, other: str, values: Sequence[float]) -> Claim:
        return verdict_on(
            said,
            [mostly(faster(C, one, other)) for C in values],
            "; ".join(
                f"C = {C:g}: {one} {tally(faster(C, one, other))} ({text(C, one, other)})" for C in values
            ),
        )

    return [
        *(
            claim(f"MPU clearly outperforms {other.upper()} for most sets (C = 10)", "mpu", other, [10.0])
            for other in ("dcd", "ocas")
        ),
        *(
            claim(f"(ours) {one.upper()} is faster than SVMperf at every C", one, "svmperf", list(found))
            for one in ("ocas", "dcd", "mpu")
        ),
    ]


def _seconds(value: float) -> str:
    return "not reached" if math.isinf(value) else f"{value:.3g} s"
