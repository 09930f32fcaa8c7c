"""The benchmark harness works, and its rules are what it says they are. No times are asserted."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from dualgap import fit
from dualgap.core.losses import make_loss
from dualgap.core.problem import Point, Problem
from dualgap.data.sources import view

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the harness is no part of the installed package

from benchmarks import (  # noqa: E402
    environments,
    files,
    generated,
    goals,
    machine,
    measure,
    memory,
    micro,
    publish,
    run,
    sets,
    tables,
)
from benchmarks.cells import advantage, cells_at  # noqa: E402
from benchmarks.environments import MAIN, Environment  # noqa: E402
from benchmarks.objective import LOSSES, objective  # noqa: E402
from benchmarks.options import parse  # noqa: E402
from benchmarks.pool import Pool, WorkerError  # noqa: E402
from benchmarks.roster import Contestant, Grid, chosen, ours, peers  # noqa: E402
from benchmarks.search import search  # noqa: E402
from benchmarks.selection import taking_part  # noqa: E402


def strictly(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def assert_tables_are_rectangular(page):
    width = None
    for line in page.splitlines():
        if not line.startswith("|"):
            width = None
            continue
        width = width or line.count("|")
        assert line.count("|") == width, line


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """One quick run, as a user starts it."""
    folder = tmp_path_factory.mktemp("quick")
    solvers = "auto,dcd,LinearSVC,SGD,LR-lbfgs"  # each further solver of ours would be compiled for it
    options = ["--quick", "--solvers", solvers, "--out", folder / "out", "--cache", folder / "cache"]
    command = [sys.executable, "-m", "benchmarks", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "out"


@pytest.mark.slow
def test_quick_run_reaches_every_target_and_proves_it(quick):
    results = strictly((quick / "results.json").read_text())
    assert results["finished"]
    assert {problem["loss"] for problem in results["problems"]} == {"hinge", "logistic"}
    for problem in results["problems"]:
        known = problem["reference"]
        assert 0 < known["dual"] <= known["primal"] <= (1 + 1.1e-7) * known["dual"]
        assert problem["broken"] == []
        for target in results["options"]["targets"]:
            cells = cells_at(problem, target)
            assert {"auto", "dcd"} <= {name for name, cell in cells.items() if cell["status"] == "ok"}
            assert any(
                cell["status"] == "ok" for name, cell in cells.items() if not results["solvers"][name]["ours"]
            )
            for cell in cells.values():
                if cell["status"] == "ok":
                    assert -1e-9 <= cell["suboptimality"] <= target
                    assert 0 < cell["train_seconds"] <= cell["seconds"] <= cell["median"] <= cell["slowest"]
        assert problem["traces"]["auto"][-1]["relative_gap"] <= min(results["options"]["targets"])


@pytest.mark.slow
def test_quick_run_writes_tables_and_plots(quick):
    page = (quick / "RESULTS.md").read_text()
    assert_tables_are_rectangular(page)
    for words in ("quick-text", "quick-dense", "LinearSVC", "SGD", "LR-lbfgs", "| tune |", "| report |"):
        assert words in page
    if importlib.util.find_spec("matplotlib") is None:
        pytest.skip("plots need matplotlib")
    pictures = {path.stem: path.read_bytes() for path in (quick / "plots").glob("*.png")}
    assert set(pictures) == {
        "overview",
        "quick-text-hinge-C1",
        "quick-text-logistic-C1",
        "quick-dense-hinge-C1",
    }
    assert all(picture.startswith(b"\x89PNG") and len(picture) > 5_000 for picture in pictures.values())


@pytest.mark.slow
def test_runs_of_the_same_code_make_one_page(quick):
    results = json.loads((quick / "results.json").read_text())
    other = json.loads((quick / "results.json").read_text())
    for problem in other["problems"]:
        problem["C"] = 77.0
    both = publish.merged([results, other])
    assert {problem["C"] for problem in both["problems"]} >= {77.0}
    other["machine"]["commit"] = "another"
    with pytest.raises(SystemExit, match="runs of different commit"):
        publish.merged([results, other])


@pytest.mark.slow
def test_a_run_that_was_ended_early_is_published_as_such(quick, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="the overview needs matplotlib")
    monkeypatch.setattr(publish, "PAGE", tmp_path / "RESULTS.md")
    monkeypatch.setattr(publish, "PICTURE", tmp_path / "overview.png")
    copy = tmp_path / "copy"
    copy.mkdir()
    results = strictly((quick / "results.json").read_text())
    (copy / "results.json").write_text(json.dumps({**results, "finished": False}))
    monkeypatch.setattr(sys, "argv", ["publish", str(copy)])
    assert publish.main() == 0
    assert "these are partial results" in (tmp_path / "RESULTS.md").read_text()
    (copy / "results.json").write_text(json.dumps(results))
    assert publish.main() == 0
    assert "these are partial results" not in (tmp_path / "RESULTS.md").read_text()
    assert "](overview.png)" in (tmp_path / "RESULTS.md").read_text()
    assert (tmp_path / "overview.png").stat().st_size > 0


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, monkeypatch):
    measured = []

    def one(options, pool, present, results, what):
        if len(measured) == 1 and not interrupted:
            raise KeyboardInterrupt
        measured.append(what)
        empty = {"reference": None, "optimum": None, "cells": [], "runs": [], "traces": {}, "broken": []}
        return {"set": what[0], "loss": what[1], "C": what[2], **empty}

    interrupted = False
    monkeypatch.setattr(run, "_measure", one)
    monkeypatch.setattr(run, "_present", lambda *_: [])
    options = parse(["--quick", "--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")])
    with pytest.raises(KeyboardInterrupt):
        run.run(options)
    assert not strictly((tmp_path / "out" / "results.json").read_text())["finished"]
    interrupted = True
    run.run(options)
    assert measured == options.problems()
    run.run(options)  # a finished run is not gone on with: the next one is a new one
    assert measured == 2 * options.problems()

    run.run(replace(options, repeats=7))
    assert strictly((tmp_path / "out" / "results.json").read_text())["options"]["repeats"] == 7


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("sparse", [False, True])
def test_independent_objective_agrees_with_the_certificate(loss, sparse):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 7)) * (rng.random((50, 7)) < 0.5)
    y = np.where(rng.random(50) < 0.5, 1.0, -1.0)
    w = 3.0 * rng.normal(size=7)
    C = 2.5
    X = sp.csr_matrix(X) if sparse else X
    problem = Problem(view(X, y), make_loss(loss), 1.0 / (C * 50))
    certified = problem.in_form(problem.certify(Point(w, 0.0, None)), "J").primal
    assert objective(X, y, w, 0.0, loss, C) == pytest.approx(certified, rel=1e-13)


def tried(grid, curve, targets):
    seen = {}

    def attempt(value):
        assert value not in seen, "a value was tried twice"
        seen[value] = curve(value)
        return seen[value]

    search(grid, attempt, targets)
    return seen


def test_search_finds_the_loosest_sufficient_value_of_each_target():
    grid = Grid(tuple(range(1, 41)), 4)
    seen = tried(grid, lambda value: 2.0**-value, (0.01, 1e-6))
    for target in (0.01, 1e-6):
        loosest = next(value for value in grid.values if 2.0**-value <= target)
        assert loosest in seen
        assert loosest - 1 in seen, "that the value before it does not suffice was never checked"
    assert max(seen) <= 24
    assert len(seen) < 14


def test_search_stops_where_nothing_more_can_come():
    grid = Grid(tuple(range(1, 41)), 4)
    assert max(tried(grid, lambda value: None if value > 8 else 0.5, (0.01,))) == 9
    capped = tried(grid, lambda value: max(2.0**-value, 0.125), (0.2, 0.01))
    assert 3 in capped
    assert max(capped) <= 13
    assert set(tried(grid, lambda value: 0.0, (0.01, 1e-4))) == {1}


class FakePool:
    """Answers from a script: (arm, value) -> seconds and weight, in place of training."""

    def __init__(self, script):
        self.script = script
        self.limits = []

    def run(self, contestant, info, loss, C, arm, value, limit):
        self.limits.append(limit)
        found = self.script[contestant.name, arm, value]
        if isinstance(found, WorkerError):
            raise found
        seconds, weight, *trace = found
        answer = {
            "seconds": seconds,
            "convert_seconds": 0.1,
            "train_seconds": seconds - 0.1,
            "passes": 1.0,
            "b": 0.0,
        }
        return {**answer, "converged": True, "note": "", "trace": trace}, np.array([weight])


# J = w^2/2 + max(0, 1 - w) + max(0, 1 - w), at its least (1/2) at w = 1; J(1.1) = 0.605, J(1.01) = 0.51005
X, Y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
OPTIMUM = {"primal": 0.5, "dual": 0.5, "relative_gap": 0.0}


def measurement(script, *, targets=(0.05, 0.01), repeats=1, limit=10.0):
    info = sets.Info("tiny", "tune", "", "", "dense", "float64", 2, 1, 2, 16)
    problem = measure.Problem(info, "hinge", 1.0, targets, repeats, limit, give_up=6.0, repeat_seconds=2.0)
    return measure.Measurement(problem, FakePool(script), X, Y, OPTIMUM)


def record(seconds, primal, certify=0.01):
    gap = primal / 0.5 - 1
    times = {"seconds": seconds, "certify_seconds": certify, "passes": 1}
    return {**times, "primal": primal, "dual": 0.499, "relative_gap": gap}


def test_a_peer_is_measured_by_its_fastest_sufficient_setting():
    peer = Contestant("peer", "", MAIN, 1, {"hinge": {"slow": Grid((1, 2), 1), "fast": Grid((1, 2, 3), 1)}})
    found = measurement(
        {
            ("peer", "slow", 1): (0.5, 1.1),
            ("peer", "slow", 2): (0.9, 1.0),
            ("peer", "fast", 1): (0.2, 1.2),
            ("peer", "fast", 2): (0.3, 1.01),
            ("peer", "fast", 3): (0.4, 1.0),
        }
    )
    found.explore(peer)
    loose, tight = (found.cell(peer, target) for target in (0.05, 0.01))
    assert (loose["arm"], loose["value"], loose["seconds"]) == ("fast", 2, 0.3)
    assert (tight["arm"], tight["value"], tight["seconds"]) == ("fast", 3, 0.4)
    assert tight["train_seconds"] == pytest.approx(0.3)
    assert found.cell(peer, 0.05)["suboptimality"] == pytest.approx(0.0201)


def test_ours_count_by_their_certificate_and_in_hindsight():
    ours_ = Contestant("auto", "", MAIN, 1, solver="auto")
    trace = [record(0.2, 0.51), record(0.4, 0.502), record(0.6, 0.5001, certify=0.15)]
    found = measurement({("auto", "auto", 0.01): (0.7, 1.0, *trace)}, targets=(0.01,))
    found.explore(ours_)
    cell = found.cell(ours_, 0.01)
    assert cell["seconds"] == 0.7
    assert cell["hindsight_seconds"] == pytest.approx(0.5), "0.4 on its own clock, 0.1 before its first step"
    assert cell["certify_share"] == pytest.approx(0.15 / 0.7)


def test_slow_and_failing_peers_are_reported_and_do_not_stop_the_rest():
    quick_ = Contestant("quick", "", MAIN, 1, {"hinge": {"a": Grid((1,), 1)}})
    slow = Contestant("slow", "", MAIN, 1, {"hinge": {"a": Grid((1, 2), 1)}})
    broken = Contestant("broken", "", MAIN, 1, {"hinge": {"a": Grid((1, 2), 1)}})
    found = measurement(
        {
            ("quick", "a", 1): (0.5, 1.0),
            ("slow", "a", 1): WorkerError("timeout", "no answer"),
            ("broken", "a", 1): WorkerError("ValueError", "no"),
        }
    )
    for item in (quick_, slow, broken):
        found.explore(item)
    assert found.pool.limits == [10.0, 3.0, 3.0], "six times the fastest, once it is known"
    record_ = found.record([quick_, slow, broken], {"hopeless": "no target was met"})
    statuses = {cell["solver"]: cell["status"] for cell in record_["cells"]}
    assert statuses == {"quick": "ok", "slow": "timeout", "broken": "error", "hopeless": "skipped"}


def test_an_objective_below_the_proven_bound_is_an_alarm():
    peer = Contestant("peer", "", MAIN, 1, {"hinge": {"a": Grid((1,), 1)}})
    found = measurement({("peer", "a", 1): (0.5, 1.0)})
    found.dual = 0.51
    found.explore(peer)
    assert len(found.broken) == 1
    assert "peer" in found.broken[0]


def test_where_the_optimum_is_unknown_its_lower_bound_stands_in_for_it():
    peer = Contestant("peer", "", MAIN, 1, {"hinge": {"a": Grid((1, 2), 1)}})
    script = {("peer", "a", 1): (0.5, 1.01), ("peer", "a", 2): (0.6, 1.0)}
    found = measurement(script, targets=(0.05, 0.01))
    found.reference, found.dual = {**OPTIMUM, "primal": 0.515}, 0.495
    found.explore(peer)
    assert found.cell(peer, 0.05)["value"] == 1, "0.51 is within 5% of 0.495, whatever the optimum is"
    assert found.cell(peer, 0.01)["status"] == "unknown", "0.5 would be its own proof"

    found = measurement(script, targets=(0.05, 0.01))
    found.reference, found.dual = {**OPTIMUM, "primal": 0.52}, 0.4
    found.explore(peer)
    assert found.runs == []
    assert found.cell(peer, 0.05)["status"] == "unknown"


STUB = """
import os, time
import numpy as np
from benchmarks.adapters import Fitted

def version(): return "stub 1"
def prepare(X, y): return X, y
def train(data, loss, C, arm, value, threads, limit):
    if data[0].shape[0] < 100:  # warming up
        return np.zeros(data[0].shape[1])
    if arm == "sleep": time.sleep(60)
    if arm == "end": os._exit(3)
    if arm == "raise": raise ValueError("not today")
    print("a library may print what it likes")
    big = np.ones(20_000_000 if arm == "big" else 1)
    return np.full(data[0].shape[1], big[0] * threads)
def fitted(model): return Fitted(model, 0.0, 7.0)
"""


@pytest.mark.slow
def test_workers_that_hang_end_or_raise_are_replaced(tmp_path, monkeypatch):
    (tmp_path / "stub_adapter.py").write_text(STUB)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    item = sets.DataSet("stub", "tune", "quick", partial(generated.dense_tall, 200, 3))
    info = sets.cached(item, None, tmp_path)
    contestant = Contestant("stub", "stub_adapter", MAIN, 2)

    def attempt(arm, limit=30.0):
        return pool.run(contestant, info, "hinge", 1.0, arm, 1.0, limit)

    with Pool({MAIN: Environment(MAIN, Path(sys.executable))}, tmp_path) as pool:
        for arm, kind, limit in (
            ("sleep", "timeout", 0.3),
            ("end", "crashed", 30.0),
            ("raise", "ValueError", 30.0),
        ):
            with pytest.raises(WorkerError) as error:
                attempt(arm, limit)
            assert error.value.kind == kind
        answer, w = attempt("fine")
        assert w.tolist() == [2.0, 2.0, 2.0]
        assert answer["passes"] == 7.0
        assert answer["memory"] < 20e6
        assert attempt("big")[0]["memory"] > 100e6, "160 MB were in use for a moment"
        process = pool.workers[MAIN, "stub_adapter", 2].process
    assert process.poll() is not None, "the worker outlived its pool"


def test_a_peer_that_cannot_be_installed_gets_a_reason(tmp_path, monkeypatch):
    (tmp_path / "peer.txt").write_text("peer==1\n")
    calls = []

    def call(command):
        calls.append(command)
        if "venv" in command:
            (tmp_path / "home" / "peer" / "bin").mkdir(parents=True)
            (tmp_path / "home" / "peer" / "bin" / "python").touch()
        return problem if "pip" in command else ""

    monkeypatch.setattr(environments, "_call", call)
    ensure = partial(environments.ensure, "peer", home=tmp_path / "home", peers=tmp_path)
    problem = "ERROR: No matching distribution found for peer==1"
    found = ensure()
    assert found.python is None
    assert problem in found.reason
    assert not (tmp_path / "home" / "peer").exists()

    problem = ""
    assert ensure().python == tmp_path / "home" / "peer" / "bin" / "python"
    made = len(calls)
    assert ensure().python is not None
    assert len(calls) == made, "an environment that is there was made again"
    (tmp_path / "peer.txt").write_text("peer==2\n")
    assert ensure(create=False).python is None
    assert ensure().python is not None
    assert len(calls) > made
    assert environments.ensure("nobody", home=tmp_path, peers=tmp_path).python is None


def test_requirement_files_pin_versions_and_name_no_address():
    wanted = {item.environment for item in peers([1, 2])} | {environments.PLOTS}
    files = {path.stem: path.read_text() for path in environments.PEERS.glob("*.txt")}
    assert wanted - {MAIN} == set(files)
    for text in files.values():
        for line in text.split():
            name, equals, version = line.partition("==")
            assert equals, line
            assert name.replace("-", "").isalnum(), line
            assert version[0].isdigit(), line


def test_every_solver_of_the_registry_takes_part():
    from dualgap.solvers import SOLVERS

    names = [item.name for item in ours([1, 2])]
    assert names[:2] == ["auto", "auto@2"]
    assert set(SOLVERS) <= set(names)
    assert {item.name for item in chosen(peers([1, 2]), ["liblinear*", "SGD"])} == {
        "liblinear",
        "liblinear@2",
        "SGD",
    }
    with pytest.raises(ValueError, match="snapml"):
        chosen(peers([1]), ["nobody"])


def test_the_hopeless_and_the_too_large_are_not_asked():
    by_name = {item.name: item for item in [*ours([1]), *peers([1])]}
    present = [by_name[name] for name in ("auto", "dcd", "SGD", "skglm", "liblinear")]
    info = sets.Info("a", "tune", "", "", "csr", "float64", 50_000, 10, 500_000, 1)
    before = {"set": "a", "loss": "hinge", "C": 1.0, "cells": [{"solver": "SGD", "status": "timeout"}]}
    results = {
        "problems": [before, {**before, "set": "b", "cells": [{"solver": "auto", "status": "timeout"}]}]
    }

    def names(options, *what):
        asked, skipped = taking_part(parse(options), present, results, info, what)
        return [item.name for item in asked], set(skipped)

    assert names([], "a", "hinge", 1.0) == (["auto", "dcd", "SGD", "liblinear"], {"skglm"})
    assert names([], "a", "hinge", 10.0) == (["auto", "liblinear"], {"SGD", "skglm"})
    assert names(["--full"], "a", "hinge", 10.0) == (["auto", "dcd", "skglm", "liblinear"], {"SGD"})
    assert names([], "a", "squared", 1.0) == (["auto", "dcd", "liblinear"], set())


def results_of(cells, half="report"):
    solvers = {"auto": True, "auto@2": True, "peer": False, "peer@2": False}
    problem = {"set": "a", "loss": "hinge", "C": 1.0, "reference": {**OPTIMUM, "seconds": 1.0}, "broken": []}
    problem |= {"optimum": 0.5, "dual": 0.5}
    return {
        "options": {
            "targets": [0.01],
            "time_limit": 10.0,
            "repeats": 3,
            "repeat_seconds": 2.0,
            "give_up": None,
        },
        "machine": machine.describe(),
        "solvers": {
            name: {
                "ours": mine,
                "threads": int(name[-1]) if "@" in name else 1,
                "version": "1",
                "problem": "",
            }
            for name, mine in solvers.items()
        },
        "sets": {
            "a": {"n": 1, "d": 1, "entries": 1, "bytes": 8, "layout": "csr", "dtype": "float64", "half": half}
        },
        "missing_sets": {"b": "no b.svm in the data folder"},
        "problems": [
            {**problem, "cells": [{"target": 0.01, "status": "ok", "count": 1, **cell} for cell in cells]}
        ],
        "finished": True,
    }


def cell(solver, seconds, **more):
    mine = {"hindsight_seconds": seconds / 2, "certify_share": 0.1} if solver.startswith("auto") else {}
    return {
        "solver": solver,
        "seconds": seconds,
        "train_seconds": seconds / 2,
        "slowest": seconds,
        **mine,
        **more,
    }


def test_lost_cells_are_marked_and_peers_compared_at_no_more_threads():
    results = results_of([cell("auto", 1.0), cell("auto@2", 0.8), cell("peer", 2.0), cell("peer@2", 0.4)])
    cells = cells_at(results["problems"][0], 0.01)
    assert advantage(results, cells, "auto") == 2.0, "a peer with two threads is no match for one"
    assert advantage(results, cells, "auto@2") == 0.5
    page = tables.report(results)
    assert_tables_are_rectangular(page)
    assert "| a | 1.0 (2.5x) | 0.80 (2.0x) ✗ | 0.50 | 2.0 (5.0x) | **0.40** |" in page
    assert "Lost cells: 1 of 1" in page
    assert "2.00 over those they are reported on" in page
    assert "set b: left out, no b.svm" in page


def test_a_target_that_only_a_peer_met_is_lost_and_one_that_nobody_else_met_is_won():
    missing = {"status": "timeout", "limit": 4.5}
    lost = results_of([cell("auto", 1.0, **missing), cell("peer", 2.0)])
    assert advantage(lost, cells_at(lost["problems"][0], 0.01), "auto") == 0.0
    assert "| a, hinge | not reached ✗ |" in tables.report(lost)
    assert "| a | > 4.5 ✗ |" in tables.report(lost)
    won = results_of([cell("auto", 1.0), cell("peer", 2.0, **missing)])
    assert math.isinf(advantage(won, cells_at(won["problems"][0], 0.01), "auto"))
    assert "| a, hinge | alone |" in tables.report(won)


def test_generated_sets_have_the_properties_they_are_made_for():
    X, y = generated.text(2_000, 500, 20, topics=10, ordered=True)
    again, _ = generated.text(2_000, 500, 20, topics=10, ordered=True)
    assert (again != X).nnz == 0
    counts = np.sort(np.bincount(X.indices, minlength=500))[::-1]
    assert counts[:25].sum() > 4 * counts[250:275].sum(), "frequencies do not fall as Zipf's do"
    assert np.argsort(-np.bincount(X.indices, minlength=500))[:5].tolist() != list(range(5))
    alike = np.asarray((X[:-1].multiply(X[1:])).sum(axis=1)).mean()
    shuffled = X[np.random.default_rng(0).permutation(2_000)]
    assert alike > 1.2 * np.asarray((shuffled[:-1].multiply(shuffled[1:])).sum(axis=1)).mean()
    assert np.allclose(np.asarray(X.multiply(X).sum(axis=1)), 1.0)

    X, y = generated.separable(300, 20, 5)
    outcome = fit(X, y, C=1e3, tol=1e-3)
    assert (y * (X @ outcome.coef) > 0).all()
    X, y = generated.duplicated(30, 2_000, 40, 6)
    assert np.unique(X.toarray(), axis=0).shape[0] <= 30
    assert generated.dense_wide(20, 300)[0].shape == (20, 300)


def test_both_halves_hold_sparse_and_dense_sets_and_no_set_is_in_neither():
    default = [item for item in sets.SETS.values() if item.tier == "default"]
    for half in ("tune", "report"):
        mine = [item for item in default if item.half == half]
        assert len(mine) >= 0.4 * len(default)
        assert any(item.file for item in mine)
        assert any(item.file is None for item in mine)
    assert {item.half for item in sets.SETS.values()} == {"tune", "report"}


def test_parsed_files_are_cached_until_the_file_changes(tmp_path):
    file = tmp_path / "tiny.svm"
    file.write_text("8 1:255 3:51\n3 2:102\n")
    item = sets.DataSet("tiny", "tune", "quick", sets._file(4, scale=1 / 255, positive=8), "tiny.svm")
    assert not item.available(None)
    first = sets.cached(item, tmp_path, tmp_path / "cache")
    X, y = sets.load(first.path)
    assert X.toarray().tolist() == [[1.0, 0.0, 0.2, 0.0], [0.0, 0.4, 0.0, 0.0]]
    assert y.tolist() == [1.0, -1.0]
    assert X.indices.dtype == np.int32
    assert (first.n, first.d, first.entries, first.layout) == (2, 4, 3, "csr")
    written = Path(first.path).stat().st_mtime_ns
    assert sets.cached(item, tmp_path, tmp_path / "cache") == first
    assert Path(first.path).stat().st_mtime_ns == written
    file.write_text("8 1:255 3:51\n3 2:51\n")
    os.utime(file, ns=(0, 0))
    assert sets.cached(item, tmp_path, tmp_path / "cache").fingerprint != first.fingerprint


@pytest.mark.slow
def test_micro_measures_its_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "KINDS", {"dense float64": memory.KINDS["dense float64"]})
    parts = "rows,memory,certificates"
    assert micro.main(["--quick", "--parts", parts, "--solvers", "dcd", "--out", str(tmp_path)]) == 0
    found = strictly((tmp_path / "micro.json").read_text())["parts"]
    assert list(found) == parts.split(",")
    assert all(row["relative gap"] <= row["gap asked"] for row in found["certificates"]["rows"])
    assert [row["rows"] for row in found["rows"]["rows"]] == [500, 2_000]
    assert [row["MB of X"] for row in found["memory"]["rows"]] == [1.6]
    assert_tables_are_rectangular((tmp_path / "MICRO.md").read_text())
    with pytest.raises(ValueError, match="first_fits"):
        micro.measure("quick", ["dcd"], ["nothing"])


@pytest.mark.parametrize("wrong", [["--sets", "a10a"], ["--losses", "absolute"], ["--quick", "--full"]])
def test_wrong_options_are_refused(wrong, capsys):
    with pytest.raises(SystemExit) as stop:
        parse(wrong)
    assert stop.value.code == 2
    assert capsys.readouterr().err


def test_goals_say_what_was_met_and_what_is_missing(tmp_path: Path) -> None:
    fast, slow = ("ours", 1.0), ("theirs", 3.0)
    assert goals.row("set", fast, slow, 1.5, least=True)["met"] == "yes"
    assert goals.row("set", slow, fast, 1.5, least=True)["met"] == "no"
    assert goals.row("set", slow, fast, 2.0)["met"] == "no"
    assert goals.row("set", fast, slow, 2.0)["ratio"] == pytest.approx(1 / 3)
    assert goals.row("set", ("ours", math.inf), slow, 1.0, least=True)["met"] == "no"
    (tmp_path / "empty").mkdir()
    assert goals.main(["dual_passes", "--data", str(tmp_path / "empty"), "--out", str(tmp_path)]) == 0
    assert "None of the sets is here" in (tmp_path / "GOALS.md").read_text()


@pytest.mark.slow
def test_files_are_measured_and_nothing_is_left_behind(tmp_path: Path) -> None:
    scratch, out = tmp_path / "scratch", tmp_path / "out"
    scratch.mkdir()
    assert files.main(["--quick", "--folder", str(scratch), "--out", str(out)]) == 0
    assert list(scratch.iterdir()) == []
    page = (out / "FILES.md").read_text()
    assert_tables_are_rectangular(page)
    for part in ("Goals", "Reading", "Writing", "Packed", "Converting", "Loading", "Notes"):
        assert f"## {part}\n" in page
    for words in (
        "load_svmlight_file",
        "| zst |",
        "| in memory, zstd |",
        "| budget 16 MB |",
        "| store, float32 |",
    ):
        assert words in page
    assert machine.describe()["date"] not in page
    goals_met = [line for line in page.splitlines() if line.endswith(("| yes |", "| no |"))]
    assert len(goals_met) == 6, "speed, memory and writing, for each of two files"


@pytest.mark.slow
def test_files_that_are_read_differently_are_noticed(tmp_path, monkeypatch):
    bench = files.Bench(tmp_path, 0.0003, quick=True)
    job = bench.job("read", "six.svm", threads=2)
    here, there = files.measured(job), files.apart(job)
    assert (here["bytes"], here["digest"]) == (there["bytes"], there["digest"])
    assert there["grown"] > 0

    def slightly_wrong(source):
        X, y = files.TASKS["read"](source, 1)()
        X.data[7] = np.nextafter(X.data[7], 1.0)
        return lambda: (X, y)

    monkeypatch.setitem(files.TASKS, "read_by_sklearn", slightly_wrong)
    with pytest.raises(RuntimeError, match="do not agree"):
        list(bench.reading())


def test_copies_of_a_mapped_store_are_counted(tmp_path):
    bench = files.Bench(tmp_path, 0.0003, quick=True)
    for name, compression in (("plain.arrow", None), ("packed.arrow", "zstd")):
        files.measured(bench.job("to_store", "six.svm", out=name, compression=compression))
    plain, packed = (
        files.measured(bench.job("store_mapped", f"{name}.arrow")) for name in ("plain", "packed")
    )
    assert plain["copied"] == 0
    assert packed["copied"] > 0
    assert plain["total"] == packed["total"]
