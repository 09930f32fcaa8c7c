"""The command line of a benchmark run."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import CACHE, HERE
from .objective import LOSSES
from .sets import SETS, data_folder

# for losses other than the hinge
SMOOTH_SETS = ("a9a", "reuters-earn", "wikitox-bow", "dense-tall", "quick-text")
# by default C varies on these alone, small ones and large ones of the kinds that matter most: minutes are few
SEVERAL_C_SETS = ("a9a", "w8a", "reuters-earn", "wikitox-bow", "20news-bigram", "text-ordered")
MEMORY_SETS = ("wikitox-bow", "20news-bigram", "text")


@dataclass(frozen=True)
class Options:
    """A run as asked for."""

    sets: tuple[str, ...]
    losses: tuple[str, ...]
    Cs: tuple[float, ...]
    everything: (
        bool  # every C on every set, every solver at every C, no peer spared a set that is too large for it
    )
    targets: tuple[float, ...]
    threads: tuple[int, ...]
    solvers: tuple[str, ...]
    repeats: int
    time_limit: float
    reference_limit: float
    give_up: float
    repeat_seconds: float
    memory: bool
    main_only: bool  # no peer that needs an environment of its own
    data: Path | None
    out: Path
    cache: Path
    fresh: bool
    references_only: bool

    def problems(self) -> list[tuple[str, str, float]]:
        """Set, loss and C of all problems; losses other than the hinge at C = 1 on some of the sets."""
        found = []
        for name in self.sets:
            for loss in self.losses:
                if loss == "hinge" and (self.everything or name in SEVERAL_C_SETS):
                    found += [(name, loss, C) for C in sorted(self.Cs)]
                elif loss == "hinge" or name in SMOOTH_SETS:
                    found.append((name, loss, 1.0))
        return found

    def key(self) -> dict[str, object]:
        """What makes two runs the same run: one that was interrupted goes on only with these unchanged."""
        left_out = {"data", "out", "cache", "fresh", "references_only"}
        return {name: value for name, value in vars(self).items() if name not in left_out}


def parse(argv: Sequence[str] | None = None) -> Options:
    """Options from the command line."""
    parser = _parser()
    given = parser.parse_args(argv)
    tiers = ("quick",) if given.quick else ("default", "full") if given.full else ("default",)
    names = given.sets or [name for name, item in SETS.items() if item.tier in tiers]
    for name in names:
        if name not in SETS:
            parser.error(f"unknown set {name!r}; there are: {', '.join(SETS)}")
    for loss in given.losses or ():
        if loss not in LOSSES:
            parser.error(f"unknown loss {loss!r}; there are: {', '.join(LOSSES)}")
    cores = os.cpu_count() or 1
    limit = given.time_limit or (2.0 if given.quick else 60.0 if given.full else 10.0)
    return Options(
        sets=tuple(names),
        losses=tuple(given.losses or (["hinge", "logistic"] if given.quick else LOSSES)),
        Cs=tuple(given.C or ([1.0] if given.quick else [0.05, 1.0, 10.0] if given.full else [1.0, 10.0])),
        everything=bool(given.C or given.full),
        targets=tuple(given.targets or ([1e-2, 1e-3] if given.quick else [1e-2, 1e-4])),
        threads=tuple(given.threads or ([1] if given.quick else sorted({1, min(2, cores)}))),
        solvers=tuple(given.solvers or ["*"]),
        repeats=given.repeats or (2 if given.quick else 5 if given.full else 3),
        time_limit=limit,
        reference_limit=given.reference_limit or (10.0 if given.quick else 900.0 if given.full else 60.0),
        give_up=math.inf if given.full else 6.0,
        repeat_seconds=20.0 if given.full else 2.0,
        memory=not given.quick,
        main_only=given.quick,
        data=data_folder(given.data),
        out=given.out or HERE / "results",
        cache=given.cache or CACHE,
        fresh=given.fresh,
        references_only=given.references,
    )


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _numbers(text: str) -> list[float]:
    return [float(word) for word in _words(text)]


def _counts(text: str) -> list[int]:
    return [int(word) for word in _words(text)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Times every solver of dualgap and its peers to the same accuracy, side by side. "
        "Lists are "
        "separated by commas. An interrupted run goes on where it was when it is started again.",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", action="store_true", help="tiny sets, peers of this environment only: does it work?"
    )
    size.add_argument(
        "--full", action="store_true", help="more and larger sets, C=0.05 too, long limits: takes hours"
    )
    parser.add_argument("--sets", type=_words, help="data sets by name")
    parser.add_argument("--losses", type=_words, help="hinge, squared-hinge, logistic, squared")
    parser.add_argument("--C", type=_numbers, help="values of C")
    parser.add_argument(
        "--targets", type=_numbers, help="relative distances from the optimum (default 1e-2,1e-4)"
    )
    parser.add_argument("--solvers", type=_words, help="names or patterns, such as auto*,liblinear*")
    parser.add_argument("--threads", type=_counts, help="numbers of threads (default 1,2)")
    parser.add_argument("--repeats", type=int, help="runs of each setting that counts (default 3)")
    parser.add_argument("--time-limit", type=float, help="seconds for one run (default 10)")
    parser.add_argument(
        "--reference-limit", type=float, help="seconds for one J_opt (default 60; it is cached)"
    )
    parser.add_argument("--data", help="folder of real data sets (default: DUALGAP_DATA)")
    parser.add_argument("--out", type=Path, help="folder for the results (default: benchmarks/results)")
    parser.add_argument(
        "--cache", type=Path, help="folder for parsed data and J_opt (default: benchmarks/.cache)"
    )
    parser.add_argument(
        "--references", action="store_true", help="only parse the data and compute every J_opt"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="begin anew even if an interrupted run could go on"
    )
    return parser
