"""What is left to do, and what another method would need: forecasts for ``solver="auto"``, in nanoseconds
of counted work.

The constants were read off runs on the sets of ``benchmarks/regret.py`` that are there to tune on. They
need only be right in proportion, and within a factor of two or so: a method is given up only where another
promises to be clearly cheaper.
"""

from __future__ import annotations

from math import exp, inf, isfinite, log, log10
from typing import NamedTuple

import numpy as np

from ..core.problem import Problem
from ..runtime.arrays import Floats
from ..runtime.counts import Counts
from ..training.schedule import Size
from .second_order.direct import DENSE_SHARE, FLOPS, cost, works_dense
from .second_order.interior_point import PASSES, PASSES_BY_ROWS
from .second_order.quadratic import CUBES, EFFORT, LEAST, MOST_DIRECT, SAMPLE

ENTRY, BLAS_ENTRY = 1.3, 0.5  # nanoseconds for an entry that a pass reads in order
# The same for dense rows in products, visits and evaluations
DENSE_ENTRY, DENSE_VISIT, DENSE_EVALUATION = 0.25, 0.35, 0.7
MOST_DECADES = 1e4  # of the gap, that a method of second order takes more steps for
TALL, SQUARE = 150, 5  # rows a column
CURVED_WITH_KINKS = 0.4  # the part of the rows that Newton's method has in its products
INTERIOR_STEPS, INTERIOR_STEPS_WITH_KINKS = 7.0, 9.0
INTERIOR_FACTORS = 0.5  # what they cost, as a part of what direct.cost says
ITERATED_STEP = 250.0  # nanoseconds for a dual step without a closed form
# Nanoseconds for a row in a step of Newton's method: its slope, curvature and loss along the way, several
# times; as much again where a free bias is fitted. With kinks, few rows are curved; without, they are lines
# and parabolas or need exponentials.
KINKED_ROW, RAMP_ROW, ITERATED_ROW = 50.0, 90.0, 290.0
INTERIOR_ROW = 400.0  # in a step of interior points, for each part of the loss
EPOCH = 2e5  # nanoseconds for moving the centre of a free bias
STEP, INTERIOR_STEP = 1e5, 5e5  # nanoseconds for a step, whatever the size
BY_ROWS = 5e5  # and besides, where dense rows are fewer than columns
MOST_EPOCHS = 4.0  # of coordinate descent on a smooth loss, for each decade of the gap; a run may show more
MOST_EPOCHS_IF_SEPARABLE = 3.0  # the same where rows are not so many that w could not separate them
MOST_EPOCHS_WITH_RAMPS = 6.0  # the same for losses made of lines and parabolas
# ... but where they crawl: C |x|^2 of smooth losses and of those with kinks, epochs for each decade
CRAWL, STIFF, CRAWLING_EPOCHS = 1e4, 300.0, 30.0
# The same with kinks where columns are shared by many rows: the part of all entries that is stored, and
# C times the sum of squares of an average column
OVERLAP, STIFF_OVERLAPPING = 0.05, 5e3
MOST_PRODUCTS, MOST_PRODUCTS_AT_ONCE = 12.0, 40.0  # of a step; where one step is to do it all
DENSE_STEPS = 0.65  # the steps of Newton's method on many dense rows, as a part of what others take
SEPARATED, SEPARATED_INTERIOR = 4.0, 2.0  # times as many steps of second order where w separates the rows
LONGEST = 1e11  # the square of a row over lam, of which too few digits are left
RELIABLE = 4.0  # interior points may cost so many times as much where rows are few: bad scales do no harm
FIRST_GAP = 10.0  # relative, from which a run is forecast before there is anything to see
EASY = 0.01  # C |x|^2, below which one step or two are enough where columns are many
HARD = 30.0  # curvature of the loss over that of the regulariser, from which on steps do not become more


class Forecast(NamedTuple):
    """The size of a problem, and what its loss is like."""

    size: Size
    sparse: bool
    smooth: bool
    ramps: int  # 0: the loss is not made of lines and parabolas
    condition: float  # a bound on the condition of the Hessian, where the loss is smooth
    strength: float = inf  # C |x|^2 for a row of average length, times the curvature of a smooth loss
    free: bool = False  # the bias is not regularised
    quadratic: bool = False  # the loss is a parabola: one step of second order is enough
    margins: bool = False  # the loss is 0 for rows that are far on the right side
    bent: float = 0.0  # how short the curved part of a loss is, between lines: 0, or up to 1
    fits: bool = (
        False  # w meets the targets exactly where it can: a kink there, and duals inside their bounds
    )

    @classmethod
    def of(cls, problem: Problem) -> Forecast:
        """Those of a problem."""
        loss, rows = problem.loss, problem.source.batch.rows
        parts = loss.ramps(np.ones(1))
        ramps = len(parts)
        smooth = isfinite(loss.smoothness)
        condition = 1.0 + loss.smoothness * problem.mean_square / problem.lam if smooth else inf
        strength = (loss.smoothness if smooth else 1.0) * problem.mean_square * problem.C
        sparse = not works_dense(rows, problem.source.d)
        bent = min(1.0, loss.smoothness / loss.lipschitz) if smooth else 1.0
        margins = bool(parts) and loss.task == "classification"
        fits = any(part.bend == 0.0 and part.low[0] < 0.0 < part.high[0] for part in parts)
        kind = problem.bias.free, loss.quadratic, margins, bent, fits
        return cls(Size.of(problem), sparse, smooth, ramps, condition, strength, *kind)

    @property
    def crawls(self) -> bool:
        """Whether coordinates are expected to crawl: little regularises, and w cannot separate the rows.
        (Where it can, few rows count in the end if a loss is 0 from some margin on, and coordinates find them
        in a few epochs: mushrooms at C = 100.)
        """
        n, d = self.size.n, self.size.d
        if self.smooth and not self.margins:
            return self.strength >= CRAWL and n >= 2 * d
        overlap = self.size.nnz >= OVERLAP * n * d and self.strength * n >= STIFF_OVERLAPPING * d
        return n >= TALL * d and (self.strength >= STIFF or overlap)

    @property
    def shows_at_once(self) -> bool:
        """Whether the first gap tells if coordinates crawl. With kinks, or with lines and parabolas on rows
        that w may separate, a large gap may be gone an epoch or two later.
        """
        least = TALL if self.margins else SQUARE if self.ramps else 0
        return self.smooth and self.size.n >= least * self.size.d

    @property
    def wide(self) -> bool:
        """Whether rows are dense, and so few for their columns that their scales decide how long coordinates
        take.
        """
        return not self.sparse and self.size.n < SQUARE * self.size.d

    @property
    def evaluation(self) -> float:
        """Of one evaluation."""
        n, d, nnz, _ = self.size
        if not self.sparse:
            return DENSE_EVALUATION * nnz + 12.0 * n + 4.0 * d + 80_000.0
        return self.size.evaluation_cost(0.5)

    def work(self, name: str, counts: Counts, evaluations: int) -> float:
        """The work that a solver has done."""
        done = self.coordinates(counts)
        if name != "dcd":
            step = self.newton_row * self.size.n if name == "newton" else self.interior_rows
            done = self.entry * counts.entries + counts.updates * step
        return evaluations * self.evaluation + done

    def coordinates(self, counts: Counts) -> float:
        """Of visits by coordinate descent; a dual step without a closed form takes longer, and the centre of
        a free bias moves after each epoch.
        """
        step = 0.0 if self.ramps else ITERATED_STEP
        step += EPOCH / self.size.epoch_size if self.free else 0.0
        if not self.sparse:
            return DENSE_VISIT * counts.entries + (30.0 + step) * counts.visits
        return self.size.training_cost(counts) + step * counts.visits

    def prior(self, name: str, gap: float, tol: float, few: bool = False) -> float:
        """The work that a solver is expected to need from a relative gap to another.

        ``few``: the loss has margins, and a w is known that has no row on the wrong side. Then few rows count
        in the end; coordinates find them, and a method of second order takes them in and out again for many
        steps.
        """
        decades = log10(min(max(gap / tol, 1.0), MOST_DECADES))
        if name == "dcd":
            epochs = 2.0 + 4.0 * decades
            if self.crawls and not few:
                epochs = 1.0 + decades * CRAWLING_EPOCHS
            elif self.smooth:
                slope, most = (2.0, MOST_EPOCHS_WITH_RAMPS) if self.ramps else (1.0, MOST_EPOCHS)
                if not self.ramps and self.size.n < TALL * self.size.d:
                    most = MOST_EPOCHS_IF_SEPARABLE
                epochs = 1.0 + decades * min(1.0 + slope * self.strength**0.5, most)
            return epochs * (self.coordinates(self.size.epoch) + 0.3 * self.evaluation)
        if name == "interior-point":
            steps = INTERIOR_STEPS if self.smooth else INTERIOR_STEPS_WITH_KINKS
            return (SEPARATED_INTERIOR if few else 1.0) * steps * self.interior_step + self.inner_products
        steps = 1.5 + decades * (0.15 + 0.2 * log10(1.0 + 30.0 * min(self.strength, HARD)))
        if self.strength < EASY and self.size.n < SQUARE * self.size.d:
            steps = 1.4
        elif self.quadratic:
            steps = 2.0  # one, of twice the products of others
        elif self.margins:  # curved rows change from step to step, as they do with kinks
            steps *= 1.5 if self.size.n < TALL * self.size.d else 1.0 + 0.5 * self.bent
        if not self.smooth:  # the more rows a column, the sooner it is known which ones matter
            ratio = self.size.n / self.size.d
            steps = (3.0 if ratio >= TALL else 6.0 if ratio >= SQUARE else 14.0) * (1.0 + 0.7 * decades)
        elif not self.sparse and self.size.n >= TALL * self.size.d:
            steps *= DENSE_STEPS
        return (SEPARATED if few else 1.0) * steps * self.newton_step + self.inner_products

    @property
    def inner_products(self) -> float:
        """Of all rows with each other, made once, where dense rows are fewer than columns."""
        n, d = self.size.n, self.size.d
        return n * n * d / FLOPS if not self.sparse and n < d and n <= MOST_DIRECT else 0.0

    @property
    def entry(self) -> float:
        """Of an entry that a pass reads in order; the number of w that belongs to it may be far away."""
        d = self.size.d
        if not self.sparse:
            return DENSE_ENTRY
        return ENTRY * (1.0 + 0.6 * min(1.0, d / 60_000) + 2.0 * min(1.0, d / 1_200_000))

    @property
    def newton_step(self) -> float:
        """Of Newton's method: an evaluation, products with the rows that are curved, and factors if they
        are cheap.
        """
        n, d, nnz, _ = self.size
        curved = 1.0 if self.smooth else CURVED_WITH_KINKS
        most = MOST_PRODUCTS_AT_ONCE if self.quadratic else MOST_PRODUCTS
        products, factors = (min(most, 1.0 + 0.5 * self.condition**0.5) if self.smooth else 25.0), 0.0
        read = nnz if self.sparse else DENSE_SHARE * nnz
        whole = cost(int(curved * n) if d <= n else n, int(curved * nnz), d, self.sparse)
        sample = min(SAMPLE * d, curved * n, EFFORT * FLOPS * DENSE_SHARE * nnz / d**2)
        if d**3 <= CUBES * nnz and (self.sparse or sample >= LEAST * d):
            part = EFFORT * nnz if self.sparse else sample * d * d / FLOPS
            products, factors = 3.0, min(whole if d <= n else inf, part) + d**3 / (3.0 * FLOPS)
        elif min(n, d) <= MOST_DIRECT and cost(n, nnz, d, self.sparse) <= 2.0 * products * read:
            products, factors = 1.0 if d <= n else 3.0, whole  # by rows, an answer takes passes itself
        passes = 2.0 * products * curved * self.entry * nnz
        step = STEP + (BY_ROWS if not self.sparse and n < d else 0.0)
        return self.evaluation + passes + factors + self.newton_row * n + step

    @property
    def newton_row(self) -> float:
        """Of a row in a step of Newton's method."""
        row = KINKED_ROW if not self.smooth else RAMP_ROW if self.ramps else ITERATED_ROW
        return row * (2.0 if self.free else 1.0)

    @property
    def interior_step(self) -> float:
        """Of the interior point method: an evaluation, products, factors, and vectors."""
        n, d, nnz, _ = self.size
        entry = self.entry if self.sparse else BLAS_ENTRY
        products = (PASSES if d <= n else PASSES_BY_ROWS) * entry * nnz
        factors = INTERIOR_FACTORS * cost(n, nnz, d, self.sparse)
        return self.evaluation + products + factors + self.interior_rows

    @property
    def interior_rows(self) -> float:
        """Of what a step of the interior point method does besides."""
        return INTERIOR_ROW * self.ramps * self.size.n + INTERIOR_STEP

    @property
    def second(self) -> str:
        """The method of second order that suits the problem."""
        n, d = self.size.n, self.size.d
        if not self.ramps or min(n, d) > MOST_DIRECT:
            return "newton"
        if self.fits and n < d and self.strength * n >= LONGEST:  # nothing but inner products is left in
            return "newton"  # the equations of interior points then, and rounding is
        interior, newton = (self.prior(name, 10.0, 1e-3) for name in ("interior-point", "newton"))
        safer = self.smooth and not self.quadratic and n < SQUARE * d
        return "interior-point" if interior < (RELIABLE if safer else 1.0) * newton else "newton"


def at_first_sight(cost: float, gap: float, tol: float) -> float:
    """The work until the gap is ``tol``, from the first evaluation alone: as if the gap had been FIRST_GAP
    before any work. That is too little where coordinates crawl, and about right where they do not.
    """
    if gap >= FIRST_GAP:
        return inf
    return cost * log(gap / tol) / log(FIRST_GAP / gap)


def remaining(costs: Floats, gaps: Floats, tol: float) -> float:
    """The work until the gap is ``tol``, from what it was at some evaluations.

    Two laws are at hand. A gap that falls at a steady rate goes on so. One that falls like a power of the
    work, ever more slowly, has lost half of its rate from the second quarter of the run to its second half.
    What is seen tells how far to believe either.
    """
    known = np.isfinite(gaps)
    costs, logs = costs[known], np.log(gaps[known] / tol)
    if costs.size < 2:
        return 0.0 if known.size < 3 else inf
    now, left = float(costs[-1]), float(logs[-1])
    quarter, half = (max(share * now, float(costs[0])) for share in (0.25, 0.5))
    half = min(half, float(costs[-2]))
    at_half = float(np.interp(half, costs, logs))
    rate = (at_half - left) / (now - half)
    if rate <= 0.0:
        return inf
    steady = left / rate
    if quarter >= half:
        return steady
    before = (float(np.interp(quarter, costs, logs)) - at_half) / (half - quarter)
    slowing = (
        min(max((1.0 - rate / before) / 0.5, 0.0), 1.0) if before > 0.0 else 0.0
    )  # 0: steady, 1: a power
    power = (at_half - left) / log(now / half)
    return float(steady ** (1.0 - slowing) * (now * (exp(min(left / power, 50.0)) - 1.0)) ** slowing)
