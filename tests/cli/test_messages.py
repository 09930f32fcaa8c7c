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
        ("stay on disk with in_memory=False;", "stay on disk with --from-disk;"),
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


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            "--C inf --bias augmented",
            "solver 'decomposition' cannot have --bias augmented, nor can any other with the loss "
            "'hard-margin'; take --bias none or --bias exact",
        ),
        (
            "--C inf --bias augmented --solver smo",
            "solver 'smo' cannot have --bias augmented, nor can any other with the loss 'hard-margin'",
        ),
        ("--bias exct", "unknown bias 'exct'; did you mean 'exact'?"),
        (
            "--loss logistic:unit=1",
            "loss 'logistic' has no parameter 'unit', nor any other; write it as logistic",
        ),
        ("--option K=3", "no solver has an option 'K'; did you mean 'k'? `dualgap solvers` lists them all"),
        ("--solver pegasos --option K=3", "solver 'pegasos' has no option 'K'; did you mean 'k'?"),
        ("--option papers=true", "no solver has an option 'papers'; did you mean 'paper'?"),
        ("--solver dcd --option papers=true", "solver 'dcd' has no option 'papers'; did you mean 'paper'?"),
        ("--scale maxabs", "--scale maxabs is not known; did you mean 'max-abs'? there are: a number,"),
        ("--hash-bits 9", "--hash-bits 9 is for --expand poly2 and its like; add it or leave this out"),
        ("--checkpoint-every soon", "--checkpoint-every soon is no duration; write it as 60s,"),
        ("--patience 3", "--patience 3 is for --validation; add that or leave it out"),
        (
            "--solver pegasos --option paper=rupnik-2008",
            "k=8000 (of paper=rupnik-2008) is more than the 200 rows there are; lower k",
        ),
        (
            "--solver pegasos --option paper=rupnik-2008 --option k=300",
            "k=300 is more than the 200 rows there are; lower k",
        ),
    ],
)
def test_what_was_meant(forks: Forks, rows: Path, tmp_path: Path, options: str, complaint: str) -> None:
    assert forks("train", rows, "-o", tmp_path / "model", *options.split()).error.startswith(complaint)


def test_rows_that_stay_on_disk_because_they_are_asked_to(forks: Forks, rows: Path, tmp_path: Path) -> None:
    assert forks("convert", rows, tmp_path / "rows.arrow", "--quiet").code == 0
    train = ["train", tmp_path / "rows.arrow", "-o", tmp_path / "model", "--solver", "newton"]
    assert "and these stay on disk with --from-disk; these" in forks(*train, "--from-disk").error
    small = forks(*train, "--memory-budget", "1kB").error
    assert "and these do not fit into the memory budget; these" in small


def test_runs_are_resumed_with_the_same_scale_and_features(forks: Forks, rows: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train = ["train", rows, "-o", tmp_path / "model", "--solver", "dcd", "--tol", "1e-9", "--json"]
    scaled = ["--scale", "unit-rows"]
    assert forks(*train, *scaled, "--checkpoint", run, "--max-epochs", "1").code == 3
    for options, now in (
        ([], "rows as they are given"),
        (["--scale", "2"], "--scale 2.0"),
        (
            ["--scale", "2", "--expand", "poly2", "--hash-bits", "9"],
            "--scale 2.0 --expand poly2 --hash-bits 9",
        ),
    ):
        error = forks(*train, "--resume", run, *options).error
        assert f"the run was trained with --scale unit-rows, and now it is {now}; resume" in error
    assert forks(*train, *scaled, "--resume", run).code == 0
    # from disk, too, where sizes are all that a digest knows
    store = tmp_path / "rows.arrow"
    assert forks("convert", rows, store, "--quiet").code == 0
    train = ["train", store, "-o", tmp_path / "model", "--from-disk", "--tol", "0", "--max-epochs", "2"]
    assert forks(*train, "--scale", "2", "--checkpoint", run).code == 3
    error = forks(*train, "--resume", run, "--quiet").error
    assert "trained with --scale 2.0, and now it is rows as they are given" in error


def test_a_file_that_is_no_saved_run(forks: Forks, rows: Path, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n")
    error = forks("train", rows, "-o", tmp_path / "model", "--resume", tmp_path / "a.png").error
    assert error.endswith(
        "a.png: not a saved run, or one that was cut short; a run with --checkpoint FILE writes one"
    )


def test_the_introduction_says_how_rows_are_expanded(forks: Forks, rows: Path, tmp_path: Path) -> None:
    train = ["train", rows, "-o", tmp_path / "model", "--expand", "poly2", "--hash-bits", "8"]
    assert "\n  expanded by poly2 to 256 columns\n" in forks(*train).out


def test_columns_are_named_for_parquet_alone(forks: Forks, rows: Path, tmp_path: Path) -> None:
    store, model = tmp_path / "rows.arrow", tmp_path / "model"
    assert forks("convert", rows, store, "--quiet").code == 0
    assert forks("train", rows, "-o", model, "--quiet").code == 0
    for command in (
        ["train", rows, "-o", model],
        ["inspect", rows],
        ["convert", rows, tmp_path / "other.arrow"],
        ["evaluate", model, rows],
    ):
        error = forks(*command, "--label", "y").error
        assert error == f"--label y is for Parquet files, and not for {rows} (svmlight text); leave it out"
    error = forks("train", store, "-o", model, "--weight", "w").error
    assert error.startswith(f"--weight w is for Parquet files, and not for {store} (dualgap store")


def test_where_rows_are_wrong(forks: Forks, tmp_path: Path) -> None:
    data = tmp_path / "rows.svm"
    train = ["train", data, "-o", tmp_path / "model"]
    data.write_text("1 1:1e200\n-1 2:1\n")
    assert forks(*train).error.startswith(f"{data}: row 0 of X has values so large")
    data.write_text("".join(f"{k / 7} 1:{k}\n" for k in range(9)))
    assert "9 different labels on 9 rows (0, 0.14" in forks(*train).error
    assert forks(*train).error.endswith(
        "each of which would be a class; for numbers use a regression loss (--loss squared)"
    )
    assert forks(*train, "--loss", "squared", "--quiet").code == 0
    data.write_text("spam 1:1\nham 1:2\n")
    error = forks("evaluate", tmp_path / "model", data).error
    assert error == f"{data}, line 1: the labels are words (ham, spam), and the model was trained on numbers"


def test_names_are_quoted_where_they_must_be(forks: Forks, rows: Path, tmp_path: Path) -> None:
    model = tmp_path / "my model"
    assert forks("train", rows, "-o", model, "--quiet").code == 0
    assert f"dualgap predict '{model}' DATA" in forks("inspect", model).out
