"""From a data file to numbers that a problem understands, and from classes back to labels."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..runtime.errors import InputError

if TYPE_CHECKING:
    from ..data.table import Data
    from ..models.model import Model
    from ..runtime.arrays import Floats

REST = "rest"  # how the negative class of a one-against-the-rest model is shown

model_argument = click.argument("model_file", metavar="MODEL", type=click.Path(path_type=Path))
data_argument = click.argument("data_file", metavar="DATA", type=click.Path(path_type=Path))
zero_based_option = click.option(
    "--zero-based",
    type=click.Choice(["auto", "yes", "no"]),
    default="auto",
    show_default=True,
    help="Whether indices in DATA count from 0; auto: as in the file that the model was trained on.",
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


def read_for(model: Model, path: Path, zero_based: str) -> Data:
    """All rows of a file, in the columns of a model."""
    from ..data.formats.reading import read_data

    return _same_names(model, read_data(path, **_columns_of(model, path, zero_based)))


def stream_for(model: Model, path: Path, zero_based: str) -> Iterator[Data]:
    """The rows of a file in blocks, in the columns of a model."""
    from ..data.formats.reading import stream_data

    for data in stream_data(path, **_columns_of(model, path, zero_based)):
        yield _same_names(model, data)


def _columns_of(model: Model, path: Path, zero_based: str) -> dict[str, Any]:
    from ..data.formats.reading import kind_of

    if zero_based == "auto" and model.zero_based is not None and kind_of(path) != "store":
        zero_based = "yes" if model.zero_based else "no"
    too_wide = (
        "these are all that the model was trained on: drop the others, or train with a larger --n-features"
    )
    return {"n_features": model.n_columns, "zero_based": zero_based, "too_wide": too_wide}


def _same_names(model: Model, data: Data) -> Data:
    """Refuse columns that go by other names than those the model was trained on."""
    ours, theirs = model.feature_names, data.feature_names
    if ours is not None and theirs is not None:
        for k, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            if one != other:
                raise InputError(f"{data.path}: column {k} is {other!r} there, and {one!r} in the model")
    return data


def training_targets(data: Data, positive: str | None) -> tuple[Floats, tuple[Any, Any]]:
    """Labels as -1 and +1, and the classes that these stand for."""
    import numpy as np

    found = np.unique(data.y)
    names = ", ".join(shown(label) for label in found[:8]) + (", ..." if found.size > 8 else "")
    if found.size == 1:
        raise InputError(
            f"{data.path}: all rows have the label {names}; a classifier needs rows of two classes"
        )
    if positive is None:
        if found.size > 2:
            raise InputError(
                f"{data.path}: {found.size} classes ({names}) where two are needed; "
                "--positive LABEL trains that one against the rest"
            )
        chosen = found[1]
    else:
        chosen = label_of(positive)
        if chosen not in found:
            raise InputError(
                f"{data.path}: no row has the label {positive} of --positive; there are: {names}"
            )
    others = found[found != chosen]
    negative = None if others.size > 1 else plain(others[0])
    return np.where(data.y == chosen, 1.0, -1.0), (negative, plain(chosen))


def model_targets(model: Model, data: Data) -> Floats:
    """The targets of a file's rows as the model's problem sees them: -1 and +1, or any number for
    regression.
    """
    if model.classes is None:
        return data.y
    if model.coef.shape[0] > 1:
        raise InputError(
            f"the model tells {len(model.classes)} classes apart; this command takes models of two"
        )
    negative, positive = model.classes
    return signs(data, negative, positive, "the model's")


def signs(data: Data, negative: Any, positive: Any, whose: str) -> Floats:
    """Labels of two known classes as -1 and +1; a negative class of None is every other label."""
    import numpy as np

    known = np.isin(data.y, [positive] if negative is None else [negative, positive])
    if negative is not None and not known.all():
        row = int(np.argmin(known))
        raise InputError(
            f"{data.place(row)}: label {shown(data.y[row])} is none of {whose}, "
            f"which are {shown(negative)} and {shown(positive)}"
        )
    return np.where(data.y == positive, 1.0, -1.0)


def plain(label: Any) -> Any:
    """A label as the file has it: 1 and not 1.0."""
    number = float(label)
    return int(number) if number.is_integer() else number


def shown(label: Any) -> str:
    """A label for people and for files of predictions."""
    if label is None:
        return REST
    return label if isinstance(label, str) else str(plain(label))


def label_of(text: str) -> float:
    """What ``--positive`` names."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--positive {text!r} is not a number, as labels in data files are") from None
