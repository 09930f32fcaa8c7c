"""Commands of dualgap in processes that can be killed or kept from writing.

A server imports the command line once and forks a process for each command, so that a kill meets the work of
the command and not its imports. As a program (``python -m torture.commands``) it is that server.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

LONGEST = 300.0  # seconds that any command may take


class Done(NamedTuple):
    """What became of a command."""

    code: int  # its exit code, or minus the number of the signal that ended it
    seconds: float
    killed: bool  # the signal was sent while it ran
    told: str  # on standard output and standard error


class Server:
    """Runs commands, one at a time, in forks of a process that has its imports behind it."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "torture.commands"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *fault: object) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(timeout=60)

    def __call__(
        self,
        *arguments: str | Path,
        folder: Path,
        kill: tuple[float, int] | None = None,
        cache: Path | None = None,
        largest: int | None = None,
    ) -> Done:
        """Run ``dualgap ARGUMENTS``, or a module of this package where the first one says so.

        ``kill`` is a number of seconds and a signal, ``cache`` the folder of kernels, ``largest`` the size at
        which files cannot grow any more.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {
            "arguments": [str(argument) for argument in arguments],
            "folder": str(folder),
            "kill": kill,
            "cache": None if cache is None else str(cache),
            "largest": largest,
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the server of commands has ended")
        return Done(**json.loads(answer))


def serve() -> None:
    """Fork a process for every request on the standard input, and tell what became of it."""
    import dualgap.files
    import dualgap.training.callbacks  # noqa: F401
    from dualgap.cli import main

    from . import loops

    for line in sys.stdin:
        request = json.loads(line)
        start = time.monotonic()
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _become(request, writing, loops.main if request["arguments"][0] == "loop" else main)
        os.close(writing)
        killed, told = _watch(child, reading, request["kill"], start)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(reading)
        answer = Done(code, time.monotonic() - start, killed, told.decode(errors="replace"))
        print(json.dumps(answer._asdict()), flush=True)


def _become(request: dict[str, Any], output: int, main: Callable[[list[str]], Any]) -> None:
    """The command, in the forked process."""
    os.chdir(request["folder"])
    null = os.open(os.devnull, os.O_RDONLY)
    for number, place in ((0, null), (1, output), (2, output)):
        os.dup2(place, number)
    if request["cache"] is not None:
        os.environ["DUALGAP_CACHE"] = request["cache"]
    if request["largest"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest"], resource.RLIM_INFINITY))
    code: Any = 1
    try:
        main(request["arguments"])
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _watch(child: int, output: int, kill: list[Any] | None, start: float) -> tuple[bool, bytes]:
    """Read what a process says until it ends; kill it when it is time."""
    told, killed = b"", False
    while True:
        due = kill[0] if kill is not None and not killed else LONGEST
        ready, _, _ = select.select([output], [], [], max(0.0, start + due - time.monotonic()))
        if ready:
            piece = os.read(output, 65536)
            if not piece:
                return killed, told
            told += piece
        elif kill is not None and not killed:
            os.kill(child, kill[1])  # it has not been waited for, so the number is still its own
            killed = True
        else:
            os.kill(child, signal.SIGKILL)
            raise TimeoutError(f"a command has not ended after {LONGEST:g} s")


if __name__ == "__main__":
    serve()
