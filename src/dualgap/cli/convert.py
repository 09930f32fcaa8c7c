"""``dualgap convert``: svmlight text and Parquet to a store, and a store to text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .console import Size, Spinner, counted, emit, json_option, note, quiet_option, size_of
from .data import LABEL, check_columns, check_files, labels_option, multilabel_option, zero_based_option


@click.command(short_help="Convert data: svmlight text to a store, and back.")
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("destination", metavar="OUT", type=click.Path(path_type=Path))
@click.option(
    "--keep-order", is_flag=True, help="Leave the rows of a store in their order, instead of shuffling them."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the shuffle.")
@click.option("--dtype", type=click.Choice(["auto", "float32", "float64"]), default="auto", show_default=True,
              help="How a store keeps values; auto: float32 if it holds every value exactly.")  # fmt: skip
@click.option("--compression", type=click.Choice(["lz4", "zstd"]),
              help="Smaller stores that take longer to read.")  # fmt: skip
@click.option("--memory-budget", type=Size(), metavar="SIZE", default="1GB", show_default=True,
              help="Memory for rows on the way; what does not fit goes to files beside OUT.")  # fmt: skip
@click.option(
    "--weights",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="One weight a line (or .npy), for every row.",
)
@click.option(
    "--names", metavar="FILE", type=click.Path(path_type=Path), help="One name a line, for every column."
)
@click.option(
    "--n-features", type=int, help="Number of columns; a higher index is an error.  [default: as found]"
)
@zero_based_option("count from 0; auto: if there is an index 0.")
@click.option("--label", metavar="COLUMN", default=LABEL, show_default=True,
              help="Parquet: the column of labels; all others are features.")  # fmt: skip
@labels_option
@multilabel_option
@json_option
@quiet_option
def command(source: Path, destination: Path, as_json: bool, quiet: bool, **options: Any) -> None:
    """Convert IN to OUT. IN is svmlight text (plain or packed; - is the standard input), a store, a Parquet
    file, or a NumPy array (.npy) with its --labels.

    The name of OUT tells what to write. OUT.arrow is a store: an Arrow file that every solver reads without
    parsing, and that data larger than memory are trained from. Its rows are shuffled once, as training wants
    them, in bounded memory. OUT.svm is svmlight text, packed if .gz, .bz2, .xz or .zst follows.

    OUT appears when it is complete; an interrupted conversion leaves nothing behind.
    """
    from ..data.formats.converting import convert

    inputs = {"IN": source, "LABELS": options["labels"]}
    inputs |= {"WEIGHTS": options["weights"], "NAMES": options["names"]}
    check_files({"OUT": destination}, inputs, prints=as_json or not quiet)
    check_columns(source, options["label"])
    with Spinner(not quiet) as spinner:
        warned = (lambda text: None) if quiet else note
        header = convert(source, destination, told=spinner.say, warned=warned, **options)
    size = destination.stat().st_size
    if as_json:
        told = {} if header is None else {"n_samples": header.n, "n_features": header.d, "nnz": header.nnz}
        emit({"output": str(destination), "bytes": size, **told})
    if as_json or quiet:
        return
    click.echo(f"{destination}: {'svmlight text' if header is None else 'store'}, {size_of(size)}")
    if header is not None:
        click.echo(
            f"  {counted(header.n, 'row')}, {counted(header.d, 'column')}, {counted(header.nnz, 'nonzero')}"
        )
        order = "in their order" if header.seed is None else f"shuffled with seed {header.seed}"
        batches = f"{len(header.batch_rows):,} batch{'es' * (len(header.batch_rows) != 1)}"
        click.echo(f"  rows {order}, values as {header.value_type}, {batches}")
        if header.zero_based is not None and options["zero_based"] == "auto":
            click.echo(f"  indices counted from {0 if header.zero_based else 1} in {source}")
