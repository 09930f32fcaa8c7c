"""What the out-of-core solvers promise to the loop and to runs that share a reader."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualgap.core.losses import make_loss
from dualgap.core.problem import Problem
from dualgap.data.chunks import FromMemory, OnDisk
from dualgap.data.rows import Batch
from dualgap.data.sources import view
from dualgap.runtime.errors import InputError
from dualgap.solvers.dual.dcd import DCD
from dualgap.solvers.dual.sweeper import DualSweeper
from dualgap.solvers.exact_bias import ExactBiasSolver
from dualgap.solvers.out_of_core.block import BlockMinimisation, SelectiveBlockMinimisation
from dualgap.solvers.out_of_core.cache_sweeper import CacheSweeper, Sweeps
from dualgap.solvers.out_of_core.cached_loops import CachedLoops
from support.feeds import readers
from support.problems import sparse_data
from support.states import assert_same

LOCKSTEP = [
    CachedLoops(cache=11, lockstep=True),
    BlockMinimisation(cache=11),
    SelectiveBlockMinimisation(cache=11),
]
by_name = pytest.mark.parametrize("solver", LOCKSTEP, ids=lambda solver: str(solver.name))


def problem(on_disk: bool, source: type[OnDisk] = OnDisk) -> Problem:
    X, y, weight = sparse_data(n=60, d=8, regression=False, weights=(0.0, 1.0, 2.0))
    rows: Any = view(X, y, weight)
    if on_disk:
        rows = source(FromMemory(rows, rows=7), memory_budget=10**6)
    return Problem(rows, make_loss("hinge"), 0.01)


class Failing(OnDisk):
    """A source whose fourth chunk cannot be read."""

    def load(self, k: int) -> Any:
        if k == 3:
            raise OSError("no such sector")
        return super().load(k)


@by_name
def test_a_step_by_itself_is_the_step_of_an_opened_run(solver: Any) -> None:
    """Without ``opened`` a step reads the cache again, and the same bits come out."""
    here = problem(on_disk=True)
    alone, opened = solver.start(here, None), solver.start(here, None)
    evaluations = [0, 0]
    with solver.opened(here, opened) as steps:
        for _ in range(40):
            alone, first = solver.step(here, alone, 37, None)
            opened, second = steps.step(here, opened, 37, None)
            assert_same(alone, opened)
            assert first.measures == second.measures
            assert second.measures["passes"] == opened.place.pass_number + opened.place.chunk / 9
            evaluations[0] += first.evaluated is not None
            evaluations[1] += second.evaluated is not None
    assert evaluations[0] == evaluations[1] > 0


def test_the_reader_ends_with_the_run_whatever_happens_in_it() -> None:
    solver, here = CachedLoops(cache=11), problem(on_disk=True)
    state = solver.start(here, None)
    with pytest.raises(KeyError), solver.opened(here, state):  # noqa: PT012
        assert len(readers()) == 1
        raise KeyError
    assert readers() == []


@pytest.mark.parametrize("solver", [*LOCKSTEP, CachedLoops(cache=11)], ids=lambda solver: solver.identity)
def test_a_reader_that_fails_is_a_status_and_no_exception(solver: Any) -> None:
    here = problem(on_disk=True, source=Failing)
    state, status = solver.start(here, None), None
    with solver.opened(here, state) as steps:
        while status is None or status.ended is None:
            state, status = steps.step(here, state, 1000, None)
    assert status.ended.name == "broken"
    assert "memory: cannot be read on: OSError('no such sector')" in status.ended.message
    assert readers() == []


def test_cached_loops_is_dcd_where_all_rows_are_and_stay_in_memory() -> None:
    here = problem(on_disk=False)
    assert CachedLoops(seed=3).resolved(here) == DCD(seed=3)
    assert CachedLoops(seed=3, cache=60).resolved(here) == DCD(seed=3)
    assert ExactBiasSolver(CachedLoops(seed=3)).resolved(here) == ExactBiasSolver(DCD(seed=3))
    for solver, where in ((CachedLoops(cache=59), here), (CachedLoops(), problem(on_disk=True))):
        assert solver.resolved(where) is solver
    assert LOCKSTEP[1].resolved(here) is LOCKSTEP[1]


def test_what_runs_that_share_a_reader_ask_for() -> None:
    assert CachedLoops(sweeps=4.0).in_lockstep() == CachedLoops(sweeps=4.0, lockstep=True)
    assert CachedLoops(sweeps=4.0).visits_per_row == 4.0
    with pytest.raises(InputError, match="sweeps=0 lets the reader run ahead"):
        CachedLoops(sweeps=0.0).in_lockstep()
    for solver in LOCKSTEP[1:]:
        assert solver.in_lockstep() is solver
        assert solver.visits_per_row == 1.0


@pytest.mark.parametrize(
    ("solver", "options", "message"),
    [
        (CachedLoops, {"cache": -1.0}, "cache=-1.0 must be a finite number >= 0"),
        (CachedLoops, {"cache": np.inf}, "cache=inf must be a finite number >= 0"),
        (CachedLoops, {"sweeps": -1.0}, "sweeps=-1.0 must be a finite number >= 0"),
        (CachedLoops, {"eviction": "age"}, "eviction='age' must be one of score, threshold, random"),
        (BlockMinimisation, {"inner": 0}, "inner=0 must be a whole number >= 1"),
    ],
)
def test_options_out_of_range_are_refused(solver: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        solver(**options)


def test_a_cache_sweeper_begins_with_an_empty_cache() -> None:
    sweeper: DualSweeper[Sweeps] = CacheSweeper()
    batch: Batch = problem(on_disk=False).source.batch
    state = sweeper.begin(batch, 0.5, 3, 8)
    assert_same(state, Sweeps.empty(60, 0.5, 3))
    assert state.cursor.size == 0
