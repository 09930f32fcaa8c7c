"""What the tables of this paper share: its nine data sets, and what stands in for those nobody has here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter, process_time
from typing import Any, NamedTuple

from ...outcome import Outcome
from ...training.records import Record
from ...training.run import Run
from .. import generated
from ..lab import Lab
from ..report import Cell
from ..sets import Rows

Theirs = tuple[Cell, ...]  # figures of the paper
ACCURACY = 0.01  # (J - J_opt) / J_opt of Tables 2 to 8
WEBSPAM_ROWS = 50_000  # of 350,000
REPEATS = 2  # of every timed run, but for large sets
LARGE = 25e6  # cells of the matrix
TIMED = "Seconds: training alone, least of two runs in turns (large sets: of one). "


class Row(NamedTuple):
    """A row of a table: a set of the paper, or a stand-in with the set that it stands for."""

    name: str  # of the paper's set
    rows: Rows | None  # None: not at hand
    stands_for: str = ""  # where the rows are not the paper's
    missing: str = "not at hand"  # why there are no rows


NAMES = ("Adult", "Web", "Physics", "Realsim", "News20", "Webspam", "Covertype", "C11", "CCAT")
AT_HAND = {"Adult": "a9a", "Web": "w8a", "Covertype": "covtype"}
# Text of unit length for Real-sim and RCV1, word pairs for News20; rows are generated for the other two.
STAND_INS = {"Realsim": "reuters-earn", "News20": "20news-bigram", "CCAT": "wikitox-bow"}
# Four solvers with an evaluation of 1.3 million columns after each of some 800 epochs: take it out to run it.
NOT_RUN = {("News20", 10.0)}
STANDS_FOR = {"CCAT": "C11 and CCAT"}  # one collection of documents in the paper too
STANDS_WITH = {"C11": "CCAT"}  # whose stand-in is that of both


def sets(lab: Lab, C: float = 1.0, *, quick: int = 500) -> Iterator[Row]:
    """The rows of a table, in the order of the paper; a stand-in follows the set that it stands for."""
    for name in NAMES[:3] if lab.quick else NAMES:
        if (name, C) in NOT_RUN or (STANDS_WITH.get(name), C) in NOT_RUN:
            at_hand = "" if name in AT_HAND else "not at hand, its stand-in "
            yield Row(name, None, missing=f"{at_hand}not run at this C")
            continue
        if name in AT_HAND:
            rows = lab.rows(AT_HAND[name], quick)
            yield Row(name, rows, "" if rows.name in (AT_HAND[name],) else name)
            continue
        yield Row(name, None)
        if name in STAND_INS and not lab.quick:
            yield Row(name, lab.rows(STAND_INS[name]), STANDS_FOR.get(name, name))
        elif name == "Physics":
            n = quick if lab.quick else 50_000
            X, y = generated.measured_like(n, 70, seed=7)
            note = f"{n:,} generated rows of 70 columns, times 0.1"
            yield Row(name, lab.given(Rows("physics-like (generated)", 0.1 * X, y, note)), name)
        elif name == "Webspam":
            X, y = generated.unigrams_like(WEBSPAM_ROWS, 254, seed=8)
            note = f"{WEBSPAM_ROWS:,} generated rows of 254 columns, a third full, of unit length"
            yield Row(name, lab.given(Rows("webspam-like (generated)", X, y, note)), name)


def heading(row: Row) -> Cell:
    """The first cell of a row."""
    if row.rows is None:
        return f"{row.name}: {row.missing}"
    return f"{row.rows.name} (for {row.stands_for})" if row.stands_for else f"{row.name} = {row.rows.name}"


def first_epoch(
    lab: Lab, rows: Rows, solver: str, C: float, goal: float, limit: float, **options: Any
) -> tuple[float, float | None]:
    """The first whole epoch at which a solver's own point has an objective of at most ``goal``, and its
    relative gap there where it has a dual point of its own; inf where there is none up to the limit.
    """
    reached: list[tuple[float, float]] = []

    def look(record: Record, run: Run) -> bool:
        if record.kind == "certified" and record.current.primal <= goal:
            reached.append((float(math.ceil(record.epochs)), record.current.relative_gap))
        return bool(reached)

    lab.own(
        rows,
        C=C,
        solver=solver,
        max_epochs=min(limit, 60) if lab.quick else limit,
        record_every=rows.n,
        callbacks=[look],
        **options,
    )
    if not reached:
        return math.inf, None
    epochs, gap = reached[0]
    return epochs, gap if solver in ("sgd-s", "sgd-m") else None


def trained(lab: Lab, rows: Rows, solver: str, C: float, epochs: float, **options: Any) -> Outcome:
    """A run of so many epochs, without certificates."""
    return lab.own(rows, C=C, solver=solver, max_epochs=epochs, **options)


def seconds(
    lab: Lab, rows: Rows, key: dict[str, Any], runs: Mapping[str, Callable[[], Outcome]]
) -> dict[str, float]:
    """Seconds of training of every run, the least of them, in turns.

    What others do on the machine at the same time is left out: seconds of training are multiplied by the
    share of the time in which the process ran.
    """

    def measure() -> dict[str, float]:
        least = dict.fromkeys(runs, math.inf)
        for _ in range(1 if lab.quick or rows.X.shape[0] * rows.X.shape[1] > LARGE else REPEATS):
            for solver, run in runs.items():
                wall, processor = perf_counter(), process_time()
                training = run().seconds.training
                share = (process_time() - processor) / (perf_counter() - wall)
                least[solver] = min(least[solver], training * min(1.0, share))
        return least

    found: dict[str, float] = lab.once({**key, "what": "seconds"}, measure)
    return found
