"""Runs on disk: ``np.savez`` of everything a run needs to go on, bit for bit, as if it had never stopped.

A run is a tree of NamedTuples and dictionaries. The file holds each leaf under its path, and the name of the
class of each inner node. On reading only classes of the registry (``states.py``) are made: a file is data,
and what stands in it is never imported, called or unpickled.
"""

from __future__ import annotations

import os
import time
import warnings
import zipfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..runtime.archive import MODEL, kind_of_zip
from ..runtime.errors import CheckpointWarning, InputError
from ..runtime.npy import read_npz
from ..runtime.paths import kind_of_path
from ..runtime.writing import check_destination, replacing
from . import patience as patience  # registers what rules remember
from .callbacks import Callback
from .outcome import Result
from .run import FORMAT, Run
from .states import FlawError, check_state, name_of, registered

if TYPE_CHECKING:
    from ..core.problem import Regularised
    from .records import Record
    from .solver import AnySolver

_CLASS, _KEYS = "class", "keys"


def save_state(path: str | os.PathLike[str], run: Result | Run) -> None:
    """Write a run, or the run of an outcome, to an .npz file, whole or not at all."""
    arrays: dict[str, Any] = {}
    classes = registered()

    def flatten(prefix: str, value: Any) -> None:
        if isinstance(value, tuple):
            name = name_of(type(value))
            if classes.get(name) is not type(value):
                raise InputError(
                    f"{prefix[:-1]} of the run is a {type(value).__name__}, which cannot be saved: "
                    "register its class with dualgap.training.states.state_class"
                )
            arrays[prefix + _CLASS] = np.asarray(name)
            for field, item in value._asdict().items():  # type: ignore[attr-defined]  # it is a NamedTuple
                flatten(f"{prefix}{field}.", item)
        elif isinstance(value, dict):
            arrays[prefix + _KEYS] = np.array(list(value), dtype=str)
            for field, item in value.items():
                flatten(f"{prefix}{field}.", item)
        else:
            arrays[prefix[:-1]] = np.asarray(value)

    flatten("", run.run if isinstance(run, Result) else run)
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_state(path: str | os.PathLike[str]) -> Run:
    """The run in a file, of classes that have been registered, each number within its range.

    Whether it suits a problem, and is whole, is known when it is resumed (``run.check_resumable``).
    """
    if kind_of_path(path) == "file" and (found := kind_of_zip(path)) == MODEL:
        raise InputError(f"{path}: not a saved run: this is {found}")
    if kind_of_path(path) == "file" and not zipfile.is_zipfile(path):
        raise InputError(
            f"{path}: not a saved run, or one that was cut short; a run with checkpoint=FILE writes one"
        )
    try:
        run = _rebuilt(read_npz(path, "a saved run"), registered(), "")
        if not isinstance(run, Run):
            raise FlawError(f"it is a {type(run).__name__}")
        if not isinstance(run.format, int) or run.format == FORMAT:
            check_state(run, None, None)
    except (FlawError, RecursionError) as flaw:
        raise InputError(f"{path}: not a saved run, or damaged: {flaw}") from None
    return run


def _rebuilt(found: dict[str, Any], classes: Mapping[str, Any], prefix: str) -> Any:
    """The part of a run whose leaves have names that begin with the prefix.

    What has been read is taken out: names that lead to one part on many ways would take for ever.
    """
    if prefix + _CLASS in found:
        name = str(found.pop(prefix + _CLASS))
        if name not in classes:
            raise FlawError(f"it is made of {name!r}, and no state of this version is")
        cls = classes[name]
        return cls(*(_rebuilt(found, classes, f"{prefix}{field}.") for field in cls._fields))
    if prefix + _KEYS in found:
        keys = np.ravel(found.pop(prefix + _KEYS))
        return {str(name): _rebuilt(found, classes, f"{prefix}{name}.") for name in keys}
    leaf = prefix[:-1]
    if leaf not in found:
        raise FlawError(f"it has no {leaf or 'beginning'!r}; it may be of another version")
    value = found.pop(leaf)
    return value.item() if value.ndim == 0 else value


class Checkpoint(Callback):
    """Saves a run every so many seconds, and when it ends, whatever the reason.

    A run does not end because it cannot be saved: there is a warning, and the next time is another attempt.
    It comes after all callbacks that remember something.
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 60.0) -> None:
        self._path, self._every = check_destination(path), every
        self._saved = time.monotonic()
        self._failing = self._ended = False

    def begin(self, problem: Regularised, solver: AnySolver, auto_reason: str) -> None:
        """The clock starts."""
        self._saved, self._ended = time.monotonic(), False

    def __call__(self, record: Record, run: Run) -> None:
        """Save the run if it is time; the evaluation after its end is no part of it."""
        if not self._ended and time.monotonic() - self._saved >= self._every:
            self._save(run)

    def ended(self, run: Run) -> None:
        """Save the run as it can be resumed."""
        self._ended = True
        self._save(run)

    def _save(self, run: Run) -> None:
        try:
            save_state(self._path, run)
            self._failing = False
        except InputError as error:
            if not self._failing:  # one line for as long as it lasts
                warnings.warn(
                    f"checkpoint not saved: {error} (the run goes on)", CheckpointWarning, stacklevel=2
                )
            self._failing = True
        self._saved = time.monotonic()
