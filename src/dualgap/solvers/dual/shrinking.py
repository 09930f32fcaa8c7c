"""Shrinking and cool-down: which rows dual coordinate descent need not visit for now.

Shrinking. A row that a visit finds at a bound or kink with its one-sided slopes pointing firmly there (left <
0 < right) is removed from the active rows at once. It is restored when an evaluation, which computes the
scores of all rows anyway, finds that it is no longer optimal. Where the gap of the active rows has fallen
tenfold and no evaluation comes, the solver scans the shrunk rows itself, in the order in which they lie in
memory, but for those whose slopes cannot have changed sign: a score moves by at most |x| |w - anchor|, the
anchor being the w of the last look at all rows. On data of few columns that leaves few to read, on text it
does not help. The rule of Hsieh et al. restores all rows every so often, and shrinks them an epoch later:
twice the work on text.

Cool-down. A visit that gains less than visits did on average in the epoch before lets the row cool down for 1
epoch, then 3, 7... up to 31, until a visit gains as much as others again. (The frequencies of Glasmachers and
Dogan, ACML 2013, adapt to the gains more smoothly; powers of two need one byte a row.) Where C is large most
active rows lie between their bounds and hardly move: cooling down saves half to three quarters of the work to
1e-4 there. An epoch begins by going through the active rows for those that are due, and shuffles only these:
often they are one in twenty.

One byte a row holds how many epochs it still cools down (5 bits) and how long it does so at a time (3 bits
above them), or SHRUNK, or ABSENT.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...runtime.arrays import Floats
from ...runtime.jit import inner, kernel

EPOCHS_LEFT = 31  # the bits that hold how many epochs a row still cools down
LEVELS = 5
SHRUNK, ABSENT = 255, 254  # removed for now; of weight 0
ROUNDED_DOWN = 1.0 - 1e-6  # slack is kept in float32, and must not be rounded up


@inner
def projected_slope(left: float, right: float) -> float:
    """PG: the slope that is not yet 0 or blocked by a bound."""
    return right if right < 0.0 else (left if left > 0.0 else 0.0)


class Shrunk(NamedTuple):
    """What a scan of the shrunk rows reads and changes; see `Sweeps`."""

    active_rows: Any
    cooldown: Any
    slack: Any
    anchor: Floats


class Place(NamedTuple):
    """Where a scan of the shrunk rows begins."""

    b: float
    anchor_b: float  # the bias of the anchor
    active: int  # active rows
    first: int  # the row to begin with
    budget: int  # rows that may be read


@kernel
def scan_shrunk(
    batch: Any, loss: Any, w: Floats, beta: Floats, lists: Shrunk, place: Place
) -> tuple[int, int, int, int]:
    """Restore shrunk rows that are no longer optimal, in the order of the data; read those of which it may be
    true.

    Returns where it stopped (-1: at the end), how many rows are active now, and the rows and entries it read.
    """
    rows, y, _, squared_norms = batch
    active_rows, cooldown, slack, anchor = lists
    b, anchor_b, active, first, budget = place
    away = 0.0
    for j in range(w.shape[0]):
        away += (w[j] - anchor[j]) ** 2
    shift = abs(b - anchor_b)
    seen = read = 0
    for i in range(first, y.shape[0]):
        spare = slack[i] - shift
        if cooldown[i] != SHRUNK or (
            spare > 0.0 and spare * spare > away * squared_norms[i]
        ):  # Cauchy and Schwarz
            continue
        if seen == budget:
            return i, active, seen, read
        left, right = loss.dual_subdifferential(y[i], rows.dot(i, w) + b, beta[i])
        seen += 1
        read += rows.count(i)
        if left < 0.0 < right:
            least = right if right < -left else -left
            slack[i] = ROUNDED_DOWN * least - shift - np.sqrt(away * squared_norms[i])
        else:
            cooldown[i] = 0
            slack[i] = 0.0
            active_rows[active] = i
            active += 1
    return -1, active, seen, read


@kernel
def rebuild_active(
    y: Floats, loss: Any, scores: Floats, beta: Floats, lists: Shrunk, shrinking: bool
) -> tuple[int, float, float]:
    """Make active the rows that are not firmly at a bound or kink, and only those; how many, and the range of
    all PG.
    """
    active_rows, cooldown, slack, _ = lists
    high = low = 0.0
    active = 0
    for i in range(y.shape[0]):
        byte = cooldown[i]
        if byte == ABSENT:
            continue
        left, right = loss.dual_subdifferential(y[i], scores[i], beta[i])
        projected = projected_slope(left, right)
        high = projected if projected > high else high
        low = projected if projected < low else low
        if shrinking and left < 0.0 < right:
            cooldown[i] = SHRUNK
            slack[i] = ROUNDED_DOWN * (right if right < -left else -left)
            continue
        if byte == SHRUNK:
            cooldown[i] = 0
            slack[i] = 0.0
        active_rows[active] = i
        active += 1
    return active, high, low
