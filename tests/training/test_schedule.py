"""The schedule of certificates: pure, so it is tested by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dualgap
from dualgap.core.losses import Hinge
from dualgap.core.problem import Problem
from dualgap.data.sources import view
from dualgap.runtime.counts import Counts
from dualgap.training.schedule import Schedule, Size, Timetable
from dualgap.training.solver import Status
from support.problems import noisy

SIZE = Size(4000, 40, 160_000, 4000)


def test_certifying_takes_less_than_a_quarter_of_the_counted_work() -> None:
    """The schedule, in the counted nanoseconds it is made of; benchmarks/ has the measured share."""
    X, y = noisy(1, 3000, 40)
    outcome = dualgap.fit(X, y, C=10.0, tol=1e-6, max_epochs=None, solver="dcd")
    last, size = outcome.trace[-1], Size.of(outcome.problem)
    evaluating = (len(outcome.trace) - 1) * size.evaluation_cost()
    assert len(outcome.trace) > 3
    training = size.training_cost(Counts(last.visits, last.updates, last.entries))
    assert evaluating <= 0.25 * (evaluating + training)


@pytest.mark.parametrize(
    ("before", "gap", "certificates", "expected"),
    [
        (1e-1, 1e-2, 1, 1250),  # a tenth in 1,000 visits: as much again, and a quarter for good measure
        (1e-1, 2e-2, 1, 2327),
        (1e-1, 5e-2, 1, 2000),  # 7,055 are left: too far away to aim at
        (1e-1, 1.1e-3, 1, 600),  # 26 are left: not as soon as that
        (1e-1, 5e-3, 1, 672),
        (1e-1, 5e-3, 10**6, 2000),  # there have been too many to come sooner
        (1e-1, 1e-2, 10**6, 2000),
        (1e-2, 1e-2, 1, 2000),  # it does not fall
        (math.inf, 1e-2, 1, 2000),  # nobody knows how fast it falls
        (1e-1, 1e-3, 1, 2000),  # it has arrived
    ],
)
def test_evaluations_aim_at_the_gap_asked_for(
    before: float, gap: float, certificates: int, expected: int
) -> None:
    table = Timetable(0, certificates, gap=before)
    now, recent = Counts(400_000, 0, 20_000_000), Counts(1000, 500, 60_000)
    schedule = Schedule(SIZE, 1e-3, estimates_gap=True)
    assert schedule._extrapolated(table, 2000, recent, now, gap, 0.0) == expected
    assert schedule._replace(tol=0.0)._extrapolated(table, 2000, recent, now, gap, 0.0) == 2000


def test_a_solver_that_cannot_move_is_evaluated_whatever_the_schedule_says() -> None:
    schedule = Schedule(SIZE, 1e-3, every=1000, only_every=True)
    table = schedule.begin()
    assert schedule.wants(table, Counts(), Status(), moved=False, dual_density=0.0)
    assert not schedule.wants(table, Counts(999), Status("required"), moved=True, dual_density=0.0)
    assert schedule.wants(table, Counts(1000), Status(), moved=True, dual_density=0.0)


def test_moments_that_a_solver_recommends_are_taken_where_they_are_cheap() -> None:
    schedule = Schedule(SIZE, 1e-3)
    table = Timetable(10**9, certificates=1)
    little, much = Counts(5000, 0, 200_000), Counts(400_000, 0, 16_000_000)

    def wants(now: Counts, moment: str) -> bool:
        return schedule.wants(table, now, Status(moment), moved=True, dual_density=0.5)  # type: ignore[arg-type]

    assert not wants(much, "no")
    assert wants(much, "convenient")
    assert not wants(little, "convenient")
    assert wants(little, "target_expected")
    assert wants(Counts(1), "required")


def test_every_so_many_visits_come_on_top() -> None:
    schedule = Schedule(SIZE, 1e-3, every=130)
    table = Timetable(300)
    assert schedule.budget(table, 0) == 130
    assert schedule.budget(table, 131) == 129
    assert schedule.budget(table, 290) == 10
    assert schedule._replace(only_every=True).budget(table, 290) == 100


def test_periods_of_solvers_whose_points_are_best_at_the_end_of_an_epoch_end_there() -> None:
    for in_epochs in (False, True):
        schedule = Schedule(SIZE, 1e-3, in_epochs=in_epochs)
        table = schedule.after(schedule.begin(), Counts(5000, 100, 300_000), 0.5, 0.3)
        assert (table.due % SIZE.epoch_size == 0) == in_epochs
        assert (table.certificates, table.at.visits, table.gap) == (1, 5000, 0.5)


def test_a_schedule_knows_its_solver() -> None:
    from dualgap.solvers import SOLVERS

    X, y = noisy(0)
    problem = Problem(view(X, np.asarray(y)), Hinge(), 1e-2)
    plain = Schedule.of(SOLVERS["sdca"](), problem, 1e-3, None, False)
    assert not plain.estimates_gap
    assert Schedule.of(SOLVERS["dcd"](), problem, 1e-3, None, False).estimates_gap
    polished = Schedule.of(SOLVERS["pegasos"](), problem, 1e-3, None, False)
    assert polished.cost_factor == 5.0 > plain.cost_factor
