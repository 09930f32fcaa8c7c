"""Runs on disk: ``np.savez`` of everything a run needs to go on, bit for bit, as if it had never stopped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from .errors import InputError
from .solve import Outcome, Run
from .solvers import SOLVERS


def save_state(path: str | Path, run: Outcome | Run) -> None:
    """Write a run, or the run of an outcome, to an .npz file: under a temporary name first, then renamed."""
    arrays: dict[str, Any] = {}

    def flatten(prefix: str, value: Any) -> None:
        if hasattr(value, "_fields"):
            for name in value._fields:
                flatten(f"{prefix}{name}.", getattr(value, name))
        else:
            arrays[prefix[:-1]] = np.asarray(value)

    flatten("", run.state if isinstance(run, Outcome) else run)
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def load_state(path: str | Path) -> Run:
    """Read what ``save_state`` wrote; give it to ``fit(..., warm=...)`` with the same data and options."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
        name = str(found["name"])
        state = get_type_hints(SOLVERS[name].start)["return"]
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise InputError(f"{path}: not a saved run that this version knows ({error})") from None

    def rebuild(prefix: str, kind: Any) -> Any:
        if hasattr(kind, "_fields"):
            hints = get_type_hints(kind)
            hints["solver"] = state
            return kind(*(rebuild(f"{prefix}{part}.", hints[part]) for part in kind._fields))
        part = prefix[:-1]
        if part not in found:
            raise InputError(f"{path}: the saved run has no {part!r}; it was written by another version")
        return found[part].item() if found[part].ndim == 0 else found[part]

    run: Run = rebuild("", Run)
    return run
