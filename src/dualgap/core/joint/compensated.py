"""Evaluations of joint problems with smaller rounding errors: scores and ``sum c x beta^T`` are computed to
nearly twice the precision of float64, class by class, by what `core.compensated` has for one score a row.

It takes many times as long as a plain evaluation, and is for points whose rounding bound is what stands
between the gap and the one asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...data.sources import Part
from ...runtime.arrays import Floats, canonical, writable
from ...runtime.sums import COMPENSATED, UNIT, gamma, norm, summed
from ..compensated import LEAST_SIZE, add_rows_with_errors, scores_with_errors
from ..evaluation import Linear, Partial
from .contract import mass_error
from .evaluation import NORM, JointPass, Labelled, evaluate_rows, together


@dataclass(frozen=True, eq=False)
class CompensatedJointPass(JointPass):
    """The evaluation of one point of a joint problem, with errors of a few units."""

    def visit(self, part: Part, scores: Floats) -> Partial:
        """What one part adds; the scores of its rows are written into the last argument.

        With the scores at hand a score is taken for one product of length 1, whose row has such a size that
        the bound of a plain evaluation, ``gamma(5) 1.01 size``, is the bound on the score's error.
        """
        rows, y, weight, squared_norms = part.batch
        n, K = scores.shape
        errors = self._scores(part, scores)
        size = np.maximum(errors / (5.0 * UNIT), LEAST_SIZE)
        labelled = Labelled(y, weight, canonical(size * size, np.float64), np.ones(n))
        has = self.beta is not None
        beta = np.zeros((0, K)) if self.beta is None else canonical(self.beta[part.span], np.float64)
        share, balance = np.zeros((n if has else 0, K)), np.zeros((2, K))
        found = evaluate_rows(labelled, self.loss, 1.0, 0.0, writable(scores), beta, share, balance)
        sums = together([found], balance)
        d = int(self.model.w.shape[0])
        moment = np.zeros((d, K))
        length = 0.0
        if has:
            own = share[np.arange(n), y.astype(np.intp)]  # the mass of each row, times its weight
            length = 1.01 * float(sum(summed(own * np.sqrt(squared_norms))))
            for k in range(K):
                total, lost = np.zeros(d), np.zeros(d)
                add_rows_with_errors(rows, canonical(share[:, k], np.float64), total, lost)
                moment[:, k] = total + lost
        error = NORM * (3.0 * UNIT + 2.0 * float(gamma(n + 4.0)) ** 2) + 1.5 * float(mass_error(K))
        return Partial(sums._replace(length=length), moment.reshape(-1), np.zeros(0), error * length)

    def _scores(self, part: Part, scores: Floats) -> Floats:
        """Fill in the scores; of every row a bound on the errors of all of them."""
        w, b = self.model.w, np.asarray(self.model.b)
        worst, column, errors = (
            np.zeros(scores.shape[0]),
            np.empty(scores.shape[0]),
            np.empty(scores.shape[0]),
        )
        for k in range(scores.shape[1]):
            weights = writable(w[:, k])
            model = Linear(weights, float(b[k]), norm(weights) * (1.0 + COMPENSATED))
            scores_with_errors(part.batch, model, column, errors)
            scores[:, k] = column
            np.maximum(worst, errors, out=worst)
        return worst
