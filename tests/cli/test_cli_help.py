"""Help answers at once, and usage errors are one line."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dualgap
from dualgap.cli import COMMANDS
from support.commands import run

HEAVY = ("numba", "sklearn", "scipy", "numpy", "pyarrow", "rich")


def test_no_help_imports_anything_heavy() -> None:
    program = f"""
import sys
from dualgap.cli import main
for command in ([], *([name] for name in {COMMANDS!r})):
    try:
        main([*command, "--help"])
    except SystemExit as end:
        assert end.code == 0, command
print("loaded:", *(name for name in {HEAVY!r} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("loaded:\n")
    assert done.stdout.count("Usage: dualgap") == 1 + len(COMMANDS)
    assert done.stderr == ""


def test_help_tells_of_every_command_and_option() -> None:
    done = run("--help")
    assert (done.code, done.err) == (0, "")
    assert all(f"\n  {name} " in done.out for name in COMMANDS)
    assert run().out == done.out
    train = run("train", "-h").out
    options = (
        "--loss --C --lam --solver --tol --max-epochs --max-visits --time-limit --bias --rho --seed "
        "--threads --option "
        "--n-features --zero-based --trace --record-every --json --quiet --positive --no-duals --output"
    )
    assert all(f"{option} " in train for option in options.split())


def test_the_version() -> None:
    assert run("--version") == (0, f"dualgap {dualgap.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["trian"], "there is no command 'trian'; did you mean 'train'?"),
        (["train"], "Missing argument 'DATA' (see dualgap train --help)"),
        (["train", "x.svm"], "Missing option '-o' / '--output'"),
        (["train", "x.svm", "-o", "m", "--gpa", "1"], "No such option"),
        (["train", "x.svm", "-o", "m", "--C", "much"], "Invalid value for '--C'"),
        (["predict", "m", "x", "--zero-based", "maybe"], "'maybe' is not one of"),
    ],
)
def test_usage_errors_are_one_line(arguments: list[str], complaint: str) -> None:
    assert complaint in run(*arguments).error
