"""Runs on disk: ``np.savez`` of everything a run needs to go on, bit for bit, as if it had never stopped.

A run is a tree of NamedTuples and dictionaries. The file holds each leaf under its path, and the name of the
class of each inner node; on reading only NamedTuples of this package are made, and no pickle is ever read.
"""

from __future__ import annotations

import zipfile
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime.errors import InputError
from ..runtime.writing import replacing
from .outcome import Result
from .run import Run

_CLASS, _KEYS = "class", "keys"
_DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    TypeError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)


def save_state(path: str | Path, run: Result | Run) -> None:
    """Write a run, or the run of an outcome, to an .npz file, whole or not at all."""
    arrays: dict[str, Any] = {}

    def flatten(prefix: str, value: Any) -> None:
        if isinstance(value, tuple):
            arrays[prefix + _CLASS] = np.asarray(f"{type(value).__module__}:{type(value).__qualname__}")
            for name, item in value._asdict().items():  # type: ignore[attr-defined]  # it is a NamedTuple
                flatten(f"{prefix}{name}.", item)
        elif isinstance(value, dict):
            arrays[prefix + _KEYS] = np.array(list(value), dtype=str)
            for name, item in value.items():
                flatten(f"{prefix}{name}.", item)
        else:
            arrays[prefix[:-1]] = np.asarray(value)

    flatten("", run.run if isinstance(run, Result) else run)
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def load_state(path: str | Path) -> Run:
    """Read what ``save_state`` wrote; give it to ``fit(..., resume=...)`` with the same data and options."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except _DAMAGE as error:
        raise InputError(f"{path}: not a saved run ({error})") from None

    def rebuild(prefix: str) -> Any:
        if prefix + _CLASS in found:
            cls = _node(str(found[prefix + _CLASS]), path)
            return cls(*(rebuild(f"{prefix}{name}.") for name in cls._fields))
        if prefix + _KEYS in found:
            return {str(name): rebuild(f"{prefix}{name}.") for name in found[prefix + _KEYS]}
        leaf = prefix[:-1]
        if leaf not in found:
            raise InputError(
                f"{path}: the saved run has no {leaf or 'beginning'!r}; it was written by another version"
            )
        return found[leaf].item() if found[leaf].ndim == 0 else found[leaf]

    run = rebuild("")
    if not isinstance(run, Run):
        raise InputError(f"{path}: not a saved run but a {type(run).__name__}")
    return run


def _node(name: str, path: str | Path) -> Any:
    """The NamedTuple class of that name in this package."""
    module, _, cls = name.partition(":")
    if module.split(".")[0] == __name__.split(".")[0]:
        try:
            found = getattr(import_module(module), cls)
        except (ImportError, AttributeError):
            found = None
        if isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields"):
            return found
    raise InputError(f"{path}: the saved run needs {name!r}, which this version does not have")
