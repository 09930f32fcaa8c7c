"""``python -m benchmarks.out_of_core``: training from disk, against block minimisation, ``cat`` and training
in memory.

Writes ``out_of_core.json``, ``OUT_OF_CORE.md`` and ``out_of_core.png``. Parts can be chosen: ``--part
passes``. The page cache is dropped before a run where the machine allows it; the page says whether it did.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dualgap
from dualgap.data.chunks import OnDisk
from dualgap.data.features import Expanded, Poly2
from dualgap.data.formats.arrow.feed import StoreFeed
from dualgap.data.formats.feeds import read_feed
from dualgap.files import Store, write_store

from . import CACHE, HERE, ROOT, big, goals, machine, sets
from .appendix import taken_on
from .cells import markdown
from .goals import data, in_turns, present, row
from .run import finite

Row = dict[str, Any]
SHARE = 0.1  # of the rows in memory
PATIENCE = 60.0  # seconds for a solver that may never arrive
BUDGET = 2_000_000_000


def drop_caches() -> bool:
    """Have the next read come from the disk, if that may be done here."""
    try:
        subprocess.run(["sync"], check=True)
        Path("/proc/sys/vm/drop_caches").write_text("1\n")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def passes(folder: Path) -> Iterator[Row]:
    """Passes over the disk and seconds to a relative gap of 1e-3 at C = 1 with a tenth of the rows in
    memory.
    """
    for name in present("w8a", "a9a", "wikitox-bow"):
        X, y = data(name)
        path = folder / f"{name}.arrow"
        write_store(path, X, y)
        found = {solver: _to_gap(path, solver) for solver in ("cached-loops", "selective-block", "block")}
        counts, seconds, reached = (
            {solver: values[k] for solver, values in found.items()} for k in ("passes", "seconds", "reached")
        )
        yield {**row(name, ("cached-loops, passes", counts["cached-loops"]), ("asked", 1.0), 10.0)}
        for other in ("block", "selective-block"):
            least = "" if reached[other] else f" (not there after {counts[other]:.0f})"
            if other != "block":  # no goal
                for unit, values in (("passes", counts), ("seconds", seconds)):
                    pair = (f"cached-loops, {unit}", values["cached-loops"]), (other + least, values[other])
                    yield {**row(name, *pair, 1.0, least=True), "asked": "-", "met": "-"}
                continue
            yield row(name, ("cached-loops, passes", counts["cached-loops"]),
                      (other + least, counts[other]), 4.0, least=True)  # fmt: skip
            yield row(name, ("cached-loops, seconds", seconds["cached-loops"]),
                      (other + least, seconds[other]), 3.0, least=True)  # fmt: skip


def _to_gap(path: Path, solver: str) -> dict[str, Any]:
    best: dict[str, Any] = {"seconds": math.inf}
    for _ in range(3):
        source = _source(path)
        began = time.perf_counter()
        outcome = dualgap.fit(
            source, solver=solver, cache=SHARE, C=1.0, tol=1e-3, max_epochs=None, time_limit=PATIENCE
        )
        taken = time.perf_counter() - began
        if taken < best["seconds"]:
            read = outcome.trace[-1].measures["passes"]
            best = {"passes": read, "seconds": taken, "reached": outcome.converged}
        if not outcome.converged:
            break
    return best


def _source(path: Path) -> OnDisk:
    feed = StoreFeed(Store(path))
    return OnDisk(feed, lambda y: np.where(y > 0, 1.0, -1.0), memory_budget=None)


def rates(folder: Path) -> Iterator[Row]:
    """What the Reader reads while training goes on, against ``cat``; the Trainer an entry, against ``dcd`` in
    memory.

    With ``sweeps=0`` the Reader never waits; by default it does, for six visits of every row that it brings.
    """
    path = folder / "rates.arrow"
    big.write(path, 2.0)
    size = path.stat().st_size

    def cat() -> float:
        drop_caches()
        began = time.perf_counter()
        subprocess.run(["cat", str(path)], stdout=subprocess.DEVNULL, check=True)
        return (time.perf_counter() - began) / size

    figures: dict[str, float] = {}

    def train(sweeps: float) -> Callable[[], float]:
        def timed() -> float:
            drop_caches()
            options: dict[str, Any] = {"sweeps": sweeps, "cache": SHARE, "time_limit": 15.0}
            outcome = dualgap.fit(
                _source(path), solver="cached-loops", C=1.0, tol=1e-9, max_epochs=None, **options
            )
            last = outcome.trace[-1]
            if sweeps:
                figures["entries"] = min(figures.get("entries", math.inf), last.train_seconds / last.entries)
            return last.train_seconds / (last.measures["passes"] * size)

        return timed

    def in_memory() -> float:
        outcome = dualgap.fit(path, solver="dcd", shrinking=False, C=1.0, tol=1e-9, time_limit=15.0)
        return outcome.trace[-1].train_seconds / outcome.trace[-1].entries

    alone, reading, waiting = in_turns(cat, train(0.0), train(6.0), repeats=2)
    (memory,) = in_turns(in_memory, repeats=2)
    yield row("generated, 2 GB", ("Reader that never waits, ns a byte", 1e9 * reading),
              ("cat, ns a byte", 1e9 * alone), 1 / 0.7)  # fmt: skip
    yield row("generated, 2 GB", ("Reader by default, ns a byte", 1e9 * waiting),
              ("cat, ns a byte", 1e9 * alone), 1 / 0.7)  # fmt: skip
    yield row(
        "generated, 2 GB",
        ("Trainer, ns an entry", 1e9 * figures["entries"]),
        ("dcd, ns an entry", 1e9 * memory),
        1.3,
    )


def resident(folder: Path) -> Iterator[Row]:
    """``cached-loops`` where everything is in memory, against the flagship."""
    for name in present("a9a", "w8a", "wikitox-bow"):
        X, y = data(name)

        def run(solver: str, X: Any = X, y: Any = y) -> Callable[[], float]:
            def timed() -> float:
                began = time.perf_counter()
                dualgap.fit(X, y, solver=solver, C=1.0, tol=1e-3)
                return time.perf_counter() - began

            return timed

        ours, flagship = in_turns(run("cached-loops"), run("dcd"))
        yield row(name, ("cached-loops, seconds", ours), ("dcd", flagship), 1.5)


def scale(folder: Path, sizes: tuple[float, ...]) -> Iterator[Row]:
    """Time a row and memory at several sizes, to 1e-2 within 2 GB."""
    reference: Row | None = None
    for size in sizes:
        path = folder / "scale.arrow"
        header = big.write(path, size)
        drop_caches()
        command = [sys.executable, "-m", "benchmarks.out_of_core", "--probe", str(path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        allowed = BUDGET + 8 * header.n + 24 * header.d + 100e6
        each = 1e6 * found["seconds"] / header.n
        name = f"generated, {path.stat().st_size / 1e9:.3g} GB, {header.n:,} rows"
        yield row(
            name, ("RssAnon above the start, MB", found["growth"] / 1e6), ("allowed, MB", allowed / 1e6), 1.0
        )
        reference = reference or {"each": each}
        yield row(name, ("seconds a million rows", each), ("the smallest", reference["each"]), 1.2)
        yield row(name, ("relative gap", found["gap"]), ("asked", 1e-2), 1.0)
        yield {
            **row(name, ("passes", found["passes"]), ("-", 1.0), math.inf),
            "ratio": found["passes"],
            "asked": "-",
        }
        path.unlink()


def _probe(path: Path) -> None:
    """Train within the budget, and watch the memory; in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:  # compiles what there is to compile
        small = Path(folder) / "small.arrow"
        big.write(small, 0.01)
        dualgap.fit(_source(small), solver="cached-loops", cache=0.5, tol=0.5)
    start, most, over = _anonymous(), [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            most[0] = max(most[0], _anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    outcome = dualgap.fit(path, C=1.0, tol=1e-2, memory_budget=BUDGET, max_epochs=None, time_limit=3600.0)
    seconds = time.perf_counter() - began
    over.set()
    watcher.join()
    told = {"seconds": seconds, "growth": most[0] - start, "gap": outcome.certificate.relative_gap}
    print(json.dumps({**told, "passes": outcome.trace[-1].measures.get("passes", 0.0)}))


def _anonymous() -> int:
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.split("RssAnon:")[1].split()[0])


def curves(folder: Path) -> dict[str, list[tuple[float, float, float]]]:
    """Seconds, passes and gaps of the solvers, with and without active eviction, with and without
    expansion.
    """
    runs: dict[str, dict[str, Any]] = {
        "cached-loops": {"solver": "cached-loops"},
        "cached-loops, threshold": {"solver": "cached-loops", "eviction": "threshold"},
        "cached-loops, random eviction": {"solver": "cached-loops", "eviction": "random"},
        "selective-block": {"solver": "selective-block"},
        "block": {"solver": "block"},
    }
    found = {}
    for name in present("wikitox-bow"):
        path = folder / f"{name}.arrow"
        if not path.exists():
            write_store(path, *data(name))
        for label, options in runs.items():
            found[f"{name}: {label}"] = _curve(_source(path), tol=1e-5, **options)
    for name in present("a9a"):
        path = folder / f"{name}.arrow"
        if not path.exists():
            write_store(path, *data(name))
        feed = Expanded(StoreFeed(Store(path)), Poly2(16))
        grown = OnDisk(feed, lambda y: np.where(y > 0, 1.0, -1.0), memory_budget=BUDGET)
        found[f"{name} poly2: expanded on the fly"] = _curve(grown, tol=1e-3, solver="cached-loops")
        table = read_feed(feed)
        X, y = table.X, table.y
        stored = folder / "stored.arrow"
        write_store(stored, X, y, keep_order=True)
        larger = stored.stat().st_size / path.stat().st_size
        label = f"{name} poly2: expanded in the store ({larger:.0f} x the bytes)"
        found[label] = _curve(_source(stored), tol=1e-3, solver="cached-loops")
    return found


def _curve(source: OnDisk, gap: float, **options: Any) -> list[tuple[float, float, float]]:
    outcome = dualgap.fit(source, cache=SHARE, C=1.0, tol=gap, max_epochs=None, time_limit=20.0, **options)
    return [
        (record.seconds, record.measures["passes"], record.certificate.relative_gap)
        for record in outcome.trace
    ]


def plot(found: dict[str, list[tuple[float, float, float]]], file: Path) -> None:
    """Certified gaps against seconds."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    groups = sorted({label.split(":")[0] for label in found})
    figure, panels = pyplot.subplots(
        1, max(len(groups), 1), figsize=(7 * max(len(groups), 1), 4.5), squeeze=False
    )
    for panel, group in zip(panels[0], groups, strict=True):
        for label, points in found.items():
            if label.startswith(group + ":"):
                panel.loglog(
                    [p[0] for p in points], [p[2] for p in points], marker=".", label=label.split(": ", 1)[1]
                )
        panel.set(title=group, xlabel="seconds", ylabel="certified relative gap")
        panel.legend()
        panel.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(file, dpi=110)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", action="append", choices=["passes", "rates", "resident", "scale", "curves"])
    parser.add_argument("--sizes", default="2,6,20", help="GB of the generated sets")
    parser.add_argument("--folder", type=Path, help="where the stores go while they are needed")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--probe", type=Path)
    parser.add_argument("--data", help="folder of real data sets [default: DUALGAP_DATA]")
    given = parser.parse_args(arguments)
    goals.FOLDER = sets.data_folder(given.data)
    CACHE.mkdir(parents=True, exist_ok=True)
    if given.probe is not None:
        _probe(given.probe)
        return
    sizes = tuple(float(size) for size in given.sizes.split(","))
    file = given.out / "results" / "out_of_core.json"
    file.parent.mkdir(exist_ok=True, parents=True)
    results: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    parts: dict[str, Callable[[Path], Any]] = {
        "passes": lambda folder: list(passes(folder)),
        "resident": lambda folder: list(resident(folder)),
        "rates": lambda folder: list(rates(folder)),
        "scale": lambda folder: list(scale(folder, sizes)),
        "curves": curves,
    }
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="dualgap-") as folder:
        results["machine"] = machine.describe()
        results["cold"] = drop_caches()
        for name in given.part or parts:
            print(f"{name} ...", file=sys.stderr, flush=True)
            results[name] = finite(parts[name](Path(folder)))
            file.write_text(json.dumps(results, indent=1))
            publish(results, given.out)


def _table(rows: list[Row]) -> str:
    header = list(rows[0])
    cells = [
        [f"{v:.4g}" if isinstance(v, float) else "-" if v is None else str(v) for v in r.values()]
        for r in rows
    ]
    return markdown(header, cells)


TITLES = {
    "passes": passes.__doc__,
    "resident": resident.__doc__,
    "rates": rates.__doc__,
    "scale": scale.__doc__,
}


def publish(results: dict[str, Any], out: Path) -> None:
    """The page."""
    cold = (
        "was dropped before `cat` and before the runs of Rates and Scale"
        if results["cold"]
        else "could not be dropped: reads come from memory"
    )
    lines = ["# Training from disk", "", taken_on(results["machine"]), "", f"The page cache {cold}.", ""]
    for name, title in TITLES.items():
        if name in results:
            lines += [
                f"## {name.capitalize()}",
                "",
                " ".join(str(title).split()),
                "",
                _table(results[name]),
                "",
            ]
    if "curves" in results:
        plot(results["curves"], out / "out_of_core.png")
        lines += [
            "## Curves",
            "",
            str(curves.__doc__),
            "",
            "![certified gaps against seconds](out_of_core.png)",
            "",
        ]
    (out / "OUT_OF_CORE.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
