"""What a run tells of itself at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..core.problem import Certificate


@dataclass(frozen=True)
class Record:
    """The state of a run at one moment.

    ``kind`` is "certified" where the certificate was computed at this moment; an "estimate" repeats the last
    one and only brings the counts up to date.
    """

    kind: Literal["certified", "estimate"]
    visits: int  # of rows
    epochs: float
    updates: int
    entries: int
    train_seconds: float
    certify_seconds: float
    certificate: Certificate
    measures: dict[str, float]

    @property
    def seconds(self) -> float:
        """Training and certifying together."""
        return self.train_seconds + self.certify_seconds

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, for JSON."""
        values = {
            "kind": self.kind,
            "visits": self.visits,
            "epochs": self.epochs,
            "updates": self.updates,
            "entries": self.entries,
            "seconds": self.seconds,
            "train_seconds": self.train_seconds,
            "certify_seconds": self.certify_seconds,
            **self.certificate._asdict(),
            **({"measures": self.measures} if self.measures else {}),
        }
        values["objective"] = values.pop("form")
        return values
