"""Evaluation of a point of a joint problem: one pass over the rows, some thousand at a time.

Scores and ``sum_i c_i x_i beta_i^T`` are products of matrices (``products``), losses and conjugates what a
kernel makes of rows of K scores. All is float64, totals are compensated, and every rounding error is bounded:

- A score of m products errs by at most ``gamma(m + 4) (|x_i| max_k |w_k| + max_k |b_k|)``, and the loss by
  that times the sum of its |slopes| nearby (`JointLoss.row_loss`).
- The dual row of a row of data is what its entries beta_k, k != y, say; the mass, which is minus their sum,
  is computed. That leaves a relative error ``t`` (`contract.mass_error`) in each, so the dual row is off by
  at most ``1.5 t`` times its mass in length, and by ``2 t`` times its mass as a sum of absolute values.
- ``sum c x beta^T`` over the m rows of a part, in blocks, errs as a matrix by at most ``gamma(m + blocks + 2)
  sum c |x| |beta|`` for its own sums and products, with ``|beta| <= sqrt(2) mass``, and by ``1.5 t sum c |x|
  mass`` for the dual rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...data.sources import Part
from ...runtime.arrays import Floats, canonical, writable
from ...runtime.jit import kernel
from ...runtime.sums import COMPENSATED, UNIT, gamma, norm, two_sum
from ..bounds import Compensated, Sums, added
from ..evaluation import EvaluationPass, Linear, Partial
from .contract import mass_error, mass_of
from .products import blocks

NORM = 1.4143  # sqrt(2), rounded up: the length of a dual row of mass 1


class Labelled(NamedTuple):
    """What a kernel is given of rows besides their scores."""

    y: Floats
    weight: Floats
    squared_norms: Floats
    terms: Floats  # products in a score


class RowSums(NamedTuple):
    """What a block of rows adds to the sums of an evaluation, but for the balance."""

    loss: Compensated
    loss_error: float
    conjugate: Compensated
    conjugate_error: float
    mass: float
    length: float


@dataclass(frozen=True, eq=False)
class JointPass(EvaluationPass):
    """The evaluation of one point of a joint problem. ``model.length`` is the length of the longest column of
    w; moments are handed on as vectors of d K numbers.
    """

    gathers = False

    @classmethod
    def of(cls, loss: Any, w: Floats, b: Any, beta: Floats | None) -> JointPass:
        """For a model and a feasible dual point, if there is one."""
        w, b = writable(w), writable(b)
        with np.errstate(over="ignore", invalid="ignore"):
            length = float(np.sqrt(np.square(w).sum(axis=0).max())) * (1.0 + float(gamma(w.shape[0] + 4.0)))
        return cls(loss, Linear(w, b, length), None if beta is None else canonical(beta, np.float64))

    def blank(self, rows: int) -> Floats:
        """Room for the scores of so many rows."""
        return np.empty((rows, self.model.w.shape[1]))

    def visit(self, part: Part, scores: Floats) -> Partial:
        """What one part adds; the scores of its rows are written into the last argument."""
        rows, y, weight, squared_norms = part.batch
        w, length = self.model.w, self.model.length
        b: Any = self.model.b  # K of them
        count = w.shape[1]
        moment, balance = np.zeros(w.shape), np.zeros((2, count))
        beta = np.zeros((0, count)) if self.beta is None else self.beta[part.span]
        share = np.empty((0, count))
        largest = float(np.abs(b).max())
        sums: list[RowSums] = []
        for block in blocks(rows, count):
            span = block.span
            block.multiply(w, b, scores[span])
            labelled = Labelled(y[span], weight[span], squared_norms[span], block.terms())
            if self.beta is not None:
                share = np.empty((span.stop - span.start, count))
            duals = self.duals(beta[span], y[span], scores[span])
            sums.append(
                evaluate_rows(
                    labelled, self.loss, length, largest, writable(scores[span]), duals, share, balance
                )
            )
            if self.beta is not None:
                block.add_to(moment, share)
        found = together(sums, balance)
        m = y.shape[0] + len(sums) + 2.0
        error = (NORM * float(gamma(m)) + 1.5 * mass_error(count)) * found.length
        return Partial(found, moment.reshape(-1), np.zeros(0), error)

    def duals(self, beta: Floats, y: Floats, scores: Floats) -> Floats:
        """The dual rows of some rows, from the place of these rows in ``beta``."""
        return canonical(beta, np.float64)

    def mean_parts(self, part: Part) -> Compensated:
        """The total loss of one part, and nothing else."""
        return self.visit(part, self.blank(part.batch.y.shape[0])).sums.loss


@dataclass(frozen=True, eq=False)
class JointSlopesPass(JointPass):
    """The evaluation of a model, and of the duals that its own scores ask for, which are written into
    ``beta`` as rows go by.
    """

    @classmethod
    def of(cls, loss: Any, w: Floats, b: Any, beta: Floats | None) -> JointSlopesPass:
        """For a model, and the array that its duals are written into."""
        return cls(loss, JointPass.of(loss, w, b, None).model, beta)

    def duals(self, beta: Floats, y: Floats, scores: Floats) -> Floats:
        """Minus the gradients of the losses."""
        fill_slopes(y, self.loss, writable(scores), beta)
        return canonical(beta, np.float64)


def together(parts: list[RowSums], balance: Floats) -> Sums:
    """The sums of all blocks of a part."""
    loss = conjugate = Compensated(0.0, 0.0)
    for part in parts:
        loss, conjugate = added(loss, part.loss), added(conjugate, part.conjugate)
    vector: Any = balance  # K sums in place of one
    return Sums(
        loss,
        sum(part.loss_error for part in parts),
        conjugate,
        sum(part.conjugate_error for part in parts),
        Compensated(vector[0], vector[1]),
        sum(part.mass for part in parts),
        sum(part.length for part in parts),
    )


def scalar_sums(sums: Sums, *, free: bool, classes: int) -> Sums:
    """The sums with a balance and a mass that `bounds.dual_value` can take for those of one score a row.

    Of ``z = 1/N sum c beta`` it needs the length, where b is regularised, or the sum of absolute values,
    where it is free; and it takes ``COMPENSATED`` times the mass for a bound on the error of that.
    Compensated sums have COMPENSATED times the absolute values of all duals, twice the mass; the dual rows
    themselves are off by ``2 t`` times the mass (see the head of this file).
    """
    z = np.asarray(sums.balance.value)
    size = float(np.abs(z).sum()) if free else norm(z)
    factor = 2.0 + 2.0 * mass_error(classes) / COMPENSATED
    return sums._replace(balance=Compensated(size, 0.0), mass=1.01 * factor * sums.mass)


@kernel
def evaluate_rows(
    labelled: Labelled,
    loss: Any,
    length: float,
    largest: float,
    scores: Floats,
    beta: Floats,
    share: Floats,
    balance: Floats,
) -> RowSums:
    """Losses and conjugates of some rows whose scores are known; ``share_i = c_i beta_i``, with the mass for
    beta_y, and their sum is added to ``balance``, compensated. ``largest`` is max |b_k|.
    """
    y, weight, squared_norms, terms = labelled
    classes = scores.shape[1]
    dual = beta.shape[0] > 0
    tau, formula = mass_error(classes), gamma(classes + 16.0)
    total = lost = error = 0.0
    bound = bound_lost = bound_error = 0.0
    mass = lengths = 0.0
    feasible = True
    for i in range(y.shape[0]):
        c, label = weight[i], int(y[i])
        if dual:
            for k in range(classes):
                share[i, k] = 0.0
        if c == 0.0:
            continue
        size = np.sqrt(squared_norms[i])
        highest = 0.0
        for k in range(classes):
            highest = abs(scores[i, k]) if abs(scores[i, k]) > highest else highest
        off = gamma(terms[i] + 4.0) * 1.01 * (length * size + largest) + 8.0 * UNIT * (1.0 + 2.0 * highest)
        value, slopes = loss.row_loss(label, scores[i], off)
        error += c * (1.01 * slopes * off + formula * value)
        total, rest = two_sum(total, c * value)
        lost += rest
        if not dual:
            continue
        own = mass_of(label, beta[i])
        if own == 0.0:
            continue
        if not own <= 1.0:
            feasible = False
            continue
        found = loss.row_dual(label, beta[i], own)
        bound_error += c * (loss.row_dual_error(own, found, tau) + formula * found)
        bound, rest = two_sum(bound, c * found)
        bound_lost += rest
        mass += c * own
        lengths += 1.01 * c * own * size
        for k in range(classes):
            a = c * (own if k == label else beta[i, k])
            if a != 0.0:
                share[i, k] = a
                balance[0, k], rest = two_sum(balance[0, k], a)
                balance[1, k] += rest
    if not feasible:
        bound, bound_lost = -np.inf, 0.0
    return RowSums(
        Compensated(total, lost), error, Compensated(-bound, -bound_lost), bound_error, mass, lengths
    )


@kernel
def fill_slopes(y: Floats, loss: Any, scores: Floats, beta: Floats) -> None:
    """``beta_i = -grad phi(s_i, y_i)``, whose entries but beta_y are not positive."""
    for i in range(y.shape[0]):
        loss.row_gradient(int(y[i]), scores[i], beta[i])
        for k in range(beta.shape[1]):
            beta[i, k] = -beta[i, k]
