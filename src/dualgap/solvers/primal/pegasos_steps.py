"""The steps of Pegasos (see ``pegasos.py``) with w = s v.

A step costs the entries of its batch, never O(d): s takes in the shrinking and the projection, and v takes in
s before it vanishes. |w|^2 follows from the inner products at hand and is computed anew every so often, so
that it does not drift.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...data.fetching import fetch_ahead, fetch_number
from ...runtime.arrays import Floats
from ...runtime.counts import Counts
from ...runtime.jit import kernel
from ...runtime.random import below, resample, shuffle
from ...training.states import Naturals, Position, Positive, state_class

REPLACEMENT, DISTINCT, EPOCHS = SAMPLINGS = ("replacement", "distinct", "epochs")
SMALLEST, SMALLEST_OF_MEAN = 1e-9, 1e-4  # of s, before v takes it in
REFRESH = 1_000_000  # row visits, or 10 d, after which |w|^2 is computed anew


@state_class
class Model(NamedTuple):
    """w = s v, and the sum of all w so far is past v + u."""

    v: Floats
    u: Floats  # empty where no average is asked for
    errors: Naturals  # int32: updates caused by each row; empty where no duals are kept


@state_class
class Scaled(NamedTuple):
    """What belongs to w = s v."""

    s: Positive = 1.0
    v_bias: float = 0.0  # the constant feature's part of v
    square: float = 0.0  # |w|^2, the constant feature included
    refreshed: int = 0  # visits when the square was last computed anew


@state_class
class Total(NamedTuple):
    """What belongs to the sum past v + u of all w so far."""

    past: float = 0.0
    u_bias: float = 0.0


@state_class
class Cursor(NamedTuple):
    """Where the solver stands."""

    steps: int = 0
    t: int = 0  # that of the learning rate 1/(lam t) of the last step that counts
    position: Position = -1  # in the rows laid out; -1: lay out more
    b: float = 0.0  # a bias that is not regularised
    scaled: Scaled = Scaled()
    total: Total = Total()
    counts: Counts = Counts()


class Manner(NamedTuple):
    """How batches are drawn and steps are made."""

    k: int
    sampling: int  # as in SAMPLINGS
    projection: bool
    skip_lossless: bool


@kernel
def make_steps(
    batch: Any, loss: Any, geometry: Any, model: Any, order: Any, cursor: Any, manner: Any, stop: int
) -> Cursor:
    """Steps up to number ``stop``: with A+ the rows of the batch whose margin is below the hinge's,

    w <- (1 - 1/t) w + 1/(lam t k) weight_scale sum over A+ of c y x,   w <- min(1, 1/(sqrt(lam) |w|)) w
    """
    rows, y, weight, squared_norms = batch
    lam, weight_scale, rho2, bias_step = geometry
    v, u, errors = model
    present, picks, rng = order
    k, sampling, projection, skip_lossless = manner
    steps, t, position, b, scaled, total, counts = cursor
    s, v_bias, square, refreshed = scaled
    past, u_bias = total
    visits, updates, entries = counts
    margin, averaged, counted = loss.margin, u.shape[0] > 0, errors.shape[0] > 0
    hits = np.empty(k, dtype=np.uint32)
    inner = np.empty(k)
    while steps < stop:
        if position < 0 or position + k > picks.shape[0]:
            position = 0
            if sampling == 0:
                resample(rng, present, picks)
            elif sampling == 2:
                shuffle(rng, present, present.shape[0])
                for j in range(picks.shape[0]):
                    picks[j] = present[j]
        if sampling == 1:  # k different rows
            position = 0
            for j in range(k):
                other = j + below(rng, present.shape[0] - j)
                present[j], present[other] = present[other], present[j]
                picks[j] = present[j]
        found = 0
        for j in range(position, position + k):
            fetch_ahead(batch, picks, j, picks.shape[0])
            if counted:
                fetch_number(errors, picks, j, picks.shape[0])
            i = picks[j]
            entries += rows.count(i)
            score = s * (rows.dot(i, v) + v_bias)
            if y[i] * (score + b) < margin:
                hits[found] = i
                inner[found] = score
                found += 1
        position += k
        steps += 1
        visits += k
        if averaged:
            past += s
            u_bias += b
        step = t + 1
        if found > 0 or not skip_lossless:
            t = step
        if step == 1:  # the first step forgets where it began
            for j in range(v.shape[0]):
                if averaged:
                    u[j] += past * v[j]
                v[j] = 0.0
            u_bias += past * v_bias
            past = 0.0
            s, square, v_bias = 1.0, 0.0, 0.0
            for j in range(found):
                inner[j] = 0.0
        else:
            shrink = 1.0 - 1.0 / step
            s *= shrink
            square *= shrink * shrink
            for j in range(found):
                inner[j] *= shrink
        rate = 1.0 / (lam * step * k)
        gross = square
        for j in range(found):
            i = hits[j]
            push = rate * weight_scale * weight[i] * y[i]
            if projection:
                if j > 0:  # the rows before it have moved w
                    inner[j] = s * (rows.dot(i, v) + v_bias)
                    entries += rows.count(i)
                square += push * (2.0 * inner[j] + push * (squared_norms[i] + rho2))
                gross = max(gross, square)
            move = push / s
            rows.add(i, move, v)
            v_bias += move * rho2
            entries += rows.count(i)
            if averaged:
                rows.add(i, -past * move, u)
                u_bias -= past * move * rho2
                entries += rows.count(i)
            if counted:
                errors[i] += 1
            b += bias_step * push
            updates += 1
        if projection:
            late = visits - refreshed >= max(REFRESH, 10 * v.shape[0])
            if late or square < 1e-6 * gross:  # rows that cancel
                refreshed = visits
                square = s * s * (np.dot(v, v) + (v_bias * v_bias / rho2 if rho2 > 0.0 else 0.0))
            if lam * square > 1.0:
                s /= math.sqrt(lam * square)
                square = 1.0 / lam
        if s < (SMALLEST_OF_MEAN if averaged else SMALLEST):
            for j in range(v.shape[0]):
                if averaged:  # or else past v + u would cancel
                    u[j] += past * v[j]
                v[j] *= s
            u_bias += past * v_bias
            past = 0.0
            v_bias *= s
            s = 1.0
    scaled, total = Scaled(s, v_bias, square, refreshed), Total(past, u_bias)
    return Cursor(steps, t, position, b, scaled, total, Counts(visits, updates, entries))
