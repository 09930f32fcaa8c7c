"""When a run is certified: a schedule that counts work and never looks at a clock.

A clock would make the moment of stopping, and with it the model, depend on how busy the machine is. Costs are
estimated from counts with constants that were measured once, so a run is the same on a fast machine as on a
slow one.

Certificates are meant to take less than a quarter of the time. Two things move one away from its regular
date. A solver may say that the moment is good (`Status.evaluate`). And the schedule extrapolates: once the
gap asked for is about a period away, going by how fast it has fallen, the next certificate is set for that
moment, sooner or later than usual. Runs are only a few periods long, so ending half a period late would cost
a tenth of the work.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..core.problem import Regularised
from ..runtime.counts import Counts
from .solver import AnySolver, Status
from .states import Magnitude, state_class

# Shares: time for evaluations over time for training.
SHARE = 0.3  # in general: less than a quarter of the whole
SHARE_WITH_ESTIMATE = 0.15  # where the solver estimates the gap and nothing calls for an evaluation
MAX_SHARE_WHEN_TARGET_EXPECTED = 2.0
MAX_SHARE_WHEN_SOONER = 0.6  # where extrapolation sets an evaluation earlier than usual

FIRST_EPOCHS = 4  # until the first evaluation, at most
FIRST_EPOCHS_WITH_ESTIMATE = 8
ESTIMATE_MARGIN = 0.25  # a solver aims at tol / (1 + this times the cost of an evaluation in epochs)
OVERSHOOT = 1.25  # times the work after which the gap asked for is expected
SOONEST, LATEST = 0.3, 2.0  # times the usual period: bounds on what extrapolation may make of it
INITIAL_GAP = 3.0  # the relative gap from which the first evaluation's is taken to have fallen


class Size(NamedTuple):
    """What the costs of training and evaluating depend on."""

    n: int
    d: int
    nnz: int
    epoch_size: int  # rows of positive weight: that many visits are an epoch

    @classmethod
    def of(cls, problem: Regularised) -> Size:
        """The size of a problem."""
        source, (several,) = problem.source, problem.scores_per_row or (1,)
        return cls(source.n, source.d * several, source.nnz * several, problem.epoch_size)

    @property
    def epoch(self) -> Counts:
        """The work of an epoch in which every other visit is an update."""
        return Counts(self.n, 0, int(1.5 * self.nnz))

    def evaluation_cost(self, dual_density: float = 0.0) -> float:
        """Nanoseconds of an evaluation, roughly: it reads all entries in order, and has work for each row and
        column.

        Rows with a dual that is not 0, a share ``dual_density`` of all, are added up besides. The constants
        here and in `training_cost` were measured on one machine; they need only be right in proportion.
        """
        # w beyond the second, and beyond the last cache
        gather = 1.0 + 1.2 * min(1.0, self.d / 60_000) + 2.0 * min(1.0, self.d / 1_200_000)
        add = (0.6 + min(1.0, self.d / 30_000)) * dual_density
        return (gather + add) * self.nnz + 12.0 * self.n + 4.0 * self.d + 80_000.0

    def training_cost(self, counts: Counts) -> float:
        """Nanoseconds of row visits in random order, which cost more where rows and model exceed the
        caches.
        """
        entry = 1.2 + 1.2 * min(1.0, self.nnz / 4_000_000) + 0.9 * min(1.0, self.d / 1_200_000)
        return entry * counts.entries + 30.0 * counts.visits


@state_class
class Timetable(NamedTuple):
    """Where a run stands in its schedule; part of the `Run`."""

    due: int  # visits at which the next evaluation is due
    certificates: int = 0  # so far
    at: Counts = Counts()
    gap: Magnitude = INITIAL_GAP  # relative, at the last one
    missed: int = 0  # evaluations in a row at which a solver expected the target and did not have it


class Schedule(NamedTuple):
    """When to evaluate a solver's point. Nothing in here changes: what has happened is in the `Timetable`."""

    size: Size
    tol: float
    estimates_gap: bool = False  # the solver can tell roughly how far it is
    in_epochs: bool = False  # its points are best where an epoch ends
    cost_factor: float = (
        1.0  # what an evaluation costs besides, as a multiple: sweeps that improve the dual point
    )
    every: int | None = None  # visits after each of which an evaluation is asked for
    only_every: bool = False  # at these and at no other moments

    @classmethod
    def of(
        cls, solver: AnySolver, problem: Regularised, tol: float, every: int | None, only_every: bool
    ) -> Schedule:
        """The schedule of a run."""
        sweeps = solver.dual_sweeps  # each costs about three evaluations, and the result another one
        factor = 2.0 + 3.0 * sweeps if sweeps else 1.0
        can = solver.capabilities
        factor *= can.evaluation_cost
        return cls(Size.of(problem), tol, can.estimates_gap, can.in_epochs, factor, every, only_every)

    @property
    def target(self) -> float:
        """The relative gap at which a solver is to expect that ``tol`` is reached: less, where evaluations
        are dear.
        """
        dear = self.size.evaluation_cost(0.5) / self.size.training_cost(self.size.epoch)
        return self.tol / (1.0 + ESTIMATE_MARGIN * dear)

    def begin(self, visits: int = 0) -> Timetable:
        """Nothing is done yet, but for ``visits`` that the start of a solver took."""
        return Timetable(self._end(visits, self._period(self.size.epoch, visits, 0.0)))

    def after(
        self, table: Timetable, now: Counts, gap: float, dual_density: float, expected: bool = False
    ) -> Timetable:
        """The timetable after an evaluation that found a relative gap of ``gap``, where the target was
        ``expected`` or not.
        """
        table = table._replace(certificates=table.certificates + 1)
        missed = table.missed + 1 if expected and gap > self.tol else 0 if expected else table.missed
        recent = Counts(
            now.visits - table.at.visits, now.updates - table.at.updates, now.entries - table.at.entries
        )
        due = table.due
        if recent.visits > 0:
            period = self._period(recent, now.visits, dual_density)
            due = self._end(now.visits, self._extrapolated(table, period, recent, now, gap, dual_density))
        return Timetable(due, table.certificates, now, gap, missed)

    def wants(self, table: Timetable, now: Counts, status: Status, moved: bool, dual_density: float) -> bool:
        """Whether to evaluate now. Where nothing moved: always, as no limit that counts visits could end such
        a run.
        """
        if not moved:
            return True
        if self.every and now.visits // self.every > table.at.visits // self.every:
            return True
        if self.only_every:
            return False
        if now.visits >= table.due or status.evaluate == "required":
            return True
        if status.evaluate == "no":
            return False
        most = SHARE
        if status.evaluate == "target_expected":  # a solver that was wrong again and again is believed less
            most = max(2.0 * SHARE, MAX_SHARE_WHEN_TARGET_EXPECTED * 0.5**table.missed)
        spent = (table.certificates + 1) * self._cost(dual_density)
        return spent <= most * self.size.training_cost(now)

    def budget(self, table: Timetable, visits: int) -> float:
        """Visits until the schedule wants to be asked again."""
        left = math.inf if self.only_every else table.due - visits
        return min(left, self.every - visits % self.every) if self.every else left

    def _cost(self, dual_density: float) -> float:
        return self.cost_factor * self.size.evaluation_cost(dual_density)

    def _period(self, recent: Counts, visits: int, dual_density: float) -> int:
        """Visits until the next evaluation, such that evaluating takes less than a quarter of the time.

        On tiny data that is hundreds of epochs, which take no time and look odd, and on very wide data too
        many: there the first evaluations come earlier, after 4, 8, 16... epochs.
        """
        share = SHARE_WITH_ESTIMATE if self.estimates_gap else SHARE
        first = FIRST_EPOCHS_WITH_ESTIMATE if self.estimates_gap else FIRST_EPOCHS
        cost = self._cost(dual_density) / share
        period = math.ceil(cost * recent.visits / self.size.training_cost(recent))
        return max(1, min(period, max(first * self.size.epoch_size, visits)))

    def _end(self, visits: int, period: int) -> int:
        """The visits at which a period that begins now ends."""
        due = visits + period
        return due + -due % self.size.epoch_size if self.in_epochs else due

    def _extrapolated(
        self, table: Timetable, period: int, recent: Counts, now: Counts, gap: float, dual_density: float
    ) -> int:
        """The period, or the visits to the gap asked for, where these are about as many and the gap falls on
        as it did.

        A gap that does not fall as expected must not make evaluating expensive: coming sooner has a budget of
        its own.
        """
        if not 0.0 < self.tol < gap < table.gap < math.inf:
            return period
        left = OVERSHOOT * recent.visits * math.log(gap / self.tol) / math.log(table.gap / gap)
        if left > LATEST * period:
            return period
        left = max(left, SOONEST * period)
        then = Counts(
            *(int(done + left / recent.visits * part) for done, part in zip(now, recent, strict=True))
        )
        spent = (table.certificates + 1) * self._cost(dual_density)
        if left < period and spent > MAX_SHARE_WHEN_SOONER * self.size.training_cost(then):
            return period
        return math.ceil(left)
