"""Table 1: the epochs that SGD-s needs to a relative accuracy of 1e-5 (C = 0.1), with both bounds."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..lab import Lab, certified
from ..report import Cell, Report, Table, verdict_on
from ..sets import Rows
from . import common

C = 0.1
PAPER = {  # T, J, L
    "Adult": (208_174, 1149.904, 1149.893),
    "Web": (16_849, 755.1139, 755.1064),
    "Physics": (13_668, 4995.139, 4995.089),
    "Realsim": (4209, 1437.315, 1437.301),
    "News20": (2178, 902.5611, 902.5521),
    "Webspam": (27_680, 8284.781, 8284.698),
    "Covertype": (712_648, 36427.52, 36427.16),
    "C11": (5670, 5174.432, 5174.381),
    "CCAT": (7987, 12114.29, 12114.17),
}
# To 1e-5 where time allows, as on the paper's own sets Adult and Web; 700,000 epochs of Covertype are days.
TIGHT, LOOSE = 1e-5, 1e-4
LOOSER = {"covtype": 1e-2, "20news-bigram": LOOSE, "wikitox-bow": LOOSE}
COEFFICIENTS = (2.0, 8.0, 32.0, 128.0)  # f, raised until the epochs settle
ONCE = {"a9a": (2.0,), "covtype": (2.0,)}  # a run takes long
WAY = "covtype"  # the set that is followed on the way to 1e-4
WAY_EPOCHS = 2300  # and so far: three minutes on an idle machine
LOOKED = 50  # epochs between two looks at it
GOALS = (1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4)


def run(lab: Lab) -> Report:
    """SGD-s by the paper's rule on every set at hand."""
    table: list[list[Cell]] = []
    tables: list[Table] = []
    remarks = REMARKS
    agreement: list[bool] = []
    said: list[str] = []
    loose: list[str] = []
    for row in common.sets(lab):
        own = row.stands_for == ""
        theirs: tuple[Cell, ...] = _theirs(row.name) if own else (None, None, None)
        if row.rows is None:
            table.append([common.heading(row), None, None, None, None, None, None, *theirs])
            continue
        epsilon = 1e-2 if lab.quick else _epsilon(row.rows)
        found = settle(lab, row.rows, epsilon)
        table.append(
            [
                common.heading(row),
                "{:,} x {:,}".format(*row.rows.X.shape),
                f"{epsilon:g}",
                found["f"],
                round(found["T"]),
                f"{found['J']:.7g}",  # the digits that the paper gives
                f"{found['L']:.7g}",
                *theirs,
            ]
        )
        if own and epsilon == TIGHT:
            T, J, L = PAPER[row.name]
            agreement += [abs(found["J"] / J - 1.0) <= 2e-5, abs(found["L"] / L - 1.0) <= 2e-5]
            said.append(f"{row.name}: T {found['T']:,.0f} (theirs {T:,}), J {found['J']:.7g} ({J:.7g})")
        elif row.rows.name != WAY:
            loose.append(
                f"{row.rows.name} to {epsilon:g} only"
                if epsilon != TIGHT
                else f"{row.rows.name} to {TIGHT:g}"
            )
        if row.rows.name == WAY:
            way = _way(lab, row.rows)
            tables.append(_way_table(way))
            loose.append(
                f"Covertype to {way.gaps[-1]:.2g} in {way.epochs[-1]:,.0f} epochs (theirs "
                f"{PAPER['Covertype'][0]:,} to {TIGHT:g})"
            )
            remarks += (_extrapolated(way),)
    claims = (
        verdict_on(
            "SGD-s obtains extremely accurate solutions: it closes the gap to 1e-5, at the same optimum",
            agreement or None,
            "; ".join(said + loose) or "run in full on real data only",
        ),
    )
    return Report(claims, (Table("Table 1", HEADER, table, NOTE), *tables), (), remarks, lab.data)


HEADER = (
    *("data", "instances x attributes", "epsilon", "f", "T", "J", "L"),
    *("T, paper", "J, paper", "L, paper"),
)
NOTE = (
    "J and L in C-form, without bias. SGD-s computes J once its estimate is within f epsilon; f is raised "
    "until the epochs do not change any more."
)
REMARKS: tuple[str, ...] = (
    "Large and generated stand-ins are run to 1e-4, the rest to 1e-5; epochs grow like 1/epsilon.",
    "f is raised fourfold from 2 until the epochs do not fall any more; a 2 in the table says that 8 was "
    "not better, but for Adult and Covertype, where a run takes long and 2 alone was tried.",
    "Epochs depend on the random permutations; a percent or two from seed to seed is usual.",
)


class Way(NamedTuple):
    """A run towards 1e-4: both bounds at every so many epochs, and seconds of the processor."""

    epochs: list[float]
    J: list[float]
    L: list[float]
    seconds: float  # an epoch

    @property
    def gaps(self) -> list[float]:
        """Relative ones of the own point."""
        return [J / L - 1.0 for J, L in zip(self.J, self.L, strict=True)]


def _way(lab: Lab, rows: Rows) -> Way:
    """SGD-s on its way to 1e-4, for so many epochs at most."""

    def measure() -> dict[str, Any]:
        outcome = lab.own(
            rows,
            C=C,
            solver="sgd-s",
            epsilon=LOOSE,
            f=2.0,
            max_epochs=WAY_EPOCHS,
            record_every=LOOKED * rows.n,
        )
        seen = [record for record in certified(outcome) if record.epochs and record.epochs % LOOKED == 0]
        return {
            "epochs": [record.epochs for record in seen],
            "J": [record.current.primal for record in seen],
            "L": [record.current.dual for record in seen],
            "seconds": outcome.seconds.training / outcome.epochs,
        }

    return Way(**lab.once({"table-1 way": rows.name, "rows": rows.n, "epochs": WAY_EPOCHS}, measure))


def _way_table(way: Way) -> Table:
    table: list[list[Cell]] = []
    for goal in (*GOALS, way.gaps[-1]):
        place = next((k for k, gap in enumerate(way.gaps) if gap <= goal), None)
        if place is not None:
            cells = round(way.epochs[place]), f"{way.J[place]:.7g}", f"{way.L[place]:.7g}"
            table.append([f"{goal:.2g}", *cells])
    title = "Covertype on the way to 1e-4: the first epoch at which J and L are so close"
    note = f"Looked at every {LOOKED} epochs, the last time in the end; the paper has T = 712,648 at 1e-5."
    return Table(title, ("relative accuracy", "T", "J", "L"), table, note)


def _extrapolated(way: Way) -> str:
    """The epochs and hours to 1e-4, by the power of T with which the gap fell in the last half."""
    half = len(way.epochs) // 2
    x, y = np.log(way.epochs[half:]), np.log(way.gaps[half:])
    power, level = (float(value) for value in np.polyfit(x, y, 1))
    epochs = math.exp((math.log(LOOSE) - level) / power)
    return (
        f"Covertype is run to 1e-2 by the paper's rule, and followed for {way.epochs[-1]:,.0f} epochs on the "
        f"way to 1e-4. Its gap fell like T^{power:.2f} in the last half of them; going on like that, 1e-4 "
        f"takes some {round(epochs, -3):,.0f} epochs, or {epochs * way.seconds / 3600:.1f} hours at "
        f"{way.seconds:.2g} "
        "seconds of the processor an epoch, without the evaluations of the rule."
    )


def _theirs(name: str) -> tuple[Cell, ...]:
    T, J, L = PAPER[name]
    return T, f"{J:.7g}", f"{L:.7g}"


def _epsilon(rows: Rows) -> float:
    if "generated" in rows.name:
        return LOOSE
    return LOOSER.get(rows.name, TIGHT)


def settle(lab: Lab, rows: Rows, epsilon: float) -> dict[str, Any]:
    """SGD-s with larger and larger f, until the number of epochs is that of the last one."""
    last: dict[str, Any] = {}
    for f in ONCE.get(rows.name, COEFFICIENTS):
        key = {"table-1": rows.name, "rows": rows.n, "epsilon": epsilon, "f": f}
        found = lab.once(key, partial(_sgd_s, lab, rows, epsilon, f))
        if last and found["T"] >= last["T"]:
            return last
        last = found
    return last


def _sgd_s(lab: Lab, rows: Rows, epsilon: float, f: float) -> dict[str, float]:
    outcome = lab.own(
        rows,
        C=C,
        solver="sgd-s",
        epsilon=epsilon,
        f=f,
        max_epochs=None,
    )
    own = outcome.trace[-1].current
    return {"f": f, "T": outcome.epochs, "J": own.primal, "L": own.dual}
