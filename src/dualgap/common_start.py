"""Where the runs of one-vs-rest begin: a common start for all classes, which have the rows in common.

It is for dense rows: on sparse ones (news20) each class by itself is as fast. With the logistic loss it is
found by Newton's method, products of one matrix with K columns (`solvers.joint.one_vs_rest`), else by dual
coordinate descent that reads a row once for all classes (`solvers.joint.together`). The certificates of all
classes come from the same passes (`core.several`); a class that is within its gap needs no step of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from .api import fit
from .core.bias import make_bias
from .core.losses import make_loss
from .core.problem import Point, Problem
from .data.label_sets import LabelSets
from .data.labels import Labels
from .data.rows import Dense
from .data.sources import View
from .preparing import strength
from .runtime.checks import number, whole
from .solvers.auto import choose, switching
from .training.incumbent import Known

if TYPE_CHECKING:
    from .solvers.joint.together import Class

MANY, LARGE = 4, 1_000_000  # classes, and stored entries, from which on a common start is looked for
# arguments of `fit` under which it may be; all others must have their defaults
ANY_WAY = {"loss", "C", "lam", "tol", "bias", "rho", "seed", "callbacks"}


def common_start(
    rows: View, labels: Labels, told: Mapping[str, Any], interrupted: Callable[[], bool]
) -> dict[int, tuple[Point, Known | None]] | None:
    """Where each class begins, and the evaluation of that point where its gap is small enough already; None
    where a common start does not pay: it is for large dense data of many classes, where coordinates are a
    good beginning, and where nothing is asked for that depends on the way to the optimum. ``told`` are the
    arguments of ``fit`` that were given.
    """
    parameters = signature(fit).parameters
    given = {name: parameters[name].default for name in ANY_WAY} | dict(told)
    loss, tol = make_loss(given["loss"]), number("tol", given["tol"], zero=True)
    others = [name for name in given if name not in ANY_WAY]
    asked = any(name not in parameters or not _is(given[name], parameters[name].default) for name in others)
    if isinstance(labels, LabelSets) or labels.models < MANY or asked:
        return None
    large = isinstance(rows.rows, Dense) and rows.nnz >= LARGE
    if loss.task != "classification" or loss.hard or tol == 0.0 or not large:
        return None
    lam, _ = strength(given["C"], given["lam"], rows.total_weight)
    if lam == 0.0:
        return None
    bias = make_bias(given["bias"], given["rho"])
    problems = [
        Problem(rows.with_targets(labels.against(rows.y, k)), loss, lam, bias) for k in range(labels.models)
    ]
    codes = rows.y.astype(np.intp)
    found: list[Class]
    if loss.name == "logistic":
        from .solvers.joint.one_vs_rest import one_vs_rest_start

        ridge = bias.strength(lam)
        start = one_vs_rest_start(rows, codes, labels.models, lam, ridge, tol, interrupted)
        found = start.classes(problems, codes, tol)
    elif _coordinates_begin(problems[0]):
        from .solvers.joint.together import trained_together

        seed = whole("seed", given["seed"], 0)
        found = trained_together(problems, codes, tol, seed, rows.threads, interrupted)
    else:
        return None
    none = np.zeros(0)  # a run that makes no step needs no scores
    return {
        k: (point, None if value is None else Known(problem, value._replace(scores=none)))
        for k, (problem, (point, value)) in enumerate(zip(problems, found, strict=True))
    }


def _coordinates_begin(problem: Problem) -> bool:
    """Whether ``auto`` begins with coordinates."""
    return choose(problem)[0] == "auto" and switching(problem, 0)[0].begins == 0


def _is(value: Any, default: Any) -> bool:
    """Whether an argument is what it would be if it were not given."""
    return value is default or (isinstance(value, str | int | float) and bool(value == default))
