"""``dualgap reproduce``: the tables and figures of the papers, redone."""

from __future__ import annotations

from pathlib import Path

import click

from .console import emit, json_option, note, print_table, quiet_option


@click.command(short_help="Redo the tables and figures of the papers.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="List the experiments and end.")
@click.option("--quick/--full", default=True, help="On small data in seconds (default), or as in the papers.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("experiments"),
    show_default=True,
    help="The folder of results; quick ones go into its folder 'quick'.",
)
@click.option("--figures/--no-figures", default=True, help="Draw the figures (needs matplotlib).")
@json_option
@quiet_option
def command(
    names: tuple[str, ...],
    listing: bool,
    quick: bool,
    out: Path,
    figures: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Redo experiments by name, all those of a paper, or all of them.

    Writes RESULTS.md and index.html, with our figures beside those of the papers and a sentence on every
    difference. A full run may take hours; interrupted, it goes on where it was. Real data sets are looked for
    in the folder that the environment variable DUALGAP_DATA names; what is missing there is replaced by
    generated rows, under a name that says so.

    \b
      dualgap reproduce --list
      dualgap reproduce zhang-figure-1
      dualgap reproduce panagiotakopoulos --full
    """
    from ..experiments import PAPERS, chosen, page
    from ..experiments.lab import Lab
    from ..experiments.pictures import draw

    experiments = chosen(names)
    if listing:
        if as_json:
            emit({"experiments": [item._asdict() for item in experiments]})
        elif not quiet:
            for paper in dict.fromkeys(item.paper for item in experiments):
                click.secho(PAPERS[paper], bold=True)
                print_table(
                    ["name", "redoes"],
                    [[item.name, item.title] for item in experiments if item.paper == paper],
                )
        return
    folder = out / "quick" if quick else out
    folder.mkdir(parents=True, exist_ok=True)
    tell = (lambda text: None) if quiet or as_json else (lambda text: note(f"  {text}"))
    found = []
    for item in experiments:
        if not (quiet or as_json):
            note(f"{item.name}: {item.title}")
        lab = Lab(quick=quick, kept=None if quick else folder / ".measurements", tell=tell)
        report = item.run(lab)
        page.save(folder, item, report)
        if figures:
            for figure in report.figures:
                draw(figure, folder / "figures")
        page.write(folder)  # after every one: what an interrupt leaves is a page of all that is done
        found.append({"name": item.name, **report.as_dict()})
        if not (quiet or as_json):
            for claim in report.claims:
                click.echo(f"{page.MARKS[claim.verdict]} {claim.verdict}: {claim.text} ({claim.evidence})")
    if as_json:
        emit({"experiments": found})
    elif not quiet:
        click.echo(f"{folder / 'RESULTS.md'}, {folder / 'index.html'}")
