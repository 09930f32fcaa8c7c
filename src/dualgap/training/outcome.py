"""What a run hands back; ``dualgap.Outcome`` adds what it does not know: labels, features, names."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.problem import Certificate, Problem
from ..runtime.arrays import Floats
from .incumbent import DualOrigin
from .records import Record
from .run import Run
from .solver import AnySolver
from .stopping import Reason


@dataclass(frozen=True, eq=False)
class Result:
    """Weights with their proof and their history.

    ``dual`` is the dual point behind the lower bound: one signed number beta_i a row (-beta_i is a slope of
    its loss), with ``w(beta) = 1/(lam N) sum_i c_i beta_i x_i = C sum_i c_i beta_i x_i``. It is None where no
    dual point beats the trivial one, beta = 0. ``LinearSVC.dual_``, ``Point.beta`` and model files have the
    same scale.
    """

    coef: Floats
    intercept: float
    dual: Floats | None
    certificate: Certificate
    trace: list[Record]
    reason: Reason
    converged: bool
    solver: AnySolver
    problem: Problem
    run: Run  # all that is needed to go on: ``fit(..., resume=outcome.run)``
    dual_origin: DualOrigin = (
        "none"  # whose dual point the bound is: the solver's own, or improved by dual sweeps
    )
    interrupted: bool = (
        False  # Ctrl-C was pressed, even if the run ended for another reason at that very moment
    )
