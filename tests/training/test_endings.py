"""Every run ends by itself, and says why truthfully."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import dualgap
from dualgap.core.problem import Evaluation, Point, Problem
from dualgap.data.sources import view
from dualgap.runtime.counts import Counts
from dualgap.training.loop import Settings
from dualgap.training.running import solve
from dualgap.training.solver import Solver, Status
from dualgap.training.stopping import GapBelow, Reason, Rules
from support import endings
from support.commands import as_plain_python

PARTS = 2


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_tiny_and_degenerate_problems_end_as_plain_python(part: int) -> None:
    run = as_plain_python("support.endings", part, PARTS)
    count = len(endings.cases()[part::PARTS])
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-2000:]
    assert f"{count} of {count} end" in run.stdout


def test_a_converged_point_with_no_active_row_ends_the_run() -> None:
    model = dualgap.LinearSVC(random_state=0).fit([[1], [2], [3]], [1, 1, 0])
    assert model.certificate_[0].relative_gap <= 1e-3


@pytest.mark.parametrize("loss", ["epsilon-insensitive", "squared-epsilon-insensitive"])
def test_an_optimum_of_zero_ends_the_run(loss: str) -> None:
    X, y = [[1.0], [2.0], [0.5], [1.5]], [0.01, 0.02, 0.05, 0.0]
    outcome = dualgap.fit(X, y, loss=loss, bias="exact", solver="dcd")
    assert outcome.converged
    assert outcome.certificate.primal == 0.0


class Idle(NamedTuple):
    """The state of a solver that has nothing to do and does not say so."""

    w: np.ndarray
    counts: Counts = Counts()


@dataclass(frozen=True)
class IdleSolver(Solver[Idle]):
    """It pauses without a visit, for ever; it may claim to be at the optimum."""

    claim: Reason | None

    name = summary = "idle"

    def start(self, problem: Problem, warm: Point | None) -> Idle:
        return Idle(np.full(problem.source.d, 0.01))

    def step(
        self, problem: Problem, state: Idle, budget: int, news: Evaluation | None
    ) -> tuple[Idle, Status]:
        return state, Status("convenient", self.claim)

    def point(self, problem: Problem, state: Idle) -> Point:
        return Point(state.w, 0.0, None)


@pytest.mark.parametrize("claim", [None, Reason("optimal", "nothing can be better")])
def test_a_solver_that_does_nothing_ends_as_stalled_whatever_it_claims(claim: Reason | None) -> None:
    problem = Problem(
        view(np.eye(4), np.array([1.0, -1.0, 1.0, -1.0])), dualgap.core.losses.make_loss("hinge"), 0.1
    )
    outcome = solve(IdleSolver(claim), problem, Rules((GapBelow(1e-3),)), Settings(tol=1e-3))
    assert outcome.reason.name == "stalled"
    assert f"relative gap {outcome.certificate.relative_gap:.3g}" in outcome.reason.message
    assert not outcome.converged
