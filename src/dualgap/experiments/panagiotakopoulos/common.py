"""What the tables of this paper share: its nine data sets, and what stands in for those nobody has here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .. import generated
from ..lab import Lab
from ..report import Cell
from ..sets import Rows

ACCURACY = 0.01  # (J - J_opt) / J_opt of Tables 2 to 8


class Row(NamedTuple):
    """A row of a table: a set of the paper, or a stand-in with the set that it stands for."""

    name: str  # of the paper's set
    rows: Rows | None  # None: not at hand
    stands_for: str = ""  # where the rows are not the paper's


NAMES = ("Adult", "Web", "Physics", "Realsim", "News20", "Webspam", "Covertype", "C11", "CCAT")
AT_HAND = {"Adult": "a9a", "Web": "w8a", "Covertype": "covtype"}
# Text of unit length for Real-sim and RCV1, word pairs for News20, and generated measurements for Physics.
STAND_INS = {"News20": "20news-bigram", "CCAT": "wikitox-bow", "Realsim": "reuters-earn"}


def sets(lab: Lab, *, quick: int = 1500) -> Iterator[Row]:
    """The rows of a table, in the order of the paper; a stand-in follows the set that it stands for."""
    for name in NAMES:
        if name in AT_HAND:
            rows = lab.rows(AT_HAND[name], quick)
            yield Row(name, rows, "" if rows.name in (AT_HAND[name],) else name)
            continue
        yield Row(name, None)
        if name in STAND_INS and not lab.quick:
            yield Row(name, lab.rows(STAND_INS[name]), name)
        elif name == "Physics":
            n = quick if lab.quick else 50_000
            X, y = generated.measured_like(n, 70, seed=7)
            note = f"{n:,} generated rows of 70 columns, times 0.1"
            yield Row(name, lab.given(Rows("physics-like (generated)", 0.1 * X, y, note)), name)


def heading(row: Row) -> Cell:
    """The first cell of a row."""
    if row.rows is None:
        return f"{row.name}: not at hand"
    return f"{row.rows.name} (for {row.stands_for})" if row.stands_for else f"{row.name} = {row.rows.name}"
