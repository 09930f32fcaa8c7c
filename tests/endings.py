"""Tiny and degenerate problems: every solver ends by itself on each of them, within its limits, with a true
reason.

Run as a program under ``NUMBA_DISABLE_JIT=1``, a part of all problems at a time; see ``test_endings.py``.
"""

from __future__ import annotations

import math
import signal
import sys
import traceback
import warnings
from typing import Any, NamedTuple

import numpy as np

import dualgap
from dualgap.core.losses import LOSSES
from dualgap.solvers import SOLVERS, can_have, can_train

SECONDS = 60  # for one of these problems; each takes milliseconds, so this is no measure of speed
MAX_EPOCHS = (40, 40, 40, 1000)
ROUNDS = 6  # problems for each solver, loss and bias


class Case(NamedTuple):
    solver: str
    loss: str
    bias: str
    round: int

    @property
    def label(self) -> str:
        return f"{self.solver} {self.loss} {self.bias} {self.round}"


def cases() -> list[Case]:
    """Every solver with every loss and bias that it takes, some rounds of each."""
    return [
        Case(solver, loss, bias, k)
        for solver in ("auto", *SOLVERS)
        for loss in LOSSES
        for bias in ("none", "augmented", "exact")
        if solver == "auto" or (can_train(SOLVERS[solver], loss) and can_have(SOLVERS[solver], bias))
        for k in range(ROUNDS)
    ]


def problem(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, dict[str, Any]]:
    """Rows, targets, weights and arguments of a problem with something odd about it."""
    rng = np.random.default_rng([len(case.label), *case.label.encode()])
    n, d = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    kind = rng.integers(7)
    X = rng.integers(-2, 4, size=(n, d)).astype(float)  # ties and exact optima
    if kind == 0:
        X = np.zeros((n, d))
    elif kind == 1:
        X = np.repeat(X[:1], n, axis=0)
    elif kind == 2:
        X = X * 10.0 ** rng.integers(-6, 7, size=d)
    elif kind == 3:
        X = rng.normal(size=(n, d))
    if LOSSES[case.loss].task == "classification":
        y = rng.choice([-1.0, 1.0], size=n)
        if n > 1 and (y == y[0]).all() and rng.random() < 0.7:
            y[0] = -y[0]
    else:
        y = rng.choice([np.zeros(n), np.full(n, 3.0), rng.normal(size=n), 0.05 * rng.random(n)])
    weight = None if rng.random() < 0.5 else rng.choice([0.0, 1.0, 2.0, 0.25], size=n)
    C = float(rng.choice([1e-6, 1e-2, 1.0, 1.0, 1.0, 1e2, 1e6]))
    gap, limit = float(rng.choice([1e-3, 1e-3, 1e-8, 0.0])), int(rng.choice(MAX_EPOCHS))
    return X, y, weight, {"C": C, "tol": gap, "max_epochs": limit, "seed": int(rng.integers(3))}


def check(case: Case) -> str:
    """Train; the reason for the end. Input that is refused (one class, all weights 0) is an end too."""
    X, y, weight, arguments = problem(case)
    try:
        outcome = dualgap.fit(
            X, y, loss=case.loss, bias=case.bias, solver=case.solver, sample_weight=weight, **arguments
        )
    except dualgap.InputError:
        return "refused"
    found = outcome.certificate
    assert not math.isnan(found.gap), found
    assert found.primal - found.dual >= -found.rounding, found
    if outcome.reason.name in ("gap", "optimal"):
        proven = found.relative_gap <= arguments["tol"] or found.gap <= 2.0 * found.rounding
        assert proven, f"{outcome.reason} at {found}"
    return outcome.reason.name


def _too_long(number: int, frame: Any) -> None:
    raise TimeoutError


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    part, parts = map(int, sys.argv[1:3])
    chosen = cases()[part::parts]
    signal.signal(signal.SIGALRM, _too_long)
    reasons: dict[str, int] = {}
    failures = 0
    for case in chosen:
        signal.alarm(SECONDS)
        try:
            reason = check(case)
            reasons[reason] = reasons.get(reason, 0) + 1
        except BaseException as error:
            failures += 1
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(
                f"{case.label}: {type(error).__name__} {error} at {where.filename}:{where.lineno} "
                f"{problem(case)}"
            )
        signal.alarm(0)
    print(f"{len(chosen) - failures} of {len(chosen)} end: {reasons}")
    sys.exit(failures > 0)
