"""``python -m benchmarks.startup``: what it costs to begin, with an empty and with a filled kernel cache.

Writes ``STARTUP.md``. Every figure is the least of some runs, each a new process; the runs of the floor
(`bare`), of this version and of another one (``--against``) take turns. Processor seconds: other programs on
the machine change them less than seconds on the clock.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from . import HERE, ROOT, machine
from .appendix import taken_on
from .cells import markdown
from .first_fit import data

_SPARE = {"bare Python": "pass", "import dualgap": "import dualgap", "dualgap.fit": "from dualgap import fit"}
_COMMAND = "import sys; from dualgap.cli import main; sys.exit(main())"
_IMPORTS = (
    "import dualgap.cli.train, dualgap.api, dualgap.solvers.dual.dcd, dualgap.solvers.second_order.newton"
)

LAYOUTS = ("sparse", "wide", "dense")
LOSSES = ("hinge", "logistic", "squared-hinge")
FLOOR = ("floor:hinge",)
SECOND = [
    ("sparse:hinge", "sparse:logistic"),
    ("dense:hinge", "dense:logistic"),
    ("sparse:hinge", "dense:hinge"),
    ("dense:hinge", "sparse:hinge"),
]
"""The figure is that of the last fit."""

Cases = tuple[str, ...]


def first_fits(loss: str = "hinge") -> dict[str, dict[str, float]]:
    """Import, first fit and second fit in a new process, seconds on the clock: kernel cache empty, then filled
    by the process before.
    """
    with tempfile.TemporaryDirectory(prefix="dualgap-cold-") as folder:
        surroundings = {**os.environ, "DUALGAP_CACHE": folder}
        return {name: _ask(loss, surroundings) for name in ("empty", "filled")}


def imports(repeats: int = 5) -> dict[str, float]:
    """Seconds of a process that only imports; the fastest of the repeats."""
    found = {}
    for name, code in _SPARE.items():
        times = []
        for _ in range(repeats):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - began)
        found[name] = min(times)
    return found


def _ask(loss: str, surroundings: Mapping[str, str]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.startup", "--probe", loss]
    done = subprocess.run(command, env=surroundings, cwd=ROOT, capture_output=True, text=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def _probe(loss: str) -> dict[str, float]:
    """Runs in the new process."""
    from . import generated

    X, y = generated.text(2_000, 1_000, 20, topics=5)
    began = time.perf_counter()
    from dualgap import fit

    times = {"import_seconds": time.perf_counter() - began}
    for name in ("first_seconds", "second_seconds"):
        began = time.perf_counter()
        fit(X, y, loss=loss, C=1.0)
        times[name] = time.perf_counter() - began
    return times


def fits(cases: Cases, tree: Path = ROOT) -> list[float]:
    """Processor seconds of fits one after the other in a new process, with the sources of a tree and an empty
    kernel cache.
    """
    with tempfile.TemporaryDirectory(prefix="dualgap-cold-") as folder:
        command = [sys.executable, "-m", "benchmarks.first_fit", *cases]
        done = subprocess.run(
            command, env=_surroundings(tree, folder), cwd=ROOT, capture_output=True, text=True, check=True
        )
    answer: list[float] = json.loads(done.stdout)
    return answer


def _surroundings(tree: Path, folder: str) -> dict[str, str]:
    found = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA")}
    path = os.pathsep.join((str(tree / "src"), str(ROOT)))
    return {**found, "PYTHONPATH": path, "DUALGAP_CACHE": folder, "NUMBA_CACHE_DIR": folder}


def in_turns(
    cases: Iterable[Cases], trees: Mapping[str, Path], repeats: int
) -> dict[Cases, dict[str, float]]:
    """The least seconds of the last fit of each case, for the floor and for each tree."""
    found: dict[Cases, dict[str, float]] = {}
    for case in cases:
        best = found[case] = dict.fromkeys(["floor", *trees], math.inf)
        for turn in range(repeats):
            best["floor"] = min(best["floor"], fits(FLOOR)[-1])
            for name, tree in trees.items():
                if turn == 0 or tree == ROOT:  # the other version takes long, and is there for comparison
                    best[name] = min(best[name], fits(case, tree)[-1])
        print(" then ".join(case), {name: round(value, 2) for name, value in best.items()}, file=sys.stderr)
    return found


def command_seconds(code: str, arguments: Iterable[str], tree: Path, folder: str) -> float:
    """Processor seconds of a process that runs ``code``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", code, *arguments]
    subprocess.run(command, env=_surroundings(tree, folder), stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(trees: Mapping[str, Path], repeats: int) -> dict[str, dict[str, float]]:
    """Of ``dualgap train`` on a small file, kernel cache empty and filled, and of its imports alone."""
    from dualgap.files import write_svmlight

    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="dualgap-train-") as place:
        file = Path(place) / "small.svm"
        write_svmlight(file, *data("sparse"))
        arguments = ["train", str(file), "-o", f"{place}/small.model", "--bias", "exact", "--quiet"]
        for name, tree in trees.items():
            best = found[name] = dict.fromkeys(("empty", "filled", "imports"), math.inf)
            for _ in range(repeats):
                with tempfile.TemporaryDirectory(prefix="dualgap-cold-") as folder:
                    parts = {"empty": _COMMAND, "filled": _COMMAND, "imports": _IMPORTS}
                    for part, code in parts.items():
                        seconds = command_seconds(code, arguments, tree, folder)
                        best[part] = min(best[part], seconds)
    return found


def page(
    about: str,
    found: Mapping[Cases, Mapping[str, float]],
    trained: Mapping[str, Mapping[str, float]],
    repeats: int,
) -> str:
    """STARTUP.md."""
    names = list(trained)
    heads = ["fit", "floor", *(head for name in names for head in (name, f"{name} / floor"))]

    def lines(second: bool) -> list[list[str]]:
        chosen = [(case, best) for case, best in found.items() if (len(case) > 1) is second]
        return [
            [
                " then ".join(one.replace(":", " ") for one in case),
                f"{best['floor']:.2f}",
                *(
                    cell
                    for name in names
                    for cell in (f"{best[name]:.2f}", f"{best[name] / best['floor']:.2f}")
                ),
            ]
            for case, best in chosen
        ]

    command_lines = [[name, *(f"{best[part]:.2f}" for part in best)] for name, best in trained.items()]
    return (
        "\n\n".join(
            [
                "# The first fit",
                about,
                "Processor seconds beyond imports of `LinearSVC(loss=...).fit` on 2,000 rows (sparse: 5,000 columns; wide: "
                "600,000; dense: 20) in a new process whose kernel cache is empty, nearly all of them for compiling. The floor is a bare "
                "dual coordinate descent for the hinge loss on sparse rows ([bare.py](bare.py)). The least of "
                f"{repeats} runs in turns (of the version before: one run).",
                markdown(heads, lines(False)),
                "A second fit in the same process, the first one not counted:",
                markdown(heads, lines(True)),
                "`dualgap train` on a file of the sparse rows, with an exact bias: processor seconds of the whole process with an "
                "empty and with a filled kernel cache, and of a process that only imports what it imports.",
                markdown(["version", *next(iter(trained.values()))], command_lines),
            ]
        )
        + "\n"
    )


def notes(out: Path) -> str:
    """What is written by hand on the page: all from its first second-level heading on."""
    heading = "\n## "
    _, found, after = out.read_text().partition(heading) if out.exists() else ("", "", "")
    return found + after


def main() -> int:
    """Measure and write the page; what is written on it by hand stays."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--against", type=Path, help="the root of another source tree, to take turns with")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "STARTUP.md")
    parser.add_argument("--losses", default=",".join(LOSSES), help="of the first fits, separated by commas")
    parser.add_argument("--quick", action="store_true", help="one case, one run: does it work?")
    parser.add_argument("--probe", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        print(json.dumps(_probe(options.probe)))
        return 0
    about = machine.describe()
    trees = {"now": ROOT} | ({"before": options.against.resolve()} if options.against else {})
    repeats = 1 if options.quick else options.repeats
    first = [(f"{layout}:{loss}",) for layout in LAYOUTS for loss in options.losses.split(",")]
    found = in_turns(first[:1] if options.quick else [*first, *SECOND], trees, repeats)
    trained = commands(trees, repeats)
    about["load_at_end"] = os.getloadavg()[0]
    options.out.write_text(page(taken_on(about), found, trained, repeats) + notes(options.out))
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
