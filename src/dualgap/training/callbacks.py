"""Watchers see every record and never steer. The library prints nothing: showing progress is a watcher's
work.

A watcher is a function of a Record. If it has a method ``begin(task)``, that is called before training
begins, when problem and solver are known; ``close(reason)`` is called in the end.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import IO, Any

from .loop import Record
from .stopping import Reason


class Progress:
    """A line on stderr that follows the run; silent where stderr is no terminal."""

    def __init__(self, tol: float, stream: IO[str] | None = None) -> None:
        from rich.console import (
            Console,
        )  # rich is slow to import, and a fit without progress does not need it

        self.tol = tol
        self.console = Console(file=stream or sys.stderr)
        self.live = self.console.is_terminal
        self._status: Any = None

    def __call__(self, record: Record) -> None:
        """Show where the run is."""
        if not self.live:
            return
        if self._status is None:
            self._status = self.console.status("training", spinner="dots")
            self._status.start()
        self._status.update(self.describe(record))

    def describe(self, record: Record) -> str:
        """One line about a record."""
        gap = record.certificate.relative_gap
        shown = "unknown" if gap == float("inf") else f"{gap:.2e}"
        asked = f" (asked {self.tol:.2g})" if self.tol > 0 else ""
        return f"epoch {record.epochs:.1f}  relative gap {shown}{asked}  {record.seconds:.1f} s"

    def close(self, reason: Reason) -> None:
        """Take the line away."""
        if self._status is not None:
            self._status.stop()
            self._status = None


class JsonLines:
    """Every certified record as one line of JSON, written at once, so that a broken run leaves its
    history.
    """

    def __init__(self, file: str | Path) -> None:
        self._file = Path(file).open("w", encoding="utf-8")  # noqa: SIM115  (closed by close)

    def __call__(self, record: Record) -> None:
        """Write a certified record."""
        if record.kind == "certified":
            self._file.write(json.dumps(finite(record.as_dict())) + "\n")
            self._file.flush()

    def close(self, reason: Reason | None = None) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def finite(value: Any) -> Any:
    """The same with infinities and NaN as None: JSON has no words for them."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
