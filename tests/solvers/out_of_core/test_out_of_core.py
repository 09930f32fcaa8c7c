"""Training on rows that are not all in memory: the steps, the rows that leave, the certificates, the same run
again.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.core.bias import make_bias
from dualgap.core.losses import make_loss
from dualgap.core.problem import Point, Problem
from dualgap.data.chunks import FromMemory, OnDisk
from dualgap.data.formats.feeds import ChunkFeed
from dualgap.data.sources import view
from dualgap.files import Store, read_data, write_store
from dualgap.runtime.random import shuffle
from dualgap.solvers import SOLVERS
from dualgap.solvers.out_of_core.cached_loops import CachedLoops
from dualgap.solvers.out_of_core.engine import Engine
from support.feeds import deadline, small_batches
from support.problems import sparse_data
from support.states import assert_same

NAMES = ("cached-loops", "block", "selective-block")
LOSSES = ("hinge", "squared-hinge", "logistic", "squared", "epsilon-insensitive", "absolute")


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with deadline(120.0):
        yield


# some weights are 0
data = partial(sparse_data, n=60, d=8, density=0.6, noise=0.5, empty_row=3, weights=(0.0, 1.0, 1.0, 2.0, 0.5))


def problems(
    loss: str = "hinge", bias: str = "augmented", matrix: Any = None, rows: int = 7, **options: Any
) -> tuple[Problem, Problem]:
    """One problem twice: with its rows in memory, and with its rows in chunks that come by."""
    chosen = make_loss(loss)
    X, y, weight = data(regression=chosen.task == "regression", **options)
    whole = view(X if matrix is None else matrix(X), y, weight)
    streamed = OnDisk(FromMemory(whole, rows=rows), memory_budget=10**6)
    lam = 1.0 / whole.total_weight
    return tuple(Problem(source, chosen, lam, make_bias(bias, 0.7)) for source in (whole, streamed))  # type: ignore[return-value]


def made(name: str, **options: Any) -> Any:
    if name == "cached-loops":
        options = {"lockstep": True, **options}
    return SOLVERS[name](**{"cache": 11, **options})


def driven(solver: Any, problem: Problem, visits: int, budget: int = 50) -> tuple[Any, list[Any]]:
    """The state after so many visits, and all evaluations on the way."""
    state, evaluated = solver.start(problem, None), []
    with solver.opened(problem, state) as steps:
        while state.counts.visits < visits:
            state, status = steps.step(problem, state, min(budget, visits - state.counts.visits), None)
            if status.evaluated is not None:
                evaluated.append(status.evaluated)
    return state, evaluated


def resumable(outcome: Any, **changes: Any) -> Any:
    """What a run goes on from, but for the seconds it took and what rules remember."""
    return outcome.run._replace(seconds=None, memory=None, **changes)


def assert_follows(problem: Problem, state: Any, relative: float = 1e-12) -> None:
    """w == w(beta), b == b(beta)."""
    w, b = problem.model_of(state.beta, state.b)
    size = 1.0 + np.abs(w).max()
    np.testing.assert_allclose(state.w, w, rtol=0.0, atol=relative * size)
    assert abs(state.b - b) <= relative * size


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["none", "augmented"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", NAMES)
def test_a_evaluation_in_passing_is_the_evaluation_view(name: str, loss: str, bias: str) -> None:
    shapes = [
        sp.csr_array,
        np.asarray,
        lambda X: sp.csr_array(X.astype(np.float32)),
        lambda X: X.astype(np.float32),
    ]
    matrix = shapes[(NAMES.index(name) + LOSSES.index(loss) + (bias == "none")) % 4]
    whole, streamed = problems(loss, bias, matrix)
    state, evaluated = driven(made(name), streamed, 6000)
    assert len(evaluated) >= 3
    best = 0.0
    for point, found in evaluated:
        here = whole.evaluate(point)
        assert abs(found.primal - here.primal) <= found.primal_error + here.primal_error
        assert abs(found.dual - here.dual) <= found.dual_error + here.dual_error
        np.testing.assert_allclose(found.w_of_dual, here.w_of_dual, rtol=1e-12, atol=1e-14)
        assert found.b == pytest.approx(here.b, rel=1e-12, abs=1e-14)
        assert found.primal + found.primal_error + found.dual_error >= found.dual
        np.testing.assert_allclose(
            point.w, here.w_of_dual, rtol=0.0, atol=1e-12 * (1 + np.abs(here.w_of_dual).max())
        )
        assert here.dual >= best - 2 * here.dual_error  # coordinate steps only ever raise it
        best = here.dual
    assert_follows(whole, state)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "epsilon-insensitive"])
@pytest.mark.parametrize("name", NAMES)
def test_every_step_raises_the_dual(name: str, loss: str) -> None:
    whole, streamed = problems(loss, n=20, d=4)
    solver = made(name, cache=5)
    state = solver.start(streamed, None)
    before = whole.evaluate(Point(state.w, state.b, state.beta))
    rose = 0
    with solver.opened(streamed, state) as steps:
        for _ in range(300):
            old = state.beta.copy()
            state, _ = steps.step(streamed, state, 1, None)
            after = whole.evaluate(Point(state.w, state.b, state.beta))
            assert after.dual >= before.dual - after.dual_error - before.dual_error
            assert np.count_nonzero(old != state.beta) <= 1
            rose += after.dual > before.dual
            before = after
    assert rose > 50
    assert_follows(whole, state)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in NAMES]
    + [("cached-loops", {"eviction": rule}) for rule in ("threshold", "random")],
)
def test_it_makes_no_difference_into_which_budgets_a_run_is_cut(
    name: str, options: dict[str, Any], streaming: bool
) -> None:
    states = [
        driven(made(name, **options), problems()[streaming], 2500, budget)[0] for budget in (1, 7, 1000)
    ]
    for other in states[1:]:
        assert_same(states[0], other)


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_gives_the_same_run_from_a_store_and_another_seed_another(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_batches(monkeypatch)
    X, y, weight = data()
    write_store(tmp_path / "rows.arrow", X, y, weight)
    extra: dict[str, Any] = {"lockstep": True} if name == "cached-loops" else {}
    runs = [
        dualgap.fit(
            tmp_path / "rows.arrow",
            solver=name,
            in_memory=False,
            cache=11,
            tol=1e-6,
            max_epochs=80,
            seed=seed,
            **extra,
        )
        for seed in (5, 5, 6)
    ]
    assert_same(runs[0].run.state, runs[1].run.state)
    assert np.array_equal(runs[0].coef, runs[1].coef)
    assert [record.certificate for record in runs[0].trace] == [
        record.certificate for record in runs[1].trace
    ]
    assert not np.array_equal(runs[0].coef, runs[2].coef)


def test_a_thread_that_reads_leaves_w_where_the_duals_are() -> None:
    """The Reader looks at w and the duals while the Trainer moves both: what it sees must not come back as an
    error.
    """
    rng = np.random.default_rng(0)
    n, d, k = 4000, 60_000, 30
    X = sp.csr_matrix(
        (rng.standard_normal(n * k), rng.integers(0, d, n * k), np.arange(0, n * k + 1, k)), shape=(n, d)
    )
    X.sum_duplicates()
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    whole = view(sp.csr_array(X), y)
    streamed = OnDisk(FromMemory(whole, rows=500), memory_budget=None)
    problem = Problem(streamed, make_loss("logistic"), 1e-3 / n)
    solver = CachedLoops(cache=0.3, sweeps=1.0)
    state = solver.start(problem, None)
    here = Problem(whole, make_loss("logistic"), 1e-3 / n)
    with solver.opened(problem, state) as steps:
        while state.place.pass_number < 40:
            state, _ = steps.step(problem, state, 3000, None)
            assert_follows(here, state, 1e-11)


@pytest.mark.parametrize("bias", ["none", "augmented"])
@pytest.mark.parametrize("name", NAMES)
def test_threads_and_all_weak_duality_at_every_record_and_an_honest_end(
    name: str, bias: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_batches(monkeypatch)
    before = threading.active_count()
    for loss in ("hinge", "squared"):
        X, y, weight = data(regression=loss == "squared")
        write_store(tmp_path / "rows.arrow", X, y, weight)
        outcome = dualgap.fit(
            tmp_path / "rows.arrow",
            loss=loss,
            solver=name,
            in_memory=False,
            cache=20,
            tol=1e-3,
            bias=bias,
            max_epochs=3000,
        )
        assert outcome.converged
        assert outcome.trace
        for record in outcome.trace:
            primal, dual, gap, _, rounding, _ = record.certificate
            assert primal - dual >= -rounding
            assert gap >= primal - dual
        stored = Store(tmp_path / "rows.arrow").read()
        source = view(stored.X, stored.y, stored.weight)
        problem = Problem(source, make_loss(loss), outcome.problem.lam, outcome.problem.bias)
        again = problem.in_form(problem.certify(Point(outcome.coef, outcome.intercept, outcome.dual)), "J")
        assert abs(again.gap - outcome.certificate.gap) <= 2 * (again.rounding + outcome.certificate.rounding)
    assert threading.active_count() == before


@pytest.mark.parametrize("bias", ["none", "augmented", "exact"])
@pytest.mark.parametrize("name", NAMES)
def test_resuming_in_memory_is_never_having_stopped(name: str, bias: str, tmp_path: Path) -> None:
    X, y, weight = data()
    common: dict[str, Any] = {"solver": name, "cache": 11, "tol": 0.0, "bias": bias, "sample_weight": weight}
    long = dualgap.fit(X, y, max_visits=2001, **common)
    for stop in (1, 333, 1200):
        dualgap.save_state(tmp_path / "run.npz", dualgap.fit(X, y, max_visits=stop, **common))
        rest = dualgap.fit(X, y, max_visits=2001, resume=dualgap.load_state(tmp_path / "run.npz"), **common)
        assert_same(long.run.state, rest.run.state)
        assert long.certificate == rest.certificate


@pytest.mark.slow
@pytest.mark.parametrize("long_rows", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_resuming_from_disk_is_never_having_stopped(
    name: str, long_rows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a run is cut, also where an evaluation has just been made; rows that get longer make the ring
    grow.
    """
    small_batches(monkeypatch)
    X, y, weight = data(d=20)
    if long_rows:
        X[:40, 2:] = 0.0
    path = tmp_path / "rows.arrow"
    write_store(path, X, y, weight, keep_order=long_rows)
    extra: dict[str, Any] = {"lockstep": True} if name == "cached-loops" else {"inner": 4}
    common: dict[str, Any] = {
        "solver": name,
        "in_memory": False,
        "cache": 17,
        "tol": 0.0,
        "bias": "augmented",
        **extra,
    }
    long = dualgap.fit(path, max_visits=1201, **common)
    evaluated = {record.visits for record in long.trace[:-1]}
    assert len(evaluated) >= 2
    for stop in sorted({1, *range(60, 1200, 120), *range(7, 1200, 197), *evaluated}):
        dualgap.save_state(tmp_path / "run.npz", dualgap.fit(path, max_visits=stop, **common))
        rest = dualgap.fit(path, max_visits=1201, resume=dualgap.load_state(tmp_path / "run.npz"), **common)
        if name == "cached-loops":
            assert_same(resumable(long), resumable(rest))
            assert long.certificate == rest.certificate
        else:  # they add up their passes in a random order, and the value of the best point in the rows' own
            assert_same(resumable(long, value=rest.run.value), resumable(rest))
        assert np.array_equal(long.coef, rest.coef)
        assert long.certificate[:4] == pytest.approx(rest.certificate[:4], rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_from_disk_that_reached_its_gap_goes_on_as_if_it_had_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_batches(monkeypatch)
    X, y, weight = data()
    path = tmp_path / "rows.arrow"
    write_store(path, X, y, weight)
    extra: dict[str, Any] = {"lockstep": True} if name == "cached-loops" else {}
    common: dict[str, Any] = {"solver": name, "in_memory": False, "cache": 17, **extra}
    first = dualgap.fit(path, tol=1e-2, **common)
    assert first.reason.name == "gap"
    fine, rest = dualgap.fit(path, tol=1e-4, **common), dualgap.fit(path, tol=1e-4, resume=first, **common)
    # block solvers add up their passes in a random order, and the value of the best point in the rows' own
    value = fine.run.value if name == "cached-loops" else rest.run.value
    assert_same(resumable(fine, value=value), resumable(rest))
    assert np.array_equal(fine.coef, rest.coef)


@pytest.mark.parametrize("name", NAMES)
def test_warm_starts_from_a_point_and_from_an_outcome(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_batches(monkeypatch)
    X, y, weight = data()
    path = tmp_path / "rows.arrow"
    write_store(path, X, y, weight, keep_order=True)
    good = dualgap.fit(X, y, sample_weight=weight, tol=1e-5)
    point = Point(good.coef, good.intercept, good.dual)
    for warm in (point, good):
        at_once = dualgap.fit(path, solver=name, in_memory=False, cache=11, tol=1e-4, warm=warm)
        assert at_once.converged
        assert at_once.trace[0].visits == at_once.trace[-1].visits == 0
    further = dualgap.fit(path, solver=name, in_memory=False, cache=30, tol=1e-7, warm=point, max_epochs=5000)
    assert further.converged
    assert further.trace[0].certificate.relative_gap <= 1e-5
    with pytest.raises(dualgap.InputError, match="warm start of 59 rows"):
        dualgap.fit(path, solver=name, in_memory=False, cache=11, warm=point._replace(beta=good.dual[:-1]))


def filled(problem: Problem, solver: Any, rows: int) -> tuple[Any, Any]:
    """An engine with the first rows in its ring."""
    state = solver.start(problem, None)
    engine = Engine(problem, state, solver.reading, solver.chunk_order)
    piece = engine.next_piece(wait=True)
    assert piece is not None
    size = engine.cache.insert(piece.part, 0, rows, 0)
    return engine, engine.advanced(state, piece, rows, size, 0)


@pytest.mark.parametrize("crowd", [20, 15])
def test_threshold_is_the_trainer_of_the_lecture(crowd: int) -> None:
    """Every visit, every row that leaves and every threshold of a run, against the pseudocode line by
    line.
    """
    X, y, _ = data(n=24, d=5, seed=2)
    whole = view(sp.csr_array(X), y)
    C = 3.0
    problem = Problem(whole, make_loss("hinge"), 1.0 / (C * 24))
    solver = CachedLoops(cache=20, eviction="threshold", lockstep=True, seed=4)
    engine, state = filled(problem, solver, crowd)
    rng, A = state.sweeps.rng.copy(), state.sweeps.order.copy()
    Omega, size = A.size, crowd
    alpha, w = np.zeros(24), np.zeros(5)
    epsilon, epsilon_new, beta, t = 9.0, 0.0, 0.9, 0
    left_at_all = 0
    for _ in range(12):
        visits = 0
        shuffle(rng, A, size)  # "randomly select i", without replacement within a sweep
        position = 0
        while position < size:
            if t == 24:  # "for t = 1, ..., n": n visits, however many rows A has
                epsilon, epsilon_new, t = epsilon_new, 0.0, 0
            t += 1
            if size > 0.9 * Omega:
                epsilon = beta * epsilon
            i = int(state.sweeps.ids[A[position]])
            gradient = y[i] * (X[i] @ w) - 1.0
            visits += 1
            if (alpha[i] == 0.0 and gradient > epsilon) or (alpha[i] == C and gradient < -epsilon):
                size -= 1
                A[position], A[size] = A[size], A[position]
                left_at_all += 1
                continue
            Q = X[i] @ X[i]
            new = min(max(alpha[i] - gradient / Q, 0.0), C) if Q > 0 else (C if gradient < 0 else alpha[i])
            w += (new - alpha[i]) * y[i] * X[i]
            alpha[i] = new
            epsilon_new = max(epsilon_new, abs(gradient))
            position += 1
        state = engine.train(problem, solver.sweeper(problem), state, visits)
        cursor = state.sweeps.cursor
        assert cursor.size == size
        assert set(state.sweeps.order[:size]) == set(A[:size])
        np.testing.assert_allclose(C * state.beta * y, alpha, atol=1e-10)
        np.testing.assert_allclose([cursor.epsilon, cursor.new_epsilon], [epsilon, epsilon_new], rtol=1e-9)
        assert engine.cache.live == sum(np.count_nonzero(X[state.sweeps.ids[slot]]) for slot in A[:size])
    assert left_at_all > 0


def test_score_lets_those_go_that_are_satisfied_with_the_most_slack() -> None:
    X, y, _ = data(n=40, d=5, seed=2)
    problem = Problem(view(X, y), make_loss("hinge"), 1.0 / 40)
    solver = CachedLoops(cache=16, lockstep=True)
    state = solver.start(problem, None)
    seen: dict[int, float] = {}  # how satisfied rows were when they were last visited
    chosen = 0
    with solver.opened(problem, state) as steps:
        for _ in range(1500):
            before, w, beta = (
                {int(state.sweeps.ids[s]) for s in state.sweeps.order[: state.size]},
                state.w.copy(),
                state.beta,
            )
            a, place = y * beta, state.place
            state, _ = steps.step(problem, state, 1, None)
            slots = state.sweeps.order[: state.size]
            present = {int(state.sweeps.ids[slot]) for slot in slots}
            read = set(range(place.row, state.place.row or 40)) if state.place != place else set()
            gone, stayed = (
                before - present,
                (before & present) - read,
            )  # one that was read may have left first
            if gone:
                assert min(seen.get(i, 0.0) for i in gone) >= max(seen.get(i, 0.0) for i in stayed) - 1e-12
                chosen += min(seen.get(i, 0.0) for i in gone) > 0.0
            i = int(
                state.sweeps.ids[state.sweeps.order[state.sweeps.cursor.position - 1]]
            )  # visited just now
            gradient = y[i] * (X[i] @ w) - 1.0
            seen[i] = max({0.0: gradient, 1.0: -gradient}.get(float(a[i]), 0.0), 0.0)
            for slot in slots:
                row = int(state.sweeps.ids[slot])
                if row != i and (row not in before or (row in read and state.sweeps.slack[slot] == 0.0)):
                    seen.pop(row, None)
    assert chosen > 5


def tight(path: Path, name: str, rows: int) -> int:
    """A budget with room for so many rows of average length; what else is needed stands in the refusal."""
    with pytest.raises(dualgap.InputError) as refusal:
        dualgap.fit(path, solver=name, memory_budget=1000)
    found = re.search(r"(\d+) go into .* and (\d+) into each row", str(refusal.value))
    assert found is not None
    return int(found[1]) + rows * int(found[2]) + 100


@pytest.mark.parametrize("name", NAMES)
def test_a_long_row_finds_room_if_enough_others_leave(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An arena for 20 rows of 6 entries holds a row of 60, though not beside all the others."""
    small_batches(monkeypatch)
    rng = np.random.default_rng(0)
    X = np.where(rng.random((600, 60)) < 0.1, rng.standard_normal((600, 60)), 0.0)
    X[[37, 120]] = rng.standard_normal((2, 60))
    y = np.where(rng.random(600) < 0.5, 1.0, -1.0)
    write_store(tmp_path / "rows.arrow", X, y, keep_order=True)
    extra: dict[str, Any] = {"lockstep": True} if name == "cached-loops" else {}
    outcome = dualgap.fit(
        tmp_path / "rows.arrow",
        solver=name,
        memory_budget=tight(tmp_path / "rows.arrow", name, 20),
        tol=0.0,
        max_epochs=30,
        time_limit=15.0,
        **extra,
    )
    assert outcome.reason.name == "max_epochs", outcome.reason
    assert outcome.run.state.sweeps.ids.size == 20
    assert outcome.dual is not None
    assert outcome.dual[[37, 120]].any()


@pytest.mark.parametrize("name", NAMES)
def test_a_row_larger_than_all_memory_ends_the_run_with_its_number(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_batches(monkeypatch)
    rng = np.random.default_rng(0)
    X = np.where(rng.random((600, 200)) < 0.02, rng.standard_normal((600, 200)), 0.0)
    X[37] = rng.standard_normal(200)
    y = np.where(rng.random(600) < 0.5, 1.0, -1.0)
    write_store(tmp_path / "rows.arrow", X, y, keep_order=True)
    budget = tight(tmp_path / "rows.arrow", name, 5)
    outcome = dualgap.fit(
        tmp_path / "rows.arrow", solver=name, memory_budget=budget, tol=0.0, time_limit=15.0
    )
    assert outcome.reason.name == "broken", outcome.reason
    assert "row 37 has 200 entries" in outcome.reason.message


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "squared", "huber"])
@pytest.mark.parametrize("name", NAMES)
def test_a_free_bias_is_found_with_few_rows_at_hand(name: str, loss: str) -> None:
    """In memory, where it is on offer: the centre of the bias must not run away before all rows have been
    seen.
    """
    X, y, weight = data(regression=loss != "hinge")
    outcome = dualgap.fit(
        X, y, loss=loss, sample_weight=weight, solver=name, cache=5, bias="exact", tol=1e-2, max_epochs=6000
    )
    assert outcome.converged, outcome.reason


@pytest.mark.parametrize("name", NAMES)
def test_chunks_of_an_iterator_train_to_the_same_optimum(name: str) -> None:
    X, y, weight = data()

    def start() -> Iterator[Any]:
        for k in range(0, 60, 13):
            yield X[k : k + 13], np.where(y[k : k + 13] > 0, 9, 4), weight[k : k + 13]

    outcome = dualgap.fit(ChunkFeed(start), solver=name, in_memory=False, cache=20, tol=1e-4, max_epochs=5000)
    whole = dualgap.fit(X, y, sample_weight=weight, tol=1e-6)
    assert outcome.converged
    assert list(outcome.classes) == [4, 9]
    assert whole.certificate.dual <= outcome.certificate.primal * (1 + 1e-9)
    assert outcome.certificate.primal <= whole.certificate.primal * (1 + 1.1e-4)


def stored(folder: Path, name: str, tmp_path: Path, **options: Any) -> Path:
    file = folder / f"{name}.svm.bz2"
    if not file.exists():
        pytest.skip(f"{file} is not there")
    found = read_data(file)
    X, y = found.X, found.y
    if name.startswith("mnist"):
        X, y = X[:12_000] / 255.0, np.where(y[:12_000] == 8, 1.0, -1.0)
    write_store(tmp_path / f"{name}.arrow", X, y, **options)
    return tmp_path / f"{name}.arrow"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a9a", "w8a", "wikitox-bow", "mnist-multiclass"])
def test_on_real_data_the_certificate_is_that_of_memory_and_passes_are_few(
    name: str, data_folder: Path, tmp_path: Path
) -> None:
    """A tenth of the rows in memory, C=1, to 1e-3: at most 10 passes over the disk, a quarter of those of
    block.
    """
    path = stored(data_folder, name, tmp_path)
    outcome = dualgap.fit(path, solver="cached-loops", in_memory=False, cache=0.1, lockstep=True, tol=1e-3)
    assert outcome.converged
    found = Store(path).read()
    here = Problem(view(found.X, found.y), make_loss("hinge"), outcome.problem.lam, outcome.problem.bias)
    again = here.in_form(here.certify(Point(outcome.coef, outcome.intercept, outcome.dual)), "J")
    rounding = again.rounding + outcome.certificate.rounding
    assert abs(again.primal - outcome.certificate.primal) <= rounding
    assert abs(again.dual - outcome.certificate.dual) <= rounding
    if name == "mnist-multiclass":  # dense, and of no part in the promise
        return
    passes = outcome.trace[-1].measures["passes"]
    assert passes <= 10
    resident = dualgap.fit(found.X, found.y, solver="cached-loops", cache=0.1, tol=1e-3)
    assert resident.converged
    assert resident.trace[-1].measures["passes"] <= 10
    block = dualgap.fit(
        path, solver="block", in_memory=False, cache=0.1, inner=10, tol=1e-3, max_epochs=4 * passes * 10
    )
    assert not block.converged
    assert block.trace[-1].measures["passes"] >= 4 * passes - 1
