"""``dualgap losses``: list the losses."""

from __future__ import annotations

import click

from .console import emit, json_option, print_table, quiet_option


@click.command(short_help="List the losses and their parameters.")
@json_option
@quiet_option
def command(as_json: bool, quiet: bool) -> None:
    """List the losses with their parameters and defaults. Set one with --loss NAME:PARAMETER=VALUE.

    The last ones are for K classes at once: s_k is the score of class k, y the number of the row's class.
    A and B are constants with phi'^2 <= A phi + B, phi the loss, which theorems on `sgd` depend on (train
    --plan).
    """
    from ..core.losses import every_loss, parameters_of

    found = [
        {
            "name": name,
            "task": loss.task,
            "meaning": loss.summary,
            "parameters": parameters_of(loss),
            "slope_bounds": [{"A": A, "B": B} for A, B in loss().zhang_pairs],
        }
        for name, loss in every_loss().items()
    ]
    if as_json:
        emit({"losses": found})
    if as_json or quiet:
        return
    for task in dict.fromkeys(item["task"] for item in found):
        click.secho("for K classes at once" if task == "classes" else f"for {task}", bold=True)
        rows = [
            [
                item["name"],
                " ".join(f"{key}={value:g}" for key, value in item["parameters"].items()),
                " or ".join(f"{pair['A']:g}, {pair['B']:g}" for pair in item["slope_bounds"]),
                item["meaning"],
            ]
            for item in found
            if item["task"] == task
        ]
        print_table(["loss", "parameters", "A, B", "meaning (s: score, y: target)"], rows)
