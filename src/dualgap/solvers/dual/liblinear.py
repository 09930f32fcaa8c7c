"""Epochs of dual coordinate descent as LIBLINEAR makes them (Hsieh, Chang, Lin, Keerthi and Sundararajan,
ICML 2008, Algorithm 3), with its shrinking and its stopping rule: an option of ``dcd``.

With G the slope of the negated dual along a_i = y_i beta_i, and PG its projection (0 where the row is
optimal), a row at 0 with G above the largest PG of the epoch before is shrunk, one at its upper bound with G
below the smallest likewise. An epoch whose PG range within e ends the run if all rows were active; else all
rows are restored. A largest PG that is not positive, or a smallest that is not negative, shrinks nothing in
the next epoch.

The rule is no bound on the gap: at e = 0.1, LIBLINEAR's default, models are often 1% from the optimum.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...runtime.arrays import Floats, Words
from ...runtime.counts import Counts
from ...runtime.jit import kernel
from ...runtime.random import shuffle
from ...training.states import Extended, state_class
from .shrinking import projected_slope

SMALL = 1e-12  # a projected gradient of at most this moves nothing


@state_class
class Extremes(NamedTuple):
    """The largest and the smallest projected gradient."""

    high: Extended = -np.inf  # of this epoch so far
    low: Extended = np.inf
    bar_high: Extended = np.inf  # beyond which rows are shrunk: those of the epoch before
    bar_low: Extended = -np.inf


class Place(NamedTuple):
    """Where the epochs stand; the first ``active`` of the rows take part."""

    b: float
    active: int
    position: int  # of the next row; -1 before an epoch is shuffled
    extremes: Extremes
    counts: Counts


class Rule(NamedTuple):
    """How epochs are made."""

    shrinking: bool
    e: float  # the run ends where projected gradients range within this
    stop: int  # visits at which it pauses


@kernel
def sweep_as_liblinear(
    batch: Any, loss: Any, geometry: Any, w: Floats, beta: Floats, order: Any, place: Place, rule: Rule
) -> tuple[Place, bool]:
    """Epochs until ``rule.stop`` rows are visited or the rule is met; whether it is. ``order`` is the rows of
    positive weight, and the state of a generator.
    """
    rows, y, weight, squared_norms = batch
    scale, _, bias_rate = geometry
    shrinking, e, stop = rule
    active_rows, rng = order
    b, active, position, (high, low, bar_high, bar_low), (visits, updates, entries) = place
    met = False
    while visits < stop and not met:
        if position < 0:
            shuffle(rng, active_rows, active)
            position = 0
            high, low = -np.inf, np.inf
        while position < active and visits < stop:
            i = np.int64(active_rows[position])
            score = rows.dot(i, w) + b
            visits += 1
            entries += rows.count(i)
            left, right = loss.dual_subdifferential(y[i], score, beta[i])  # along y_i beta_i
            at_low, at_high = left == -np.inf, right == np.inf
            if shrinking and ((at_low and right > bar_high) or (at_high and left < bar_low)):
                active -= 1
                active_rows[position], active_rows[active] = active_rows[active], active_rows[position]
                continue
            position += 1
            projected = projected_slope(left, right)
            high, low = max(high, projected), min(low, projected)
            if abs(projected) > SMALL:
                q = weight[i] * (scale * squared_norms[i] + bias_rate)
                best = loss.dual_prox(y[i], score, beta[i], q)
                move = weight[i] * (best - beta[i])
                if move != 0.0:
                    beta[i] = best
                    rows.add(i, scale * move, w)
                    b += bias_rate * move
                    updates += 1
                    entries += rows.count(i)
        if position >= active:
            position = -1
            if high - low > e:
                bar_high, bar_low = high if high > 0.0 else np.inf, low if low < 0.0 else -np.inf
            elif active == active_rows.shape[0]:
                met = True
            else:
                active, bar_high, bar_low = active_rows.shape[0], np.inf, -np.inf
    extremes = Extremes(high, low, bar_high, bar_low)
    return Place(b, active, position, extremes, Counts(visits, updates, entries)), met


class Shuffled(NamedTuple):
    """The rows, and the generator that shuffles them."""

    rows: Any
    rng: Words
