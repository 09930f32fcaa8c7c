"""Where the runs of one-vs-rest begin: a common start for all classes, by products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from .api import fit
from .core.bias import make_bias
from .core.losses import make_loss
from .data.label_sets import LabelSets
from .data.labels import Labels
from .data.rows import Dense
from .data.sources import View
from .preparing import strength
from .runtime.checks import number

if TYPE_CHECKING:
    from .solvers.joint.one_vs_rest import Start

MANY, LARGE = 4, 1_000_000  # classes, and entries, from which on a common start is looked for
# arguments of `fit` under which it may be; all others must have their defaults
ANY_WAY = {"loss", "C", "lam", "tol", "bias", "rho", "seed", "callbacks"}


def common_start(
    rows: View, labels: Labels, told: Mapping[str, Any], interrupted: Callable[[], bool]
) -> Start | None:
    """The start, where it pays: a smooth loss, dense rows, many classes, and nothing asked for that depends
    on the way to the optimum. ``told`` are the arguments of ``fit`` that were given.
    """
    parameters = signature(fit).parameters
    given = {name: parameters[name].default for name in ANY_WAY} | dict(told)
    loss, tol = make_loss(given["loss"]), number("tol", given["tol"], zero=True)
    large = isinstance(rows.rows, Dense) and rows.n * rows.d >= LARGE
    if loss.name != "logistic" or tol == 0.0 or not large:
        return None
    others = [name for name in given if name not in ANY_WAY]
    asked = any(name not in parameters or not _is(given[name], parameters[name].default) for name in others)
    if isinstance(labels, LabelSets) or labels.models < MANY or asked:
        return None
    lam, _ = strength(given["C"], given["lam"], rows.total_weight)
    if lam == 0.0:
        return None
    from .solvers.joint.one_vs_rest import one_vs_rest_start

    ridge = make_bias(given["bias"], given["rho"]).strength(lam)
    return one_vs_rest_start(rows, rows.y.astype(np.intp), labels.models, lam, ridge, tol, interrupted)


def _is(value: Any, default: Any) -> bool:
    """Whether an argument is what it would be if it were not given."""
    return value is default or (isinstance(value, str | int | float) and bool(value == default))
