"""Where experiments are run: data, runs, reference optima and what is kept between sittings.

A full experiment may take hours. Every measurement is saved as soon as it is made, under a key of all that
it depends on, so an experiment that was interrupted goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import __version__
from ..api import fit
from ..outcome import Outcome
from ..runtime.writing import replacing
from ..training.records import Record
from . import sets
from .sets import Rows

REFERENCE = 1e-7  # the relative gap of a reference optimum


class Lab:
    """One sitting: quick or full, what is kept, and who is told of progress."""

    def __init__(
        self, *, quick: bool, kept: Path | None = None, tell: Callable[[str], None] = lambda _: None
    ):
        self.quick = quick
        self.kept = kept
        self.tell = tell
        self.used: dict[str, str] = {}  # the sets that were asked for, and what is to be said of them

    def rows(self, name: str, quick_rows: int = 1500) -> Rows:
        """A set of the papers; a part of it in a quick sitting."""
        found = sets.load(name, quick_rows if self.quick else None)
        self.used[found.name] = found.note
        return found

    def given(self, rows: Rows) -> Rows:
        """Rows that an experiment made itself, noted among those used."""
        self.used[rows.name] = rows.note
        return rows

    @property
    def data(self) -> list[str]:
        """What to say of the sets that were used."""
        return [f"{name}: {note}" if note else name for name, note in self.used.items()]

    def once(self, key: dict[str, Any], measure: Callable[[], Any]) -> Any:
        """What ``measure`` returns, plain data, from an earlier sitting if it was made there."""
        if self.kept is None:
            return measure()
        text = json.dumps({**key, "version": __version__}, sort_keys=True, default=str)
        file = self.kept / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"
        if file.is_file():
            return json.loads(file.read_text())["found"]
        found = measure()
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as stream:
            stream.write(json.dumps({"key": key, "found": found}, default=float).encode())
        return found

    def optimum(self, rows: Rows, **problem: Any) -> float:
        """The optimum of a problem (``C=`` or ``lam=``, ``loss=``, ``bias=``), within 1e-7.

        It is the lower bound of a certificate, so what is measured against it is never too small.
        """

        def measure() -> float:
            self.tell(f"reference optimum of {rows.name}, {_shown(problem)}")
            return float(fit(rows.X, rows.y, tol=REFERENCE, max_epochs=None, **problem).certificate.dual)

        return float(self.once({"optimum": rows.name, "rows": rows.n, **problem}, measure))

    def fit(self, rows: Rows, **arguments: Any) -> Outcome:
        """A run of `dualgap.fit`, told of."""
        self.tell(f"{rows.name}: {_shown(arguments)}")
        return fit(rows.X, rows.y, **arguments)

    def own(self, rows: Rows, **arguments: Any) -> Outcome:
        """A run that no gap ends and that hands back the algorithm's own point, not the best one seen."""
        return self.fit(rows, tol=0.0, stall=None, output="last", **arguments)


def certified(outcome: Outcome) -> list[Record]:
    """The moments of a run at which a point was evaluated."""
    return [record for record in outcome.trace if record.kind == "certified"]


def _shown(arguments: dict[str, Any]) -> str:
    plain = (str, int, float, bool)
    return " ".join(f"{key}={value}" for key, value in arguments.items() if isinstance(value, plain))
