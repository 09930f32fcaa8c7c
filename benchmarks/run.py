"""A whole run: environments, sets, problems one by one, results saved after each, tables and plots at the
end.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import ROOT, machine, roster, sets, tables
from .environments import MAIN, Environment, ensure_all, plotting
from .measure import Measurement, Problem
from .options import MEMORY_SETS, Options
from .pool import Pool, WorkerError
from .reference import reference
from .roster import Contestant
from .selection import taking_part
from .startup import first_fits

Results = dict[str, Any]


def run(options: Options) -> Results:
    """Everything that was asked for; the results, which are also in ``results.json``."""
    results = _begin(options)
    contestants = roster.chosen(
        [*roster.ours(options.threads), *roster.peers(options.threads)], options.solvers
    )
    if options.main_only:
        contestants = [item for item in contestants if item.environment == MAIN]
    with Pool(_environments(contestants), options.cache) as pool:
        present = _present(pool, contestants, results)
        for name, loss, C in options.problems():
            if name not in results["sets"] and not _fetch(name, options, results):
                continue
            if not _done(results, name, loss, C):
                results["problems"].append(_measure(options, pool, present, results, (name, loss, C)))
                _save(options, results)
    if not options.main_only:
        results["first_fit"] = first_fits()
    results["machine"]["load_at_end"] = machine.describe()["load"]
    results["finished"] = True
    _save(options, results)
    return results


def references(options: Options) -> Results:
    """Only J_opt of every problem, which is cached: a preparation that need not be done when the machine is
    quiet.
    """
    results: Results = {"sets": {}, "missing_sets": {}}
    with Pool(ensure_all([MAIN]), options.cache) as pool:
        for name, loss, C in options.problems():
            if name not in results["sets"] and not _fetch(name, options, results):
                continue
            info = sets.cached(sets.SETS[name], options.data, options.cache)
            try:
                found = _reference(options, pool, info, *sets.load(info.path), loss, C)
            except WorkerError as error:
                _say(f"{name} {loss} C={C:g}: no optimum: {error}")
            else:
                known = f"{found['primal']:.10g} to {found['relative_gap']:.1e}"
                _say(f"{name} {loss} C={C:g}: {known}, {found['seconds']:.1f} s")
    return results


def write(folder: Path, results: Results, *, set_up: bool) -> list[Path]:
    """Tables and plots of a run; all files that are there. Without set-up, plots need matplotlib to be
    there.
    """
    page = folder / "RESULTS.md"
    page.write_text(tables.report(results))
    found = plotting(create=set_up)
    if found.python is None:
        _say(f"no plots: {found.reason}")
        return [folder / "results.json", page]
    command = [
        str(found.python),
        "-m",
        "benchmarks.plots",
        str(folder / "results.json"),
        str(folder / "plots"),
    ]
    subprocess.run(command, cwd=ROOT, check=True)
    return [folder / "results.json", page, *sorted((folder / "plots").glob("*.png"))]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _begin(options: Options) -> Results:
    """The results of an interrupted run of the same code with the same options, or empty ones."""
    key = finite({**options.key(), "code": machine.code_fingerprint()})
    path = options.out / "results.json"
    if path.exists() and not options.fresh:
        known: Results = json.loads(path.read_text())
        if not known["finished"] and known["options"] == key:
            _say(f"going on after {len(known['problems'])} problems of an interrupted run")
            return known
    return {
        "options": key,
        "machine": machine.describe(),
        "solvers": {},
        "sets": {},
        "missing_sets": {},
        "problems": [],
        "finished": False,
    }


def _save(options: Options, results: Results) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    scratch = options.out / "results.json.tmp"
    scratch.write_text(json.dumps(finite(results), indent=1, allow_nan=False))
    scratch.replace(options.out / "results.json")


def finite(value: Any) -> Any:
    """The same with infinities and NaN as null: JSON has no words for them."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _environments(contestants: list[Contestant]) -> dict[str, Environment]:
    names = dict.fromkeys([MAIN, *(item.environment for item in contestants)])
    _say(f"environments: {', '.join(names)}")
    return ensure_all(names)


def _present(pool: Pool, contestants: list[Contestant], results: Results) -> list[Contestant]:
    """Those that answer; why the others do not is in the results."""
    present = []
    for item in contestants:
        entry = {"ours": item.ours, "threads": item.threads, "environment": item.environment}
        problem = pool.environments[item.environment].reason
        try:
            entry["version"] = "" if problem else pool.version(item)
        except WorkerError as error:
            problem = f"does not start: {error}"
        if problem:
            _say(f"{item.name} is left out: {problem}")
        else:
            present.append(item)
        results["solvers"][item.name] = {**entry, "problem": problem}
    return present


def _fetch(name: str, options: Options, results: Results) -> bool:
    item = sets.SETS[name]
    if item.available(options.data):
        info = sets.cached(item, options.data, options.cache)
        results["sets"][name] = {key: value for key, value in asdict(info).items() if key != "path"}
        return True
    if name not in results["missing_sets"]:
        _say(f"{name} is left out: there is no {item.file} in the data folder")
    results["missing_sets"][name] = f"no {item.file} in the data folder"
    return False


def _done(results: Results, name: str, loss: str, C: float) -> bool:
    return any((entry["set"], entry["loss"], entry["C"]) == (name, loss, C) for entry in results["problems"])


def _measure(
    options: Options,
    pool: Pool,
    present: list[Contestant],
    results: Results,
    what: tuple[str, str, float],
) -> dict[str, Any]:
    name, loss, C = what
    began = time.perf_counter()
    info = sets.cached(sets.SETS[name], options.data, options.cache)
    X, y = sets.load(info.path)
    asked, skipped = taking_part(options, present, results, info, what)
    try:
        found = _reference(options, pool, info, X, y, loss, C)
    except WorkerError as error:
        _say(f"{name} {loss} C={C:g}: no optimum: {error}")
        empty: dict[str, Any] = {
            "reference": None,
            "optimum": None,
            "dual": None,
            "cells": [],
            "runs": [],
            "traces": {},
        }
        return {"set": name, "loss": loss, "C": C, **empty, "broken": [f"no optimum: {error.kind}: {error}"]}
    problem = Problem(
        info,
        loss,
        C,
        options.targets,
        options.repeats,
        options.time_limit,
        options.give_up,
        options.repeat_seconds,
    )
    measurement = Measurement(problem, pool, X, y, found)
    for item in asked:
        measurement.explore(item)
    measurement.repeat(asked)
    record = measurement.record(asked, skipped)
    if options.memory and loss == "hinge" and C == 1.0 and name in MEMORY_SETS:
        record["memory"] = _memory(measurement, asked)
    _say(f"{name} {loss} C={C:g}: {len(measurement.runs)} runs, {time.perf_counter() - began:.0f} s")
    return record


def _reference(
    options: Options, pool: Pool, info: sets.Info, X: Any, y: Any, loss: str, C: float
) -> dict[str, Any]:
    judges = roster.judges(max(options.threads))
    return reference(pool, judges, info, X, y, loss, C, options.reference_limit)


def _memory(measurement: Measurement, contestants: list[Contestant]) -> dict[str, int]:
    """Growth of memory in a fresh process, at the setting that counts for the loosest target."""
    problem = measurement.problem
    found = {}
    for item in contestants:
        key = measurement.choice(item, max(problem.targets))
        if key is None:
            continue
        try:
            with measurement.pool.fresh(item) as pool:
                answer, _ = pool.run(
                    item, problem.info, problem.loss, problem.C, key[1], key[2], 3.0 * problem.limit
                )
        except WorkerError as error:
            _say(f"{problem.info.name}: no memory of {item.name}: {error}")
        else:
            found[item.name] = answer["memory"]
    return found
