"""Table 8: SvmSgd, SGD-QN, SGD-m and MPU in single precision, to 1% of the optimum (C = 1)."""

from __future__ import annotations

import math
from typing import Any

from ..lab import Lab
from ..report import Cell, Report, Table, verdict_on
from ..sets import Rows
from . import common
from .common import Theirs

C = 1.0
PAPER: dict[str, Theirs] = {  # SvmSgd: T, s; SGD-QN: T, s; SGD-m: T, s; MPU: s
    "Adult": (261, 0.59, 39, 0.06, 50, 0.11, 0.06),
    "Web": (49, 0.16, 39, 0.11, 14, 0.05, 0.03),
    "Physics": (2, 0.03, 1, 0.02, 3, 0.03, 0.03),
    "Realsim": (29, 0.41, 27, 0.37, 16, 0.33, 0.16),
    "News20": (199, 9.3, None, None, 25, 1.7, 1.2),
    "Webspam": (10, 0.84, 6, 0.58, 5, 0.84, 0.69),
    "Covertype": (573, 28.6, 14, 0.65, 42, 4.4, 5.6),
    "C11": (23, 5.0, 21, 4.7, 8, 3.0, 1.9),
    "CCAT": (23, 5.2, 23, 5.7, 7, 2.9, 2.4),
}
SINGLE = {"precision": "float32"}
QUIET = {"duals": False, "polish": 0}
# The first permutation of SGD-m is the order of the others: a fixed order with the same seed.
SOLVERS: dict[str, dict[str, Any]] = {
    "svmsgd": {"order": "fixed", **SINGLE, **QUIET},
    "sgd-qn": {"order": "fixed", **SINGLE, **QUIET},
    "sgd-m": SINGLE,
    "mpu": SINGLE,
}
LIMIT = 1000  # epochs
REPEATS = 3
HEADER = (
    "data",
    *(f"{solver}: {what}" for solver in SOLVERS for what in ("T", "s")),
    *(f"{solver}: {what}, paper" for solver in ("svmsgd", "sgd-qn", "sgd-m") for what in ("T", "s")),
    "mpu: s, paper",
)


def run(lab: Lab) -> Report:
    """All sets at hand."""
    table: list[list[Cell]] = []
    ahead: list[bool | None] = []
    best: list[bool] = []
    for row in common.sets(lab):
        theirs: Theirs = PAPER[row.name] if not row.stands_for else (None,) * 7
        if row.rows is None:
            table.append([common.heading(row), *([None] * 8), *theirs])
            continue
        found = measured(lab, row.rows)
        cells: list[Cell] = []
        for epochs, seconds in found.values():
            cells += [None, None] if math.isinf(epochs) else [round(epochs, 1), seconds]
        table.append([common.heading(row), *cells, *theirs])
        ahead.append(found["sgd-m"][1] < found["sgd-qn"][1])
        best.append(found["mpu"][1] <= min(seconds for _, seconds in found.values()))
    claims = (
        verdict_on(
            "SGD-m is faster than SGD-QN, on sparse data of many columns above all",
            ahead,
            "columns of seconds",
        ),
        verdict_on("MPU is the fastest of the four", best, "columns of seconds"),
    )
    note = (
        "T: the first whole number of epochs at which the own point is within 1% of the optimum. Seconds: "
        "training alone, least of three, in turns; calibration and shuffling included."
    )
    return Report(claims, (Table("Table 8: C = 1, single precision", HEADER, table, note),), (), (), lab.data)


def measured(lab: Lab, rows: Rows) -> dict[str, tuple[float, float]]:
    """Epochs and seconds of every solver."""
    goal = (1.0 + common.ACCURACY) * lab.optimum(rows, C=C)

    def measure() -> dict[str, Any]:
        epochs = {
            solver: common.first_epoch(lab, rows, solver, C, goal, LIMIT, **o)[0]
            for solver, o in SOLVERS.items()
        }
        seconds = dict.fromkeys(SOLVERS, math.inf)
        for _ in range(1 if lab.quick else REPEATS):
            for solver, count in epochs.items():
                if math.isfinite(count):
                    took = common.seconds(lab, rows, solver, C, count, **SOLVERS[solver])
                    seconds[solver] = min(seconds[solver], took)
        return {solver: [epochs[solver], seconds[solver]] for solver in SOLVERS}

    found = lab.once({"table-8": rows.name, "rows": rows.n}, measure)
    return {solver: (pair[0], pair[1]) for solver, pair in found.items()}
