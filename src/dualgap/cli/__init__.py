"""The command line. Every subcommand is a file of this package, and imports what it needs when it runs.

So ``dualgap --help`` answers at once: nothing here, nor at the top of any subcommand's file, imports more than click.
"""

from __future__ import annotations

import sys
from importlib import import_module

import click

from .. import __version__
from ..errors import InputError, nearest
from .console import complain

COMMANDS = ("train", "predict", "evaluate", "certify", "inspect", "convert", "solvers", "losses", "demo", "warmup")
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


@click.group(cls=_Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dualgap", message="%(prog)s %(version)s")
@click.pass_context
def group(context: click.Context) -> None:
    """Train linear SVMs and other linear predictors, and prove how good they are.

    Every model comes with a certificate: its objective, a lower bound that no model can beat, and the gap between
    the two.

    \b
      dualgap train data.svm.gz -o data.model    train, certify, save
      dualgap evaluate data.model test.svm.gz    score it on other rows
      dualgap certify data.model data.svm.gz     check the certificate from scratch
      dualgap demo                               see all of it work, on data that need no download
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 not true, 2 bad input or usage, 3 not converged, 130 interrupted."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    try:
        return group.main(arguments, prog_name="dualgap", standalone_mode=False) or 0
    except InputError as error:
        return complain(str(error))
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        hint = f" (see {context.command_path} --help)" if context else ""
        return complain(error.format_message().rstrip(".") + hint)
    except (click.Abort, KeyboardInterrupt) as abort:
        if isinstance(abort.__cause__, EOFError):  # click takes it for an interrupt
            raise abort.__cause__ from None
        click.echo("dualgap: interrupted", err=True)
        return INTERRUPTED
