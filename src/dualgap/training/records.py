"""What a run tells of itself at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..core.problem import Certificate


@dataclass(frozen=True, repr=False)
class Record:
    """The state of a run at one moment.

    ``kind`` is "certified" where a point was evaluated at this moment; an "estimate" repeats the last values
    and only brings the counts up to date.

    Three certificates, all of values that the problem computed: ``certificate`` puts the best primal and the
    best dual value seen so far together, so its gap never grows. ``current`` has both values of the solver's
    own point, the output that its algorithm would have at this moment: these wiggle where the algorithm does.
    ``output`` is about the model that the run would hand back now: the best, or with ``output="last"`` the
    solver's own, against the best lower bound. Where rows are on disk, the solver's own point is the one that
    the last complete pass evaluated, as it was when that pass began.
    """

    kind: Literal["certified", "estimate"]
    visits: int  # of rows
    epochs: float  # visits over the number of rows with positive weight
    updates: int  # visits that changed the model
    entries: int  # stored values that visits have read or written
    train_seconds: float
    certify_seconds: float
    compile_seconds: float  # kernels compiled, or loaded from the cache of compiled kernels
    certificate: Certificate
    current: Certificate
    output: Certificate
    measures: dict[str, float]
    solver: str = ""  # at work
    iterations: int | None = None  # batches, pairs...; None: in no proportion to visits

    def __repr__(self) -> str:
        """In one line: traces are lists of them."""
        gap = self.output.relative_gap
        return f"<Record: epoch {self.epochs:.4g}, relative gap {gap:.2g}, {self.seconds:.2g} s>"

    @property
    def seconds(self) -> float:
        """Training, certifying and compiling together."""
        return self.train_seconds + self.certify_seconds + self.compile_seconds

    @property
    def passes(self) -> float | None:
        """Passes over the rows on disk; None where they are in memory."""
        return self.measures.get("passes")

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, for JSON: one line of a trace.

        ``primal``, ``dual``, ``gap``, ``relative_gap`` and ``rounding`` are the best so far, the same names
        with ``current_`` before them are those of the solver's own point.
        """
        best, current = self.certificate._asdict(), self.current._asdict()
        del current["form"]
        return {
            "kind": self.kind,
            "solver": self.solver,
            "visits": self.visits,
            "iterations": self.iterations,
            "epochs": self.epochs,
            "updates": self.updates,
            "entries": self.entries,
            "seconds": self.seconds,
            "train_seconds": self.train_seconds,
            "certify_seconds": self.certify_seconds,
            "compile_seconds": self.compile_seconds,
            **best,
            **{f"current_{name}": value for name, value in current.items()},
            **({"measures": self.measures} if self.measures else {}),
        }
