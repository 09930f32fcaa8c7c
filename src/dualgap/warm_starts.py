"""Where a run begins: what ``fit`` takes as ``warm=`` and ``resume=``."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .core.problem import Point, Regularised
from .data.labels import plain
from .models.model import Model
from .runtime.arrays import Floats
from .runtime.checks import shown
from .runtime.errors import InputError
from .solvers import SOLVERS
from .solvers.auto import SECOND_ORDER
from .solvers.switching import State
from .training.checkpoint import read_state
from .training.outcome import Result
from .training.run import Run


def starting_point(warm: Any, classes: Any, problem: Regularised) -> Point | None:
    """The point that ``warm=`` stands for, once it is known to fit the data."""
    if warm is None:
        return None
    if isinstance(warm, Result):
        point = Point(warm.run.w, warm.run.b, warm.run.beta)
    elif isinstance(warm, Model):
        point = _point_of(warm, classes, joint=bool(problem.scores_per_row))
    elif isinstance(warm, Point):
        dimensions = 1 + len(problem.scores_per_row)
        beta = None if warm.beta is None else _floats("beta", warm.beta, dimensions)
        b = _floats("b", warm.b, 1) if dimensions > 1 else float(_floats("b", [warm.b], 1)[0])
        point = Point(_floats("w", warm.w, dimensions), b, beta)
    else:
        hint = "; a Run goes on with resume=" if isinstance(warm, Run) else ""
        raise InputError(
            f"warm={shown(warm)} must be an Outcome, a Model (load_model) or a Point(w, b, beta){hint}"
        )
    source, several = problem.source, problem.scores_per_row
    d, n = point.w.shape[0], source.n if point.beta is None else point.beta.shape[0]
    if (d, n) != (source.d, source.n):
        raise InputError(
            f"warm start of {n} rows and {d} columns for data of {source.n} rows and {source.d} columns"
        )
    shapes = {point.w.shape[1:], np.shape(point.b)}
    shapes |= set() if point.beta is None else {point.beta.shape[1:]}
    if shapes != {several}:
        theirs = " or ".join(str(shape[0]) if shape else "1" for shape in sorted(shapes))
        raise InputError(
            f"warm start of {theirs} scores a row for a problem of {several[0] if several else 1}"
        )
    for name, part in (("w", point.w), ("b", point.b), ("beta", point.beta)):
        if part is not None and not np.isfinite(part).all():
            raise InputError(f"the warm start has {name} with NaN or infinity; begin without it")
    return point


def second_order_first(warm: Any, resume: Run | None) -> bool:
    """Whether ``solver="auto"`` is to begin with its method of second order: the run that the warm start
    comes from ended with it, or the run to be resumed began so.

    What one C needed is the best forecast for the next. That coordinates sufficed says less, as a larger C
    needs more of them.
    """
    if isinstance(warm, Result):
        return isinstance(warm.run.state, State) and warm.run.state.active == 1
    if isinstance(warm, Model):
        return bool(warm.auto_reason) and warm.solver in SECOND_ORDER
    return resume is not None and isinstance(resume.state, State) and resume.state.begun == 1


def load_state(path: str | os.PathLike[str]) -> Run:
    """Read what ``save_state`` wrote; give it to ``fit(..., resume=...)`` with the same data and options.

    A file is data: it names classes of a fixed list and holds numbers and texts, which are checked here by
    themselves and against data and options when the run is resumed. So files from strangers may be read.
    """
    tuple(SOLVERS.values())  # imports them all, which registers the classes of their states
    return read_state(path)


def run_to_resume(resume: Any, warm: Any) -> Run | None:
    """The run that ``resume=`` stands for."""
    if resume is None:
        return None
    if warm is not None:
        raise InputError(
            "both warm= and resume= are given; give warm= for another run's point, resume= to go on"
        )
    if isinstance(resume, Result):
        return resume.run
    if isinstance(resume, Run):
        return resume
    if isinstance(resume, str | os.PathLike):
        return load_state(resume)
    raise InputError(
        f"resume={shown(resume)} must be the name of a saved run's file, a Run (load_state, outcome.run) "
        "or an Outcome"
    )


def _point_of(model: Model, classes: Any, *, joint: bool) -> Point:
    """The point that a saved model holds: of two classes, for regression, or a joint one."""
    if joint != model.joint:
        kinds = "the classes at once", "one score a row"
        raise InputError(f"warm: a model of {kinds[joint]}; start from one of {kinds[not joint]}")
    if joint:
        if model.classes != tuple(map(plain, classes)):
            raise InputError("warm: a model of other classes; start from one of the same")
        dual = None if model.dual is None else np.ascontiguousarray(model.dual.toarray().T)
        return Point(np.ascontiguousarray(model.coef.T), model.intercept.copy(), dual)
    if model.coef.shape[0] > 1:
        raise InputError(f"warm: a model of {model.coef.shape[0]} classes; start from a model of two")
    turned = model.classes is not None and classes is not None and model.classes == tuple(classes[::-1])
    sign = -1.0 if turned else 1.0  # its positive class is the negative one here
    beta = None if model.dual is None else sign * model.dual.toarray()[0]
    return Point(sign * model.coef[0], sign * float(model.intercept[0]), beta)


def _floats(name: str, values: Any, dimensions: int) -> Floats:
    """A vector or matrix of a warm start in float64."""
    try:
        array = np.asarray(values)
        if array.ndim == dimensions and array.dtype.kind in "iuf":
            return array.astype(np.float64, copy=False)
    except ValueError:  # rows of different lengths
        pass
    vector = "a vector of numbers" if dimensions == 1 else "a matrix of numbers, a column for each class"
    wanted = "a number" if name == "b" and isinstance(values, list) else vector
    raise InputError(f"warm: {name} is {shown(values)}; it must be {wanted}")
