"""Environments for the peers, one each, made with pip from ``peers/*.txt``: some of them cannot live
together.

``python -m benchmarks.environments`` makes them all; a benchmark run makes those it lacks. One that cannot be
made is reported with the reason, and the run goes on without it. What was made once is used offline from then
on.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import HERE, ROOT

MAIN = "main"  # the environment that this process runs in
PLOTS = "plots"
PEERS = HERE / "peers"
HOME = ROOT / ".venvs"


@dataclass(frozen=True)
class Environment:
    """A Python to run, or the reason why there is none."""

    name: str
    python: Path | None
    reason: str = ""


def ensure(name: str, *, create: bool = True, home: Path = HOME, peers: Path = PEERS) -> Environment:
    """The environment of that name, made now if it is missing or its requirements changed."""
    if name == MAIN:
        return Environment(name, Path(sys.executable))
    wanted = peers / f"{name}.txt"
    if not wanted.is_file():
        return Environment(name, None, f"there is no {wanted.name} among the requirement files")
    folder = home / name
    python = folder / "bin" / "python"
    stamp = folder / "requirements.sha256"
    digest = hashlib.sha256(wanted.read_bytes() + sys.version.encode()).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == digest:
        return Environment(name, python)
    if not create:
        return Environment(name, None, "not set up; run python -m benchmarks.environments")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    reason = _make(folder, python, wanted)
    if reason:
        shutil.rmtree(folder, ignore_errors=True)
        return Environment(name, None, reason)
    stamp.write_text(digest)
    return Environment(name, python)


def ensure_all(names: Iterable[str]) -> dict[str, Environment]:
    """Several of them, by name."""
    return {name: ensure(name) for name in names}


def plotting(*, create: bool) -> Environment:
    """Where matplotlib is: here, or in an environment of its own."""
    if importlib.util.find_spec("matplotlib") is not None:
        return Environment(MAIN, Path(sys.executable))
    return ensure(PLOTS, create=create)


def _make(folder: Path, python: Path, wanted: Path) -> str:
    """Create and fill it; a reason if that fails, else nothing."""
    problem = _call([sys.executable, "-m", "venv", str(folder)])
    if problem:  # some systems ship Python without ensurepip
        problem = _call([sys.executable, "-m", "virtualenv", "--quiet", str(folder)])
    if problem:
        return f"no environment could be created: {problem}"
    problem = _call([str(python), "-m", "pip", "install", "--quiet", "--requirement", str(wanted)])
    return f"pip could not install it: {problem}" if problem else ""


def _call(command: list[str]) -> str:
    """Run; the last line of what it said if it failed, else nothing."""
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, capture_output=True, text=True, env=clean, check=False)
    if done.returncode == 0:
        return ""
    said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    errors = [line for line in said if line.startswith("ERROR")]
    return (errors or said or [f"exit code {done.returncode}"])[-1].strip()


def main() -> int:
    """Make all of them and say how it went."""
    for path in sorted(PEERS.glob("*.txt")):
        found = plotting(create=True) if path.stem == PLOTS else ensure(path.stem)
        print(f"{path.stem}: {'ready' if found.python else found.reason}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
