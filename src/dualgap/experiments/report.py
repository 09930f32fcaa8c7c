"""What an experiment reports: tables, figures, claims and remarks, all of them plain data.

A report is saved as JSON, so that one page can be made of all of them whenever one was run again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any, Literal

Verdict = Literal[
    "holds",
    "holds in part",
    "does not hold here",
    "no difference here",
    "not settled here",
    "not tested here",
]
Cell = str | float | int | None
Scale = Literal["linear", "log"]


@dataclass(frozen=True)
class Table:
    """Rows under a header; None is a cell without a figure."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@dataclass(frozen=True)
class Curve:
    """A line of a figure; ``dashed``, ``dotted`` and ``marker`` say what colour alone must not."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    dashed: bool = False
    marker: str = ""
    dotted: bool = False  # a bound and no measurement
    colour: int | None = None  # which of the colours; otherwise one after another

    def thinned(self, most: int) -> Curve:
        """The same line with fewer points, close together where it begins: figures have logarithmic axes."""
        n = len(self.x)
        if n <= most:
            return self
        kept = sorted({*(round(n ** (k / (most - 1))) - 1 for k in range(most)), n - 1})
        return replace(self, x=[self.x[i] for i in kept], y=[self.y[i] for i in kept])


@dataclass(frozen=True)
class Panel:
    """One pair of axes. ``levels`` are horizontal lines with a name, such as an optimum."""

    title: str
    xlabel: str
    ylabel: str
    curves: Sequence[Curve]
    xscale: Scale = "linear"
    yscale: Scale = "linear"
    levels: dict[str, float] = field(default_factory=dict)
    top: float | None = None  # the vertical axis goes from 0 to it, where it is given


@dataclass(frozen=True)
class Figure:
    """Panels side by side, and the sentence below them; ``name`` is that of its file."""

    name: str
    caption: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, whether it holds here, and what shows it."""

    text: str
    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class Report:
    """What one experiment found. ``remarks`` are sentences on every difference from the paper."""

    claims: Sequence[Claim] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    remarks: Sequence[str] = ()
    data: Sequence[str] = ()  # the sets used, and what they stand for

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def thinned(self, most: int = 800) -> Report:
        """With so many points in a curve at most: enough to draw it again."""
        figures = [
            replace(
                figure,
                panels=[
                    replace(panel, curves=[curve.thinned(most) for curve in panel.curves])
                    for panel in figure.panels
                ],
            )
            for figure in self.figures
        ]
        return replace(self, figures=figures)

    @classmethod
    def of(cls, saved: dict[str, Any]) -> Report:
        """From JSON."""
        figures = [
            Figure(
                item["name"],
                item["caption"],
                [
                    Panel(**{**panel, "curves": [Curve(**curve) for curve in panel["curves"]]})
                    for panel in item["panels"]
                ],
            )
            for item in saved["figures"]
        ]
        return cls(
            [Claim(**item) for item in saved["claims"]],
            [Table(**item) for item in saved["tables"]],
            figures,
            saved["remarks"],
            saved["data"],
        )


Part = bool | Literal["tie"] | None  # of a claim: found, not found, no difference, or not settled


def verdict_on(text: str, found: Part | Sequence[Part], evidence: str) -> Claim:
    """A claim holds where all parts of it were found, in part where some were; a tie is no part of it."""
    parts = [found] if found is None or isinstance(found, bool | str) else list(found)
    verdict: Verdict
    if True in parts:
        verdict = "holds" if parts.count(True) == len(parts) else "holds in part"
    elif False in parts:
        verdict = "does not hold here"
    else:
        verdict = "no difference here" if "tie" in parts else "not settled here"
    return Claim(text, verdict, evidence)


def elsewhere(text: str, missing: str, found: str) -> Claim:
    """A claim on one named set that is not at hand: a stand-in neither shows nor refutes it."""
    return Claim(text, "not tested here", f"{missing} not at hand; on the stand-in: {found}")


def sooner(one: float, other: float, margin: float = 1.1) -> Part:
    """Whether one count is smaller than another by more than a tenth; None where both are infinite."""
    if math.isinf(one) and math.isinf(other):
        return None
    if margin * one < other:
        return True
    return False if margin * other < one else "tie"


def apart(one: Sequence[float], other: Sequence[float]) -> Part:
    """The same of medians over seeds, where the ranges over seeds do not overlap; a tie where they do."""
    if max(one) >= min(other) and max(other) >= min(one):
        return "tie"
    return sooner(median(one), median(other))


def within(one: float, other: float, factor: float) -> bool | None:
    """Whether one count is at most a factor times another; None where both are infinite."""
    return None if math.isinf(one) and math.isinf(other) else one <= factor * other


def mostly(found: Sequence[Part]) -> Part:
    """What holds of data in general: on more than half of the sets; a tie where neither it nor its contrary
    does, None where no set settles it.
    """
    settled = [part for part in found if part is not None]
    if not settled:
        return None
    for part in (True, False):
        if 2 * settled.count(part) > len(settled):
            return part
    return "tie"


def tally(found: Sequence[Part], what: str = "sets") -> str:
    """The counts behind `mostly`, of sets or of other places."""
    return f"ahead on {found.count(True)} of {len(found)} {what}, behind on {found.count(False)}"
