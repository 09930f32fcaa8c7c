"""The rows in memory are a set, which rows are visited, and the published rules of dual cached loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.core.losses import make_loss
from dualgap.core.problem import Problem
from dualgap.data.chunks import FromMemory, OnDisk
from dualgap.data.sources import view
from dualgap.solvers import SOLVERS
from dualgap.solvers.out_of_core.cached_loops import CachedLoops
from support.problems import sparse_data


def streamed(n: int = 300, d: int = 12, rows: int = 40, C: float = 1.0, noise: float = 0.5) -> Problem:
    X, y = sparse_data(n=n, d=d, density=0.5, noise=noise)
    source = OnDisk(FromMemory(view(sp.csr_array(X), y), rows=rows), memory_budget=None)
    return Problem(source, make_loss("hinge"), 1.0 / (C * n))


def steps_of(solver: Any, problem: Problem, passes: int, budget: int = 200) -> Any:
    """The states of a run."""
    state = solver.start(problem, None)
    with solver.opened(problem, state) as opened:
        while state.place.pass_number < passes:
            state, _ = opened.step(problem, state, budget, None)
            yield state


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("cached-loops", {"lockstep": True}),
        ("cached-loops", {"lockstep": True, "eviction": "threshold"}),
        ("cached-loops", {"lockstep": True, "eviction": "random", "draws": "uniform"}),
        ("selective-block", {}),
        ("selective-block", {"kept": 0.8}),
    ],
)
def test_no_row_is_in_memory_twice(name: str, options: dict[str, Any]) -> None:
    for state in steps_of(SOLVERS[name](cache=0.3, **options), streamed(), 6):
        ids = state.sweeps.ids[state.sweeps.order[: state.size]]
        assert np.unique(ids).size == ids.size


@pytest.mark.parametrize("rows", [5, 40])
def test_epsilon_is_renewed_after_every_n_visits_however_small_chunks_are(rows: int) -> None:
    """Intake begins a new sweep; with chunks of 5 rows no sweep ended, and epsilon fell to 1e-142."""
    solver = CachedLoops(cache=0.3, eviction="threshold", lockstep=True, sweeps=2.0, fill=0.0)
    problem = streamed(rows=rows)
    renewals, last = [], 0
    for state in steps_of(solver, problem, 8, budget=50):
        cursor = state.sweeps.cursor
        if cursor.renewed != last:
            renewals.append(cursor.renewed - last)
            last = cursor.renewed
        assert cursor.counts.visits - cursor.renewed <= 300
    assert len(renewals) >= 10
    assert set(renewals) == {300}


def test_the_constants_of_the_published_eviction_are_options() -> None:
    problem, kept = streamed(), {}
    for options in ({}, {"epsilon0": 0.01}, {"beta": 1.0}, {"fill": 0.2}):
        solver = CachedLoops(cache=0.5, eviction="threshold", lockstep=True, **options)
        sizes = [(state.size, state.sweeps.cursor.epsilon) for state in steps_of(solver, problem, 1)]
        kept[str(options)] = sizes
    assert len({str(sizes) for sizes in kept.values()}) == 4
    with pytest.raises(dualgap.InputError, match="belong to eviction='threshold', and this is 'score'"):
        CachedLoops(epsilon0=1.0)


def test_uniform_draws_visit_rows_independently_of_each_other() -> None:
    """In a sweep every row is visited once; by uniform draws some are not, and some are several times."""
    X, y = sparse_data(n=200, d=400, density=0.5, noise=0.0)  # rows nearly at right angles: a visit moves
    problem = Problem(view(sp.csr_array(X), y), make_loss("squared"), 1.0 / 200)
    moved = {}
    for draws in ("sweeps", "uniform"):
        solver = CachedLoops(cache=100, draws=draws, eviction="random", lockstep=True, sweeps=2.0)
        state = solver.start(problem, None)
        with solver.opened(problem, state) as opened:
            state, _ = opened.step(problem, state, 50, None)  # 25 rows are in memory, 50 visits owed
        moved[draws] = np.count_nonzero(state.beta)
    assert moved["sweeps"] == 25
    assert 15 <= moved["uniform"] < 25  # of 25 rows 25 (1 - 1/25)^50 = 3.2 are missed on average


@pytest.mark.parametrize("name", ["cached-loops", "block", "selective-block"])
def test_a_limit_on_passes_ends_a_run(name: str) -> None:
    X, y = sparse_data(n=500, d=40, density=0.5, noise=2.0)
    common: dict[str, Any] = {"solver": name, "C": 10.0, "cache": 0.1, "tol": 0.0}
    outcome = dualgap.fit(X, y, max_passes=2, **common)
    assert outcome.reason.name == "max_passes"
    assert outcome.trace[-1].measures["passes"] == 2.0
    further = dualgap.fit(X, y, max_passes=3, resume=outcome, **common)
    assert further.trace[-1].measures["passes"] == 3.0
    assert outcome.certificate.dual < further.certificate.dual


def test_the_cached_share_is_what_stays_for_the_next_block() -> None:
    for kept in (0.0, 0.25, 0.75):
        stayed = []
        before: set[int] = set()
        place = None
        for state in steps_of(SOLVERS["selective-block"](cache=100, kept=kept), streamed(), 4, budget=20):
            here = set(state.sweeps.ids[state.sweeps.order[: state.size]].tolist())
            if place not in (None, state.place):
                stayed.append(len(here & before))
            before, place = here, state.place
        assert max(stayed) >= 100 * kept
        assert min(stayed[1:]) >= 100 * kept - 1
        if kept == 0.0:
            assert min(stayed) == 0


def test_rows_with_slack_rest() -> None:
    """A sweep visits all rows without slack and some of the others; with rest=1 it visits all."""
    for rest, all_of_them in ((1, True), (8, False)):
        solver, shares = CachedLoops(cache=0.6, lockstep=True, rest=rest), []
        for state in steps_of(solver, streamed(noise=0.1), 6, budget=7):
            cursor = state.sweeps.cursor
            if cursor.position > 0:
                slack = state.sweeps.slack[state.sweeps.order[cursor.due : state.size]]
                assert (slack > 0.0).all()
                shares.append(cursor.due / state.size)
        assert (min(shares) == 1.0) == all_of_them
