"""Arguments and options that name data, for all commands that read rows."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..runtime.errors import InputError

if TYPE_CHECKING:
    from ..data.dataset import DataSpec

F = TypeVar("F", bound=Callable[..., Any])

LABEL = "label"  # the column of labels of a Parquet file, unless it is named

model_argument = click.argument("model_file", metavar="MODEL", type=click.Path(path_type=Path))
data_argument = click.argument("data_file", metavar="DATA", type=click.Path(path_type=Path))


def zero_based_option(words: str) -> Callable[[F], F]:
    """``--zero-based``, whose help says what "auto" does."""
    return click.option(
        "--zero-based",
        type=click.Choice(["auto", "yes", "no"]),
        default="auto",
        show_default=True,
        help=f"Whether indices {words}",
    )


multilabel_option = click.option(
    "--multilabel", is_flag=True, help="Text: a row may have any number of labels, as in 1,5,7 3:0.5."
)


def column_options(function: F) -> F:
    """Which columns of a Parquet file are no features."""
    weight = click.option(
        "--weight", metavar="COLUMN", help="Parquet: the column of weights.  [default: none]"
    )
    label = click.option("--label", metavar="COLUMN", default=LABEL, show_default=True,
                         help="Parquet: the column of labels; all others are features.")  # fmt: skip
    return label(weight(function))


labels_option = click.option(
    "--labels",
    metavar="FILE.npy",
    type=click.Path(path_type=Path),
    help="The labels of rows in an .npy file, a number or word each (a matrix of 0 and 1: several a row).",
)
weights_option = click.option(
    "--weights", metavar="FILE.npy", type=click.Path(path_type=Path), help="Weights of such rows."
)


def array_options(function: F) -> F:
    """Labels and weights of a file that holds rows alone."""
    return labels_option(weights_option(function))


def train_arrays(function: F) -> F:
    """The same for training, and the labels of such rows that are held out."""
    held_out = click.option(
        "--validation-labels",
        metavar="FILE.npy",
        type=click.Path(path_type=Path),
        help="The labels of the rows of --validation, where these are an .npy file.",
    )
    return array_options(held_out(function))


def reading_options(function: F) -> F:
    """How DATA is read for a model."""
    base = zero_based_option("in DATA count from 0; auto: as in the file that the model was trained on.")
    return base(column_options(function))


def spec_of(data_file: Path, reading: dict[str, Any]) -> DataSpec:
    """The data that a command names, with the options of ``reading_options`` and ``array_options``."""
    from ..data.dataset import DataSpec
    from ..data.formats import ReadOptions

    check_columns(data_file, reading["label"], reading["weight"])
    columns = dict(reading)
    y, weight = columns.pop("labels", None), columns.pop("weights", None)
    return DataSpec(data_file, y, weight, columns=ReadOptions(**columns))


def check_columns(data_file: Path, label: str, weight: str | None = None) -> None:
    """Refuse names of columns for a format whose labels and weights have their own place."""
    from ..data.formats import format_of

    for option, name in (("--label", None if label == LABEL else label), ("--weight", weight)):
        if name is not None and (form := format_of(data_file)).name != "parquet":
            raise InputError(
                f"{option} {name} is for Parquet files, and not for {data_file} ({form.title}); leave it out"
            )


def check_files(outputs: dict[str, Path | None], inputs: dict[str, Path | None], *, prints: bool) -> None:
    """Refuse outputs that would overwrite an input or one another; every command that writes asks before it
    begins.

    With ``prints``, the file that the standard output goes to is an output, too.
    """
    from ..runtime.writing import check_destinations

    check_destinations(outputs, inputs)
    if prints:
        for name, file in {**inputs, **outputs}.items():
            if file is not None and _is_stdout(file):
                raise InputError(
                    f"{file}: the standard output goes there and would spoil {name}; redirect it elsewhere"
                )


def _is_stdout(file: Path) -> bool:
    """Whether a file, and no device or pipe, is what the standard output goes to."""
    try:
        found = os.fstat(1)
        return stat.S_ISREG(found.st_mode) and os.path.samestat(found, file.stat())
    except OSError:
        return False
