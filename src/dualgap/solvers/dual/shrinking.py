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

from ...core.losses import Loss
from ...data.rows import Batch
from ...runtime.arrays import Floats
from ...runtime.jit import inner, kernel
from .sweeper import Subproblem

EPOCHS_LEFT = 31  # the bits that hold how many epochs a row still cools down
LEVELS = 5
SHRUNK, ABSENT = 255, 254  # removed for now; of weight 0
ROUNDED_DOWN = 1.0 - 1e-6  # slack is kept in float32, and must not be rounded up


@inner
def projected_slope(left: float, right: float) -> float:
    """PG: the slope that is not yet 0 or blocked by a bound."""
    return right if right < 0.0 else (left if left > 0.0 else 0.0)


class Shrunk(NamedTuple):
    """What a look at the shrunk rows reads and changes; see `Sweeps`."""

    active_rows: Any
    cooldown: Any
    slack: Any


class Place(NamedTuple):
    """Where a scan of the shrunk rows begins, and how far w has moved since all rows were looked at."""

    b: float
    away: float  # |w - anchor|^2
    shift: float  # |b - its value then|
    first: int  # the row to begin with
    budget: int  # rows that may be read


class Scanned(NamedTuple):
    """What a scan has found and done."""

    next: int  # the row to go on with; -1: none
    active: int  # active rows
    seen: int  # rows read
    read: int  # their entries


def rebuild_active(
    batch: Batch, loss: Loss, scores: Floats, beta: Floats, lists: Shrunk, shrinking: bool
) -> tuple[int, float, float]:
    """Make active the rows that are not firmly at a bound or kink, and only those; how many, and the range of
    all PG.
    """
    here = np.flatnonzero(lists.cooldown != ABSENT)
    if here.size < scores.size:
        scores = scores[here]
    return restore(here, scores, batch.y, loss, beta, lists, 0, shrinking)


def scan_shrunk(
    rows: Subproblem, w: Floats, beta: Floats, lists: Shrunk, active: int, place: Place
) -> Scanned:
    """Restore shrunk rows that are no longer optimal, in the order of the data; read those of which it may be
    true.
    """
    batch, loss, _ = rows
    b, away, shift, first, budget = place
    # Vectors of all rows: picking the shrunk ones from each takes several times as long.
    reach = away * batch.squared_norms[first:]  # (how far a score may have moved, but for the shift)^2
    spare = lists.slack[first:] - np.float64(shift)
    spare *= np.abs(spare)
    open_rows = lists.cooldown[first:] == SHRUNK
    open_rows &= ~(spare > reach)  # Cauchy and Schwarz
    some = np.flatnonzero(open_rows)
    some += first
    following = -1
    if some.size > budget:
        following = int(some[budget])
        some = some[:budget]
        open_rows[following - first :] = False
    scores = np.empty(some.size)
    entries = int(fill_scores(batch.rows, some, w, scores))
    scores += b
    active, _, _ = restore(some, scores, batch.y, loss, beta, lists, active, True)
    np.sqrt(reach, out=reach)
    reach += shift
    reach *= open_rows & (lists.cooldown[first:] == SHRUNK)
    lists.slack[first:] -= reach
    return Scanned(following, active, some.size, entries)


@kernel
def fill_scores(rows: Any, some: Any, w: Floats, scores: Floats) -> int:
    """``scores[k] = <w, x_i>`` for the k-th of some rows; the entries read."""
    entries = 0
    for k in range(some.shape[0]):
        scores[k] = rows.dot(some[k], w)
        entries += rows.count(some[k])
    return entries


@kernel
def restore(
    these: Any,
    scores: Floats,
    y: Floats,
    loss: Any,
    beta: Floats,
    lists: Shrunk,
    active: int,
    shrinking: bool,
) -> tuple[int, float, float]:
    """Shrink those of these rows that are firmly at a bound or kink, and append the others to the first
    ``active`` ones; how many are active now, and the range of the PG seen.
    """
    active_rows, cooldown, slack = lists
    high = low = 0.0
    for k in range(these.shape[0]):
        i = these[k]
        left, right = loss.dual_subdifferential(y[i], scores[k], beta[i])
        high = left if left > high else high  # PG is left where that is positive,
        low = right if right < low else low  # right where that is negative, else 0
        if shrinking and left < 0.0 < right:
            cooldown[i] = SHRUNK
            slack[i] = ROUNDED_DOWN * (right if right < -left else -left)
            continue
        if cooldown[i] == SHRUNK:
            cooldown[i] = 0
            slack[i] = 0.0
        active_rows[active] = i
        active += 1
    return active, high, low
