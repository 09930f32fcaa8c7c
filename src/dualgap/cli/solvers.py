"""``dualgap solvers``: list the solvers."""

from __future__ import annotations

import shutil
from dataclasses import asdict

import click

from .console import emit, json_option, print_table, quiet_option


@click.command(short_help="List the solvers and their options.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@json_option
@quiet_option
def command(names: tuple[str, ...], as_json: bool, quiet: bool) -> None:
    """List all solvers, or those named, with their options. Set one with --option KEY=VALUE.

    --option paper=true sets all options of a solver to what its paper did; the options of such a preset
    stand below the others.
    """
    from ..core.losses import NAMES
    from ..runtime.errors import InputError, nearest
    from ..runtime.options import options_of
    from ..solvers import SOLVERS, can_train

    for name in names:
        if name not in SOLVERS:
            raise InputError(f"unknown solver {name!r}; {nearest(name, SOLVERS)}")
    chosen = {name: SOLVERS[name] for name in names or SOLVERS}

    if as_json:
        found = [
            {
                "name": name,
                "summary": cls.summary,
                "losses": [loss for loss in NAMES if can_train(cls, loss)],
                "options": [asdict(option) for option in options_of(cls)],
                "papers": {paper: preset._asdict() for paper, preset in cls.papers.items()},
            }
            for name, cls in chosen.items()
        ]
        emit({"solvers": found})
    if as_json or quiet:
        return
    for name, cls in chosen.items():
        click.secho(name, bold=True)
        click.echo(click.wrap_text(cls.summary, shutil.get_terminal_size().columns - 1))
        rows = [[option.name, option.type, str(option.default), option.help] for option in options_of(cls)]
        if rows:
            print_table(["option", "type", "default", "meaning"], rows)
        for paper, preset in cls.papers.items():
            pairs = " ".join(f"{key}={value}" for key, value in preset.options.items()) or "the defaults"
            text = f"paper={paper}: {preset.source}: {pairs}. {preset.remark}".strip()
            click.echo(click.wrap_text(text, shutil.get_terminal_size().columns - 1, "  ", "    "))
