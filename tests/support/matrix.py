"""The matrix of (solver, loss, rows, dtype, bias): what every combination must hold.

A new solver joins by one line in PROMISES, and ``make ceilings``.
"""

from __future__ import annotations

import itertools
import math
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import dualgap
from dualgap.core.losses import JOINT, NAMES, make_loss
from dualgap.runtime.errors import TrivialModelWarning
from dualgap.solvers import SOLVERS, can_have, can_train
from support.ceilings import ceiling
from support.states import assert_same


class Promise(NamedTuple):
    """What a solver promises in the matrix."""

    tol: float  # it gets there within the epochs of ceilings.json
    keeps_w: bool = False  # w == w(beta) in its state at all times
    options: Mapping[str, Any] = MappingProxyType({})
    kinks: dict[str, float] | None = None  # by kind of bias, the tol for losses with kinks, if it is another


ROWS, COLUMNS = 60, 8
KINKS = {"none": 1e-3, "augmented": 1e-3, "exact": 3e-2}
HANDFUL = {"cache": 5}  # rows in memory, of 60
BIAS = {"bias_step": 0.3}  # the papers' 0.01 is for thousands of rows

PROMISES = {
    "dcd": Promise(tol=1e-6, keeps_w=True),
    "sdca": Promise(tol=1e-5, keeps_w=True),
    "asdca": Promise(tol=1e-5, options={"C": 0.05}, kinks=KINKS),
    "accelerated-sdca": Promise(tol=1e-5, kinks={"none": 1e-3, "augmented": 1e-3}),
    "mpu": Promise(tol=1e-5),
    "newton": Promise(tol=1e-9),
    "interior-point": Promise(tol=1e-7),
    "svmperf": Promise(tol=1e-4),
    "decomposition": Promise(tol=1e-6),
    "smo": Promise(tol=1e-6),
    "ocas": Promise(tol=1e-5),
    "pegasos": Promise(tol=2e-2, options=BIAS),
    "sgd-r": Promise(tol=2e-2, options=BIAS),
    "sgd-s": Promise(tol=2e-2),
    "sgd-m": Promise(tol=2e-2, options=BIAS),
    "implicit": Promise(tol=2e-2, options=BIAS),
    "sgd": Promise(tol=2e-2, options=BIAS),
    "svmsgd": Promise(tol=2e-2, options=BIAS),
    "asgd": Promise(tol=2e-2, options=BIAS),
    "sgd-qn": Promise(tol=1.2e-1, options={"bias_step": 0.1}),
    "norma": Promise(tol=2e-2, options=BIAS),
    "cached-loops": Promise(tol=1e-3, keeps_w=True, options=HANDFUL),
    # the published 10 sweeps over a block of 5 rows see a tenth of the data an epoch: 10 times as many epochs
    "block": Promise(tol=1e-3, keeps_w=True, options={**HANDFUL, "inner": 1}),
    "selective-block": Promise(tol=1e-3, keeps_w=True, options={**HANDFUL, "inner": 1}),
    "perceptron": Promise(tol=1e9),  # it minimises nothing
    "joint-dual": Promise(tol=1e-4, keeps_w=True, options={"C": 0.1}),
    "joint-newton": Promise(tol=1e-6),
    # in memory they are newton, joint-newton and joint-dual; from disk see tests/solvers/out_of_core
    "streamed-newton": Promise(tol=1e-6),
    "joint-block": Promise(tol=1e-4, keeps_w=True, options={"C": 0.1}),
}

FACTORS: dict[str, Sequence[Any]] = {
    "solver": list(PROMISES),
    "loss": list(NAMES),
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
    """Few cases in which every pair of levels of two factors occurs; greedy, and the same list every time.
    Joint problems have solvers of their own, and so their own list.
    """
    cases = list(full_product())
    joint = [case for case in cases if make_loss(case.loss).task == JOINT]
    return [*_all_pairs([case for case in cases if case not in joint]), *_all_pairs(joint)]


def _all_pairs(cases: list[Case]) -> list[Case]:

    def pairs(case: Case) -> set[tuple[int, str, int, str]]:
        return {(i, case[i], j, case[j]) for i, j in itertools.combinations(range(len(case)), 2)}

    missing = set().union(*map(pairs, cases))
    chosen = []
    while missing:
        best = max(cases, key=lambda case: len(pairs(case) & missing))
        chosen.append(best)
        missing -= pairs(best)
    return chosen


def data(case: Case, n: int, d: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows that cause trouble: empty, twins, twins with other labels, a zero column, weights 0 and 2."""
    rng = np.random.default_rng(7)
    dense = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    dense[0] = 0.0
    dense[1] = dense[2]
    dense[3] = dense[4]
    dense[:, -1] = 0.0
    target = dense @ rng.normal(size=d) + 0.3 + 0.5 * rng.normal(size=n)
    task = make_loss(case.loss).task
    y = np.where(target > 0, 1.0, -1.0) if task == "classification" else target
    y = np.digitize(target, [-0.5, 0.5]) - 1.0 if task == JOINT else y
    y[1], y[2] = y[2], y[2]
    y[4] = -y[3]
    weight = rng.choice([0.0, 1.0, 1.0, 1.0, 2.0, 0.5], size=n)
    X = dense.astype(case.dtype)
    return (sp.csr_matrix(X) if case.rows == "csr" else X), y, weight


def arguments(case: Case, loosest: float = 0.0) -> dict[str, Any]:
    """What ``fit`` is given besides the data and limits; ``tol`` is at least ``loosest``."""
    promise = PROMISES[case.solver]
    smooth = math.isfinite(make_loss(case.loss).smoothness)
    tol = promise.tol if promise.kinks is None or smooth else promise.kinks[case.bias]
    chosen = {"loss": case.loss, "solver": case.solver, "bias": case.bias, "tol": max(tol, loosest)}
    return {"C": 1.0, "seed": 3, **chosen, **promise.options}


def epochs_needed(case: Case, limit: float = 1e5) -> float:
    """What ``check`` takes of its ceiling."""
    X, y, weight = data(case, ROWS, COLUMNS)
    common = {"sample_weight": weight, **arguments(case)}
    outcome = dualgap.fit(X, y, max_epochs=limit, record_every=4 * ROWS, **common)
    assert outcome.converged, f"{case.label}: {outcome.reason} at {outcome.certificate}"
    return float(outcome.trace[-1].epochs)


def check(case: Case, n: int = ROWS, d: int = COLUMNS, patience: float = 1.0, loosest: float = 0.0) -> None:
    """Gap met, weak duality at every record, w == w(beta), resume equals uninterrupted, few enough epochs."""
    warnings.simplefilter("ignore", TrivialModelWarning)  # runs that are cut early need not get anywhere
    promise = PROMISES[case.solver]
    X, y, weight = data(case, n, d)
    common = {"sample_weight": weight, **arguments(case, loosest)}
    limit = patience * ceiling("epochs", case.solver, case.loss)
    outcome = dualgap.fit(X, y, max_epochs=limit, record_every=4 * n, **common)
    assert outcome.converged, f"{outcome.reason} at {outcome.certificate}"
    for record in outcome.trace:
        primal, dual, gap, _, rounding, _ = record.certificate
        assert primal - dual >= -rounding
        assert gap >= primal - dual >= gap - 2 * rounding
        assert rounding <= 1e-9 * (1 + abs(primal))
    independent = outcome.problem.certify(outcome.point)
    claimed = outcome.problem.in_form(outcome.certificate, "mean")
    assert abs(independent.gap - claimed.gap) <= 2 * claimed.rounding

    if promise.keeps_w:
        state = getattr(outcome.run.state, "inner", outcome.run.state)
        share = (outcome.problem.source.weight * state.beta.T).T
        expected = np.asarray(X.T @ share) * outcome.problem.scale
        own = state.w if state.w.shape == expected.shape else state.w.T  # some keep it by classes
        np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-11 * (1 + np.abs(expected).max()))

    half, whole = 3 * n + 7, 7 * n + 1
    long = dualgap.fit(X, y, max_visits=whole, max_epochs=None, **{**common, "tol": 0.0})
    first = dualgap.fit(X, y, max_visits=half, max_epochs=None, **{**common, "tol": 0.0})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.npz"
        dualgap.save_state(path, first)
        second = dualgap.fit(
            X, y, max_visits=whole, max_epochs=None, resume=dualgap.load_state(path), **{**common, "tol": 0.0}
        )
    assert_same(long.run, second.run)
    assert np.array_equal(long.coef, second.coef)
    assert long.certificate == second.certificate


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
