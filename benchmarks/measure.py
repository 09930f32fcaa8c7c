"""One problem (a data set, a loss, a C), all contestants: search, repeat, and sum up in cells."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .objective import objective
from .pool import Pool, WorkerError
from .roster import Contestant
from .search import search
from .sets import Info

Run = dict[str, Any]
Key = tuple[str, str, float]  # contestant, arm, value

_KEPT = ("seconds", "convert_seconds", "train_seconds", "passes", "converged", "note")
_POINTS = 80  # of a trace, at most, that go into the results
_ROUNDING = 1e-9  # by which an objective may fall below a dual bound


@dataclass
class Problem:
    """What is measured, under which limits."""

    info: Info
    loss: str
    C: float
    targets: Sequence[float]
    repeats: int
    limit: float  # seconds for one run
    give_up: float  # or so many times the fastest known run to the tightest target, but a second at least
    repeat_seconds: float  # no further repeats once those of a setting have taken this long in all


@dataclass
class Measurement:
    """The runs of all contestants on one problem."""

    problem: Problem
    pool: Pool
    X: Any
    y: Any
    reference: dict[str, Any]
    runs: list[Run] = field(default_factory=list)
    traces: dict[Key, list[dict[str, float]]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    dual: float = -math.inf  # the highest lower bound of the optimum known

    def __post_init__(self) -> None:
        self.dual = max(self.dual, self.reference["dual"])

    @property
    def optimum(self) -> float:
        """The lowest objective known."""
        return float(
            min([self.reference["primal"], *(run["J"] for run in self.runs if run["status"] == "ok")])
        )

    @property
    def yardstick(self) -> float:
        """What objectives are measured against: the optimum where it is known well enough, else its lower
        bound.
        """
        return self.optimum if self._known(0.1 * min(self.problem.targets)) else self.dual

    @property
    def limit(self) -> float:
        """Seconds for the next run: one that is many times slower than another's says enough."""
        tightest = min(self.problem.targets)
        fastest = min((run["seconds"] for run in self.runs if self._good(run, tightest)), default=math.inf)
        return min(self.problem.limit, max(1.0, self.problem.give_up * fastest))

    def run(self, contestant: Contestant, arm: str, value: float) -> Run:
        """Train once; the objective is computed here, from the weights alone."""
        problem, limit = self.problem, self.limit
        run: Run = {"solver": contestant.name, "arm": arm, "value": value, "limit": limit}
        try:
            answer, w = self.pool.run(contestant, problem.info, problem.loss, problem.C, arm, value, limit)
        except WorkerError as error:
            unable = contestant.ours and error.kind == "InputError"
            known = error.kind if error.kind in ("timeout", "crashed") else "error"
            run |= {"status": "unsupported" if unable else known, "note": f"{error.kind}: {error}"}
        else:
            run |= {name: answer[name] for name in _KEPT} | {"status": "ok"}
            run["J"] = objective(self.X, self.y, w, answer["b"], problem.loss, problem.C)
            self.dual = max([self.dual, *(record["dual"] for record in answer["trace"][-1:])])
            if run["J"] < self.dual * (1.0 - _ROUNDING):
                self.broken.append(
                    f"{contestant.name} found J = {run['J']!r} below the proven bound {self.dual!r}"
                )
            key = contestant.name, arm, value
            if answer["trace"] and (
                key not in self.traces or run["seconds"] <= self._fastest(key)["seconds"]
            ):
                self.traces[key] = whole(answer["trace"], run["seconds"])
        self.runs.append(run)
        return run

    def explore(self, contestant: Contestant) -> None:
        """Ours: one run a target, loosest first. A peer: a search of the grid of each of its arms."""
        if contestant.ours:
            for target in sorted(self.problem.targets, reverse=True):
                run = self.run(contestant, contestant.solver, target)
                if not run.get("converged"):
                    break
            return
        targets = [target for target in self.problem.targets if self._known(target)]
        if not targets:
            return
        for arm, grid in contestant.arms[self.problem.loss].items():

            def attempt(value: float, arm: str = arm) -> float | None:
                run = self.run(contestant, arm, value)
                return run["J"] / self.yardstick - 1.0 if run["status"] == "ok" else None

            search(grid, attempt, targets)

    def repeat(self, contestants: Sequence[Contestant]) -> None:
        """Run what counts again, in turns, so that whatever else the machine does hits all alike."""
        by_name = {item.name: item for item in contestants}
        keys = dict.fromkeys(
            key
            for target in self.problem.targets
            for item in contestants
            if (key := self.choice(item, target))
        )
        for turn in range(1, self.problem.repeats):
            for name, arm, value in keys:
                if turn * self._fastest((name, arm, value))["seconds"] < self.problem.repeat_seconds:
                    self.run(by_name[name], arm, value)

    def choice(self, contestant: Contestant, target: float) -> Key | None:
        """The setting that counts: of ours the target itself, of a peer the fastest that was good enough."""
        good = [run for run in self.runs if run["solver"] == contestant.name and self._good(run, target)]
        if contestant.ours:
            good = [run for run in good if run["value"] == target and run["converged"]]
        if not good:
            return None
        best = min(good, key=lambda run: run["seconds"])
        return contestant.name, best["arm"], best["value"]

    def cell(self, contestant: Contestant, target: float) -> dict[str, Any]:
        """What the tables say about a contestant at a target."""
        cell: dict[str, Any] = {"solver": contestant.name, "target": target}
        key = self.choice(contestant, target)
        if key is None:
            mine = [run for run in self.runs if run["solver"] == contestant.name]
            limit = max((run["limit"] for run in mine), default=self.problem.limit)
            status = why_not(mine) if contestant.ours or self._known(target) else "unknown"
            return {**cell, "status": status, "limit": limit, "note": mine[-1]["note"] if mine else ""}
        runs = [run for run in self._same(key) if self._good(run, target)]
        seconds = sorted(run["seconds"] for run in runs)
        best = min(runs, key=lambda run: run["seconds"])
        cell |= {"status": "ok", "arm": key[1], "value": key[2], "count": len(runs), "note": best["note"]}
        cell |= {"seconds": seconds[0], "median": statistics.median(seconds), "slowest": seconds[-1]}
        cell |= {"train_seconds": min(run["train_seconds"] for run in runs), "passes": best["passes"]}
        cell["suboptimality"] = best["J"] / self.optimum - 1.0
        if contestant.ours:
            cell |= self._hindsight(key, target)
        return cell

    def record(self, contestants: Sequence[Contestant], skipped: dict[str, str]) -> dict[str, Any]:
        """All of it, for the results file."""
        problem = self.problem
        cells = [self.cell(item, target) for item in contestants for target in problem.targets]
        for name, reason in skipped.items():
            entry = {"solver": name, "status": "skipped", "limit": problem.limit, "note": reason}
            cells += [{**entry, "target": target} for target in problem.targets]
        tightest: dict[str, list[dict[str, float]]] = {}
        for (name, _, _), trace in sorted(self.traces.items(), key=lambda item: -item[0][2]):
            tightest[name] = thinned(trace)
        return {
            "set": problem.info.name,
            "loss": problem.loss,
            "C": problem.C,
            "reference": self.reference,
            "optimum": self.optimum,
            "dual": self.dual,
            "cells": cells,
            "runs": self.runs,
            "traces": tightest,
            "broken": self.broken,
        }

    def _good(self, run: Run, target: float) -> bool:
        return bool(run["status"] == "ok" and run["J"] <= (1.0 + target) * self.yardstick)

    def _known(self, accuracy: float) -> bool:
        """Whether the optimum is."""
        return self.optimum <= (1.0 + accuracy) * self.dual

    def _same(self, key: Key) -> list[Run]:
        return [
            run
            for run in self.runs
            if (run["solver"], run["arm"], run["value"]) == key and run["status"] == "ok"
        ]

    def _fastest(self, key: Key) -> Run:
        return min(self._same(key), key=lambda run: run["seconds"], default={"seconds": 0.0})

    def _hindsight(self, key: Key, target: float) -> dict[str, float]:
        """When our primal value was good enough, proven or not, and the share of time that proving took."""
        trace = self.traces[key]
        enough = (1.0 + target) * self.yardstick
        first = next((record for record in trace if record["primal"] <= enough), trace[-1])
        share = trace[-1]["certify_seconds"] / trace[-1]["seconds"]
        return {"hindsight_seconds": first["seconds"], "certify_share": share}


def whole(trace: Sequence[dict[str, float]], seconds: float) -> list[dict[str, float]]:
    """Records on the clock of the whole fit: what it does before its first step belongs to every one of
    them.
    """
    before = max(0.0, seconds - trace[-1]["seconds"])
    return [{**record, "seconds": record["seconds"] + before} for record in trace]


def why_not(runs: Sequence[Run]) -> str:
    """Why a contestant has no time to show."""
    statuses = [run["status"] for run in runs]
    for status in ("timeout", "crashed", "error", "unsupported"):
        if status in statuses:
            return status
    late = any((run["note"] or "").endswith("time_limit") for run in runs)
    return "timeout" if late else "missed"


def thinned(trace: Sequence[dict[str, float]]) -> list[dict[str, float]]:
    """Few enough points for a plot, dense at both ends."""
    if len(trace) <= _POINTS:
        return list(trace)
    ratio = len(trace) ** (1.0 / (_POINTS - 1))
    picked = sorted({0, len(trace) - 1, *(min(len(trace) - 1, round(ratio**k)) for k in range(_POINTS))})
    return [trace[index] for index in picked]
