"""The data that ``fit`` is given: one specification, opened, with rows held out of training."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from .core.losses import Loss
from .core.offsets import with_offsets
from .data.chunks import OnDisk
from .data.dataset import Dataset, DataSpec, open_data
from .data.features import make_expansion
from .data.label_sets import LabelSets
from .data.sources import View
from .runtime.errors import InputError
from .training.validation import split_off

# arguments of `fit` that say what its data are, beside X and threads
ARGUMENTS = ("y", "sample_weight", "in_memory", "memory_budget", "scale", "expand", "hash_bits")


def data_of(given: Mapping[str, Any]) -> DataSpec | Dataset:
    """What to train on, from the arguments of ``fit`` by their names."""
    X = given["X"]
    if isinstance(X, DataSpec | Dataset):
        named = [name for name in ARGUMENTS if given[name] is not None]
        if named:
            raise InputError(f"{named[0]} belongs to the {type(X).__name__} that X is; leave it out here")
        return X
    return DataSpec(
        X,
        given["y"],
        given["sample_weight"],
        scale=given["scale"],
        expansion=make_expansion(given["expand"], given["hash_bits"]),
        in_memory=given["in_memory"],
        memory_budget=given["memory_budget"],
        threads=given["threads"],
    )


def opened(data: DataSpec | Dataset, task: str, *, depth: int) -> Dataset:
    """Open rows to train on, with a warning where they are streamed unasked.

    The user's call is ``depth`` calls above this one.
    """
    if isinstance(data, Dataset):
        return data
    found = open_data(data, task)
    if isinstance(found.source, OnDisk) and data.memory_budget is None:
        for note in found.notes:
            warnings.warn(note, stacklevel=depth + 1)
    return found


def held_out(validation: Any, data: Dataset, task: str, seed: int) -> tuple[View | OnDisk, View | None]:
    """The rows to train on, and those held out for early stopping.

    ``validation`` is a part of the rows, or other rows: a pair (X, y), the path of a file, or a Dataset.
    """
    if validation is None:
        return data.source, None
    if isinstance(validation, float | np.floating):
        if not isinstance(data.source, View):
            raise InputError(
                f"validation={float(validation)}: rows on disk cannot be split off; give a pair of arrays"
            )
        return split_off(data.source, float(validation), seed)
    return data.source, in_view(other_rows(validation, data, task, depth=5))


def other_rows(validation: Any, data: Dataset, task: str, *, depth: int) -> Dataset:
    """Rows that are no part of the training rows, opened in their columns and classes. Of several labels a
    row those that no training row has are left out, with a warning, as when a model is evaluated.

    The user's call is ``depth`` calls above this one.
    """
    if isinstance(validation, Dataset):
        return validation
    try:
        X, y = (validation, None) if isinstance(validation, str | os.PathLike) else validation
    except (TypeError, ValueError):
        raise InputError("validation must be a part of the rows between 0 and 1, or a pair (X, y)") from None
    try:
        held = open_data(DataSpec(X, y, in_memory=True, leave_out=True), task, data.schema)
    except InputError as error:
        raise InputError(f"validation {error}") from None
    if isinstance(held.labels, LabelSets) and held.labels.left_out:
        warnings.warn(f"validation: {held.labels.left_out}", stacklevel=depth + 1)
    return held


def in_view(held: Dataset) -> View:
    """Held-out rows, which must be in memory."""
    if not isinstance(held.source, View):
        raise InputError("validation: the rows do not fit into memory; hold out fewer of them")
    return held.source


def rows_with_offsets(
    source: Any, held: Any, loss: Loss, offset: Any, validation: Any, metric: Any
) -> tuple[View, View | None, Loss]:
    """Rows, held-out rows and loss with offsets. Rows that are held out are some of those that have them."""
    if held is not None and (not isinstance(validation, float | np.floating) or metric != "loss"):
        raise InputError(
            "offset= goes with validation= as a part of the rows, and metric='loss': other rows have no "
            "offsets here"
        )
    own = None if held is None else with_offsets(held, loss, offset)[0]
    rows, wrapped = with_offsets(source, loss, offset)
    return rows, own, wrapped
