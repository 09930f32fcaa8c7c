"""Every command has --json and --quiet, and says the same things by the same names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from dualgap.cli import COMMANDS, group
from dualgap.core.certificate import Certificate
from support.commands import Done, Forks, forks_fixture, write_rows  # noqa: F401

CERTIFICATE = set(Certificate._fields)
ALIASES = {"objective_value", "lower_bound", "solver_why", "steps", "n_rows", "bound", "why"}


def commands() -> dict[str, click.Command]:
    """Every command, those of groups by both of their names."""
    context = click.Context(group)
    found: dict[str, click.Command] = {}
    for name in COMMANDS:
        command = group.get_command(context, name)
        assert command is not None
        inner = command.commands if isinstance(command, click.Group) else {"": command}
        found |= {f"{name} {key}".strip(): each for key, each in inner.items()}
    return found


def test_every_command_has_both() -> None:
    for name, command in commands().items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert {"--json", "--quiet"} <= options, name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    place = tmp_path_factory.mktemp("all")
    write_rows(place / "rows.svm")
    assert forks("train", "rows.svm", "-o", "m", "--quiet", cwd=place) == (0, "", "")
    return place


RUNS: list[tuple[Any, ...]] = [
    ("train", "rows.svm", "-o", "n"),
    ("train", "rows.svm", "--plan"),
    ("evaluate", "m", "rows.svm"),
    ("certify", "m", "rows.svm"),
    ("inspect", "m"),
    ("inspect", "rows.svm"),
    ("convert", "rows.svm", "rows.arrow"),
    ("solvers", "dcd"),
    ("losses",),
    ("predict", "m", "rows.svm", "-o", "labels"),
]


@pytest.mark.parametrize("arguments", RUNS, ids=" ".join)
def test_quiet_is_silent_and_json_is_one_object(
    folder: Path, forks: Forks, arguments: tuple[Any, ...]
) -> None:
    def run(*more: str) -> Done:
        return forks(*arguments, *more, cwd=folder)

    quiet, told, both = run("--quiet"), run("--json"), run("--json", "--quiet")
    assert quiet == (0, "", "")
    assert (told.code, told.err, both.code, both.err) == (0, "", 0, "")
    assert told.json.keys() == both.json.keys()
    report = run()
    assert report.code == 0
    assert report.err == ""
    assert bool(report.out) == (arguments[0] != "predict"), "what it was told to write is in a file"


def test_predict_prints_labels_quietly(folder: Path, forks: Forks) -> None:
    one, other = (forks("predict", "m", "rows.svm", *more, cwd=folder) for more in ((), ("--quiet",)))
    assert one == other
    assert one.out.count("\n") == 200


def keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {*value} | {key for item in value.values() for key in keys(item)}
    return {key for item in value for key in keys(item)} if isinstance(value, list) else set()


def test_one_set_of_names(folder: Path, forks: Forks) -> None:
    def told(*arguments: Any) -> dict[str, Any]:
        return forks(*arguments, "--json", cwd=folder).json

    train, certify, inspect = (
        told("train", "rows.svm", "-o", "n", "--trace", "t.jsonl"),
        told("certify", "m", "rows.svm"),
        told("inspect", "m"),
    )
    assert train.keys() >= CERTIFICATE
    assert certify["stored"].keys() == certify["recomputed"].keys() == CERTIFICATE
    assert inspect["proofs"][0]["certificate"].keys() == CERTIFICATE
    effort = {"epochs", "visits", "seconds", "converged", "stop_reason", "lam"}
    assert train.keys() >= effort
    assert inspect["proofs"][0].keys() >= effort
    assert inspect["solver"]["auto_reason"] == train["auto_reason"]
    for found in (train, certify, inspect, told("evaluate", "m", "rows.svm")):
        assert not keys(found) & ALIASES
    report = forks("train", "rows.svm", "-o", "n", cwd=folder).out
    names = [line.split("  ")[1].strip() for line in report.splitlines() if line.startswith("  ")]
    assert {"primal", "dual", "gap", "relative gap", "epochs", "seconds"} <= set(names)


@pytest.mark.slow
def test_the_demo_can_be_quiet(forks: Forks) -> None:
    assert forks("demo", "--quiet") == (0, "", "")
