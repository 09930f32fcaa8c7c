"""Bounds on scores from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dualgap.files import load_model, read_svmlight
from support.commands import Forks, forks_fixture, write_rows  # noqa: F401


@pytest.mark.parametrize("bias", ["none", "exact"])
def test_bounds_are_those_of_the_library(forks: Forks, tmp_path: Path, bias: str) -> None:
    data, file = write_rows(tmp_path / "d.svm"), tmp_path / "m"
    assert forks("train", data, "-o", file, "--bias", bias, "--bounds", "--quiet").code == 0
    model, rows = load_model(file), read_svmlight(data).X
    printed = forks("predict", file, data, "--bounds").out.split()
    low, high = model.decision_bounds(rows)
    assert np.array_equal(np.array(printed, dtype=float).reshape(-1, 2), np.stack([low, high], axis=1))
    assert f"{model.decided(rows).mean():.6g}" in forks("evaluate", file, data).out
    assert forks("certify", file, data).code == 0


def test_what_has_no_bounds(forks: Forks, tmp_path: Path) -> None:
    data, file = write_rows(tmp_path / "d.svm"), tmp_path / "m"
    assert forks("train", data, "-o", file, "--bias", "exact", "--quiet").code == 0
    done = forks("predict", file, data, "--bounds")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "train with --bounds" in done.err
    done = forks("predict", file, data, "--bounds", "--scores")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "decided" not in forks("evaluate", file, data).out
