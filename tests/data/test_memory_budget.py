"""How much memory training may take: what is refused, what is streamed by itself, and what a process really
uses.
"""

from __future__ import annotations

import json
import re
import subprocess
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.data import memory as opening
from dualgap.data.formats.arrow.writing import Options, write_blocks
from dualgap.data.formats.feeds import ChunkFeed
from dualgap.files import Store, Table, write_store
from dualgap.runtime.errors import InputError
from support.commands import run
from support.feeds import small_batches
from support.memory import program_that_measures
from support.problems import sparse_data

DISK = ("cached-loops", "block", "selective-block")


rows = partial(sparse_data, n=300, d=10)


@pytest.fixture(name="store")
def store_fixture(tmp_path: Path) -> Path:
    write_store(tmp_path / "rows.arrow", *rows())
    return tmp_path / "rows.arrow"


@pytest.mark.parametrize("name", DISK)
def test_too_small_a_budget_is_refused_with_numbers(name: str, store: Path) -> None:
    with pytest.raises(InputError, match="memory_budget=2000 is too little") as caught:
        dualgap.fit(store, memory_budget=2000, solver=name)
    found = re.search(r"give at least (\d+) bytes", str(caught.value))
    assert found is not None
    enough = int(found[1])
    with pytest.raises(InputError, match="is too little"):
        dualgap.fit(store, memory_budget=enough - 200, solver=name)
    assert dualgap.fit(store, memory_budget=enough, solver=name, max_epochs=2).trace


def test_a_row_too_long_for_the_budget_is_refused_with_the_bytes_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    y = np.where(np.arange(3000) % 2, 1.0, -1.0)
    X = sp.lil_array((3000, 300))
    X[:, 0] = y[:, None]
    X[7, :] = 1.0  # one long row among short ones
    file = tmp_path / "rows.arrow"
    small_batches(monkeypatch, 2000)
    write_store(file, X.tocsr(), y)
    budget, asked = 110_000, 0
    for _ in range(3):
        outcome = dualgap.fit(file, memory_budget=budget, tol=0.0, max_epochs=40)
        found = re.search(r"row \d+ has 300 entries.*raise it by (\d+) bytes", outcome.reason.message)
        if found is None:
            break
        budget, asked = budget + int(found[1]), asked + 1
    assert asked == 1, "too little at first, and what the message asks for is enough"
    assert not outcome.problem.source.in_memory


@pytest.mark.parametrize("budget", [0, -5])
def test_a_budget_is_positive(budget: int, store: Path) -> None:
    with pytest.raises(InputError, match=f"memory_budget={budget} must be at least 1"):
        dualgap.fit(store, memory_budget=budget)


def test_a_budget_is_for_rows_on_disk() -> None:
    X, y = rows()
    with pytest.raises(InputError, match="rows on disk"):
        dualgap.fit(X, y, memory_budget=10**9)


def test_a_budget_for_text_is_refused_and_not_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "rows.svm"
    file.write_text("".join(f"{1 if k % 2 else -1} 1:{k}\n" for k in range(1, 40)))
    with pytest.raises(InputError, match="convert"):
        dualgap.fit(file, memory_budget=1000)


def test_a_budget_that_holds_everything_reads_into_memory(store: Path) -> None:
    outcome = dualgap.fit(store, memory_budget=10**9)
    assert outcome.problem.source.in_memory
    assert outcome.solver.name == "dcd"
    data = Store(store).read()
    again = dualgap.fit(data.X, data.y)
    assert np.array_equal(outcome.coef, again.coef)


def test_a_feed_that_fits_is_read_into_memory(store: Path) -> None:
    X, y = rows()
    outcome = dualgap.fit(
        ChunkFeed(lambda: iter([(X[:100], y[:100]), (X[100:], y[100:])])), memory_budget=10**9
    )
    assert outcome.problem.source.in_memory
    assert np.array_equal(outcome.coef, dualgap.fit(sp.csr_array(X), y, sample_weight=np.ones(300)).coef)


def test_a_store_beyond_the_free_memory_is_streamed_and_the_user_is_told(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = opening.training_bytes(300, 10, Store(store).header.nnz, 8)
    monkeypatch.setattr(opening, "available_memory", lambda: int(size / 0.6) + 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dualgap.fit(store).problem.source.in_memory
    monkeypatch.setattr(opening, "available_memory", lambda: int(size / 0.6) - 10)
    monkeypatch.setattr("dualgap.solvers.out_of_core.solver.capacity", lambda problem, cache: 100)
    with pytest.warns(
        UserWarning, match=r"rows.arrow needs about .* streamed from disk.*memory_budget"
    ) as told:
        outcome = dualgap.fit(store)
    assert Path(told[0].filename) == Path(__file__)  # the line of the caller
    assert not outcome.problem.source.in_memory
    assert outcome.solver.name == "cached-loops"
    assert outcome.converged
    with warnings.catch_warnings():  # who asked need not be told
        warnings.simplefilter("error")
        assert not dualgap.fit(store, memory_budget=size - 1).problem.source.in_memory


def test_a_budget_is_kept_even_if_a_number_of_rows_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cache= says how many rows; where the budget cannot hold so many, one of the two is wrong."""
    small_batches(monkeypatch, 20_000)
    X, y = rows(n=4000, d=50)
    write_store(tmp_path / "rows.arrow", X, y)
    outcome_rows = []
    for options in ({}, {"cache": 0.9}):
        try:
            outcome = dualgap.fit(tmp_path / "rows.arrow", memory_budget=500_000, max_epochs=2, **options)
        except InputError as error:
            assert "cache" in str(error)  # noqa: PT017  (either is right)
            return
        assert not outcome.problem.source.in_memory
        outcome_rows.append(outcome.run.state.sweeps.ids.size)
    assert outcome_rows[1] <= outcome_rows[0]


@pytest.mark.parametrize("solver", ["dcd", "sgd", "svmperf"])
def test_solvers_of_memory_are_refused_with_those_that_stream(solver: str, store: Path) -> None:
    with pytest.raises(InputError, match=solver) as error:
        dualgap.fit(store, memory_budget=20_000, solver=solver)
    assert all(name in str(error.value) for name in DISK)


def test_what_rows_on_disk_cannot_have(store: Path) -> None:
    small: dict[str, Any] = {"in_memory": False, "cache": 50}
    with pytest.raises(InputError, match="exact"):
        dualgap.fit(store, bias="exact", **small)
    with pytest.raises(InputError, match="record_every=100"):
        dualgap.fit(store, record_every=100, **small)
    with pytest.raises(InputError, match=r"validation=0.2"):
        dualgap.fit(store, validation=0.2, **small)
    with pytest.raises(InputError, match="leave y and sample_weight out"):
        dualgap.fit(store, rows()[1], **small)
    with pytest.raises(InputError, match=r"3 classes .* where two are needed"):
        dualgap.fit(ChunkFeed(lambda: iter([(np.eye(3), [1, 2, 3])])), **small)
    with pytest.raises(InputError, match="a classifier needs rows of two classes"):
        dualgap.fit(ChunkFeed(lambda: iter([(np.eye(3), [1, 1, 1])])), **small)


def test_validation_on_rows_of_their_own_works(store: Path) -> None:
    X, y = rows()
    # otherwise the machine decides how far the trainer gets before a certificate
    how = {"in_memory": False, "cache": 50, "lockstep": True}
    other = np.where(np.arange(80) % 8 == 0, -y[:80], y[:80])  # wrong labels: to learn all is too much
    outcome = dualgap.fit(store, **how, validation=(X[:80], other), patience=2, tol=0.0, max_epochs=2000)
    values = [record.measures["validation"] for record in outcome.trace]
    assert outcome.reason.name == "early"
    margins = 1.0 - other * (X[:80] @ outcome.coef)
    assert min(values) == pytest.approx(np.maximum(0.0, margins).mean(), rel=1e-9)


def test_labels_that_are_not_signs_become_signs_and_regression_takes_them_as_they_are(tmp_path: Path) -> None:
    X, y = rows()
    write_store(tmp_path / "rows.arrow", X, np.where(y > 0, 7.0, 3.0))
    outcome = dualgap.fit(tmp_path / "rows.arrow", in_memory=False, cache=50)
    assert list(outcome.classes) == [3.0, 7.0]
    assert np.mean(np.sign(X @ outcome.coef) == y) > 0.9
    line = dualgap.fit(tmp_path / "rows.arrow", in_memory=False, cache=50, loss="squared", bias="augmented")
    assert line.classes is None
    assert line.certificate.primal == pytest.approx(
        dualgap.fit(X, np.where(y > 0, 7.0, 3.0), loss="squared", bias="augmented").certificate.primal,
        rel=2e-3,
    )


@pytest.mark.slow
def test_the_command_line_keeps_to_it(store: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.model"
    assert (
        "--memory-budget 2000 is too little"
        in run("train", store, "-o", model, "--memory-budget", "2kB").error
    )
    assert not model.exists()
    refused = run("train", store, "-o", model, "--memory-budget", "20kB", "--solver", "dcd").error
    assert all(name in refused for name in DISK)
    done = run("train", store, "-o", model, "--from-disk", "--option", "cache=50", "--json")
    assert done.json["solver"] == "cached-loops"
    assert done.json["converged"]
    again = run("certify", model, store, "--json")
    assert again.code == 0
    assert again.json["recomputed"]["primal"] == pytest.approx(done.json["primal"], rel=1e-9)
    assert again.json["recomputed"]["dual"] == pytest.approx(done.json["dual"], rel=1e-9)


SHAPES = {"long": (240_000, 20_000, 100), "short": (1_500_000, 1_000, 4)}  # rows, columns, entries a row

MEASURED = """
import gc, json, sys
import dualgap
from support.memory import growth

def train(path, **memory):
    return dualgap.fit(path, solver=sys.argv[4], C=0.1, tol=1e-2, max_epochs=float(sys.argv[5]), **memory)

small, large, budget = sys.argv[1], sys.argv[2], int(sys.argv[3])
train(small, in_memory=False, cache=50)
gc.collect()
with growth() as found:
    outcome = train(large, memory_budget=budget)
slots = int(outcome.run.state.sweeps.ids.size)
passes = outcome.trace[-1].measures["passes"]
print(json.dumps([found.bytes, slots, outcome.problem.source.in_memory, passes]))
"""


def written(path: Path, n: int, d: int, entries: int) -> Path:
    """Rows that a line tells apart, written in 12 blocks."""
    rng = np.random.default_rng(0)
    truth, size = rng.standard_normal(d), max(n // 12, 1)

    def blocks() -> Iterator[Table]:
        for _ in range(0, n, size):
            columns = rng.integers(0, d // entries, (size, entries))
            columns += np.arange(0, d, d // entries)  # rising, and no column twice
            values = rng.standard_normal((size, entries), dtype=np.float32)
            starts = np.arange(0, size * entries + 1, entries)
            X = sp.csr_array((values.ravel(), columns.ravel(), starts), shape=(size, d))
            yield Table(path, X, np.where(X @ truth > 0, 1.0, -1.0), None)

    write_blocks(path, blocks(), Options(seed=None), n_features=d)
    return path


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
@pytest.mark.parametrize(
    ("shape", "budgets"),
    [("long", {"cached-loops": (60, 120), "selective-block": (60,)}), ("short", {"cached-loops": (150,)})],
)
def test_a_process_keeps_to_its_budget(
    shape: str, budgets: dict[str, tuple[int, ...]], tmp_path: Path
) -> None:
    """RssAnon above its value at the start of training <= budget + (8 n + 24 d) + 100 MB."""
    n, d, entries = SHAPES[shape]
    small, large = (
        written(tmp_path / "small.arrow", 240, d, entries),
        written(tmp_path / "large.arrow", n, d, entries),
    )
    for solver, budget in [(solver, 10**6 * budget) for solver, found in budgets.items() for budget in found]:
        epochs = 14 if solver == "cached-loops" else 21  # enough for a pass
        program = program_that_measures(MEASURED, small, large, budget, solver, epochs)
        done = subprocess.run(**program, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        used, slots, resident, passes = json.loads(done.stdout)
        assert not resident
        assert passes > 1
        assert slots * entries * 8 > 0.1 * budget  # it is used, too: short rows cost more than their entries
        # far from the allowance, as large budgets must be, too
        assert used <= budget + 8 * n + 24 * d + 15_000_000
    large.unlink()
