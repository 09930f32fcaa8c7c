"""The way of a row: whoever calls the library enters each package once, in the order in which data flow.

A call enters a package if its code lies there and its caller's in the upper layer (the command line, ``fit``
and the estimators), with no package in between: what a package calls belongs to its own stay. Calls in a row
into one package are one entry. Not counted are functions that check arguments and hand nothing over,
properties, and the handler of Ctrl-C. The walk begins with the first call into ``data``: before that,
arguments are checked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.cli import group
from support.commands import write_rows

PACKAGE = str(Path(dualgap.__file__).parent)
LOWER = ("data", "core", "solvers", "training", "models")
CHECKS = {
    "make_loss", "make_bias", "check_seed", "check_from_disk", "check_regulariser", "check", "make_expansion",
    "epoch_size", "total_weight", "n", "d", "nnz", "labels", "C", "counts", "__enter__", "__exit__",
}  # fmt: skip


def room(frame: Any) -> str | None:
    """The package of a frame; "upper" for the callers' layer, None for code that is not ours."""
    name = frame.f_code.co_filename
    if not name.startswith(PACKAGE):
        return None
    first = Path(name).relative_to(PACKAGE).parts[0]
    if first in LOWER:
        return first
    return None if first in ("runtime", "__init__.py") else "upper"


def caller(frame: Any) -> list[str]:
    """The rooms of all frames below, from the nearest on; code that is not ours is passed over."""
    found = []
    frame = frame.f_back
    while frame is not None:
        here = room(frame)
        if here is not None:
            found.append(here)
        frame = frame.f_back
    return found


def walk(action: Callable[[], Any]) -> list[str]:
    """The packages that the upper layer enters while something is done."""
    entries: list[str] = []

    def look(frame: Any, event: str, argument: Any) -> None:
        if event != "call" or frame.f_code.co_name in CHECKS or frame.f_code.co_name.startswith("<"):
            return
        here = room(frame)
        if here in LOWER and set(caller(frame)) == {"upper"} and entries[-1:] != [here]:
            entries.append(here)

    sys.setprofile(look)
    try:
        action()
    finally:
        sys.setprofile(None)
    return entries[entries.index("data") :] if "data" in entries else entries


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.svm")


def command(*arguments: Any) -> Callable[[], Any]:
    return lambda: group.main([str(item) for item in arguments], standalone_mode=False)


def test_train(data_file: Path, tmp_path: Path) -> None:
    action = command("train", data_file, "-o", tmp_path / "m", "--quiet")
    action()  # imports and compiles
    assert walk(action) == list(LOWER)


def test_predict(data_file: Path, tmp_path: Path) -> None:
    command("train", data_file, "-o", tmp_path / "m", "--quiet")()
    action = command("predict", tmp_path / "m", data_file, "-o", tmp_path / "labels")
    action()
    assert walk(action) == ["models"]  # a model reads the rows itself, in its own columns


def test_linear_svc(data_file: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    model = dualgap.LinearSVC(random_state=0)
    action = lambda: model.fit(X, np.where(X[:, 0] > 0, "yes", "no"))  # noqa: E731
    action()
    assert walk(action) == list(LOWER)
