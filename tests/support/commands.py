"""The command line as other processes see it: exit codes, and both streams apart.

Importing Numba and loading kernels takes longer than most commands. So one process does that and forks for
every command: each still is a process of its own, with its own streams and exit code. As a script, this file
is that one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

TESTS = Path(__file__).parents[1]


def heed_ctrl_c() -> None:
    """For ``preexec_fn``: started in the background by a shell, pytest and its children ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Stdout, which must be exactly one JSON object on one line."""
        assert self.out.count("\n") == 1, self.out
        found = json.loads(self.out, parse_constant=lambda word: 1 / 0)
        assert isinstance(found, dict)
        return found

    @property
    def error(self) -> str:
        """The one line of a refusal, which must be all there is."""
        assert (self.code, self.out) == (2, ""), self
        assert self.err.startswith("dualgap: error: "), self.err
        assert self.err.count("\n") == 1, self.err
        return self.err.removeprefix("dualgap: error: ").rstrip()


def run(*arguments: Any, cwd: Path | None = None, timeout: float = 300, **environment: str) -> Done:
    """Run a command in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-m", "dualgap.cli", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def as_plain_python(module: str, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run a module of ``support`` as a program whose kernels are not compiled."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", module, *map(str, arguments)],
        cwd=TESTS,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )


class Forks:
    """Runs commands in forks of one process that has the imports behind it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, *arguments: Any, cwd: Path | None = None) -> Done:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._count += 1
        out, err = (self.folder / f"{self._count}.{stream}" for stream in ("out", "err"))
        self._server.stdin.write(
            json.dumps([[str(item) for item in arguments], str(out), str(err), str(cwd or ".")]) + "\n"
        )
        self._server.stdin.flush()
        code = int(self._server.stdout.readline())
        return Done(code, out.read_text(), err.read_text())

    def close(self) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(timeout=60)


@pytest.fixture(scope="module", name="forks")
def forks_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """A runner of commands, shared by the tests of a file."""
    server = Forks(tmp_path_factory.mktemp("streams"))
    yield server
    server.close()


def write_rows(
    file: Path, rows: int = 200, columns: int = 12, seed: int = 0, labels: tuple[int, int] = (-1, 1)
) -> Path:
    """Labelled rows that a line almost tells apart, as svmlight text with indices from 1."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((rows, columns)) < 0.4, rng.standard_normal((rows, columns)).round(3), 0.0)
    side = X @ np.linspace(1.0, -1.0, columns) + 0.3 * rng.standard_normal(rows) > 0
    lines = []
    for row, positive in zip(X, side, strict=True):
        entries = " ".join(f"{j + 1}:{value:g}" for j, value in enumerate(row) if value)
        lines.append(f"{labels[int(positive)]} {entries}".rstrip())
    file.write_text("\n".join(lines) + "\n")
    return file


def _serve() -> None:
    import scipy.sparse as sp

    import dualgap.files
    import dualgap.training.callbacks
    from dualgap.cli import main

    dualgap.fit(sp.csr_array(np.eye(2)), [-1, 1])  # loads the kernels that nearly every command needs
    for request in sys.stdin:
        arguments, out, err, folder = json.loads(request)
        child = os.fork()
        if child == 0:
            os.chdir(folder)
            for file, stream in ((out, 1), (err, 2)):
                os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), stream)
            try:
                main(arguments)
            except SystemExit as end:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(int(end.code or 0))  # the long way out, through Numba's rooms, takes half a second
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    _serve()
