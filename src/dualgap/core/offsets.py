"""Offsets: a known part of every row's score, ``<w, x_i> + b + o_i``, which is not trained.

A regression loss depends on ``s - y`` alone, so a row with the offset o is one with the target ``y - o``,
rounded to float64: the certificate is about these targets. A classification loss is wrapped
(``losses/offsets.py``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..data.sources import View, vector
from ..runtime.arrays import Floats, canonical
from ..runtime.errors import InputError
from .losses import JOINT, Loss
from .losses.offsets import WithOffsets


def offsets_of(offset: Any, n: int) -> Floats:
    """One finite number a row."""
    found = vector(offset, "offset", n)
    far = np.abs(found) > 1e100
    if far.any():
        raise InputError(f"offset[{int(np.argmax(far))}] is beyond 1e100; rescale the offsets")
    return found


def with_offsets(source: Any, loss: Loss, offset: Any) -> tuple[View, Loss]:
    """The rows and the loss of a problem whose scores have offsets."""
    if not isinstance(source, View):
        raise InputError("offset= needs all rows in memory; read them with in_memory=True")
    if loss.task == JOINT or loss.hard:
        raise InputError(
            f"offset= is for losses of one score a row, and not for {loss.name}; take hinge, logistic or a "
            "regression loss"
        )
    found = offsets_of(offset, source.n)
    if loss.task == "regression":
        return source.with_targets(source.y - found), loss
    records = np.empty(source.n, np.complex128)
    records.real, records.imag = source.y, found
    wrap: Any = WithOffsets  # mypy takes its constants for fields
    return replace(source, y=canonical(records, np.complex128)), wrap(loss)
