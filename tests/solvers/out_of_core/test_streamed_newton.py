"""Second order and joint problems from disk: the optimum, the certificate, resumption, the memory budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from torture import joint as exact

import dualgap
from dualgap.core.joint.losses import Multinomial
from dualgap.core.joint.problem import JointProblem
from dualgap.core.losses import make_loss
from dualgap.core.problem import Point, Problem
from dualgap.data.chunks import FromMemory, OnDisk
from dualgap.data.dataset import DataSpec, open_data
from dualgap.data.sources import view
from dualgap.files import write_store
from dualgap.runtime.errors import InputError
from dualgap.solvers.out_of_core.joint_block import JointBlock
from dualgap.solvers.out_of_core.local_steps import Place, Strengths, local_minimum
from dualgap.solvers.out_of_core.sample import Gathering
from dualgap.solvers.out_of_core.streamed_newton import LOSSES, StreamedNewton
from support.feeds import readers, small_batches
from support.states import assert_same

N, D, K = 500, 8, 3
SINGLE = [loss for loss in LOSSES if loss != "multinomial"]
JOINT = [
    ("streamed-newton", "multinomial"),
    ("joint-block", "multinomial"),
    ("joint-block", "crammer-singer"),
]
OPTIONS: dict[str, dict[str, Any]] = {"streamed-newton": {"sample": 150}, "joint-block": {"cache": 120}}


@pytest.fixture(name="rows", scope="module")
def rows_fixture() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows in float16 of classes that overlap, with weights of which some are 0."""
    rng = np.random.default_rng(5)
    y = np.append(np.arange(K), rng.integers(0, K, N - K))
    X = (0.7 * rng.normal(size=(K, D))[y] + rng.normal(size=(N, D))).astype(np.float16)
    return X, y, rng.choice([0.0, 1.0, 1.0, 2.0, 0.5], size=N)


@pytest.fixture(name="files")
def files_fixture(rows: Any, tmp_path: Path) -> dict[str, Any]:
    """The arguments of ``fit`` for the same rows in files, to stay on disk."""
    for name, array in zip("Xyc", rows, strict=True):
        np.save(tmp_path / f"{name}.npy", array)
    np.save(tmp_path / "two.npy", rows[1] == 1)
    paths: dict[str, Any] = {"X": tmp_path / "X.npy", "y": tmp_path / "y.npy"}
    return {**paths, "sample_weight": tmp_path / "c.npy", "in_memory": False, "C": 0.05, "tol": 1e-4}


def resumable(outcome: Any) -> Any:
    """A run but for the values of the best point, which a resumed run adds up in the order of the rows."""
    return outcome.run._replace(value=None)


@pytest.mark.parametrize("bias", ["none", "augmented"])
@pytest.mark.parametrize("loss", SINGLE)
def test_one_score_a_row(loss: str, bias: str, rows: Any, files: dict[str, Any]) -> None:
    """The optimum of the rows in memory, in few passes, with a certificate that holds for these."""
    X, y, weight = rows
    task = {"task": "classification"}
    files["y"] = files["y"].with_name("two.npy")
    found = dualgap.fit(loss=loss, bias=bias, solver="streamed-newton", sample=150, **task, **files)
    assert found.converged
    # so small a sample holds few rows where the smooth hinge is curved
    assert found.trace[-1].measures["passes"] <= (40 if loss == "smooth-hinge" else 12)
    peer = dualgap.fit(X, y == 1, loss=loss, bias=bias, sample_weight=weight, C=0.05, tol=1e-8, **task)
    assert peer.certificate.dual - peer.certificate.rounding <= found.certificate.primal
    assert found.certificate.primal <= (1.0 + 1e-4) * peer.certificate.primal
    again = peer.problem.in_form(peer.problem.certify(found.point), "J")
    assert again.gap == pytest.approx(found.certificate.gap, abs=2 * again.rounding + 1e-12)
    assert readers() == []


@pytest.mark.parametrize("bias", ["none", "augmented"])
@pytest.mark.parametrize(("solver", "loss"), JOINT)
def test_all_classes_at_once(solver: str, loss: str, bias: str, rows: Any, files: dict[str, Any]) -> None:
    X, y, weight = rows
    tol = 1e-3 if loss == "crammer-singer" else 1e-4
    found = dualgap.fit(loss=loss, bias=bias, solver=solver, **OPTIONS[solver], **{**files, "tol": tol})
    assert found.converged
    assert (found.coef.shape, found.intercept.shape, found.dual.shape) == ((K, D), (K,), (N, K))
    peer = dualgap.fit(X, y, loss=loss, bias=bias, sample_weight=weight, C=0.05, tol=1e-5, max_epochs=5000)
    assert peer.certificate.dual - peer.certificate.rounding <= found.certificate.primal
    assert found.certificate.primal <= (1.0 + tol) * peer.certificate.primal
    again = peer.problem.in_form(peer.problem.certify(found.point), "J")
    assert again.gap == pytest.approx(found.certificate.gap, abs=2 * again.rounding + 1e-12)
    for record in found.trace:
        assert record.certificate.primal - record.certificate.dual >= -record.certificate.rounding
    assert found.model.verify(files["X"], files["y"], sample_weight=files["sample_weight"]).verdict == "true"


@pytest.mark.parametrize(("solver", "loss"), JOINT)
def test_certificates_from_disk_hold_in_exact_arithmetic(
    solver: str, loss: str, rows: Any, tmp_path: Path
) -> None:
    """The independent checker, which shares no code with the library, on the duals that a pass has made."""
    X, y = rows[0][:40].astype(np.float32), rows[1][:40]
    np.save(tmp_path / "X.npy", X)
    found = dualgap.fit(
        tmp_path / "X.npy", y, loss=loss, solver=solver, bias="augmented", C=0.1, in_memory=False, tol=1e-2
    )
    certificate, point = found.certificate, found.point
    claim = exact.JointClaim(
        rows=[[(j, float(row[j])) for j in range(D)] for row in X],
        y=y.tolist(),
        weight=[1.0] * 40,
        loss=loss,
        parameters={},
        form="J",
        strength=0.1,
        bias="augmented",
        rho=1.0,
        w=point.w.tolist(),
        b=point.b.tolist(),
        beta=point.beta.tolist(),
        classes=K,
        primal=certificate.primal,
        dual=certificate.dual,
        gap=certificate.gap,
        relative_gap=certificate.relative_gap,
        rounding=certificate.rounding,
    )
    assert exact.faults(claim) == []


@pytest.mark.parametrize(("solver", "loss"), [*JOINT, ("streamed-newton", "logistic")])
def test_a_run_is_resumed_bit_for_bit(solver: str, loss: str, files: dict[str, Any], tmp_path: Path) -> None:
    """Wherever it is cut: within a pass, at the end of one, and before a step in memory."""
    if loss == "logistic":
        files["y"] = files["y"].with_name("two.npy")
    common = {**files, "loss": loss, "solver": solver, "bias": "augmented", "tol": 0.0, **OPTIONS[solver]}
    common["max_epochs"] = None
    long = dualgap.fit(max_visits=9000, **common)
    for stop in (1, 260, *(record.visits for record in long.trace[:3])):
        dualgap.save_state(tmp_path / "run.npz", dualgap.fit(max_visits=stop, **common))
        rest = dualgap.fit(max_visits=9000, resume=dualgap.load_state(tmp_path / "run.npz"), **common)
        assert_same(resumable(long), resumable(rest))
        assert np.array_equal(long.coef, rest.coef)


def test_threads_make_no_difference(files: dict[str, Any]) -> None:
    one, two = (dualgap.fit(loss="multinomial", threads=count, **files) for count in (1, 2))
    assert (one.problem.source.threads, two.problem.source.threads) == (1, 2)
    assert one.coef.tobytes() == two.coef.tobytes()
    assert one.certificate == two.certificate


def on_disk(rows: Any, loss: str, source: type[OnDisk] = OnDisk) -> Any:
    X, y, weight = rows
    joint = loss in ("multinomial", "crammer-singer")
    whole = view(X, y if joint else np.where(y == 1, 1.0, -1.0), weight)
    chunks = source(FromMemory(whole, rows=61), memory_budget=None)
    if joint:
        return JointProblem(chunks, make_loss(loss), 1e-2, classes=K)  # type: ignore[arg-type]
    return Problem(chunks, make_loss(loss), 1e-2)


@pytest.mark.parametrize("solver", [StreamedNewton(sample=100), JointBlock(cache=130, inner=2)])
def test_a_step_by_itself_is_the_step_of_an_opened_run(solver: Any, rows: Any) -> None:
    here = on_disk(rows, "multinomial")
    alone, opened = solver.start(here, None), solver.start(here, None)
    evaluations = [0, 0]
    with solver.opened(here, opened) as steps:
        for _ in range(24):
            alone, first = solver.step(here, alone, 37, None)
            opened, second = steps.step(here, opened, 37, None)
            assert_same(alone, opened)
            assert first.measures == second.measures
            evaluations[0] += first.evaluated is not None
            evaluations[1] += second.evaluated is not None
    assert evaluations[0] == evaluations[1] > 0
    assert readers() == []


class Failing(OnDisk):
    """A source whose fourth chunk cannot be read."""

    def load(self, k: int) -> Any:
        if k == 3:
            raise OSError("no such sector")
        return super().load(k)


@pytest.mark.parametrize("solver", [StreamedNewton(sample=100), JointBlock(cache=130)])
def test_a_reader_that_fails_is_a_status_and_no_exception(solver: Any, rows: Any) -> None:
    here = on_disk(rows, "multinomial", Failing)
    state, status = solver.start(here, None), None
    with solver.opened(here, state) as steps:
        while status is None or status.ended is None:
            state, status = steps.step(here, state, 1000, None)
    assert status.ended.name == "broken"
    assert "cannot be read on: OSError('no such sector')" in status.ended.message
    assert readers() == []


@pytest.mark.parametrize("loss", ["multinomial", "logistic"])
def test_a_step_in_memory_minimises_its_model_of_the_objective(loss: str, rows: Any) -> None:
    """Where the sample is all rows, and mu = 0, the step from any place is to the optimum; mu shortens it."""
    X, y, weight = rows
    here = on_disk(rows, loss)
    gathering = Gathering(here, N, 0)
    for part in here.source.parts():
        gathering.add(part)
    sample, several = gathering.sample(), here.scores_per_row
    classes = several[0] if several else 1
    w, b = 0.1 * np.random.default_rng(1).normal(size=(D, *several)), np.zeros(several)
    passing = here.streaming_slopes(w, b if several else 0.0)
    for part in here.source.parts():
        passing.add(part)
    found = passing.evaluation()
    again = here.evaluate(passing.point)
    assert (found.primal, found.dual) == (again.primal, again.dual)
    gradient = Place((here.lam * (w - found.w_of_dual)).reshape(D, classes), np.zeros(classes))
    place = Place(w.reshape(D, classes), np.zeros(classes))
    best, _ = local_minimum(sample, place, gradient, Strengths(here.lam, np.inf, 0.0))
    shorter, _ = local_minimum(sample, place, gradient, Strengths(here.lam, np.inf, 10.0))
    there = here.evaluate(Point(best.w.reshape(w.shape), b if several else 0.0, None)).primal
    optimum = dualgap.fit(
        X, y if several else y == 1, sample_weight=weight, loss=loss, lam=1e-2, tol=1e-9
    ).certificate.primal
    assert optimum <= there + 1e-12
    assert there - optimum <= 0.02 * (found.primal - optimum)
    assert 0.0 < np.linalg.norm(shorter.w - place.w) < 0.2 * np.linalg.norm(best.w - place.w)


def test_a_point_that_is_worse_makes_the_next_step_shorter(rows: Any) -> None:
    """A sample of a single class knows nothing of the others: mu grows until steps are short enough."""
    X, y, _ = rows
    order = np.argsort(y, kind="stable")
    here = on_disk((X[order], y[order], np.ones(N)), "multinomial")
    solver = StreamedNewton(sample=3)
    state = solver.start(here, None)
    values, strengths = [], []
    with solver.opened(here, state) as steps:
        while state.pass_number < 40:
            state, status = steps.step(here, state, 10**6, None)
            if status.evaluated is not None:
                values.append(state.anchor.value)
                strengths.append(state.mu)
    assert max(strengths) > 0.0
    assert values == sorted(values, reverse=True)
    best = dualgap.fit(X, y, loss="multinomial", lam=1e-2, tol=1e-6).certificate.primal
    assert values[-1] - best < 0.1 * (values[0] - best)


def test_sparse_rows_in_a_store(rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_batches(monkeypatch, 5000)
    X, y, weight = rows
    X = np.where(np.abs(X) < 0.7, 0.0, X).astype(np.float32)
    write_store(tmp_path / "rows.arrow", sp.csr_array(X), y, weight)
    for loss, solver, tol in (("multinomial", "auto", 1e-3), ("multinomial", "streamed-newton", 1e-3)):
        found = dualgap.fit(
            tmp_path / "rows.arrow", loss=loss, solver=solver, in_memory=False, C=0.05, tol=tol
        )
        assert found.converged
        assert found.solver.name == ("joint-block" if solver == "auto" else solver)
        peer = dualgap.fit(X, y, sample_weight=weight, loss=loss, C=0.05, tol=1e-6)
        assert found.certificate.primal == pytest.approx(peer.certificate.primal, rel=tol)


def test_auto_takes_it_where_it_suits(rows: Any, files: dict[str, Any], tmp_path: Path) -> None:
    two = {**files, "y": files["y"].with_name("two.npy"), "tol": 1e-2}
    assert dualgap.fit(loss="logistic", **two).solver.name == "streamed-newton"
    assert dualgap.fit(loss="hinge", **two).solver.name == "cached-loops"
    assert dualgap.fit(loss="logistic", lockstep=True, solver="cached-loops", **two).converged
    chosen = dualgap.fit(loss="multinomial", **{**files, "tol": 1e-2})
    assert chosen.solver.name == "streamed-newton"
    assert "some of them tell the curvature" in chosen.auto_reason
    many = dualgap.one_vs_rest(loss="logistic", **{**files, "tol": 1e-2})
    assert {outcome.solver.name for outcome in many.outcomes} == {"streamed-newton"}
    assert many.converged


def test_limits_and_budgets(files: dict[str, Any]) -> None:
    few = {**files, "max_epochs": None, "tol": 0.0, "loss": "multinomial"}
    for solver in ("streamed-newton", "joint-block"):
        found = dualgap.fit(solver=solver, max_passes=2, **few)
        assert found.reason.name == "max_passes"
        with pytest.raises(
            InputError, match=r"memory_budget=900 is too little for these data: give at least"
        ):
            dualgap.fit(solver=solver, memory_budget=900, **few)
    with pytest.raises(InputError, match="bias='exact' needs all rows in memory"):
        dualgap.fit(solver="joint-block", bias="exact", **few)


def test_the_duals_of_all_classes_count_as_memory(files: dict[str, Any]) -> None:
    spec = DataSpec(files["X"], files["y"], memory_budget=100_000)
    assert open_data(spec, "one-vs-rest").source.in_memory
    assert not open_data(spec, "classes").source.in_memory


def test_budgets_decide_how_many_rows_stay(rows: Any) -> None:
    here = on_disk(rows, "multinomial")
    assert isinstance(here.loss, Multinomial)
    sizes = []
    for budget in (50_000, 70_000, 110_000):
        here.source.memory_budget = budget
        sizes.append((StreamedNewton(sample=N).room(here), len(JointBlock().blocks(here))))
    rooms, blocks = zip(*sizes, strict=True)
    assert 2 <= rooms[0] < rooms[1] < rooms[2] <= N
    assert blocks[0] >= blocks[1] >= blocks[2] >= 1
