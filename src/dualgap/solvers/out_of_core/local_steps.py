"""A step of a run from disk, made on a sample of rows in memory.

With P_S the objective of the sample and g the gradient of P at the present place (w_k, b_k), known from a
pass over all rows, the next place is the minimum of

    F(w, b) = P_S(w, b) + <g - grad P_S(w_k, b_k), (w, b)> + mu/2 |(w, b) - (w_k, b_k)|^2,

whose gradient at (w_k, b_k) is g: rounding and the choice of the sample change how fast a run gets to the
optimum of P, and not where it gets to. If the curvature of P_S is that of P up to a part r, the distance to
the optimum falls by about r a step (DANE: Shamir, Srebro and Zhang, ICML 2014; Hendrikx, Xiao, Bubeck, Bach
and Massoulie, ICML 2020). With d columns and m rows in the sample r is about sqrt(d / m), and smaller where
the regulariser counts. The minimum is found by Newton's method with conjugate gradients.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...runtime.arrays import Floats
from ..joint.steps import step_length
from .sample import Precondition, Sample, Slope

FORCING = 0.03  # what conjugate gradients leave of the squared gradient, in the preconditioner's norm
ENOUGH = 3e-3  # of the first squared gradient, in that norm: where a minimum counts as found
MAX_STEPS, MAX_PRODUCTS = 12, 40
COARSER, LEAST_ROWS = 8, 4096  # of the samples that the first step begins with


class Place(NamedTuple):
    """w of shape (d, K) and b of shape (K,)."""

    w: Floats
    b: Floats

    def plus(self, t: float, other: Place) -> Place:
        """``self + t other``."""
        return Place(self.w + t * other.w, self.b + t * other.b)

    def dot(self, other: Place) -> float:
        """The inner product."""
        return float(np.vdot(self.w, other.w) + self.b @ other.b)


class Strengths(NamedTuple):
    """What is added to the mean loss: ``lam/2 |w|^2 + ridge/2 |b|^2``, and mu as above. The ridge is infinite
    where there is no bias.
    """

    lam: float
    ridge: float
    mu: float

    def times(self, place: Place) -> Place:
        """The gradient of these terms but mu's."""
        return Place(self.lam * place.w, (0.0 if self.ridge == np.inf else self.ridge) * place.b)


def sample_minimum(sample: Sample, place: Place, strengths: Strengths) -> tuple[Place, int]:
    """The minimum of P_S, to begin with, and how many rows were read to find it. Far from the optimum a part
    of the sample does as well.
    """
    read = 0
    count = sample.n // COARSER
    if count >= LEAST_ROWS:
        place, read = sample_minimum(sample.some(np.arange(count) * COARSER), place, strengths)
    place, more = local_minimum(sample, place, None, strengths)
    return place, read + more


def local_minimum(
    sample: Sample, place: Place, gradient: Place | None, strengths: Strengths
) -> tuple[Place, int]:
    """The minimum of F, and how many rows were read to find it; without a gradient that of P_S."""
    steps = _Steps(sample, place, strengths)
    scores = sample.scores(*place)
    found = sample.slope(scores)
    # what is added to the gradient of the sample, so that it is that of all rows at the beginning
    here, products, made_at = place, 1, found.value
    shift = Place(np.zeros_like(place.w), np.zeros_like(place.b))
    if gradient is not None:
        shift = gradient.plus(-1.0, steps.gradient_at(place, found))
    precondition: Precondition = sample.precondition(
        found.curvature, strengths.lam + strengths.mu, strengths.ridge + strengths.mu
    )
    first = np.inf
    for _ in range(MAX_STEPS):
        g = steps.gradient_at(here, found).plus(1.0, shift)
        if found.value < 0.5 * made_at:
            made_at = found.value
            precondition = sample.precondition(
                found.curvature, strengths.lam + strengths.mu, strengths.ridge + strengths.mu
            )
        v, size, count = steps.direction(g, found, precondition)
        first = size if first == np.inf else first
        products += count
        if size <= ENOUGH * first and here is not place:
            break
        along = sample.scores(*v)
        t = steps.length(here, v, g, (scores, along, shift), found.value)
        here = here.plus(t, v)
        scores = scores + sample.dtype(t) * along
        found = sample.slope(scores)
        products += 2
    return here, products * sample.n


class _Steps(NamedTuple):
    """Newton's steps for F."""

    sample: Sample
    origin: Place
    strengths: Strengths

    def gradient_at(self, place: Place, found: Slope) -> Place:
        """That of F but for its linear term."""
        lam, ridge, mu = self.strengths
        w = found.moment + lam * place.w + mu * (place.w - self.origin.w)
        if ridge == np.inf:
            return Place(w, np.zeros_like(place.b))
        return Place(w, found.by_class + ridge * place.b + mu * (place.b - self.origin.b))

    def direction(self, g: Place, found: Slope, precondition: Precondition) -> tuple[Place, float, int]:
        """``-H^-1 g`` by conjugate gradients, the squared length of g in the preconditioner's norm, and the
        number of products.
        """
        lam, ridge, mu = self.strengths
        x, r = Place(np.zeros_like(g.w), np.zeros_like(g.b)), Place(-g.w, -g.b)
        z = Place(*precondition(*r))
        v, size = z, r.dot(z)
        first, count = size, 0
        while count < MAX_PRODUCTS and size > 0.0:
            count += 1
            product = self.sample.product(found.curvature, *v)
            hb = np.zeros_like(v.b) if ridge == np.inf else product.by_class + (ridge + mu) * v.b
            hv = Place(product.moment + (lam + mu) * v.w, hb)
            step = size / v.dot(hv)
            x, r = x.plus(step, v), r.plus(-step, hv)
            z = Place(*precondition(*r))
            last, size = size, r.dot(z)
            if size <= FORCING * first:
                break
            v = z.plus(size / last, v)
        return x, first, count

    def length(
        self, here: Place, v: Place, g: Place, scored: tuple[Floats, Floats, Place], value: float
    ) -> float:
        """How far to go along v; scores are linear, so this needs no product."""
        scores, along, shift = scored
        _, _, mu = self.strengths
        away = here.plus(-1.0, self.origin)
        pull = self.strengths.times(here).dot(v) + shift.dot(v) + mu * away.dot(v)
        bend = self.strengths.times(v).dot(v) + mu * v.dot(v)

        def at(t: float) -> tuple[float, float]:
            loss, slope = self.sample.along(scores, along, t)
            return loss + t * pull + 0.5 * t * t * bend, slope + pull + t * bend

        return step_length(at, value, g.dot(v))[0]
