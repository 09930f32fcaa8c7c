"""The matrix of (solver, loss, rows, dtype, bias): what every combination must hold. A new solver joins by
one line.
"""

from __future__ import annotations

import itertools
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import dualgap
from dualgap.core.losses import LOSSES, make_loss
from dualgap.core.problem import Point
from dualgap.solvers import SOLVERS, can_have, can_train


class Promise(NamedTuple):
    """What a solver promises in the matrix."""

    tol: float  # it gets there...
    # ...within so many epochs for each loss (some 1.2 times what it takes at this seed)
    epochs: dict[str, float]
    keeps_w: bool  # w == w(beta) in its state at all times
    options: dict[str, Any]
    kinks: dict[str, float] | None = None  # by kind of bias, the tol for losses with kinks, if it is another


DCD_EPOCHS = {
    "hinge": 52,
    "smooth-hinge": 40,
    "squared-hinge": 56,
    "logistic": 20,
    "modified-huber": 56,
    "squared": 190,
    "huber": 180,
    "absolute": 210,
    "epsilon-insensitive": 730,
    "squared-epsilon-insensitive": 170,
}

SDCA_EPOCHS = {
    "hinge": 100,
    "smooth-hinge": 45,
    "squared-hinge": 80,
    "logistic": 20,
    "modified-huber": 80,
    "squared": 160,
    "huber": 150,
    "absolute": 960,
    "epsilon-insensitive": 3800,
    "squared-epsilon-insensitive": 150,
}
ASDCA_EPOCHS = {
    "hinge": 730,
    "smooth-hinge": 62,
    "squared-hinge": 84,
    "logistic": 34,
    "modified-huber": 84,
    "squared": 52,
    "huber": 124,
    "absolute": 1070,
    "epsilon-insensitive": 870,
    "squared-epsilon-insensitive": 56,
}
SGD_EPOCHS = {
    "hinge": 62,
    "smooth-hinge": 28,
    "squared-hinge": 34,
    "logistic": 10,
    "modified-huber": 34,
    "squared": 46,
    "huber": 84,
    "absolute": 138,
    "epsilon-insensitive": 100,
    "squared-epsilon-insensitive": 100,
}
ASGD_EPOCHS = {
    "hinge": 190,
    "smooth-hinge": 20,
    "squared-hinge": 34,
    "logistic": 12,
    "modified-huber": 34,
    "squared": 40,
    "huber": 52,
    "absolute": 166,
    "epsilon-insensitive": 200,
    "squared-epsilon-insensitive": 100,
}
IMPLICIT_EPOCHS = {
    "hinge": 90,
    "smooth-hinge": 34,
    "squared-hinge": 72,
    "logistic": 10,
    "modified-huber": 72,
    "squared": 128,
    "huber": 128,
    "absolute": 144,
    "epsilon-insensitive": 162,
    "squared-epsilon-insensitive": 112,
}
SGDQN_EPOCHS = {
    "hinge": 56,
    "smooth-hinge": 100,
    "squared-hinge": 2400,
    "logistic": 14,
    "modified-huber": 420,
    "squared": 90,
    "huber": 84,
    "absolute": 24,
    "epsilon-insensitive": 106,
    "squared-epsilon-insensitive": 340,
}
CACHED_EPOCHS = {
    "hinge": 144,
    "smooth-hinge": 89,
    "squared-hinge": 150,
    "logistic": 45,
    "modified-huber": 150,
    "squared": 432,
    "huber": 466,
    "absolute": 792,
    "epsilon-insensitive": 643,
    "squared-epsilon-insensitive": 427,
}
BLOCK_EPOCHS = {
    "hinge": 45,
    "smooth-hinge": 23,
    "squared-hinge": 39,
    "logistic": 12,
    "modified-huber": 39,
    "squared": 128,
    "huber": 128,
    "absolute": 233,
    "epsilon-insensitive": 261,
    "squared-epsilon-insensitive": 100,
}
SELECTIVE_EPOCHS = {
    "hinge": 78,
    "smooth-hinge": 39,
    "squared-hinge": 61,
    "logistic": 12,
    "modified-huber": 61,
    "squared": 167,
    "huber": 172,
    "absolute": 366,
    "epsilon-insensitive": 355,
    "squared-epsilon-insensitive": 133,
}
NEWTON_EPOCHS = {
    "hinge": 30,
    "absolute": 50,
    "epsilon-insensitive": 60,
    "smooth-hinge": 13,
    "squared-hinge": 13,
    "logistic": 13,
    "modified-huber": 13,
    "squared": 8,
    "huber": 13,
    "squared-epsilon-insensitive": 13,
}
KINKS = {"none": 1e-3, "augmented": 1e-3, "exact": 3e-2}
HANDFUL = {"cache": 5}  # rows in memory, of 60
BIAS = {"bias_step": 0.3}  # the papers' 0.01 is for thousands of rows

PROMISES = {
    "dcd": Promise(tol=1e-6, epochs=DCD_EPOCHS, keeps_w=True, options={}),
    "sdca": Promise(tol=1e-5, epochs=SDCA_EPOCHS, keeps_w=True, options={}),
    "asdca": Promise(tol=1e-5, epochs=ASDCA_EPOCHS, keeps_w=False, options={"C": 0.05}, kinks=KINKS),
    "mpu": Promise(tol=1e-5, epochs={"hinge": 56}, keeps_w=False, options={}),
    "newton": Promise(tol=1e-9, epochs=NEWTON_EPOCHS, keeps_w=False, options={}),
    "svmperf": Promise(tol=1e-4, epochs={"hinge": 40}, keeps_w=False, options={}),
    "decomposition": Promise(tol=1e-6, epochs={"hinge": 24}, keeps_w=False, options={}),
    "smo": Promise(tol=1e-6, epochs={"hinge": 240}, keeps_w=False, options={}),
    "ocas": Promise(tol=1e-5, epochs={"hinge": 34}, keeps_w=False, options={}),
    "pegasos": Promise(tol=2e-2, epochs={"hinge": 120}, keeps_w=False, options=BIAS),
    "sgd-r": Promise(tol=2e-2, epochs={"hinge": 120}, keeps_w=False, options=BIAS),
    "sgd-s": Promise(tol=2e-2, epochs={"hinge": 240}, keeps_w=False, options={}),
    "sgd-m": Promise(tol=2e-2, epochs={"hinge": 400}, keeps_w=False, options=BIAS),
    "implicit": Promise(tol=2e-2, epochs=IMPLICIT_EPOCHS, keeps_w=False, options=BIAS),
    "sgd": Promise(tol=2e-2, epochs=SGD_EPOCHS, keeps_w=False, options=BIAS),
    "svmsgd": Promise(tol=2e-2, epochs=SGD_EPOCHS, keeps_w=False, options=BIAS),
    "asgd": Promise(tol=2e-2, epochs=ASGD_EPOCHS, keeps_w=False, options=BIAS),
    "sgd-qn": Promise(tol=1.2e-1, epochs=SGDQN_EPOCHS, keeps_w=False, options={"bias_step": 0.1}),
    "norma": Promise(tol=2e-2, epochs={"hinge": 222}, keeps_w=False, options=BIAS),
    "cached-loops": Promise(tol=1e-3, epochs=CACHED_EPOCHS, keeps_w=True, options=HANDFUL),
    # the published 10 sweeps over a block of 5 rows see a tenth of the data an epoch: 10 times as many epochs
    "block": Promise(tol=1e-3, epochs=BLOCK_EPOCHS, keeps_w=True, options={**HANDFUL, "inner": 1}),
    "selective-block": Promise(
        tol=1e-3, epochs=SELECTIVE_EPOCHS, keeps_w=True, options={**HANDFUL, "inner": 1}
    ),
    "perceptron": Promise(tol=1e9, epochs={"hinge": 10}, keeps_w=False, options={}),  # it minimises nothing
}

FACTORS: dict[str, Sequence[Any]] = {
    "solver": list(PROMISES),
    "loss": list(LOSSES),
    "rows": ["csr", "dense"],
    "dtype": ["float32", "float64"],
    "bias": ["none", "augmented", "exact"],
}


class Case(NamedTuple):
    solver: str
    loss: str
    rows: str
    dtype: str
    bias: str

    @property
    def label(self) -> str:
        return "-".join(self)


def full_product() -> Iterator[Case]:
    """Every combination that makes sense: solvers with the losses and kinds of bias they are made for."""
    cases = (Case(*values) for values in itertools.product(*FACTORS.values()))
    return (c for c in cases if can_train(SOLVERS[c.solver], c.loss) and can_have(SOLVERS[c.solver], c.bias))


def all_pairs() -> list[Case]:
    """Few cases in which every pair of levels of two factors occurs; greedy, and the same list every time."""

    def pairs(case: Case) -> set[tuple[int, str, int, str]]:
        return {(i, case[i], j, case[j]) for i, j in itertools.combinations(range(len(case)), 2)}

    cases = list(full_product())
    missing = set().union(*map(pairs, cases))
    chosen = []
    while missing:
        best = max(cases, key=lambda case: len(pairs(case) & missing))
        chosen.append(best)
        missing -= pairs(best)
    return chosen


def data(case: Case, n: int, d: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows that cause trouble: an empty one, twins, a twin with the other label, a zero column, weights 0 and
    2.
    """
    rng = np.random.default_rng(7)
    dense = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    dense[0] = 0.0
    dense[1] = dense[2]
    dense[3] = dense[4]
    dense[:, -1] = 0.0
    target = dense @ rng.normal(size=d) + 0.3 + 0.5 * rng.normal(size=n)
    y = np.where(target > 0, 1.0, -1.0) if LOSSES[case.loss].task == "classification" else target
    y[1], y[2] = y[2], y[2]
    y[4] = -y[3]
    weight = rng.choice([0.0, 1.0, 1.0, 1.0, 2.0, 0.5], size=n)
    X = dense.astype(case.dtype)
    return (sp.csr_matrix(X) if case.rows == "csr" else X), y, weight


def check(case: Case, n: int = 60, d: int = 8, patience: float = 1.0, loosest: float = 0.0) -> None:
    """Gap met, weak duality at every record, w == w(beta), resume equals uninterrupted, few enough epochs."""
    promise = PROMISES[case.solver]
    X, y, weight = data(case, n, d)
    smooth = math.isfinite(make_loss(case.loss).smoothness)
    common: dict[str, Any] = {
        "loss": case.loss,
        "C": 1.0,
        "solver": case.solver,
        "bias": case.bias,
        "sample_weight": weight,
        "tol": max(promise.tol if promise.kinks is None or smooth else promise.kinks[case.bias], loosest),
        "seed": 3,
        **promise.options,
    }
    outcome = dualgap.fit(X, y, max_epochs=patience * promise.epochs[case.loss], record_every=4 * n, **common)
    assert outcome.converged, f"{outcome.reason} at {outcome.certificate}"
    for record in outcome.trace:
        primal, dual, gap, _, rounding, _ = record.certificate
        assert primal - dual >= -rounding
        assert gap >= primal - dual >= gap - 2 * rounding
        assert rounding <= 1e-9 * (1 + abs(primal))
    independent = outcome.problem.certify(Point(outcome.coef, outcome.intercept, outcome.dual))
    claimed = outcome.problem.in_form(outcome.certificate, "mean")
    assert abs(independent.gap - claimed.gap) <= 2 * claimed.rounding

    if promise.keeps_w:
        state = getattr(outcome.state.solver, "inner", outcome.state.solver)
        share = outcome.problem.source.weight * state.beta
        expected = np.asarray(X.T @ share).ravel() * outcome.problem.scale
        np.testing.assert_allclose(state.w, expected, rtol=1e-9, atol=1e-11 * (1 + np.abs(expected).max()))

    half, whole = 3 * n + 7, 7 * n + 1
    long = dualgap.fit(X, y, max_steps=whole, max_epochs=None, **{**common, "tol": 0.0})
    first = dualgap.fit(X, y, max_steps=half, max_epochs=None, **{**common, "tol": 0.0})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.npz"
        dualgap.save_state(path, first)
        second = dualgap.fit(
            X, y, max_steps=whole, max_epochs=None, warm=dualgap.load_state(path), **{**common, "tol": 0.0}
        )
    assert_same(long.state, second.state)
    assert np.array_equal(long.coef, second.coef)
    assert long.certificate == second.certificate


def assert_same(left: Any, right: Any, where: str = "state") -> None:
    """Equal bit for bit, field by field."""
    if hasattr(left, "_fields"):
        for name in left._fields:
            assert_same(getattr(left, name), getattr(right, name), f"{where}.{name}")
    elif isinstance(left, np.ndarray):
        assert left.tobytes() == right.tobytes(), where
    else:
        assert left == right or (left != left and right != right), f"{where}: {left!r} != {right!r}"


# under NUMBA_DISABLE_JIT=1: a part of the full product, as plain Python, on tiny data
if __name__ == "__main__":
    import dualgap.runtime.jit

    assert not dualgap.runtime.jit.compiled, "set NUMBA_DISABLE_JIT=1"
    part, parts = map(int, sys.argv[1:])
    count = 0
    for case in itertools.islice(full_product(), part, None, parts):
        try:
            # the ceilings are those of the compiled runs, and so few rows make for nearly degenerate
            # problems, on which the primal solvers' small steps of a free bias take for ever
            slow = case.bias == "exact" and PROMISES[case.solver].tol > 1e-3
            check(case, n=14, d=4, patience=10.0, loosest=5.0 if slow else 1e-5)
        except AssertionError as error:
            raise SystemExit(f"{case.label}: {error}") from error
        count += 1
    print(f"{count} combinations hold")
