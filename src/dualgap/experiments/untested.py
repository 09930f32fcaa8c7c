"""Claims and figures of the papers that no experiment tests, each with the reason."""

from __future__ import annotations

from .report import Claim

UNTESTED: dict[str, tuple[tuple[str, str], ...]] = {
    "rupnik": (("Figure 1: separating hyperplanes", "a drawing of the idea, without data or a result"),),
}


def untested(paper: str) -> list[Claim]:
    """The claims of a paper that were left out."""
    return [Claim(text, "not tested here", why) for text, why in UNTESTED.get(paper, ())]
