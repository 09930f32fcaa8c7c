"""Scores and ``sum c beta x`` to nearly twice the precision of float64, for evaluations whose rounding bound
is what stands between the gap and the one asked for.

A plain score of k products is only known within ``gamma(k + 2) (|w| |x| + |b|)``. Where the optimum is small
beside that, as for rows of ten thousand large entries that a short w separates, no certificate gets below it.
Here every product and every sum is taken with its rounding error (Ogita, Rump and Oishi, SIAM J. Sci. Comput.
2005), which leaves, for k terms ``t`` and b:

    total + sum of all errors = the exact sum,     |errors| <= u sum |t| + k u (1 + gamma(k)) sum |t|.

The errors are added up plainly, in sums of depth k + 2, so that loses at most ``gamma(k + 2) gamma(k + 2) sum
|t|``, and the last addition at most u times its result: together

    |computed - exact| <= u |computed| + 2 gamma(k + 4)^2 sum |t|.

Products of which a part is below the smallest float lose less than ``VANISHED`` in all. This takes four times
as long as a plain evaluation, and is compiled only where it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.rows import Batch, Dense
from ..data.sources import Part
from ..runtime.arrays import Floats, canonical
from ..runtime.jit import inner, kernel
from ..runtime.sums import UNIT, gamma, summed, two_sum
from .bounds import VANISHED
from .evaluation import EvaluationPass, Linear, Partial

SPLIT = 2.0**27 + 1.0  # Veltkamp's: cuts a float into halves of 26 bits
LEAST_SIZE = 1e-100  # whose square is still a float


@dataclass(frozen=True, eq=False)
class CompensatedPass(EvaluationPass):
    """The evaluation of one point, with errors of a few units."""

    gathers = False

    def visit(self, part: Part, scores: Floats) -> Partial:
        """What one part adds; the scores of its rows are written into the last argument.

        With the scores at hand, a score is a row of one entry, and the model 1: a plain evaluation of these
        rows does the rest. It takes a score to err by ``gamma(5) 1.01 size`` or more, and size is chosen so
        that this is the bound.
        """
        rows, y, weight, squared_norms = part.batch
        n, d = y.shape[0], self.model.w.size
        beta = np.zeros(n) if self.beta is None else self.beta[part.span]
        errors = np.empty(n)
        scores_with_errors(part.batch, self.model, scores, errors)
        size = np.maximum(errors / (5.0 * UNIT), LEAST_SIZE)
        column = Dense(canonical(scores[:, None], np.float64))
        batch = Batch(column, y, weight, canonical(size * size, np.float64))
        plain = EvaluationPass(self.loss, Linear(np.ones(1), 0.0, 1.0), beta)
        sums = plain.sums(Part(batch, slice(0, n)), np.empty(n), np.zeros(1))

        share = canonical(weight * beta, np.float64)
        total, lost = np.zeros(d), np.zeros(d)
        add_rows_with_errors(rows, share, total, lost)
        length = 1.01 * sum(summed(np.abs(share) * np.sqrt(squared_norms)))
        # Of sum |share| |x|: a unit for the share, one for the last addition, and 2 gamma(n + 4)^2.
        error = (3.0 * UNIT + 2.0 * float(gamma(n + 4.0)) ** 2) * length
        return Partial(sums._replace(length=length), total + lost, np.zeros(0), error)


@inner
def two_product(a: float, b: float) -> tuple[float, float]:
    """``a b`` and its rounding error, exactly (Dekker), unless something is below the smallest float."""
    product = a * b
    c = SPLIT * a
    high = c - (c - a)
    low = a - high
    c = SPLIT * b
    other_high = c - (c - b)
    other_low = b - other_high
    return product, low * other_low - (((product - high * other_high) - low * other_high) - high * other_low)


@kernel
def scores_with_errors(batch: Batch, model: Linear, scores: Floats, errors: Floats) -> None:
    """``<w, x_i> + b`` for every row, and bounds on their errors."""
    rows, _, _, squared_norms = batch
    w, b, length = model
    for i in range(scores.shape[0]):
        total, lost = b, 0.0
        count = rows.count(i)
        for k in range(count):
            column, value = rows.entry(i, k)
            product, error = two_product(w[column], value)
            total, rest = two_sum(total, product)
            lost += error + rest
        score = total + lost
        scores[i] = score
        square = gamma(count + 4.0) * gamma(count + 4.0)
        most = 1.01 * (length * np.sqrt(squared_norms[i]) + abs(b))  # sum |t|, by Cauchy and Schwarz
        errors[i] = UNIT * abs(score) + 2.0 * square * most + VANISHED


@kernel
def add_rows_with_errors(rows: Any, share: Floats, total: Floats, lost: Floats) -> None:
    """``total + lost += sum share_i x_i``, element by element, each sum and product with its error."""
    for i in range(share.shape[0]):
        if share[i] != 0.0:
            for k in range(rows.count(i)):
                column, value = rows.entry(i, k)
                product, error = two_product(share[i], value)
                total[column], rest = two_sum(total[column], product)
                lost[column] += error + rest
