"""Ratios of seconds between solvers over Tables 2 to 7, ours beside the paper's: which orderings hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

from ..lab import Lab
from ..report import Cell, Claim, Part, Report, Table, mostly, sooner, tally, verdict_on
from . import common, tables_2_4_6, tables_3_5_7

PRIMAL, DUAL = tables_2_4_6.SOLVERS, tables_3_5_7.SOLVERS
# Places of the seconds in the rows of the paper's tables.
PLACES = {
    **dict(zip(PRIMAL, (1, 3, 6, 9), strict=True)),
    **dict(zip(DUAL, (1, 2, 4, 6), strict=True)),
}
RATIOS = (
    ("pegasos", "sgd-r"),
    ("sgd-r", "sgd-s"),
    ("sgd-s", "sgd-m"),
    ("pegasos", "sgd-m"),
    ("svmperf", "sgd-m"),
    ("ocas", "sgd-m"),
    ("sgd-m", "dcd"),
    ("sgd-m", "mpu"),
    ("dcd", "mpu"),
)
RIVALS = ("dcd", "mpu")  # the fastest of the linear SVMs
LARGEST = ("covtype", "wikitox-bow")
Seconds = dict[str, float]  # of each solver; inf where it did not arrive


class Cells(NamedTuple):
    """Seconds of every solver on the sets of one table, ours and, where it is the paper's set, theirs."""

    ours: dict[str, Seconds]
    theirs: dict[str, Seconds]


def run(lab: Lab) -> Report:
    """Both families of tables at every C."""
    found: dict[float, Cells] = {}
    tables = []
    for C in [1.0] if lab.quick else sorted(tables_2_4_6.PAPER):
        cells = Cells({}, {})
        rows: list[list[Cell]] = []
        for row in common.sets(lab, C):
            if row.rows is None or (lab.quick and rows):
                continue
            ours = {solver: item.seconds for solver, item in tables_2_4_6.measured(lab, row.rows, C).items()}
            ours |= {solver: item.seconds for solver, item in tables_3_5_7.measured(lab, row.rows, C).items()}
            theirs = paper(C, row.name) if not row.stands_for else {}
            cells.ours[row.rows.name] = ours
            cells.theirs[row.rows.name] = theirs
            rows.append([common.heading(row), *(_pair(ours, theirs, *pair) for pair in RATIOS)])
        found[C] = cells
        header = ("data", *(f"{one} / {other}" for one, other in RATIOS))
        tables.append(Table(f"C = {C:g}: ratios of seconds, in parentheses the paper's", header, rows))
    return Report(_claims(found), tables, (), REMARKS, lab.data)


REMARKS = (
    "A ratio above 1 says that the second solver is the faster one; inf: the first solver did not arrive, 0: "
    "the second did not, a dash: neither did, or the paper's Pegasos failed. Short runs of a few "
    "milliseconds are uncertain by some tens of percent.",
    "All solvers are ours and share their data structures, so these ratios compare algorithms; the paper's "
    "compare programs, of which Pegasos, SVMperf, OCAS and DCD were other people's.",
    '"Statistically faster" is taken as: faster by more than a tenth on more than half of the sets.',
)


def paper(C: float, name: str) -> Seconds:
    """The paper's seconds of all eight solvers."""
    found = {}
    for family, published in ((PRIMAL, tables_2_4_6.PAPER), (DUAL, tables_3_5_7.PAPER)):
        for solver in family:
            value = published[C][name][PLACES[solver]]
            found[solver] = float(value) if isinstance(value, int | float) else math.inf
    return found


def _pair(ours: Seconds, theirs: Seconds, one: str, other: str) -> Cell:
    shown = _ratio(ours, one, other)
    if not theirs:
        return shown
    failed = math.isinf(theirs[one]) or math.isinf(theirs[other])
    return f"{shown} ({'-' if failed else _ratio(theirs, one, other)})"


def _ratio(seconds: Seconds, one: str, other: str) -> str:
    if math.isinf(seconds[one]) and math.isinf(seconds[other]):
        return "-"
    if math.isinf(seconds[one]):
        return "inf"
    return f"{seconds[one] / seconds[other]:.2g}"


def _claims(found: dict[float, Cells]) -> list[Claim]:
    def ahead(C: float, one: str, other: str) -> list[Part]:
        cells = found.get(C)
        return [sooner(item[one], item[other]) for item in cells.ours.values()] if cells else [None]

    def counted(C: float, *pairs: tuple[str, str]) -> str:
        def said(one: str, other: str) -> str:
            parts = ahead(C, one, other)
            return f"{one} before {other}: {tally(parts)}"

        return f"C = {C:g}: " + "; ".join(said(*pair) for pair in pairs)

    def claim(text: str, C: float, *pairs: tuple[str, str]) -> Claim:
        return verdict_on(text, [mostly(ahead(C, *pair)) for pair in pairs], counted(C, *pairs))

    def each(ones: tuple[str, ...], others: tuple[str, ...]) -> list[tuple[str, str]]:
        return [(one, other) for one in ones for other in others]

    falling = (("sgd-r", "pegasos"), ("sgd-s", "sgd-r"), ("sgd-m", "sgd-s"))
    return [
        claim("time falls from Pegasos over SGD-r and SGD-s to SGD-m", 1.0, *falling),
        _substantial(found[1.0]),
        claim("DCD and MPU are statistically faster than SGD-m", 1.0, *each(("dcd", "mpu"), ("sgd-m",))),
        claim(
            "SGD-s and SGD-m are considerably faster than SVMperf and statistically faster than OCAS",
            1.0,
            *each(("sgd-s", "sgd-m"), ("svmperf", "ocas")),
        ),
        claim("at C = 10 SGD-m is still statistically faster than SVMperf", 10.0, ("sgd-m", "svmperf")),
        claim("at C = 10 SGD-m is slower than OCAS", 10.0, ("ocas", "sgd-m")),
        claim(
            "at C = 0.05 SGD-r, SGD-s and SGD-m all are statistically faster than the linear SVMs",
            0.05,
            *each(PRIMAL[1:], DUAL),
        ),
        claim(
            "at C = 0.05 Pegasos outperforms SVMperf, and OCAS on most sets",
            0.05,
            *each(("pegasos",), ("svmperf", "ocas")),
        ),
        _scaling(found),
        *_distances(found),
    ]


def _distances(found: dict[float, Cells]) -> list[Claim]:
    """How far SGD-m and the others are apart, by set and by C."""
    known = {0.05, 1.0, 10.0} <= found.keys()
    one = {other: _times(found, 1.0, "sgd-m", other) for other in RIVALS}
    near = {other: [ratio <= 2.0 for ratio in values.values()] for other, values in one.items()}
    largest = {
        (other, name): one[other][name] <= 2.0 for other in RIVALS for name in LARGEST if name in one[other]
    }
    comparable = {
        (C, other): [ratio <= 1.1 for ratio in _times(found, C, "sgd-m", other).values()]
        for C in (0.05, 1.0)
        for other in DUAL
    }
    low = [("sgd-m", other) for other in DUAL]
    return [
        verdict_on(
            "DCD's and MPU's differences from SGD-m are not very large (here: up to a factor of 2), "
            "especially for the largest sets (C = 1)",
            [*(mostly(parts) for parts in near.values()), *largest.values()],
            "; ".join(
                f"sgd-m / {other}: within 2 on {near[other].count(True)} of {len(near[other])} sets "
                f"({_said(values)})"
                for other, values in one.items()
            )
            + "; of the two largest: "
            f"{', '.join(f'{name} ({other})' for (other, name), part in largest.items() if part) or 'none'}",
        ),
        _changed(
            "lowering C favours the SGD algorithms (here: SGD-m beside each linear SVM)",
            found,
            (1.0, 0.05),
            low,
            _plain,
        ),
        _changed(
            "at C = 10 the differences are magnified",
            found,
            (10.0, 1.0),
            [*low, ("pegasos", "sgd-m")],
            _factor,
        ),
        _changed(
            "as C decreases the differences among the algorithms are alleviated",
            found,
            (1.0, 0.05),
            [*low, ("pegasos", "sgd-m")],
            _factor,
        ),
        verdict_on(
            "for tasks of low or medium intensity SGD-m is comparable to the linear SVMs or faster "
            "(here: at most a tenth slower at C = 0.05 and 1)",
            [mostly(parts) for parts in comparable.values()] if known else None,
            "; ".join(
                f"C = {C:g}, {other}: on {parts.count(True)} of {len(parts)} sets"
                for (C, other), parts in comparable.items()
            ),
        ),
    ]


def _times(found: dict[float, Cells], C: float, one: str, other: str) -> dict[str, float]:
    """The seconds of one solver over those of another, set by set."""
    cells = found[C].ours.items() if C in found else ()
    return {name: item[one] / item[other] for name, item in cells if math.isfinite(item[one])}


def _said(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.2g}" for name, value in values.items())


def _plain(ratio: float) -> float:
    return ratio


def _factor(ratio: float) -> float:
    """A difference, whoever is ahead."""
    return max(ratio, 1.0 / ratio if ratio else math.inf)


def _changed(
    text: str,
    found: dict[float, Cells],
    values: tuple[float, float],
    pairs: Sequence[tuple[str, str]],
    size: Callable[[float], float],
) -> Claim:
    """Whether a size of ratios of seconds is smaller at the second C than at the first, pair by pair, on most
    of the sets that were run at both.
    """
    if not set(values) <= found.keys():
        return verdict_on(text, None, "run in full only")
    parts, said = [], []
    for one, other in pairs:
        first, second = (_times(found, C, one, other) for C in values)
        names = [name for name in first if name in second]
        before, after = ([size(values[name]) for name in names] for values in (first, second))
        smaller = [sooner(less, more) for less, more in zip(after, before, strict=True)]
        parts.append(mostly(smaller))
        said.append(
            f"{one} / {other} smaller on {smaller.count(True)} of {len(names)} sets, greater on "
            f"{smaller.count(False)}, "
            f"median {median(after):.2g} against {median(before):.2g}"
        )
    what = "ratios of seconds" if size is _plain else "factors between seconds, whoever is ahead,"
    return verdict_on(
        text, parts, f"{what} at C = {values[1]:g} against C = {values[0]:g}: " + "; ".join(said)
    )


def _scaling(found: dict[float, Cells]) -> Claim:
    """Whether seconds of the linear SVMs grow less from C = 1 to C = 10 than those of the SGD algorithms."""
    text = "the time of linear SVMs scales much better as C increases"
    if not {1.0, 10.0} <= found.keys():
        return verdict_on(text, None, "run in full only")

    names = found[1.0].ours.keys() & found[10.0].ours.keys()

    def growth(solver: str) -> list[float]:
        pairs = [(found[1.0].ours[name][solver], found[10.0].ours[name][solver]) for name in names]
        return [after / before for before, after in pairs if math.isfinite(before)]

    medians = {solver: median(values) for solver in (*PRIMAL, *DUAL) if (values := growth(solver))}
    parts = [
        sooner(medians[dual], medians[primal])
        for dual in DUAL
        for primal in PRIMAL
        if dual in medians and primal in medians
    ]
    shown = ", ".join(f"{solver} {value:.2g}" for solver, value in medians.items())
    evidence = (
        f"median factor from C = 1 to C = 10 over {len(names)} sets: {shown} (inf: at C = 10 not reached)"
    )
    return verdict_on(text, parts, evidence)


def _substantial(cells: Cells) -> Claim:
    """By how much SGD-m is faster than Pegasos, where the paper has a figure beside it."""
    ratios = {name: item["pegasos"] / item["sgd-m"] for name, item in cells.ours.items()}
    both = [
        f"{name} {ratios[name]:.2g} ({item['pegasos'] / item['sgd-m']:.2g} in the paper)"
        for name, item in cells.theirs.items()
        if item and math.isfinite(item["pegasos"])
    ]
    return verdict_on(
        "the improvement of SGD-m over Pegasos is substantial (here: 1.5 times as fast at least, C = 1)",
        mostly([ratio >= 1.5 for ratio in ratios.values()]),
        f"on {sum(ratio >= 1.5 for ratio in ratios.values())} of {len(ratios)} sets; "
        f"{min(ratios.values()):.2g} to "
        f"{max(ratios.values()):.2g} times as fast; " + "; ".join(both),
    )
