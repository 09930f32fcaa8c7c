"""The rates of section 2.3, measured: how iterations grow as the accuracy asked for falls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..lab import Lab, certified
from ..report import Claim, Curve, Figure, Panel, Report, Table, verdict_on
from ..sets import Rows
from . import common
from .common import Algorithm

LOOKED = 4  # times an epoch
PROMISED = 0.1  # the gap of section 2.4, in mean form
ACCURACIES = tuple(float(value) for value in np.geomspace(0.1, 1e-4, 7))


def run(lab: Lab) -> Report:
    """Fit a power of 1/epsilon to the iterations that SDCA and Pegasos need."""
    rows = common.simulated(lab)[0]
    optimum = lab.optimum(rows, lam=1.0 / rows.n)
    plans = [
        (Algorithm("PEGASOS", "pegasos", {"iterate": "average"}), 20.0 if lab.quick else 3000.0),
        (Algorithm("SDCA", "sdca", {"order": "random"}), 20.0 if lab.quick else 300.0),
    ]
    table: list[list[Any]] = []
    curves, powers = [], {}
    for algorithm, epochs in plans:
        one = common.run(lab, rows, algorithm, epochs=epochs, every=rows.n // 4)
        reached = [(accuracy, one.reaches(optimum, accuracy)) for accuracy in ACCURACIES]
        known = [(a, t) for a, t in reached if math.isfinite(t)]
        powers[algorithm.label] = slope(known)
        table += [[algorithm.label, a, common.count(t)] for a, t in reached]
        curves.append(Curve(algorithm.label, [1.0 / a for a, _ in known], [t for _, t in known], marker="o"))
    course = _course(lab, rows, optimum)
    pairs = _accuracies(rows, optimum, course)
    panel = Panel(
        rows.name, "1 / epsilon, relative", "iterations", [*curves, *_proportional(curves)], "log", "log"
    )
    return Report(
        (
            *_claims(powers, table),
            _enough(lab, rows),
            _from_T0_on(rows, course),
            *_random_stop(lab, rows, optimum),
            _dual_accuracy(pairs),
        ),
        (
            Table(
                "Iterations until the objective is first within epsilon of the optimum",
                ("algorithm", "epsilon", "iterations"),
                table,
                NOTE,
            ),
            Table(
                "SDCA: the accuracy of its dual point where its primal point is first within eps_P",
                ("eps_P", "eps_D", "lam eps_P^2"),
                pairs,
                "Neither is relative: P(w) - P* and D* - D(alpha), in mean form.",
            ),
        ),
        (Figure("ouillade-rates", CAPTION, [panel]),),
        (),
        lab.data,
    )


NOTE = (
    "epsilon is the primal excess relative to the optimum, (P - P*) / P*, where the paper's rate of SDCA is "
    "for the duality gap and not relative. SDCA: its last point; PEGASOS: the mean of its later iterates. "
    "lam = 1/n throughout."
)
CAPTION = (
    "Iterations against the accuracy asked for, relative to the optimum (Pegasos: mean of its later "
    "iterates); the dashed line is in proportion to 1/epsilon"
)


def _claims(powers: dict[str, float], table: list[list[Any]]) -> tuple[Claim, ...]:
    return (
        verdict_on(
            "SGD needs a number of iterations of the order of 1/(lam epsilon) at most (here: in epsilon)",
            _at_most(powers["PEGASOS"], 1.15),
            f"measured power of 1/epsilon: {powers['PEGASOS']:.2f}; lam is not varied",
        ),
        verdict_on(
            "SDCA needs n + L^2/(lam epsilon) iterations for a gap of epsilon in order of magnitude, and "
            "fewer where the loss is smooth almost everywhere (here: in epsilon, of the primal excess)",
            _at_most(powers["SDCA"], 1.0),
            f"measured power of 1/epsilon: {powers['SDCA']:.2f}; lam is not varied",
        ),
        verdict_on(
            "SGD reaches a moderate accuracy quite fast, then becomes slow: SDCA needs fewer iterations, the "
            "more so the higher the accuracy",
            _slower(table),
            "iterations of PEGASOS over those of SDCA: " + _ratios(table),
        ),
    )


def _enough(lab: Lab, rows: Rows) -> Claim:
    """Section 2.4: the iterations of SDCA that are enough for an expected gap."""
    gap, steps = lab.once(
        {"sdca bound": rows.name, "rows": rows.n, "epsilon": PROMISED}, lambda: _promised(lab, rows)
    )
    return verdict_on(
        "max{0, ceil(n log(0.5 lam n L^-2))} + n + 5 L^2/(lam epsilon) iterations of SDCA are enough for a "
        "gap of "
        "epsilon (section 2.4, where L - 2 is read as L^-2; L: the length of the longest row)",
        gap <= PROMISED,
        f"epsilon = {PROMISED:g}: a gap of {gap:.2g} after the {steps:,.0f} iterations asked for",
    )


def _from_T0_on(rows: Rows, course: list[list[float]]) -> Claim:
    """Section 2.4: the dual point from T0 on. A step of SDCA never lowers the dual value, so what is reached
    before T0 holds there too.
    """
    T0 = 4.0 * _longest(rows) * rows.n / PROMISED  # the logarithm adds nothing: lam n = 1 and L > 1
    steps = (len(course) - 1) * (rows.n // LOOKED)
    far = course[-1][1]
    return verdict_on(
        "from T0 on the dual point is expected to be within epsilon/2 of its optimum (section 2.4)",
        far <= 0.5 * PROMISED if steps <= T0 else None,
        f"epsilon = {PROMISED:g}: {max(far, 0.0):.2g} from it after {steps:,.0f} iterations, before T0 = "
        f"{T0:,.0f}; a "
        "step never takes it farther",
    )


def _longest(rows: Rows) -> float:
    """The squared length of the longest row."""
    return float(np.max((rows.X * rows.X).sum(axis=1)))


def _promised(lab: Lab, rows: Rows) -> tuple[float, float]:
    outcome = lab.own(
        rows,
        lam=1.0 / rows.n,
        solver="sdca",
        order="random",
        iterate="average",
        epsilon=PROMISED,
        max_epochs=None,
    )
    return outcome.trace[-1].current.gap, float(outcome.trace[-1].visits)


def _random_stop(lab: Lab, rows: Rows, optimum: float) -> tuple[Claim, Claim]:
    """Section 3.3: Pegasos stopped at random is accurate in half of the cases at least."""
    epochs = 5.0 if lab.quick else 25.0
    one = common.run(lab, rows, Algorithm("PEGASOS", "pegasos", {}), epochs=epochs)
    T, lam = len(one.primal), 1.0 / rows.n
    bound = 42.0 * 4.0 * _longest(rows) * math.log(T / 0.5) / (lam * T)
    share = float(np.mean(np.array(one.primal) <= optimum + bound))
    median = float(np.median(one.primal)) - optimum
    return (
        verdict_on(
            "Pegasos stopped at a random iteration is within 42 c ln(T/delta)/(lam T) in half of the cases",
            share >= 0.5,
            f"in {share:.0%} of {T:,} iterations; the bound is {bound:.3g}, the median excess {median:.2g}",
        ),
        verdict_on(
            "on average two attempts at a random stopping time find such a solution (section 3.3)",
            2.0 * share >= 1.0,
            f"{1.0 / share:.1f} attempts on average" if share else "none does",
        ),
    )


def _course(lab: Lab, rows: Rows, optimum: float) -> list[list[float]]:
    """How far SDCA's primal and dual points are from the optimum, every quarter of an epoch."""

    def measure() -> list[list[float]]:
        outcome = lab.own(
            rows,
            lam=1.0 / rows.n,
            solver="sdca",
            order="random",
            max_epochs=10 if lab.quick else 300,
            record_every=rows.n // LOOKED,
        )
        records = [record.current for record in certified(outcome)]
        return [[record.primal - optimum, optimum - record.dual] for record in records]

    found: list[list[float]] = lab.once({"dual accuracy": rows.name, "rows": rows.n}, measure)
    return found


def _accuracies(rows: Rows, optimum: float, course: list[list[float]]) -> list[list[float]]:
    """Primal accuracies, the accuracy of SDCA's dual point when each is first met, and lam eps_P^2."""
    table = []
    for accuracy in ACCURACIES:
        met = next((pair for pair in course if pair[0] <= accuracy * optimum), None)
        if met is not None:
            eps = accuracy * optimum
            table.append([eps, max(met[1], 0.0), eps**2 / rows.n])
    return table


def _dual_accuracy(table: list[list[float]]) -> Claim:
    ratios = [dual / needed for _, dual, needed in table]
    said = ", ".join(f"{ratio:.2g} (eps_P = {row[0]:.2g})" for ratio, row in zip(ratios, table, strict=True))
    return verdict_on(
        "a dual accuracy of order lam eps_P^2 is needed for a primal accuracy of eps_P (here: up to 10 times "
        "it)",
        [ratio <= 10.0 for ratio in ratios] or None,
        "when SDCA's primal point is first within eps_P, its dual point is less accurate than that by a "
        f"factor of {said}; what is sufficient in the worst case is not needed here",
    )


def slope(points: list[tuple[float, float]]) -> float:
    """The power of 1/epsilon that fits best, in logarithms; nan where too few points are known."""
    if len(points) < 3:
        return math.nan
    x, y = np.log([1.0 / a for a, _ in points]), np.log([t for _, t in points])
    return float(np.polyfit(x, y, 1)[0])


def _proportional(curves: list[Curve]) -> list[Curve]:
    """The line of slope 1 from where the first curve begins."""
    first = curves[0]
    if not first.x:
        return []
    line = [first.y[0] * x / first.x[0] for x in first.x]
    return [Curve("in proportion to 1/epsilon", first.x, line, dashed=True)]


def _pairs(table: list[list[Any]]) -> list[tuple[float, float]]:
    """epsilon, and how many times as many iterations PEGASOS needs as SDCA, where both arrive."""
    counts = {(label, accuracy): count for label, accuracy, count in table if isinstance(count, int)}
    return [
        (accuracy, counts["PEGASOS", accuracy] / counts["SDCA", accuracy])
        for accuracy in ACCURACIES
        if {("PEGASOS", accuracy), ("SDCA", accuracy)} <= counts.keys()
    ]


def _ratios(table: list[list[Any]]) -> str:
    return ", ".join(f"{ratio:.2g} at {accuracy:.2g}" for accuracy, ratio in _pairs(table)) or "too few"


def _slower(table: list[list[Any]]) -> list[bool] | None:
    """Whether SDCA is ahead at every accuracy, and farther at the highest than at the lowest."""
    ratios = [ratio for _, ratio in _pairs(table)]
    return [min(ratios) > 1.1, ratios[-1] > 1.1 * ratios[0]] if len(ratios) >= 3 else None


def _at_most(power: float, bound: float) -> bool | None:
    return None if math.isnan(power) else power <= bound
