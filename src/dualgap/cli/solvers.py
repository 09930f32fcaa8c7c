"""``dualgap solvers``: what there is to choose from."""

from __future__ import annotations

from dataclasses import asdict

import click

from .console import emit, json_option, print_table


@click.command(short_help="List the solvers and their options.")
@json_option
def command(as_json: bool) -> None:
    """List the solvers with their options. Set one with --option KEY=VALUE."""
    from ..solvers import SOLVERS, options_of

    if as_json:
        emit(
            {
                "solvers": [
                    {"name": name, "meaning": cls.meaning, "options": [asdict(option) for option in options_of(cls)]}
                    for name, cls in SOLVERS.items()
                ]
            }
        )
        return
    for name, cls in SOLVERS.items():
        click.secho(name, bold=True, nl=False)
        click.echo(f": {cls.meaning}")
        rows = [[option.name, option.type, str(option.default), option.help] for option in options_of(cls)]
        if rows:
            print_table(["option", "type", "default", "meaning"], rows)
