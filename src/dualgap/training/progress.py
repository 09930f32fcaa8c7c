"""Progress of a run on stderr: a bar that follows it on a terminal, elsewhere a line every few seconds.

How much is done, and how much time is left, is judged by the logarithm of the gap: where it falls at a steady
rate, as it does for most solvers, both are about right.
"""

from __future__ import annotations

import math
import sys
import time
from contextlib import ExitStack
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from ..runtime.compiling import announced_to
from .callbacks import Callback

if TYPE_CHECKING:
    from ..core.problem import Regularised
    from .records import Record
    from .run import Run
    from .solver import AnySolver
    from .stopping import Reason

COMPILING = "compiling (once for this loss and kind of data)"
PERIOD = 5.0  # seconds between lines where stderr is no terminal
WIDTH = 20  # of the bar, in characters
RECENT = 6  # certificates by which the pace is judged


class Progress(Callback):
    """Follows a run on stderr: a bar with epochs, gap and the time left on a terminal; with ``lines=True`` a
    line every few seconds where stderr is none (a notebook, a log). ``label`` tells runs apart.
    """

    def __init__(
        self, tol: float, stream: IO[str] | None = None, *, lines: bool = False, label: str = ""
    ) -> None:
        from rich.console import (
            Console,  # rich is slow to import, and a fit without progress does not need it
        )

        self.tol = tol
        self.console = Console(file=stream or sys.stderr)
        self.live = self.console.is_terminal
        self._lines, self._label = lines and not self.live, label
        self._told = time.monotonic()
        self._seen: list[tuple[float, float]] = []  # seconds and logarithms of the gap, at certificates
        self._status: Any = None
        self._listening = ExitStack()

    def begin(self, problem: Regularised, solver: AnySolver, auto_reason: str) -> None:
        """Show at once that something is going on."""
        self._seen, self._told = [], time.monotonic()
        if self.live:
            self._show("training")
            self._listening.enter_context(announced_to(partial(self._show, COMPILING)))

    def __call__(self, record: Record, run: Run) -> None:
        """Show where the run is."""
        gap = record.output.relative_gap
        if record.kind == "certified" and 0.0 < gap < math.inf:
            self._seen.append((record.seconds, math.log(gap)))
        if self.live:
            self._show(self.describe(record))
        elif self._lines and time.monotonic() - self._told >= PERIOD:
            self._told = time.monotonic()
            self.console.file.write(self.describe(record) + "\n")
            self.console.file.flush()

    def _show(self, text: str) -> None:
        if self._status is None:
            self._status = self.console.status(text, spinner="dots")
            self._status.start()
        self._status.update(text)

    def describe(self, record: Record) -> str:
        """One line about a record."""
        gap = record.output.relative_gap
        shown = "unknown" if gap == math.inf else f"{gap:.2e}"
        asked = f" (asked {self.tol:.2g})" if self.tol > 0 else ""
        left = self.seconds_left()
        known = "" if left is None else f", about {_duration(left)} left"
        label = f"{self._label}  " if self._label else ""
        return (
            f"{label}{self._bar()}epoch {record.epochs:.1f}  relative gap {shown}{asked}  "
            f"{record.seconds:.1f} s{known}"
        )

    def share_done(self) -> float | None:
        """The part of the way from the first gap to the one asked for; None where it is not known."""
        if not self._seen or not self.tol > 0.0:
            return None
        first, now, end = self._seen[0][1], self._seen[-1][1], math.log(self.tol)
        return 1.0 if now <= end else (first - now) / (first - end) if first > end else None

    def seconds_left(self) -> float | None:
        """How long it may still take, at the pace of the last certificates; None where that is not known."""
        if len(self._seen) < 2 or not self.tol > 0.0:
            return None
        (began, high), (now, low) = self._seen[-min(RECENT, len(self._seen))], self._seen[-1]
        if not (high > low and now > began):
            return None
        return max(0.0, (low - math.log(self.tol)) * (now - began) / (high - low))

    def _bar(self) -> str:
        done = self.share_done()
        if done is None:
            return ""
        full = min(WIDTH, max(0, round(WIDTH * done)))
        return f"|{'█' * full}{'·' * (WIDTH - full)}| "

    def close(self, reason: Reason | None) -> None:
        """Take the line away."""
        self._listening.close()
        if self._status is not None:
            self._status.stop()
            self._status = None


def _duration(seconds: float) -> str:
    """Seconds, minutes or hours, to two digits."""
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1.0 else "a second"
