"""Callbacks see every record of a run, together with the run itself. The library prints nothing: showing
progress is theirs.

A callback is a function of ``(record, run)``. Returning something true ends the run; a sentence becomes the
reason. A `Callback` can do more: it is told when training begins and when it ends.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..runtime.compiling import announced_to

if TYPE_CHECKING:  # the command line has callbacks of its own, and shows its help without Numba
    from ..core.problem import Regularised
    from .records import Record
    from .run import Run
    from .solver import AnySolver
    from .stopping import Memory, Reason


class Callback:
    """The base of callbacks that want to know when training begins and ends, or to remember something.

    What a callback with a ``name`` keeps in ``memory`` (a NamedTuple of numbers and arrays) is part of the
    run, and put back when the run is resumed; to be saved to a file, its class must be registered with
    ``dualgap.training.states.state_class``. Callbacks are called in their order: one that saves runs comes
    last.
    """

    name: str | None = None
    memory: Memory = None

    def begin(self, problem: Regularised, solver: AnySolver, auto_reason: str) -> None:
        """Called before training begins; ``auto_reason`` says why ``solver="auto"`` chose this solver."""

    def __call__(self, record: Record, run: Run) -> Any:
        """Called with every record; something true ends the run."""

    def ended(self, run: Run) -> None:
        """Called with the run as it can be resumed, when there is a reason to stop and before its last point
        is evaluated; not where an error ended it.
        """

    def close(self, reason: Reason | None) -> None:
        """Called when training has ended; without a reason where an error ended it."""


class FunctionCallback(Callback):
    """A plain function as a callback."""

    def __init__(self, function: Callable[[Record, Run], Any]) -> None:
        self._function = function

    def __call__(self, record: Record, run: Run) -> Any:
        """Call the function."""
        return self._function(record, run)


def as_callback(callback: Callback | Callable[[Record, Run], Any]) -> Callback:
    """A callback, or a function made one."""
    return callback if isinstance(callback, Callback) else FunctionCallback(callback)


def stop_reason(answer: Any) -> Reason | None:
    """What the answer of a callback means."""
    from .stopping import Reason

    if isinstance(answer, Reason):
        return answer
    return (
        Reason("callback", answer if isinstance(answer, str) else "stopped by a callback") if answer else None
    )


COMPILING = "compiling (once for this loss and kind of data)"


class Progress(Callback):
    """A line on stderr that follows the run; silent where stderr is no terminal."""

    def __init__(self, tol: float, stream: IO[str] | None = None) -> None:
        from rich.console import (
            Console,  # rich is slow to import, and a fit without progress does not need it
        )

        self.tol = tol
        self.console = Console(file=stream or sys.stderr)
        self.live = self.console.is_terminal
        self._status: Any = None
        self._listening = ExitStack()

    def begin(self, problem: Regularised, solver: AnySolver, auto_reason: str) -> None:
        """Show at once that something is going on."""
        if self.live:
            self._show("training")
            self._listening.enter_context(announced_to(partial(self._show, COMPILING)))

    def __call__(self, record: Record, run: Run) -> None:
        """Show where the run is."""
        if self.live:
            self._show(self.describe(record))

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
        return f"epoch {record.epochs:.1f}  relative gap {shown}{asked}  {record.seconds:.1f} s"

    def close(self, reason: Reason | None) -> None:
        """Take the line away."""
        self._listening.close()
        if self._status is not None:
            self._status.stop()
            self._status = None


class JsonLines(Callback):
    """Every certified record as one line of JSON, written at once, so that a broken run leaves its
    history.
    """

    def __init__(self, file: str | Path) -> None:
        self._file = Path(file).open("w", encoding="utf-8")  # noqa: SIM115  (closed by close)

    def __call__(self, record: Record, run: Run) -> None:
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
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
