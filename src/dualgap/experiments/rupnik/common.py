"""What the experiments of this paper share: its documents, its parameters, and runs of mini-batch Pegasos.

The paper has 804,414 documents of Reuters RCV1 (class CCAT) with 47,236 words. They are not at hand: comments
of Wikipedia's talk pages, 159,686 with 69,356 words, stand in under their own name.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..lab import Lab, certified
from ..report import Curve
from ..sets import Rows

LAM = 1e-4  # "observed to be optimal"
SHARE = 0.87  # 700,000 of 804,414 documents, the first ones, are trained on

WRITTEN = "(the paper writes RCV2; its reference and its 804,414 documents are RCV1's)"
THEIRS = "RCV1, the paper's"
PROBLEM = (
    f"lam = {LAM:g} as in the paper, without a bias; the first {SHARE:.0%} of the rows are trained on, in "
    "the "
    "order of the file, as 700,000 of the paper's 804,414 are."
)


class Split(NamedTuple):
    """Rows in the order of the file, the first ones to train on."""

    training: Rows
    test: Rows
    k: int  # rows in a batch: 8,000 in the paper


def documents(lab: Lab) -> Split:
    """The documents, divided in their order."""
    found = lab.rows("wikitox-bow", 2000)
    missing = f"Reuters RCV1 {WRITTEN} is not at hand (class CCAT); comments on Wikipedia stand in"
    rows = lab.given(found._replace(note=f"{missing}; {found.note}".rstrip("; ")))
    cut = math.ceil(SHARE * rows.n)
    training = Rows(rows.name, rows.X[:cut], rows.y[:cut], rows.note)
    return Split(
        training, Rows(rows.name, rows.X[cut:], rows.y[cut:]), max(1, cut // 20) if lab.quick else 8000
    )


class Run(NamedTuple):
    """One run of Pegasos: the objective of its own point by iteration, and its error on held-out rows."""

    iterations: list[float]
    primal: list[float]
    error: list[float]

    def reaches(self, optimum: float, accuracy: float) -> float:
        """The first iteration within a relative accuracy; inf if there is none."""
        places = zip(self.iterations, self.primal, strict=True)
        return next((t for t, value in places if value <= (1.0 + accuracy) * optimum), math.inf)

    def curve(self, label: str, optimum: float) -> Curve:
        """The objective above the optimum."""
        return Curve(label, self.iterations, [value / optimum - 1.0 for value in self.primal])


def pegasos(
    lab: Lab,
    split: Split,
    k: int,
    iterations: int,
    *,
    every: int = 1,
    seed: int = 0,
    errors: bool = False,
    **options: Any,
) -> Run:
    """Pegasos as in the paper: with projection, from a random start, batches of different rows."""
    settings = {"k": k, "projection": True, "first_w": "ball", "sampling": "distinct", **options}
    rows, test = split.training, split.test
    key = {
        "rupnik": rows.name,
        "rows": rows.n,
        "T": iterations,
        "every": every,
        "seed": seed,
        "errors": errors,
    }

    def measure() -> dict[str, list[float]]:
        def error(point: Any) -> dict[str, float]:
            wrong = (test.X @ point.w > 0) != (test.y > 0)
            return {"error": float(wrong.mean())}

        outcome = lab.own(
            rows,
            lam=LAM,
            solver="pegasos",
            max_epochs=None,
            max_visits=k * iterations,
            record_every=k * every,
            measures=[error] if errors else [],
            seed=seed,
            polish=0,
            duals=False,
            **settings,
        )
        records = certified(outcome)
        return {
            "iterations": [record.visits / k for record in records],
            "primal": [record.current.primal for record in records],
            "error": [record.measures["error"] for record in records] if errors else [],
        }

    return Run(**lab.once({**key, **settings}, measure))
