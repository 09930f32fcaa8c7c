"""Sections 5.1 and 5.2: losses and mistakes in the course of SGD, separable data, and constant rates."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import generated
from ..lab import Lab
from ..report import Cell, Claim, Curve, Figure, Panel, Report, Table, verdict_on
from ..sets import Rows
from . import common
from .reuters import Collection

PASSES = (1, 3, 10)
RATES = (0.0002, 0.002, 0.02)
STEPS = (1_000, 10_000, 100_000)  # of SGD on simulated rows
STARTS = tuple(float(eta) for eta in np.geomspace(1e-4, 1.0, 13))  # learning rates, or the first of them
MOST = 300  # passes until no mistake is made
NEARLY = 0.01  # of the rows of a category on the wrong side: nearly separable
REMARKS = (
    "The largest category against the rest (earn in Reuters-21578), no constant feature, rows in random "
    "epochs. Losses are those of the row that comes next, before the step on it.",
    "w* of the mistake bounds is the separating vector of least length, certified to a tenth (C = inf).",
    "Rates: 1,000 simulated rows of 10 columns, hinge loss, no regulariser; the excess is that of the mean "
    "of the iterates, the best of 13 learning rates, averaged over seeds.",
)


def run(lab: Lab) -> Report:
    """What a learner suffers on the way, beside Theorem 5.1 and the perceptron."""
    found = common.collection(lab)
    rows, longest = common.largest(found), common.longest(found)
    losses = _losses(lab, rows, longest)
    mistakes = _mistakes(lab, rows, longest)
    rates = _rates(lab)
    names = ("perceptron", "SGD, smoothed hinge")
    return Report(
        (
            _theorem(losses),
            *_like_perceptron(mistakes),
            _separable(lab, found),
            *_constant(rates),
        ),
        (
            Table(
                "Theorem 5.1, hinge loss: the mean loss suffered and its bound",
                ("eta", "passes", "mean loss suffered", "bound"),
                losses,
            ),
            Table(
                f"Mistakes on separable rows until a pass has none, {MOST} passes at most",
                ("", *names),
                [[what, *(one[what] for one in mistakes)] for what in ("mistakes", "bound", "passes")],
                "Bounds: M^2 |w*|^2 for the perceptron, 4 M^2 |w*|^2 for SGD with eta = 1 / (2 M^2).",
            ),
            Table(
                "Excess of averaged SGD over the least loss, best learning rate",
                ("steps", "constant rate", "eta_0 / sqrt(t)", "best constant rate", "best eta_0"),
                rates,
                f"The best of {len(STARTS)} rates from {STARTS[0]:g} to {STARTS[-1]:g}, evenly spaced by "
                "ratio.",
            ),
        ),
        (_figure(rates),),
        REMARKS,
        lab.data,
    )


def _steps(rows: Rows, passes: int, seed: int = 0) -> Any:
    """Rows in random epochs: label, columns and values of each."""
    X = sp.csr_matrix(rows.X)
    rng = np.random.default_rng(seed)
    for _ in range(passes):
        for i in rng.permutation(rows.n):
            span = slice(X.indptr[i], X.indptr[i + 1])
            yield float(rows.y[i]), X.indices[span], X.data[span]


def _losses(lab: Lab, rows: Rows, longest: float) -> list[list[Cell]]:
    """eta, passes, the mean hinge loss of rows as they came, and what Theorem 5.1 allows (A = 0, B = 1)."""
    table: list[list[Cell]] = []
    for eta in RATES[1:2] if lab.quick else RATES:
        sums = lab.once(
            {"zhang-online": rows.name, "n": rows.n, "eta": eta, "passes": PASSES},
            lambda eta=eta: _suffered(rows, eta),  # type: ignore[misc]
        )
        for passes, total in zip(PASSES, sums, strict=True):
            T = passes * rows.n
            bound = lab.optimum(rows, lam=1.0 / (eta * T)) + 0.5 * eta * longest
            table.append([eta, passes, total / T, bound])
    return table


def _suffered(rows: Rows, eta: float) -> list[float]:
    """The sum of hinge losses of rows as they came, after each number of passes."""
    w, total, sums = np.zeros(rows.X.shape[1]), 0.0, []
    for number, (y, columns, values) in enumerate(_steps(rows, PASSES[-1]), start=1):
        margin = y * float(values @ w[columns])
        if margin < 1.0:
            total += 1.0 - margin
            w[columns] += eta * y * values
        if number in [passes * rows.n for passes in PASSES]:
            sums.append(total)
    return sums


def _mistakes(lab: Lab, rows: Rows, longest: float) -> list[dict[str, float]]:
    """Mistakes of the perceptron and of SGD with the smoothed hinge, and their bounds."""

    def measure() -> list[dict[str, float]]:
        separator = lab.fit(rows, C=math.inf, tol=0.1, max_epochs=None).certificate
        size = 2.0 * separator.primal  # |w*|^2
        counts = [_until_none(rows, math.inf), _until_none(rows, 0.5 / longest)]
        bounds = (longest * size, 4.0 * longest * size)
        return [
            {"mistakes": made, "bound": bound, "passes": passes}
            for (made, passes), bound in zip(counts, bounds, strict=True)
        ]

    found: list[dict[str, float]] = lab.once({"zhang-mistakes": rows.name, "n": rows.n}, measure)
    return found


def _until_none(rows: Rows, eta: float) -> tuple[int, int]:
    """Mistakes until a pass has none, and passes: of SGD with the hinge smoothed by gamma = 1, or of the
    perceptron where eta is infinite.
    """
    w = np.zeros(rows.X.shape[1])
    made = 0
    for passes in range(1, MOST + 1):
        before = made
        for y, columns, values in _steps(rows, 1, seed=passes):
            margin = y * float(values @ w[columns])
            made += margin <= 0.0
            slope = float(margin <= 0.0) if math.isinf(eta) else eta * min(1.0, max(0.0, 1.0 - margin))
            if slope > 0.0:
                w[columns] += slope * y * values
        if made == before:
            return made, passes
    return made, MOST


def _theorem(losses: list[list[Cell]]) -> Claim:
    kept = [float(str(row[2])) <= float(str(row[3])) for row in losses]
    return verdict_on(
        "Theorem 5.1 bounds the losses suffered in the course of SGD",
        kept,
        f"in {sum(kept)} of {len(kept)} cells{common.vacuous([float(str(row[3])) for row in losses])}; "
        + "; ".join(f"eta = {row[0]:g}, passes {row[1]}: {row[2]:.3g} of {row[3]:.3g}" for row in losses),
    )


def _like_perceptron(mistakes: list[dict[str, float]]) -> tuple[Claim, Claim]:
    perceptron, sgd = mistakes
    still = ", and still some in the last one" if sgd["passes"] == MOST else ""
    return (
        verdict_on(
            "its consequence: SGD with the smoothed hinge has a bound of mistakes like the perceptron's",
            [one["mistakes"] <= one["bound"] for one in mistakes],
            f"{sgd['mistakes']:.0f} of {sgd['bound']:.2g}, the perceptron {perceptron['mistakes']:.0f} of "
            f"{perceptron['bound']:.2g}",
        ),
        verdict_on(
            "(ours, beyond the bound, of which alone the paper speaks) where data are separable SGD with the "
            "smoothed hinge behaves like the perceptron (mistakes and passes until none is made within a "
            "factor of 3)",
            [1 / 3 <= sgd[what] / perceptron[what] <= 3.0 for what in ("mistakes", "passes")],
            f"{sgd['mistakes']:.0f} mistakes in {sgd['passes']:.0f} passes{still}, the perceptron "
            f"{perceptron['mistakes']:.0f} in {perceptron['passes']:.0f}; the rate 1 / (2 M^2) of the bound "
            "is that of the longest document, and small for all others",
        ),
    )


def _separable(lab: Lab, found: Collection) -> Claim:
    """Which categories a hyperplane separates, and how many rows the others have on the wrong side."""

    def measure() -> dict[str, list[float]]:
        wrong = []
        for category in range(len(found.categories)):
            if found.topics[:, category].any():
                lab.tell(f"{found.name}: is {found.categories[category]} separable?")
                rows = common.rows_of(found, category)
                quiet = Lab(quick=lab.quick)
                hard = quiet.fit(rows, C=math.inf, tol=1.0, max_epochs=200)
                w = hard.coef
                if math.isinf(hard.certificate.primal):
                    w = quiet.fit(rows, C=100.0, tol=0.1).coef
                wrong.append(float(np.mean(rows.y * (rows.X @ w) <= 0.0)))
        return {"wrong": wrong}

    wrong = lab.once({"zhang-separable": found.name, "n": found.X.shape[0]}, measure)["wrong"]
    fully = sum(share == 0.0 for share in wrong)
    return verdict_on(
        f"the training data are nearly or fully separable (nearly: up to {NEARLY:.0%} of rows wrong)",
        [share <= NEARLY for share in wrong],
        f"{fully} of {len(wrong)} categories fully; of the others at most {max(wrong):.2%} of the documents "
        "are on the wrong side",
    )


def _rates(lab: Lab) -> list[list[float]]:
    """Steps, the excess with the best constant rate and with the best eta_0 / sqrt(t), and both rates."""
    X, y, _ = generated.simulated(1000, seed=0)
    rows = lab.given(Rows("simulated (1000 x 10)", X, y, "generated: <beta, x> plus Gaussian noise"))
    least = lab.optimum(rows, lam=1e-8)  # a regulariser that matters in the seventh digit
    table = []
    for steps in STEPS[:2] if lab.quick else STEPS:
        best = {
            schedule: lab.once(
                {"zhang-rates": rows.name, "steps": steps, "schedule": schedule, "least": "1e-8"},
                lambda schedule=schedule, steps=steps: _tuned(lab, rows, schedule, steps),  # type: ignore[misc]
            )
            for schedule in ("constant", "sqrt")
        }
        values = [best[schedule]["Q"] / least - 1.0 for schedule in ("constant", "sqrt")]
        table.append([steps, *values, *(best[schedule]["eta"] for schedule in ("constant", "sqrt"))])
    return table


def _tuned(lab: Lab, rows: Rows, schedule: str, steps: int) -> dict[str, float]:
    """The least mean loss of the averaged point over learning rates, and the rate."""
    quiet = Lab(quick=lab.quick)
    lab.tell(f"{rows.name}: {schedule} rates, {steps:,} steps")
    found = {}
    for eta in STARTS[::4] if lab.quick else STARTS:
        values = []
        for seed in range(1 if lab.quick else 5):
            outcome = quiet.own(
                rows,
                lam=0.0,
                solver="sgd",
                learning_rate=schedule,
                eta0=eta,
                average=True,
                weights="simple",
                order="random",
                max_epochs=None,
                max_visits=steps,
                duals=False,
                polish=0,
                seed=seed,
            )
            losses = np.maximum(0.0, 1.0 - rows.y * (rows.X @ outcome.coef))
            values.append(float(losses.mean()))
        found[eta] = float(np.mean(values))
    eta = min(found, key=found.__getitem__)
    return {"Q": found[eta], "eta": eta}


def _constant(rates: list[list[float]]) -> tuple[Claim, Claim]:
    powers = [
        (math.log(after[0] / before[0]) / math.log(before[1] / after[1]), before[0], after[0])
        for before, after in pairwise(rates)
    ]
    return (
        verdict_on(
            "T = O(1/eps^2) steps are enough with a constant learning rate (here: a power of at most 2.2 "
            "from each "
            "number of steps to the next)",
            [power <= 2.2 for power, *_ in powers],
            "measured power of 1/eps: "
            + "; ".join(f"{power:.2f} from {before:,} to {after:,} steps" for power, before, after in powers)
            + "; T eps^2: "
            + ", ".join(f"{steps * eps**2:.2g}" for steps, eps, *_ in rates),
        ),
        verdict_on(
            "optimal convergence can be attained with a constant learning rate: a falling one is not much "
            "better (here: its excess at least half)",
            [2.0 * falling >= constant for _, constant, falling, *_ in rates],
            "; ".join(
                f"{steps:,} steps: {constant:.3g}, falling {falling:.3g}"
                for steps, constant, falling, *_ in rates
            ),
        ),
    )


def _figure(rates: list[list[float]]) -> Figure:
    steps = [float(row[0]) for row in rates]
    curves = [
        Curve("constant rate", steps, [row[1] for row in rates], marker="o"),
        Curve("eta_0 / sqrt(t)", steps, [row[2] for row in rates], marker="s"),
        Curve(
            "in proportion to 1 / sqrt(T)",
            steps,
            [rates[0][1] * math.sqrt(steps[0] / T) for T in steps],
            True,
        ),
    ]
    return Figure(
        "zhang-online",
        "The excess of averaged SGD by steps, with the best constant and the best falling learning rate",
        [Panel("simulated (1000 x 10)", "steps T", "Q / Q* - 1", curves, "log", "log")],
    )
