"""``stop_when_decided``: a run ends once the labels of some rows are those that the exact optimum gives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .core.problem import AnyProblem, Point
from .core.regions import region_of
from .models.bounding import decided
from .models.scoring import rows_for
from .runtime.errors import InputError
from .training.callbacks import Callback
from .training.stopping import DECIDED, Reason

if TYPE_CHECKING:
    from .data.dataset import Dataset
    from .training.records import Record
    from .training.run import Run
    from .training.solver import AnySolver

FALL = 0.5  # of the gap, after which the bounds are computed anew: they take some passes over the rows


def stored_values(X: Any) -> Any:
    """The stored values of a matrix."""
    sparse: bool = sp.issparse(X)
    return X.data if sparse else X


class WhenDecided(Callback):
    """Ends a run when no further training can change the label of any of these rows."""

    def __init__(self, X: Any, data: Dataset) -> None:
        if data.labels is None:
            raise InputError("stop_when_decided= is for classes, and this is a regression; leave it out")
        if not data.source.in_memory:
            raise InputError("stop_when_decided= needs the training rows in memory (in_memory=True)")
        columns = data.schema.n_columns or data.source.d
        self._rows: Any = data.schema.expand(rows_for(X, columns))
        values = stored_values(self._rows)
        if self._rows.shape[0] == 0 or not np.isfinite(values).all():
            raise InputError("stop_when_decided= must be some rows of finite numbers")
        self._gap = math.inf
        self._problem: AnyProblem = None

    def begin(self, problem: AnyProblem, solver: AnySolver, auto_reason: str) -> None:
        """Refuse what has no bounds before training begins."""
        if problem.lam == 0.0 or (problem.bias.free and problem.scores_per_row):
            raise InputError(
                "stop_when_decided= needs lam > 0, and with all classes at once bias='none' or 'augmented'"
            )
        self._problem = problem

    def __call__(self, record: Record, run: Run) -> Reason | None:
        """Look whenever the gap has fallen enough since the last look."""
        gap = record.certificate.gap
        if record.kind != "certified" or not gap < FALL * self._gap:
            return None
        self._gap = gap
        region = region_of(self._problem, Point(run.w, run.b, run.beta))
        sure = decided([region], self._rows, several=False)
        if not sure.all():
            return None
        return Reason(
            DECIDED,
            f"converged: the labels of all {sure.size:,} rows are those of the exact optimum, at relative "
            f"gap {record.certificate.relative_gap:.3g}",
        )
