"""What a new user reads: options by their names, what differs, what to do next."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from dualgap.cli.words import in_options
from support.commands import Forks, forks_fixture, write_rows  # noqa: F401


@pytest.fixture(scope="module", name="rows")
def rows_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.svm")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("raise max_epochs or loosen the gap", "raise --max-epochs or loosen the gap"),
        ("3.5 epochs (max_epochs=3, and the last", "3.5 epochs (--max-epochs 3, and the last"),
        ("checkpoint=PosixPath('a/b'): only", "--checkpoint a/b: only"),
        ("record_every='10 steps' must", "--record-every '10 steps' must"),
        ("stall='foo' must be 'auto', or None (never)", "--stall foo must be 'auto', or none (never)"),
        ("with output='last'", "with --keep last"),
        ("T0=5 and epsilon=0.1 of lam = 0.1", "T0=5 and epsilon=0.1 of lam = 0.1"),
    ],
)
def test_options_for_arguments(said: str, told: str) -> None:
    assert in_options(said) == told


def test_options_are_named_as_they_are_typed(forks: Forks, rows: Path, tmp_path: Path) -> None:
    train = ["train", rows, "-o", tmp_path / "model", "--solver", "dcd"]
    assert "--stall foo must be a number of epochs, 'auto', or none" in forks(*train, "--stall", "foo").error
    assert forks(*train, "--tol", "-1").error.startswith("--tol -1.0 must be")
    short = forks(*train, "--tol", "1e-9", "--max-epochs", "1", "--checkpoint", tmp_path / "run")
    assert "raise --max-epochs or" in short.out
    assert f"go on with --resume {tmp_path / 'run'}" in short.out
    again = forks(*train, "--tol", "1e-9", "--max-epochs", "0.5", "--resume", tmp_path / "run", "--json")
    assert again.json["stop_message"].startswith("nothing to do: the run that is resumed has made 1 epochs")
    assert "(--max-epochs 0.5)" in again.json["stop_message"]


def test_lam_is_shown_where_it_was_given(forks: Forks, rows: Path, tmp_path: Path) -> None:
    train = ["train", rows, "-o", tmp_path / "model"]
    told = forks(*train, "--lam", "0.01").out
    assert "lam = 0.01 (C = 0.5)" in told
    assert "lam/2 |w|^2 + mean of the losses, of this model" in told
    found = forks(*train, "--lam", "0.01", "--json").json
    assert f"{0.01 * found['primal']:.8g}" in told
    assert found["stop_message"].startswith("converged: ")
    assert found["notes"] == ["indices count from 1, as there is no index 0 (--zero-based yes: from 0)"]


def test_runs_of_several_classes(forks: Forks, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{k % 4} 1:{rng.normal():.3f} 2:{rng.normal():.3f}" for k in range(60)]
    data = tmp_path / "four.svm"
    data.write_text("\n".join(lines) + "\n")
    train = ["train", data, "-o", tmp_path / "model"]
    refused = forks(*train, "--checkpoint", tmp_path / "run").error
    assert refused.startswith(f"--checkpoint {tmp_path / 'run'}: only a run of two classes")
    assert "add --positive LABEL" in refused
    done = forks(*train, "--tol", "0", "--target", "1e6")
    assert done.code == 0
    assert "all 4 classes reached the relative gap asked for (0) or the target 1e+06" in done.out
    assert done.out.count("  target\n") == 4
    told = forks(*train, "--solver", "perceptron", "--max-epochs", "1").out
    assert told.count("the all-zero model is the best") == 1
    assert re.search(r"Note on classes \d, \d.*: the all-zero model", told)
