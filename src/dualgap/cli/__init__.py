"""The command line. Every subcommand is a file of this package, and imports what it needs when it runs.

So ``dualgap --help`` answers at once: nothing here, nor at the top of any subcommand's file, imports more
than click.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import click

from .. import __version__
from ..runtime.errors import InputError, KernelCacheWarning, nearest
from .console import OutputError, complain, guarded_stdout, note

OUTPUT_CLOSED = 141  # as of a program that SIGPIPE ends
COMMANDS = (
    "train",
    "predict",
    "evaluate",
    "certify",
    "inspect",
    "convert",
    "solvers",
    "losses",
    "demo",
    "warmup",
    "cache",
    "reproduce",
)
INTERRUPTED = 130


class _Commands(click.Group):
    """Subcommands by name, each loaded from its file when asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS:
            command: click.Command = import_module(f".{name}", __package__).command
            return command
        if context.resilient_parsing or name.startswith("-"):
            return None
        raise click.UsageError(f"there is no command {name!r}; {nearest(name, COMMANDS)}", context)


@click.group(
    cls=_Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="dualgap", message="%(prog)s %(version)s")
@click.pass_context
def group(context: click.Context) -> None:
    """Train linear SVMs and other linear predictors, and prove how good they are.

    Every model comes with a certificate: its objective, a lower bound that no model can beat, and the gap
    between the two.

    \b
      dualgap train data.svm.gz -o data.model    train, certify, save
      dualgap evaluate data.model test.svm.gz    score it on other rows
      dualgap certify data.model data.svm.gz     check the certificate from scratch
      dualgap demo                               see all of it work, on data that need no download
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit.

    0 done, 1 not true, 2 bad input or usage, 3 not converged, 130 interrupted, 141 the reader of stdout has
    gone, 143 terminated. Where a program gives the arguments, the process is that program's, and its signals
    are left alone.
    """
    code = INTERRUPTED
    with contextlib.suppress(KeyboardInterrupt):  # pressed while an error was being told
        code = _run(arguments)
    if arguments is None:
        _ignore_ctrl_c()
    sys.exit(code)


def _ignore_ctrl_c() -> None:
    """Ignore Ctrl-C while Python exits, which takes Numba half a second; it would end the process by a
    signal.
    """
    with contextlib.suppress(ValueError):  # not in the main thread, where signals are none of our business
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(arguments: list[str] | None) -> int:
    try:
        with guarded_stdout(), _warnings_as_notes():
            return group.main(arguments, prog_name="dualgap", standalone_mode=False) or 0
    except InputError as error:
        return complain(str(error))
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        hint = f" (see {context.command_path} --help)" if context else ""
        return complain(error.format_message().rstrip(".") + hint)
    except (click.Abort, KeyboardInterrupt) as abort:
        cause = abort if isinstance(abort, KeyboardInterrupt) else abort.__cause__
        if isinstance(cause, EOFError):  # click takes it for an interrupt
            raise cause from None
        with contextlib.suppress(OSError):
            click.echo(f"dualgap: interrupted{_notes(cause)}", err=True)
        return INTERRUPTED
    except OutputError as error:
        if error.closed:
            return OUTPUT_CLOSED
        return complain(f"{error}{_notes(error)}")


@contextlib.contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Show the library's own warnings as one line, without the place in its sources."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def shown(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if issubclass(category, KernelCacheWarning):
                note(str(message))
            else:
                show(message, category, *place)

        warnings.showwarning = shown  # type: ignore[assignment]
        yield


def _notes(error: BaseException | None) -> str:
    notes = getattr(error, "__notes__", [])
    return f" ({', '.join(notes)})" if notes else ""
