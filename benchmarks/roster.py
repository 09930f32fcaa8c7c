"""Who takes part: every solver of ours, picked up from the registry by itself, and the peers with their
grids.

A peer's grid goes from loose to tight: its tolerances or its numbers of iterations. The loosest value that
reaches the target counts for it, chosen in hindsight. A peer with several arms (ways to call it) is measured
by its fastest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import NamedTuple

from .environments import MAIN


class Grid(NamedTuple):
    """Values from loose to tight; a search looks at every ``stride``-th first, then between neighbours."""

    values: tuple[float, ...]
    stride: int


TOLERANCES = Grid(tuple(float(f"{10 ** (1 - k / 3):.2g}") for k in range(28)), 3)
ITERATIONS = Grid(tuple(dict.fromkeys(round(2 ** (k / 2)) for k in range(27))), 4)
TWO_OR_MORE = Grid(ITERATIONS.values[1:], 4)


@dataclass(frozen=True)
class Contestant:
    """A column of the tables."""

    name: str
    adapter: str
    environment: str
    threads: int
    arms: dict[str, dict[str, Grid]] = field(default_factory=dict)  # by loss; of peers only
    solver: str = ""  # of ours only
    most_rows: int | None = None  # more take it longer than anyone would wait
    most_entries: int | None = None

    @property
    def ours(self) -> bool:
        """Whether it stops by its own certificate."""
        return bool(self.solver)

    def too_large(self, rows: int, entries: int) -> str:
        """Why it is not tried on a set of that size; nothing if it is."""
        if self.most_rows is not None and rows > self.most_rows:
            return f"known to take too long on more than {self.most_rows:,} rows"
        if self.most_entries is not None and entries > self.most_entries:
            return f"known to take too long on more than {self.most_entries:,} entries"
        return ""

    def takes(self, loss: str) -> bool:
        """Whether it is worth asking; a solver of ours that cannot do a loss says so itself."""
        return self.ours or loss in self.arms


class _Peer(NamedTuple):
    name: str
    adapter: str
    environment: str
    arms: dict[str, dict[str, Grid]]
    threaded: dict[str, dict[str, Grid]] | None = None  # with more than one thread
    threaded_environment: str = ""
    most_rows: int | None = None
    most_entries: int | None = None


_SVC = {"hinge": {"epochs": ITERATIONS}, "squared-hinge": {"epochs": ITERATIONS}}
_SNAP = {**_SVC, "logistic": {"epochs": ITERATIONS}, "squared": {"epochs": ITERATIONS}}


def _liblinear(**solvers: str) -> dict[str, dict[str, Grid]]:
    return {loss.replace("_", "-"): dict.fromkeys(arms.split(), TOLERANCES) for loss, arms in solvers.items()}


PEERS = (
    _Peer(
        "LinearSVC",
        "scikit",
        MAIN,
        {"hinge": {"dual": TOLERANCES}, "squared-hinge": {"dual": TOLERANCES, "primal": TOLERANCES}},
    ),
    _Peer("SGD", "scikit", MAIN, {"hinge": {"sgd": ITERATIONS, "asgd": ITERATIONS}}),
    _Peer("LR-lbfgs", "scikit", MAIN, {"logistic": {"lbfgs": ITERATIONS}}),
    _Peer("LR-newton-cg", "scikit", MAIN, {"logistic": {"newton-cg": ITERATIONS}}),
    _Peer("Ridge-lsqr", "scikit", MAIN, {"squared": {"lsqr": TOLERANCES}}),
    _Peer("Ridge-sag", "scikit", MAIN, {"squared": {"sag": ITERATIONS}}),
    _Peer(
        "liblinear",
        "liblinear",
        "liblinear",
        _liblinear(hinge="3", squared_hinge="1 2", logistic="0 7", squared="11 12"),
        _liblinear(hinge="3", squared_hinge="1 2", logistic="0", squared="11"),
        "liblinear-multicore",
    ),
    _Peer("snapml", "snapml", "snapml", _SNAP, _SNAP, "snapml"),
    _Peer(
        "skglm",
        "skglm",
        "skglm",
        {"hinge": {"svc": TOLERANCES}, "logistic": {"lbfgs": ITERATIONS}},
        most_rows=20_000,  # on the 32,561 of a9a its LinearSVC took more than 10 s at a tolerance of 0.1
    ),
    _Peer(
        "vw",
        "vowpal",
        "vowpal",
        {
            "hinge": {"sgd -l 0.5": ITERATIONS, "sgd -l 2": ITERATIONS},
            "logistic": {"bfgs": TWO_OR_MORE},
            "squared": {"bfgs": TWO_OR_MORE},
        },
        most_entries=3_000_000,  # it reads and writes them as text
    ),
)


def ours(threads: Iterable[int]) -> list[Contestant]:
    """``auto`` at every number of threads, and each solver of the registry at one."""
    from dualgap.solvers import SOLVERS

    names = [("auto", count) for count in threads] + [(name, 1) for name in SOLVERS]
    return [
        Contestant(titled(name, count), "benchmarks.adapters.ours", MAIN, count, solver=name)
        for name, count in names
    ]


def judges(threads: int) -> list[Contestant]:
    """Who finds the optimum: ``auto``, and where that does not get there a cutting plane, which does on tall
    data.
    """
    every = ours([threads])
    return [item for item in every if item.solver in ("auto", "ocas")]


def peers(threads: Iterable[int]) -> list[Contestant]:
    """Every peer at one thread, and at more where it can use them."""
    found = []
    for peer in PEERS:
        adapter = f"benchmarks.adapters.{peer.adapter}"
        for count in threads:
            arms, home = (
                (peer.arms, peer.environment) if count == 1 else (peer.threaded, peer.threaded_environment)
            )
            if arms:
                name, limits = titled(peer.name, count), (peer.most_rows, peer.most_entries)
                found.append(Contestant(name, adapter, home, count, arms, "", *limits))
    return found


def titled(name: str, threads: int) -> str:
    """The name of a column: threads are stated where there is more than one."""
    return name if threads == 1 else f"{name}@{threads}"


def chosen(contestants: list[Contestant], patterns: Iterable[str]) -> list[Contestant]:
    """Those whose name matches one of the patterns (``liblinear*``); every pattern must match something."""
    patterns = list(patterns)
    for pattern in patterns:
        if not any(fnmatch(item.name, pattern) for item in contestants):
            raise ValueError(
                f"no solver matches {pattern!r}; there are: {', '.join(i.name for i in contestants)}"
            )
    return [item for item in contestants if any(fnmatch(item.name, pattern) for pattern in patterns)]
