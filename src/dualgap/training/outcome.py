"""What a run hands back; ``dualgap.Outcome`` adds what it does not know: labels, features, names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.problem import AnyProblem, Certificate, Intercept, Point
from ..runtime.arrays import Floats
from .incumbent import DualOrigin
from .records import Record
from .run import Run, Seconds
from .solver import AnySolver
from .stopping import Reason


@dataclass(frozen=True, eq=False)
class Result:
    """Weights with their proof and their history.

    ``dual`` is the dual point behind the lower bound: one signed number beta_i a row (-beta_i is a slope of
    its loss), with ``w(beta) = 1/(lam N) sum_i c_i beta_i x_i = C sum_i c_i beta_i x_i``. It is None where no
    dual point beats the trivial one, beta = 0. ``LinearSVC.dual_``, ``Point.beta`` and model files have the
    same scale.

    In a joint problem of K classes ``coef`` has shape (K, d), ``intercept`` (K,) and ``dual`` (n, K).

    ``coef`` and ``intercept`` are the best model seen, or with ``output="last"`` the solver's own last one,
    and ``certificate`` is about these.
    """

    coef: Floats
    intercept: Intercept
    dual: Floats | None
    certificate: Certificate
    trace: list[Record]
    reason: Reason
    converged: bool
    solver: AnySolver
    problem: AnyProblem
    run: Run  # all that is needed to go on: ``fit(..., resume=outcome.run)``
    dual_origin: DualOrigin = (
        "none"  # whose dual point the bound is: the solver's own, or improved by dual sweeps
    )
    interrupted: bool = (
        False  # Ctrl-C was pressed, even if the run ended for another reason at that very moment
    )
    story: Sequence[str] = ()  # what ``solver="auto"`` changed on the way

    @property
    def point(self) -> Point:
        """The model and the dual point, as the problem evaluates them."""
        w = self.coef if self.coef.ndim == 1 else np.ascontiguousarray(self.coef.T)
        return Point(w, self.intercept, self.dual)

    @property
    def visits(self) -> int:
        """Visits of rows."""
        return int(self.run.state.counts.visits)

    @property
    def epochs(self) -> float:
        """Visits over the number of rows with positive weight."""
        rows: int = self.problem.epoch_size
        return self.visits / rows

    @property
    def seconds(self) -> Seconds:
        """Where the time went. The last evaluation is no part of the run that can be resumed."""
        run, last = self.run.seconds, self.trace[-1] if self.trace else None
        if last is None or last.seconds < sum(run):
            return run
        return Seconds(last.train_seconds, last.certify_seconds, last.compile_seconds)

    @property
    def remark(self) -> str:
        """A sentence about a model that a user would not expect, or nothing."""
        if self.converged or self.coef.any() or np.any(self.intercept) or not self.trace:
            return ""
        if "validation" in self.trace[-1].measures:
            return (
                f"of all that {self.solver.name} has seen, the all-zero model is the best on the held-out "
                "rows: train longer (patience), hold out others, or take its own model with output='last'"
            )
        if math.isinf(self.certificate.primal):  # a hard margin that no model has met
            return ""
        if self.certificate.primal == 0.0:  # no model is better
            return ""
        own = self.trace[-1].current.primal / self.certificate.primal
        return (
            f"the all-zero model is the best that {self.solver.name} has seen (the objective of its own is "
            f"{own:.3g} times as large): train longer, try another solver, or take its own model with "
            "output='last'"
        )
