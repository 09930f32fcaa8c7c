"""The solvers: one file an algorithm, and the registry that gives each its name.

A solver is a frozen dataclass whose fields are its options: they make its help, its documentation and the
checks of what a user passes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ..core.bias import BIASES
from ..core.losses import LOSSES, Loss
from ..runtime.checks import shown, whole
from ..runtime.errors import InputError, closest, nearest
from ..runtime.options import FALSE, TRUE, options_of
from ..training.solver import AnySolver
from .exact_bias import ExactBiasSolver

_HOMES = {
    "dcd": "dual.dcd.DCD",
    "sdca": "dual.sdca.SDCA",
    "asdca": "dual.asdca.ASDCA",
    "mpu": "dual.mpu.MPU",
    "newton": "second_order.newton.Newton",
    "svmperf": "cutting_planes.svmperf.SVMperf",
    "ocas": "cutting_planes.ocas.OCAS",
    "decomposition": "dual.decomposition.Decomposition",
    "smo": "dual.smo.SMO",
    "pegasos": "primal.pegasos.Pegasos",
    "sgd-r": "primal.margin_sgd.SGDr",
    "sgd-s": "primal.margin_sgd.SGDs",
    "sgd-m": "primal.margin_sgd.SGDm",
    "implicit": "primal.implicit.Implicit",
    "sgd": "primal.sgd.SGD",
    "svmsgd": "primal.svmsgd.SvmSgd",
    "asgd": "primal.asgd.ASGD",
    "sgd-qn": "primal.sgd_qn.SGDQN",
    "norma": "primal.norma.Norma",
    "perceptron": "primal.perceptron.Perceptron",
    "block": "out_of_core.block.BlockMinimisation",
    "selective-block": "out_of_core.block.SelectiveBlockMinimisation",
    "cached-loops": "out_of_core.cached_loops.CachedLoops",
    "interior-point": "second_order.interior_point.InteriorPoint",
    "accelerated-sdca": "dual.accelerated_sdca.AcceleratedSDCA",
    "joint-dual": "joint.dual.JointDual",
    "joint-newton": "joint.newton.JointNewton",
    "joint-block": "out_of_core.joint_block.JointBlock",
    "streamed-newton": "out_of_core.streamed_newton.StreamedNewton",
}


@cache
def _imported(name: str) -> type[AnySolver]:
    module, _, cls = _HOMES[name].rpartition(".")
    found: type[AnySolver] = getattr(import_module(f".{module}", __package__), cls)
    return found


class _Registry(Mapping[str, type[AnySolver]]):
    """Solvers by name. Each is imported when it is first asked for: all of them take a tenth of a second."""

    def __getitem__(self, name: str) -> type[AnySolver]:
        return _imported(name)

    def __contains__(self, name: object) -> bool:
        return name in _HOMES

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


SOLVERS: Mapping[str, type[AnySolver]] = _Registry()

EXACT = "exact"
PAPER = "paper"  # the option that stands for the options of a paper; every solver with presets takes it


def can_train(solver: type[AnySolver], loss: str) -> bool:
    """Whether a solver is made for a loss; those that name no losses take all but the hard margin."""
    losses = solver.capabilities.losses
    return loss in (LOSSES if losses is None else losses)


def can_have(solver: type[AnySolver], bias: str) -> bool:
    """Whether a solver can have a kind of bias, by itself or with the wrapper for a free one."""
    able = solver.capabilities
    return bias in able.biases or (bias == EXACT and able.moves_bias)


def names_of(able: Callable[[type[AnySolver]], bool]) -> str:
    """The solvers of which something is true, for messages."""
    return ", ".join(name for name, solver in SOLVERS.items() if able(solver))


def solver_class(name: Any) -> type[AnySolver]:
    """The solver of a name."""
    if not isinstance(name, str) or name not in SOLVERS:
        raise InputError(f"unknown solver {shown(name)}; {nearest(str(name), [*SOLVERS, 'auto'])}")
    return SOLVERS[name]


def with_preset(name: str, cls: type[AnySolver], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a user gave on top of those of the paper that ``paper=`` names, if it does."""
    given = {key: value for key, value in options.items() if key != PAPER}
    wanted = options.get(PAPER, False)
    word = str(wanted).lower()
    if word in FALSE:
        return given
    if not cls.papers:
        able = names_of(lambda other: bool(other.papers))
        raise InputError(f"solver {name!r} has no preset of a paper; these have: {able}")
    word = _preset_word(cls, wanted)
    if word not in cls.papers:
        raise InputError(
            f"paper={shown(wanted)} is no preset of solver {name!r}; {nearest(word, ['true', *cls.papers])}"
        )
    return {**cls.papers[word].options, **given}


def _preset_word(cls: type[AnySolver], wanted: Any) -> str:
    """The name of a preset that ``paper=`` stands for; true is the first one."""
    word = str(wanted).lower()
    return next(iter(cls.papers)) if word in TRUE else word


def preset_named(error: InputError, name: str, options: Mapping[str, Any]) -> InputError:
    """The error about an option, with the preset that its value comes from if it comes from one."""
    cls, told = solver_class(name), str(error)
    for key, value in with_preset(name, cls, options).items():
        if key not in options and told.startswith(f"{key}={value} "):
            preset = _preset_word(cls, options[PAPER])
            rest = told.removeprefix(f"{key}={value} ")
            return InputError(f"{key}={value} (of paper={preset}) {rest}, which may be given beside paper")
    return error


# Arguments of scikit-learn and LIBLINEAR, and what they are here.
_ELSEWHERE = {
    "alpha": "lam",
    "eps": "tol",
    "fit_intercept": "bias",
    "gap": "tol",
    "intercept": "bias",
    "lambda_": "lam",
    "max_iter": "max_epochs",
    "n_epochs": "max_epochs",
    "epochs": "max_epochs",
    "n_jobs": "threads",
    "random_state": "seed",
    "reg": "lam",
    "verbose": "callbacks",
    "warm_start": "warm",
    "weights": "sample_weight",
}


def _unknown(name: str, key: str, known: Iterable[str], arguments: Collection[str]) -> InputError:
    """The error about an option that a solver does not have; it may be meant for an argument of ``fit``."""
    known = list(known)
    meant = closest(key, [*known, *arguments]) or _ELSEWHERE.get(key, "")
    meant = _ELSEWHERE[key] if key in _ELSEWHERE and meant not in known else meant
    if meant in arguments:
        return InputError(
            f"solver {name!r} has no option {key!r}, and there is no argument of that name; did you mean "
            f"{meant!r}? Options of {name!r}: {', '.join(sorted(known)) or 'none'}"
        )
    others = names_of(lambda cls: key in {option.name for option in options_of(cls)})
    if others:
        return InputError(
            f"solver {name!r} has no option {key!r}, these have: {others}; choose one, or leave it out"
        )
    return InputError(f"solver {name!r} has no option {key!r}; {nearest(key, known)}")


def _without_bias(name: str, bias: str, loss: str) -> InputError:
    """The error about a bias that a solver cannot have; with some losses no solver can."""

    def able(kind: str) -> str:
        return names_of(lambda other: can_have(other, kind) and can_train(other, loss))

    if able(bias):
        return InputError(f"solver {name!r} cannot have bias={bias!r}; these can: {able(bias)}")
    others = " or ".join(f"bias={kind!r}" for kind in BIASES if able(kind))
    return InputError(
        f"solver {name!r} cannot have bias={bias!r}, nor can any other with the loss {loss!r}; take {others}"
    )


def make_solver(
    name: str,
    options: dict[str, Any],
    *,
    seed: int,
    loss: Loss,
    bias: str,
    arguments: Collection[str] = (),
) -> AnySolver:
    """A solver by name; it must be made for the loss and the bias, and every option must be one that it
    has. ``arguments`` are the names that a user may have meant instead.
    """
    cls = solver_class(name)
    if not can_train(cls, loss.name):
        able = names_of(lambda other: can_train(other, loss.name))
        raise InputError(f"solver {name!r} cannot train with the loss {loss.name!r}; these can: {able}")
    if loss.offset and not cls.capabilities.offsets:
        able = names_of(lambda other: can_train(other, loss.name) and other.capabilities.offsets)
        raise InputError(f"solver {name!r} takes no offsets; these do: {able}")
    if not can_have(cls, bias):
        raise _without_bias(name, bias, loss.name)
    package = cls.capabilities.package
    if package is not None and find_spec(package) is None:
        raise InputError(f"solver {name!r} needs the package {package!r}: pip install 'dualgap[qp]'")
    known = {option.name: option for option in options_of(cls)}
    values: dict[str, Any] = {}
    for key, value in with_preset(name, cls, options).items():
        if key not in known:
            raise _unknown(name, key, [*known, *([PAPER] if cls.papers else [])], arguments)
        values[key] = known[key].convert(name, value)
    if "seed" in {item.name for item in fields(cls)}:
        values["seed"] = seed
    solver = cls(**values)
    if bias != EXACT or EXACT in cls.capabilities.biases:
        return solver
    for key in cls.capabilities.own_stops:  # the end of an inner problem is not the end
        if values.get(key, known[key].default) != known[key].default:
            raise InputError(
                f"{key}={shown(values[key])} does not go with bias='exact'; give the run a tol instead"
            )
    return ExactBiasSolver(solver)


def check_regulariser(name: str, lam: float) -> None:
    """Most solvers need lam > 0."""
    if lam == 0.0 and not solver_class(name).capabilities.unregularised:
        able = names_of(lambda other: other.capabilities.unregularised)
        raise InputError(
            f"lam={lam!r} must be positive for solver {name!r}; these need no regulariser: {able}"
        )


def check_from_disk(name: str, bias: str, loss: str, *, asked: bool = False) -> None:
    """Most solvers need all rows in memory; ``asked``: a user wants them on disk, be they small."""
    if not solver_class(name).capabilities.from_disk:
        able = names_of(lambda other: other.capabilities.from_disk and can_train(other, loss))
        why = "stay on disk with in_memory=False" if asked else "do not fit into the memory budget"
        if not able:
            raise InputError(
                f"no solver trains with the loss {loss!r} from disk, and these rows {why}; read them into "
                "memory (in_memory=True), or train one class against the rest"
            )
        raise InputError(
            f"solver {name!r} needs all rows in memory, and these {why}; these solvers stream them from "
            f"disk: {able}"
        )
    if bias == EXACT:
        raise InputError(
            "bias='exact' needs all rows in memory: its constraint ties all duals together; use "
            "bias='augmented', with a large rho if the bias is to be free"
        )


def check_seed(seed: Any) -> int:
    """A seed is a whole number."""
    return whole("seed", seed, 0)
