"""Random problems, many of them degenerate, solved by every solver and re-proved by the checker."""

from __future__ import annotations

import tempfile
import warnings
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import dualgap
from dualgap.core.losses import JOINT, NAMES, every_loss, parameters_of
from dualgap.data.formats.arrow.writing import Options, write_blocks
from dualgap.files import ChunkFeed, Table
from dualgap.solvers import SOLVERS, can_have, can_train

from . import joint
from .checker import Claim, faults
from .joint import JointClaim
from .tally import Tally

BIASES = ("none", "augmented", "exact")
LAYOUTS = ("dense float64", "csr float64", "dense float32", "csr float32")
_ODD = ("plain", "plain", "integers", "zeros", "equal rows", "ill scales", "tiny", "huge", "empty rows")


class Case(NamedTuple):
    """A solver, a loss and a bias."""

    solver: str
    loss: str
    bias: str


class Problem(NamedTuple):
    """What ``fit`` is given, and the rows in numbers."""

    case: Case
    X: Any  # dense, as float64
    y: Any
    weight: Any
    layout: str
    source: str  # "memory", "feed", "store"
    arguments: dict[str, Any]


@cache
def cases() -> tuple[Case, ...]:
    """Every solver, and ``auto``, with every loss and bias that it takes."""
    return tuple(
        Case(solver, loss, bias)
        for solver in ("auto", *SOLVERS)
        for loss in NAMES
        for bias in BIASES
        if solver == "auto" or (can_train(SOLVERS[solver], loss) and can_have(SOLVERS[solver], bias))
    )


def problem(seed: int, index: int) -> Problem:
    """One of the problems of a seed. In a row, they go through all cases."""
    random = Random(f"problem {seed} {index}")
    case = cases()[(index * 7919 + seed) % len(cases())]  # a prime: neighbours are of different solvers
    n, d = random.choice((1, 2, 3, 5, 8, 13, 21, 30)), random.randint(1, 10)
    rng = np.random.default_rng(random.getrandbits(64))
    X = _matrix(n, d, random, rng)
    y = _targets(every_loss()[case.loss].task, X, random, rng)
    weight = random.choice(
        (None, None, rng.choice([0.0, 1.0, 2.0, 0.25], n), rng.random(n), 10.0 ** rng.uniform(-6, 6, n))
    )
    layout = _layout(case, random)
    if layout.endswith("32"):
        X = X.astype(np.float32).astype(float)
    arguments: dict[str, Any] = {
        random.choice(("C", "C", "lam")): 10.0 ** random.randint(-6, random.choice((6, 6, 12)))
        * random.choice((1.0, 0.37)),
        "loss": case.loss + _parameters(case.loss, random),
        "solver": case.solver,
        "bias": case.bias,
        "rho": random.choice((1.0, 1.0, 0.1, 30.0)),
        "tol": random.choice((1e-1, 1e-3, 1e-6, 1e-9, 0.0)),
        "max_epochs": random.choice((1, 3, 10, 30, 60)),
        "seed": random.randrange(4),
        "output": random.choice(("best", "best", "best", "last")),
        "threads": random.choice((1, 1, 1, 2)),
    }
    source = "memory"
    able = case.solver == "auto" or SOLVERS[case.solver].capabilities.from_disk
    able = able and every_loss()[case.loss].task != JOINT  # refused
    if able and case.bias != "exact" and "csr" in layout:
        source = random.choice(("memory", "feed", "feed", "store"))
    return Problem(case, X, y, weight, layout, source, arguments)


def _matrix(n: int, d: int, random: Random, rng: Any) -> Any:
    kind = random.choice(_ODD)
    X = np.where(rng.random((n, d)) < random.choice((0.3, 1.0)), rng.normal(size=(n, d)), 0.0)
    if kind == "integers":
        X = rng.integers(-2, 4, size=(n, d)).astype(float)  # ties, and optima that are exact
    elif kind == "zeros":
        X = np.zeros((n, d))
    elif kind == "equal rows":
        X = np.repeat(X[:2], n, axis=0)[:n]
    elif kind == "ill scales":
        X = X * 10.0 ** rng.integers(-6, 7, size=d)
    elif kind in ("tiny", "huge"):
        X = X * (1e-12 if kind == "tiny" else 1e9)
    elif kind == "empty rows":
        X[rng.random(n) < 0.5] = 0.0
    return X


def _targets(task: str, X: Any, random: Random, rng: Any) -> Any:
    n = X.shape[0]
    if task == JOINT:
        y = (X @ rng.normal(size=(X.shape[1], 3)) + rng.normal(size=(n, 3))).argmax(axis=1).astype(float)
        if n > 1 and (y == y[0]).all():
            y[0] = 3.0 - y[0]
        return y
    if task == "classification":
        y = np.where(X @ rng.normal(size=X.shape[1]) + rng.normal(size=n) > 0.0, 1.0, -1.0)
        if n > 1 and (y == y[0]).all():
            y[0] = -y[0]
        return y
    return random.choice(
        (
            rng.normal(size=n),
            X @ rng.normal(size=X.shape[1]),
            np.zeros(n),
            np.full(n, 3.0),
            1e4 * rng.normal(size=n),
        )
    )


def _layout(case: Case, random: Random) -> str:
    """A solver and a loss meet two of the four layouts, so that kernels for all of them need not be compiled;
    every solver and every loss meets each.
    """
    if case.solver != "auto" and SOLVERS[case.solver].capabilities.from_disk:
        return random.choice(LAYOUTS[1::2])
    place = NAMES.index(case.loss) + ("auto", *SOLVERS).index(case.solver)
    return LAYOUTS[(place + random.randrange(2)) % 4]


def _parameters(loss: str, random: Random) -> str:
    """Other values for the parameters of a loss, at times. (They need no kernels of their own.)"""
    names = parameters_of(every_loss()[loss])
    if not names or random.random() < 0.6:
        return ""
    return ":" + ",".join(f"{name}={random.choice((0.5, 2.0, 0.3, 1.7))}" for name in names)


def solve(problem: Problem, folder: Path) -> dualgap.Outcome:
    """Train on it."""
    X, y, weight, arguments = problem.X, problem.y, problem.weight, dict(problem.arguments)
    dtype = np.float32 if problem.layout.endswith("32") else np.float64
    rows = X.astype(dtype) if problem.layout.startswith("dense") else sp.csr_array(X.astype(dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if problem.source == "memory":
            return dualgap.fit(rows, y, sample_weight=weight, **arguments)
        if problem.source == "feed":

            def chunks() -> Any:
                for k in range(0, len(y), 4):
                    part = slice(k, k + 4)
                    yield (rows[part], y[part], *(() if weight is None else (weight[part],)))

            return dualgap.fit(ChunkFeed(chunks), in_memory=False, **arguments)
        path = folder / "rows.arrow"
        table = Table(path, rows, y, weight=weight)
        write_blocks(path, [table], Options(seed=None, batch=200), n_features=X.shape[1])
        return dualgap.fit(path, in_memory=False, **arguments)


def claim_of(problem: Problem, outcome: dualgap.Outcome) -> Claim:
    """The numbers of a problem and of what came of it; nothing computed."""
    arguments, found = problem.arguments, outcome.certificate
    weight = np.ones(len(problem.y)) if problem.weight is None else problem.weight
    given = "C" if "C" in arguments else "lam"
    several = outcome.coef.ndim == 2
    kind: Any = JointClaim if several else Claim
    point = outcome.point
    claim: Claim = kind(
        rows=[[(j, float(row[j])) for j in np.flatnonzero(row).tolist()] for row in problem.X],
        y=np.searchsorted(outcome.classes, problem.y).tolist() if several else problem.y.tolist(),
        weight=weight.tolist(),
        loss=problem.case.loss,
        parameters=_parameters_of(arguments["loss"]),
        form="J" if given == "C" else "mean",
        strength=arguments[given],
        bias=problem.case.bias,
        rho=arguments["rho"],
        w=point.w.tolist(),
        b=point.b.tolist() if several else float(point.b),
        beta=None if point.beta is None else point.beta.tolist(),
        primal=found.primal,
        dual=found.dual,
        gap=found.gap,
        relative_gap=found.relative_gap,
        rounding=found.rounding,
        history=[
            (values.primal, values.dual, values.rounding)
            for record in outcome.trace
            for values in (record.certificate, record.current)
        ],
        **({"classes": len(outcome.classes)} if several else {}),
    )
    return claim


def _parameters_of(spec: str) -> dict[str, float]:
    name, _, rest = spec.partition(":")
    given = dict(part.split("=") for part in rest.split(",") if part)
    return parameters_of(every_loss()[name]) | {key: float(text) for key, text in given.items()}


def check(problem: Problem, folder: Path) -> tuple[str, list[str]]:
    """What became of a problem, and what is wrong with it."""
    try:
        outcome = solve(problem, folder)
    except dualgap.InputError as error:
        return "refused", [] if "\n" not in str(error) else ["an error of more than one line"]
    claim = claim_of(problem, outcome)
    found = joint.faults(claim) if isinstance(claim, JointClaim) else faults(claim)
    certificate, tol = outcome.certificate, problem.arguments["tol"]
    if certificate.form != ("J" if "C" in problem.arguments else "mean"):
        found.append(f"the certificate is in the form {certificate.form}")
    if outcome.converged != (certificate.relative_gap <= tol):
        found.append(f"converged is {outcome.converged} at a relative gap of {certificate.relative_gap!r}")
    if outcome.reason.name == "gap" and certificate.relative_gap > tol:
        found.append(f"it ended as {outcome.reason.name!r} at a relative gap of {certificate.relative_gap!r}")
    return ("converged" if outcome.converged else "limited"), found


def run(seed: int, items: range, folder: Path, tally: Tally) -> None:
    """Solve and check the problems of these numbers."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for index in items:
            with tally.item(index):
                given = problem(seed, index)
                became, found = check(given, Path(scratch))
                tally.count(became, given.source)
                for fault in found:
                    tally.fail(index, f"{' '.join(given.case)}, {given.layout}, {given.source}: {fault}")
