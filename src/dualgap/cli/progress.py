"""Progress and traces of a run for each of K classes, several of which may be under way in threads."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..training.callbacks import Callback

if TYPE_CHECKING:
    from ..core.problem import Regularised
    from ..training.records import Record
    from ..training.run import Run
    from ..training.solver import AnySolver
    from ..training.stopping import Reason


class ClassProgress:
    """A line on stderr: how many classes are done, and how far those under way are; only on a terminal."""

    def __init__(self, classes: int, shown: bool) -> None:
        self._classes, self._shown = classes, shown and sys.stderr.isatty()
        self._gaps: dict[str, float] = {}  # of the classes under way
        self._done, self._began, self._lock = 0, time.monotonic(), threading.Lock()
        self._status: Any = None

    def of(self, label: str) -> Callback:
        """The callback of one class's run."""
        return _ClassCallback(self, label)

    def see(self, label: str, gap: float) -> None:
        """A class under way has reached a gap."""
        with self._lock:
            self._gaps[label] = gap
            self._show()

    def end(self, label: str) -> None:
        """The run of a class has ended."""
        with self._lock:
            self._gaps.pop(label, None)
            self._done += 1
            self._show()

    def close(self) -> None:
        """Take the line away."""
        with self._lock:
            if self._status is not None:
                self._status.stop()
                self._status = None

    def describe(self) -> str:
        """One line about all classes."""
        way = ", ".join(
            f"{label} ({'begun' if gap == math.inf else f'gap {gap:.1e}'})"
            for label, gap in list(self._gaps.items())[:8]
        )
        seconds = time.monotonic() - self._began
        training = f"training {way}; " if way else ""
        return f"{self._done} of {self._classes} classes done; {training}{seconds:.1f} s"

    def _show(self) -> None:
        if not self._shown:
            return
        if self._status is None:
            from rich.console import Console

            self._status = Console(stderr=True).status("training", spinner="dots")
            self._status.start()
        self._status.update(self.describe())


class _ClassCallback(Callback):
    """Tells the progress of all classes about one of them."""

    def __init__(self, progress: ClassProgress, label: str) -> None:
        self._progress, self._label = progress, label

    def begin(self, problem: Regularised, solver: AnySolver, auto_reason: str) -> None:
        self._progress.see(self._label, math.inf)

    def __call__(self, record: Record, run: Run) -> None:
        self._progress.see(self._label, record.output.relative_gap)

    def close(self, reason: Reason | None) -> None:
        self._progress.end(self._label)


class Trace:
    """JSON lines of one run, or of a run for each class. The file is created with the first record, so that
    bad input leaves none.
    """

    def __init__(self, file: Path, *, resumed: bool = False) -> None:
        self._file, self._mode = file, "a" if resumed else "w"  # a run that goes on adds to its history
        self._stream: Any = None
        self._lock = threading.Lock()
        self.failure: str | None = None  # a history that cannot be written is no reason to lose the model

    def of(self, **more: Any) -> TraceCallback:
        """The callback of a run; what more its lines are to hold."""
        return TraceCallback(self, more)

    def write(self, values: dict[str, Any]) -> None:
        """Write a line, at once."""
        from ..training.callbacks import finite

        with self._lock:
            if self.failure is not None:
                return
            try:
                if self._stream is None:
                    self._stream = self._file.open(self._mode, encoding="utf-8")
                self._stream.write(json.dumps(finite(values)) + "\n")
                self._stream.flush()
            except OSError as error:
                self._fail(error)

    def close(self) -> None:
        """Close the file."""
        try:
            if self._stream is not None:
                self._stream.close()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.failure = self.failure or f"{self._file}: cannot be written: {error.strerror or error}"


class TraceCallback(Callback):
    """Writes every certified record of a run."""

    def __init__(self, trace: Trace, more: dict[str, Any]) -> None:
        self._trace, self._more = trace, more

    def __call__(self, record: Record, run: Run) -> None:
        """Write a certified record."""
        if record.kind == "certified":
            self._trace.write({**self._more, **record.as_dict()})
