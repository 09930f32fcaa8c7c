"""Callbacks see every record of a run, together with the run itself. The library prints nothing: showing
progress is theirs (``progress.py``).

A callback is a function of ``(record, run)``. Returning something true ends the run; a sentence becomes the
reason. A `Callback` can do more: it is told when training begins and when it ends.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
