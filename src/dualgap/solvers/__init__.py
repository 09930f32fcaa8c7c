"""The solvers: one file an algorithm, and the registry that gives each its name.

A solver is a frozen dataclass whose fields are its options: they make its help, its documentation and the
checks of what a user passes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from importlib.util import find_spec
from math import isfinite
from typing import Any

from ..core.losses import LOSSES, Loss
from ..core.problem import Problem
from ..runtime.checks import shown, whole
from ..runtime.errors import InputError, nearest
from ..training.loop import Solver
from .cutting_planes.ocas import OCAS
from .cutting_planes.svmperf import SVMperf
from .dual.asdca import ASDCA
from .dual.dcd import DCD
from .dual.decomposition import SMO, Decomposition
from .dual.mpu import MPU
from .dual.sdca import SDCA
from .free_bias import FreeBias, can_wrap
from .out_of_core.block import BlockMinimisation, SelectiveBlockMinimisation
from .out_of_core.cached_loops import CachedLoops
from .primal.asgd import ASGD
from .primal.implicit import Implicit
from .primal.norma import Norma
from .primal.pegasos import Pegasos
from .primal.perceptron import Perceptron
from .primal.sgd import SGD
from .primal.sgd_m import SGDm
from .primal.sgd_qn import SGDQN
from .primal.sgd_r import SGDr
from .primal.sgd_s import SGDs
from .primal.svmsgd import SvmSgd
from .second_order.newton import Newton

SOLVERS: dict[str, type[Any]] = {
    solver.name: solver
    for solver in (
        DCD,
        SDCA,
        ASDCA,
        MPU,
        Newton,
        SVMperf,
        OCAS,
        Decomposition,
        SMO,
        Pegasos,
        SGDr,
        SGDs,
        SGDm,
        Implicit,
        SGD,
        SvmSgd,
        ASGD,
        SGDQN,
        Norma,
        Perceptron,
        BlockMinimisation,
        SelectiveBlockMinimisation,
        CachedLoops,
    )
}


@dataclass(frozen=True)
class Option:
    """One option of a solver, as a user sees it."""

    name: str
    type: str
    default: Any
    help: str


def options_of(solver: type[Any]) -> list[Option]:
    """The options of a solver; the seed is given apart. Annotations are strings, so they name their types."""
    return [
        Option(item.name, str(item.type), item.default, item.metadata["help"])
        for item in fields(solver)
        if item.name != "seed" and item.init
    ]


# Where Newton's method is the faster one, read off the sets of benchmarks/ that are there to tune on: from a
# typical curvature of the loss over that of the regulariser on; with kinks also only where rows are many and
# overlap, as coordinates then get in each other's way.
_CURVED, _CURVED_WITH_KINKS = 200.0, 2000.0
_TALL, _VERY_TALL, _DENSE = 20.0, 200.0, 0.05  # rows a column; the part of all entries that is stored
_NARROW, _SMALL = (
    300,
    100_000,
)  # columns and entries: a step takes a millisecond there, and coordinates may crawl


def choose(problem: Problem, options: Iterable[str] = ()) -> tuple[str, str]:
    """What ``solver="auto"`` stands for, and why; only solvers that have all the options come into
    question.
    """
    source, loss = problem.source, problem.loss
    if not source.in_memory:
        return "cached-loops", "the rows do not fit into memory"
    if loss.hard:
        return "decomposition", "a hard margin needs it"
    if problem.lam == 0.0 or not set(options) <= {option.name for option in options_of(Newton)}:
        return "dcd", "it has the options given"
    n, d, smooth = source.n, source.d, isfinite(loss.smoothness)
    curved = problem.mean_square / problem.lam / d * (loss.smoothness if smooth else 1.0)
    overlap = n >= _VERY_TALL * d or (n >= _TALL * d and source.nnz >= _DENSE * n * d)
    small = d <= _NARROW and source.nnz <= _SMALL
    shape = f"{n:,} rows of {d:,} columns, {100.0 * source.nnz / (n * d):.3g}% stored, C = {problem.C:.3g}"
    if (
        curved >= (_CURVED if smooth or small else _CURVED_WITH_KINKS)
        and n >= d
        and (smooth or small or overlap)
    ):
        return "newton", f"few passes of second order suit {shape}"
    return "dcd", f"many cheap steps suit {shape}"


def can_train(solver: type[Any], loss: str) -> bool:
    """Whether a solver is made for a loss; those that name no losses take all but the hard margin."""
    return loss in getattr(solver, "losses", LOSSES)


def can_have(solver: type[Any], bias: str) -> bool:
    """Whether a solver can have a kind of bias: those it names, else any, but exact only where it can be
    moved.
    """
    return bias in solver.biases if hasattr(solver, "biases") else bias != "exact" or can_wrap(solver)


def make_solver(name: str, options: dict[str, Any], *, seed: int, loss: Loss, bias: str) -> Solver:
    """A solver by name; it must be made for the loss and the bias, and every option must be one that it
    has.
    """
    if not isinstance(name, str) or name not in SOLVERS:
        raise InputError(f"unknown solver {shown(name)}; {nearest(str(name), [*SOLVERS, 'auto'])}")
    cls = SOLVERS[name]
    if not can_train(cls, loss.name):
        able = ", ".join(other for other in SOLVERS if can_train(SOLVERS[other], loss.name))
        raise InputError(f"solver {name!r} cannot train with the loss {loss.name!r}; these can: {able}")
    if not can_have(cls, bias):
        able = ", ".join(
            other
            for other in SOLVERS
            if can_have(SOLVERS[other], bias) and can_train(SOLVERS[other], loss.name)
        )
        raise InputError(f"solver {name!r} cannot have bias={bias!r}; these can: {able}")
    package = getattr(cls, "package", None)
    if package is not None and find_spec(package) is None:
        raise InputError(f"solver {name!r} needs the package {package!r}: pip install 'dualgap[qp]'")
    known = {option.name: option for option in options_of(cls)}
    values: dict[str, Any] = {}
    for key, value in options.items():
        if key not in known:
            raise InputError(f"solver {name!r} has no option {key!r}; {nearest(key, known)}")
        values[key] = convert(name, known[key], value)
    if "seed" in {item.name for item in fields(cls)}:
        values["seed"] = seed
    solver: Solver = cls(**values)
    if bias != "exact" or hasattr(cls, "biases"):
        return solver
    for key in getattr(cls, "own_stops", ()):  # the end of an inner problem is not the end
        if getattr(solver, key) != 0:
            raise InputError(
                f"{key}={getattr(solver, key):g} does not go with bias='exact'; give the run a gap instead"
            )
    return FreeBias(solver)


def check_regulariser(name: str, lam: float) -> None:
    """Most solvers need lam > 0."""
    if lam == 0.0 and not getattr(SOLVERS[name], "unregularised", False):
        able = ", ".join(other for other in SOLVERS if getattr(SOLVERS[other], "unregularised", False))
        raise InputError(
            f"lam={lam!r} must be positive for solver {name!r}; these need no regulariser: {able}"
        )


def check_from_disk(name: str, bias: str) -> None:
    """Most solvers need all rows in memory."""
    if not isinstance(name, str) or name not in SOLVERS:
        return  # `make_solver` has the words for this
    if not getattr(SOLVERS[name], "from_disk", False):
        able = ", ".join(other for other in SOLVERS if getattr(SOLVERS[other], "from_disk", False))
        raise InputError(
            f"solver {name!r} needs all rows in memory, and these do not fit into the memory budget; these "
            "stream "
            f"them from disk: {able}"
        )
    if bias == "exact":
        raise InputError(
            "bias='exact' needs all rows in memory: its constraint ties all duals together; use "
            "bias='augmented', "
            "with a large rho if the bias is to be free"
        )


def check_seed(seed: Any) -> int:
    """A seed is a whole number."""
    return whole("seed", seed, 0)


_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def convert(solver: str, option: Option, value: Any) -> Any:
    """A value of the option's type, from text where the command line gave text."""
    complaint = f"option {option.name}={shown(value)} of solver {solver!r} must be of type {option.type}"
    if option.type == "bool":
        if isinstance(value, str) and value.lower() in _WORDS:
            return _WORDS[value.lower()]
        if isinstance(value, bool):
            return value
        raise InputError(f"{complaint}: true or false")
    if option.type == "Any":  # a word on the command line, an array in Python; the solver checks it
        return value
    if isinstance(value, bool):
        raise InputError(complaint)
    try:
        if option.type == "int":
            number = int(value)
            if not isinstance(value, str) and number != value:
                raise ValueError
            return number
        return float(value) if option.type == "float" else str(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(complaint) from None
